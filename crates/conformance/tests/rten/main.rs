//! RTen files, and what is made of them, in the runtimes that know them.
//!
//! `cargo xtask oracles` installs what these tests run; where something is missing a test says so
//! and passes, except in continuous integration.

mod onnx;
