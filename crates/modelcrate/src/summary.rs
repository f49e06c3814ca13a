use std::collections::BTreeMap;

use tensor_core::{DType, Report, Severity, Shape};

use crate::{Format, Stats};

/// What is looked at beyond the document.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SummaryOptions {
    /// Compute the SHA-256 of the decoded bytes of every tensor.
    pub digests: bool,
    /// Compute the range, the mean, and the numbers of NaN and infinite elements.
    pub stats: bool,
}

impl SummaryOptions {
    /// Sets whether digests are computed.
    #[must_use]
    pub const fn digests(mut self, digests: bool) -> Self {
        self.digests = digests;
        self
    }

    /// Sets whether statistics are computed.
    #[must_use]
    pub const fn stats(mut self, stats: bool) -> Self {
        self.stats = stats;
        self
    }
}

/// What is in a file, described the same way for every format.
#[derive(Clone, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The format.
    pub format: Format,
    /// The version of the format, as the file says or shows it.
    pub version: String,
    /// Free-form metadata of the file, by key.
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// The tensors, in the order of the file.
    pub tensors: Vec<TensorSummary>,
    /// What was noticed on the way.
    pub findings: Report,
}

/// What a tensor is and where it is.
#[derive(Clone, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct TensorSummary {
    /// Its name.
    pub name: String,
    /// The type of its elements; `None` where that is unknown.
    pub dtype: Option<DType>,
    /// Its dimensions, outermost first.
    pub shape: Shape,
    /// The bytes of its decoded components; of the stored ones where only decoding would tell.
    pub bytes: u64,
    /// The bytes that it takes in the file, where that is another number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
    /// Where it starts, in bytes from the start of the file, where it is one piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// How it is stored, where it is not stored as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// How its components make it up, where it is not simply all elements in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// The SHA-256 of its decoded bytes, in lower-case hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Range and mean of its elements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<Stats>,
    /// Free-form metadata of the tensor, by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// Its components, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentSummary>,
}

/// What a component of a tensor is and where it is.
#[derive(Clone, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct ComponentSummary {
    /// What it is to its tensor.
    pub role: String,
    /// The type of its elements; `None` where that is unknown.
    pub dtype: Option<DType>,
    /// The bytes that it takes in the file.
    pub stored_bytes: u64,
    /// Where it starts, in bytes from the start of the file.
    pub offset: u64,
    /// How it is stored, where it is not stored as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The SHA-256 of its decoded bytes, in lower-case hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// What the findings say about a file as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing but notes.
    Valid,
    /// Readers put up with it, but someone should mend it.
    Warnings,
    /// It breaks the format's text, lies, or is unsafe to read.
    Invalid,
}

impl From<&Report> for Verdict {
    fn from(report: &Report) -> Self {
        match report.worst() {
            None | Some(Severity::Note) => Self::Valid,
            Some(Severity::Warning) => Self::Warnings,
            Some(Severity::Error) => Self::Invalid,
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Valid => "valid",
            Self::Warnings => "warnings",
            Self::Invalid => "invalid",
        })
    }
}
