//! Changes any bytes as a manifest, a configuration and a list of digests.
#![no_main]

#[path = "../nnpackage_edit.rs"]
mod nnpackage_edit;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nnpackage_edit::run(bytes));
