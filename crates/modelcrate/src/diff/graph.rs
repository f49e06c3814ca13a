//! Operators of two files: which are the same, and what differs about the others.
//!
//! Three ways lead from an operator to its like: its name and those of what it makes; its place among
//! others of its kind, where nothing has a name; and all that leads to it, where names are others.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher as _},
};

use imara_diff::{Algorithm, InternedInput};
use tensor_core::text::short;

use super::{Diff, Differing};
use crate::{
    AnyReader, Format, OperatorSummary, Summary,
    graph::{Graph, MAX_BODIES, Subgraph},
    operators::{called, of_graph},
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
    let [old, new] = [old, new].map(|reader| {
        // What cannot be read is in the findings of a summary.
        let graph = Graph::of(reader).ok().flatten().unwrap_or_default();
        Operators::of(&graph, old_summary.format == Format::Ptl)
    });
    diff.operators = Pairs::of(&old, &new).differences();
}

/// The operators of all graphs of a file.
struct Operators {
    all: Vec<Operator>,
}

struct Operator {
    summary: OperatorSummary,
    /// Whether it or something that it makes has a name.
    is_named: bool,
    /// What it reads; `None` for an input that is left out.
    inputs: Vec<Option<Input>>,
    /// It and all that leads to it, whatever that is called.
    root: u64,
}

/// What an operator reads.
struct Input {
    /// The name, or what a constant is that has none.
    text: Option<String>,
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

impl Operators {
    /// Lists operators. What methods give back is said nowhere else, so that it is taken for one more.
    fn of(graph: &Graph, are_methods: bool) -> Self {
        let mut all = Vec::new();
        let mut origins: HashMap<(usize, usize), (Origin, usize)> = HashMap::new();
        for (at, subgraph) in graph.subgraphs.iter().enumerate() {
            let inputs = subgraph.inputs.iter().enumerate();
            origins.extend(inputs.map(|(place, input)| ((at, *input), (Origin::Caller, place))));
            for summary in of_graph(at, subgraph) {
                let made = Origin::Operator(all.len());
                let mut is_named = summary.name.is_some();
                for (place, output) in outputs(subgraph, &summary) {
                    origins.insert((at, output), (made, place));
                    is_named |= subgraph.value(output).is_some_and(|value| value.name.is_some());
                }
                all.push(Operator::new(summary, is_named));
            }
            if are_methods && !subgraph.outputs.is_empty() {
                all.push(Operator::new(result(at, subgraph), false));
            }
        }
        let mut operators = Self { all };
        operators.lead(graph, &origins);
        operators
    }

    /// Finds where everything comes from.
    fn lead(&mut self, graph: &Graph, origins: &HashMap<(usize, usize), (Origin, usize)>) {
        let mut roots: Vec<Option<u64>> = vec![None; self.all.len()];
        for (index, operator) in self.all.iter_mut().enumerate() {
            let (at, node) = operator.summary.place;
            let Some(subgraph) = graph.subgraphs.get(at) else { continue };
            let read: Vec<Option<usize>> = match subgraph.nodes.get(node) {
                Some(node) => node.inputs.clone(),
                None => subgraph.outputs.iter().copied().map(Some).collect(),
            };
            let input = |value: usize| Input::of(graph, (at, value), origins);
            operator.inputs = read.into_iter().map(|value| value.and_then(input)).collect();
            operator.root = operator.root(&roots);
            if let Some(root) = roots.get_mut(index) {
                *root = Some(operator.root);
            }
        }
    }

    fn get(&self, at: usize) -> Option<&Operator> {
        self.all.get(at)
    }
}

/// Returns what an operator makes, with the place among its outputs.
fn outputs(graph: &Subgraph, of: &OperatorSummary) -> impl Iterator<Item = (usize, usize)> {
    let node = graph.nodes.get(of.place.1);
    let outputs = node.into_iter().flat_map(|node| node.outputs.iter().enumerate());
    outputs.filter_map(|(place, output)| Some((place, (*output)?)))
}

/// Makes an operator of what a graph gives back.
fn result(at: usize, graph: &Subgraph) -> OperatorSummary {
    let inputs = graph.outputs.iter().map(|output| graph.value(*output).map(called));
    OperatorSummary {
        graph: short(&graph.name).into_owned(),
        operator: "return".to_owned(),
        inputs: inputs.collect(),
        place: (at, graph.nodes.len()),
        ..OperatorSummary::default()
    }
}

impl Operator {
    const fn new(summary: OperatorSummary, is_named: bool) -> Self {
        Self { summary, is_named, inputs: Vec::new(), root: 0 }
    }

    /// Returns what it is found by in another graph, where something has a name.
    fn identity(&self) -> (&Option<String>, &[Option<String>]) {
        (&self.summary.name, &self.summary.outputs)
    }

    /// Returns what it is and reads, but for what other operators make.
    fn label(&self) -> u64 {
        let mut hasher = self.hasher();
        self.summary.graph.hash(&mut hasher);
        for input in &self.inputs {
            input.as_ref().map(Input::given).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn root(&self, roots: &[Option<u64>]) -> u64 {
        let mut hasher = self.hasher();
        for input in &self.inputs {
            let input = input.as_ref().map(|input| match input.from {
                Some((Origin::Operator(made), place)) => {
                    (roots.get(made).copied().flatten(), Some(place), None)
                }
                // Names are those of one file, and without names there is nothing else.
                _ if self.is_named => (None, None, None),
                _ => (None, None, input.given()),
            });
            input.hash(&mut hasher);
        }
        hasher.finish()
    }

    fn hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        let OperatorSummary { operator, attributes, outputs, .. } = &self.summary;
        (operator, outputs.len(), self.inputs.len()).hash(&mut hasher);
        for (name, value) in attributes {
            (name, value.to_string()).hash(&mut hasher);
        }
        hasher
    }
}

impl Input {
    fn of(
        graph: &Graph,
        mut place: (usize, usize),
        origins: &HashMap<(usize, usize), (Origin, usize)>,
    ) -> Option<Self> {
        let mut value = graph.value(place)?;
        for _ in 0..MAX_BODIES {
            let Some(outer) = value.outer else { break };
            place = (outer.subgraph, outer.value);
            value = graph.value(place)?;
        }
        let constant = || value.constant.as_ref().and_then(|constant| constant.text.as_ref());
        let text = value.name.as_ref().or_else(constant).cloned();
        Some(Self { text, from: origins.get(&place).copied() })
    }

    /// Returns what it is where no operator makes it: its name, or the place where a caller gives it.
    fn given(&self) -> Option<(Option<&str>, Option<usize>)> {
        match self.from {
            Some((Origin::Operator(_), _)) => None,
            Some((Origin::Caller, place)) if self.text.is_none() => Some((None, Some(place))),
            _ => Some((self.text.as_deref(), None)),
        }
    }
}

/// Which operator of one file is which of another.
struct Pairs<'o> {
    old: &'o Operators,
    new: &'o Operators,
    /// Of each old operator its like.
    likes: Vec<Option<Like>>,
    /// Which of the new ones are likes.
    is_like: Vec<bool>,
}

#[derive(Clone, Copy)]
struct Like {
    new: usize,
    /// Whether nothing differs but names.
    is_same: bool,
}

impl<'o> Pairs<'o> {
    fn of(old: &'o Operators, new: &'o Operators) -> Self {
        let (likes, is_like) = (vec![None; old.all.len()], vec![false; new.all.len()]);
        let mut pairs = Self { old, new, likes, is_like };
        pairs.pair(|of| of.is_named, Operator::identity, false);
        pairs.align();
        pairs.pair(|_| true, |of| of.root, true);
        let kind = |of: &Operator| (of.summary.graph.clone(), of.summary.operator.clone());
        pairs.pair(|of| !of.is_named, kind, false);
        pairs
    }

    /// Pairs those of one key in their order.
    fn pair<K: Eq + Hash>(
        &mut self,
        is_meant: impl Fn(&Operator) -> bool,
        key: impl Fn(&'o Operator) -> K,
        is_same: bool,
    ) {
        let (old, new) = (self.old, self.new);
        let mut places: HashMap<K, Vec<usize>> = HashMap::new();
        for (at, operator) in new.all.iter().enumerate().rev() {
            if is_meant(operator) && self.is_like.get(at) == Some(&false) {
                places.entry(key(operator)).or_default().push(at);
            }
        }
        for (at, operator) in old.all.iter().enumerate() {
            if is_meant(operator)
                && self.like(at).is_none()
                && let Some(new) = places.get_mut(&key(operator)).and_then(Vec::pop)
            {
                self.set(at, Like { new, is_same });
            }
        }
    }

    /// Pairs those that have no names, where a run of them is the same but for what was put in between
    /// and left out.
    fn align(&mut self) {
        let places = |of: &Operators| -> Vec<usize> {
            (0..of.all.len()).filter(|at| of.get(*at).is_some_and(|of| !of.is_named)).collect()
        };
        let (old, new) = (places(self.old), places(self.new));
        let label = |of: &Operators, at: &usize| of.get(*at).map(Operator::label);
        let mut labels = InternedInput::default();
        labels.update_before(old.iter().map(|at| label(self.old, at)));
        labels.update_after(new.iter().map(|at| label(self.new, at)));
        let changes = imara_diff::Diff::compute(Algorithm::Histogram, &labels);
        let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let kept_old = (0..old.len()).filter(|at| !changes.is_removed(index(*at)));
        let kept_new = (0..new.len()).filter(|at| !changes.is_added(index(*at)));
        for (at, other) in kept_old.zip(kept_new) {
            if let (Some(at), Some(new)) = (old.get(at), new.get(other)) {
                self.set(*at, Like { new: *new, is_same: false });
            }
        }
    }

    fn like(&self, old: usize) -> Option<Like> {
        self.likes.get(old).copied().flatten()
    }

    fn set(&mut self, old: usize, like: Like) {
        if let (Some(place), Some(is_like)) =
            (self.likes.get_mut(old), self.is_like.get_mut(like.new))
        {
            (*place, *is_like) = (Some(like), true);
        }
    }

    /// Returns what was removed, what was changed and what was added.
    fn differences(&self) -> Vec<Differing<OperatorSummary>> {
        let old = self.old.all.iter().enumerate().map(|(at, old)| (old, self.like(at)));
        let (mut found, mut changed) = (Vec::new(), Vec::new());
        for (old, like) in old {
            match like.and_then(|like| Some((self.new.get(like.new)?, like.is_same))) {
                None => found.push(differing(Some(old), None)),
                Some((new, is_same)) if !is_same && !self.are_alike(old, new) => {
                    changed.push(differing(Some(old), Some(new)));
                }
                Some(_) => {}
            }
        }
        found.append(&mut changed);
        let added = self.new.all.iter().zip(&self.is_like).filter(|(_, is_like)| !**is_like);
        found.extend(added.map(|(new, _)| differing(None, Some(new))));
        found
    }

    fn are_alike(&self, old: &Operator, new: &Operator) -> bool {
        let (from, to) = (&old.summary, &new.summary);
        (&from.operator, &from.attributes) == (&to.operator, &to.attributes)
            && from.outputs.len() == to.outputs.len()
            && old.inputs.len() == new.inputs.len()
            && old.inputs.iter().zip(&new.inputs).all(|inputs| match inputs {
                (Some(old), Some(new)) => self.is_one(old, new),
                (old, new) => old.is_none() && new.is_none(),
            })
    }

    /// Tells whether two inputs have one name, or come from the same place.
    fn is_one(&self, old: &Input, new: &Input) -> bool {
        if old.text.is_some() && old.text == new.text {
            return true;
        }
        match (old.from, new.from) {
            (Some((Origin::Operator(old), place)), Some((Origin::Operator(new), other))) => {
                place == other && self.like(old).is_some_and(|like| like.new == new)
            }
            _ => old.given() == new.given(),
        }
    }
}

fn differing(old: Option<&Operator>, new: Option<&Operator>) -> Differing<OperatorSummary> {
    let [old, new] = [old, new].map(|of| of.map(|of| of.summary.clone()));
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

    fn differences(old: Vec<Subgraph>, new: Vec<Subgraph>) -> Vec<(String, bool, bool)> {
        let [old, new] = [old, new].map(|subgraphs| Operators::of(&Graph { subgraphs }, true));
        let found = Pairs::of(&old, &new).differences();
        let operator = |of: &Differing<OperatorSummary>| {
            of.new.as_ref().or(of.old.as_ref()).unwrap().operator.clone()
        };
        found.iter().map(|of| (operator(of), of.old.is_some(), of.new.is_some())).collect()
    }

    fn between(old: &[(&str, &[&str])], new: &[(&str, &[&str])]) -> Vec<(String, bool, bool)> {
        differences(vec![method(old)], vec![method(new)])
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
        for inputs in [["2", "b.weight", "[2, 2]"], ["2", "c.weight", "[1, 1]"]] {
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
        assert_eq!(differences(vec![old], vec![new]), [("return".to_owned(), true, true)]);
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
        assert_eq!(differences(around(1), around(1)), []);
        assert_eq!(differences(around(1), around(3)), [("relu".to_owned(), true, true)]);
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
