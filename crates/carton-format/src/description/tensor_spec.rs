//! What a model takes and gives. Format text: "`carton.toml`", `[[input]]` and `[[output]]`.

use tensor_core::{
    DType, Limit, Limits,
    symbolic::{Dim, SymbolicShape},
};

use crate::{
    DocumentFault, Result,
    tensor::dtype,
    text::emit::{Emitter, List, Text},
    text::{Kind, Node, Unknown},
};

/// An input or an output of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorSpec {
    /// The name by which callers know it.
    pub name: String,
    /// The type of its elements, one of those that the format stores.
    pub dtype: DType,
    /// Its shape.
    pub shape: SymbolicShape,
    /// What it stands for.
    pub description: Option<String>,
    /// The name by which the runner knows it.
    pub internal_name: Option<String>,
}

impl TensorSpec {
    /// Makes a spec of the things that have to be known.
    #[must_use]
    pub fn new(name: impl Into<String>, dtype: DType, shape: SymbolicShape) -> Self {
        Self { name: name.into(), dtype, shape, description: None, internal_name: None }
    }

    pub(crate) fn parse<'d>(
        node: Node<'d>,
        limits: &Limits,
        unknown: &mut Unknown<'d>,
    ) -> Result<Self> {
        let mut table = node.table()?;
        let spec = Self {
            name: table.required("name")?.string()?.to_owned(),
            dtype: dtype_of(table.required("dtype")?)?,
            shape: shape(table.required("shape")?, limits)?,
            description: table.optional_string("description")?,
            internal_name: table.optional_string("internal_name")?,
        };
        table.finish(unknown);
        Ok(spec)
    }

    pub(crate) fn emit(&self, emitter: &mut Emitter) {
        // It was checked that there is one.
        emitter.text("name", &self.name).text("dtype", dtype::name(self.dtype).unwrap_or_default());
        match &self.shape {
            SymbolicShape::Any => emitter.text("shape", ANY),
            SymbolicShape::Symbol(symbol) => emitter.text("shape", symbol),
            SymbolicShape::Dims(dims) => emitter.pair("shape", List(dims.iter().map(dim_text))),
        };
        emitter
            .optional_text("description", self.description.as_deref())
            .optional_text("internal_name", self.internal_name.as_deref());
    }

    /// Checks that type and shape have a form in the document; gives the path of what has none,
    /// from the spec on, and why.
    pub(crate) fn check(&self) -> Result<(), (String, DocumentFault)> {
        let fault = |found: String, expected: &'static str| DocumentFault::Value {
            found,
            expected: expected.into(),
        };
        if dtype::name(self.dtype).is_none() {
            let (found, expected) = (self.dtype.to_string(), dtype::expected().into());
            return Err(("dtype".to_owned(), DocumentFault::Value { found, expected }));
        }
        let star = || "the symbol \"*\"".to_owned();
        let dims = match &self.shape {
            SymbolicShape::Symbol(symbol) if symbol == ANY => {
                return Err(("shape".to_owned(), fault(star(), "SymbolicShape::Any")));
            }
            SymbolicShape::Any | SymbolicShape::Symbol(_) => return Ok(()),
            SymbolicShape::Dims(dims) => dims,
        };
        dims.iter().enumerate().try_for_each(|(index, dim)| {
            let fault = match dim {
                Dim::Symbol(symbol) if symbol == ANY => fault(star(), "Dim::Any"),
                Dim::Fixed(elements) if i64::try_from(*elements).is_err() => {
                    fault(elements.to_string(), DIM)
                }
                Dim::Fixed(_) | Dim::Symbol(_) | Dim::Any => return Ok(()),
            };
            Err((format!("shape[{index}]"), fault))
        })
    }
}

fn dtype_of(node: Node<'_>) -> Result<DType> {
    dtype::parse(node.string()?).ok_or_else(|| node.fault(dtype::expected()))
}

fn shape(node: Node<'_>, limits: &Limits) -> Result<SymbolicShape> {
    match node.kind() {
        Kind::String(ANY) => Ok(SymbolicShape::Any),
        Kind::String(symbol) => Ok(SymbolicShape::Symbol(symbol.to_owned())),
        Kind::Array => {
            node.check_count("dimensions", node.array()?.len(), limits, Limit::Rank)?;
            Ok(SymbolicShape::Dims(node.list(dim)?))
        }
        _ => Err(node.fault("an array of dimensions, a symbol or \"*\"")),
    }
}

fn dim(node: Node<'_>) -> Result<Dim> {
    match node.kind() {
        Kind::String(ANY) => return Ok(Dim::Any),
        Kind::String(symbol) => return Ok(Dim::Symbol(symbol.to_owned())),
        Kind::Integer(integer) => u64::try_from(integer).ok().map(Dim::Fixed),
        _ => None,
    }
    .ok_or_else(|| node.fault(DIM))
}

fn dim_text(dim: &Dim) -> String {
    match dim {
        Dim::Fixed(elements) => elements.to_string(),
        Dim::Symbol(symbol) => Text(symbol).to_string(),
        Dim::Any => Text(ANY).to_string(),
    }
}

/// A symbol that stands for something else wherever it is used.
const ANY: &str = "*";

const DIM: &str = "a whole number from 0 to 9223372036854775807, a symbol or \"*\"";
