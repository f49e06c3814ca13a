//! A model as a whole: codes, buffers, metadata, signatures.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    path::Path,
};

use tensor_core::text;

use crate::{
    Diagnoses, Diagnosis, Reader, Stage,
    model::{
        BuiltinOperator, Model, OperatorCode, Schema, Signature, SignatureTensor, TrainingInfo,
    },
    read::PADDING,
};

use super::{constants, graph, operators, runtime, training};

pub(super) fn check(reader: &Reader, findings: &mut Diagnoses) {
    let model = reader.model();
    identity(reader, findings);
    for (index, code) in model.operator_codes.iter().enumerate() {
        check_code(model, index, code, findings);
    }
    constants::buffers(reader, findings);
    metadata(reader, findings);
    graph::check(reader, findings);
    constants::check(reader, findings);
    operators::calls(model, findings);
    signatures(model, findings);
}

/// Says what does not work without a package around the model.
pub(super) fn bare(reader: &Reader, findings: &mut Diagnoses) {
    let codes = reader.model().operator_codes.iter();
    let mut custom = codes.filter(|code| code.is_custom());
    let needs_kernel = custom.any(|code| {
        code.custom_code.as_deref().is_some_and(|name| !runtime::is_builtin_custom(name))
    });
    if needs_kernel {
        let message =
            "has custom operators, which onert 0.1.0 runs from the folder of a package only";
        findings.push(Diagnosis::warning("model/bare-custom", message).crashes(Stage::Prepare));
    }
}

/// Says what the name of a bare model does: onert takes the type from the extension.
pub(super) fn named(path: &Path, findings: &mut Diagnoses) {
    let extension = path.extension().map(OsStr::to_string_lossy);
    let known = [Schema::Circle, Schema::Tflite].map(|schema| schema.to_string());
    if extension.as_ref().is_some_and(|found| known.iter().any(|known| known == found)) {
        return;
    }
    let (message, failed) = match extension {
        Some(extension) => (
            format!("has the extension {:?}", text::short(&extension)),
            format!("Failed to open {extension} loader"),
        ),
        None => ("has no extension".to_owned(), "invalid path".to_owned()),
    };
    let message =
        format!("{message}, expected .circle or .tflite, by which onert 0.1.0 knows the type");
    findings.push(Diagnosis::warning("model/onert-file-name", message).load_fails(failed));
}

fn identity(reader: &Reader, findings: &mut Diagnoses) {
    let model = reader.model();
    if reader.identifier() != Some(model.schema) {
        let message = format!("is read as {}, but its identifier does not say so", model.schema);
        findings.push(Diagnosis::error("model/identifier", message).ignored());
    }
    let expected = model.schema.version();
    if model.version != expected {
        let message =
            format!("version is {}, expected {expected} in {}", model.version, model.schema);
        findings.push(Diagnosis::warning("model/version", message).ignored());
    }
    if model.subgraphs.is_empty() {
        let diagnosis = Diagnosis::error("model/no-graph", "has no graph, expected at least one");
        findings.push(diagnosis.load_fails("The number of subgraphs cannot exceed 65535"));
    }
    if model.subgraphs.len() > MAX_GRAPHS {
        let message =
            format!("has {} graphs, but onert can have {MAX_GRAPHS}", model.subgraphs.len());
        let diagnosis = Diagnosis::warning("model/graph-count", message);
        findings.push(diagnosis.load_fails("The number of subgraphs cannot exceed 65535"));
    }
    if let Some(offset) = reader.unknown_field() {
        let message = format!("has unknown fields in the table at byte {offset}");
        let diagnosis = Diagnosis::note("model/unknown-field", message).ignored();
        findings.push(diagnosis.at(|at| at.offset(offset)));
    }
    trailing(reader, findings);
}

/// Bytes that belong neither to the tables nor to a buffer outside of them.
fn trailing(reader: &Reader, findings: &mut Diagnoses) {
    let (end, len) = (reader.end(), reader.source().len());
    if len <= end.saturating_add(PADDING) {
        return;
    }
    let diagnosis = if reader.has_files().unwrap_or_default() {
        let message = format!("has an archive of associated files behind byte {end}");
        Diagnosis::note("model/associated-files", message)
    } else {
        let bytes = len.saturating_sub(end);
        let message = format!("has {bytes} bytes behind byte {end}, which nothing refers to");
        Diagnosis::note("model/trailing-bytes", message)
    };
    findings.push(diagnosis.at(|at| at.offset(end)).ignored());
}

fn check_code(model: &Model, index: usize, code: &OperatorCode, findings: &mut Diagnoses) {
    let at = |diagnosis: Diagnosis| diagnosis.path(format!("operator code {index}"));
    let (operator, number) = (code.operator(), code.operator().code());
    let both = (code.deprecated_builtin_code, code.builtin_code.code());
    if operator == BuiltinOperator::PLACEHOLDER_FOR_GREATER_OP_CODES {
        let message =
            format!("has the codes {} and {}, which stand for no operator", both.0, both.1);
        let failed = "Unsupported operation: PLACEHOLDER_FOR_GREATER_OP_CODES";
        findings.push(at(Diagnosis::error("model/operator-code", message)).load_fails(failed));
        return;
    }
    if let Some(message) = conflict(model.schema, code) {
        findings.push(at(Diagnosis::error("model/operator-code-conflict", message)));
    }
    if operator.name().is_none() {
        let message = format!("has code {number}, which is not known");
        let diagnosis = Diagnosis::error("model/operator-code", message);
        findings.push(at(diagnosis).load_fails("Unsupported operation: "));
    } else if number < 0 && model.schema == Schema::Tflite {
        let message = format!("has code {number}, {operator}, which only Circle has");
        let diagnosis = Diagnosis::error("model/operator-code", message);
        findings.push(at(diagnosis).load_fails("Unsupported operation: "));
    }
    if code.is_custom() && code.custom_code.as_deref().unwrap_or_default().is_empty() {
        let message = "is CUSTOM and has no custom_code, which is its name";
        findings.push(at(Diagnosis::error("model/custom-code", message)).crashes(Stage::Load));
    }
    if code.version < 1 {
        let message = format!("has version {}, expected 1 or more", code.version);
        findings.push(at(Diagnosis::warning("model/operator-version", message)).ignored());
    }
}

/// Says in what the two numbers of a code disagree.
fn conflict(schema: Schema, code: &OperatorCode) -> Option<String> {
    let (operator, in_tflite) = (code.operator(), code.operator_in_tflite());
    let (deprecated, builtin) = (code.deprecated_builtin_code, code.builtin_code.code());
    // Files of Circle before 0.4 have only the deprecated one, and TFLite reads none of Circle.
    let is_old = schema == Schema::Circle && builtin == 0;
    if operator != in_tflite && !is_old {
        return Some(format!(
            "has the codes {deprecated} and {builtin}, of which onert makes {operator} and TFLite \
             {in_tflite}"
        ));
    }
    let expected = i8::try_from(builtin.min(127)).ok();
    (builtin != 0 && expected != Some(deprecated)).then(|| {
        format!(
            "has the codes {deprecated} and {builtin}, of which onert makes {operator}; for {} they \
             would be {} and {builtin}",
            code.builtin_code,
            builtin.min(127)
        )
    })
}

fn metadata(reader: &Reader, findings: &mut Diagnoses) {
    let model = reader.model();
    let mut seen = BTreeSet::new();
    for (index, entry) in model.metadata.iter().enumerate() {
        let name = text::short(entry.name.as_deref().unwrap_or_default()).into_owned();
        let path = format!("metadata {index} {name:?}");
        let at = |diagnosis: Diagnosis| diagnosis.path(&path);
        let is_first = seen.insert(entry.name.as_deref());
        if entry.name.is_none() {
            findings.push(at(Diagnosis::warning("model/metadata-name", "has no name")));
        } else if !is_first {
            let message = "has the name of an entry before";
            findings.push(at(Diagnosis::warning("model/metadata-name", message)));
        }
        let failed = "Metadata buffer is not found";
        match model.buffer(entry.buffer) {
            None => {
                let count = model.buffers.len();
                let message = format!("has buffer {}, but the model has {count}", entry.buffer);
                findings.push(
                    at(Diagnosis::error("model/metadata-buffer", message)).load_fails(failed),
                );
            }
            Some(buffer) if buffer.data.is_empty() => {
                let message =
                    format!("has buffer {}, which has no bytes in the tables", entry.buffer);
                findings.push(
                    at(Diagnosis::warning("model/metadata-buffer", message)).load_fails(failed),
                );
            }
            Some(_) if is_first && entry.name.as_deref() == Some(TrainingInfo::METADATA) => {
                training::check(reader, &path, findings);
            }
            Some(_) => {}
        }
    }
}

fn signatures(model: &Model, findings: &mut Diagnoses) {
    let mut seen = BTreeSet::new();
    // Many signatures may be of one graph with many inputs.
    let mut interfaces = BTreeMap::new();
    for (index, signature) in model.signatures.iter().enumerate() {
        let key = text::short(signature.key.as_deref().unwrap_or_default()).into_owned();
        let path = format!("signature {index} {key:?}");
        if signature.key.is_none() {
            let message = "has no key, by which it would be called";
            findings.push(Diagnosis::warning("model/signature-key", message).path(&path));
        } else if !seen.insert(signature.key.as_deref()) {
            let message = "has the key of a signature before";
            findings.push(Diagnosis::warning("model/signature-key", message).path(&path));
        }
        let graph = usize::try_from(signature.subgraph_index).unwrap_or(usize::MAX);
        let Some(graph) = model.subgraphs.get(graph) else {
            let count = model.subgraphs.len();
            let message =
                format!("is of graph {}, but the model has {count}", signature.subgraph_index);
            findings.push(Diagnosis::error("model/signature-graph", message).path(&path));
            continue;
        };
        let interface =
            || [&graph.inputs, &graph.outputs].map(|list| list.iter().copied().collect());
        let [inputs, outputs] =
            interfaces.entry(signature.subgraph_index).or_insert_with(interface);
        let lists: [(&str, &[SignatureTensor], &BTreeSet<i32>); 2] =
            [("inputs", &signature.inputs, inputs), ("outputs", &signature.outputs, outputs)];
        for (side, named, of_graph) in lists {
            check_names(signature, side, named, of_graph, &path, findings);
        }
    }
}

/// Checks one side of a signature against the graph.
fn check_names(
    signature: &Signature,
    side: &str,
    named: &[SignatureTensor],
    of_graph: &BTreeSet<i32>,
    path: &str,
    findings: &mut Diagnoses,
) {
    let graph = signature.subgraph_index;
    let mut seen = BTreeSet::new();
    for (at, tensor) in named.iter().enumerate() {
        let name = text::short(tensor.name.as_deref().unwrap_or_default()).into_owned();
        if tensor.name.is_none() || !seen.insert(&tensor.name) {
            let message = format!("{side}[{at}] has the name {name:?}, expected one of its own");
            findings.push(Diagnosis::warning("model/signature-name", message).path(path));
        }
        let index = tensor.tensor_index;
        if !i32::try_from(index).is_ok_and(|index| of_graph.contains(&index)) {
            let message = format!(
                "{side}[{at}] {name:?} is tensor {index}, which is not among the {side} of graph {graph}"
            );
            findings.push(Diagnosis::error("model/signature-tensor", message).path(path));
        }
    }
}

/// Graphs that onert has numbers for.
const MAX_GRAPHS: usize = 65_535;
