//! Carton files: a model, what runs it, and test data, in one archive with a digest of every file.
//!
//! A carton is a ZIP archive with `carton.toml` (the typed [`Description`]), `MANIFEST` (paths and
//! SHA-256s, whose own SHA-256 is the model hash), the folder `model`, and optionally `tensor_data`,
//! `misc` and `LINKS` (where files that are left out can be fetched). This crate reads, validates,
//! packs, unpacks, links and edits them.
//!
//! # Examples
//!
//! ```
//! use carton_format::{Description, Reader, Runner, Value, Writer, tensor_core::TensorBuf};
//!
//! let mut writer = Writer::new(Vec::new());
//! writer.description(&Description::new(Runner::new("noop", "=1.0.0".parse()?)))?;
//! writer.file("model/weights.bin", &[0; 64])?;
//! writer.tensor("x", &Value::Numeric(TensorBuf::from_slice([2], &[1.0_f32, 2.0])?))?;
//! let reader = Reader::from_bytes(writer.finish()?.sink)?;
//!
//! let tensor = reader.tensor("x")?.expect("just written");
//! assert_eq!(tensor.info()?.to_string(), "f32 [2]");
//! assert_eq!(tensor.read()?.to_vec::<f32>()?, [1.0, 2.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A mapped carton gives tensors without a copy: open it with
//! `Reader::from_source(unsafe { Source::map(path)? })` (feature `mmap`). Bytes that are elsewhere,
//! such as in an object store, are read by an implementation of [`tensor_core::ReadAt`]; what is only
//! linked comes by an implementation of [`Fetch`](fetch::Fetch). `modelcrate` has one for HTTPS.
//!
//! # What is proved when
//!
//! | by | what |
//! |---|---|
//! | opening | the directory of the archive, every line of `MANIFEST`, `LINKS` |
//! | [`Reader::description`], [`Reader::tensors`] | the document, whose digest is compared; nested tensors hold tensors that there are |
//! | reading a file or a tensor | its digest, once by default (see [`Verify`](tensor_core::Verify)); the length that its shape needs |
//! | [`Reader::lint`] | that `MANIFEST`, archive and `LINKS` agree; every reference, declared type and shape; every header of the archive; no content but that of documents |
//! | [`Reader::validate`] | all of these, and the digest and checksum of every byte, the number of texts |
//!
//! # Data path
//!
//! ```text
//! 1. Source, Storage     where the bytes are: an archive, or a folder         model_archive
//! 2. Reader::open        MANIFEST and LINKS, nothing else                     read/ manifest.rs links/
//! 3. Reader::description carton.toml, when it is asked for                    description/ text/
//! 4. Reader::tensors     the index, when it is asked for                      tensor/
//! 5. File, Tensor        handles of two words                                 read/file.rs tensor/
//! 6. File::bytes         first touch of content; the digest is compared once  read/file.rs
//!    Fetch               what is only linked, if the caller asked for that    links/fetch.rs
//! 7. validate, lint      every rule, as a report                              validate/
//! 8. Pack, Writer        the way back, front to back                          write/
//! 9. Editor              changes of a carton that is there, under a lock      edit/
//! ```
//!
//! [`shrink`], [`fill`] and [`repack`] make cartons from cartons; what stays the same is copied as it
//! is stored, and so is the model hash.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `deflate` | yes | files compressed by DEFLATE |
//! | `edit` | yes | `Description::edit`, `Editor::change`: changes of `carton.toml` that keep comments, order and unknown keys |
//! | `zstd` | yes | files compressed by zstd (builds libzstd, in C) |
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

mod description;
mod edit;
mod error;
mod links;
mod manifest;
mod paths;
mod read;
pub mod self_test;
mod sha256;
mod tensor;
mod text;
mod validate;
mod write;

pub use description::{
    Description, Example, ParsedDescription, SelfTest,
    markdown::{LinkKind, MarkdownLink, markdown_links},
    named::Named,
    platform::Platform,
    reference::Reference,
    runner::{FrameworkVersion, OptionValue, Runner},
    tensor_spec::TensorSpec,
};
pub use edit::Editor;
#[cfg(feature = "edit")]
pub use edit::change::{Change, NewValue};
#[cfg(feature = "edit")]
pub use error::EditFault;
pub use error::{
    DocumentError, DocumentFault, Error, InvalidText, ManifestFault, PackFault, Result,
    TensorFault, WriteFault,
};
pub use links::{Links, fetch};
pub use manifest::Manifest;
pub use read::{
    ReadOptions, Reader,
    file::{File, FileReader, Place},
    media_type::MediaType,
    sniff::{sniff, sniff_archive},
    unpack::{Linked, UnpackOptions, unpack},
};
pub use sha256::Sha256;
pub use tensor::{Tensor, TensorKind, Value, dtype};
pub use text::UnknownKey;
pub use write::{
    Finished, WriteOptions, Writer,
    pack::Pack,
    rewrite::{fill, repack, replace_description, shrink},
    unpacked::UnpackedModel,
};

pub use model_archive;
pub use tensor_core;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
