//! Opens, reads, validates and repacks any bytes as a carton, or as the documents of one.
#![no_main]

#[path = "../carton_read.rs"]
mod carton_read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| carton_read::run(bytes));
