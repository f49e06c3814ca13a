//! Operators, with what they read and where that comes from.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::Value as Json;
use tensor_core::text::short;

use crate::{
    OperatorSummary,
    graph::{Graph, MAX_BODIES, Node, Subgraph},
    operators::{called, describe, nodes},
};

/// The operators of all graphs of a file.
pub(super) struct Operators<'g> {
    pub(super) all: Vec<Operator<'g>>,
    /// Of each graph the operator that holds it, and as which of its bodies.
    pub(super) holders: Vec<Option<(usize, usize)>>,
    /// What each graph is called.
    pub(super) names: Vec<&'g str>,
}

pub(super) struct Operator<'g> {
    /// The position of its graph, and its own in there: behind the nodes for what a graph gives back.
    pub(super) place: (usize, usize),
    pub(super) graph: &'g Subgraph,
    /// `None` for what a graph gives back.
    node: Option<&'g Node>,
    /// The names of what it makes; `None` where there is none.
    pub(super) outputs: Vec<Option<&'g str>>,
    /// What it reads; `None` for an input that is left out.
    pub(super) inputs: Vec<Option<Input<'g>>>,
    /// It and all that leads to it, whatever that is called.
    pub(super) root: u64,
}

/// What an operator reads.
#[derive(Clone, Copy)]
pub(super) struct Input<'g> {
    pub(super) name: Option<&'g str>,
    /// What a constant is that has no name.
    pub(super) text: Option<&'g str>,
    pub(super) from: Option<(Origin, usize)>,
}

/// What gives a value, as one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// An operator, by its place among all.
    Operator(usize),
    /// Whoever calls the graph.
    Caller,
}

/// Of values, by graph and position, where they come from.
type Origins = HashMap<(usize, usize), (Origin, usize)>;

impl<'g> Operators<'g> {
    pub(super) fn of(graph: &'g Graph, are_methods: bool) -> Self {
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

    pub(super) fn get(&self, at: usize) -> Option<&Operator<'g>> {
        self.all.get(at)
    }

    /// Returns the names of what no operator makes.
    pub(super) fn given(&self) -> HashSet<&'g str> {
        let inputs = self.all.iter().flat_map(|operator| operator.inputs.iter().flatten());
        inputs.filter(|input| input.producer().is_none()).filter_map(|input| input.name).collect()
    }

    /// Returns the names of what operators make.
    pub(super) fn made(&self) -> HashSet<&'g str> {
        self.all.iter().flat_map(|operator| operator.outputs.iter().copied().flatten()).collect()
    }

    /// Computes the roots, each after those of all that leads to it; in a loop one does without.
    pub(super) fn find_roots(&mut self, shared: &HashSet<&str>) {
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

    pub(super) fn name(&self) -> Option<&'g str> {
        self.node.and_then(|node| node.name.as_deref())
    }

    pub(super) fn operator(&self) -> &'g str {
        self.node.map_or("return", |node| &node.operator)
    }

    pub(super) fn has_named_outputs(&self) -> bool {
        self.outputs.iter().any(Option::is_some)
    }

    pub(super) fn is_named(&self) -> bool {
        self.name().is_some() || self.has_named_outputs()
    }

    /// Returns how it computes. Which bodies it holds is known otherwise than by their numbers.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&'g String, &'g Json)> {
        let has_bodies = self.node.is_some_and(|node| !node.bodies.is_empty());
        let attributes = self.node.into_iter().flat_map(|node| &node.attributes);
        attributes.filter(move |(name, _)| !(has_bodies && name.ends_with("subgraph_index")))
    }

    /// Returns what it is and reads, but for what other operators make.
    pub(super) fn label(&self) -> u64 {
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

    pub(super) fn summary(&self) -> OperatorSummary {
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
