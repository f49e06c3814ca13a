//! Archives and folders that hold the files of a model: ZIP read strictly and lazily, written
//! deterministically, and changed in place.
//!
//! Three model formats are ZIP files (Carton, nnpackage, PyTorch `.ptl`), and two of them may be
//! folders. This crate knows none of them: it says which archives are safe to read and alike to
//! every reader, hands out entries without a copy, and writes archives whose bytes depend on nothing
//! but the calls.
//!
//! # Examples
//!
//! ```
//! use model_archive::{Archive, ArchiveWriter, EntryOptions};
//!
//! let mut writer = ArchiveWriter::new(Vec::new());
//! writer.add("weights.bin", &[0; 64], &EntryOptions::default().alignment(64))?;
//! let archive = Archive::from_bytes(writer.finish()?)?;
//! let weights = archive.entry("weights.bin").expect("just written");
//! assert!(weights.extent()?.is_aligned(64));
//! assert!(archive.validate().is_empty());
//! # Ok::<(), model_archive::Error>(())
//! ```
//!
//! # What is proved when
//!
//! | by | what |
//! |---|---|
//! | [`Archive::sniff`] | that the file starts or ends as an archive does |
//! | opening | end records and directory are well formed; names are unique, normal relative paths; no entries share bytes, are encrypted, or are devices; in the strict profile also that readers agree about all this |
//! | reading an entry | its local header fits the directory; size and CRC-32 of what is decoded; limits on what is decoded |
//! | [`Entry::checked_bytes`], [`Entry::read_into`], [`Entry::reader`], [`Entry::verify`] | size and CRC-32, whatever the method |
//! | [`Archive::lint`] | all local headers and descriptors, bytes between entries, targets of links, names that collide on some systems |
//! | [`Archive::validate`] | all of these, and every byte of content |
//! | [`Folder::file`] | the path is one that a name may be, and no link leads out of the folder |
//!
//! # Data path
//!
//! ```text
//! 1. Source             where the bytes are                                tensor_core::Source
//! 2. End, Directory     end records and directory, read once and checked   read/{end,directory}.rs
//! 3. Archive, Entry     handles by position or name                        read/{archive,entry}.rs
//! 4. Local              the header in front of the data: first touch       read/{local,extra}.rs
//! 5. Entry::bytes       a slice where stored as it is and in memory        read/entry.rs
//!    EntryReader        decoded, with size and CRC-32 compared             read/decode/
//! 6. lint, validate     every fault, as a report                           read/lint.rs
//! ```
//!
//! [`Storage`] is an archive, a folder of one, or a [`Folder`] on the disk, which is read like one
//! (folder/). Writing goes the other way: an entry in memory is compressed apart ([`Encoded`]), a long
//! one on its way through ([`EntryWriter`], write/pipeline.rs); write/headers.rs has the records of
//! both, in the [`Layout`] of this crate or of PyTorch. [`ArchiveWriter::behind_archive`] changes
//! an archive in place (write/append.rs), and [`Archive::recoverable_len`] finds what is left of one
//! where that was cut off. [`NewFolder`] is where archives are unpacked, and [`FolderEdit`] changes a
//! folder, whole or not at all (folder/edit.rs).
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

pub use tensor_core;

pub use error::{Error, Result};
pub use fault::{Class, Fault, FaultAt, FileFault, WriteFault};
pub use folder::{
    Folder,
    edit::FolderEdit,
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
pub use write::{
    ArchiveWriter, Raw, Written,
    encoded::Encoded,
    entry_writer::EntryWriter,
    headers::Layout,
    options::{Compression, EntryOptions},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
