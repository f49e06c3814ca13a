//! Opens, reads and validates any bytes as an nnpackage, or a document of a package.
#![no_main]

#[path = "../nnpackage_read.rs"]
mod nnpackage_read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nnpackage_read::run(bytes));
