//! The readers and the runtime of Circle and TFLite models on what we write.
//!
//! `cargo xtask oracles` installs them; where one is missing its tests say so and pass, except in
//! continuous integration.

mod models;
mod onert;
mod schemas;
