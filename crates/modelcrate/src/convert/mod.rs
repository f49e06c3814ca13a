//! Files of any formats as those of another.
//!
//! # Data path
//!
//! ```text
//! 0. AnyReader::convert     which way a file goes, and of models all of it      product.rs, request.rs
//! 1. TensorSet::convert_to  what becomes of each tensor, or why it cannot be    plan.rs, cast.rs
//! 2. metadata               keys under the names that the target has for them   metadata.rs
//! 3. Conversion::files      one, or shards with an index                        shards.rs
//! 4. ConvertedFile::write   tensors one after another, others decoded ahead     write.rs
//! ```
//!
//! `TensorSet::fit_…` finds the tensors of a file that is there already which take the elements of a
//! set, for an editor of its format (put.rs).

mod cast;
mod conversion;
mod metadata;
mod options;
mod plan;
mod product;
mod put;
mod refusal;
mod request;
mod shards;
mod target;
mod write;

pub(crate) use self::product::becomes;
pub use self::{
    conversion::Conversion,
    metadata::common_key,
    options::ConvertOptions,
    product::{Product, UnknownProduct},
    put::Fitted,
    refusal::{Note, Refusal, Remedy},
    request::{Becoming, Request, Rewriting},
    target::{Target, UnknownTarget},
    write::ConvertedFile,
};
