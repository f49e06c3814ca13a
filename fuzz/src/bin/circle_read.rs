//! Opens, reads and validates any bytes as a Circle or TFLite model, or as custom options.
#![no_main]

#[path = "../circle_read.rs"]
mod circle_read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| circle_read::run(bytes));
