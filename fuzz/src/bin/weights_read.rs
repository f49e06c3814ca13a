//! Opens, reads and validates any bytes as safetensors, GGUF, npy or npz.
#![no_main]

#[path = "../weights_read.rs"]
mod weights_read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weights_read::run(bytes));
