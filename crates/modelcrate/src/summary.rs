use std::{collections::BTreeMap, fmt, sync::Arc};

use tensor_core::{
    DType, Report, Severity, Shape,
    symbolic::{Dim, SymbolicShape},
};

use crate::{Format, Stats, quantization::QuantizationSummary};

/// What is looked at beyond the document.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct SummaryOptions {
    /// Compute the SHA-256 of the decoded bytes of every tensor.
    pub digests: bool,
    /// Compute statistics of the elements of every tensor.
    pub stats: bool,
    /// How many of the first elements of every tensor are shown.
    pub values: u64,
    select: Option<Select>,
}

/// Tells by its name whether a tensor is meant.
type Select = Arc<dyn Fn(&str) -> bool + Send + Sync>;

impl SummaryOptions {
    /// Sets whether digests are computed.
    #[must_use]
    pub fn digests(mut self, digests: bool) -> Self {
        self.digests = digests;
        self
    }

    /// Sets whether statistics are computed.
    #[must_use]
    pub fn stats(mut self, stats: bool) -> Self {
        self.stats = stats;
        self
    }

    /// Sets how many of the first elements of every tensor are shown.
    #[must_use]
    pub fn values(mut self, values: u64) -> Self {
        self.values = values;
        self
    }

    /// Leaves out all tensors but those whose names a test lets through: nothing of others is read.
    #[must_use]
    pub fn select(mut self, select: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.select = Some(Arc::new(select));
        self
    }

    /// Tells whether tensor data is read.
    pub(crate) const fn reads(&self) -> bool {
        self.digests || self.stats || self.values > 0
    }

    pub(crate) fn is_meant(&self, name: &str) -> bool {
        self.select.as_ref().is_none_or(|select| select(name))
    }
}

impl fmt::Debug for SummaryOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { digests, stats, values, select } = self;
        let mut out = f.debug_struct("SummaryOptions");
        out.field("digests", digests).field("stats", stats).field("values", values);
        out.field("select", &select.is_some()).finish()
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
    /// What identifies the model whatever its file, in lower-case hex digits, where the format has
    /// such a digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_hash: Option<String>,
    /// Metadata of the file, by key.
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// What the model takes, in order, where the format says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Port>,
    /// What the model returns, in order, where the format says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Port>,
    /// What can be called, where the format has methods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<MethodSummary>,
    /// What the graph of the model is made of, where the file has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphSummary>,
    /// The files inside the file, where the format is a container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileSummary>,
    /// The tensors, in the order of the file.
    pub tensors: Vec<TensorSummary>,
    /// What was noticed on the way.
    pub findings: Report,
}

impl Summary {
    /// Starts with nothing but format and version.
    pub(crate) fn new(format: Format, version: String) -> Self {
        Self {
            format,
            version,
            model_hash: None,
            metadata: BTreeMap::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            methods: Vec::new(),
            graph: None,
            files: Vec::new(),
            tensors: Vec::new(),
            findings: Report::default(),
        }
    }
}

/// An input or an output of a model.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The type of its elements, such as `f32`; one that has no such name as the format calls it.
    pub dtype: String,
    /// Its shape: a text for a symbol or, as `*`, for any shape; else a list with a number, a symbol
    /// or `*` for each dimension.
    pub shape: serde_json::Value,
    /// What its maker says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its name inside the model, where that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal_name: Option<String>,
}

impl Port {
    pub(crate) fn new(name: impl Into<String>, dtype: String, shape: &SymbolicShape) -> Self {
        let shape = shape_json(shape);
        Self { name: name.into(), dtype, shape, description: None, internal_name: None }
    }
}

/// Spells an element type as all formats do where it is one that they share, else as its own does.
#[cfg(any(feature = "circle", feature = "rten"))]
pub(crate) fn spelled(dtype: Option<DType>, own: &impl ToString) -> String {
    dtype.map_or_else(|| own.to_string(), |dtype| dtype.to_string())
}

/// Returns a shape as JSON: a text for a symbol or, as `*`, for any shape; else a list with a number,
/// a symbol or `*` for each dimension.
pub(crate) fn shape_json(shape: &SymbolicShape) -> serde_json::Value {
    match shape {
        SymbolicShape::Any => "*".into(),
        SymbolicShape::Symbol(symbol) => symbol.as_str().into(),
        SymbolicShape::Dims(dims) => dims
            .iter()
            .map(|dim| match dim {
                Dim::Fixed(elements) => serde_json::Value::from(*elements),
                Dim::Symbol(symbol) => symbol.as_str().into(),
                Dim::Any => "*".into(),
            })
            .collect(),
    }
}

/// A method of a model.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct MethodSummary {
    /// Its name.
    pub name: String,
    /// Its name and types as source has them, such as `forward(x: Tensor) -> Tensor`.
    pub signature: String,
    /// What it takes, where the file says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<TypedName>>,
    /// What it returns, where the file says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returns: Option<Vec<TypedName>>,
}

/// A parameter of a method, or a value that it returns.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct TypedName {
    /// Its name; of a value that is returned mostly empty.
    pub name: String,
    /// Its type, as the format writes it.
    #[serde(rename = "type")]
    pub type_name: String,
}

/// What a graph is made of, subgraphs included.
#[derive(Clone, Debug, Default, serde::Serialize)]
#[non_exhaustive]
pub struct GraphSummary {
    /// Graphs, the main one included.
    pub graphs: u64,
    /// Operators.
    pub operators: u64,
    /// Elements of all constants.
    pub parameters: u64,
    /// How many operators of each type there are, by name.
    pub by_operator: BTreeMap<String, u64>,
}

/// A file inside a container.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct FileSummary {
    /// Its path in the container.
    pub path: String,
    /// The bytes of its content, where they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The bytes that it takes in the container, where that is another number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
    /// How it is stored, where it is not stored as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// Where its content is, where that is not the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<&'static str>,
    /// What it leads to, where it is a symbolic link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The digest that the container has for it, in lower-case hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl FileSummary {
    pub(crate) fn new(path: &str) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }
}

/// What a tensor is and where it is.
#[derive(Clone, Debug, Default, serde::Serialize)]
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
    /// What its elements mean beyond their type, as the format says it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub logical_type: Option<String>,
    /// The digest that the file has for its stored bytes, as it stands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// How its components make it up, where it is not simply all elements in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// The SHA-256 of its decoded bytes, in lower-case hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// What its elements are like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<Stats>,
    /// What statistics are of, where that is not simply its elements, or why there are none:
    /// `dequantized`, `magnitudes`, or `nothing` and the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats_of: Option<String>,
    /// Its first elements, where they are asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<serde_json::Value>,
    /// How its whole numbers stand for real ones, where they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantization: Option<QuantizationSummary>,
    /// Which model it is in, where the file has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How many elements a sparse tensor stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_elements: Option<u64>,
    /// Free-form metadata of the tensor, by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// Its components, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentSummary>,
}

impl TensorSummary {
    /// Starts with nothing but a name.
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
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
    /// What its elements mean beyond their type, as the format says it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub logical_type: Option<String>,
    /// The digest that the file has for its stored bytes, as it stands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
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
    /// Readers tolerate it, but someone should mend it.
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

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Valid => "valid",
            Self::Warnings => "warnings",
            Self::Invalid => "invalid",
        })
    }
}
