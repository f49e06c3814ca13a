//! A model as JSON: every table, and of buffers where they are.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    Reader, Tensor as Constant,
    flex::Value,
    model::{self, Model, OperatorCode, Signature, Subgraph, TensorType, VariantSubtype},
};

use super::{
    quantization::{Quantization, Sparsity},
    training::Training,
    values::{Flex, Options, tensor_type},
};

#[derive(Serialize)]
pub(super) struct Document<'a> {
    #[serde(rename = "type")]
    schema: &'static str,
    /// What the identifier says; none where it says nothing that is known.
    identifier: Option<&'static str>,
    version: u32,
    description: Option<&'a str>,
    bytes: u64,
    /// None where there are tables that cannot be looked into.
    table_bytes: Option<u64>,
    operator_codes: Vec<Code<'a>>,
    subgraphs: Vec<Graph<'a>>,
    signatures: Vec<Names<'a>>,
    metadata: Vec<Metadata<'a>>,
    /// What metadata say about training.
    #[serde(skip_serializing_if = "Option::is_none")]
    training: Option<Training>,
    #[serde(skip_serializing_if = "<[i32]>::is_empty")]
    metadata_buffer: &'a [i32],
    buffers: Vec<Buffer>,
    #[serde(skip_serializing_if = "<[Option<String>]>::is_empty")]
    external_groups: &'a [Option<String>],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    external_buffers: Vec<ExternalBuffer<'a>>,
}

#[derive(Serialize)]
struct Code<'a> {
    operator: String,
    custom_code: Option<&'a str>,
    version: i32,
    builtin_code: i32,
    deprecated_builtin_code: i8,
    /// How many operators refer to it.
    operators: u64,
}

#[derive(Serialize)]
struct Graph<'a> {
    name: Option<&'a str>,
    inputs: &'a [i32],
    outputs: &'a [i32],
    data_format: String,
    debug_metadata_index: i32,
    tensors: Vec<Tensor<'a>>,
    operators: Vec<Operator<'a>>,
}

#[derive(Serialize)]
struct Tensor<'a> {
    name: Option<&'a str>,
    #[serde(rename = "type", serialize_with = "tensor_type")]
    tensor_type: TensorType,
    shape: &'a [i32],
    #[serde(skip_serializing_if = "Option::is_none")]
    shape_signature: Option<&'a [i32]>,
    has_rank: bool,
    is_variable: bool,
    buffer: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_buffer: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantization: Option<Quantization<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sparsity: Option<Sparsity<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    variant_tensors: Vec<Variant<'a>>,
    /// Of constants.
    #[serde(skip_serializing_if = "Option::is_none")]
    constant: Option<Stored>,
}

#[derive(Serialize)]
struct Variant<'a> {
    #[serde(rename = "type", serialize_with = "tensor_type")]
    tensor_type: TensorType,
    shape: &'a [i32],
    has_rank: bool,
}

/// Where the elements of a constant are.
#[derive(Serialize)]
#[serde(untagged)]
enum Stored {
    Here { offset: u64, bytes: u64 },
    Unreadable { fault: String },
}

#[derive(Serialize)]
struct Operator<'a> {
    opcode_index: u32,
    /// None where there is no such code.
    operator: Option<String>,
    inputs: &'a [i32],
    outputs: &'a [i32],
    #[serde(skip_serializing_if = "<[i32]>::is_empty")]
    intermediates: &'a [i32],
    #[serde(skip_serializing_if = "<[bool]>::is_empty")]
    mutating_variable_inputs: &'a [bool],
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Options<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options_2: Option<Options<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_options: Option<Custom>,
    #[serde(skip_serializing_if = "Option::is_none")]
    large_custom_options: Option<Range>,
    debug_metadata_index: i32,
}

#[derive(Serialize)]
struct Custom {
    format: String,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Flex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

#[derive(Serialize)]
struct Range {
    offset: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Names<'a> {
    key: Option<&'a str>,
    subgraph_index: u32,
    inputs: Vec<Name<'a>>,
    outputs: Vec<Name<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<&'a str>,
}

#[derive(Serialize)]
struct Name<'a> {
    name: Option<&'a str>,
    tensor_index: u32,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: Option<&'a str>,
    buffer: u32,
    /// None where there is no such buffer.
    bytes: Option<u64>,
}

#[derive(Serialize)]
struct Buffer {
    bytes: u64,
    /// Of one outside of the tables, from the start of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
}

#[derive(Serialize)]
struct ExternalBuffer<'a> {
    id: u32,
    group: u32,
    offset: u64,
    bytes: u64,
    packing: Option<&'a str>,
}

/// Constants by graph and position.
type Constants<'a> = BTreeMap<(u32, u32), Constant<'a>>;

impl<'a> Document<'a> {
    pub(super) fn of(reader: &'a Reader) -> Self {
        let model = reader.model();
        let constants = reader.tensors();
        let constants: Constants<'a> =
            constants.map(|constant| ((constant.subgraph(), constant.index()), constant)).collect();
        let graphs = (0_u32..).zip(&model.subgraphs);
        let identifier = reader.identifier().map(|schema| match schema {
            model::Schema::Circle => "CIR0",
            model::Schema::Tflite => "TFL3",
        });
        Self {
            schema: model.schema.name(),
            identifier,
            version: model.version,
            description: model.description.as_deref(),
            bytes: reader.source().len(),
            table_bytes: reader.tables_len(),
            operator_codes: codes(model),
            subgraphs: graphs.map(|(at, of)| graph(model, at, of, &constants)).collect(),
            signatures: model.signatures.iter().map(signature).collect(),
            metadata: model.metadata.iter().map(|of| metadata(model, of)).collect(),
            training: Training::of(reader),
            metadata_buffer: &model.metadata_buffer,
            buffers: model.buffers.iter().map(buffer).collect(),
            external_groups: &model.external_groups,
            external_buffers: model.external_buffers.iter().map(external_buffer).collect(),
        }
    }
}

fn codes(model: &Model) -> Vec<Code<'_>> {
    let counts = model.operator_counts();
    let code = |(code, operators): (_, u64)| {
        let code: &OperatorCode = code;
        Code {
            operator: code.operator().to_string(),
            custom_code: code.custom_code.as_deref(),
            version: code.version,
            builtin_code: code.builtin_code.code(),
            deprecated_builtin_code: code.deprecated_builtin_code,
            operators,
        }
    };
    model.operator_codes.iter().zip(counts).map(code).collect()
}

fn graph<'a>(
    model: &'a Model,
    index: u32,
    graph: &'a Subgraph,
    constants: &Constants<'a>,
) -> Graph<'a> {
    let tensors = (0_u32..).zip(&graph.tensors);
    let place = |at| constants.get(&(index, at)).map(|constant| Stored::of(*constant));
    Graph {
        name: graph.name.as_deref(),
        inputs: &graph.inputs,
        outputs: &graph.outputs,
        data_format: graph.data_format.to_string(),
        debug_metadata_index: graph.debug_metadata_index,
        tensors: tensors.map(|(at, of)| tensor(of, place(at))).collect(),
        operators: graph.operators.iter().map(|of| operator(model, of)).collect(),
    }
}

fn tensor(tensor: &model::Tensor, constant: Option<Stored>) -> Tensor<'_> {
    let is_packed = tensor.compression != model::CompressionType::default();
    Tensor {
        name: tensor.name.as_deref(),
        tensor_type: tensor.tensor_type,
        shape: &tensor.shape,
        shape_signature: tensor.shape_signature.as_deref(),
        has_rank: tensor.has_rank,
        is_variable: tensor.is_variable,
        buffer: tensor.buffer,
        external_buffer: (tensor.external_buffer != 0).then_some(tensor.external_buffer),
        compression: is_packed.then(|| tensor.compression.to_string()),
        quantization: tensor.quantization.as_deref().map(Quantization::of),
        sparsity: tensor.sparsity.as_deref().map(Sparsity::of),
        variant_tensors: tensor.variant_tensors.iter().map(variant).collect(),
        constant,
    }
}

fn variant(of: &VariantSubtype) -> Variant<'_> {
    Variant { tensor_type: of.tensor_type, shape: &of.shape, has_rank: of.has_rank }
}

impl Stored {
    fn of(constant: Constant<'_>) -> Self {
        match constant.stored_extent() {
            Ok(extent) => Self::Here { offset: extent.offset(), bytes: extent.len() },
            Err(error) => Self::Unreadable { fault: error.to_string() },
        }
    }
}

fn operator<'a>(model: &'a Model, operator: &'a model::Operator) -> Operator<'a> {
    let large = (operator.large_custom_options_offset, operator.large_custom_options_size);
    let range = |(offset, bytes)| Range { offset, bytes };
    Operator {
        opcode_index: operator.opcode_index,
        operator: model.operator_code(operator).map(operator_name),
        inputs: &operator.inputs,
        outputs: &operator.outputs,
        intermediates: &operator.intermediates,
        mutating_variable_inputs: &operator.mutating_variable_inputs,
        options: Options::of(operator),
        options_2: Options::of_second(operator),
        custom_options: Custom::of(operator),
        large_custom_options: (large != (0, 0)).then(|| range(large)),
        debug_metadata_index: operator.debug_metadata_index,
    }
}

/// Returns the name of an operator, cut where it is long: the codes have all of it, once.
fn operator_name(code: &OperatorCode) -> String {
    let operator = code.operator();
    match code.custom_code.as_deref().filter(|_| code.is_custom()) {
        Some(custom) if custom.len() > NAME => {
            let end = custom.floor_char_boundary(NAME);
            format!("{operator}:{}…", custom.get(..end).unwrap_or_default())
        }
        Some(custom) => format!("{operator}:{custom}"),
        None => operator.to_string(),
    }
}

impl Custom {
    fn of(operator: &model::Operator) -> Option<Self> {
        let bytes = operator.custom_options.as_ref()?;
        let format = operator.custom_options_format;
        let is_flex = format == model::CustomOptionsFormat::FLEXBUFFERS && !bytes.is_empty();
        let parsed = is_flex.then(|| Value::parse(bytes)).transpose();
        let (value, fault) = match parsed {
            Ok(value) => (value.map(Flex), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Some(Self { format: format.to_string(), bytes: bytes.len(), value, fault })
    }
}

fn signature(signature: &Signature) -> Names<'_> {
    Names {
        key: signature.key.as_deref(),
        subgraph_index: signature.subgraph_index,
        inputs: signature.inputs.iter().map(name).collect(),
        outputs: signature.outputs.iter().map(name).collect(),
        tag: signature.tag.as_deref(),
    }
}

fn name(of: &model::SignatureTensor) -> Name<'_> {
    Name { name: of.name.as_deref(), tensor_index: of.tensor_index }
}

fn metadata<'a>(model: &Model, of: &'a model::Metadata) -> Metadata<'a> {
    let bytes = model.buffer(of.buffer).map(model::Buffer::len);
    Metadata { name: of.name.as_deref(), buffer: of.buffer, bytes }
}

fn buffer(buffer: &model::Buffer) -> Buffer {
    Buffer { bytes: buffer.len(), offset: buffer.is_external().then_some(buffer.offset) }
}

fn external_buffer(of: &model::ExternalBuffer) -> ExternalBuffer<'_> {
    let model::ExternalBuffer { id, group, offset, len: bytes, .. } = *of;
    ExternalBuffer { id, group, offset, bytes, packing: of.packing.as_deref() }
}

/// Bytes of a name that every operator has.
const NAME: usize = 256;
