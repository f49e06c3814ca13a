//! Parts of graphs.

use std::collections::{HashMap, VecDeque};

use super::{Graph, Subgraph, collapse::Kept};

/// Which part of a graph is meant: what lies between two nodes, or around one.
///
/// Nodes are found by a test of what they are called: their names, and those of the values that they
/// make. A part is taken out of each graph that has such a node.
#[derive(Default)]
pub struct Selection<'a> {
    from: Option<Test<'a>>,
    to: Option<Test<'a>>,
    depth: Option<usize>,
}

/// Tells whether a name is meant.
type Test<'a> = Box<dyn Fn(&str) -> bool + 'a>;

impl std::fmt::Debug for Selection<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Selection");
        out.field("from", &self.from.is_some()).field("to", &self.to.is_some());
        out.field("depth", &self.depth).finish()
    }
}

impl<'a> Selection<'a> {
    /// Keeps what these nodes lead to, and themselves.
    #[must_use]
    pub fn from(mut self, test: impl Fn(&str) -> bool + 'a) -> Self {
        self.from = Some(Box::new(test));
        self
    }

    /// Keeps what leads to these nodes, and themselves.
    #[must_use]
    pub fn to(mut self, test: impl Fn(&str) -> bool + 'a) -> Self {
        self.to = Some(Box::new(test));
        self
    }

    /// Keeps what is at most this many steps away; where it has both ends, from either of them.
    #[must_use]
    pub const fn depth(mut self, steps: usize) -> Self {
        self.depth = Some(steps);
        self
    }
}

impl Graph {
    /// Returns a part of the graph, with the bodies of its nodes; `None` where there is no such node.
    #[must_use]
    pub fn select(&self, selection: &Selection<'_>) -> Option<Self> {
        let mut kept: Vec<usize> = Vec::new();
        let mut parts: Vec<Option<Subgraph>> = vec![None; self.subgraphs.len()];
        // Of each graph of which there is a part, where its values are.
        let mut moved: Vec<Option<HashMap<usize, usize>>> = vec![None; self.subgraphs.len()];
        let reads = self.reads();
        for (index, (graph, reads)) in self.subgraphs.iter().zip(&reads).enumerate() {
            if let Some((part, values)) = graph.select(selection, reads)
                && let (Some(place), Some(moved)) = (parts.get_mut(index), moved.get_mut(index))
            {
                (*place, *moved) = (Some(part), Some(values));
                kept.push(index);
            }
        }
        if kept.is_empty() {
            return None;
        }
        // Bodies come whole where nothing of them is selected.
        let mut places: Vec<Option<usize>> = vec![None; self.subgraphs.len()];
        let mut queue = VecDeque::from(kept);
        let mut order = Vec::new();
        while let Some(index) = queue.pop_front() {
            let Some(place @ None) = places.get_mut(index) else { continue };
            *place = Some(order.len());
            let part = parts.get_mut(index).and_then(Option::take);
            let Some(graph) = part.or_else(|| self.subgraphs.get(index).cloned()) else { continue };
            queue.extend(graph.nodes.iter().flat_map(|node| &node.bodies));
            order.push(graph);
        }
        for graph in &mut order {
            for node in &mut graph.nodes {
                let bodies = node.bodies.iter();
                node.bodies = bodies.filter_map(|body| *places.get(*body)?).collect();
            }
        }
        let mut graph = Self { subgraphs: order };
        let value = |graph: usize, value: usize| match moved.get(graph)? {
            Some(values) => values.get(&value).copied(),
            None => Some(value),
        };
        graph.lead_outer(|graph| *places.get(graph)?, value);
        Some(graph)
    }
}

impl Subgraph {
    /// Returns a part of the graph, and where its values are there.
    fn select(
        &self,
        selection: &Selection<'_>,
        reads: &[Vec<usize>],
    ) -> Option<(Self, HashMap<usize, usize>)> {
        let Selection { from, to, depth } = selection;
        let links = self.links(reads);
        let reached = |test: &Option<Test<'_>>, next: &[Vec<usize>]| {
            let test = test.as_ref()?;
            let start = (0..self.nodes.len()).filter(|at| self.is_called(*at, test));
            Some(steps(start.collect(), next))
        };
        let (after, before) = (reached(from, &links.after), reached(to, &links.before));
        let is_near = |steps: Option<usize>| {
            steps.is_some_and(|steps| depth.is_none_or(|depth| steps <= depth))
        };
        let at = |list: &[Option<usize>], index: usize| list.get(index).copied().flatten();
        let is_kept = |index: usize| match (&after, &before) {
            (Some(after), Some(before)) => {
                let (after, before) = (at(after, index), at(before, index));
                after.is_some() && before.is_some() && (is_near(after) || is_near(before))
            }
            (Some(list), None) | (None, Some(list)) => is_near(at(list, index)),
            (None, None) => true,
        };
        let nodes: Vec<usize> = (0..self.nodes.len()).filter(|index| is_kept(*index)).collect();
        if nodes.is_empty() { None } else { Some(self.part(&nodes, reads)) }
    }

    /// Returns a graph of some of the nodes: what they read that none of them makes goes in, and what
    /// others read comes out.
    fn part(&self, nodes: &[usize], reads: &[Vec<usize>]) -> (Self, HashMap<usize, usize>) {
        let mut kept = Kept::default();
        let mut part = Self { name: self.name.clone(), ..Self::default() };
        let mut is_made = vec![false; self.values.len()];
        let mut is_read = vec![false; self.values.len()];
        let mark = |list: &mut [bool], at: usize| {
            if let Some(mark) = list.get_mut(at) {
                *mark = true;
            }
        };
        let mut is_kept = vec![false; self.nodes.len()];
        nodes.iter().for_each(|node| mark(&mut is_kept, *node));
        for ((node, read), is_kept) in self.nodes.iter().zip(reads).zip(&is_kept) {
            if *is_kept {
                node.outputs.iter().flatten().for_each(|at| mark(&mut is_made, *at));
            } else {
                read.iter().for_each(|at| mark(&mut is_read, *at));
            }
        }
        self.outputs.iter().for_each(|at| mark(&mut is_read, *at));
        let is = |list: &[bool], at: usize| list.get(at).is_some_and(|is| *is);
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (node, read) in nodes.iter().filter_map(|at| self.nodes.get(*at).zip(reads.get(*at))) {
            let mut node = node.clone();
            for at in read {
                let is_constant = self.value(*at).is_some_and(|value| value.constant.is_some());
                // What bodies take is kept, too.
                let place = kept.at(*at);
                if !is(&is_made, *at) && !is_constant {
                    inputs.push(place);
                }
            }
            for at in node.outputs.iter().flatten().filter(|at| is(&is_read, **at)) {
                outputs.push(kept.at(*at));
            }
            node.inputs = kept.all(&node.inputs);
            node.outputs = kept.all(&node.outputs);
            part.nodes.push(node);
        }
        for list in [&mut inputs, &mut outputs] {
            list.sort_unstable();
            list.dedup();
        }
        (part.inputs, part.outputs) = (inputs, outputs);
        part.values = kept.order.iter().filter_map(|at| self.value(*at).cloned()).collect();
        (part, kept.places)
    }

    fn is_called(&self, index: usize, test: &Test<'_>) -> bool {
        let Some(node) = self.nodes.get(index) else { return false };
        let made = node.outputs.iter().flatten().filter_map(|at| self.value(*at));
        let names = made.filter_map(|value| value.name.as_deref());
        names.chain(node.name.as_deref()).any(test)
    }

    /// Returns what comes directly after each node, and directly before.
    fn links(&self, reads: &[Vec<usize>]) -> Links {
        let producers = self.producers();
        let mut links = Links {
            after: vec![Vec::new(); self.nodes.len()],
            before: vec![Vec::new(); self.nodes.len()],
        };
        for (index, read) in reads.iter().enumerate() {
            for at in read {
                let Some(from) = producers.get(*at).copied().flatten() else { continue };
                if let Some(after) = links.after.get_mut(from) {
                    after.push(index);
                }
                if let Some(before) = links.before.get_mut(index) {
                    before.push(from);
                }
            }
        }
        links
    }
}

/// What comes directly after each node, and directly before.
pub(super) struct Links {
    pub(super) after: Vec<Vec<usize>>,
    pub(super) before: Vec<Vec<usize>>,
}

/// Returns how many steps each node is away from the nearest of some; `None` for what they do not lead
/// to.
fn steps(start: Vec<usize>, next: &[Vec<usize>]) -> Vec<Option<usize>> {
    let mut steps: Vec<Option<usize>> = vec![None; next.len()];
    let mut queue: VecDeque<(usize, usize)> = start.into_iter().map(|at| (at, 0)).collect();
    while let Some((at, count)) = queue.pop_front() {
        let Some(found @ None) = steps.get_mut(at) else { continue };
        *found = Some(count);
        let further = next.get(at).into_iter().flatten();
        queue.extend(further.map(|next| (*next, count.saturating_add(1))));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Node, Value};

    /// `x -> a -> b -> c -> d -> y`, and `e` between `a` and `d`.
    fn graph() -> Graph {
        let node = |name: &str, inputs: &[usize], output: usize| {
            let mut node = Node::new("Relu").named(Some(name));
            node.inputs = inputs.iter().copied().map(Some).collect();
            node.outputs = vec![Some(output)];
            node
        };
        let nodes = vec![
            node("a", &[0], 1),
            node("b", &[1], 2),
            node("c", &[2], 3),
            node("e", &[1], 4),
            node("d", &[3, 4], 5),
        ];
        let names = ["x", "of a", "of b", "of c", "of e", "y"];
        let values = names.map(|name| Value::new(Some(name), None, None)).to_vec();
        let main =
            Subgraph { inputs: vec![0], outputs: vec![5], nodes, values, ..Subgraph::default() };
        Graph { subgraphs: vec![main] }
    }

    fn names(graph: Option<Graph>) -> Option<String> {
        let graph = graph?;
        let [main] = &graph.subgraphs[..] else { panic!("several graphs") };
        let value = |at: &usize| main.values[*at].name.clone().unwrap();
        let list = |list: &[usize]| list.iter().map(value).collect::<Vec<_>>().join(", ");
        let nodes: Vec<&str> = main.nodes.iter().filter_map(|node| node.name.as_deref()).collect();
        Some(format!("{} -> {} -> {}", list(&main.inputs), nodes.join(" "), list(&main.outputs)))
    }

    #[test]
    fn parts_have_inputs_and_outputs_of_their_own() {
        let graph = graph();
        let is = |name: &'static str| move |found: &str| found == name;
        let select = |selection: Selection<'_>| names(graph.select(&selection));
        assert_eq!(select(Selection::default().from(is("b"))).unwrap(), "of a, of e -> b c d -> y");
        assert_eq!(select(Selection::default().to(is("c"))).unwrap(), "x -> a b c -> of a, of c");
        let between = Selection::default().from(is("a")).to(is("of c"));
        assert_eq!(select(between).unwrap(), "x -> a b c -> of a, of c");
        assert_eq!(
            select(Selection::default().from(is("a")).depth(1)).unwrap(),
            "x -> a b e -> of b, of e"
        );
        assert_eq!(select(Selection::default().from(is("nothing"))), None);
        assert_eq!(select(Selection::default().from(is("c")).to(is("b"))), None);
    }
}
