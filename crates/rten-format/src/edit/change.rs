//! Changes of a model that keep its graph whole.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

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

    /// Returns graph and id of every operator of a name, those of the main graph first.
    #[must_use]
    pub fn find_operators(&self, name: &str) -> Vec<(usize, u32)> {
        let mut found = Vec::new();
        topology::walk(&self.graph, |scope, id, node| {
            let is_operator = matches!(node.kind, NodeKind::Operator(_));
            if is_operator && node.name.as_deref() == Some(name) {
                found.push((scope, id));
            }
        });
        found.sort_unstable();
        found
    }

    /// Sets an attribute of an operator to what a text says, see [`Attributes::set`](crate::Attributes::set).
    ///
    /// # Errors
    ///
    /// [`Error::Graph`] where there is no such operator, it has no such attribute, or the text is not
    /// one of its values.
    pub fn set_attribute(&mut self, scope: usize, id: u32, field: &str, text: &str) -> Result<()> {
        let path = {
            let scopes = topology::walk(&self.graph, |_, _, _| ());
            let found = scopes.get(scope).map(|found| found.node_path(id));
            found.unwrap_or_else(|| format!("graph {scope}/node {id}"))
        };
        let mut set = || {
            let graph = self.graph_mut(scope);
            let nodes = graph.as_ref().map_or(0, |graph| graph.nodes.len() as u64);
            let at = usize::try_from(id).ok();
            let node = graph.and_then(|graph| graph.nodes.get_mut(at?));
            match node.map(|node| &mut node.kind) {
                None => Err(GraphFault::NoNode { id, nodes }),
                Some(NodeKind::Operator(operator)) => {
                    let none = || GraphFault::NoAttribute {
                        name: field.to_owned(),
                        known: "none".to_owned(),
                    };
                    operator.attributes.as_mut().ok_or_else(none)?.set(field, text)
                }
                Some(_) => Err(GraphFault::NotAnOperator),
            }
        };
        set().map_err(|fault| Error::Graph { path, fault })
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
        self.rename_all(&[(scope, id, name)])
    }

    /// Like [`rename`](Self::rename), but for several nodes at once, each given by its graph, its id
    /// and its new name, so that two may change their names with each other.
    ///
    /// # Errors
    ///
    /// As for [`rename`](Self::rename). The model is as it was.
    pub fn rename_all(&mut self, names: &[(usize, u32, &str)]) -> Result<()> {
        let topology = Topology::of(self);
        let before = captures(&topology);
        let mut renamed = BTreeMap::new();
        for &(scope, id, name) in names {
            check_name(&topology, scope, id)?;
            renamed.insert((scope, id), name);
        }
        for &(scope, id, source) in &before {
            if let Some(name) = renamed.get(&source).copied() {
                renamed.insert((scope, id), name);
            }
        }
        let nodes = Nodes::of(&renamed);
        let old = self.set_names(&nodes);
        let Err((scope, id, fault)) = self.check_names(&renamed, &before) else { return Ok(()) };
        self.set_names(&old);
        let topology = Topology::of(self);
        let found = topology.scopes().get(scope);
        let path = found.map(|found| match id {
            Some(id) => found.node_path(id),
            None => found.path().to_owned(),
        });
        Err(Error::Graph { path: path.unwrap_or_default(), fault })
    }

    /// Gives nodes new names, and returns them with their old ones.
    fn set_names(&mut self, nodes: &Nodes) -> Nodes {
        let mut old = BTreeMap::new();
        for (&scope, names) in &nodes.0 {
            let Some(graph) = self.graph_mut(scope) else { continue };
            for (&id, name) in names {
                let node = usize::try_from(id).ok().and_then(|id| graph.nodes.get_mut(id));
                if let Some(node) = node {
                    let name = std::mem::replace(&mut node.name, name.clone());
                    old.entry(scope).or_insert_with(BTreeMap::new).insert(id, name);
                }
            }
        }
        Nodes(old)
    }

    /// Proves that new names are unique, and that everything is captured that was. Returns the graph
    /// and the node that are at fault, if one is.
    fn check_names(
        &self,
        renamed: &BTreeMap<(usize, u32), &str>,
        before: &BTreeSet<Capture>,
    ) -> Result<(), (usize, Option<u32>, GraphFault)> {
        let topology = Topology::of(self);
        let scopes: BTreeSet<usize> = renamed.keys().map(|(scope, _)| *scope).collect();
        for scope in scopes {
            let Some(found) = topology.scopes().get(scope) else { continue };
            let mut seen: HashMap<&str, u32> = HashMap::new();
            for (id, node) in (0..).zip(&found.graph().nodes).filter(|(_, node)| is_data(node)) {
                let Some(name) = node.name.as_deref() else { continue };
                let Some(other) = seen.insert(name, id) else { continue };
                // Names that were there twice before are none of ours.
                let ours = [(id, other), (other, id)].into_iter();
                let mut ours = ours.filter(|(id, _)| renamed.contains_key(&(scope, *id)));
                if let Some((id, by)) = ours.next() {
                    return Err((scope, Some(id), GraphFault::NameTaken { by }));
                }
            }
        }
        let after = captures(&topology);
        let Some((scope, id, _)) = after.symmetric_difference(before).next() else {
            return Ok(());
        };
        let found = topology.scopes().get(*scope);
        let name = found.and_then(|found| node(found.graph(), *id)?.name.clone());
        Err((*scope, None, GraphFault::OtherCapture { name: name.unwrap_or_default() }))
    }

    /// Makes other nodes of the main graph its outputs, in this order.
    ///
    /// # Errors
    ///
    /// [`Error::Graph`] where one is not a value or constant, nothing makes it, or it is there twice.
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
}

/// Names of nodes, by graph and id.
struct Nodes(BTreeMap<usize, BTreeMap<u32, Option<String>>>);

impl Nodes {
    fn of(names: &BTreeMap<(usize, u32), &str>) -> Self {
        let mut nodes: BTreeMap<usize, BTreeMap<u32, Option<String>>> = BTreeMap::new();
        for (&(scope, id), &name) in names {
            nodes.entry(scope).or_default().insert(id, Some(name.to_owned()));
        }
        Self(nodes)
    }
}

/// Refuses to rename what is not there, or is found by its name.
fn check_name(topology: &Topology<'_>, scope: usize, id: u32) -> Result<()> {
    let found = topology.scopes().get(scope);
    let path = found.map_or_else(|| format!("graph {scope}"), |found| found.node_path(id));
    let graph = found.map(topology::Scope::graph);
    let fault = match graph.and_then(|graph| node(graph, id)) {
        None => GraphFault::NoNode { id, nodes: graph.map_or(0, |graph| graph.nodes.len() as u64) },
        Some(node) if !is_data(node) => return Ok(()),
        Some(_) if topology.is_captured(scope, id) => GraphFault::Captured,
        Some(_) => match topology.unknown_attributes() {
            // Graphs in them would find the value no more.
            Some(tag) => GraphFault::OpaqueGraph { tag },
            None => return Ok(()),
        },
    };
    Err(Error::Graph { path, fault })
}

/// A captured value, by graph and id, and where it comes from.
type Capture = (usize, u32, (usize, u32));

/// Lists what is captured: graph and id of the captured value, and where it comes from.
fn captures(topology: &Topology<'_>) -> BTreeSet<Capture> {
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
