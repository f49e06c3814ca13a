//! Opens, reads and validates any bytes as a zTensor file.
#![no_main]

#[path = "../ztensor_read.rs"]
mod ztensor_read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ztensor_read::run(bytes));
