//! Which operators are the same, and how those differ that are.

use std::{cell::RefCell, collections::HashMap, hash::Hash};

use imara_diff::{Algorithm, InternedInput};

use super::{
    Shared,
    operators::{Input, Operator, Operators, Origin},
};
use crate::{OperatorSummary, diff::Differing};

/// Which operator of one file is which of another.
pub(super) struct Pairs<'o, 'g> {
    old: &'o Operators<'g>,
    new: &'o Operators<'g>,
    shared: &'o Shared<'g>,
    /// Of each old operator its like, and of each new one.
    likes: [Vec<Option<usize>>; 2],
    /// New names of tensors, and old ones, of those that have not the same in both.
    renamed: RefCell<[HashMap<&'g str, &'g str>; 2]>,
}

impl<'o, 'g> Pairs<'o, 'g> {
    pub(super) fn of(
        old: &'o Operators<'g>,
        new: &'o Operators<'g>,
        shared: &'o Shared<'g>,
    ) -> Self {
        let likes = [vec![None; old.all.len()], vec![None; new.all.len()]];
        let mut pairs = Self { old, new, shared, likes, renamed: RefCell::default() };
        let named = |of: &Operator<'_>| of.is_named();
        pairs.pair(named, |of| (&*of.graph.name, of.name(), &*of.outputs));
        pairs.pair(|_| true, |of| (&*of.graph.name, of.root));
        pairs.pair(|_| true, |of| of.root);
        pairs.pair(named, |of| (of.name(), &*of.outputs));
        pairs.pair(|of| of.name().is_some(), |of| (&*of.graph.name, of.name()));
        pairs.pair(Operator::has_named_outputs, |of| (&*of.graph.name, &*of.outputs));
        pairs.align();
        pairs.pair(|of| !of.is_named(), |of| (&*of.graph.name, of.operator()));
        pairs
    }

    /// Pairs those of one key in their order.
    fn pair<K: Eq + Hash>(
        &mut self,
        is_meant: impl Fn(&Operator<'g>) -> bool,
        key: impl Fn(&'o Operator<'g>) -> K,
    ) {
        let (old, new) = (self.old, self.new);
        let mut places: HashMap<K, Vec<usize>> = HashMap::new();
        for at in self.left(1).into_iter().rev() {
            if let Some(operator) = new.get(at).filter(|of| is_meant(of)) {
                places.entry(key(operator)).or_default().push(at);
            }
        }
        for at in self.left(0) {
            if let Some(operator) = old.get(at).filter(|of| is_meant(of))
                && let Some(new) = places.get_mut(&key(operator)).and_then(Vec::pop)
            {
                self.set(at, new);
            }
        }
    }

    /// Pairs what is in the same order in both files, but for what was put in between, left out or
    /// replaced.
    fn align(&mut self) {
        let (old, new) = (self.left(0), self.left(1));
        let mut labels = InternedInput::default();
        labels.update_before(old.iter().map(|at| self.old.get(*at).map(Operator::label)));
        labels.update_after(new.iter().map(|at| self.new.get(*at).map(Operator::label)));
        let changes = imara_diff::Diff::compute(Algorithm::Histogram, &labels);
        let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let kept_old = (0..old.len()).filter(|at| !changes.is_removed(index(*at)));
        let kept_new = (0..new.len()).filter(|at| !changes.is_added(index(*at)));
        let mut found: Vec<(usize, usize)> = kept_old.zip(kept_new).collect();
        for hunk in changes.hunks() {
            let [before, after] = [hunk.before, hunk.after]
                .map(|range| range.filter_map(|at| usize::try_from(at).ok()));
            let kind = |of: Option<&Operator<'g>>| of.map(Operator::operator);
            found.extend(before.zip(after).filter(|(before, after)| {
                let [before, after] = [old.get(*before), new.get(*after)];
                let before = before.and_then(|at| self.old.get(*at));
                let after = after.and_then(|at| self.new.get(*at));
                kind(before) == kind(after)
            }));
        }
        for (at, other) in found {
            if let (Some(at), Some(other)) = (old.get(at), new.get(other)) {
                self.set(*at, *other);
            }
        }
    }

    /// Returns the operators of a side that have no like.
    fn left(&self, side: usize) -> Vec<usize> {
        let likes = self.likes.get(side).into_iter().flatten().enumerate();
        likes.filter(|(_, like)| like.is_none()).map(|(at, _)| at).collect()
    }

    fn like(&self, side: usize, at: usize) -> Option<usize> {
        self.likes.get(side)?.get(at).copied().flatten()
    }

    fn set(&mut self, old: usize, new: usize) {
        let [of_old, of_new] = &mut self.likes;
        if let (Some(of_old), Some(of_new)) = (of_old.get_mut(old), of_new.get_mut(new)) {
            (*of_old, *of_new) = (Some(new), Some(old));
        }
    }

    /// Returns what was removed, what was changed and what was added.
    pub(super) fn differences(&self) -> Vec<Differing<OperatorSummary>> {
        let (mut found, mut changed) = (Vec::new(), Vec::new());
        for (at, old) in self.old.all.iter().enumerate() {
            match self.like(0, at).and_then(|new| self.new.get(new)) {
                None => found.push(differing(Some(old.summary()), None)),
                Some(new) if !self.are_alike(old, new) => changed.push(self.changed(old, new)),
                Some(_) => {}
            }
        }
        found.append(&mut changed);
        let added = self.left(1).into_iter().filter_map(|at| self.new.get(at));
        found.extend(added.map(|new| differing(None, Some(new.summary()))));
        found
    }

    fn are_alike(&self, old: &Operator<'g>, new: &Operator<'g>) -> bool {
        old.operator() == new.operator()
            && old.attributes().eq(new.attributes())
            && self.are_one_graph(old.place.0, new.place.0)
            && old.outputs.len() == new.outputs.len()
            && old.outputs.iter().zip(&new.outputs).all(|(old, new)| self.have_one_name(old, new))
            && old.inputs.len() == new.inputs.len()
            && old.inputs.iter().zip(&new.inputs).all(|(old, new)| self.are_one(old, new))
    }

    /// Tells whether what operators make has the same name, or names that one file alone has.
    fn have_one_name(&self, old: &Option<&str>, new: &Option<&str>) -> bool {
        let mut names = old.iter().chain(new);
        old == new || !names.any(|name| self.shared.made.contains(name))
    }

    fn are_one_graph(&self, old: usize, new: usize) -> bool {
        let holder = |side: &Operators<'g>, at: usize| side.holders.get(at).copied().flatten();
        match (holder(self.old, old), holder(self.new, new)) {
            (Some((old, place)), Some((new, other))) => {
                place == other && self.like(0, old) == Some(new)
            }
            (None, None) => old == new || self.old.names.get(old) == self.new.names.get(new),
            _ => false,
        }
    }

    /// Tells whether two inputs are the same value.
    fn are_one(&self, old: &Option<Input<'g>>, new: &Option<Input<'g>>) -> bool {
        let (Some(old), Some(new)) = (old, new) else { return old.is_none() && new.is_none() };
        let has_one_name = old.name.is_some() && old.name == new.name;
        match (old.from, new.from) {
            (Some((Origin::Operator(from), place)), Some((Origin::Operator(to), other))) => {
                match (self.like(0, from), self.like(1, to)) {
                    // What makes them is said to differ.
                    (None, None) => has_one_name,
                    (like, _) => like == Some(to) && (place == other || has_one_name),
                }
            }
            (Some((Origin::Caller, place)), Some((Origin::Caller, other))) => {
                has_one_name || place == other && !self.is_shared(old) && !self.is_shared(new)
            }
            (None, None) => match (old.name, new.name) {
                (Some(name), Some(other)) => has_one_name || self.is_renamed(name, other),
                (None, None) => old.text == new.text,
                _ => false,
            },
            _ => has_one_name,
        }
    }

    fn is_shared(&self, input: &Input<'g>) -> bool {
        input.name.is_some_and(|name| self.shared.given.contains(name))
    }

    /// Tells whether a tensor may have another name in the new file: each has one.
    fn is_renamed(&self, old: &'g str, new: &'g str) -> bool {
        if self.shared.given.contains(old) || self.shared.given.contains(new) {
            return false;
        }
        let [to, from] = &mut *self.renamed.borrow_mut();
        *to.entry(old).or_insert(new) == new && *from.entry(new).or_insert(old) == old
    }

    /// Describes a change. What has no name has the number that it has in the new file, where it is
    /// the same in both.
    fn changed(&self, old: &Operator<'g>, new: &Operator<'g>) -> Differing<OperatorSummary> {
        let (mut before, after) = (old.summary(), new.summary());
        let inputs = old.inputs.iter().zip(&new.inputs).zip(&mut before.inputs);
        for (((old, new), said), number) in inputs.zip(&after.inputs) {
            let is_number = old.is_some_and(|old| old.name.or(old.text).is_none());
            if is_number && self.are_one(old, new) {
                said.clone_from(number);
            }
        }
        let outputs = before.outputs.iter_mut().zip(&after.outputs);
        for ((said, number), name) in outputs.zip(&old.outputs) {
            if name.is_none() && said.is_some() && number.is_some() {
                said.clone_from(number);
            }
        }
        differing(Some(before), Some(after))
    }
}

fn differing(
    old: Option<OperatorSummary>,
    new: Option<OperatorSummary>,
) -> Differing<OperatorSummary> {
    let name = new.as_ref().or(old.as_ref()).map(name).unwrap_or_default();
    Differing { name, old, new }
}

/// Returns what an operator is called: its name, or that of what it makes.
fn name(operator: &OperatorSummary) -> String {
    let output = operator.outputs.iter().flatten().next();
    operator.name.as_ref().or(output).unwrap_or(&operator.operator).clone()
}
