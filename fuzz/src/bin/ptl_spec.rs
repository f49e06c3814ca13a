//! Reads any bytes as a spec, and calls it.
#![no_main]

#[path = "../ptl_spec.rs"]
mod spec_target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| spec_target::run(bytes));
