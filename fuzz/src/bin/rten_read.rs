//! Opens, reads, validates and shows any bytes as an RTen file.
#![no_main]

#[path = "../rten_read.rs"]
mod rten_read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rten_read::run(bytes));
