//! Opens, reads, validates and edits any bytes as a model file.
#![no_main]

#[path = "../ptl_read.rs"]
mod ptl_read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ptl_read::run(bytes));
