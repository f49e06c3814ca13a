//! Compares the crates of this workspace with their peers: the same work on the same bytes, in one
//! process.
//!
//! A [`Topic`] prepares its files once and makes [`Case`]s of them. A case has several sides, each
//! a way to do the same work, and checks that name a target for the ratio of their times. The same
//! cases run under criterion (`cargo bench -p benches --features peers`) and side by side in the
//! binary `ratios`, which prints the table of `README.md`. All of it needs the feature `peers`, so
//! that what is compared with is not built where nothing is compared.

#![cfg(feature = "peers")]

pub mod carton;
pub mod case;
pub mod command;
pub mod compress;
pub mod content;
pub mod convert;
pub mod fixture;
pub mod nnpackage;
pub mod open;
pub mod ptl;
pub mod read;
pub mod rten;
pub mod run;
pub mod verify;
pub mod write;
pub mod ztensor2;

pub use case::{Bound, Case, Check, Side, Topic};
pub use fixture::Scale;
