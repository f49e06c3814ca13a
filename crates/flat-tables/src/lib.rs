//! FlatBuffers tables over a [`Source`](tensor_core::Source): checked access, verification, unknown
//! fields. The crate knows the encoding and no schema.
//!
//! Tables are read where they are asked for, over pages of a file that need not be in memory; or a
//! whole buffer is proved sound at once, after which the accessors that `flatc` makes can be used on
//! it: the verifier of the crate `flatbuffers` alone does not prove what they rely on.
//!
//! # Examples
//!
//! ```
//! use flat_tables::Buffer;
//!
//! // The root at byte 12, its vtable at byte 4: 8 bytes, a table of 8, the field 0 absent, 1 at 4.
//! let bytes = [12, 0, 0, 0, 8, 0, 8, 0, 0, 0, 4, 0, 8, 0, 0, 0, 7, 0, 0, 0];
//! let buffer = Buffer::from_slice(&bytes);
//! let root = buffer.root("model")?;
//! assert_eq!(root.u32(0, "version")?, 0);
//! assert_eq!(root.u32(1, "size")?, 7);
//! // Where it stands, for who wants to change it.
//! assert_eq!(root.field(1)?, Some(16));
//! # Ok::<(), flat_tables::Error>(())
//! ```
//!
//! # Data path
//!
//! ```text
//! 1. Buffer             bytes in memory, or pages of a source                  buffer.rs
//! 2. Table              a table and the list of its fields, both in bounds     table.rs
//! 3. Vector             elements in bounds; references, texts                  vector.rs
//! ```
//!
//! And to prove a buffer in memory as a whole:
//!
//! ```text
//! 1. Checker            follows references within bounds, each part once more  check.rs
//! 2. TableType::verify  drives it by the description of a schema               schema.rs
//! 3. UnknownTable       what a later schema added, kept as it is               unknown.rs
//! ```
//!
//! # What is proved when
//!
//! | by | of each table that is reached |
//! |---|---|
//! | [`Buffer::table`] | the reference leads forward; table and vtable are aligned and inside, of 4 bytes and more; the vtable's length is even |
//! | [`Table::scalar`] | the number is aligned and in the table |
//! | [`Buffer::vector`] | the elements are aligned and inside |
//! | [`Checker`], [`TableType::verify`] | all that, at any depth, texts included; numbers in the buffer; tables, depth and bytes within [`Bounds`] |

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

mod buffer;
mod check;
mod fault;
mod schema;
mod table;
mod unknown;
mod vector;

pub use tensor_core;

pub use buffer::Buffer;
pub use check::{Bounds, Checker, Fields};
pub use fault::{Error, Fault, Problem, Result};
pub use schema::{Field, FieldType, Halves, Member, TableType, Union};
pub use table::Table;
pub use unknown::UnknownTable;
pub use vector::Vector;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
