//! Tensors of files of any formats as a file of another.
//!
//! # Data path
//!
//! ```text
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
mod put;
mod refusal;
mod shards;
mod target;
mod write;

pub use self::{
    conversion::Conversion,
    metadata::common_key,
    options::ConvertOptions,
    put::Fitted,
    refusal::{Note, Refusal, Remedy},
    target::{Target, UnknownTarget},
    write::ConvertedFile,
};
