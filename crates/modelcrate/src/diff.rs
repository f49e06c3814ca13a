//! What differs between two files of any formats.

use std::{
    collections::{BTreeMap, HashSet},
    num::NonZeroUsize,
};

use serde::Serialize;
use serde_json::Value;
use tensor_core::{
    Chain, Shape,
    compare::{Comparison, Tolerance},
    parallel,
};

use crate::{
    AnyReader, Content, Error, FileSummary, Format, NameMap, NamedTensor, OperatorSummary, Port,
    Result, Summary, SummaryOptions, TensorSet,
};

mod files;
mod graph;
mod values;

/// How files are compared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DiffOptions {
    /// How far values may be apart; where it is `None`, other bits are a difference.
    pub tolerance: Option<Tolerance>,
    /// What becomes of the names of the first file before they are looked for in the second.
    pub names: NameMap,
    /// Whether nothing but tensors is compared.
    pub tensors_only: bool,
    /// On how many threads values are compared.
    pub threads: NonZeroUsize,
}

impl Default for DiffOptions {
    fn default() -> Self {
        let (names, threads) = (NameMap::default(), parallel::available());
        Self { tolerance: None, names, tensors_only: false, threads }
    }
}

/// What differs between two files. What is the same is only counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Diff {
    /// Metadata, in the order of keys. Of files of different formats these are keys that both have;
    /// their values, and those of zTensor files, are compared as texts, as one may have nothing else.
    pub metadata: Vec<Differing<Value>>,
    /// Metadata that do not count: of files of different formats those that one alone has, and those
    /// that say how a file was written.
    pub apart: Vec<Differing<Value>>,
    /// What the model takes, where both formats say it alike.
    pub inputs: Vec<Differing<Port>>,
    /// What the model returns.
    pub outputs: Vec<Differing<Port>>,
    /// The files inside containers of one format, by their content.
    pub files: Vec<Differing<FileSummary>>,
    /// How many operators there are of each type, of graphs of one kind.
    pub operator_types: Vec<Differing<u64>>,
    /// Operators, by what they make, or else by all that leads to them.
    pub operators: Vec<Differing<OperatorSummary>>,
    /// Tensors, in the order of their names.
    pub tensors: Vec<TensorDiff>,
    /// How many tensors are the same.
    pub same: u64,
}

impl Diff {
    /// Tells whether nothing is different that counts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.metadata.is_empty()
            && self.inputs.is_empty()
            && self.outputs.is_empty()
            && self.files.is_empty()
            && self.operator_types.is_empty()
            && self.operators.is_empty()
            && self.tensors.is_empty()
    }

    /// Tells whether something could not be compared.
    #[must_use]
    pub fn has_unknown(&self) -> bool {
        self.tensors.iter().any(|tensor| matches!(tensor.change, Change::Unknown { .. }))
    }
}

/// Something that two files have under one name and is different.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Differing<T> {
    /// What it is called.
    pub name: String,
    /// What the first file has.
    pub old: Option<T>,
    /// What the second file has.
    pub new: Option<T>,
}

/// What differs between two tensors.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TensorDiff {
    /// The name in the first file; `None` where it is only in the second.
    pub old: Option<String>,
    /// The name in the second file; `None` where it is only in the first.
    pub new: Option<String>,
    /// What is different.
    #[serde(flatten)]
    pub change: Change,
}

impl TensorDiff {
    /// Returns the name in the second file, or else in the first.
    #[must_use]
    pub fn name(&self) -> &str {
        self.new.as_deref().or(self.old.as_deref()).unwrap_or_default()
    }
}

/// How a tensor differs from another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// It is in the second file only.
    Added,
    /// It is in the first file only.
    Removed,
    /// Its shape is another.
    Shape {
        /// In the first file.
        old_shape: Shape,
        /// In the second.
        new_shape: Shape,
    },
    /// Its element type or layout is another; how far the values are apart, where they are numbers.
    ElementType {
        /// In the first file.
        old_dtype: Content,
        /// In the second.
        new_dtype: Content,
        /// Of the values.
        #[serde(
            serialize_with = "values::serialize_option",
            skip_serializing_if = "Option::is_none"
        )]
        values: Option<Comparison>,
    },
    /// Values are different. Where no element is beyond the tolerance, their bits are, such as those
    /// of 0 and -0.
    Values {
        /// The shape of both, in which elements are counted.
        shape: Shape,
        /// How far.
        #[serde(serialize_with = "values::serialize")]
        values: Comparison,
    },
    /// Bytes are different, of elements that are not numbers here.
    Bytes {
        /// How many.
        bytes: u64,
        /// The first, counted from the start of the tensor.
        first: u64,
    },
    /// They cannot be compared.
    Unknown {
        /// Why.
        reason: String,
    },
}

impl AnyReader {
    /// Compares with another file: document, graph, files inside and tensors.
    ///
    /// Of tensors as for [`TensorSet::diff`]. Inputs, outputs, files and operators are compared where
    /// the formats say the same of them. A tensor is compared where `is_meant` says so of its name in
    /// either file.
    ///
    /// # Errors
    ///
    /// Where the list of tensors or a file inside cannot be read.
    pub fn diff(
        &self,
        new: &Self,
        options: &DiffOptions,
        is_meant: impl Fn(&str) -> bool,
        progress: impl Fn(u64) + Sync,
    ) -> Result<Diff> {
        let (mut old_set, mut new_set) = (self.tensor_set()?, new.tensor_set()?);
        old_set.retain(|name| is_meant(name) || is_meant(&options.names.apply(name)));
        let wanted = old_set.tensors().iter().map(|of| options.names.apply(of.name()));
        let wanted: HashSet<String> = wanted.collect();
        new_set.retain(|name| is_meant(name) || wanted.contains(name));
        let mut diff = old_set.diff(&new_set, options, progress)?;
        if !options.tensors_only {
            let [old, now] = [self, new].map(|of| of.summary(SummaryOptions::default()));
            diff.add_metadata(&old, &now);
            diff.add_methods(&old, &now);
            diff.add_ports(&old, &now);
            diff.files = files::differences(self, new, &old, &now)?;
            graph::compare(&mut diff, (self, &old), (new, &now));
        }
        Ok(diff)
    }
}

impl Diff {
    fn add_metadata(&mut self, old: &Summary, new: &Summary) {
        let is_one_format = old.format == new.format;
        let has_types = is_one_format && old.format != Format::ZTensor;
        for differing in differences(&old.metadata, &new.metadata, |old, new| {
            old == new || !has_types && text(old) == text(new)
        }) {
            let is_shared = differing.old.is_some() && differing.new.is_some();
            let counts = is_one_format || is_shared;
            if counts && !OF_WRITING.contains(&&*differing.name) {
                self.metadata.push(differing);
            } else {
                self.apart.push(differing);
            }
        }
    }

    /// Adds the methods where they differ, as one key: their names need not be unique.
    fn add_methods(&mut self, old: &Summary, new: &Summary) {
        if old.format == new.format && old.methods != new.methods {
            let [old, new] = [old, new].map(|of| {
                of.methods.iter().map(|method| Value::from(&*method.signature)).collect()
            });
            self.metadata.push(Differing {
                name: "methods".to_owned(),
                old: Some(old),
                new: Some(new),
            });
        }
    }

    fn add_ports(&mut self, old: &Summary, new: &Summary) {
        if old.format == new.format || graph::is_one_kind(old.format, new.format) {
            self.inputs = ports(&old.inputs, &new.inputs);
            self.outputs = ports(&old.outputs, &new.outputs);
        }
    }
}

fn ports(old: &[Port], new: &[Port]) -> Vec<Differing<Port>> {
    let places = 0..old.len().max(new.len());
    let pairs = places.map(|place| (old.get(place), new.get(place)));
    let differing = pairs.filter(|(old, new)| old != new);
    differing
        .map(|(old, new)| {
            let name = new.or(old).map(|port| port.name.clone()).unwrap_or_default();
            Differing { name, old: old.cloned(), new: new.cloned() }
        })
        .collect()
}

/// Returns what two files do not have alike, by name.
fn differences<T: Clone>(
    old: &BTreeMap<String, T>,
    new: &BTreeMap<String, T>,
    is_same: impl Fn(&T, &T) -> bool,
) -> Vec<Differing<T>> {
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let pairs = names.into_iter().map(|name| (name, old.get(name), new.get(name)));
    let differing = pairs.filter(|(_, old, new)| match (old, new) {
        (Some(old), Some(new)) => !is_same(old, new),
        _ => true,
    });
    differing
        .map(|(name, old, new)| Differing {
            name: name.clone(),
            old: old.cloned(),
            new: new.cloned(),
        })
        .collect()
}

/// Writes a value as a format has it that knows texts alone.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Two tensors that are to be compared.
type Pair<'s, 'a> = (Option<&'s NamedTensor<'a>>, Option<&'s NamedTensor<'a>>);

impl<'a> TensorSet<'a> {
    /// Compares the tensors with those of another file. A tensor is compared with the one of the
    /// name that the options make of its name; of several that get one name the first is, and the
    /// others are [`Change::Unknown`], as are those that cannot be read.
    ///
    /// Values are read piece by piece where they stand in a file as they are, or can be decoded so.
    ///
    /// # Errors
    ///
    /// None so far.
    pub fn diff(
        &self,
        new: &TensorSet<'_>,
        options: &DiffOptions,
        progress: impl Fn(u64) + Sync,
    ) -> Result<Diff> {
        let mut diff = Diff::default();
        let mut pairs: BTreeMap<String, Pair<'_, '_>> = BTreeMap::new();
        for tensor in self.tensors() {
            let name = options.names.apply(tensor.name());
            let reason = format!("another tensor is compared with {name:?}");
            let pair = pairs.entry(name).or_default();
            if pair.0.is_none() {
                pair.0 = Some(tensor);
                continue;
            }
            let (old, change) = (Some(tensor.name().to_owned()), Change::Unknown { reason });
            diff.tensors.push(TensorDiff { old, new: None, change });
        }
        for tensor in new.tensors() {
            pairs.entry(tensor.name().to_owned()).or_default().1 = Some(tensor);
        }
        let pairs: Vec<Pair<'_, '_>> = pairs.into_values().collect();
        let changes = values::compare(&pairs, options, &progress);
        let name = |tensor: &Option<&NamedTensor<'_>>| tensor.map(|of| of.name().to_owned());
        for ((old, new), change) in pairs.iter().zip(changes) {
            let change = change.unwrap_or_else(|error| Some(unknown(&error)));
            match change {
                Some(change) => {
                    diff.tensors.push(TensorDiff { old: name(old), new: name(new), change });
                }
                None => diff.same = diff.same.saturating_add(1),
            }
        }
        Ok(diff)
    }
}

fn unknown(error: &Error) -> Change {
    Change::Unknown { reason: Chain(error).to_string() }
}

/// Metadata that say how a file was written, not what is in it.
const OF_WRITING: [&str; 3] = ["container", "generator", "required_release"];
