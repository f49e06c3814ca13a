//! RTen files, and what is made of them, in the runtimes that know them.
//!
//! `cargo xtask oracles` installs what the tests of exports run; where something is missing a test
//! says so and passes, except in continuous integration. The runtime `rten` is behind the feature
//! `peers`.

mod onnx;
#[cfg(feature = "peers")]
mod runtime;
