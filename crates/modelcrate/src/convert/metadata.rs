//! Metadata under the names that a format has for them.
//!
//! | meaning | `carton.toml` | GGUF | RTen | Circle, TFLite | safetensors, zTensor |
//! |---|---|---|---|---|---|
//! | name | `model_name` | `general.name` | | | `name` |
//! | description | `model_description` | `general.description` | `description` | `description` | `description` |
//! | licence | `license` | `general.license` | `license` | | `license` |
//! | repository | `repository` | `general.repo_url` | `code_repository` | | `repository` |
//! | home page | `homepage` | `general.url` | | | `homepage` |
//!
//! Any other key keeps its name. From GGUF to GGUF a value is copied as it is, whatever its type and
//! length. GGUF else has texts, truth values, numbers and lists of one of these; safetensors and
//! zTensor have texts; what is more is JSON in a text. npy and npz have no metadata.
//!
//! What is said of the file or of its graph, and not of the tensors, stays behind: what a carton says of
//! its runner, platforms, tests and examples; `general.alignment` of GGUF; `total_size` of an index of
//! shards; keys that are no names of zTensor 2, where that is the target; the signatures of a Circle or TFLite model; all of an nnpackage and of a PyTorch Live model;
//! `required_release` of RTen; `generator` of zTensor, and what its dense tensors hold beside their
//! elements. `Conversion::left_out` names these keys, and, where the target is another format, lists of
//! GGUF that are too long to be read into memory.

use std::collections::BTreeMap;

use serde_json::Value;

use super::target::Target;
use crate::{AnyReader, AnyTensor, Format, set::TensorSet, weights};

/// Metadata as a target has them.
#[derive(Debug, Default)]
pub(super) struct Carried {
    pub(super) values: BTreeMap<String, Carry>,
    pub(super) left_out: Vec<String>,
}

/// A value, or where in a GGUF file it stands with its type.
pub(super) type Carry = weights::Metadata;

/// Returns the name that what a key means has in safetensors and zTensor, whose keys are free: that of
/// the key itself, but for those of the table of the format.
#[must_use]
pub fn common_key(format: Format, key: &str) -> &str {
    KEYS.iter().find(|row| row.key(format) == Some(key)).map_or(key, |row| row.common)
}

/// Puts the metadata of a set under the names of a target.
pub(super) fn carry(set: &TensorSet<'_>, target: Target) -> Carried {
    let mut carried = Carried::default();
    let stored = |key: &str, value: &Value| match set.reader {
        Some(AnyReader::Weights(reader)) if target == Target::Gguf => {
            // Unless it was changed since.
            reader.stored_metadata(key).filter(|_| reader.metadata().get(key) == Some(value))
        }
        _ => None,
    };
    for (key, value) in set.metadata() {
        let name = set.format().map_or(&**key, |from| target.key(from, key));
        let stays = set.format().is_some_and(|from| stays(from, key))
            || (target == Target::Gguf && stays(Format::Gguf, name));
        let is_taken = name != key && set.metadata().contains_key(name);
        let value = match stored(key, value) {
            _ if stays || is_taken || !target.takes_key(name) => None,
            Some(stored) => Some(Carry::Stored(stored)),
            None => target.value(set.format(), value).map(Carry::Value),
        };
        match value {
            Some(value) => _ = carried.values.insert(name.to_owned(), value),
            None => carried.left_out.push(key.clone()),
        }
    }
    carried.left_out.extend(set.tensors().iter().flat_map(|tensor| {
        let keys = attributes(tensor.tensor());
        keys.into_iter().map(|key| format!("{}.{key}", tensor.name()))
    }));
    carried
}

/// Returns the keys of what a file says of one tensor, and the roles of what stands beside its
/// elements.
fn attributes(tensor: AnyTensor<'_>) -> Vec<String> {
    match tensor {
        #[cfg(feature = "ztensor")]
        AnyTensor::ZTensor(tensor) => {
            let attributes = tensor.attributes().ok().flatten().unwrap_or_default();
            let mut keys: Vec<_> = attributes.iter().map(|(key, _)| key.to_owned()).collect();
            if let Ok(object) = tensor.object()
                && object.format == ztensor::Format::Dense
            {
                let roles = object.components.iter().map(|(role, _)| role);
                keys.extend(
                    roles.filter(|role| **role != ztensor::Role::Data).map(ToString::to_string),
                );
            }
            keys
        }
        _ => Vec::new(),
    }
}

/// Tells whether a key says something of the file or the graph.
fn stays(from: Format, key: &str) -> bool {
    match from {
        Format::Carton => STAYS_IN_CARTON.contains(&key),
        Format::Circle | Format::TfLite => key == "signatures",
        Format::Gguf => key == "general.alignment",
        Format::NnPackage | Format::Ptl | Format::PtlSpec => true,
        Format::Npy | Format::Npz => false,
        Format::Rten => key == "required_release",
        Format::Safetensors => key == "total_size",
        Format::ZTensor => key == "generator",
    }
}

impl Target {
    /// Returns the name that it has for what a key of a format means.
    fn key(self, from: Format, key: &str) -> &str {
        let common = common_key(from, key);
        match KEYS.iter().find(|row| row.common == common) {
            Some(row) if self == Self::Gguf => row.gguf,
            _ => common,
        }
    }

    /// Tells whether a file of this format may have a key.
    fn takes_key(self, key: &str) -> bool {
        match (self, key) {
            #[cfg(feature = "ztensor")]
            (Self::ZTensor2, key) => ztensor::is_canonical_name(key),
            _ => true,
        }
    }

    /// Returns a value as a file of this format has it; `None` where it has no metadata, or the value
    /// was not read whole.
    fn value(self, from: Option<Format>, value: &Value) -> Option<Value> {
        let is_shortened = from == Some(Format::Gguf) && value.is_object();
        match self {
            _ if is_shortened => None,
            #[cfg(feature = "archive")]
            Self::Npz => None,
            Self::Npy => None,
            Self::Gguf if weights::has_value(value) => Some(value.clone()),
            _ => Some(text(value).into()),
        }
    }
}

/// Returns a text as it is, and any other value as JSON.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What formats call the same.
struct Row {
    common: &'static str,
    carton: &'static str,
    gguf: &'static str,
    rten: &'static str,
    circle: &'static str,
}

impl Row {
    fn key(&self, format: Format) -> Option<&'static str> {
        let key = match format {
            Format::Carton => self.carton,
            Format::Gguf => self.gguf,
            Format::Rten => self.rten,
            Format::Circle | Format::TfLite => self.circle,
            _ => self.common,
        };
        (!key.is_empty()).then_some(key)
    }
}

const KEYS: [Row; 5] = [
    Row { common: "name", carton: "model_name", gguf: "general.name", rten: "", circle: "" },
    Row {
        common: "description",
        carton: "model_description",
        gguf: "general.description",
        rten: "description",
        circle: "description",
    },
    Row {
        common: "license",
        carton: "license",
        gguf: "general.license",
        rten: "license",
        circle: "",
    },
    Row {
        common: "repository",
        carton: "repository",
        gguf: "general.repo_url",
        rten: "code_repository",
        circle: "",
    },
    Row { common: "homepage", carton: "homepage", gguf: "general.url", rten: "", circle: "" },
];

const STAYS_IN_CARTON: [&str; 7] = [
    "required_platforms",
    "runner_name",
    "required_framework_version",
    "runner_compat_version",
    "runner_options",
    "self_tests",
    "examples",
];
