//! The tests of the crate that need no allocator of their own.

mod copy;
mod edit;
mod fuzz_corpus;
mod killed;
mod quantized;
mod read;
mod validate;
mod write;
