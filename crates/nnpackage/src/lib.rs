//! nnpackages: Circle and TFLite models with what onert needs to run them, in a folder or a ZIP
//! archive. Opened, checked, built, edited, split and merged.
//!
//! A package is a folder with `metadata/MANIFEST`, a JSON document that names models, their types,
//! configuration files, and which outputs go into which inputs; or an archive of such a folder. The
//! runtime that loads packages checks next to nothing. This crate says before deployment what will
//! happen.
//!
//! # Examples
//!
//! ```
//! use nnpackage::{Builder, Reader, Writer, tensor_core::Source};
//! # use circle_format::{Schema, model};
//! # use model::{BuiltinOperator, ModelBuilder, Operator, Tensor, TensorType, options::AddOptions};
//! # let mut model = ModelBuilder::new(Schema::Circle);
//! # let mut graph = model.subgraph("main");
//! # let row = |name: &str| Tensor::new(name, TensorType::Float32, [1, 4]);
//! # let x = graph.input(row("x"));
//! # let half = graph.constant(row("half"), [0, 0, 0, 63].repeat(4));
//! # let y = graph.output(row("y"));
//! # let add = Operator::new([x, half], [y]).options(AddOptions::default());
//! # graph.operator(BuiltinOperator::ADD, add);
//! # graph.finish();
//! # let circle = model.finish().to_bytes()?;
//!
//! let mut builder = Builder::default();
//! builder.model("add.circle", Source::from_bytes(circle))?;
//! builder.mmap()?;
//! let archive = Writer::new(Vec::new(), &builder).finish()?;
//!
//! let reader = Reader::from_bytes(archive)?;
//! let half = reader.tensor("half")?.ok_or("missing")?;
//! assert_eq!(half.bytes()?.len(), 16);
//! assert!(reader.validate().is_valid());
//! // Nothing is found that stops onert.
//! assert_eq!(reader.forecast(), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is proved when
//!
//! | by | what |
//! |---|---|
//! | opening | the directory of the archive, names that stay in it, a manifest that onert could read, at least one model |
//! | [`ModelFile::open`] | all tables of a model; constants are touched when they are read |
//! | reading a file | its length and, where it is compressed, the checksum of the archive; its digest where [`ReadOptions::verify`] says so |
//! | [`File::verify`] | the checksum, and the digest of `metadata/SHA256SUMS`, where that lists the file |
//! | [`Reader::lint`] | every rule about manifest, configuration, models, connections, kernels and golden data |
//! | [`Reader::validate`] | all of these, and every byte of every file |
//!
//! [`Reader::diagnoses`] gives what `lint` finds with a hint and what onert 0.1.0 does about it
//! ([`Reaction`]); [`Reader::forecast`] is the first thing that stops it.
//!
//! # Public types
//!
//! [`Reader`] is a package, [`Manifest`] its document, [`ModelFile`] a handle on a model in it, which
//! opens as a [`circle_format::Reader`]. [`Tensor`] is a handle on a constant, [`File`] one on any file.
//!
//! [`Builder`] makes a package, [`Edit`] and [`Editor`] change one, [`split`] and [`Merge`] make
//! several of one and one of several; a [`Writer`] writes them. What cannot be written
//! is an [`Error::Build`], which names the file, or an [`Error::Edit`].
//!
//! # Data path
//!
//! ```text
//! 1. Source, Archive, Folder  where the bytes are                          model_archive
//! 2. Reader::open             the manifest, nothing else                   read/
//! 3. Manifest::parse          strict JSON, then what onert tolerates       json/, manifest/
//! 4. Reader::models           handles; a stored model is used in place     read/model_file.rs
//!    Reader::files                                                         read/file.rs
//! 5. Reader::config           key=value lines, with what each key does     config.rs
//!    Reader::custom_ops       kernels, looked at and never loaded          custom_op/
//!    Reader::golden_input     values that go in and have to come out       golden/
//! 6. Reader::lint, validate   every rule, with what onert does about it    validate/
//! 7. extract                  into a folder that appears whole             extract.rs
//!
//! 1. Builder, Edit            what is put in or changes, checked at once   edit/
//!    split, Merge             builders made of packages                    edit/split.rs
//! 2. Manifest::edit           ranges of a text that change                 edit/manifest.rs, json/
//!    Config::edit             line by line                                 edit/config.rs
//! 3. Plan                     what is where, in order                      write.rs
//! 4. Writer                   an archive, streamed; a folder               write.rs
//!    Editor                   in place, locked                             edit/editor.rs
//! 5. Sums                     digests of all files, computed on the way    sums.rs
//! ```
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `golden` | yes | values of golden data, which are files of HDF5 |
//! | `kernels` | yes | what is in kernels: object files, shared libraries, archives |
//! | `mmap` | no | memory-mapped sources |

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

mod config;
mod custom_op;
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

pub use circle_format::{Diagnosis, Need, Reaction, Stage, Tensor};
pub use config::{Config, ConfigEffect, ConfigEntry, ConfigKey, ConfigType};
#[cfg(feature = "kernels")]
pub use custom_op::library::{Library, LibraryFormat};
pub use custom_op::{CustomOp, CustomOpName};
pub use edit::{
    Connected, Edit,
    build::Builder,
    config::ConfigChange,
    editor::Editor,
    fault::{BuildFault, EditFault},
    split::{Merge, split},
};
pub use error::{Error, FileFault, Result};
pub use extract::{extract, try_extract};
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
pub use write::{Package, WriteOptions, Writer};

pub use circle_format;
pub use model_archive;
pub use tensor_core;

#[cfg(all(doctest, feature = "golden", feature = "kernels"))]
#[doc = include_str!("../README.md")]
struct ReadMe;
