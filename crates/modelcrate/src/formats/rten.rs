//! RTen models, described as any other file.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

use bytes::Bytes;
use rten_format::{DataType, Dim, Error, NodeKind, Reader, Tensor, Value, Version};
use serde_json::{Value as Json, json};
use tensor_core::{
    At, Budget, Chain, Extent, Finding, Limits, Report, Source, TensorBuf, TensorInfo,
    digest::{Algorithm, HashingReader},
    symbolic::{self, SymbolicShape},
};

use super::Tensors;
use crate::{
    AnyTensor, Format, GraphSummary, Port, ReadOptions, Result, Stats, Summary, SummaryOptions,
    TensorSummary,
};

pub(crate) fn options(options: ReadOptions) -> rten_format::ReadOptions {
    Reader::options().limits(options.limits)
}

pub(crate) const fn format(_: &Reader) -> Format {
    Format::Rten
}

pub(crate) fn source(reader: &Reader) -> Option<&Source> {
    Some(reader.source())
}

pub(crate) fn byte_len(reader: &Reader) -> u64 {
    reader.source().len()
}

/// Reads all constants, as the format has no digests that could be compared. What they share is
/// read once.
pub(crate) fn validate_with(reader: &Reader, progress: impl Fn(u64)) -> Report {
    let mut report = reader.validate();
    progress(reader.model_data().end());
    // What has no place in the file was reported already.
    let placed = reader.tensors().filter(|tensor| tensor.is_external());
    let mut tensors: Vec<(Extent, Tensor<'_>)> =
        placed.filter_map(|tensor| Some((tensor.extent().ok()?, tensor))).collect();
    tensors.sort_by_key(|(extent, _)| *extent);
    let mut end = 0;
    for (extent, tensor) in tensors {
        let rest = Extent::between(extent.offset().max(end), extent.end());
        if let Err(error) = read_extent(reader, rest) {
            let at = At::file().path(tensor.path()).offset(error.offset());
            report.add(Finding::error("rten/read", Chain(&error).to_string()).at(at));
        }
        end = end.max(extent.end());
        progress(rest.len());
    }
    report
}

fn read_extent(reader: &Reader, extent: Extent) -> tensor_core::Result<()> {
    let mut stream = reader.source().stream(extent, "tensor data")?;
    let copied = std::io::copy(&mut stream, &mut std::io::sink());
    let (what, offset) = ("tensor data", extent.offset());
    copied.map_err(|source| tensor_core::Error::Read { what, offset, source })?;
    Ok(())
}

pub(crate) fn sniff(source: &Source) -> tensor_core::Result<bool> {
    let head = source.read(Extent::first(source.len().min(8)), "magic")?;
    Ok(head.starts_with(b"RTEN") || is_rten_1(source, &head)?)
}

/// Looks for the root table of an RTen model of version 1: a FlatBuffer without a magic, whose
/// first field is 1 and whose second one refers to a table.
fn is_rten_1(source: &Source, head: &[u8]) -> tensor_core::Result<bool> {
    let Some(root) = head.first_chunk().map(|root| u64::from(u32::from_le_bytes(*root))) else {
        return Ok(false);
    };
    let part = |offset: Option<u64>, len| -> tensor_core::Result<Option<Bytes>> {
        let extent = offset.and_then(|offset| Extent::new(offset, len).ok());
        let inside = extent.filter(|extent| extent.end() <= source.len());
        inside.map(|extent| source.read(extent, "root table")).transpose()
    };
    let Some(distance) = part(Some(root), 4)?.and_then(|bytes| bytes.first_chunk().copied()) else {
        return Ok(false);
    };
    // From the table back to the list of the places of its fields.
    let list = root.checked_sub_signed(i32::from_le_bytes(distance).into());
    let Some(list) = part(list, 8)? else { return Ok(false) };
    let [len, _, version, graph] =
        [0, 2, 4, 6].map(|at| list.get(at..).and_then(<[u8]>::first_chunk).copied());
    let [len, version, graph] =
        [len, version, graph].map(|field| field.map_or(0, u16::from_le_bytes));
    if !root.is_multiple_of(4) || len < 8 || version < 4 || graph < 4 {
        return Ok(false);
    }
    let field = |at: u16| part(root.checked_add(at.into()), 4);
    let (version, graph) = (field(version)?, field(graph)?);
    Ok(version.is_some_and(|version| version[..] == [1, 0, 0, 0]) && graph.is_some())
}

pub(crate) fn tensors(reader: &Reader) -> Result<Tensors<'_>> {
    Ok(Box::new(reader.tensors().map(AnyTensor::Rten)))
}

pub(crate) fn tensor<'a>(reader: &'a Reader, name: &str) -> Result<Option<AnyTensor<'a>>> {
    Ok(reader.tensor(name).map(AnyTensor::Rten))
}

pub(crate) fn name(tensor: Tensor<'_>) -> Option<Cow<'_, str>> {
    tensor.name().map(Cow::Borrowed)
}

pub(crate) fn info(tensor: Tensor<'_>) -> Result<TensorInfo> {
    Ok(tensor.info()?)
}

pub(crate) fn read(tensor: Tensor<'_>) -> Result<TensorBuf> {
    Ok(tensor.view()?)
}

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
    let budget = Budget::expansion(READ, &Limits::default(), reader.source().len());
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
        let at = At::file().path(tensor.path()).offset(error.offset());
        findings.add(Finding::error(error.rule(), error.at_place()).at(at));
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
    let extent = tensor.extent()?;
    summary.bytes = extent.len();
    summary.offset = Some(extent.offset());
    let read = |source| {
        let (what, offset) = ("tensor data", extent.offset());
        Error::Core(tensor_core::Error::Read { what, offset, source })
    };
    if options.digests || options.stats {
        budget.take(extent.len())?;
    }
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

/// What a limit on reading is about.
const READ: &str = "bytes of all tensors";
