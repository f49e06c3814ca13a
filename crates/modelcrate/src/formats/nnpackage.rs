//! nnpackages, and Circle and TFLite models, described as any other file.

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};

use nnpackage::{
    Constant, Error, File, ModelReader, ReadOptions, Reader,
    model::{Model, Schema, Subgraph, Tensor},
    model_archive::{self, Entry, Method},
};
use serde_json::{Value as Json, json};
use tensor_core::{
    At, Chain, Report, Severity, Source, TensorInfo,
    digest::Algorithm,
    symbolic::{Dim, SymbolicShape},
};

use crate::{
    FileSummary, Format, GraphSummary, OpenOptions, Port, Profile, Stats, Summary, SummaryOptions,
    TensorSummary, budget::Budget,
};

pub(crate) fn open(source: Source, options: OpenOptions) -> nnpackage::Result<Reader> {
    read_options(options).from_source(source)
}

pub(crate) fn open_folder(path: &Path, options: OpenOptions) -> nnpackage::Result<Reader> {
    read_options(options).open(path)
}

/// Broken archives are opened as far as that is safe: what is wrong with them is in the findings.
fn read_options(options: OpenOptions) -> ReadOptions {
    let graded = match options.profile {
        Profile::Strict => model_archive::Profile::Strict,
        Profile::Lenient => model_archive::Profile::Lenient,
    };
    Reader::options().profile(model_archive::Profile::Lenient).graded(graded)
}

pub(crate) fn format(reader: &ModelReader) -> Format {
    match reader.model().schema {
        Schema::Circle => Format::Circle,
        Schema::Tflite => Format::TfLite,
    }
}

/// Returns how many bytes a package has: of its archive, or of its files.
pub(crate) fn byte_len(reader: &Reader) -> u64 {
    if let Some(archive) = reader.archive() {
        return archive.source().len();
    }
    let files = reader.files().into_iter().flatten();
    files.filter_map(|file| file.len().ok()).fold(0, u64::saturating_add)
}

/// Reads a constant of the first model that has one of the name.
pub(crate) fn tensor(
    reader: &Reader,
    name: &str,
) -> Result<Option<tensor_core::Tensor>, crate::Error> {
    Ok(constant(reader, name)?.map(Constant::view).transpose()?)
}

pub(crate) fn tensor_info(reader: &Reader, name: &str) -> Result<Option<TensorInfo>, crate::Error> {
    Ok(constant(reader, name)?.map(Constant::info).transpose()?)
}

fn constant<'a>(reader: &'a Reader, name: &str) -> nnpackage::Result<Option<Constant<'a>>> {
    let mut seen = HashSet::new();
    for file in reader.models().filter(|file| seen.insert(file.path())) {
        if let Some(found) = file.open()?.tensor(name) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Describes a package: what its manifest says, its files, and the constants of all its models.
pub(crate) fn summary(reader: &Reader, options: SummaryOptions) -> Summary {
    let manifest = reader.manifest();
    let mut summary = Summary::new(Format::NnPackage, manifest.version.to_string());
    summary.metadata = metadata(reader);
    match reader.files() {
        Ok(files) => summary.files = files.map(|file| describe_file(reader, file)).collect(),
        Err(error) => report(&error, error.at(), &mut summary.findings),
    }
    let mut budget = Budget::default();
    // A manifest may name one model without end.
    let mut seen = HashSet::new();
    let models = reader.models().filter(|file| seen.insert(file.path()));
    let models: Vec<_> = models.map(|file| (file.path(), file.open())).collect();
    let is_only = models.len() == 1;
    for (path, model) in models {
        let model = match model {
            Ok(model) => model,
            Err(error) => {
                report(&error, error.at().entry(path), &mut summary.findings);
                continue;
            }
        };
        let before = summary.tensors.len();
        describe(model, options, &mut budget, &mut summary);
        for tensor in summary.tensors.iter_mut().skip(before).filter(|_| !is_only) {
            tensor.metadata.insert("model".to_owned(), json!(path));
        }
    }
    summary
}

/// Describes a model that is in no package.
pub(crate) fn model_summary(reader: &ModelReader, options: SummaryOptions) -> Summary {
    let model = reader.model();
    let mut summary = Summary::new(format(reader), model.version.to_string());
    if let Some(description) = &model.description {
        summary.metadata.insert("description".to_owned(), json!(description));
    }
    let signatures: Vec<&str> =
        model.signatures.iter().filter_map(|signature| signature.key.as_deref()).collect();
    if !signatures.is_empty() {
        summary.metadata.insert("signatures".to_owned(), json!(signatures));
    }
    describe(reader, options, &mut Budget::default(), &mut summary);
    summary
}

pub(crate) fn verify_model(reader: &ModelReader) -> Report {
    let mut report = reader.validate();
    let mut budget = Budget::default();
    budget.allow(reader.source().len());
    let mut seen = HashSet::new();
    for constant in reader.tensors() {
        // What has no place in the file was reported already.
        let Ok(extent) = constant.stored_extent() else { continue };
        // Constants may share their bytes, wholly or in part.
        if !seen.insert((extent.offset(), extent.len())) {
            continue;
        }
        let is_allowed = budget.take(extent.len()).map_err(Error::from);
        if let Err(error) = is_allowed.and_then(|()| constant.verify()) {
            let at = At::file().path(constant.path()).offset(error.offset());
            report.push(Severity::Error, error.rule(), at, Chain(&error).to_string());
        }
    }
    report
}

fn report(error: &Error, at: At, findings: &mut Report) {
    findings.push(Severity::Error, error.rule(), at, Chain(error).to_string());
}

/// How many models are listed: a manifest may name one without end.
const LISTED: usize = 1000;

fn metadata(reader: &Reader) -> BTreeMap<String, Json> {
    let manifest = reader.manifest();
    let models: Vec<Json> = reader
        .models()
        .take(LISTED)
        .map(|model| json!({ "path": model.path(), "type": model.declared_type() }))
        .collect();
    let mut metadata = BTreeMap::from([("models".to_owned(), json!(models))]);
    if !manifest.configs.is_empty() {
        metadata.insert("configs".to_owned(), json!(manifest.configs));
    }
    let listed = [("pkg-inputs", &manifest.pkg_inputs), ("pkg-outputs", &manifest.pkg_outputs)];
    for (key, refs) in listed.into_iter().filter(|(_, refs)| !refs.is_empty()) {
        let refs: Vec<String> = refs.iter().map(ToString::to_string).collect();
        metadata.insert(key.to_owned(), json!(refs));
    }
    let edges: Vec<String> = manifest.edges().map(|(from, to)| format!("{from} -> {to}")).collect();
    if !edges.is_empty() {
        metadata.insert("model-connect".to_owned(), json!(edges));
    }
    metadata
}

fn describe_file(reader: &Reader, file: File<'_>) -> FileSummary {
    let mut summary = FileSummary::new(file.path());
    summary.bytes = file.len().ok();
    let inside = format!("{}{}", reader.root(), file.path());
    let entry = reader.archive().and_then(|archive| archive.entry(&inside));
    if let Some(info) = entry.map(Entry::info)
        && info.method != Method::Stored
    {
        summary.encoding = Some(info.method.to_string());
        summary.stored_bytes = Some(info.stored_size);
    }
    summary
}

/// Adds what is in a model: inputs and outputs of its first graph, counts, constants.
fn describe(
    reader: &ModelReader,
    options: SummaryOptions,
    budget: &mut Budget,
    summary: &mut Summary,
) {
    let model = reader.model();
    if let Some(main) = model.subgraphs.first() {
        summary.inputs.extend(ports(main, &main.inputs));
        summary.outputs.extend(ports(main, &main.outputs));
    }
    budget.allow(reader.source().len());
    for constant in reader.tensors() {
        let described = describe_constant(constant, options, budget, &mut summary.findings);
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

fn port(tensor: &Tensor, id: i32) -> Port {
    let name = tensor.name.clone().unwrap_or_else(|| format!("tensor {id}"));
    let dims = tensor.shape_signature.as_ref().unwrap_or(&tensor.shape).iter();
    let dims = dims.map(|dim| u64::try_from(*dim).map_or(Dim::Any, Dim::Fixed));
    Port::new(name, tensor.tensor_type.to_string(), &SymbolicShape::Dims(dims.collect()))
}

fn describe_constant(
    constant: Constant<'_>,
    options: SummaryOptions,
    budget: &mut Budget,
    findings: &mut Report,
) -> TensorSummary {
    let mut summary = TensorSummary::new(constant.name().unwrap_or_default());
    if let Some(tensor) = constant.tensor() {
        summary.dtype = tensor.dtype();
        summary.shape = tensor.shape().unwrap_or_default();
        if summary.dtype.is_none() {
            summary.layout = Some(tensor.tensor_type.to_string());
        }
        if tensor.quantization.is_some() {
            summary.metadata.insert("quantized".to_owned(), json!(true));
        }
    }
    if let Err(error) = fill(constant, options, budget, &mut summary) {
        let at = At::file().path(constant.path()).offset(error.offset());
        findings.push(Severity::Error, error.rule(), at, Chain(&error).to_string());
    }
    summary
}

fn fill(
    constant: Constant<'_>,
    options: SummaryOptions,
    budget: &mut Budget,
    summary: &mut TensorSummary,
) -> nnpackage::Result<()> {
    let extent = constant.stored_extent()?;
    summary.bytes = extent.len();
    summary.offset = Some(extent.offset());
    if !options.digests && !options.stats {
        return Ok(());
    }
    budget.take(extent.len())?;
    let bytes = constant.stored_bytes()?;
    if options.digests {
        let found = Algorithm::Sha256.digest(&bytes);
        summary.sha256 = found.to_string().strip_prefix("sha256:").map(str::to_owned);
    }
    if let Some(dtype) = summary.dtype.filter(|_| options.stats) {
        summary.stats = Stats::of(dtype, &bytes[..]).ok().flatten();
    }
    Ok(())
}
