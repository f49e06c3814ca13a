//! Carton files: a model, what runs it, and test data, in one archive with a digest of every file.
//!
//! A carton is a ZIP archive with `carton.toml` (the typed [`Description`]), `MANIFEST` (paths and
//! SHA-256s, whose own SHA-256 is the model hash), the folder `model`, and optionally `tensor_data`,
//! `misc` and `LINKS` (where files that are left out may be had).
//!
//! # Data path
//!
//! ```text
//! 1. Source, Archive     where the bytes are; or a folder                     storage.rs
//! 2. Reader::open        MANIFEST and LINKS, nothing else                     read.rs, manifest.rs, links.rs
//! 3. Reader::description carton.toml, when it is asked for                    description.rs, text.rs
//! 4. Reader::tensors     the index, when it is asked for                      index.rs
//! 5. File, Tensor        handles of two words                                 file.rs, tensor.rs
//! 6. File::bytes         first touch of content; the digest is compared once  file.rs
//!    Fetch               what is only linked, if the caller asked for that    fetch.rs, http/
//! 7. Reader::validate    every rule over every byte, several files at once    validate.rs, lint.rs
//! ```
//!
//! Writing: [`Pack`] collects and sorts, [`Writer`] puts files down front to back and finishes with
//! index, `MANIFEST` and `LINKS` (`write.rs`, `index_writer.rs`). [`shrink`], [`fill`], [`repack`] and
//! [`replace_description`] make cartons from cartons (rewrite.rs); what stays the same is copied as
//! it is stored.
//!
//! # Examples
//!
//! ```
//! use carton_format::{Description, Reader, Runner, Value, Writer, tensor_core::Tensor};
//!
//! let mut writer = Writer::new(Vec::new());
//! writer.description(&Description::new(Runner::new("noop", "=1.0.0".parse()?)))?;
//! writer.file("model/weights.bin", &[0; 64])?;
//! writer.tensor("x", &Value::Numeric(Tensor::from_slice([2], &[1.0_f32, 2.0])?))?;
//! let reader = Reader::from_bytes(writer.finish()?.sink)?;
//!
//! let tensor = reader.tensor("x")?.ok_or("no tensor x")?;
//! assert_eq!(tensor.info().map(|info| info.to_string()).as_deref(), Some("f32 [2]"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `edit` | yes | the module `edit`: changes of `carton.toml` that keep comments and unknown keys |
//! | `links-http` | no | the module `http`: linked files over HTTPS into a cache |
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
mod dtype;
#[cfg(feature = "edit")]
pub mod edit;
mod emit;
mod error;
pub mod fetch;
mod file;
#[cfg(feature = "links-http")]
pub mod http;
mod index;
mod index_writer;
mod links;
mod lint;
mod manifest;
mod markdown;
mod misc;
mod named;
mod pack;
mod paths;
mod platform;
mod read;
mod reference;
mod rewrite;
mod runner;
pub mod self_test;
mod sha256;
mod storage;
mod tensor;
mod tensor_spec;
mod text;
mod unpack;
mod unpacked;
mod validate;
mod write;

pub use description::{Description, Example, ParsedDescription, SelfTest};
pub use dtype::DType;
pub use error::{
    DocumentError, DocumentFault, Error, FileFault, InvalidText, PackFault, Result, TensorFault,
    WriteFault,
};
pub use file::{File, FileReader, Place};
pub use links::Links;
pub use manifest::{Manifest, ManifestFault};
pub use markdown::{LinkKind, MarkdownLink, markdown_links};
pub use misc::MediaType;
pub use named::Named;
pub use pack::Pack;
pub use platform::Platform;
pub use read::{ReadOptions, Reader, Verify};
pub use reference::Reference;
pub use rewrite::{fill, repack, replace_description, shrink};
pub use runner::{FrameworkVersion, OptionValue, Runner};
pub use sha256::{ParseSha256Error, Sha256};
pub use tensor::{Tensor, TensorKind, Value};
pub use tensor_spec::TensorSpec;
pub use text::UnknownKey;
pub use unpack::{Linked, UnpackOptions, unpack};
pub use unpacked::UnpackedModel;
pub use write::{Finished, WriteOptions, Writer};

pub use model_archive;
pub use tensor_core;
