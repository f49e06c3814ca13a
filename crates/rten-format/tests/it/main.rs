//! Tests of the public interface.

mod corpus;
mod dump;
mod edit;
mod face;
mod fuzz_corpus;
mod golden;
#[cfg(feature = "onnx")]
mod onnx;
mod read;
mod reject;
#[path = "../../../../fuzz/src/rten_read.rs"]
mod rten_read;
mod sound;
mod validate;
mod write;
