//! PyTorch Live models and specs, described as any other file.

use std::collections::BTreeMap;

use ptl_spec::{Error, File, Place, Reader, Signature, SpecOptions, Tensor};
use serde_json::{Value as Json, json};
use tensor_core::{At, Chain, Finding, Report, symbolic::SymbolicShape};

use crate::{
    AnyTensor, FileSummary, Format, GraphSummary, Port, QuantizationSummary, Summary, TensorSummary,
};

super::described!(Ptl?);

pub(crate) fn metadata_of(reader: &Reader) -> BTreeMap<String, Json> {
    metadata(reader, &mut Report::default())
}

pub(crate) fn summary(reader: &Reader) -> Summary {
    let version = match reader.bytecode() {
        Ok(bytecode) => bytecode.version.to_string(),
        Err(_) => "?".to_owned(),
    };
    let mut summary = Summary::new(Format::Ptl, version);
    summary.metadata = metadata(reader, &mut summary.findings);
    match reader.find_spec(&SpecOptions::default()) {
        Ok(Some((_, spec))) => add_signature(&spec.signature(), &mut summary),
        Ok(None) => {}
        Err(error) => report(&error, At::file().path("spec"), &mut summary.findings),
    }
    summary.files = reader.records().map(describe_record).collect();
    match reader.tensors() {
        Ok(tensors) => {
            let mut has_constants = false;
            for tensor in tensors {
                let described = describe(tensor, &mut summary.findings);
                has_constants |= tensor.place() == Place::Constants;
                // Old bytecode versions hold constants twice.
                let is_copy = has_constants && tensor.place() == Place::Bytecode;
                let elements = match is_copy {
                    true => 0,
                    false => described.shape.elements().unwrap_or(u64::MAX),
                };
                let graph = summary.graph.get_or_insert_default();
                graph.parameters = graph.parameters.saturating_add(elements);
                summary.tensors.push(described);
            }
        }
        Err(error) => report(&error, At::file(), &mut summary.findings),
    }
    if let Ok(bytecode) = reader.bytecode() {
        let graph: &mut GraphSummary = summary.graph.get_or_insert_default();
        for operator in bytecode.methods.iter().flat_map(|method| &method.operators) {
            graph.operators = graph.operators.saturating_add(1);
            let count = graph.by_operator.entry(operator.to_string()).or_default();
            *count = count.saturating_add(1);
        }
    }
    summary
}

fn report(error: &Error, at: At, findings: &mut Report) {
    findings.add(Finding::error(error.rule(), Chain(error).to_string()).at(at));
}

fn metadata(reader: &Reader, findings: &mut Report) -> BTreeMap<String, Json> {
    let container = json!(reader.container().to_string());
    let mut metadata = BTreeMap::from([("container".to_owned(), container)]);
    match reader.bytecode() {
        Ok(bytecode) => {
            let methods: Vec<&str> =
                bytecode.methods.iter().map(ptl_spec::Method::short_name).collect();
            metadata.insert("methods".to_owned(), json!(methods));
        }
        // Nothing a lite interpreter loads, but its tensors are there.
        Err(Error::NotLite) => {}
        Err(error) => report(&error, At::file(), findings),
    }
    let extra: Vec<&str> = reader.extra_files().map(File::path).collect();
    if !extra.is_empty() {
        metadata.insert("extra_files".to_owned(), json!(extra));
    }
    metadata
}

pub(super) fn add_signature(signature: &Signature, summary: &mut Summary) {
    let port = |name: &str, kind: &str| Port::new(name, kind.to_owned(), &SymbolicShape::Any);
    for parameter in &signature.parameters {
        summary.inputs.push(port(&parameter.name, parameter.kind.name()));
    }
    for result in &signature.results {
        summary.outputs.push(port(&result.key.to_string(), result.kind.name()));
    }
}

fn describe_record(record: File<'_>) -> FileSummary {
    let mut summary = FileSummary::new(record.path());
    summary.bytes = record.len().ok();
    if record.is_compressed() {
        summary.encoding = Some("deflate".to_owned());
        summary.stored_bytes = Some(record.stored_len());
    }
    summary
}

fn describe(tensor: Tensor<'_>, findings: &mut Report) -> TensorSummary {
    let mut summary = TensorSummary::new(tensor.name());
    summary.shape = tensor.shape().clone();
    summary.quantization = QuantizationSummary::of(AnyTensor::Ptl(tensor));
    if let Err(error) = fill(tensor, &mut summary) {
        report(&error, At::file().tensor(tensor.name()), findings);
    }
    summary
}

fn fill(tensor: Tensor<'_>, summary: &mut TensorSummary) -> ptl_spec::Result<()> {
    let info = tensor.info()?;
    summary.dtype = Some(info.dtype);
    summary.bytes = info.byte_len()?;
    tensor.extent()?;
    if !tensor.is_contiguous() {
        summary.layout = Some("strided".to_owned());
    }
    Ok(())
}
