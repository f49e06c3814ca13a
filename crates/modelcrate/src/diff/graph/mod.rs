//! Operators of two files: which are the same, and what differs about the others.
//!
//! An operator is looked for by its names, then by all that leads to it, whatever that is called, and
//! then by its place among others. What was found so may still differ: in what it computes, where it
//! is, or what it reads.

mod operators;
mod pairs;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};

use self::{operators::Operators, pairs::Pairs};
use super::{Diff, Differing};
use crate::{AnyReader, Format, OperatorSummary, Summary, graph::Graph};

/// Graphs that have the same operators and tell of them alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Circle,
    Ptl,
    Rten,
}

/// Tells whether files of two formats have graphs that can be compared.
pub(super) fn is_one_kind(old: Format, new: Format) -> bool {
    kind(old).is_some() && kind(old) == kind(new)
}

const fn kind(format: Format) -> Option<Kind> {
    match format {
        Format::Circle | Format::TfLite | Format::NnPackage => Some(Kind::Circle),
        Format::Ptl => Some(Kind::Ptl),
        Format::Rten => Some(Kind::Rten),
        _ => None,
    }
}

/// Compares the operators of two files, where both have graphs of one kind.
pub(super) fn compare(
    diff: &mut Diff,
    (old, old_summary): (&AnyReader, &Summary),
    (new, new_summary): (&AnyReader, &Summary),
) {
    if !is_one_kind(old_summary.format, new_summary.format) {
        return;
    }
    let types = |summary: &Summary| -> BTreeMap<String, u64> {
        summary.graph.as_ref().map(|graph| graph.by_operator.clone()).unwrap_or_default()
    };
    let (old_types, new_types) = (types(old_summary), types(new_summary));
    diff.operator_types = super::differences(&old_types, &new_types, |old, new| old == new);
    // What cannot be read is in the findings of a summary.
    let graphs = [old, new].map(|reader| Graph::of(reader).ok().flatten().unwrap_or_default());
    diff.operators = differences(&graphs, old_summary.format == Format::Ptl);
}

/// Returns how the operators of two files differ. What a graph gives back is one more operator, but
/// for that of a model, where it is among its outputs.
fn differences([old, new]: &[Graph; 2], are_methods: bool) -> Vec<Differing<OperatorSummary>> {
    let mut sides = [Operators::of(old, are_methods), Operators::of(new, are_methods)];
    let [[given, others], [made, remade]] =
        [Operators::given, Operators::made].map(|names| sides.each_ref().map(names));
    let shared = Shared {
        given: given.intersection(&others).copied().collect(),
        made: made.intersection(&remade).copied().collect(),
    };
    sides.iter_mut().for_each(|side| side.find_roots(&shared.given));
    let [old, new] = &sides;
    Pairs::of(old, new, &shared).differences()
}

/// Names that both files have: they are those of the same things.
struct Shared<'g> {
    /// Of what no operator makes.
    given: HashSet<&'g str>,
    /// Of what operators make.
    made: HashSet<&'g str>,
}
