//! Proves any bytes as a buffer of tables, and reads them in memory and by pages.
#![no_main]

#[path = "../flat_tables_read.rs"]
mod flat_tables_read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flat_tables_read::run(bytes));
