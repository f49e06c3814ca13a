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
mod lint;
mod markdown;
mod named;
mod platform;
mod reference;
mod runner;
mod tensor_spec;
mod text;

pub use description::{Description, Example, ParsedDescription, SelfTest};
pub use dtype::DType;
pub use error::{DocumentError, DocumentFault, Error, InvalidText, Result};
pub use markdown::{LinkKind, MarkdownLink, markdown_links};
pub use named::Named;
pub use platform::Platform;
pub use reference::Reference;
pub use runner::{FrameworkVersion, OptionValue, Runner};
pub use tensor_spec::TensorSpec;
pub use text::UnknownKey;
