//! Opens, checks and reads any bytes as a ZIP archive.
#![no_main]

#[path = "../archive_read.rs"]
mod archive_read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| archive_read::run(bytes));
