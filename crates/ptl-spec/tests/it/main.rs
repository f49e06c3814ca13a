//! What reading, checking, editing and running do, on the files of `testdata/ptl`.

#[cfg(feature = "image")]
mod fuzz_corpus;
mod lazy;
#[cfg(feature = "image")]
mod pictures;
mod read;
#[cfg(feature = "image")]
mod run;
mod signature;
mod sparse;
mod tokenize;
mod validate;
mod write;
