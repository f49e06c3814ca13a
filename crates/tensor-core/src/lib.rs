//! What every model format needs and no format owns: element types, shapes, checked extents, byte
//! sources that are read when asked, aligned buffers, typed views, limits and reports.
//!
//! This crate knows no file format. The format crates of the workspace (`ztensor` and its
//! siblings) are built on it, and their public signatures use its types.
//!
//! # Examples
//!
//! ```
//! use tensor_core::{DType, Extent, Source, TensorBuf};
//!
//! let source = Source::from_bytes(vec![0, 0, 128, 63, 0, 0, 0, 64]);
//! let bytes = source.read(Extent::new(0, 8)?, "weights")?;
//! let tensor = TensorBuf::new(DType::F32, [2], bytes)?;
//! assert_eq!(tensor.to_vec::<f32>()?, [1.0, 2.0]);
//! # Ok::<(), tensor_core::Error>(())
//! ```
//!
//! # Data path
//!
//! ```text
//! 1. Source         where the bytes are: memory, a file, a mapping, the caller's store   source
//! 2. Extent         offset and length that cannot overflow, checked against the source   extent
//! 3. Cursor         little-endian fields of a fixed part, each named in its error        cursor
//! 4. Shape, DType   what the bytes mean; products are checked                            shape, dtype
//! 5. AlignedBuf     owned bytes on 64-byte boundaries, filled once                       buf
//! 6. TensorBuf      typed slices without a copy where alignment allows                   tensor
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `mmap` | [`Source::map`], an `unsafe` constructor over a memory-mapped file |
//! | `digest` | the module `digest`: sha256 and crc32c over bytes, streams and many ranges at once |
//! | `output` | the module `output`: files that appear whole or not at all, locks |
//! | `half` | `half::f16` and `half::bf16` as elements |
//! | `ndarray` | tensors as arrays of the crate `ndarray`, and back |
//! | `safetensors` | element types and tensors of the crate `safetensors`, and back |
//! | `serde` | `serde::Serialize` for element types, shapes and reports |

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

mod budget;
mod buf;
pub mod compare;
mod cursor;
#[cfg(feature = "digest")]
pub mod digest;
pub mod draw;
mod dtype;
mod error;
mod extent;
pub mod float16;
pub mod float8;
mod limits;
#[cfg(feature = "ndarray")]
mod ndarray;
mod options;
#[cfg(feature = "output")]
pub mod output;
pub mod parallel;
pub mod report;
#[cfg(feature = "safetensors")]
mod safetensors;
mod shape;
mod source;
pub mod symbolic;
mod tensor;
pub mod text;

pub use budget::Budget;
pub use buf::AlignedBuf;
pub use cursor::{Cursor, CursorMut};
pub use dtype::{DType, UnknownDType};
pub use error::{Chain, Error, ErrorKind, Result};
pub use extent::Extent;
pub use float8::{F8E4M3, F8E5M2};
pub use limits::{Limit, Limits};
pub use options::{Profile, Verified, Verify};
pub use report::{At, Finding, Report, Severity};
pub use shape::Shape;
pub use source::{ReadAt, Source, SourceReader};
pub use tensor::{Element, TensorBuf, TensorInfo, TensorView};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
