//! One interface over the format crates of this workspace: what a file is, what is in it, and
//! whether it is sound.
//!
//! Each format is a feature, and each format crate works alone; this crate adds only what spans
//! several of them.
//!
//! # Data path
//!
//! ```text
//! 1. Source             where the bytes are                 tensor_core::Source
//! 2. detect             which format they are, by content   detect.rs, archive.rs
//! 3. AnyReader::open    the reader of that format           reader.rs
//! 4. summary, validate  the same description of any format  summary.rs, formats/
//! 5. AnyTensor::read    first touch of the data             tensor.rs
//! 6. tensor_set         tensors under names that are       set.rs
//!                       unique: converted, compared,       convert/, diff.rs,
//!                       hashed                             hash.rs
//! ```
//!
//! Files of named tensors are read in every build: safetensors, GGUF, and those of `NumPy`
//! ([`weights`]).
//!
//! # Examples
//!
//! ```
//! use modelcrate::{AnyReader, SummaryOptions, ztensor::Writer};
//! use tensor_core::TensorBuf;
//!
//! let mut writer = Writer::new(Vec::new());
//! writer.add("bias", &TensorBuf::from_slice([3], &[0.5_f32, 1.0, 1.5])?)?;
//! let reader = AnyReader::from_bytes(writer.finish()?)?;
//!
//! let summary = reader.summary(SummaryOptions::default());
//! assert_eq!(summary.tensors[0].name, "bias");
//! assert!(reader.validate().is_valid());
//! # Ok::<(), modelcrate::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `carton` | yes | Carton (`.carton`), spec version 1 |
//! | `http` | no | fetching the files that a carton links to, the module `http` |
//! | `circle` | yes | Circle and TFLite models (`.circle`, `.tflite`) |
//! | `nnpackage` | yes | nnpackages 1.0 to 1.3 |
//! | `ptl` | yes | PyTorch Live models (`.ptl`) and specs |
//! | `ptl-image` | no | pictures as parameters of specs |
//! | `page` | no | one page about a file, or about two, as HTML or Markdown, the module `page` |
//! | `rten` | yes | RTen models (`.rten`), versions 1 and 2 |
//! | `rten-onnx` | no | export of RTen models to ONNX |
//! | `parquet` | no | catalogues as Parquet files |
//! | `remote` | no | files at addresses of buckets, web servers and model hubs, the module `remote` |
//! | `ztensor` | yes | zTensor, 0.1 to 2 (`.zt`) |
//! | `svg` | no | pictures of graphs, the module `graph::svg` |
//! | `wav` | no | sound from WAV files, for parameters of specs |
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
#![cfg_attr(
    not(all(
        feature = "carton",
        feature = "circle",
        feature = "nnpackage",
        feature = "ptl",
        feature = "rten",
        feature = "ztensor"
    )),
    allow(
        dead_code,
        unused_macros,
        unused_imports,
        unreachable_code,
        unused_variables,
        clippy::needless_pass_by_value,
        reason = "few formats use a part of what all share"
    )
)]

mod address;
#[cfg(feature = "archive")]
mod archive;
pub mod catalog;
mod contents;
mod convert;
mod coverage;
mod detect;
mod diff;
mod each;
mod error;
mod file;
mod format;
mod formats;
pub mod graph;
mod hash;
#[cfg(any(feature = "http", feature = "remote"))]
mod hosts;
#[cfg(feature = "http")]
pub mod http;
mod names;
mod operators;
mod options;
#[cfg(feature = "page")]
pub mod page;
mod quantization;
mod reader;
#[cfg(feature = "remote")]
pub mod remote;
pub mod rules;
mod set;
mod stats;
mod stream;
mod summary;
mod tensor;
#[cfg(feature = "wav")]
pub mod wav;
pub mod weights;

#[cfg(feature = "carton")]
pub use carton_format;
#[cfg(feature = "circle")]
pub use circle_format;
#[cfg(feature = "archive")]
pub use model_archive;
#[cfg(feature = "nnpackage")]
pub use nnpackage;
#[cfg(feature = "ptl")]
pub use ptl_spec;
#[cfg(feature = "rten")]
pub use rten_format;
pub use tensor_core;
#[cfg(feature = "ztensor")]
pub use ztensor;

pub use address::{find_address, is_address, without_secrets};
pub use convert::{
    Becoming, Conversion, ConvertOptions, ConvertedFile, Fitted, Note, Product, Refusal, Remedy,
    Request, Rewriting, Target, UnknownProduct, UnknownTarget, common_key,
};
pub use coverage::Coverage;
pub use detect::{detect, is_model_folder};
pub use diff::{Change, Diff, DiffOptions, Differing, TensorDiff};
pub use error::{Error, Result, kind_of};
pub use file::AnyFile;
pub use format::Format;
#[cfg(feature = "ptl")]
pub use formats::ptl_spec::SpecFile;
pub use hash::{ContentDigest, ContentHash, HashList, InvalidDigest, TensorHash, hash_line};
pub use names::{InvalidRule, NameMap, Rule, natural_order};
pub use operators::OperatorSummary;
pub use options::ReadOptions;
pub use quantization::QuantizationSummary;
pub use reader::AnyReader;
pub use set::{NamedTensor, TensorSet};
pub use stats::{Number, Stats};
pub use stream::Content;
pub use summary::{
    ComponentSummary, FileSummary, GraphSummary, MethodSummary, Port, Summary, SummaryOptions,
    TensorSummary, TypedName, Verdict,
};
pub use tensor::AnyTensor;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
