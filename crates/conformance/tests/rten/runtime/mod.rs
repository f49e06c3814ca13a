//! The crate `rten` 0.27.0, the last release that reads `.rten`, without its optimiser: constants
//! that it folds lose their names.
//!
//! A test of a file that we wrote is one line: [`client::runs_like`] says that it computes what
//! the sample of a name does.

pub(crate) mod client;
pub(crate) mod exported;
mod operators;
mod refused;
mod samples;
