//! What reading, checking, editing and running do, on the files of `testdata/ptl`.

#[cfg(feature = "image")]
mod fuzz_corpus;
mod honest;
mod json;
mod lazy;
#[cfg(feature = "image")]
mod pictures;
mod read;
#[cfg(feature = "image")]
mod run;
mod signature;
mod sparse;
mod tokenize;
mod torchscript;
mod validate;
mod write;

/// Returns a model as PyTorch 2.5.1 has written it.
fn model(name: &str) -> Vec<u8> {
    std::fs::read(test_support::testdata("ptl/valid/torch251").join(name)).unwrap()
}
