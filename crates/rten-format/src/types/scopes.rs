//! The graphs of a model, found by the operators that hold them.

use std::collections::HashMap;

use crate::{
    Graph, Model,
    topology::{Scope, Topology},
};

/// All graphs of a model.
pub(crate) struct Scopes<'a> {
    topology: Topology<'a>,
    children: HashMap<(usize, u32, &'static str), usize>,
}

/// The attributes that hold graphs.
const BRANCHES: [&str; 3] = ["then_branch", "else_branch", "body"];

impl<'a> Scopes<'a> {
    pub(crate) fn of(model: &'a Model) -> Self {
        let topology = Topology::of(model);
        let mut children = HashMap::new();
        for (index, scope) in topology.scopes().iter().enumerate() {
            if let Some((parent, operator)) = scope.parent()
                && let Some(branch) = BRANCHES.into_iter().find(|name| *name == scope.branch())
            {
                children.insert((parent, operator, branch), index);
            }
        }
        Self { topology, children }
    }

    pub(crate) const fn topology(&self) -> &Topology<'a> {
        &self.topology
    }

    /// Returns a graph that an operator holds.
    pub(crate) fn child(&self, scope: usize, id: u32, branch: &'static str) -> Option<usize> {
        self.children.get(&(scope, id, branch)).copied()
    }

    pub(crate) fn graph(&self, scope: usize) -> Option<&'a Graph> {
        self.topology.scopes().get(scope).map(Scope::graph)
    }

    pub(crate) fn path(&self, scope: usize) -> &str {
        self.topology.scopes().get(scope).map_or("graph", Scope::path)
    }

    pub(crate) fn node_path(&self, scope: usize, id: u32) -> String {
        self.topology.scopes().get(scope).map_or_else(String::new, |scope| scope.node_path(id))
    }
}
