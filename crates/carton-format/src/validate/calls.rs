//! What self tests and examples refer to, against the index and what is declared.

use std::{borrow::Cow, collections::HashMap};

use tensor_core::{
    DType, Finding, Report, Severity, Shape,
    symbolic::{Bindings, Dim, SymbolicShape},
    text,
};

use crate::{
    Description, Manifest, TensorSpec,
    description::{ParsedDescription, reference::Reference},
    paths::{CARTON_TOML, INDEX, MISC},
    tensor::{
        dtype::Name,
        index::{Content, Index, IndexEntry},
    },
    text::Key,
};

/// Declared inputs and outputs by name.
pub(super) struct Specs<'a> {
    pub(super) inputs: HashMap<&'a str, Spec<'a>>,
    pub(super) outputs: HashMap<&'a str, Spec<'a>>,
}

pub(super) struct Spec<'a> {
    spec: &'a TensorSpec,
    /// With short symbols: each call of a document holds and shows them again.
    shape: Cow<'a, SymbolicShape>,
}

impl<'a> Specs<'a> {
    pub(super) fn new(description: &'a Description) -> Self {
        let mut symbols = HashMap::new();
        let mut by_name = |specs: &'a Option<Vec<TensorSpec>>| {
            let specs = specs.iter().flatten();
            let specs = specs.map(|spec| {
                let shape = short(&spec.shape, &mut symbols);
                (&*spec.name, Spec { spec, shape })
            });
            specs.collect()
        };
        Self { inputs: by_name(&description.inputs), outputs: by_name(&description.outputs) }
    }
}

/// Replaces long symbols by their start and a number that tells them apart.
fn short<'a>(
    shape: &'a SymbolicShape,
    symbols: &mut HashMap<&'a str, String>,
) -> Cow<'a, SymbolicShape> {
    let mut renamed = |symbol: &'a str| -> String {
        let Cow::Owned(start) = text::short(symbol) else { return symbol.to_owned() };
        let number = symbols.len();
        symbols.entry(symbol).or_insert_with(|| format!("{start}{number}")).clone()
    };
    match shape {
        SymbolicShape::Symbol(symbol) => Cow::Owned(SymbolicShape::Symbol(renamed(symbol))),
        SymbolicShape::Dims(dims) => Cow::Owned(SymbolicShape::Dims(
            dims.iter()
                .map(|dim| match dim {
                    Dim::Symbol(symbol) => Dim::Symbol(renamed(symbol)),
                    other => other.clone(),
                })
                .collect(),
        )),
        SymbolicShape::Any => Cow::Borrowed(shape),
    }
}

/// The tensors of the index, as calls refer to them.
pub(super) struct Tensors<'a> {
    index: Option<&'a Index>,
    /// The element types inside each nested tensor.
    inner: HashMap<&'a str, Vec<DType>>,
}

impl<'a> Tensors<'a> {
    pub(super) fn new(index: Option<&'a Index>) -> Self {
        let mut inner: HashMap<&str, Vec<DType>> = HashMap::new();
        let entries = index.map(Index::entries).unwrap_or_default();
        for (index, entry) in index.into_iter().flat_map(|i| entries.iter().map(move |e| (i, e))) {
            let Content::Nested { inner: names } = &entry.content else { continue };
            let dtypes = inner.entry(&entry.name).or_default();
            for name in names {
                if let Some(IndexEntry { content: Content::Plain { dtype, .. }, .. }) =
                    index.entry(name)
                    && !dtypes.contains(dtype)
                {
                    dtypes.push(*dtype);
                }
            }
        }
        Self { index, inner }
    }

    fn entry(&self, name: &str) -> Option<&'a IndexEntry> {
        self.index?.entry(name)
    }
}

/// The path of a reference in `carton.toml`.
pub(super) struct Path {
    /// As the lines of the document know it.
    whole: String,
    /// With a short name, as messages show it, perhaps many times.
    short: String,
}

impl Path {
    pub(super) fn new(list: &str, number: usize, side: &str, name: &str) -> Self {
        let whole = format!("{list}[{number}].{side}.{}", Key(name));
        let short = match text::short(name) {
            Cow::Owned(start) => format!("{list}[{number}].{side}.{}", Key(&start)),
            Cow::Borrowed(_) => whole.clone(),
        };
        Self { whole, short }
    }
}

/// The tensors of one self test or example, whose shapes have to agree.
pub(super) struct Call<'r, 'a> {
    manifest: &'a Manifest,
    parsed: &'a ParsedDescription,
    tensors: &'r Tensors<'a>,
    bindings: Bindings,
    /// Of what is not as declared.
    severity: Severity,
    report: &'r mut Report,
}

impl<'r, 'a> Call<'r, 'a> {
    pub(super) fn new(
        manifest: &'a Manifest,
        parsed: &'a ParsedDescription,
        tensors: &'r Tensors<'a>,
        severity: Severity,
        report: &'r mut Report,
    ) -> Self {
        Self { manifest, parsed, tensors, bindings: Bindings::default(), severity, report }
    }

    pub(super) fn tensor(&mut self, path: &Path, name: &str, spec: Option<&Spec<'_>>) {
        // A broken or linked index has its own finding; without one there are no tensors.
        if self.tensors.index.is_none() && self.manifest.position(INDEX).is_some() {
            return;
        }
        let Some(entry) = self.tensors.entry(name) else {
            let message = format!("refers to tensor {name:?}, which {INDEX} does not have");
            return self.push(Severity::Error, "carton/unknown-tensor", path, message);
        };
        let Some(spec) = spec else { return };
        match &entry.content {
            Content::Plain { dtype, shape, .. } => {
                self.dtype(path, name, *dtype, spec);
                self.shape(path, shape, spec);
            }
            Content::Nested { .. } => {
                let dtypes = self.tensors.inner.get(name).into_iter().flatten();
                if let Some(dtype) = dtypes.copied().find(|dtype| *dtype != spec.spec.dtype) {
                    self.dtype(path, name, dtype, spec);
                }
            }
        }
    }

    fn dtype(&mut self, path: &Path, tensor: &str, found: DType, spec: &Spec<'_>) {
        let TensorSpec { name, dtype: expected, .. } = spec.spec;
        if found != *expected {
            let message = format!(
                "is tensor {tensor:?} of {}, but {name:?} is declared as {}",
                Name(found),
                Name(*expected)
            );
            self.push(self.severity, "carton/dtype", path, message);
        }
    }

    fn shape(&mut self, path: &Path, found: &Shape, spec: &Spec<'_>) {
        if let Err(error) = self.bindings.bind(&*path.short, &spec.shape, found) {
            self.push(self.severity, "carton/shape", path, error.to_string());
        }
    }

    pub(super) fn misc(&mut self, path: &Path, file: &str) {
        if self.manifest.position(&format!("{MISC}{file}")).is_none() {
            let reference = Reference::Misc(file.to_owned()).to_string();
            let message = format!("refers to {reference:?}, which is not in the carton");
            self.push(Severity::Error, "carton/unknown-misc", path, message);
        }
    }

    fn push(&mut self, severity: Severity, rule: &'static str, path: &Path, message: String) {
        let finding = Finding::new(severity, rule, message).entry(CARTON_TOML);
        self.report.add(finding.path(&*path.whole).line(self.parsed.line_of(&path.whole)));
    }
}
