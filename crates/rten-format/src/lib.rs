//! RTen model files (`.rten`), versions 1 and 2: the graph, its operators with their attributes, and
//! its weights, as plain Rust values, read lazily, validated, edited and written.
//!
//! A file of version 1 is one FlatBuffer, the model data. In version 2 it follows a header of 32
//! bytes, and large constants stand apart from it in the tensor data.
//!
//! # Data path
//!
//! ```text
//! 1. Source            where the bytes are                           tensor_core::Source
//! 2. Reader::open      header and model data, never the tensor data  read.rs
//! 3. Header::parse     where the parts of version 2 are              header.rs
//! 4. Index::of         proves model data sound, finds all constants  index.rs, flat.rs
//! 5. Reader::tensor    a handle on a constant of any graph           tensor.rs
//! 6. Tensor::bytes     bounds, length; first touch of tensor data    tensor.rs
//! 7. Reader::model     typed values, when they are first asked for   model.rs, graph.rs
//! 8. Attributes        one struct for each attribute table           attributes.rs, field.rs
//! 9. OperatorType      what the format says about each operator      operators.rs
//! 10. UnknownTable     what a later release added, kept as it is     unknown.rs
//! 11. Topology         graphs, paths, producers, consumers, order    topology.rs
//! 12. validate         every rule, over graphs and layout            validate.rs
//! ```
//!
//! And back:
//!
//! ```text
//! 1. GraphBuilder      nodes and links that RTen accepts             graph_builder.rs
//! 2. Layout            where the elements of each constant go        layout.rs
//! 3. Model::to_bytes   measures, then builds model data              model.rs, builder.rs
//! 4. Writer            header, model data, then the elements         write.rs
//! 5. Rewrite           a model from one file to another              rewrite.rs, extract.rs
//! 6. Editor            new model data in a file that is there        edit.rs, change.rs
//! ```
//!
//! [`Model::totals`], [`Model::requirements`], [`Model::dot`], [`Model::mermaid`] and
//! [`Model::dump`] say what is in a model.
//!
//! The FlatBuffers bindings (`generated/`) are made from `schemas/rten.fbs` of the workspace and
//! stay private.
//!
//! # Examples
//!
//! ```
//! use rten_format::{
//!     Attributes, DataType, Dim, Graph, Model, Node, Operator, OperatorType, Reader, Value,
//!     attributes::SoftmaxAttrs,
//!     tensor_core::Limits,
//! };
//!
//! let shape = Some(vec![Dim::Symbol("batch".to_owned()), Dim::Fixed(10)]);
//! let value = Value { shape, dtype: Some(DataType::Float) };
//! let softmax = Operator {
//!     operator_type: OperatorType::Softmax,
//!     attributes: Some(SoftmaxAttrs { axis: 1 }.into()),
//!     inputs: vec![Some(0)],
//!     outputs: vec![Some(1)],
//! };
//! let graph = Graph {
//!     nodes: vec![
//!         Node::named("logits", value.clone()),
//!         Node::named("probabilities", value),
//!         Node::named("softmax", softmax),
//!     ],
//!     inputs: vec![0],
//!     outputs: vec![1],
//!     captures: vec![],
//! };
//! let model = Model { graph, metadata: None };
//!
//! let bytes = model.to_bytes()?;
//! assert_eq!(Model::parse(bytes.clone(), &Limits::default())?, model);
//!
//! // A file of version 1 is model data and nothing else.
//! let reader = Reader::from_bytes(bytes)?;
//! assert!(reader.validate().is_empty());
//! assert_eq!(reader.required_release().unwrap().to_string(), "0.2.0");
//! # Ok::<(), rten_format::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `mmap` | memory-mapped sources |
//! | `onnx` | the module `onnx`: export to ONNX |
//! | `serde` | `serde::Serialize` for models and reports |

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
mod generated;
mod model;
#[cfg(feature = "onnx")]
pub mod onnx;
mod read;
mod show;
mod validate;
mod write;

pub use flat_tables::UnknownTable;
pub use tensor_core;

pub use edit::Editor;
pub use error::{Error, Fault, GraphFault, Result};
pub use model::{
    Metadata, Model,
    attributes::{self, Attributes, Scalar},
    attributes_type::AttributesType,
    enums::{
        AutoPad, ConstantDataType, CoordTransformMode, DataType, DepthToSpaceMode,
        GeluApproximation, NMSBoxOrder, NearestMode, PadMode, RNNDirection, ResizeMode,
        ScatterReduction,
    },
    field::AttributeValue,
    graph::{Constant, ConstantData, Dim, Graph, Node, NodeKind, Operator, Value},
    graph_builder::GraphBuilder,
    operators::{AttributesUse, OperatorInfo, OperatorType},
    release::{Release, UnknownRelease},
    topology,
};
pub use read::{
    ReadOptions, Reader,
    header::{Header, Version},
    sniff::sniff,
    tensor::Tensor,
};
pub use show::{
    requires::{Requirement, Requirements},
    totals::Totals,
};
pub use write::{WriteOptions, Writer, layout::Wanted, rewrite::Rewrite};
