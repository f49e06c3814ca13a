//! The tests of the crate that need neither an allocator nor a process of their own.

mod copy;
mod edit;
mod fuzz_corpus;
mod quantized;
mod read;
mod validate;
mod write;
