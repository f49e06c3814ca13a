//! Reading, refusing, writing and unpacking archives, and reading folders.

mod changed;
mod differential;
mod folder;
mod fuzz_corpus;
mod hostile;
mod lazy;
mod read;
mod unpack;
mod write;
