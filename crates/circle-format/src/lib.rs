//! Circle and TFLite models: read, checked, edited and written.
//!
//! Both are FlatBuffers of nearly one schema, and both read into one [`model::Model`] of plain values.
//! Constants stay where they are until they are asked for.
//!
//! # Examples
//!
//! ```
//! use circle_format::{
//!     Reader, Writer,
//!     model::{ModelBuilder, Schema, Tensor, TensorType},
//! };
//!
//! let mut model = ModelBuilder::new(Schema::Tflite);
//! let mut graph = model.subgraph("main");
//! graph.constant(Tensor::new("half", TensorType::Float32, [1]), vec![0, 0, 0, 63]);
//! graph.finish();
//! let file = Writer::new(Vec::new(), &model.finish()).finish()?;
//!
//! let reader = Reader::from_bytes(file)?;
//! for tensor in reader.tensors() {
//!     println!("{:?}: {:?}", tensor.name(), tensor.info()?);
//! }
//! let half = reader.tensor("half").ok_or("missing")?.read()?;
//! assert_eq!(half.view().to_vec::<f32>()?, [0.5]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is proved when
//!
//! | by | of the model |
//! |---|---|
//! | [`Reader::open`] | every table, list and text that can be reached is in the file, aligned, no deeper and no more than [`Limits`](tensor_core::Limits) allow |
//! | [`Tensor::info`] | the element type is known, no dimension is negative |
//! | [`Tensor::extent`], [`Tensor::bytes`] | the bytes are in the file, and as many as the shape needs |
//! | [`Reader::lint`] | what graphs, operators, signatures and metadata refer to is there; types, versions, quantization, sparsity; what onert 0.1.0 makes of it |
//! | [`Reader::validate`] | the same, and that every byte of every constant can be read |
//!
//! # Data path
//!
//! ```text
//! 1. Source            where the bytes are                                tensor_core::Source
//! 2. Reader::open      tables proved, then owned; large constants of a    read/, tables/
//!                      file stay where they are
//! 3. model::Model      plain values                                       model/
//! 4. Tensor            range and length checked; first touch of elements  tensor.rs
//! 5. Reader::validate  every rule, with what onert does about it          validate/, onert.rs
//! 6. Writer            tables, then bytes from where they are             write/, tables/
//!    Editor            the same, in the place of the file                 edit/
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `archive` | archives of associated files behind TFLite models are kept when models are written |
//! | `mmap` | memory-mapped sources |
//! | `serde` | [`Reader::dump`], and `serde::Serialize` for reports |

#![deny(unsafe_code)]
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

mod edit;
mod error;
pub mod flex;
mod generated;
pub mod model;
mod onert;
mod read;
#[cfg(feature = "serde")]
mod show;
mod tables;
mod tensor;
mod validate;
mod write;

pub use edit::{Editor, Mended};
pub use error::{ConstantFault, Error, Result, WriteFault};
pub use model::Schema;
pub use onert::{Diagnoses, Diagnosis, Need, Reaction, Stage};
pub use read::{ReadOptions, Reader, sniff};
pub use tensor::Tensor;
pub use validate::is_builtin_custom;
pub use write::{BufferPlacement, WriteOptions, Writer};

#[cfg(feature = "archive")]
pub use model_archive;
pub use tensor_core;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
