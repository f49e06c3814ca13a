//! Files that are named tensors and nothing else: safetensors, with an index of shards too, GGUF, and
//! the `npy` and `npz` of `NumPy`.
//!
//! They are what weights go out to and come in from. Each is read strictly: what two readers could
//! take for different tensors is refused.
//!
//! # Data path
//!
//! ```text
//! 1. safetensors, gguf   the header, checked: names, element types, places    safetensors.rs, gguf.rs
//!    npy, npz                                                                 npy.rs, npz.rs
//!    Shards              the files that an index leads to                     shards.rs
//! 2. Reader              the same list for all of them                        reader.rs
//! 3. Tensor::bytes       first touch of the data                              tensor.rs
//! ```
//!
//! Writing goes the other way: a [`Layout`] finds a place for each tensor before anything is written.

mod blocks;
mod contents;
mod element_type;
mod error;
mod gguf;
mod layout;
pub mod npy;
#[cfg(feature = "archive")]
pub mod npz;
mod reader;
mod safetensors;
mod shards;
mod tensor;

#[cfg(feature = "archive")]
pub(crate) use self::npz::sniff_archive;
pub(crate) use self::{
    blocks::reserve,
    gguf::{has_value, refuses as gguf_refuses},
    reader::sniff,
    safetensors::refuses as safetensors_refuses,
    shards::{open as open_index, sniff as is_index},
};
pub use self::{
    element_type::ElementType,
    error::{Error, Result},
    layout::{Layout, Metadata, Planned},
    reader::{ReadOptions, Reader},
    tensor::Tensor,
};
