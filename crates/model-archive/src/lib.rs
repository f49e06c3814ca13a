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
mod encode;
mod encoded;
mod end;
mod entry;
mod entry_writer;
mod error;
mod headers;
mod kind;
mod local;
mod method;
pub mod name;
mod names;
mod options;
mod pipeline;
mod storage;
mod tree;
mod unpack;
mod write;

pub use archive::Archive;
pub use decode::EntryReader;
pub use directory::Info;
pub use encoded::Encoded;
pub use entry::Entry;
pub use entry_writer::EntryWriter;
pub use error::{Class, Error, Fault, Flaw, Result, TargetFault, WriteFault};
pub use kind::Kind;
pub use method::Method;
pub use options::{Options, Profile, Symlinks};
pub use storage::{Compression, EntryOptions};
pub use unpack::{NewFolder, UnpackOptions};
pub use write::{ArchiveWriter, Raw, Written};
