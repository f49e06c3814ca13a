//! zTensor (`.zt`): reads every generation from 0.1 to 2, verifies, edits in place, and writes what the
//! reference implementations of 1.1 and 2 write, byte for byte.
//!
//! A zTensor file is a row of blobs on 64-byte boundaries, followed by a CBOR manifest that says
//! which of them make up which tensor, and a footer that says how long the manifest is. In generation 2,
//! boundaries are of 4096 bytes or more, the footer says where the manifest is and what hash it has,
//! parts have digests, and blobs may lie in other files ([`Shards`]).
//!
//! # Examples
//!
//! ```
//! use ztensor::{Reader, Writer, tensor_core::TensorBuf};
//!
//! let mut writer = Writer::new(Vec::new());
//! writer.add("bias", &TensorBuf::from_slice([3], &[0.5_f32, 1.0, 1.5])?)?;
//! let file = writer.finish()?;
//!
//! let reader = Reader::from_bytes(file)?;
//! let bias = reader.tensor("bias").expect("just written").read()?;
//! assert_eq!(bias.to_vec::<f32>()?, [0.5, 1.0, 1.5]);
//! assert!(reader.validate().is_empty());
//! # Ok::<(), ztensor::Error>(())
//! ```
//!
//! A mapped file gives typed slices without a copy: open it with
//! `Reader::from_source(unsafe { Source::map(path)? })` (feature `mmap`). Bytes that are elsewhere,
//! such as in an object store, are read by an implementation of [`tensor_core::ReadAt`].
//!
//! # What is proved when
//!
//! | by | what |
//! |---|---|
//! | opening | magics, manifest size, well-formed CBOR, the schema of every entry, unique names; in generation 2 every [`Rule`] of its text about the manifest |
//! | reading an object | known element type and encoding, blob on the grid and between header and manifest, exact lengths before and after decoding, sparse indices in range |
//! | reading with [`Verify`](tensor_core::Verify) | digests |
//! | [`Reader::lint`] | all definitions, without reading a tensor; overlaps, padding, gaps, recorded lengths, version text |
//! | [`Reader::validate`] | all of these, every byte of every tensor, digests and bools |
//! | [`Reader::canonical`] | that a file of generation 2 is the only one for what it holds |
//!
//! # Data path
//!
//! ```text
//! 1. Source            where the bytes are                          tensor_core::Source
//! 2. Container::read   finds and bounds the manifest                container.rs
//! 3. Manifest::parse   walks it once, checks it, indexes the names  manifest/
//! 4. Reader::tensor    hands out a two-word handle                  read.rs, tensor/mod.rs
//! 5. Tensor::object    decodes one entry                            manifest/{object,plain,legacy}.rs
//! 6. Blob::bytes       first touch of the data                      tensor/{blob,stream}.rs
//! 7. Csr, Coo, …       typed parts, proved to fit together          tensor/{sparse,quantized,real}.rs
//! 8. validate, lint    every rule, as a report                      validate.rs
//! 9. Writer, Editor    the way back                                 write/ edit/ migrate/
//! ```
//!
//! Generation 2 takes the same way: its footer, encoding, schema and layouts are read in `v2/`, and its
//! entries become the same [`Object`] and [`Component`], of which `shard` names the file of a blob.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `digest` | yes | verifying and writing the digests of components: sha256, crc32c, xxh3; writing generation 2 |
//! | `zstd` | yes | reading and writing components in the encodings `zstd` and `zt.zstd-seekable/1` |
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

mod container;
mod edit;
mod error;
mod generation;
mod manifest;
mod migrate;
mod read;
mod shard;
mod tensor;
mod v2;
mod validate;
mod write;

pub use tensor_core;

pub use container::{ALIGNMENT, sniff};
pub use edit::{Editor, compact, compact_dry_run, recover, recoverable, rewrite};
pub use error::{Decoded, Error, Fault, Problem, Result};
pub use generation::Generation;
pub use manifest::{
    Attributes, ByteOrder, Component, ElementType, Encoding, Format, Manifest, Object, Role, Shard,
    StoredType, Value,
};
pub use migrate::migrate;
pub use read::{ReadOptions, Reader};
pub use shard::{ShardFiles, Shards};
pub use tensor::{
    Axis, Blob, BlobReader, CodeOrder, Convention, Coo, Csr, DenseReader, Dequantized,
    QuantizedGroup, Tensor,
};
pub use v2::{Rule, is_canonical_name};
pub use write::{
    ComponentWriter, Compression, Form, ObjectWriter, Storage, Version, WriteOptions, Writer,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
