//! RTen models, described as any other file.

use std::collections::BTreeMap;

use rten_format::{DataType, Dim, Error, NodeKind, Reader, Tensor, Value, Version};
use serde_json::{Value as Json, json};
use tensor_core::{
    At, Report, Severity, Source,
    digest::{Algorithm, HashingReader},
    symbolic::{self, SymbolicShape},
};

use crate::{Format, GraphSummary, Port, Stats, Summary, SummaryOptions, TensorSummary};

pub(crate) fn open(source: Source) -> rten_format::Result<Reader> {
    Reader::from_source(source)
}

/// Reads all constants, as the format has no digests that could be compared.
pub(crate) fn verify(reader: &Reader, progress: impl Fn(u64)) -> Report {
    let mut report = reader.validate();
    let first = reader.model_data().end();
    progress(first);
    for tensor in reader.tensors().filter(|tensor| tensor.is_external()) {
        // What has no place in the file was reported already.
        let Ok(extent) = tensor.extent() else { continue };
        if let Err(error) = tensor.verify() {
            let at = At::file().path(tensor.path()).offset(error.offset());
            report.push(Severity::Error, error.rule(), at, error.at_place());
        }
        progress(extent.len());
    }
    report
}

pub(crate) fn summary(reader: &Reader, options: SummaryOptions) -> Summary {
    let version = match reader.version() {
        Version::V1 => "1",
        Version::V2 => "2",
    };
    let mut summary = Summary::new(Format::Rten, version.to_owned());
    let model = reader.model();
    summary.metadata = metadata(reader);
    summary.inputs = model.graph.inputs.iter().map(|id| port(reader, *id)).collect();
    summary.outputs = model.graph.outputs.iter().map(|id| port(reader, *id)).collect();
    let totals = model.totals();
    let name = |operator: rten_format::OperatorType| operator.to_string();
    summary.graph = Some(GraphSummary {
        graphs: totals.graphs,
        operators: totals.operators,
        parameters: totals.parameters,
        by_operator: totals.by_operator.iter().map(|(of, count)| (name(*of), *count)).collect(),
    });
    for tensor in reader.tensors() {
        let described = describe(tensor, options, &mut summary.findings);
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

fn describe(tensor: Tensor<'_>, options: SummaryOptions, findings: &mut Report) -> TensorSummary {
    let mut summary = TensorSummary::new(tensor.name().unwrap_or_default());
    summary.shape = tensor.constant().shape.iter().map(|dim| u64::from(*dim)).collect();
    if tensor.scope() > 0 {
        summary.metadata.insert("graph".to_owned(), json!(tensor.graph_path()));
    }
    if let Err(error) = fill(tensor, options, &mut summary) {
        let at = At::file().path(tensor.path()).offset(error.offset());
        findings.push(Severity::Error, error.rule(), at, error.at_place());
    }
    summary
}

fn fill(
    tensor: Tensor<'_>,
    options: SummaryOptions,
    summary: &mut TensorSummary,
) -> rten_format::Result<()> {
    let info = tensor.info()?;
    summary.dtype = Some(info.dtype);
    let extent = tensor.extent()?;
    summary.bytes = extent.len();
    summary.offset = Some(extent.offset());
    let read = |source| {
        let (what, offset) = ("tensor data", extent.offset());
        Error::Core(tensor_core::Error::Read { what, offset, source })
    };
    if options.digests {
        let mut stream = HashingReader::new(tensor.stream()?, Algorithm::Sha256);
        std::io::copy(&mut stream, &mut std::io::sink()).map_err(read)?;
        let (_, found) = stream.finish();
        summary.sha256 = found.to_string().strip_prefix("sha256:").map(str::to_owned);
    }
    if options.stats {
        summary.stats = Stats::of(info.dtype, tensor.stream()?).map_err(read)?;
    }
    Ok(())
}
