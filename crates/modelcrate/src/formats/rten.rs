//! RTen models, described as any other file.

use std::collections::{BTreeMap, HashSet};

use rten_format::{DataType, Dim, Error, NodeKind, Reader, Tensor, Value, Version};
use serde_json::{Value as Json, json};
use tensor_core::{
    Budget, Chain, Extent, Finding, Report,
    digest::{Algorithm, DigestReader},
    symbolic::{self, SymbolicShape},
};

use crate::{Format, GraphSummary, Port, Stats, Summary, SummaryOptions, TensorSummary};

super::described!(Rten);

pub(crate) fn summary(reader: &Reader, options: SummaryOptions) -> Summary {
    let version = match reader.version() {
        Version::V1 => "1",
        Version::V2 => "2",
    };
    let mut summary = Summary::new(Format::Rten, version.to_owned());
    let model = reader.model();
    summary.metadata = metadata(reader);
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
    let budget = Budget::sharing(READ, reader.limits(), reader.source().len());
    for tensor in reader.tensors() {
        let described = describe(tensor, options, &budget, &mut summary.findings);
        summary.tensors.push(described);
    }
    summary
}

fn metadata(reader: &Reader) -> BTreeMap<String, Json> {
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
        Some(NodeKind::Value(Value { shape, dtype })) => {
            Port::new(name, dtype.map_or_else(unknown, element_type), &symbolic(shape.as_deref()))
        }
        Some(NodeKind::Constant(constant)) => {
            let dims = constant.shape.iter().map(|dim| symbolic::Dim::Fixed(u64::from(*dim)));
            let dtype = constant.dtype.map_or_else(unknown, |dtype| dtype.to_string());
            Port::new(name, dtype, &SymbolicShape::Dims(dims.collect()))
        }
        _ => Port::new(name, unknown(), &SymbolicShape::Any),
    }
}

fn unknown() -> String {
    "?".to_owned()
}

fn element_type(dtype: DataType) -> String {
    dtype.to_string()
}

fn symbolic(dims: Option<&[Dim]>) -> SymbolicShape {
    let Some(dims) = dims else { return SymbolicShape::Any };
    let dims = dims.iter().map(|dim| match dim {
        Dim::Fixed(elements) => symbolic::Dim::Fixed(u64::from(*elements)),
        Dim::Symbol(symbol) => symbolic::Dim::Symbol(symbol.clone()),
    });
    SymbolicShape::Dims(dims.collect())
}

fn describe(
    tensor: Tensor<'_>,
    options: SummaryOptions,
    budget: &Budget,
    findings: &mut Report,
) -> TensorSummary {
    let mut summary = TensorSummary::new(tensor.name().unwrap_or_default());
    summary.shape = tensor.constant().shape.iter().map(|dim| u64::from(*dim)).collect();
    if tensor.scope() > 0 {
        summary.metadata.insert("graph".to_owned(), json!(tensor.graph_path()));
    }
    if let Err(error) = fill(tensor, options, budget, &mut summary) {
        let (path, message) = (tensor.path(), Chain(&error).to_string());
        // The place is not said again.
        let message = message.strip_prefix(&path).map_or(&*message, str::trim_start);
        findings.add(Finding::error(error.rule(), message).at(error.at().path(&path)));
    }
    summary
}

fn fill(
    tensor: Tensor<'_>,
    options: SummaryOptions,
    budget: &Budget,
    summary: &mut TensorSummary,
) -> rten_format::Result<()> {
    let info = tensor.info()?;
    summary.dtype = Some(info.dtype);
    summary.bytes = info.byte_len()?;
    summary.offset = tensor.extent()?.map(Extent::offset);
    let read = |source| {
        let (what, offset) = ("tensor data", summary.offset.unwrap_or_default());
        Error::Core(tensor_core::Error::Read { what, offset, source })
    };
    if options.digests || options.stats {
        budget.take(summary.bytes)?;
    }
    if options.digests {
        let mut stream = DigestReader::new(tensor.stream()?, Algorithm::Sha256);
        std::io::copy(&mut stream, &mut std::io::sink()).map_err(read)?;
        let (_, found) = stream.finish();
        summary.sha256 = found.to_string().strip_prefix("sha256:").map(str::to_owned);
    }
    if options.stats {
        summary.stats = Stats::read(info.dtype, tensor.stream()?).map_err(read)?;
    }
    Ok(())
}

/// What a limit on reading is about.
const READ: &str = "bytes of all tensors";
