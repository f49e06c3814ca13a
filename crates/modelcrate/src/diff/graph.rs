//! Operators, by what they make or by all that leads to them.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use super::{Diff, Differing};
use crate::{AnyReader, Format, OperatorSummary, Summary};

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
    let [old, new] = [old, new].map(|reader| Graph::of(reader.operators()));
    diff.operators = old.differences(&new);
}

struct Graph {
    operators: Vec<OperatorSummary>,
    /// Of each operator: it, and all that leads to it, whatever that is called.
    roots: Vec<u64>,
}

impl Graph {
    fn of(operators: Vec<OperatorSummary>) -> Self {
        let mut made: HashMap<(&str, &str), (u64, usize)> = HashMap::new();
        let mut roots = Vec::with_capacity(operators.len());
        for operator in &operators {
            let mut hasher = DefaultHasher::new();
            operator.operator.hash(&mut hasher);
            for (name, value) in &operator.attributes {
                (name, value.to_string()).hash(&mut hasher);
            }
            for input in &operator.inputs {
                let input = input.as_deref();
                input.map(|input| made.get(&(&*operator.graph, input))).hash(&mut hasher);
            }
            operator.outputs.len().hash(&mut hasher);
            let root = hasher.finish();
            for (place, output) in operator.outputs.iter().enumerate() {
                if let Some(output) = output {
                    made.insert((&operator.graph, output), (root, place));
                }
            }
            roots.push(root);
        }
        Self { operators, roots }
    }

    fn differences(&self, new: &Self) -> Vec<Differing<OperatorSummary>> {
        let mut differing = Vec::new();
        let mut by_output: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, operator) in new.operators.iter().enumerate().rev() {
            by_output.entry(identity(operator)).or_default().push(index);
        }
        let (mut removed, mut is_paired) = (Vec::new(), vec![false; new.operators.len()]);
        for (index, operator) in self.operators.iter().enumerate() {
            let found = by_output.get_mut(&identity(operator)).and_then(Vec::pop);
            let Some((at, other)) = found.and_then(|at| Some((at, new.operators.get(at)?))) else {
                removed.push(index);
                continue;
            };
            if let Some(paired) = is_paired.get_mut(at) {
                *paired = true;
            }
            if !is_alike(operator, other) {
                differing.push((operator, other));
            }
        }
        let mut by_root: HashMap<u64, u64> = HashMap::new();
        let added: Vec<usize> =
            (0..new.operators.len()).filter(|at| is_paired.get(*at) == Some(&false)).collect();
        for at in &added {
            let count = by_root.entry(new.root(*at)).or_default();
            *count = count.saturating_add(1);
        }
        let mut renamed: HashMap<u64, u64> = HashMap::new();
        let mut out: Vec<Differing<OperatorSummary>> = Vec::new();
        for at in removed {
            match by_root.get_mut(&self.root(at)).filter(|count| **count > 0) {
                Some(count) => {
                    *count = count.saturating_sub(1);
                    let count = renamed.entry(self.root(at)).or_default();
                    *count = count.saturating_add(1);
                }
                None => out.extend(self.operators.get(at).map(|old| only(Some(old), None))),
            }
        }
        out.extend(differing.into_iter().map(|(old, new)| only(Some(old), Some(new))));
        for at in added {
            match renamed.get_mut(&new.root(at)).filter(|count| **count > 0) {
                Some(count) => *count = count.saturating_sub(1),
                None => out.extend(new.operators.get(at).map(|new| only(None, Some(new)))),
            }
        }
        out
    }

    fn root(&self, at: usize) -> u64 {
        self.roots.get(at).copied().unwrap_or_default()
    }
}

fn only(
    old: Option<&OperatorSummary>,
    new: Option<&OperatorSummary>,
) -> Differing<OperatorSummary> {
    let called = |operator: &OperatorSummary| {
        let output = operator.outputs.iter().flatten().next();
        operator.name.clone().or_else(|| output.cloned()).unwrap_or_default()
    };
    let name = new.or(old).map(called).unwrap_or_default();
    Differing { name, old: old.cloned(), new: new.cloned() }
}

/// Returns what an operator is found by in another graph: its name, graph and outputs.
fn identity(operator: &OperatorSummary) -> (&Option<String>, &[Option<String>]) {
    (&operator.name, &operator.outputs)
}

fn is_alike(old: &OperatorSummary, new: &OperatorSummary) -> bool {
    (&old.operator, &old.inputs, &old.attributes) == (&new.operator, &new.inputs, &new.attributes)
}
