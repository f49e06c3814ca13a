//! What differs between two files of any formats.

use std::{collections::BTreeMap, num::NonZeroUsize};

use serde_json::Value;
use tensor_core::{
    Chain, Shape, TensorView,
    compare::{Comparison, Tolerance, compare},
    parallel,
};

use crate::{NamedTensor, Result, TensorSet, weights::ElementType};

/// What differs between two sets of tensors.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Diff {
    /// Metadata that are different, by key: those of the first file and of the second.
    pub metadata: BTreeMap<String, (Option<Value>, Option<Value>)>,
    /// Tensors that are different, in the order of names.
    pub tensors: Vec<TensorDiff>,
    /// How many tensors are the same.
    pub same: u64,
}

/// What differs between two tensors.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TensorDiff {
    /// The name in the first file; `None` where it is only in the second.
    pub old: Option<String>,
    /// The name in the second file; `None` where it is only in the first.
    pub new: Option<String>,
    /// What is different.
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
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// It is in the second file only.
    Added,
    /// It is in the first file only.
    Removed,
    /// Its shape is another.
    Shape {
        /// In the first file.
        old: Shape,
        /// In the second.
        new: Shape,
    },
    /// Its element type is another; how far the values are apart, where they are numbers.
    ElementType {
        /// In the first file.
        old: ElementType,
        /// In the second.
        new: ElementType,
        /// Of the values.
        values: Option<Comparison>,
    },
    /// Values are different.
    Values(Comparison),
    /// Bytes are different, of elements that are not numbers here.
    Bytes,
    /// They cannot be compared.
    Unknown {
        /// Why.
        reason: String,
    },
}

impl Diff {
    /// Tells whether nothing is different.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.metadata.is_empty() && self.tensors.is_empty()
    }
}

impl TensorSet<'_> {
    /// Compares with another file. A tensor is compared with the one of the name that `map` makes of its
    /// name; of several that get one name the first is, and the others are [`Change::Unknown`].
    ///
    /// # Errors
    ///
    /// Where a tensor cannot be read.
    pub fn diff(
        &self,
        new: &TensorSet<'_>,
        map: impl Fn(&str) -> String,
        threads: NonZeroUsize,
        progress: impl Fn(u64) + Sync,
    ) -> Result<Diff> {
        let mut pairs: BTreeMap<String, (Option<&NamedTensor<'_>>, Option<&NamedTensor<'_>>)> =
            BTreeMap::new();
        let mut diff =
            Diff { metadata: differences(self.metadata(), new.metadata()), ..Diff::default() };
        for tensor in self.tensors() {
            let name = map(tensor.name());
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
        let pairs: Vec<_> = pairs.into_values().collect();
        let changes = parallel::map(&pairs, threads, |(old, new)| match (old, new) {
            (Some(old), Some(new)) => old.diff(new, &progress),
            (Some(_), None) => Ok(Some(Change::Removed)),
            (None, _) => Ok(Some(Change::Added)),
        });
        for ((old, new), change) in pairs.iter().zip(changes) {
            let name =
                |tensor: &Option<&NamedTensor<'_>>| tensor.map(|tensor| tensor.name().to_owned());
            match change? {
                Some(change) => {
                    diff.tensors.push(TensorDiff { old: name(old), new: name(new), change });
                }
                None => diff.same = diff.same.saturating_add(1),
            }
        }
        Ok(diff)
    }
}

fn differences(
    old: &BTreeMap<String, Value>,
    new: &BTreeMap<String, Value>,
) -> BTreeMap<String, (Option<Value>, Option<Value>)> {
    let keys = old.keys().chain(new.keys()).filter(|key| old.get(*key) != new.get(*key));
    keys.map(|key| (key.clone(), (old.get(key).cloned(), new.get(key).cloned()))).collect()
}

impl NamedTensor<'_> {
    /// Says how another tensor is different; `None` where it is not.
    fn diff(&self, new: &NamedTensor<'_>, progress: impl Fn(u64)) -> Result<Option<Change>> {
        let ((old_type, old_shape), (new_type, new_shape)) = match (self.elements(), new.elements())
        {
            (Ok(old), Ok(new)) => (old, new),
            (Err(error), _) | (_, Err(error)) => {
                return Ok(Some(Change::Unknown { reason: Chain(error).to_string() }));
            }
        };
        if old_shape != new_shape {
            return Ok(Some(Change::Shape { old: old_shape.clone(), new: new_shape.clone() }));
        }
        let (old, new) = (self.bytes()?, new.bytes()?);
        progress(old.len() as u64);
        if old_type == new_type && old == new {
            return Ok(None);
        }
        let values = match (old_type, new_type) {
            (ElementType::Plain(one), ElementType::Plain(other)) => {
                let one = TensorView::new(one, old_shape.clone(), &old)?;
                let other = TensorView::new(other, new_shape.clone(), &new)?;
                compare(&other, &one, Tolerance::default()).ok()
            }
            _ => None,
        };
        Ok(Some(match values {
            values if old_type != new_type => {
                Change::ElementType { old: old_type, new: new_type, values }
            }
            Some(values) => Change::Values(values),
            None => Change::Bytes,
        }))
    }
}
