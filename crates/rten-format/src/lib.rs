//! RTen model files (`.rten`), versions 1 and 2: the graph, its operators with their attributes, and
//! its weights, as plain Rust values, read lazily, validated, edited and written.
//!
//! A file of version 1 is one FlatBuffer, the model data. In version 2 it follows a header of 32
//! bytes, and large constants stand apart from it in the tensor data.
//!
//! # Examples
//!
//! ```
//! use rten_format::{Constant, GraphBuilder, Model, Reader, Writer, tensor_core::TensorBuf};
//!
//! let mut graph = GraphBuilder::new();
//! let bias = TensorBuf::from_slice([3], &[0.5_f32, 1.0, 1.5])?;
//! let bias = graph.constant("bias", Constant::from_tensor(&bias)?)?;
//! graph.output(bias)?;
//! let model = Model { graph: graph.finish(), metadata: None };
//! let file = Writer::new(Vec::new(), &model)?.finish()?;
//!
//! let reader = Reader::from_bytes(file)?;
//! let bias = reader.tensor("bias").expect("just written").read()?;
//! assert_eq!(bias.to_vec::<f32>()?, [0.5, 1.0, 1.5]);
//! assert!(reader.validate().is_valid());
//! # Ok::<(), rten_format::Error>(())
//! ```
//!
//! A model is plain values, nodes that refer to each other by number:
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
//! # What is proved when
//!
//! | by | what |
//! |---|---|
//! | opening | magic, where the parts are, that every table, text and vector of the model data is in place, and that none is shared too often or nested too deeply |
//! | reading a constant | its element type, that its shape fits its bytes, that they lie in the file |
//! | [`Reader::model`] | nothing more: it makes values of what is proved |
//! | [`Reader::lint`] | all constants like that, without reading the tensor data; ids, names, producers, order and captures of every graph; inputs, outputs and attributes of every operator; overlaps, padding and gaps of the file |
//! | [`Reader::validate`] | all of these, and that every byte can be read |
//! | [`Model::lint`] | what [`Reader::lint`] says of the graphs |
//!
//! # Data path
//!
//! ```text
//! 1. Source            where the bytes are                           tensor_core::Source
//! 2. Reader::open      header and model data, never the tensor data  read/
//! 3. Header::parse     where the parts of version 2 are              read/header.rs
//! 4. ModelData::new    proves model data sound, finds all constants  read/index.rs, flat_tables
//! 5. Reader::tensor    a handle on a constant of any graph           read/tensor.rs
//! 6. Tensor::bytes     bounds, length; first touch of tensor data    read/tensor.rs
//! 7. Reader::model     typed values, when they are first asked for   read/model_data.rs, model/graph.rs
//! 8. Attributes        one struct for each attribute table           model/attributes.rs, field.rs
//! 9. OperatorType      what the format says about each operator      model/operators.rs
//! 10. Topology         graphs, paths, producers, consumers, order    model/topology.rs
//! 11. Kinds            floats, integers or bytes, over all graphs    types/
//! 12. lint, validate   every rule, over graphs and layout            validate.rs
//! 13. dump, dot, …     what is in a model, for people                show/
//! ```
//!
//! And back:
//!
//! ```text
//! 1. GraphBuilder      nodes and links that RTen accepts             model/graph_builder.rs
//! 2. Layout            where the elements of each constant go        write/layout.rs
//! 3. Model::to_bytes   measures, then builds model data              model/, model/builder.rs
//! 4. Writer            header, model data, then the elements         write/
//! 5. Rewrite           a model from one file to another              write/rewrite.rs
//! 6. Editor            new model data in a file that is there        edit/
//! 7. onnx::Export      the same model for ONNX                       onnx/
//! ```
//!
//! [`Model::totals`], [`Model::requirements`] and [`Model::dump`] say what is in a model.
//!
//! The FlatBuffers bindings (`generated/`) are made from `schemas/rten.fbs` of the workspace and
//! stay private.
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
mod quantization;
mod read;
mod show;
mod tensor;
#[cfg_attr(
    not(feature = "onnx"),
    expect(dead_code, reason = "a check needs less of it than an export")
)]
mod types;
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
pub use quantization::Quantization;
pub use read::{
    ReadOptions, Reader,
    header::{Header, Version},
    sniff::sniff,
};
pub use show::{
    requires::{Requirement, Requirements},
    totals::Totals,
};
pub use tensor::Tensor;
pub use write::{WriteOptions, Writer, layout::Pending, rewrite::Rewrite};

#[cfg(all(doctest, feature = "onnx"))]
#[doc = include_str!("../README.md")]
struct ReadMe;
