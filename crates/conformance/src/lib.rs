//! What the conformance tests share: the files they exchange with the real clients of a format, and
//! how a client that is not a Rust crate is found and run.
//!
//! The tests stand in `tests/`, one folder or file for each client; what runs inside Python stands
//! in `python/`.

pub mod carton;
pub mod process;
pub mod python;
pub mod samples;
pub mod torch;
