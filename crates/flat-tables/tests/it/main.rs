//! Tests of the public interface.

#[path = "../../../../fuzz/src/flat_tables_read.rs"]
mod flat_tables_read;
mod fuzz_corpus;
mod read;
mod sample;
mod unknown;
mod verify;
