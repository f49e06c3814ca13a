//! What is in a model, for people and programs.

mod draw;
mod dump;
pub(crate) mod requires;
pub(crate) mod totals;
