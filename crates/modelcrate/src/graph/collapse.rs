//! Groups of names as one node each.

use std::collections::{BTreeMap, HashMap};

use super::{Family, Graph, Node, Subgraph};

impl Graph {
    /// Returns how many parts the longest name of a group has: 0 where nothing can be collapsed.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.subgraphs.iter().map(Subgraph::levels).max().unwrap_or_default()
    }

    /// Returns the graph in which all nodes are one that share the first `levels` parts of their
    /// groups, where there are several of them: with what goes into the group from outside and what
    /// comes out of it. Values that stay inside are left out.
    #[must_use]
    pub fn collapsed(&self, levels: usize) -> Self {
        let reads = self.reads();
        // What other graphs take stays, wherever it is made.
        let mut taken: Vec<Vec<usize>> = vec![Vec::new(); self.subgraphs.len()];
        let values = self.subgraphs.iter().flat_map(|graph| &graph.values);
        for outer in values.filter_map(|value| value.outer) {
            if let Some(taken) = taken.get_mut(outer.subgraph) {
                taken.push(outer.value);
            }
        }
        let graphs = self.subgraphs.iter().zip(&reads).zip(&taken);
        let collapsed = graphs.map(|((graph, reads), taken)| graph.collapsed(levels, reads, taken));
        let (subgraphs, places): (_, Vec<HashMap<usize, usize>>) = collapsed.unzip();
        let mut graph = Self { subgraphs };
        graph.lead_outer(Some, |graph, value| places.get(graph)?.get(&value).copied());
        graph
    }
}

impl Subgraph {
    /// Returns how many parts the longest name of a group has.
    #[must_use]
    pub fn levels(&self) -> usize {
        let parts = |node: &Node| match node.group.as_str() {
            "" => 0,
            group => group.split('/').count(),
        };
        self.nodes.iter().map(parts).max().unwrap_or_default()
    }

    /// Returns the graph with its groups as nodes, and where its values are now.
    fn collapsed(
        &self,
        levels: usize,
        reads: &[Vec<usize>],
        taken: &[usize],
    ) -> (Self, HashMap<usize, usize>) {
        let mut members: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        if levels > 0 {
            for (index, node) in self.nodes.iter().enumerate() {
                if let Some(group) = first_parts(&node.group, levels) {
                    members.entry(group).or_default().push(index);
                }
            }
        }
        members.retain(|_, nodes| nodes.len() > 1);
        // Of each node the group that it is in now.
        let mut group_of: Vec<Option<usize>> = vec![None; self.nodes.len()];
        for (group, nodes) in members.values().enumerate() {
            for node in nodes {
                if let Some(of) = group_of.get_mut(*node) {
                    *of = Some(group);
                }
            }
        }
        let is_outer = self.outer_values(&group_of, reads);
        let mut kept = Kept::default();
        let mut graph = Self { name: self.name.clone(), ..Self::default() };
        let names: Vec<(&str, &Vec<usize>)> = members.iter().map(|(n, m)| (*n, m)).collect();
        for (index, node) in self.nodes.iter().enumerate() {
            match group_of.get(index).copied().flatten().and_then(|group| names.get(group)) {
                None => {
                    let mut node = node.clone();
                    node.inputs = kept.all(&node.inputs);
                    node.outputs = kept.all(&node.outputs);
                    graph.nodes.push(node);
                }
                // The group stands where its first node stood.
                Some((name, members)) if members.first() == Some(&index) => {
                    graph.nodes.push(self.group(name, members, reads, &is_outer, &mut kept));
                }
                Some(_) => {}
            }
        }
        let ports = |list: &[usize], kept: &mut Kept| list.iter().map(|at| kept.at(*at)).collect();
        graph.inputs = ports(&self.inputs, &mut kept);
        graph.outputs = ports(&self.outputs, &mut kept);
        for at in taken {
            kept.at(*at);
        }
        graph.values = kept.order.iter().filter_map(|at| self.value(*at).cloned()).collect();
        (graph, kept.places)
    }

    /// Tells of each value whether something reads it that is not in the group of what makes it.
    fn outer_values(&self, group_of: &[Option<usize>], reads: &[Vec<usize>]) -> Vec<bool> {
        let producers = self.producers();
        let group = |node: usize| group_of.get(node).copied().flatten();
        let mut is_outer = vec![false; self.values.len()];
        for at in self.inputs.iter().chain(&self.outputs) {
            if let Some(is_outer) = is_outer.get_mut(*at) {
                *is_outer = true;
            }
        }
        for (index, read) in reads.iter().enumerate() {
            for at in read {
                let maker = producers.get(*at).copied().flatten();
                let is_inside =
                    group(index).is_some() && maker.is_some_and(|m| group(m) == group(index));
                if let Some(is_outer) = is_outer.get_mut(*at)
                    && !is_inside
                {
                    *is_outer = true;
                }
            }
        }
        is_outer
    }

    fn group(
        &self,
        name: &str,
        members: &[usize],
        reads: &[Vec<usize>],
        is_outer: &[bool],
        kept: &mut Kept,
    ) -> Node {
        let mut node = Node::new(GROUP);
        node.family = Family::Group;
        let first = members.first().and_then(|first| self.nodes.get(*first));
        node.id = first.map_or(0, |first| first.id);
        node.name = Some(name.to_owned());
        name.clone_into(&mut node.group);
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let mut made: HashMap<usize, ()> = HashMap::new();
        let nodes = || members.iter().filter_map(|at| self.nodes.get(*at));
        for member in nodes() {
            let count = counts.entry(&member.operator).or_default();
            *count = count.saturating_add(1);
            made.extend(member.outputs.iter().flatten().map(|at| (*at, ())));
            node.bodies.extend(&member.bodies);
        }
        let mut seen: HashMap<usize, ()> = HashMap::new();
        for at in members.iter().filter_map(|at| reads.get(*at)).flatten() {
            let is_constant = self.value(*at).is_some_and(|value| value.constant.is_some());
            if !made.contains_key(at) && !is_constant && seen.insert(*at, ()).is_none() {
                node.inputs.push(Some(kept.at(*at)));
            }
        }
        for at in nodes().flat_map(|member| &member.outputs).flatten() {
            if is_outer.get(*at).is_some_and(|is_outer| *is_outer) && seen.insert(*at, ()).is_none()
            {
                node.outputs.push(Some(kept.at(*at)));
            }
        }
        let counts =
            counts.into_iter().map(|(operator, count)| (operator.to_owned(), count.into()));
        node.attributes = counts.collect();
        node
    }
}

/// Values that are kept, in the order in which they are asked for.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) order: Vec<usize>,
    pub(super) places: HashMap<usize, usize>,
}

impl Kept {
    /// Returns the new place of a value.
    pub(super) fn at(&mut self, old: usize) -> usize {
        let next = self.order.len();
        *self.places.entry(old).or_insert_with(|| {
            self.order.push(old);
            next
        })
    }

    pub(super) fn all(&mut self, list: &[Option<usize>]) -> Vec<Option<usize>> {
        list.iter().map(|at| at.map(|at| self.at(at))).collect()
    }
}

/// Returns the first parts of the name of a group; `None` where it has fewer.
fn first_parts(group: &str, levels: usize) -> Option<&str> {
    if group.is_empty() {
        return None;
    }
    let ends = group.match_indices('/').map(|(at, _)| at).chain([group.len()]);
    let end = ends.take(levels).last()?;
    let is_deep = group.split('/').count() >= levels;
    group.get(..end).filter(|_| is_deep)
}

impl Node {
    /// Tells whether it stands for the nodes of a collapsed group, whose attributes say how many of each
    /// operator there are.
    #[must_use]
    pub fn is_collapsed(&self) -> bool {
        self.family == Family::Group && self.operator == GROUP
    }
}

/// What a collapsed group is called in the place of an operator.
const GROUP: &str = "group";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Value;

    /// `x -> a/b/one -> a/b/two -> a/three -> y`, and `two` is read outside, too.
    pub(crate) fn graph() -> Graph {
        let value = |name: &str| Value::new(Some(name), None, None);
        let node = |name: &str, inputs: &[usize], output: usize| {
            let mut node = Node::new("Relu").named(Some(name));
            node.inputs = inputs.iter().copied().map(Some).collect();
            node.outputs = vec![Some(output)];
            node
        };
        let values = ["x", "one", "two", "three", "y"].map(value).to_vec();
        let nodes = vec![
            node("a/b/one", &[0], 1),
            node("a/b/two", &[1], 2),
            node("a/three", &[2], 3),
            node("last", &[2, 3], 4),
        ];
        let main =
            Subgraph { name: "main".to_owned(), inputs: vec![0], outputs: vec![4], nodes, values };
        Graph { subgraphs: vec![main] }
    }

    #[test]
    fn groups_keep_what_goes_in_and_out() {
        let graph = graph();
        assert_eq!(graph.levels(), 2);
        assert_eq!(graph.collapsed(0), graph);
        let names = |graph: &Subgraph, list: &[Option<usize>]| -> Vec<String> {
            list.iter().flatten().map(|at| graph.values[*at].name.clone().unwrap()).collect()
        };
        for (levels, operators, outputs) in [
            (1, vec!["group", "Relu"], vec!["two", "three"]),
            (2, vec!["group", "Relu", "Relu"], vec!["two"]),
        ] {
            let found = &graph.collapsed(levels).subgraphs[0];
            let shown: Vec<&str> = found.nodes.iter().map(|node| node.operator.as_str()).collect();
            assert_eq!(shown, operators);
            assert_eq!(names(found, &found.nodes[0].inputs), ["x"]);
            assert_eq!(names(found, &found.nodes[0].outputs), outputs);
            assert_eq!(found.nodes[0].attributes["Relu"], if levels == 1 { 3 } else { 2 });
            let ends = [found.inputs[0], found.outputs[0]];
            assert_eq!(names(found, &ends.map(Some)), ["x", "y"]);
        }
    }
}
