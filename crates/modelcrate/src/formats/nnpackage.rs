//! nnpackages, and Circle and TFLite models, described as any other file.

use std::collections::{BTreeMap, HashSet};

use nnpackage::{
    Error, File, Reader,
    model_archive::{Entry, Method},
};
use serde_json::{Value as Json, json};
use tensor_core::{At, Chain, Finding, Report};

use super::circle;
use crate::{FileSummary, Format, Summary};

super::described!(Circle?);

/// Describes a package: what its manifest says, its files, and the constants of all its models.
pub(crate) fn summary(reader: &Reader) -> Summary {
    let manifest = reader.manifest();
    let mut summary = Summary::new(Format::NnPackage, manifest.version.to_string());
    summary.metadata = metadata_of(reader);
    match reader.files() {
        Ok(files) => summary.files = files.map(|file| describe_file(reader, file)).collect(),
        Err(error) => report(&error, error.at(), &mut summary.findings),
    }
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
        circle::describe(model, &mut summary);
        for tensor in summary.tensors.iter_mut().skip(before).filter(|_| !is_only) {
            tensor.model = Some(path.to_owned());
        }
    }
    summary
}

fn report(error: &Error, at: At, findings: &mut Report) {
    findings.add(Finding::error(error.rule(), Chain(error).to_string()).at(at));
}

/// How many models are listed: a manifest may name one without end.
const LISTED: usize = 1000;

pub(crate) fn metadata_of(reader: &Reader) -> BTreeMap<String, Json> {
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
