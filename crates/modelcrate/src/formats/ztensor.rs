//! zTensor files, described as any other.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use tensor_core::{Chain, Finding, Report};
use ztensor::{Attributes, Blob, Encoding, Format as Layout, Reader, Role, Tensor, Value};

use crate::{ComponentSummary, Format, Summary, TensorSummary};

super::described!(ZTensor);

pub(crate) fn summary(reader: &Reader) -> Summary {
    let mut findings = Report::default();
    findings.extend(reader.recovery());
    if let Err(error) = reader.manifest().attributes() {
        findings.add(Finding::error(error.rule(), error.to_string()).at(error.at()));
    }
    let metadata = metadata_of(reader);
    let tensors = reader.tensors().map(|tensor| describe(tensor, &mut findings)).collect();
    let summary = Summary::new(Format::ZTensor, reader.manifest().version().to_owned());
    Summary { metadata, tensors, findings, ..summary }
}

pub(crate) fn metadata_of(reader: &Reader) -> BTreeMap<String, Json> {
    let mut metadata = metadata(reader.manifest().attributes().unwrap_or_default());
    if let Some(generator) = reader.manifest().generator() {
        metadata.entry("generator".to_owned()).or_insert_with(|| generator.into());
    }
    metadata
}

fn describe(tensor: Tensor<'_>, findings: &mut Report) -> TensorSummary {
    try_describe(tensor).unwrap_or_else(|error| {
        let at = error.at().tensor(tensor.name());
        findings.add(Finding::error(error.rule(), Chain(&error).to_string()).at(at));
        unreadable(tensor)
    })
}

/// Describes a tensor of which nothing but its name and shape can be made out.
fn unreadable(tensor: Tensor<'_>) -> TensorSummary {
    let mut summary = TensorSummary::new(tensor.name());
    if let Ok(object) = tensor.object() {
        let lens = object.components.iter().map(|(_, component)| component.length);
        summary.bytes = lens.fold(0, u64::saturating_add);
        summary.layout = Some(object.format.to_string());
        summary.shape = object.shape;
    }
    summary
}

fn try_describe(tensor: Tensor<'_>) -> ztensor::Result<TensorSummary> {
    let object = tensor.object()?;
    let dtype = tensor.info().ok().map(|info| info.dtype);
    let blobs = tensor.blobs()?;
    let stored = blobs.iter().map(|blob| blob.component().length).fold(0, u64::saturating_add);
    let decoded = blobs
        .iter()
        .map(Blob::decoded_len)
        .try_fold(0, |sum: u64, len| len.map(|len| sum.saturating_add(len)));
    let bytes = decoded.unwrap_or(stored);
    let mut summary = TensorSummary::new(tensor.name());
    summary.dtype = dtype;
    summary.shape = object.shape.clone();
    summary.bytes = bytes;
    summary.stored_bytes = (stored != bytes).then_some(stored);
    summary.metadata = metadata(tensor.attributes()?);
    match blobs.as_slice() {
        [data] if object.format == Layout::Dense => {
            summary.offset = Some(data.component().offset);
            summary.encoding = encoding(data);
            summary.logical_type = data.component().logical_type.clone();
            summary.digest = data.component().digest.clone();
        }
        blobs => {
            let main = blobs.iter().find(|blob| matches!(blob.role(), Role::Data | Role::Values));
            let main = main.and_then(|blob| blob.component().logical_type.clone());
            summary.logical_type = main.filter(|_| dtype.is_none());
            summary.layout = Some(object.format.to_string());
            summary.stored_elements = stored_elements(blobs);
            for blob in blobs {
                summary.components.push(ComponentSummary {
                    role: blob.role().to_string(),
                    dtype: blob.element_type().ok(),
                    stored_bytes: blob.component().length,
                    offset: blob.component().offset,
                    encoding: encoding(blob),
                    logical_type: blob.component().logical_type.clone(),
                    digest: blob.component().digest.clone(),
                    sha256: None,
                });
            }
        }
    }
    Ok(summary)
}

fn encoding(blob: &Blob<'_>) -> Option<String> {
    let encoding = &blob.component().encoding;
    (*encoding != Encoding::Raw).then(|| encoding.as_str().to_owned())
}

/// Returns how many elements a sparse tensor stores, where that can be told without reading them.
fn stored_elements(blobs: &[Blob<'_>]) -> Option<u64> {
    let values = blobs.iter().find(|blob| *blob.role() == Role::Values)?;
    values.decoded_len()?.checked_div(values.element_type().ok()?.width()?)
}

fn metadata(attributes: Option<Attributes>) -> BTreeMap<String, Json> {
    let attributes = attributes.unwrap_or_default();
    attributes.iter().map(|(key, value)| (key.to_owned(), to_json(value))).collect()
}

/// Writes a value as JSON; what JSON lacks becomes an object with one key that starts with `$`.
fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Integer(value) => match (u64::try_from(*value), i64::try_from(*value)) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => value.into(),
            _ => json!({ "$integer": value.to_string() }),
        },
        Value::Float(value) if value.is_finite() => (*value).into(),
        Value::Float(value) => json!({ "$float": value.to_string() }),
        Value::Text(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(to_json).collect(),
        Value::Map(pairs) => {
            let texts = pairs.iter().map(|(key, value)| match key {
                Value::Text(key) => Some((key.clone(), to_json(value))),
                _ => None,
            });
            match texts.collect::<Option<serde_json::Map<_, _>>>() {
                Some(map) => Json::Object(map),
                None => {
                    json!({ "$map": pairs.iter().map(|(k, v)| [to_json(k), to_json(v)]).collect::<Vec<_>>() })
                }
            }
        }
        Value::Tag(tag, value) => json!({ "$tag": [tag, to_json(value)] }),
        Value::Bytes(_) => json!({ "$bytes": value.to_string() }),
        other => json!({ "$cbor": other.to_string() }),
    }
}
