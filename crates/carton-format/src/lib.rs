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
//! | `deflate` | yes | files compressed by DEFLATE |
//! | `edit` | yes | [`Description::edit`], [`Editor::change`]: changes of `carton.toml` that keep comments and unknown keys |
//! | `zstd` | yes | files compressed by zstd, which needs a compiler of C |
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
pub use sha256::{ParseSha256Error, Sha256};
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
