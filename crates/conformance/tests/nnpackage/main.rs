//! The readers and the runtimes of Circle and TFLite models on what we write.
//!
//! `cargo xtask oracles` installs them; where one is missing its tests say so and pass, except in
//! continuous integration.

mod litert;
mod models;
mod onert;
mod schemas;
