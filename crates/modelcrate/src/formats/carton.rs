//! Cartons, described as any other file.

use std::collections::BTreeMap;

use carton_format::{
    Description, Error, Example, File, Named, Place, Platform, Reader, Reference, SelfTest, Tensor,
    TensorKind, TensorSpec,
    model_archive::{self, Entry},
};
use serde_json::{Value as Json, json};
use tensor_core::{Chain, Extent, Finding, Report, Severity};

use crate::{FileSummary, Format, Port, Summary, TensorSummary};

super::described!(Carton?);

pub(crate) fn metadata_of(reader: &Reader) -> BTreeMap<String, Json> {
    reader.description().map(metadata).unwrap_or_default()
}

pub(crate) fn summary(reader: &Reader) -> Summary {
    let mut summary = Summary::new(Format::Carton, Description::SPEC_VERSION.to_string());
    summary.model_hash = Some(reader.model_hash().to_string());
    match reader.description() {
        Ok(description) => {
            summary.metadata = metadata(description);
            summary.inputs = ports(description.inputs.as_deref());
            summary.outputs = ports(description.outputs.as_deref());
        }
        Err(error) => report(&error, &mut summary.findings),
    }
    summary.files = reader.files().map(describe_file).collect();
    match reader.tensors() {
        Ok(tensors) => {
            for tensor in tensors {
                let described = describe(tensor);
                summary.tensors.push(described.unwrap_or_else(|error| {
                    report(&error, &mut summary.findings);
                    // What is known without reading it.
                    plain(tensor)
                }));
            }
        }
        Err(error) => report(&error, &mut summary.findings),
    }
    summary
}

/// What cannot be read is an error, but for what is somewhere else.
fn report(error: &Error, findings: &mut Report) {
    let severity = match error {
        Error::NotFetched { .. } => Severity::Note,
        _ => Severity::Error,
    };
    findings.add(Finding::new(severity, error.rule(), Chain(error).to_string()).at(error.at()));
}

fn describe_file(file: File<'_>) -> FileSummary {
    let mut summary = FileSummary::new(file.path());
    summary.sha256 = Some(file.sha256().to_string());
    summary.place = match file.place() {
        Place::Here => None,
        Place::Linked => Some("linked"),
        Place::Missing => Some("missing"),
    };
    summary.bytes = file.len().ok();
    if let Some(entry) = file.entry() {
        let info = entry.info();
        if info.kind == model_archive::Kind::Symlink {
            summary.target = entry.target().ok();
        } else if info.method != model_archive::Method::Stored {
            summary.encoding = Some(info.method.to_string());
            summary.stored_bytes = Some(info.stored_size);
        }
    }
    summary
}

fn plain(tensor: Tensor<'_>) -> TensorSummary {
    let mut summary = TensorSummary::new(tensor.name());
    summary.dtype = tensor.dtype();
    summary.shape = tensor.shape().cloned().unwrap_or_default();
    summary.layout = match tensor.kind() {
        TensorKind::Nested => Some(format!("nested, {} tensors", tensor.inner().count())),
        _ => None,
    };
    let names: Vec<&str> = tensor.inner().map(Tensor::name).collect();
    if !names.is_empty() {
        summary.metadata.insert("inner".to_owned(), json!(names));
    }
    let bytes = tensor.info().ok().and_then(|info| info.byte_len().ok());
    summary.bytes = bytes.unwrap_or_default();
    summary
}

fn describe(tensor: Tensor<'_>) -> carton_format::Result<TensorSummary> {
    let mut summary = plain(tensor);
    let Some(file) = tensor.file()? else { return Ok(summary) };
    if file.place() != Place::Here {
        summary.encoding = Some("linked".to_owned());
        return Ok(summary);
    }
    if tensor.kind() == TensorKind::Strings {
        summary.bytes = file.len().unwrap_or_default();
    }
    summary.offset = tensor.extent()?.map(Extent::offset);
    if let Some(info) = file.entry().map(Entry::info)
        && info.method != model_archive::Method::Stored
    {
        summary.encoding = Some(info.method.to_string());
        summary.stored_bytes = Some(info.stored_size);
    }
    Ok(summary)
}

fn ports(specs: Option<&[TensorSpec]>) -> Vec<Port> {
    let port = |spec: &TensorSpec| {
        let mut port = Port::new(&*spec.name, spec.dtype.to_string(), &spec.shape);
        port.description.clone_from(&spec.description);
        port.internal_name.clone_from(&spec.internal_name);
        port
    };
    specs.unwrap_or_default().iter().map(port).collect()
}

fn metadata(description: &Description) -> BTreeMap<String, Json> {
    let mut metadata = BTreeMap::new();
    for (key, value) in [
        ("model_name", &description.model_name),
        ("short_description", &description.short_description),
        ("model_description", &description.model_description),
        ("license", &description.license),
        ("repository", &description.repository),
        ("homepage", &description.homepage),
    ] {
        if let Some(value) = value {
            metadata.insert(key.to_owned(), json!(value));
        }
    }
    if let Some(platforms) = &description.required_platforms {
        let platforms: Vec<&str> = platforms.iter().map(Platform::as_str).collect();
        metadata.insert("required_platforms".to_owned(), json!(platforms));
    }
    let runner = &description.runner;
    metadata.insert("runner_name".to_owned(), json!(runner.name));
    let version = runner.required_framework_version.as_str();
    metadata.insert("required_framework_version".to_owned(), json!(version));
    if let Some(version) = runner.compat_version {
        metadata.insert("runner_compat_version".to_owned(), json!(version));
    }
    if let Some(options) = &runner.options {
        let options: serde_json::Map<String, Json> =
            options.iter().map(|(name, value)| (name.to_owned(), option(value))).collect();
        metadata.insert("runner_options".to_owned(), Json::Object(options));
    }
    if let Some(tests) = &description.self_tests {
        let tensor = |name: &String| Reference::Tensor(name.clone()).to_string();
        let test = |test: &SelfTest| {
            json!({
                "name": test.name,
                "description": test.description,
                "inputs": named(&test.inputs, tensor),
                "expected_out": test.expected_out.as_ref().map(|side| named(side, tensor)),
            })
        };
        metadata.insert("self_tests".to_owned(), tests.iter().map(test).collect());
    }
    if let Some(examples) = &description.examples {
        let side = |side: &Option<Named<Reference>>| {
            side.as_ref().map(|side| named(side, Reference::to_string))
        };
        let example = |example: &Example| {
            json!({
                "name": example.name,
                "description": example.description,
                "inputs": side(&example.inputs),
                "sample_out": side(&example.sample_out),
            })
        };
        metadata.insert("examples".to_owned(), examples.iter().map(example).collect());
    }
    metadata
}

fn named<V>(values: &Named<V>, text: impl Fn(&V) -> String) -> Json {
    values.iter().map(|(name, value)| (name.to_owned(), json!(text(value)))).collect()
}

fn option(value: &carton_format::OptionValue) -> Json {
    use carton_format::OptionValue;
    match value {
        OptionValue::Integer(value) => json!(value),
        OptionValue::Float(value) if value.is_finite() => json!(value),
        OptionValue::Float(value) => json!({ "$float": value.to_string() }),
        OptionValue::String(value) => json!(value),
        OptionValue::Boolean(value) => json!(value),
    }
}
