//! Graphs of nnpackages: how the models are connected, and the graphs of each of them.

use std::collections::{BTreeMap, BTreeSet};

use nnpackage::{Connection, IoRef, Partition, Reader, Wiring};
use tensor_core::text::short;

use super::{Family, Graph, Node, Subgraph, Value, circle};
use crate::Result;

/// A model as far as connections go: what it is called, and its own graphs.
struct Model {
    name: String,
    /// Of each of its graphs what goes in and what comes out.
    ports: Vec<[Vec<Value>; 2]>,
    /// Its main graph.
    bodies: Vec<usize>,
}

pub(super) fn graph(reader: &Reader) -> Graph {
    let mut subgraphs = vec![Subgraph::default()];
    // A manifest can name one file very often.
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut models, mut listed) = (Vec::new(), Vec::new());
    for file in reader.models() {
        let next = models.len();
        let index = *known.entry(file.path()).or_insert(next);
        if index == next {
            let first = subgraphs.len();
            // What cannot be opened is for the findings to say.
            let graph = file.open().map(circle::graph).unwrap_or_default();
            let ports = graph.subgraphs.iter().map(ports).collect();
            subgraphs.extend(graph.subgraphs.into_iter().map(|mut graph| {
                graph.name = format!("{}/{}", short(file.path()), graph.name);
                behind(graph, first)
            }));
            let bodies = (first..subgraphs.len()).take(1).collect();
            models.push(Model { name: file.path().to_owned(), ports, bodies });
        }
        listed.push(index);
    }
    let manifest = reader.manifest();
    let mut wiring = Wiring {
        pkg_inputs: manifest.pkg_inputs.clone(),
        pkg_outputs: manifest.pkg_outputs.clone(),
        connections: manifest.connections.clone(),
        missing: Vec::new(),
    };
    // Of a single model all inputs and outputs are those of the package, as onert takes them, whatever
    // the manifest says.
    if let ([_], [model]) = (&listed[..], &models[..]) {
        let count = |side: usize| {
            model.ports.first().map_or(0, |ports| ports.get(side).map_or(0, Vec::len))
        };
        let all = |count| (0_u32..).take(count).map(|io| IoRef::new(0, 0, io)).collect();
        wiring.connections.clear();
        (wiring.pkg_inputs, wiring.pkg_outputs) = (all(count(0)), all(count(1)));
    }
    let listed: Vec<&Model> = listed.into_iter().filter_map(|index| models.get(index)).collect();
    if let Some(main) = subgraphs.first_mut() {
        *main = wired(&listed, &wiring);
    }
    Graph { subgraphs }
}

impl Graph {
    /// Returns how the parts of a model are connected that circle-partitioner made.
    ///
    /// # Errors
    ///
    /// As for [`Partition::wiring`].
    pub fn of_partition(partition: &Partition) -> Result<Self> {
        let model = |part: &nnpackage::PartitionModel| {
            let [inputs, outputs] = [&part.inputs, &part.outputs]
                .map(|names| names.iter().map(|name| Value::new(Some(name), None, None)).collect());
            Model { name: part.file.clone(), ports: vec![[inputs, outputs]], bodies: Vec::new() }
        };
        let models: Vec<Model> = partition.parts.iter().map(model).collect();
        let listed: Vec<&Model> = models.iter().collect();
        Ok(Self { subgraphs: vec![wired(&listed, &partition.wiring()?)] })
    }
}

fn ports(graph: &Subgraph) -> [Vec<Value>; 2] {
    [&graph.inputs, &graph.outputs]
        .map(|list| list.iter().filter_map(|at| graph.value(*at).cloned()).collect())
}

/// Moves a graph behind others.
fn behind(mut graph: Subgraph, others: usize) -> Subgraph {
    for body in graph.nodes.iter_mut().flat_map(|node| &mut node.bodies) {
        *body = body.saturating_add(others);
    }
    graph
}

/// Connects models. Only inputs and outputs that something leads to or from are there: a package may
/// list a model with many of them very often.
fn wired(models: &[&Model], wiring: &Wiring) -> Subgraph {
    let mut wires = Wires { models, graph: Subgraph::default(), outputs: BTreeMap::new() };
    wires.graph.name = "package".to_owned();
    let mut inputs: BTreeMap<IoRef, Vec<usize>> = BTreeMap::new();
    for to in &wiring.pkg_inputs {
        let value = match inputs.get(to).and_then(|values| values.first()) {
            Some(value) => *value,
            None => wires.add(*to, 0),
        };
        wires.graph.inputs.push(value);
        let values = inputs.entry(*to).or_default();
        if values.is_empty() {
            values.push(value);
        }
    }
    for Connection { from, to } in &wiring.connections {
        let value = wires.output(*from);
        for to in to {
            inputs.entry(*to).or_default().push(value);
        }
    }
    for from in &wiring.pkg_outputs {
        let value = wires.output(*from);
        wires.graph.outputs.push(value);
    }
    let named = inputs.keys().chain(wires.outputs.keys()).map(|at| at.model);
    let absent: BTreeSet<u16> = named.filter(|model| usize::from(*model) >= models.len()).collect();
    let indices = (0..=u16::MAX).take(models.len()).chain(absent);
    for index in indices {
        let model = models.get(usize::from(index));
        let mut node = Node::new(match model {
            Some(_) => format!("model {index}"),
            None => format!("model {index}, which there is not"),
        });
        node.family = Family::Group;
        node.id = index.into();
        node.name = model.map(|model| model.name.clone());
        node.bodies = model.map(|model| model.bodies.clone()).unwrap_or_default();
        let of_model = IoRef::new(index, 0, 0)..=IoRef::new(index, u16::MAX, u32::MAX);
        node.inputs =
            inputs.range(of_model.clone()).flat_map(|(_, v)| v).copied().map(Some).collect();
        node.outputs = wires.outputs.range(of_model).map(|(_, value)| Some(*value)).collect();
        wires.graph.nodes.push(node);
    }
    wires.graph
}

/// Connections that are being drawn.
struct Wires<'a> {
    models: &'a [&'a Model],
    graph: Subgraph,
    /// The values of outputs.
    outputs: BTreeMap<IoRef, usize>,
}

impl Wires<'_> {
    fn output(&mut self, at: IoRef) -> usize {
        if let Some(value) = self.outputs.get(&at) {
            return *value;
        }
        let value = self.add(at, 1);
        self.outputs.insert(at, value);
        value
    }

    /// Adds the value of an input, side 0, or an output, side 1.
    fn add(&mut self, at: IoRef, side: usize) -> usize {
        let model = self.models.get(usize::from(at.model));
        let graph = model.and_then(|model| model.ports.get(usize::from(at.subgraph)));
        let list = graph.and_then(|ports| ports.get(side));
        let known = list.and_then(|list| list.get(usize::try_from(at.io).ok()?));
        let value = known.cloned().unwrap_or_else(|| Value::new(Some(&at.to_string()), None, None));
        let id = self.graph.values.len();
        self.graph.values.push(Value { id, constant: None, outer: None, ..value });
        id
    }
}
