//! What is in a Circle or a TFLite model, as plain values.
//!
//! Both schemas read into one [`Model`]; what only one of them has is empty for the other.
//! Positions are kept as they are stored, whether there is something at them or not: validation
//! looks at that.

mod build;
mod builder;
mod change;
mod encode;
mod graph;
mod numbers;
mod operator_code;
pub mod options;
mod parse;
mod quantization;
mod stored;
mod tensor_type;
mod training;
mod unknown;
#[cfg(test)]
mod wire;

use std::{fmt, ops::Range};

use bytes::Bytes;
use flatbuffers::{InvalidFlatbuffer, VerifierOptions};
use tensor_core::Limits;

pub(crate) use build::{Placed, tables};
pub use builder::{ModelBuilder, SubgraphBuilder};
pub use graph::{Operator, Subgraph, Tensor, VariantSubtype};
pub use numbers::{
    ActivationFunctionType, BuiltinOperator, CombinerType, CompressionType, CustomOptionsFormat,
    DataFormat, DimensionType, FullyConnectedOptionsWeightsFormat, LSHProjectionType,
    LSTMKernelType, LossFn, LossReductionType, MirrorPadMode, Optimizer, Padding,
    ReduceWindowFunction, RngAlgorithm, RoPEMode, StablehloComparisonDirection,
    StablehloComparisonType, StablehloPrecisionConfig,
};
pub use operator_code::OperatorCode;
pub use options::{BuiltinOptions, BuiltinOptions2};
pub use quantization::{Quantization, QuantizationDetails, SparseIndices, SparseLevel, Sparsity};
pub use tensor_type::TensorType;
pub use training::{LossOptions, OptimizerOptions, TrainingInfo};
pub use unknown::UnknownTable;

use crate::{Error, Result, generated};
use parse::Scan;

/// Which of the two schemas a model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Schema {
    /// Circle, the usual one of an nnpackage.
    Circle,
    /// TFLite, which Circle was made from.
    Tflite,
}

impl Schema {
    /// Returns the name, as a manifest has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Circle => "circle",
            Self::Tflite => "tflite",
        }
    }

    /// Returns the identifier at byte 4 of a file.
    #[must_use]
    pub const fn identifier(self) -> [u8; 4] {
        match self {
            Self::Circle => *b"CIR0",
            Self::Tflite => *b"TFL3",
        }
    }

    /// Returns the version that tools write into a model.
    #[must_use]
    pub const fn version(self) -> u32 {
        match self {
            Self::Circle => 0,
            Self::Tflite => 3,
        }
    }

    /// Returns the schema of a file with this identifier; `None` where it is of neither.
    #[must_use]
    pub fn from_identifier(identifier: [u8; 4]) -> Option<Self> {
        [Self::Circle, Self::Tflite].into_iter().find(|schema| schema.identifier() == identifier)
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A Circle or TFLite model, as plain values.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Which schema it has.
    pub schema: Schema,
    /// The version: 0 in Circle, 3 in TFLite.
    pub version: u32,
    /// What operators are of, which refer to these by position.
    pub operator_codes: Vec<OperatorCode>,
    /// The graphs; the first is where the model starts.
    pub subgraphs: Vec<Subgraph>,
    /// What it says about itself.
    pub description: Option<String>,
    /// The buffers, which tensors and metadata refer to by position. The first is empty.
    pub buffers: Vec<Buffer>,
    /// Positions of buffers with metadata; out of use.
    pub metadata_buffer: Vec<i32>,
    /// Named buffers.
    pub metadata: Vec<Metadata>,
    /// Names for the inputs and outputs of graphs.
    pub signatures: Vec<Signature>,
    /// The files of external buffers; of TFLite alone.
    pub external_groups: Vec<Option<String>>,
    /// Buffers in other files; of TFLite alone.
    pub external_buffers: Vec<ExternalBuffer>,
}

/// Bytes of constants or metadata: in the tables, or elsewhere in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// The bytes, where they are in the tables and were read.
    pub data: Bytes,
    /// Where they start otherwise, in bytes from the start of the file; 0 and 1 for nowhere.
    pub offset: u64,
    /// Their length there, in bytes.
    pub size: u64,
    /// Tells whether offset and size lead into the tables: of a file that is read by position,
    /// 64 KiB and more of a constant are read when they are asked for.
    pub is_unread: bool,
}

impl Buffer {
    /// Tells whether the bytes stand outside of the tables.
    #[must_use]
    pub const fn is_external(&self) -> bool {
        self.offset > 1 && !self.is_unread
    }

    /// Tells whether there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many bytes there are said to be.
    #[must_use]
    pub const fn len(&self) -> u64 {
        if self.is_in_file() { self.size } else { self.data.len() as u64 }
    }

    /// Tells whether the bytes are to be read from the file.
    pub(crate) const fn is_in_file(&self) -> bool {
        self.is_external() || self.is_unread
    }
}

/// A named buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The name.
    pub name: Option<String>,
    /// The position of the buffer.
    pub buffer: u32,
}

/// Names for the inputs and outputs of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// The inputs.
    pub inputs: Vec<SignatureTensor>,
    /// The outputs.
    pub outputs: Vec<SignatureTensor>,
    /// The name of the signature.
    pub key: Option<String>,
    /// The tag of what it was converted from; out of use.
    pub tag: Option<String>,
    /// The position of the graph.
    pub subgraph_index: u32,
}

/// One name of a signature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignatureTensor {
    /// The name.
    pub name: Option<String>,
    /// The position of the tensor in the graph of the signature.
    pub tensor_index: u32,
}

/// A buffer in another file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalBuffer {
    /// What tensors refer to it by.
    pub id: u32,
    /// The position of its file among the groups.
    pub group: u32,
    /// Where it starts there, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// How its elements are packed.
    pub packing: Option<String>,
}

impl Model {
    /// Reads a model. Buffers are slices of `model`, without a copy, and not looked at.
    ///
    /// # Errors
    ///
    /// [`Error::NotAModel`] without the identifier of a schema; as for
    /// [`parse_as`](Self::parse_as).
    pub fn parse(model: impl Into<Bytes>, limits: &Limits) -> Result<Self> {
        let model = model.into();
        let schema = identify(&model)?;
        Self::parse_as(model, schema, limits)
    }

    /// Reads a model by a schema, whatever its identifier says, as onert does.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] and its like where it is no FlatBuffer of the schema.
    pub fn parse_as(model: impl Into<Bytes>, schema: Schema, limits: &Limits) -> Result<Self> {
        Ok(Parsed::of(&model.into(), schema, limits)?.model)
    }

    /// Returns the code of an operator; `None` where it refers to none.
    #[must_use]
    pub fn operator_code(&self, operator: &Operator) -> Option<&OperatorCode> {
        self.operator_codes.get(usize::try_from(operator.opcode_index).ok()?)
    }

    /// Returns the models that operators `RUN_MODEL` run, as the model names them: from the folder
    /// that it is in.
    pub fn run_models(&self) -> impl Iterator<Item = &str> {
        let operators = self.subgraphs.iter().flat_map(|graph| &graph.operators);
        operators.filter_map(|operator| match &operator.options {
            Some(BuiltinOptions::RunModel(options)) => options.location.as_deref(),
            _ => None,
        })
    }

    /// Returns every file that the model names: other models, and those of external buffers.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.run_models().chain(self.external_groups.iter().flatten().map(String::as_str))
    }

    /// Returns a buffer by its position; `None` where there are not as many.
    #[must_use]
    pub fn buffer(&self, index: u32) -> Option<&Buffer> {
        self.buffers.get(usize::try_from(index).ok()?)
    }
}

/// A model, and how many bytes its tables take.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) model: Model,
    /// `None` where there are tables that cannot be looked into.
    pub(crate) len: Option<u64>,
    /// Where the first table is that has unknown fields.
    pub(crate) unknown_field: Option<u64>,
    /// Whether some of it was taken from where nothing was read, so that it means nothing.
    pub(crate) is_in_hole: bool,
}

impl Parsed {
    pub(crate) fn of(bytes: &Bytes, schema: Schema, limits: &Limits) -> Result<Self> {
        Self::with_holes(bytes, &[], schema, limits)
    }

    /// Reads a model of which the bytes of some buffers are not there.
    pub(crate) fn with_holes(
        bytes: &Bytes,
        holes: &[Range<usize>],
        schema: Schema,
        limits: &Limits,
    ) -> Result<Self> {
        let options = verifier_options(bytes.len(), limits);
        let scan = Scan::new(bytes, holes);
        let malformed = |error| malformed(&error, &options);
        let model = match schema {
            Schema::Circle => {
                let root = generated::circle::root_as_model_with_opts(&options, bytes);
                stored::circle::model(&root.map_err(malformed)?, &scan)?
            }
            Schema::Tflite => {
                let root = generated::tflite::root_as_model_with_opts(&options, bytes);
                stored::tflite::model(&root.map_err(malformed)?, &scan)?
            }
        };
        let (len, unknown_field) = (scan.len(), scan.unknown_field());
        Ok(Self { model, len, unknown_field, is_in_hole: scan.is_in_hole() })
    }
}

/// Returns the schema that the identifier of a model names.
pub(crate) fn identify(model: &[u8]) -> Result<Schema> {
    let found = model.get(4..).and_then(|rest| rest.split_first_chunk::<4>());
    let Some((&found, _)) = found else {
        let (what, needed, remaining) = ("model", 8, model.len() as u64);
        return Err(tensor_core::Error::OutOfBounds { what, offset: 0, needed, remaining }.into());
    };
    Schema::from_identifier(found).ok_or(Error::NotAModel { found })
}

/// Returns what bounds the verifier, for a model of this many bytes.
///
/// A table takes at least 4 bytes where it is and as many where it is referred to. Beyond what is
/// there for each of them, tables are shared, of which typed values would be copies.
fn verifier_options(len: usize, limits: &Limits) -> VerifierOptions {
    let depth = usize::try_from(limits.depth).unwrap_or(MAX_DEPTH);
    VerifierOptions {
        max_depth: depth.min(MAX_DEPTH),
        max_tables: (len / 8).min(MAX_TABLES),
        max_apparent_size: len.saturating_mul(16).max(1 << 20),
        ignore_missing_null_terminator: false,
    }
}

/// What the verifier of C++ allows, in tables.
const MAX_DEPTH: usize = 64;

/// Ten times what the verifier of C++ allows.
const MAX_TABLES: usize = 10_000_000;

fn malformed(error: &InvalidFlatbuffer, options: &VerifierOptions) -> Error {
    match error {
        InvalidFlatbuffer::DepthLimitReached => Error::TooDeep { limit: options.max_depth },
        InvalidFlatbuffer::TooManyTables => Error::TooManyTables { limit: options.max_tables },
        _ => Error::Malformed { reason: reason(error) },
    }
}

/// Says what the verifier found, as part of a sentence.
fn reason(error: &InvalidFlatbuffer) -> String {
    let text = error.to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut reason = words.join(" ").trim_end_matches('.').to_owned();
    if let Some(first) = reason.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    reason
}

#[cfg(test)]
mod tests {
    use flatbuffers::FlatBufferBuilder;

    use super::*;
    use crate::generated::circle as stored;

    /// Builds a model whose graph holds one tensor many times.
    fn shared(name_len: usize, times: usize) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let name = Some(builder.create_string(&"n".repeat(name_len)));
        let tensor = stored::TensorArgs { name, ..Default::default() };
        let tensor = stored::Tensor::create(&mut builder, &tensor);
        let tensors = Some(builder.create_vector(&vec![tensor; times]));
        let graph = stored::SubGraphArgs { tensors, ..Default::default() };
        let graph = stored::SubGraph::create(&mut builder, &graph);
        let subgraphs = Some(builder.create_vector(&[graph]));
        let model = stored::ModelArgs { subgraphs, ..Default::default() };
        let model = stored::Model::create(&mut builder, &model);
        builder.finish(model, Some("CIR0"));
        builder.finished_data().to_vec()
    }

    #[track_caller]
    fn rejects(bytes: Vec<u8>, message: &str) {
        let error = Model::parse(bytes, &Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn tables_shared_too_often() {
        let bytes = shared(1, 1000);
        let limit = bytes.len() / 8;
        let message = format!(
            "model has more than {limit} tables, expected one in 8 bytes, at most 10000000"
        );
        rejects(bytes, &message);
    }

    #[test]
    fn texts_shared_too_often() {
        rejects(shared(1 << 20, 17), "model is malformed: apparent size too large");
        Model::parse(shared(1 << 20, 8), &Limits::default()).unwrap();
    }

    /// Builds a model whose only operator has a number for its options, but no options.
    fn without_options(tag: stored::BuiltinOptions) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        // Else the number of NONE would be left out.
        builder.force_defaults(true);
        let args = stored::OperatorArgs { builtin_options_type: tag, ..Default::default() };
        let operator = stored::Operator::create(&mut builder, &args);
        let operators = Some(builder.create_vector(&[operator]));
        let args = stored::SubGraphArgs { operators, ..Default::default() };
        let graph = stored::SubGraph::create(&mut builder, &args);
        let subgraphs = Some(builder.create_vector(&[graph]));
        let args = stored::ModelArgs { subgraphs, ..Default::default() };
        let model = stored::Model::create(&mut builder, &args);
        builder.finish(model, Some("CIR0"));
        builder.finished_data().to_vec()
    }

    #[test]
    fn unions_without_a_value() {
        for tag in [stored::BuiltinOptions::NONE, stored::BuiltinOptions::AddOptions] {
            let model = Model::parse(without_options(tag), &Limits::default()).unwrap();
            assert_eq!(model.subgraphs[0].operators, [Operator::default()]);
        }
    }

    /// What a tensor and an operator take is what bounds the memory for a file.
    #[test]
    fn values_are_small() {
        assert!(size_of::<Tensor>() <= 144, "{}", size_of::<Tensor>());
        assert!(size_of::<Operator>() <= 272, "{}", size_of::<Operator>());
        assert!(size_of::<Buffer>() <= 56 && size_of::<OperatorCode>() <= 40);
    }

    #[test]
    fn text_that_is_no_utf8() {
        let mut bytes = shared(4, 1);
        let at = bytes.windows(4).position(|part| part == b"nnnn").unwrap();
        bytes[at] = 0xff;
        let error = Model::parse(bytes, &Limits::default()).unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
    }
}
