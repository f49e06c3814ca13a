//! What is in a model, for people and programs.

mod dump;
pub(crate) mod requires;
pub(crate) mod totals;
pub(crate) mod types;
