//! The tests of this crate, but for those that need a process of their own.

mod description;
mod edit;
mod folder;
mod fuzz_corpus;
mod golden;
mod honest;
mod lazy;
mod read;
mod reject;
mod write;
