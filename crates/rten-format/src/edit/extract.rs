//! Parts of a model as models of their own.

use std::collections::HashSet;

use crate::{
    Attributes, Error, Graph, GraphFault, Model, Node, NodeKind, Result,
    edit::change::check_there,
    topology::{Topology, node},
};

impl Model {
    /// Returns the part of the model that computes some nodes of the main graph from others.
    ///
    /// `outputs` are what the part returns, `inputs` what its caller gives, both in this order;
    /// operators that only lead to `inputs` are left out. Inputs of the model that are still needed
    /// come behind them, in the order of the model. Nodes keep their order, names and metadata;
    /// subgraphs are kept whole. Constants keep their data offsets, so that
    /// [`Rewrite`](crate::Rewrite) finds their elements.
    ///
    /// # Errors
    ///
    /// [`Error::Graph`] where an output is not there when the model has run, an input is not a value,
    /// one of them is listed twice, the graph refers to a node that is not there, or an operator has
    /// attributes that this crate does not know: they may hold graphs that capture values.
    pub fn extract(&self, inputs: &[u32], outputs: &[u32]) -> Result<Self> {
        let topology = Topology::of(self);
        check(&topology, self, inputs, outputs)?;
        let needed = needed(&topology, self, inputs, outputs)?;
        let mut given = inputs.to_vec();
        let listed: HashSet<u32> = inputs.iter().copied().collect();
        let still = self.graph.inputs.iter().filter(|id| !listed.contains(id));
        given.extend(still.filter(|id| needed.contains(id)));
        Ok(Self {
            graph: kept(&self.graph, &needed, &given, outputs)?,
            metadata: self.metadata.clone(),
        })
    }
}

fn check(topology: &Topology<'_>, model: &Model, inputs: &[u32], outputs: &[u32]) -> Result<()> {
    let mut seen = HashSet::new();
    for (at, &id) in outputs.iter().enumerate() {
        let fault = check_there(topology, id)
            .err()
            .filter(|fault| !(matches!(fault, GraphFault::Unmade { .. }) && inputs.contains(&id)))
            .or_else(|| (!seen.insert(id)).then_some(GraphFault::OutputTwice { id }));
        if let Some(fault) = fault {
            return Err(Error::Graph { path: format!("outputs[{at}]"), fault });
        }
    }
    seen.clear();
    for (at, &id) in inputs.iter().enumerate() {
        let fault = match node(&model.graph, id).map(|node| &node.kind) {
            None => Some(GraphFault::NoNode { id, nodes: model.graph.nodes.len() as u64 }),
            Some(NodeKind::Value(_)) if seen.insert(id) => None,
            Some(NodeKind::Value(_)) => Some(GraphFault::InputTwice { id }),
            Some(_) => Some(GraphFault::NoInput { id }),
        };
        if let Some(fault) = fault {
            return Err(Error::Graph { path: format!("inputs[{at}]"), fault });
        }
    }
    Ok(())
}

/// Walks from the outputs to what they are computed from. Returns all nodes on the way, and what
/// their operators make besides.
fn needed(
    topology: &Topology<'_>,
    model: &Model,
    inputs: &[u32],
    outputs: &[u32],
) -> Result<HashSet<u32>> {
    let mut needed: HashSet<u32> = inputs.iter().chain(outputs).copied().collect();
    let given: HashSet<u32> = inputs.iter().chain(&model.graph.inputs).copied().collect();
    let mut open: Vec<u32> = outputs.to_vec();
    while let Some(id) = open.pop() {
        if given.contains(&id) {
            continue;
        }
        for &operator in topology.producers(0, id) {
            if !needed.insert(operator) {
                continue;
            }
            for &read in topology.reads(0, operator) {
                if needed.insert(read) {
                    open.push(read);
                }
            }
            needed.extend(made(model, operator)?);
        }
    }
    Ok(needed)
}

/// Returns what an operator makes, once it is sure that all nodes that it refers to are there.
fn made(model: &Model, operator: u32) -> Result<Vec<u32>> {
    let Some(Node { kind: NodeKind::Operator(found), .. }) = node(&model.graph, operator) else {
        return Ok(Vec::new());
    };
    if let Some(Attributes::Unknown(table)) = &found.attributes {
        let path = format!("graph/node {operator}");
        return Err(Error::Graph {
            path,
            fault: GraphFault::UnknownAttributes { tag: table.tag() },
        });
    }
    for &id in found.inputs.iter().chain(&found.outputs).flatten() {
        if node(&model.graph, id).is_none() {
            let nodes = model.graph.nodes.len() as u64;
            let path = format!("graph/node {operator}");
            return Err(Error::Graph { path, fault: GraphFault::NoNode { id, nodes } });
        }
    }
    Ok(found.outputs.iter().flatten().copied().collect())
}

/// Returns the graph of the nodes that are needed, with new ids.
fn kept(graph: &Graph, needed: &HashSet<u32>, inputs: &[u32], outputs: &[u32]) -> Result<Graph> {
    let mut new_ids = vec![None; graph.nodes.len()];
    let mut nodes = Vec::with_capacity(needed.len());
    for ((id, node), new_id) in (0..).zip(&graph.nodes).zip(&mut new_ids) {
        if needed.contains(&id) {
            *new_id = u32::try_from(nodes.len()).ok();
            nodes.push(node.clone());
        }
    }
    let new_id = |id: u32| {
        let found = usize::try_from(id).ok().and_then(|id| new_ids.get(id).copied().flatten());
        let fault = GraphFault::NoNode { id, nodes: graph.nodes.len() as u64 };
        found.ok_or(Error::Graph { path: "graph".to_owned(), fault })
    };
    let given: HashSet<u32> = inputs.iter().copied().collect();
    for node in &mut nodes {
        if let NodeKind::Operator(operator) = &mut node.kind {
            // What a caller gives is not made as well.
            for output in &mut operator.outputs {
                *output = output.filter(|id| !given.contains(id));
            }
            for id in operator.inputs.iter_mut().chain(&mut operator.outputs).flatten() {
                *id = new_id(*id)?;
            }
        }
    }
    let all = |ids: &[u32]| ids.iter().map(|id| new_id(*id)).collect::<Result<Vec<_>>>();
    Ok(Graph { nodes, inputs: all(inputs)?, outputs: all(outputs)?, captures: Vec::new() })
}
