//! Carton files.

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
