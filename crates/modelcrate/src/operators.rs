//! What graphs are made of, one operator after the other.

use std::collections::BTreeMap;

use serde_json::Value;
use tensor_core::text::short;

use crate::{
    AnyReader,
    graph::{Graph, Subgraph},
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
    /// The names of what it reads; `None` for an input that is left out.
    pub inputs: Vec<Option<String>>,
    /// The names of what it makes; `None` for an output that nothing reads.
    pub outputs: Vec<Option<String>>,
    /// How it computes, by the names that the format has for that.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Value>,
}

impl AnyReader {
    /// Returns the operators of all graphs, in the order of the file: those of `RTen`, Circle and
    /// TFLite models and of the models in packages that can be opened; none of other formats.
    #[must_use]
    pub fn operators(&self) -> Vec<OperatorSummary> {
        let skipped = match self {
            #[cfg(feature = "circle")]
            Self::Circle(_) => 0,
            // The first graph connects models.
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(_) => 1,
            #[cfg(feature = "rten")]
            Self::Rten(_) => 0,
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => return Vec::new(),
        };
        // What cannot be read is in the findings of a summary.
        let graph = Graph::of(self).ok().flatten().unwrap_or_default();
        graph.subgraphs.iter().skip(skipped).flat_map(of_graph).collect()
    }
}

/// Returns the operators of a graph, in its order.
pub(crate) fn of_graph(graph: &Subgraph) -> impl Iterator<Item = OperatorSummary> {
    let name = short(&graph.name).into_owned();
    let called = |at: &Option<usize>| {
        let value = graph.values.get((*at)?)?;
        Some(match &value.name {
            Some(name) => short(name).into_owned(),
            None => format!("#{}", value.id),
        })
    };
    graph.nodes.iter().map(move |node| OperatorSummary {
        graph: name.clone(),
        name: node.name.as_deref().map(|name| short(name).into_owned()),
        operator: short(&node.operator).into_owned(),
        inputs: node.inputs.iter().map(called).collect(),
        outputs: node.outputs.iter().map(called).collect(),
        attributes: node.attributes.clone(),
    })
}
