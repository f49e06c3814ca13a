//! What graphs are made of, one operator after the other.

use std::collections::BTreeMap;

use serde_json::Value;
use tensor_core::text::short;

use crate::{
    AnyReader,
    graph::{self, Family, Graph, Node, Subgraph},
};

/// An operator of a graph. Names that are long are cut.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct OperatorSummary {
    /// Which graph it is in, as the format calls it.
    pub graph: String,
    /// Its name, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it computes.
    pub operator: String,
    /// The names of what it reads, or what that is; `None` for an input that is left out.
    pub inputs: Vec<Option<String>>,
    /// The names of what it makes; `None` for an output that nothing reads.
    pub outputs: Vec<Option<String>>,
    /// How it computes, by the names that the format has for that.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Value>,
    /// Where it is in the [`Graph`] of its file: the position of its graph, and its own in there.
    #[serde(skip)]
    pub place: (usize, usize),
}

impl AnyReader {
    /// Returns the operators of all graphs, in the order of the file: those of `RTen`, Circle and
    /// TFLite models, of the models in packages that can be opened, and of the methods of PyTorch Live
    /// models; none of other formats.
    #[must_use]
    pub fn operators(&self) -> Vec<OperatorSummary> {
        // What cannot be read is in the findings of a summary.
        let graph = Graph::of(self).ok().flatten().unwrap_or_default();
        let graphs = graph.subgraphs.iter().enumerate();
        let of_graph =
            |(at, graph)| nodes(graph).map(move |(index, node)| describe((at, index), graph, node));
        graphs.flat_map(of_graph).collect()
    }
}

/// Returns the operators of a graph, in its order, with their places among its nodes; what stands for a
/// model or a module is none.
pub(crate) fn nodes(graph: &Subgraph) -> impl Iterator<Item = (usize, &Node)> {
    graph.nodes.iter().enumerate().filter(|(_, node)| node.family != Family::Group)
}

/// Describes the operator that a node of a graph is.
pub(crate) fn describe(place: (usize, usize), graph: &Subgraph, node: &Node) -> OperatorSummary {
    let called = |at: &Option<usize>| graph.value((*at)?).map(called);
    OperatorSummary {
        graph: short(&graph.name).into_owned(),
        name: node.name.as_deref().map(|name| short(name).into_owned()),
        operator: short(&node.operator).into_owned(),
        inputs: node.inputs.iter().map(called).collect(),
        outputs: node.outputs.iter().map(called).collect(),
        attributes: node.attributes.clone(),
        place,
    }
}

/// Returns the name of a value, or what a constant is that has none, or its number.
pub(crate) fn called(value: &graph::Value) -> String {
    let text = || value.constant.as_ref().and_then(|constant| constant.text.as_deref());
    match value.name.as_deref().or_else(text) {
        Some(name) => short(name).into_owned(),
        None => format!("#{}", value.id),
    }
}
