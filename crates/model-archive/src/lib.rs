//! ZIP archives that hold models.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

mod archive;
mod decode;
mod directory;
mod end;
mod entry;
mod error;
mod local;
mod method;
pub mod name;
mod options;

pub use archive::Archive;
pub use decode::EntryReader;
pub use directory::{Info, Kind};
pub use entry::Entry;
pub use error::{Class, Error, Fault, Flaw, Result, TargetFault, WriteFault};
pub use method::Method;
pub use options::{Options, Profile, Symlinks};
