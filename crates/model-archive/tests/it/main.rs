//! Reading, refusing, writing and unpacking archives.

mod changed;
mod differential;
mod fuzz_corpus;
mod hostile;
mod lazy;
mod read;
mod unpack;
mod write;
