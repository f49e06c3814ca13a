//! What computes what in a model file, for people: the same graph for every format.

use std::collections::BTreeMap;

use serde::Serializer;
use serde_json::Value as Json;
use tensor_core::symbolic::SymbolicShape;

use crate::{AnyReader, Result, summary::shape_json};

#[cfg(feature = "carton")]
mod carton;
#[cfg(feature = "circle")]
mod circle;
mod collapse;
mod family;
#[cfg(feature = "svg")]
mod layout;
#[cfg(feature = "nnpackage")]
mod nnpackage;
pub mod onnx;
#[cfg(feature = "ptl")]
mod ptl;
#[cfg(feature = "rten")]
mod rten;
mod select;
#[cfg(feature = "svg")]
pub mod svg;
mod text;

pub use family::Family;
pub use select::Selection;

/// What computes what in a file. It is made of the document alone: no tensor is read.
///
/// The first graph is the main one; bodies of operators such as `If` follow. Of an nnpackage the
/// first graph is how its models are connected; of a PyTorch Live model there is one for each method,
/// and the last is the tree of its modules.
///
/// # Examples
///
/// ```
/// use modelcrate::{AnyReader, graph::Graph};
///
/// # let model = std::fs::read("../../testdata/rten/valid/mlp.v1.rten")?;
/// let reader = AnyReader::from_bytes(model)?;
/// let graph = Graph::of(&reader)?.expect("an RTen model has a graph");
/// let main = &graph.subgraphs[0];
/// for node in &main.nodes {
///     println!("{} reads {:?}", node.operator, node.inputs);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Graph {
    /// The main graph, and those that operators hold.
    pub subgraphs: Vec<Subgraph>,
}

/// One graph: nodes, and the values that go from one to another.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Subgraph {
    /// What the format calls it.
    pub name: String,
    /// What it takes, as positions in [`values`](Self::values).
    pub inputs: Vec<usize>,
    /// What it gives, as positions in [`values`](Self::values).
    pub outputs: Vec<usize>,
    /// What computes, in the order of the file.
    pub nodes: Vec<Node>,
    /// What goes into nodes and comes out of them.
    pub values: Vec<Value>,
}

/// Something that computes: an operator, a method, a model of a package.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Node {
    /// Its number in its graph, as the file counts: of an RTen model all nodes, values included.
    pub id: usize,
    /// Its name, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it computes, as the format calls it.
    pub operator: String,
    /// What kind of operator that is.
    pub family: Family,
    /// Which part of the model it belongs to, by its name: parts of a path between `/`, outermost
    /// first; empty where names have no parts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// What it reads, as positions in the values of its graph; `None` for an input that is left out.
    pub inputs: Vec<Option<usize>>,
    /// What it makes, as positions in the values of its graph; `None` for an output that nothing
    /// reads.
    pub outputs: Vec<Option<usize>>,
    /// How it computes, by the names that the format has for that.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Json>,
    /// The graphs that it holds, as positions in [`Graph::subgraphs`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bodies: Vec<usize>,
}

/// Something that goes into a node or comes out of one.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Value {
    /// Its number in its graph, as the file counts.
    pub id: usize,
    /// Its name, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The type of its elements, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// Its shape, where it is known: a number, a symbol or `*` for each dimension.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "write_shape")]
    pub shape: Option<SymbolicShape>,
    /// What is known of it where it is part of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constant: Option<Constant>,
    /// Where it comes from, where that is another graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer: Option<Outer>,
}

/// A value that is part of the file.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Constant {
    /// The bytes of its elements, where they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What it is, where it is no tensor and short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A value of another graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Outer {
    /// The graph, as a position in [`Graph::subgraphs`].
    pub subgraph: usize,
    /// The value, as a position in its [`values`](Subgraph::values).
    pub value: usize,
}

impl Graph {
    /// Returns what computes what in a file; `None` where the format says nothing of that, as files of
    /// tensors do.
    ///
    /// # Errors
    ///
    /// Where the part of the file cannot be read that says it, which some formats have in a file of
    /// its own.
    pub fn of(reader: &AnyReader) -> Result<Option<Self>> {
        Ok(match reader {
            #[cfg(feature = "carton")]
            AnyReader::Carton(reader) => Some(carton::graph(reader)?),
            #[cfg(feature = "circle")]
            AnyReader::Circle(reader) => Some(circle::graph(reader)),
            #[cfg(feature = "nnpackage")]
            AnyReader::NnPackage(reader) => Some(nnpackage::graph(reader)),
            #[cfg(feature = "ptl")]
            AnyReader::Ptl(reader) => Some(ptl::graph(reader)?),
            #[cfg(feature = "rten")]
            AnyReader::Rten(reader) => Some(rten::graph(reader)),
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => None,
        })
    }

    /// Returns how many nodes all graphs have.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.subgraphs.iter().map(|subgraph| subgraph.nodes.len()).sum()
    }
}

/// What nodes read, for each node of each graph.
type Reads = Vec<Vec<Vec<usize>>>;

impl Graph {
    /// Returns what each node reads: its inputs, and what its bodies take from the graph that it is in.
    fn reads(&self) -> Reads {
        let inputs = |node: &Node| node.inputs.iter().copied().flatten().collect();
        let of_graph = |graph: &Subgraph| graph.nodes.iter().map(inputs).collect();
        let mut reads: Reads = self.subgraphs.iter().map(of_graph).collect();
        let mut holders: Vec<Option<(usize, usize)>> = vec![None; self.subgraphs.len()];
        for (index, graph) in self.subgraphs.iter().enumerate() {
            for (at, node) in graph.nodes.iter().enumerate() {
                for body in &node.bodies {
                    if let Some(holder) = holders.get_mut(*body) {
                        *holder = Some((index, at));
                    }
                }
            }
        }
        for (index, graph) in self.subgraphs.iter().enumerate() {
            for outer in graph.values.iter().filter_map(|value| value.outer) {
                // The graph may be held by one that is held by the node.
                let mut holder = holders.get(index).copied().flatten();
                for _ in 0..MAX_BODIES {
                    match holder {
                        Some((around, _)) if around != outer.subgraph => {
                            holder = holders.get(around).copied().flatten();
                        }
                        _ => break,
                    }
                }
                if let Some((around, node)) = holder
                    && around == outer.subgraph
                    && let Some(read) = reads.get_mut(around).and_then(|of| of.get_mut(node))
                {
                    read.push(outer.value);
                }
            }
        }
        reads
    }

    /// Returns a value of one of the graphs.
    pub(crate) fn value(&self, (graph, value): (usize, usize)) -> Option<&Value> {
        self.subgraphs.get(graph)?.value(value)
    }

    /// Leads what comes from other graphs to where its value is now, by the new places of the values of
    /// each graph and the new places of graphs.
    fn lead_outer(
        &mut self,
        graphs: impl Fn(usize) -> Option<usize>,
        values: impl Fn(usize, usize) -> Option<usize>,
    ) {
        for value in self.subgraphs.iter_mut().flat_map(|graph| &mut graph.values) {
            value.outer = value.outer.and_then(|outer| {
                let value = values(outer.subgraph, outer.value)?;
                Some(Outer { subgraph: graphs(outer.subgraph)?, value })
            });
        }
    }
}

/// Graphs inside of each other that are looked through for what a value comes from.
pub(crate) const MAX_BODIES: usize = 128;

impl Subgraph {
    /// Returns of each value the node that makes it: the last one, where there are several.
    #[must_use]
    pub fn producers(&self) -> Vec<Option<usize>> {
        let mut producers = vec![None; self.values.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            for output in node.outputs.iter().flatten() {
                if let Some(producer) = producers.get_mut(*output) {
                    *producer = Some(index);
                }
            }
        }
        producers
    }

    pub(crate) fn value(&self, index: usize) -> Option<&Value> {
        self.values.get(index)
    }
}

impl Node {
    fn new(operator: impl AsRef<str>) -> Self {
        let operator = operator.as_ref();
        // Many nodes may share the name of one, which may be as long as the file.
        let operator = match operator.char_indices().nth(MAX_OPERATOR) {
            Some((end, _)) => format!("{}…", operator.get(..end).unwrap_or_default()),
            None => operator.to_owned(),
        };
        Self { family: Family::of(&operator), operator, ..Self::default() }
    }

    /// Names it, and sorts it into the group that the name says.
    fn named(mut self, name: Option<&str>) -> Self {
        self.name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        self.group = self.name.as_deref().map(group_of).unwrap_or_default();
        self
    }
}

impl Value {
    fn new(name: Option<&str>, dtype: Option<String>, shape: Option<SymbolicShape>) -> Self {
        let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        Self { name, dtype, shape, ..Self::default() }
    }

    /// Returns type and shape, such as `f32 [batch, 10]`, as far as they are known.
    #[must_use]
    pub fn type_text(&self) -> String {
        let dtype = self.dtype.as_deref().unwrap_or_default();
        match &self.shape {
            Some(shape) if !dtype.is_empty() => format!("{dtype} {shape}"),
            Some(shape) => shape.to_string(),
            None => dtype.to_owned(),
        }
    }
}

/// Returns the group that a name says: all parts but the last, which stand between `/` or, where there
/// is none, between dots. Of names that a compiler joined by `;` the first one counts.
fn group_of(name: &str) -> String {
    let name = name.split(';').next().unwrap_or_default();
    let separator = if name.contains('/') { '/' } else { '.' };
    let parts = name.split(separator).filter(|part| !part.is_empty());
    let mut parts: Vec<&str> = parts.take(MAX_PARTS).collect();
    parts.pop();
    parts.join("/")
}

/// Characters of the name of an operator that are kept.
const MAX_OPERATOR: usize = 256;

/// Parts of a name that count.
const MAX_PARTS: usize = 16;

/// Returns a number as JSON has it; texts for those that it lacks.
fn float(value: f32) -> Json {
    if value.is_finite() { value.into() } else { value.to_string().into() }
}

#[expect(clippy::ref_option, reason = "as serde calls it")]
fn write_shape<S: Serializer>(
    shape: &Option<SymbolicShape>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&shape.as_ref().map(shape_json), serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_what_stands_before_the_last_part() {
        for (name, group) in [
            ("", ""),
            ("conv1", ""),
            ("/layer.3/attention/MatMul", "layer.3/attention"),
            ("encoder.layer.0.weight", "encoder/layer/0"),
            ("net/a/Relu;net/b/bias", "net/a"),
            ("//", ""),
        ] {
            assert_eq!(group_of(name), group, "{name:?}");
        }
        assert_eq!(group_of(&"a/".repeat(100_000)).len(), 29);
    }
}
