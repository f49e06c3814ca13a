//! Changes of a model that keep its graph whole.

use std::collections::{BTreeSet, HashSet};

use crate::{
    Dim, Error, Graph, GraphFault, Model, Node, NodeKind, Result, Value,
    topology::{self, Topology, node},
};

impl Model {
    /// Returns a graph by its number, as [`Topology::scopes`] counts them; `None` where there is
    /// none.
    pub fn graph_mut(&mut self, scope: usize) -> Option<&mut Graph> {
        let mut steps = Vec::new();
        let scopes = topology::walk(&self.graph, |_, _, _| ());
        let mut at = scopes.get(scope)?;
        while let Some((around, operator)) = at.parent() {
            steps.push((operator, at.branch()));
            at = scopes.get(around)?;
        }
        let mut graph = &mut self.graph;
        while let Some((operator, branch)) = steps.pop() {
            let node = graph.nodes.get_mut(usize::try_from(operator).ok()?)?;
            let NodeKind::Operator(operator) = &mut node.kind else { return None };
            let mut subgraphs = operator.attributes.as_mut()?.subgraphs_mut();
            graph = subgraphs.find(|(name, _)| *name == branch)?.1;
        }
        Some(graph)
    }

    /// Returns graph and id of every value and constant of a name, those of the main graph first.
    #[must_use]
    pub fn find(&self, name: &str) -> Vec<(usize, u32)> {
        let mut found = Vec::new();
        topology::walk(&self.graph, |scope, id, node| {
            if is_data(node) && node.name.as_deref() == Some(name) {
                found.push((scope, id));
            }
        });
        found.sort_unstable();
        found
    }

    /// Gives a node another name. The captured values of subgraphs that are found by the old name
    /// get the new one.
    ///
    /// # Errors
    ///
    /// [`Error::Graph`] where there is no such node, another value or constant of the graph or of
    /// a graph that captures it has the name, the node is itself found by its name in another
    /// graph, or a subgraph would find another value by the new name. The model is as it was.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let mut model = rten_format::Model::default();
    /// for (scope, id) in model.find("input.1") {
    ///     model.rename(scope, id, "image")?;
    /// }
    /// # Ok::<(), rten_format::Error>(())
    /// ```
    pub fn rename(&mut self, scope: usize, id: u32, name: &str) -> Result<()> {
        let nodes = self.renamed(scope, id, name)?;
        let before = captures(&Topology::of(self));
        let mut old = Vec::with_capacity(nodes.len());
        for &(scope, id) in &nodes {
            if let Some(node) = self.node_mut(scope, id) {
                old.push(node.name.replace(name.to_owned()));
            }
        }
        let topology = Topology::of(self);
        let Some(&scope) =
            captures(&topology).symmetric_difference(&before).map(|(scope, ..)| scope).min()
        else {
            return Ok(());
        };
        let path = topology.scopes().get(scope).map(|scope| scope.path().to_owned());
        for (&(scope, id), name) in nodes.iter().zip(old) {
            if let Some(node) = self.node_mut(scope, id) {
                node.name = name;
            }
        }
        let (path, name) = (path.unwrap_or_default(), name.to_owned());
        Err(Error::Graph { path, fault: GraphFault::OtherCapture { name } })
    }

    /// Returns the nodes that get a new name with a node: itself and what captures it.
    fn renamed(&self, scope: usize, id: u32, name: &str) -> Result<Vec<(usize, u32)>> {
        let topology = Topology::of(self);
        let fault = |scope: usize, id, fault| {
            let path = topology.scopes().get(scope).map(|scope| scope.node_path(id));
            Error::Graph { path: path.unwrap_or_else(|| format!("graph {scope}")), fault }
        };
        let graph = topology.scopes().get(scope).map(topology::Scope::graph);
        let Some(renamed) = graph.and_then(|graph| node(graph, id)) else {
            let nodes = graph.map_or(0, |graph| graph.nodes.len() as u64);
            return Err(fault(scope, id, GraphFault::NoNode { id, nodes }));
        };
        let mut nodes = vec![(scope, id)];
        if !is_data(renamed) {
            return Ok(nodes);
        }
        if graph.is_some_and(|graph| graph.captures.contains(&id))
            && topology.capture_source(scope, id).is_some()
        {
            return Err(fault(scope, id, GraphFault::Captured));
        }
        nodes.extend(captures(&topology).into_iter().filter_map(|(inner, capture, source)| {
            (source == (scope, id)).then_some((inner, capture))
        }));
        for &(scope, id) in &nodes {
            if let Some(by) = topology.find(scope, name).filter(|by| *by != id) {
                return Err(fault(scope, id, GraphFault::NameTaken { by }));
            }
        }
        Ok(nodes)
    }

    /// Makes other nodes of the main graph its outputs, in this order.
    ///
    /// # Errors
    ///
    /// [`Error::Graph`] where one is no value or constant, nothing makes it, or it is there twice.
    /// The model is as it was.
    pub fn set_outputs(&mut self, outputs: &[u32]) -> Result<()> {
        let topology = Topology::of(self);
        let mut seen = HashSet::new();
        for (at, &id) in outputs.iter().enumerate() {
            let fault = check_there(&topology, id)
                .err()
                .or_else(|| (!seen.insert(id)).then_some(GraphFault::OutputTwice { id }));
            if let Some(fault) = fault {
                return Err(Error::Graph { path: format!("outputs[{at}]"), fault });
            }
        }
        self.graph.outputs = outputs.to_vec();
        Ok(())
    }

    /// Returns the inputs of the main graph that have a fixed dimension of 0, with the axis: RTen's
    /// converter writes it where it knows nothing, and RTen then refuses every other size.
    #[must_use]
    pub fn zero_dims(&self) -> Vec<(u32, usize)> {
        let inputs = self.graph.inputs.iter().filter_map(|&id| Some((id, node(&self.graph, id)?)));
        let axes = inputs.flat_map(|(id, node)| match &node.kind {
            NodeKind::Value(Value { shape: Some(dims), .. }) => {
                let zeros = dims.iter().enumerate().filter(|(_, dim)| **dim == Dim::Fixed(0));
                zeros.map(|(axis, _)| (id, axis)).collect()
            }
            _ => Vec::new(),
        });
        axes.collect()
    }

    /// Sets one dimension of a value of the main graph.
    ///
    /// # Errors
    ///
    /// [`Error::Graph`] where there is no such value, or it has no such dimension.
    pub fn set_dim(&mut self, id: u32, axis: usize, dim: Dim) -> Result<()> {
        let nodes = self.graph.nodes.len() as u64;
        let node = usize::try_from(id).ok().and_then(|id| self.graph.nodes.get_mut(id));
        let path = || format!("graph/node {id}");
        let node = node.ok_or_else(|| Error::Graph {
            path: path(),
            fault: GraphFault::NoNode { id, nodes },
        })?;
        let NodeKind::Value(Value { shape: Some(dims), .. }) = &mut node.kind else {
            return Err(Error::Graph { path: path(), fault: GraphFault::NoShape });
        };
        let rank = dims.len() as u64;
        let found = dims.get_mut(axis).ok_or_else(|| Error::Graph {
            path: path(),
            fault: GraphFault::NoAxis { axis: axis as u64, rank },
        })?;
        *found = dim;
        Ok(())
    }

    fn node_mut(&mut self, scope: usize, id: u32) -> Option<&mut Node> {
        self.graph_mut(scope)?.nodes.get_mut(usize::try_from(id).ok()?)
    }
}

/// Lists what is captured: graph and id of the captured value, and where it comes from.
fn captures(topology: &Topology<'_>) -> BTreeSet<(usize, u32, (usize, u32))> {
    let scopes = topology.scopes().iter().enumerate();
    let captures = scopes.flat_map(|(scope, found)| {
        let captures = found.graph().captures.iter();
        captures.filter_map(move |&id| Some((scope, id, topology.capture_source(scope, id)?)))
    });
    captures.collect()
}

/// Proves that a node of the main graph has elements when the model has run.
pub(crate) fn check_there(topology: &Topology<'_>, id: u32) -> Result<(), GraphFault> {
    let Some(graph) = topology.scopes().first().map(topology::Scope::graph) else {
        return Err(GraphFault::NoNode { id, nodes: 0 });
    };
    match node(graph, id).map(|node| &node.kind) {
        None => Err(GraphFault::NoNode { id, nodes: graph.nodes.len() as u64 }),
        Some(NodeKind::Constant(_)) => Ok(()),
        Some(NodeKind::Value(_)) => {
            let is_made = graph.inputs.contains(&id) || !topology.producers(0, id).is_empty();
            if is_made { Ok(()) } else { Err(GraphFault::Unmade { id }) }
        }
        Some(_) => Err(GraphFault::NotAValue { id }),
    }
}

const fn is_data(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Value(_) | NodeKind::Constant(_))
}
