//! Reading, refusing, writing, changing and unpacking archives, and reading folders.

mod append;
mod changed;
mod differential;
mod edit;
mod face;
mod folder;
mod fuzz_corpus;
mod hostile;
mod lazy;
mod read;
mod unpack;
mod write;
