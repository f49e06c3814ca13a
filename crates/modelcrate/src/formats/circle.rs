//! Circle and TFLite models, described as any other file.

use std::collections::{BTreeMap, HashSet};

use circle_format::{
    Error, Reader, Schema, Tensor,
    model::{self, Model, Subgraph},
};
use serde_json::{Value as Json, json};
use tensor_core::{
    Chain, Finding, Report,
    symbolic::{Dim, SymbolicShape},
};

use crate::{
    AnyTensor, Format, GraphSummary, Port, QuantizationSummary, Summary, TensorSummary,
    summary::spelled,
};

super::described!(Circle);

pub(crate) const fn format_of(schema: Schema) -> Format {
    match schema {
        Schema::Circle => Format::Circle,
        Schema::Tflite => Format::TfLite,
    }
}

pub(crate) fn metadata_of(reader: &Reader) -> BTreeMap<String, Json> {
    let (model, mut metadata) = (reader.model(), BTreeMap::new());
    if let Some(description) = &model.description {
        metadata.insert("description".to_owned(), json!(description));
    }
    let signatures: Vec<&str> =
        model.signatures.iter().filter_map(|signature| signature.key.as_deref()).collect();
    if !signatures.is_empty() {
        metadata.insert("signatures".to_owned(), json!(signatures));
    }
    if let Some(training) = reader.training_info().transpose() {
        let training = training.map_or_else(|error| error.to_string(), |info| info.to_string());
        metadata.insert("training".to_owned(), json!(training));
    }
    metadata
}

/// Describes a model that is in no package.
pub(crate) fn summary(reader: &Reader) -> Summary {
    let model = reader.model();
    let mut summary = Summary::new(format_of(model.schema), model.version.to_string());
    summary.metadata = metadata_of(reader);
    describe(reader, &mut summary);
    summary
}

/// Adds what is in a model: inputs and outputs of its first graph, counts, constants.
pub(crate) fn describe(reader: &Reader, summary: &mut Summary) {
    let model = reader.model();
    if let Some(main) = model.subgraphs.first() {
        summary.inputs.extend(ports(main, &main.inputs));
        summary.outputs.extend(ports(main, &main.outputs));
    }
    for constant in reader.tensors() {
        let described = describe_constant(constant, &mut summary.findings);
        let elements = described.shape.elements().unwrap_or(u64::MAX);
        let graph = summary.graph.get_or_insert_default();
        graph.parameters = graph.parameters.saturating_add(elements);
        summary.tensors.push(described);
    }
    count(model, summary.graph.get_or_insert_default());
}

fn count(model: &Model, graph: &mut GraphSummary) {
    graph.graphs = graph.graphs.saturating_add(model.subgraphs.len() as u64);
    // By code first: names are as long as a file likes.
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for operator in model.subgraphs.iter().flat_map(|subgraph| &subgraph.operators) {
        let count = counts.entry(operator.opcode_index).or_default();
        *count = count.saturating_add(1);
    }
    for (index, operators) in counts {
        graph.operators = graph.operators.saturating_add(operators);
        let code = usize::try_from(index).ok().and_then(|index| model.operator_codes.get(index));
        let name = code.map_or_else(|| "?".to_owned(), ToString::to_string);
        let count = graph.by_operator.entry(name).or_default();
        *count = count.saturating_add(operators);
    }
}

/// Describes inputs or outputs, each once: a list may name one without end.
fn ports(subgraph: &Subgraph, ids: &[i32]) -> Vec<Port> {
    let mut seen = HashSet::new();
    let ids = ids.iter().filter(|id| seen.insert(**id));
    ids.map(|id| match subgraph.tensor(*id) {
        Some(tensor) => port(tensor, *id),
        None => Port::new(format!("tensor {id}"), "?".to_owned(), &SymbolicShape::Any),
    })
    .collect()
}

fn port(tensor: &model::Tensor, id: i32) -> Port {
    let name = tensor.name.clone().unwrap_or_else(|| format!("tensor {id}"));
    let dims = tensor.shape_signature.as_ref().unwrap_or(&tensor.shape).iter();
    let dims = dims.map(|dim| u64::try_from(*dim).map_or(Dim::Any, Dim::Fixed));
    Port::new(
        name,
        spelled(tensor.dtype(), &tensor.tensor_type),
        &SymbolicShape::Dims(dims.collect()),
    )
}

fn describe_constant(constant: Tensor<'_>, findings: &mut Report) -> TensorSummary {
    let mut summary = TensorSummary::new(constant.name().unwrap_or_default());
    if let Some(tensor) = constant.tensor() {
        summary.dtype = tensor.dtype();
        summary.shape = tensor.shape().unwrap_or_default();
        if summary.dtype.is_none() {
            summary.layout = Some(tensor.tensor_type.to_string());
        }
    }
    summary.quantization = QuantizationSummary::of(AnyTensor::Circle(constant));
    match constant.stored_extent() {
        Ok(extent) => {
            summary.bytes = extent.len();
            summary.offset = Some(extent.offset());
        }
        Err(error) => findings.add(finding(constant, &error)),
    }
    summary
}

fn finding(constant: Tensor<'_>, error: &Error) -> Finding {
    let at = error.at().path(constant.path());
    Finding::error(error.rule(), Chain(error).to_string()).at(at)
}
