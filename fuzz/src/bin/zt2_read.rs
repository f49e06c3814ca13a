//! Opens, reads and validates any bytes as a zTensor 2 file, or the manifest of one.
#![no_main]

#[path = "../zt2_read.rs"]
mod zt2_read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zt2_read::run(bytes));
