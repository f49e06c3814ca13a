//! PyTorch Live models and specs, described as any other file.

use std::collections::BTreeMap;

use ptl_spec::{Argument, Error, File, Method, Place, Reader, Signature, SpecOptions, Tensor};
use serde_json::{Value as Json, json};
use tensor_core::{At, Budget, Chain, Finding, Report, symbolic::SymbolicShape};

use crate::{
    AnyTensor, FileSummary, Format, GraphSummary, MethodSummary, Port, QuantizationSummary,
    Summary, TensorSummary, TypedName,
};

super::described!(Ptl?);

pub(crate) fn summary(reader: &Reader) -> Summary {
    let bytecode = reader.bytecode();
    let version =
        bytecode.as_ref().map_or_else(|_| "?".to_owned(), |code| code.version.to_string());
    let mut summary = Summary::new(Format::Ptl, version);
    match bytecode {
        Ok(bytecode) => add_methods(&bytecode.methods, &mut summary),
        // Nothing a lite interpreter loads, but its tensors are there.
        Err(Error::NotLite) => {}
        Err(error) => report(&error, At::file(), &mut summary.findings),
    }
    summary.metadata = metadata_of(reader);
    match reader.find_spec(&SpecOptions::default()) {
        Ok(Some((_, spec))) => add_signature(&spec.signature(), &mut summary),
        Ok(None) => {}
        Err(error) => report(&error, At::file().path("spec"), &mut summary.findings),
    }
    match reader.files() {
        Ok(files) => summary.files = files.map(describe_file).collect(),
        Err(error) => report(&error, At::file(), &mut summary.findings),
    }
    let memory = QuantizationSummary::memory(reader.limits());
    match reader.tensors() {
        Ok(tensors) => {
            let mut has_constants = false;
            for tensor in tensors {
                let described = describe(tensor, &memory, &mut summary.findings);
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
    summary
}

fn add_methods(methods: &[Method], summary: &mut Summary) {
    summary.methods = methods.iter().map(describe_method).collect();
    let graph: &mut GraphSummary = summary.graph.get_or_insert_default();
    for operator in methods.iter().flat_map(|method| &method.operators) {
        graph.operators = graph.operators.saturating_add(1);
        let count = graph.by_operator.entry(operator.to_string()).or_default();
        *count = count.saturating_add(1);
    }
}

fn describe_method(method: &Method) -> MethodSummary {
    let typed =
        |of: &Argument| TypedName { name: of.name.clone(), type_name: of.type_name.clone() };
    let all = |of: &[Argument]| of.iter().map(typed).collect();
    MethodSummary {
        name: method.short_name().to_owned(),
        signature: method.to_string(),
        parameters: method.parameters().map(all),
        returns: method.returns.as_deref().map(all),
    }
}

fn report(error: &Error, at: At, findings: &mut Report) {
    findings.add(Finding::error(error.rule(), Chain(error).to_string()).at(at));
}

pub(crate) fn metadata_of(reader: &Reader) -> BTreeMap<String, Json> {
    let container = json!(reader.container().to_string());
    let mut metadata = BTreeMap::from([("container".to_owned(), container)]);
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

fn describe_file(file: File<'_>) -> FileSummary {
    let mut summary = FileSummary::new(file.path());
    summary.bytes = file.len().ok();
    if file.is_compressed() {
        summary.encoding = Some("deflate".to_owned());
        summary.stored_bytes = Some(file.stored_len());
    }
    summary
}

fn describe(tensor: Tensor<'_>, memory: &Budget, findings: &mut Report) -> TensorSummary {
    let mut summary = TensorSummary::new(tensor.name());
    summary.shape = tensor.shape().clone();
    if let Err(error) = fill(tensor, memory, &mut summary) {
        let message = Chain(&error).to_string();
        findings.add(Finding::error(error.rule(), message).at(At::file().tensor(tensor.name())));
    }
    summary
}

fn fill(tensor: Tensor<'_>, memory: &Budget, summary: &mut TensorSummary) -> crate::Result<()> {
    summary.quantization = QuantizationSummary::of(AnyTensor::Ptl(tensor));
    let info = tensor.info()?;
    summary.dtype = Some(info.dtype);
    summary.bytes = info.byte_len()?;
    tensor.extent()?;
    if !tensor.is_contiguous() {
        summary.layout = Some("strided".to_owned());
    }
    // Scales of slices are few beside the elements.
    summary.quantization = AnyTensor::Ptl(tensor).quantization(memory)?;
    Ok(())
}
