//! ZIP archives that hold models: strict, lazy, deterministic.
//!
//! Three model formats are ZIP files (Carton, nnpackage, PyTorch `.ptl`). This crate knows none of
//! them: it says which archives are safe to read and alike to every reader, hands out entries
//! without a copy, and writes archives whose bytes depend on nothing but the calls.
//!
//! # Data path
//!
//! ```text
//! 1. Source             where the bytes are                                   tensor_core::Source
//! 2. End, Directory     end records and directory, read once and checked      end.rs, directory.rs
//! 3. Archive, Entry     handles by position or name                           archive.rs, entry.rs
//! 4. Local              the header in front of the data: first touch          local.rs
//! 5. Entry::bytes       a slice where stored as it is and in memory           entry.rs
//!    EntryReader        decoded, with size and CRC-32 compared                decode.rs
//! 6. Archive::check     every fault of the structure                          archive.rs
//! ```
//!
//! Writing goes the other way: an entry in memory is compressed apart ([`Encoded`]), a long one on
//! its way through ([`EntryWriter`], pipeline.rs); headers.rs has the records of both directions.
//! [`NewFolder`] is where archives are unpacked.
//!
//! # Examples
//!
//! ```
//! use model_archive::{Archive, ArchiveWriter, EntryOptions};
//! use tensor_core::Source;
//!
//! let mut writer = ArchiveWriter::new(Vec::new());
//! writer.add("weights.bin", &[0; 64], &EntryOptions::default().alignment(64))?;
//! let archive = Archive::from_bytes(writer.finish()?)?;
//! let weights = archive.entry("weights.bin").unwrap();
//! assert!(weights.extent()?.is_aligned(64));
//! # Ok::<(), model_archive::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `deflate` | yes | entries of method 8 |
//! | `zstd` | yes | entries of method 93 |

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

mod error;
mod fault;
mod folder;
mod kind;
mod method;
pub mod name;
mod read;
mod write;

pub use error::{Error, Result};
pub use fault::{Class, Fault, FileFault, Flaw, WriteFault};
pub use folder::{
    Folder,
    new::{NewFolder, UnpackOptions},
    storage::{Storage, Stored, StoredReader},
};
pub use kind::Kind;
pub use method::Method;
pub use name::TargetFault;
pub use read::{
    archive::Archive,
    decode::EntryReader,
    directory::Info,
    entry::Entry,
    options::{ReadOptions, Symlinks},
};
pub use tensor_core::{self, Profile};
pub use write::{
    ArchiveWriter, Raw, Written,
    append::last_whole,
    encoded::Encoded,
    entry_writer::EntryWriter,
    headers::Layout,
    options::{Compression, EntryOptions},
};
