//! RTen models, described as any other file.

use std::collections::{BTreeMap, HashSet};

use rten_format::{Dim, NodeKind, Reader, Tensor, Value, Version};
use serde_json::{Value as Json, json};
use tensor_core::{
    Budget, Chain, Extent, Finding, Report,
    symbolic::{self, SymbolicShape},
};

use crate::{
    AnyTensor, Format, GraphSummary, Port, QuantizationSummary, Result, Summary, TensorSummary,
    summary::spelled,
};

super::described!(Rten);

pub(crate) fn summary(reader: &Reader) -> Summary {
    let version = match reader.version() {
        Version::V1 => "1",
        Version::V2 => "2",
    };
    let mut summary = Summary::new(Format::Rten, version.to_owned());
    let model = reader.model();
    summary.metadata = metadata_of(reader);
    summary.inputs = ports(reader, &model.graph.inputs);
    summary.outputs = ports(reader, &model.graph.outputs);
    let totals = model.totals();
    let name = |operator: rten_format::OperatorType| operator.to_string();
    summary.graph = Some(GraphSummary {
        graphs: totals.graphs,
        operators: totals.operators,
        parameters: totals.parameters,
        by_operator: totals.by_operator.iter().map(|(of, count)| (name(*of), *count)).collect(),
    });
    let memory = QuantizationSummary::memory(reader.limits());
    for tensor in reader.tensors() {
        let described = describe(tensor, &mut summary.findings, &memory);
        summary.tensors.push(described);
    }
    summary
}

pub(crate) fn metadata_of(reader: &Reader) -> BTreeMap<String, Json> {
    let fields = reader.model().metadata.iter().flat_map(rten_format::Metadata::fields);
    let mut metadata: BTreeMap<String, Json> =
        fields.filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))).collect();
    if let Some(release) = reader.required_release() {
        metadata.insert("required_release".to_owned(), json!(release.to_string()));
    }
    metadata
}

/// Describes inputs or outputs. One that is listed again, which validation reports, is left out: a
/// list may name a node of a megabyte a million times.
fn ports(reader: &Reader, ids: &[u32]) -> Vec<Port> {
    let mut seen = HashSet::new();
    ids.iter().filter(|id| seen.insert(**id)).map(|id| port(reader, *id)).collect()
}

fn port(reader: &Reader, id: u32) -> Port {
    let nodes = &reader.model().graph.nodes;
    let node = usize::try_from(id).ok().and_then(|id| nodes.get(id));
    let name = node.and_then(|node| node.name.clone()).unwrap_or_else(|| format!("node {id}"));
    match node.map(|node| &node.kind) {
        Some(NodeKind::Value(Value { shape, dtype })) => Port::new(
            name,
            dtype.map_or_else(unknown, |of| spelled(of.dtype(), &of)),
            &symbolic(shape.as_deref()),
        ),
        Some(NodeKind::Constant(constant)) => {
            let dims = constant.shape.iter().map(|dim| symbolic::Dim::Fixed(u64::from(*dim)));
            let dtype = constant.dtype.map_or_else(unknown, |of| spelled(of.dtype(), &of));
            Port::new(name, dtype, &SymbolicShape::Dims(dims.collect()))
        }
        _ => Port::new(name, unknown(), &SymbolicShape::Any),
    }
}

fn unknown() -> String {
    "?".to_owned()
}

fn symbolic(dims: Option<&[Dim]>) -> SymbolicShape {
    let Some(dims) = dims else { return SymbolicShape::Any };
    let dims = dims.iter().map(|dim| match dim {
        Dim::Fixed(elements) => symbolic::Dim::Fixed(u64::from(*elements)),
        Dim::Symbol(symbol) => symbolic::Dim::Symbol(symbol.clone()),
    });
    SymbolicShape::Dims(dims.collect())
}

fn describe(tensor: Tensor<'_>, findings: &mut Report, memory: &Budget) -> TensorSummary {
    let mut summary = TensorSummary::new(tensor.name().unwrap_or_default());
    summary.shape = tensor.constant().shape.iter().map(|dim| u64::from(*dim)).collect();
    if tensor.scope() > 0 {
        summary.metadata.insert("graph".to_owned(), json!(tensor.graph_path()));
    }
    summary.quantization = QuantizationSummary::of(AnyTensor::Rten(tensor));
    if let Err(error) = fill(tensor, &mut summary, memory) {
        let (path, message) = (tensor.path(), Chain(&error).to_string());
        // The place is not said again.
        let message = message.strip_prefix(&path).map_or(&*message, str::trim_start);
        findings.add(Finding::error(error.rule(), message).at(error.at().path(&path)));
    }
    summary
}

fn fill(tensor: Tensor<'_>, summary: &mut TensorSummary, memory: &Budget) -> Result<()> {
    let info = tensor.info()?;
    summary.dtype = Some(info.dtype);
    summary.bytes = info.byte_len()?;
    summary.offset = tensor.extent()?.map(Extent::offset);
    summary.quantization = AnyTensor::Rten(tensor).quantization(memory)?;
    Ok(())
}
