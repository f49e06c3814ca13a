//! nnpackages: Circle and TFLite models with what onert needs to run them, in a folder or a ZIP
//! archive.
//!
//! A package is a folder with `metadata/MANIFEST`, a JSON document that names models, their types,
//! configuration files, and which outputs go into which inputs; or an archive of such a folder. The
//! runtime that loads packages checks next to nothing. This crate says before deployment what will
//! happen.
//!
//! # Data path
//!
//! ```text
//! 1. Source, Archive     where the bytes are; or a folder                    storage.rs
//! 2. Reader::open        the manifest, nothing else                          read.rs
//! 3. Manifest::parse     strict JSON, then what onert puts up with           json.rs, manifest.rs
//! 4. Reader::models      handles; a stored model is used where it is         model_file.rs
//! 5. circle_format::Reader  what is in a model                                circle-format
//! 7. Reader::config      key=value lines, with what each key does            config.rs
//!    Reader::custom_ops  kernels, looked at and never loaded                 custom_op.rs
//!    Partition           connections from what a partitioner wrote           conn.rs
//!    GoldenData          values that go in and have to come out              golden.rs, hdf5.rs
//! 8. Reader::check       every rule, with what onert does about it           validate/
//! 9. extract             into a folder that appears whole                    extract.rs
//! ```
//!
//! Writing goes the other way:
//!
//! ```text
//! 1. Builder             what is put in, checked at once; models are opened  build.rs, paths.rs,
//!                        for what they are and what they need                needs.rs
//!    Edit                what changes of a package                           edit.rs,
//!                                                                            renumber.rs
//!    split, Merge        builders made of packages                           split.rs
//! 2. Manifest::to_bytes  whole, or into a text by ranges that change, and    manifest_edit.rs,
//!    Manifest::edit      read again                                          json_edit.rs,
//!                                                                            json_tree.rs,
//!                                                                            json_write.rs
//!    Config::edit        line by line                                        config_edit.rs
//! 3. Plan                what is where, in order                             write.rs
//! 4. an archive          streamed; what stays is copied as it is stored      write.rs
//!    a folder            that appears whole                                  write.rs
//!    Editor              in place, locked                                    editor.rs
//! 5. Sums                digests of all files, computed on the way           sums.rs
//! ```
//!
//! # Public types
//!
//! [`Reader`] is a package, [`Manifest`] its document, [`ModelFile`] a handle on a model in it.
//! [`circle_format::Reader`] is a model in it, and what the crate `circle-format` is about.
//! [`Diagnosis`] is a finding with a hint and onert's [`Reaction`]; `validate` gives the same as a
//! [`Report`](tensor_core::Report).
//!
//! [`Builder`] makes a package, [`Edit`] and [`Editor`] change one, [`split`] and [`Merge`] make
//! several of one and one of several. What cannot be written is an [`Error::Build`], which names the
//! file, or an [`Error::Edit`].
//!
//! # Examples
//!
//! ```
//! use nnpackage::{
//!     Reader,
//!     model_archive::{ArchiveWriter, EntryOptions},
//! };
//!
//! let manifest = br#"{"models": ["m.circle"], "model-types": ["Circle"]}"#;
//! let mut archive = ArchiveWriter::new(Vec::new());
//! archive.add("metadata/MANIFEST", manifest, &EntryOptions::default())?;
//!
//! let reader = Reader::from_bytes(archive.finish()?)?;
//! let diagnoses = reader.check();
//! let wrong = diagnoses.iter().find(|found| found.rule == "nnp/model-type").ok_or("none")?;
//! assert_eq!(wrong.hint.as_deref(), Some("\"circle\" may have been meant"));
//! assert!(reader.forecast().is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `mmap` | memory-mapped sources |

#![deny(unsafe_code)]
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

mod config;
mod custom_op;
mod draw;
mod edit;
mod error;
mod extract;
mod golden;
mod json;
mod layout;
mod manifest;
mod model_info;
mod nearest;
mod position;
mod read;
mod sums;
mod validate;
mod write;

pub use circle_format::{Diagnosis, Reaction, Stage, Tensor};
pub use config::{Config, ConfigEffect, ConfigEntry, ConfigKey, ConfigType};
#[cfg(feature = "kernels")]
pub use custom_op::library::{Library, LibraryFormat};
pub use custom_op::{CustomOp, CustomOpName};
pub use draw::Diagram;
pub use edit::{
    Connected, Edit,
    build::Builder,
    config::ConfigChange,
    editor::Editor,
    fault::{BuildFault, EditFault},
    split::{Merge, split},
};
pub use error::{Error, FileFault, Result};
pub use extract::{ExtractOptions, extract};
pub use golden::GoldenData;
pub use manifest::{
    Connection, Manifest, PackageVersion, VersionPart,
    io_ref::{IoRef, IoRefFault},
    partition::{Partition, PartitionModel, Wiring},
};
pub use model_info::{ModelInfo, TensorDescription};
pub use position::Position;
pub use read::{
    ReadOptions, Reader,
    content::Content,
    file::File,
    model_file::{ModelFile, ModelType},
    sniff::{sniff, sniff_archive},
};
pub use sums::Sums;
pub use tensor_core::output::Edited;
pub use write::{Package, WriteOptions};

pub use circle_format;
pub use model_archive;
pub use tensor_core;
