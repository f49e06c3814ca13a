//! Operators of two files: which are the same, and what differs about the others.
//!
//! An operator is looked for by its names, then by all that leads to it, whatever that is called, and
//! then by its place among others. What was found so may still differ: in what it computes, where it
//! is, or what it reads.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher as _},
};

use imara_diff::{Algorithm, InternedInput};
use serde_json::Value as Json;
use tensor_core::text::short;

use super::{Diff, Differing};
use crate::{
    AnyReader, Format, OperatorSummary, Summary,
    graph::{Graph, MAX_BODIES, Node, Subgraph},
    operators::{called, describe, nodes},
};

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

/// The operators of all graphs of a file.
struct Operators<'g> {
    all: Vec<Operator<'g>>,
    /// Of each graph the operator that holds it, and as which of its bodies.
    holders: Vec<Option<(usize, usize)>>,
    /// What each graph is called.
    names: Vec<&'g str>,
}

struct Operator<'g> {
    /// The position of its graph, and its own in there: behind the nodes for what a graph gives back.
    place: (usize, usize),
    graph: &'g Subgraph,
    /// `None` for what a graph gives back.
    node: Option<&'g Node>,
    /// The names of what it makes; `None` where there is none.
    outputs: Vec<Option<&'g str>>,
    /// What it reads; `None` for an input that is left out.
    inputs: Vec<Option<Input<'g>>>,
    /// It and all that leads to it, whatever that is called.
    root: u64,
}

/// What an operator reads.
#[derive(Clone, Copy)]
struct Input<'g> {
    name: Option<&'g str>,
    /// What a constant is that has no name.
    text: Option<&'g str>,
    from: Option<(Origin, usize)>,
}

/// What gives a value, as one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// An operator, by its place among all.
    Operator(usize),
    /// Whoever calls the graph.
    Caller,
}

/// Of values, by graph and position, where they come from.
type Origins = HashMap<(usize, usize), (Origin, usize)>;

impl<'g> Operators<'g> {
    fn of(graph: &'g Graph, are_methods: bool) -> Self {
        let (mut all, mut origins) = (Vec::new(), Origins::new());
        let mut holders = vec![None; graph.subgraphs.len()];
        for (at, subgraph) in graph.subgraphs.iter().enumerate() {
            let inputs = subgraph.inputs.iter().enumerate();
            origins.extend(inputs.map(|(place, input)| ((at, *input), (Origin::Caller, place))));
            for (index, node) in nodes(subgraph) {
                let made = Origin::Operator(all.len());
                let outputs = node.outputs.iter().enumerate();
                let outputs = outputs.filter_map(|(place, output)| Some((place, (*output)?)));
                origins.extend(outputs.map(|(place, output)| ((at, output), (made, place))));
                for (place, body) in node.bodies.iter().enumerate() {
                    if let Some(holder) = holders.get_mut(*body) {
                        *holder = Some((all.len(), place));
                    }
                }
                all.push(Operator::new((at, index), subgraph, Some(node)));
            }
            if (are_methods || at > 0) && !subgraph.outputs.is_empty() {
                all.push(Operator::new((at, subgraph.nodes.len()), subgraph, None));
            }
        }
        for operator in &mut all {
            let at = operator.place.0;
            let input = |value: usize| Input::of(graph, (at, value), &origins);
            let read = |value: &Option<usize>| value.and_then(input);
            operator.inputs = match operator.node {
                Some(node) => node.inputs.iter().map(read).collect(),
                None => operator.graph.outputs.iter().map(|value| input(*value)).collect(),
            };
        }
        let names = graph.subgraphs.iter().map(|subgraph| &*subgraph.name).collect();
        Self { all, holders, names }
    }

    fn get(&self, at: usize) -> Option<&Operator<'g>> {
        self.all.get(at)
    }

    /// Returns the names of what no operator makes.
    fn given(&self) -> HashSet<&'g str> {
        let inputs = self.all.iter().flat_map(|operator| operator.inputs.iter().flatten());
        inputs.filter(|input| input.producer().is_none()).filter_map(|input| input.name).collect()
    }

    /// Returns the names of what operators make.
    fn made(&self) -> HashSet<&'g str> {
        self.all.iter().flat_map(|operator| operator.outputs.iter().copied().flatten()).collect()
    }

    /// Computes the roots, each after those of all that leads to it; in a loop one does without.
    fn find_roots(&mut self, shared: &HashSet<&str>) {
        let count = self.all.len();
        let (mut readers, mut waits) = (vec![Vec::new(); count], vec![0_usize; count]);
        for (at, operator) in self.all.iter().enumerate() {
            for made in operator.inputs.iter().flatten().filter_map(Input::producer) {
                if let (Some(readers), Some(waits)) = (readers.get_mut(made), waits.get_mut(at)) {
                    readers.push(at);
                    *waits = waits.saturating_add(1);
                }
            }
        }
        let mut roots: Vec<Option<u64>> = vec![None; count];
        let mut ready: VecDeque<usize> =
            (0..count).filter(|at| waits.get(*at) == Some(&0)).collect();
        let mut others = 0..count;
        loop {
            let Some(at) = ready.pop_front() else {
                match others.by_ref().find(|at| matches!(roots.get(*at), Some(None))) {
                    Some(next) => ready.push_back(next),
                    None => break,
                }
                continue;
            };
            let Some(operator) = self.get(at) else { continue };
            let root = operator.root(&roots, shared);
            match roots.get_mut(at) {
                Some(known @ None) => *known = Some(root),
                _ => continue,
            }
            for reader in readers.get(at).into_iter().flatten() {
                if let Some(waits) = waits.get_mut(*reader) {
                    *waits = waits.saturating_sub(1);
                    if *waits == 0 {
                        ready.push_back(*reader);
                    }
                }
            }
        }
        for (operator, root) in self.all.iter_mut().zip(roots) {
            operator.root = root.unwrap_or_default();
        }
    }
}

impl<'g> Operator<'g> {
    fn new(place: (usize, usize), graph: &'g Subgraph, node: Option<&'g Node>) -> Self {
        let outputs = node.map_or(&[][..], |node| &node.outputs).iter();
        let name = |output: &Option<usize>| graph.value((*output)?)?.name.as_deref();
        Self {
            place,
            graph,
            node,
            outputs: outputs.map(name).collect(),
            inputs: Vec::new(),
            root: 0,
        }
    }

    fn name(&self) -> Option<&'g str> {
        self.node.and_then(|node| node.name.as_deref())
    }

    fn operator(&self) -> &'g str {
        self.node.map_or("return", |node| &node.operator)
    }

    fn has_named_outputs(&self) -> bool {
        self.outputs.iter().any(Option::is_some)
    }

    fn is_named(&self) -> bool {
        self.name().is_some() || self.has_named_outputs()
    }

    /// Returns how it computes. Which bodies it holds is known otherwise than by their numbers.
    fn attributes(&self) -> impl Iterator<Item = (&'g String, &'g Json)> {
        let has_bodies = self.node.is_some_and(|node| !node.bodies.is_empty());
        let attributes = self.node.into_iter().flat_map(|node| &node.attributes);
        attributes.filter(move |(name, _)| !(has_bodies && name.ends_with("subgraph_index")))
    }

    /// Returns what it is and reads, but for what other operators make.
    fn label(&self) -> u64 {
        let mut hasher = self.hasher();
        self.graph.name.hash(&mut hasher);
        for input in self.inputs.iter().flatten().filter(|_| !self.is_named()) {
            (input.producer().is_none(), input.name, input.text).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn root(&self, roots: &[Option<u64>], shared: &HashSet<&str>) -> u64 {
        let mut hasher = self.hasher();
        for input in &self.inputs {
            let Some(input) = input else {
                false.hash(&mut hasher);
                continue;
            };
            // A name that the other file has is that of the same thing there.
            let name = input.name.filter(|name| shared.contains(name));
            match (input.producer(), input.from) {
                (Some(made), Some((_, place))) => {
                    (roots.get(made).copied().flatten(), place).hash(&mut hasher);
                }
                (_, Some((_, place))) if name.is_none() => place.hash(&mut hasher),
                _ => (name, input.text).hash(&mut hasher),
            }
        }
        hasher.finish()
    }

    fn hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        (self.operator(), self.outputs.len(), self.inputs.len()).hash(&mut hasher);
        for (name, value) in self.attributes() {
            (name, value.to_string()).hash(&mut hasher);
        }
        hasher
    }

    fn summary(&self) -> OperatorSummary {
        let Some(node) = self.node else {
            let outputs = self.graph.outputs.iter();
            return OperatorSummary {
                graph: short(&self.graph.name).into_owned(),
                operator: self.operator().to_owned(),
                inputs: outputs.map(|at| self.graph.value(*at).map(called)).collect(),
                place: self.place,
                ..OperatorSummary::default()
            };
        };
        describe(self.place, self.graph, node)
    }
}

impl<'g> Input<'g> {
    fn of(graph: &'g Graph, mut place: (usize, usize), origins: &Origins) -> Option<Self> {
        let mut value = graph.value(place)?;
        for _ in 0..MAX_BODIES {
            let Some(outer) = value.outer else { break };
            place = (outer.subgraph, outer.value);
            value = graph.value(place)?;
        }
        let text = value.constant.as_ref().and_then(|constant| constant.text.as_deref());
        let name = value.name.as_deref();
        Some(Self {
            name,
            text: text.filter(|_| name.is_none()),
            from: origins.get(&place).copied(),
        })
    }

    const fn producer(&self) -> Option<usize> {
        match self.from {
            Some((Origin::Operator(made), _)) => Some(made),
            _ => None,
        }
    }
}

/// Which operator of one file is which of another.
struct Pairs<'o, 'g> {
    old: &'o Operators<'g>,
    new: &'o Operators<'g>,
    shared: &'o Shared<'g>,
    /// Of each old operator its like, and of each new one.
    likes: [Vec<Option<usize>>; 2],
    /// New names of tensors, and old ones, of those that have not the same in both.
    renamed: RefCell<[HashMap<&'g str, &'g str>; 2]>,
}

impl<'o, 'g> Pairs<'o, 'g> {
    fn of(old: &'o Operators<'g>, new: &'o Operators<'g>, shared: &'o Shared<'g>) -> Self {
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
    fn differences(&self) -> Vec<Differing<OperatorSummary>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Constant, Node, Outer, Value};

    /// Makes a method of operators without names: each takes what the operator of a number makes, a
    /// tensor that has a name, or a list, and makes one value.
    fn method(operators: &[(&str, &[&str])]) -> Subgraph {
        let mut graph = Subgraph { name: "forward".to_owned(), ..Subgraph::default() };
        let add = |graph: &mut Subgraph, value: Value| {
            graph.values.push(Value { id: graph.values.len(), ..value });
            graph.values.len() - 1
        };
        let input = add(&mut graph, Value::default());
        graph.inputs = vec![input];
        let mut made = vec![input];
        for (operator, inputs) in operators {
            let mut node = Node { operator: (*operator).to_owned(), ..Node::default() };
            for input in *inputs {
                let constant = Some(Constant { text: Some((*input).to_owned()), bytes: None });
                let value = match input.parse::<usize>() {
                    Ok(number) => made[number],
                    Err(_) if input.starts_with('[') => {
                        add(&mut graph, Value { constant, ..Value::default() })
                    }
                    Err(_) => {
                        let name = Some((*input).to_owned());
                        add(&mut graph, Value { name, ..Value::default() })
                    }
                };
                node.inputs.push(Some(value));
            }
            let output = add(&mut graph, Value::default());
            node.outputs = vec![Some(output)];
            node.id = graph.nodes.len();
            made.push(output);
            graph.nodes.push(node);
        }
        graph.outputs = vec![made[made.len() - 1]];
        graph
    }

    fn compared(old: Vec<Subgraph>, new: Vec<Subgraph>) -> Vec<(String, bool, bool)> {
        let found = differences(&[old, new].map(|subgraphs| Graph { subgraphs }), true);
        let operator = |of: &Differing<OperatorSummary>| {
            of.new.as_ref().or(of.old.as_ref()).unwrap().operator.clone()
        };
        found.iter().map(|of| (operator(of), of.old.is_some(), of.new.is_some())).collect()
    }

    fn between(old: &[(&str, &[&str])], new: &[(&str, &[&str])]) -> Vec<(String, bool, bool)> {
        compared(vec![method(old)], vec![method(new)])
    }

    const NETWORK: [(&str, &[&str]); 5] = [
        ("conv", &["0", "a.weight", "[1, 1]"]),
        ("relu", &["1"]),
        ("conv", &["2", "b.weight", "[1, 1]"]),
        ("relu", &["3"]),
        ("add", &["4", "2"]),
    ];

    #[test]
    fn what_is_the_same_has_no_differences() {
        assert_eq!(between(&NETWORK, &NETWORK), []);
    }

    #[test]
    fn what_is_put_in_changes_nothing_behind_it() {
        let mut new = NETWORK.to_vec();
        new.splice(1..2, [("norm", &["1"][..]), ("relu", &["2"])]);
        new[3].1 = &["3", "b.weight", "[1, 1]"];
        new[4].1 = &["4"];
        new[5].1 = &["5", "3"];
        let found = between(&NETWORK, &new);
        // What reads it now reads something else.
        assert_eq!(found, [("relu".to_owned(), true, true), ("norm".to_owned(), false, true)]);
        let found = between(&new, &NETWORK);
        assert_eq!(found, [("norm".to_owned(), true, false), ("relu".to_owned(), true, true)]);
    }

    #[test]
    fn other_constants_and_tensors_are_changes() {
        for inputs in [["2", "b.weight", "[2, 2]"], ["2", "a.weight", "[1, 1]"]] {
            let mut new = NETWORK.to_vec();
            new[2].1 = &inputs;
            assert_eq!(between(&NETWORK, &new), [("conv".to_owned(), true, true)]);
        }
    }

    #[test]
    fn inputs_have_an_order() {
        let mut new = NETWORK.to_vec();
        new[4].1 = &["2", "4"];
        assert_eq!(between(&NETWORK, &new), [("add".to_owned(), true, true)]);
    }

    #[test]
    fn what_a_method_gives_back_counts() {
        let (old, mut new) = (method(&NETWORK), method(&NETWORK));
        new.outputs = new.nodes[3].outputs.iter().flatten().copied().collect();
        assert_eq!(compared(vec![old], vec![new]), [("return".to_owned(), true, true)]);
    }

    #[test]
    fn bodies_read_what_is_around_them() {
        let around = |from: usize| {
            let main = method(&NETWORK);
            let value = main.nodes[from].outputs[0].unwrap();
            let outer = Some(Outer { subgraph: 0, value });
            let mut body = method(&[("relu", &["0"])]);
            body.name = "then".to_owned();
            body.inputs.clear();
            body.values[0].outer = outer;
            vec![main, body]
        };
        assert_eq!(compared(around(1), around(1)), []);
        assert_eq!(compared(around(1), around(3)), [("relu".to_owned(), true, true)]);
    }

    /// An operator with names: its own, what it computes, reads and makes.
    type Named<'a> = (&'a str, &'a str, &'a [&'a str], &'a [&'a str]);

    /// Makes a graph of operators with names; what none of them makes is an input, or a constant where it
    /// is called after a weight. An empty name is none.
    fn graph(operators: &[Named<'_>]) -> Subgraph {
        let mut graph = Subgraph { name: "main".to_owned(), ..Subgraph::default() };
        let mut values: HashMap<&str, usize> = HashMap::new();
        let all = operators.iter().flat_map(|(_, _, inputs, outputs)| [*inputs, *outputs].concat());
        for name in all {
            values.entry(name).or_insert_with(|| {
                let constant = name.starts_with('w').then(Constant::default);
                let known = Some(name.to_owned()).filter(|name| !name.starts_with('#'));
                graph.values.push(Value { name: known, constant, ..Value::default() });
                graph.values.len() - 1
            });
        }
        for (id, (name, operator, inputs, outputs)) in operators.iter().enumerate() {
            let places = |names: &[&str]| names.iter().map(|name| Some(values[name])).collect();
            graph.nodes.push(Node {
                id,
                name: Some((*name).to_owned()).filter(|name| !name.is_empty()),
                operator: (*operator).to_owned(),
                inputs: places(inputs),
                outputs: places(outputs),
                ..Node::default()
            });
        }
        let made = graph.producers();
        let is_given = |at: &usize| made[*at].is_none() && graph.values[*at].constant.is_none();
        graph.inputs = (0..graph.values.len()).filter(is_given).collect();
        graph
    }

    fn named(old: &[Named<'_>], new: &[Named<'_>]) -> Vec<(String, bool, bool)> {
        compared(vec![graph(old)], vec![graph(new)])
    }

    #[test]
    fn other_names_are_no_differences() {
        let old: &[Named<'_>] = &[
            ("m1", "MatMul", &["x", "w1"], &["h"]),
            ("r", "Relu", &["h"], &["a"]),
            ("m2", "MatMul", &["a", "w2"], &["y"]),
        ];
        let new: &[Named<'_>] = &[
            ("n2", "MatMul", &["b", "w2"], &["z"]),
            ("n1", "MatMul", &["x", "w1"], &["g"]),
            ("s", "Relu", &["g"], &["b"]),
        ];
        // In whatever order.
        assert_eq!(named(old, new), []);
        let swapped: &[Named<'_>] = &[
            ("n1", "MatMul", &["x", "w2"], &["g"]),
            ("s", "Relu", &["g"], &["b"]),
            ("n2", "MatMul", &["b", "w1"], &["z"]),
        ];
        let change = || ("MatMul".to_owned(), true, true);
        assert_eq!(named(old, swapped), [change(), change()]);
        // One that computes something else makes none of those behind it others.
        let other: &[Named<'_>] = &[
            ("n1", "Gemm", &["x", "w1"], &["g"]),
            ("s", "Relu", &["g"], &["b"]),
            ("n2", "MatMul", &["b", "w2"], &["z"]),
        ];
        let found = named(old, other);
        assert!(
            found.len() <= 3 && !found.contains(&("Relu".to_owned(), true, false)),
            "{found:?}"
        );
    }

    #[test]
    fn what_is_read_and_made_has_an_order() {
        let sub = |name, inputs| graph(&[(name, "Sub", inputs, &["y"])]);
        let mut swapped = sub("s2", &["b", "a"]);
        swapped.inputs.reverse();
        assert_eq!(
            compared(vec![sub("s", &["a", "b"])], vec![swapped]),
            [("Sub".to_owned(), true, true)]
        );
        let split: &[Named<'_>] =
            &[("s", "Split", &["x"], &["a", "b"]), ("n", "Neg", &["a"], &["y"])];
        let swapped: &[Named<'_>] =
            &[("s", "Split", &["x"], &["b", "a"]), ("n", "Neg", &["a"], &["y"])];
        assert_eq!(named(split, swapped), [("Split".to_owned(), true, true)]);
    }

    #[test]
    fn the_name_is_enough() {
        let old: &[Named<'_>] = &[("l", "Elu", &["x"], &["h"]), ("r", "Relu", &["h"], &["y"])];
        let new: &[Named<'_>] = &[("l", "Selu", &["x"], &["g"]), ("r", "Relu", &["g"], &["y"])];
        assert_eq!(named(old, new), [("Selu".to_owned(), true, true)]);
    }

    #[test]
    fn branches_in_another_order_are_the_same() {
        let old: &[Named<'_>] = &[
            ("", "Relu", &["x"], &["#1"]),
            ("", "Neg", &["#1"], &["#2"]),
            ("", "Abs", &["x"], &["#3"]),
            ("", "Neg", &["#3"], &["#4"]),
            ("", "Add", &["#2", "#4"], &["#5"]),
        ];
        let new: Vec<Named<'_>> = [2, 3, 0, 1, 4].map(|at| old[at]).to_vec();
        assert_eq!(named(old, &new), []);
    }

    #[test]
    fn bodies_are_those_of_their_operator() {
        let model = |then: usize, moved: bool| {
            let mut main = graph(&[("i", "If", &["c"], &["y"])]);
            main.nodes[0].bodies = vec![then, 3 - then];
            let body = |name: &str, operators: &[Named<'_>]| {
                let mut graph = graph(operators);
                name.clone_into(&mut graph.name);
                graph
            };
            let relu: Named<'_> = ("p", "Relu", &["x"], &["a"]);
            let abs: Named<'_> = ("q", "Abs", &["x"], &["b"]);
            let (first, second) =
                if moved { (vec![], vec![abs, relu]) } else { (vec![relu], vec![abs]) };
            vec![main, body("one", &first), body("two", &second)]
        };
        assert_eq!(compared(model(1, false), model(1, false)), []);
        let changed = |operator: &str| (operator.to_owned(), true, true);
        assert_eq!(compared(model(1, false), model(1, true)), [changed("Relu")]);
        assert_eq!(compared(model(1, false), model(2, false)), [changed("Relu"), changed("Abs")]);
    }

    #[test]
    fn many_operators_take_no_longer_than_they_must() {
        let names: Vec<String> = (0..20_000).map(|at| format!("operator{}", at % 1000)).collect();
        let operators = |step: usize| -> Vec<(&str, &[&str])> {
            (0..names.len())
                .map(|at| (&*names[at * step % names.len()], &["0"] as &[&str]))
                .collect()
        };
        // The same in another order, of which nothing long stays in a row.
        assert!(between(&operators(1), &operators(7919)).len() < 20_000);
    }
}
