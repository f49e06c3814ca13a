//! Circle and TFLite models: read, checked, edited and written.
//!
//! Both are FlatBuffers of nearly one schema. Both read into one [`model::Model`] of plain values,
//! and constants stay where they are until they are asked for.
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
//! # Data path
//!
//! ```text
//! 1. Source          where the bytes are                                    tensor_core::Source
//! 2. Reader::open    tables verified, then owned; constants stay slices     read.rs, holes.rs,
//!                                                                           model/
//! 3. Tensor          range and length checked; first touch of elements      tensor.rs
//! 4. Reader::validate every rule, with what onert does about it             validate/, onert.rs
//! 5. Writer          tables, then bytes from where they are                 write.rs,
//!    Editor          the same, in the place of the file                     model/build.rs, edit.rs
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

pub use edit::Editor;
pub use error::{ConstantFault, Error, Result, WriteFault};
pub use model::Schema;
pub use onert::{Diagnoses, Diagnosis, Reaction, Stage};
pub use read::{ReadOptions, Reader, sniff};
pub use tensor::Tensor;
pub use validate::is_builtin_custom;
pub use write::{BufferPlacement, WriteOptions, Writer};

#[cfg(feature = "archive")]
pub use model_archive;
pub use tensor_core;
