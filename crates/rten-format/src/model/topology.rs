//! The graphs of a model, and what reads and writes what in them.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use tensor_core::text::short;

use crate::{Attributes, Graph, Model, Node, NodeKind, Operator};

/// One of the graphs of a model: the main graph, or a branch or body of an operator.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    graph: &'a Graph,
    place: Place,
}

/// Where a graph is, without a borrow of it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The graph around it, as an index into all graphs, and the operator there; `None` for the
    /// main graph.
    pub(crate) parent: Option<(usize, u32)>,
    /// The attribute that holds it.
    pub(crate) branch: &'static str,
    pub(crate) depth: u32,
    pub(crate) path: String,
}

impl<'a> Scope<'a> {
    /// Returns the graph.
    #[must_use]
    pub const fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// Returns the index of the graph around it and the id of the operator there that holds it;
    /// `None` for the main graph.
    #[must_use]
    pub const fn parent(&self) -> Option<(usize, u32)> {
        self.place.parent
    }

    /// Returns the attribute that holds it, such as `then_branch`; `graph` for the main graph.
    #[must_use]
    pub const fn branch(&self) -> &'static str {
        self.place.branch
    }

    /// Returns how many graphs are around it.
    #[must_use]
    pub const fn depth(&self) -> u32 {
        self.place.depth
    }

    /// Returns its path, such as `graph/then_branch`.
    ///
    /// Where several operators of one graph have such a branch, the operator is named as well:
    /// `graph/then_branch of node 7`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.place.path
    }

    /// Returns the path of a node, such as `graph/then_branch/node 12 "conv1"`.
    #[must_use]
    pub fn node_path(&self, id: u32) -> String {
        self.place.node_path(id, node(self.graph, id))
    }
}

impl Place {
    /// Places a graph behind those around it; [`name_paths`] gives all of them their paths.
    pub(crate) fn new(
        earlier: &[Self],
        parent: Option<(usize, u32)>,
        branch: &'static str,
    ) -> Self {
        let around = parent.and_then(|(parent, _)| earlier.get(parent));
        let depth = around.map_or(0, |place| place.depth.saturating_add(1));
        Self { parent, branch, depth, path: String::new() }
    }

    pub(crate) fn node_path(&self, id: u32, node: Option<&Node>) -> String {
        let path = &self.path;
        match node.and_then(|node| node.name.as_deref()) {
            None | Some("") => format!("{path}/node {id}"),
            Some(name) => format!("{path}/node {id} {:?}", short(name)),
        }
    }
}

/// Calls `visit` with every node of all graphs, in the order of the file: what is in the subgraphs
/// of an operator comes behind it. Returns the graphs, each behind those around it.
///
/// The graph of a node is given as an index into what is returned.
pub(crate) fn walk<'a>(
    main: &'a Graph,
    mut visit: impl FnMut(usize, u32, &'a Node),
) -> Vec<Scope<'a>> {
    let (mut graphs, mut places) = (Vec::new(), Vec::new());
    let mut stack = vec![Frame::Next { graph: main, parent: None, branch: "graph" }];
    loop {
        match stack.last_mut() {
            None => break,
            Some(&mut Frame::Next { graph, parent, branch }) => {
                stack.pop();
                stack.push(Frame::Open { scope: graphs.len(), nodes: (0..).zip(&graph.nodes) });
                graphs.push(graph);
                places.push(Place::new(&places, parent, branch));
            }
            Some(Frame::Open { scope, nodes }) => match (*scope, nodes.next()) {
                (_, None) => drop(stack.pop()),
                (scope, Some((id, node))) => {
                    visit(scope, id, node);
                    if let NodeKind::Operator(operator) = &node.kind {
                        stack.extend(operator.subgraphs().rev().map(|(branch, graph)| {
                            Frame::Next { graph, parent: Some((scope, id)), branch }
                        }));
                    }
                }
            },
        }
    }
    name_paths(&mut places);
    graphs.into_iter().zip(places).map(|(graph, place)| Scope { graph, place }).collect()
}

/// A graph that [`walk`] has to enter, or is in.
enum Frame<'a> {
    Next {
        graph: &'a Graph,
        parent: Option<(usize, u32)>,
        branch: &'static str,
    },
    Open {
        scope: usize,
        nodes: std::iter::Zip<std::ops::RangeFrom<u32>, std::slice::Iter<'a, Node>>,
    },
}

/// Gives every graph its path.
pub(crate) fn name_paths(places: &mut [Place]) {
    let mut namesakes: HashMap<(usize, &'static str), u32> = HashMap::new();
    for place in places.iter() {
        if let Some((parent, _)) = place.parent {
            let count = namesakes.entry((parent, place.branch)).or_default();
            *count = count.saturating_add(1);
        }
    }
    for index in 0..places.len() {
        let (earlier, rest) = places.split_at_mut(index);
        let Some(place) = rest.first_mut() else { return };
        let around = place.parent.and_then(|(parent, id)| Some((earlier.get(parent)?, parent, id)));
        let branch = place.branch;
        place.path = match around {
            None => branch.to_owned(),
            Some((around, parent, id)) => match namesakes.get(&(parent, branch)) {
                Some(2..) => format!("{}/{branch} of node {id}", around.path),
                _ => format!("{}/{branch}", around.path),
            },
        };
    }
}

/// All graphs of a model, with what makes and what reads each of their nodes.
///
/// Ids that no node has count nowhere. Graphs are numbered in the order of the file, the main graph
/// first.
///
/// # Examples
///
/// ```
/// # use rten_format::{Model, topology::Topology};
/// # let model = Model::default();
/// let topology = Topology::of(&model);
/// for (index, scope) in topology.scopes().iter().enumerate() {
///     for operator in topology.order(index).operators {
///         println!("{}", scope.node_path(operator));
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Topology<'a> {
    scopes: Vec<Scope<'a>>,
    links: Vec<Links<'a>>,
}

/// What the nodes of one graph have to do with each other.
#[derive(Clone, Debug, Default)]
struct Links<'a> {
    /// Values and constants by name.
    names: HashMap<&'a str, u32>,
    producers: Lists,
    consumers: Lists,
    reads: Lists,
}

/// An order of the operators of a graph in which values are made before they are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Order {
    /// Ids of the operators, those first that are first in the file.
    pub operators: Vec<u32>,
    /// Ids of some operators that wait for each other, each for the next one, and the last for the
    /// first; empty where there are none.
    pub cycle: Vec<u32>,
}

impl<'a> Topology<'a> {
    /// Looks through a model.
    #[must_use]
    pub fn of(model: &'a Model) -> Self {
        let scopes = walk(&model.graph, |_, _, _| ());
        let names = scopes.iter().map(|scope| names(scope.graph)).collect::<Vec<_>>();
        let mut reads: Vec<Vec<(u32, u32)>> =
            scopes.iter().map(|scope| reads(scope.graph)).collect();
        for (index, scope) in scopes.iter().enumerate() {
            for &capture in &scope.graph.captures {
                let source = capture_source(&scopes, &names, index, capture);
                if let Some((owner, operator, id)) = source
                    && let Some(reads) = reads.get_mut(owner)
                {
                    reads.push((operator, id));
                }
            }
        }
        let links = scopes.iter().zip(names).zip(reads).map(|((scope, names), reads)| {
            let count = scope.graph.nodes.len();
            let reversed: Vec<(u32, u32)> = reads.iter().map(|&(a, b)| (b, a)).collect();
            Links {
                names,
                producers: Lists::new(count, &writes(scope.graph)),
                consumers: Lists::new(count, &reversed),
                reads: Lists::new(count, &reads),
            }
        });
        let links = links.collect();
        Self { scopes, links }
    }

    /// Returns the graphs, each behind the one around it.
    #[must_use]
    pub fn scopes(&self) -> &[Scope<'a>] {
        &self.scopes
    }

    /// Returns the id of the value or constant of a name in a graph, the last where several have
    /// it: so does RTen.
    #[must_use]
    pub fn find(&self, scope: usize, name: &str) -> Option<u32> {
        self.links.get(scope)?.names.get(name).copied()
    }

    /// Returns the ids of the operators that make a value; the last one wins in RTen.
    #[must_use]
    pub fn producers(&self, scope: usize, id: u32) -> &[u32] {
        self.links.get(scope).map_or(&[], |links| links.producers.of(id))
    }

    /// Returns the ids of the operators that read a value or constant, or whose subgraphs capture
    /// it. An operator that reads it twice is there twice.
    #[must_use]
    pub fn consumers(&self, scope: usize, id: u32) -> &[u32] {
        self.links.get(scope).map_or(&[], |links| links.consumers.of(id))
    }

    /// Returns the ids of what an operator reads, what its subgraphs capture last.
    #[must_use]
    pub fn reads(&self, scope: usize, operator: u32) -> &[u32] {
        self.links.get(scope).map_or(&[], |links| links.reads.of(operator))
    }

    /// Returns where a captured value comes from: the nearest graph around `scope` that has a value
    /// or constant of its name, and the id there.
    #[must_use]
    pub fn capture_source(&self, scope: usize, capture: u32) -> Option<(usize, u32)> {
        let name = captured_name(self.scopes.get(scope)?.graph, capture)?;
        let mut around = self.scopes.get(scope)?.parent();
        while let Some((index, _)) = around {
            if let Some(id) = self.find(index, name) {
                return Some((index, id));
            }
            around = self.scopes.get(index)?.parent();
        }
        None
    }

    /// Tells whether a value comes from another graph.
    pub(crate) fn is_captured(&self, scope: usize, id: u32) -> bool {
        let listed =
            self.scopes.get(scope).is_some_and(|found| found.graph().captures.contains(&id));
        listed && self.capture_source(scope, id).is_some()
    }

    /// Returns the number of attributes that this crate does not know, which may hold graphs.
    pub(crate) fn unknown_attributes(&self) -> Option<u8> {
        let mut operators = self.scopes.iter().flat_map(|scope| operators(scope.graph));
        operators.find_map(|(_, operator)| match &operator.attributes {
            Some(Attributes::Unknown(table)) => Some(table.tag()),
            _ => None,
        })
    }

    /// Orders the operators of a graph by the values that they wait for.
    ///
    /// Inputs, captures and constants are there from the start, whoever writes to them.
    #[must_use]
    pub fn order(&self, scope: usize) -> Order {
        match (self.scopes.get(scope), self.links.get(scope)) {
            (Some(scope), Some(links)) => Sort::new(scope.graph, links).run(),
            _ => Order::default(),
        }
    }
}

/// Finds the graph around, the operator in it, and the node that a captured value comes from.
fn capture_source(
    scopes: &[Scope<'_>],
    names: &[HashMap<&str, u32>],
    scope: usize,
    capture: u32,
) -> Option<(usize, u32, u32)> {
    let name = captured_name(scopes.get(scope)?.graph, capture)?;
    let mut around = scopes.get(scope)?.parent();
    while let Some((index, operator)) = around {
        if let Some(&id) = names.get(index)?.get(name) {
            return Some((index, operator, id));
        }
        around = scopes.get(index)?.parent();
    }
    None
}

/// Returns a node of a graph; `None` where no node has the id.
pub(crate) fn node(graph: &Graph, id: u32) -> Option<&Node> {
    graph.nodes.get(usize::try_from(id).ok()?)
}

/// Returns the name by which a captured value is found. RTen's converter lists constants of the
/// graph itself as captured, which are there already.
fn captured_name(graph: &Graph, id: u32) -> Option<&str> {
    let node = node(graph, id)?;
    node.name.as_deref().filter(|_| matches!(node.kind, NodeKind::Value(_)))
}

fn operators(graph: &Graph) -> impl Iterator<Item = (u32, &Operator)> {
    (0..).zip(&graph.nodes).filter_map(|(id, node)| match &node.kind {
        NodeKind::Operator(operator) => Some((id, operator)),
        _ => None,
    })
}

fn names(graph: &Graph) -> HashMap<&str, u32> {
    let nodes = (0..).zip(&graph.nodes);
    let named =
        nodes.filter(|(_, node)| matches!(node.kind, NodeKind::Value(_) | NodeKind::Constant(_)));
    named.filter_map(|(id, node)| Some((node.name.as_deref()?, id))).collect()
}

/// Pairs each operator with what it reads.
fn reads(graph: &Graph) -> Vec<(u32, u32)> {
    let pairs = operators(graph)
        .flat_map(|(id, operator)| operator.inputs.iter().flatten().map(move |&input| (id, input)));
    pairs.collect()
}

/// Pairs what each operator makes with it.
fn writes(graph: &Graph) -> Vec<(u32, u32)> {
    let pairs = operators(graph).flat_map(|(id, operator)| {
        operator.outputs.iter().flatten().map(move |&output| (output, id))
    });
    pairs.collect()
}

/// A list of ids for each node of a graph.
#[derive(Clone, Debug, Default)]
struct Lists {
    /// Where the list of each node starts, and where the last one ends.
    starts: Vec<usize>,
    ids: Vec<u32>,
}

impl Lists {
    /// Sorts pairs by the node that they start with; pairs of ids that no node has are left out.
    fn new(nodes: usize, pairs: &[(u32, u32)]) -> Self {
        let known = |id: u32| usize::try_from(id).ok().filter(|id| *id < nodes);
        let mut pairs: Vec<(usize, u32)> =
            pairs.iter().filter_map(|&(node, id)| known(node).zip(known(id).map(|_| id))).collect();
        pairs.sort_by_key(|(node, _)| *node);
        let mut starts = Vec::with_capacity(nodes.saturating_add(1));
        let mut next = pairs.iter().enumerate().peekable();
        for node in 0..=nodes {
            while next.next_if(|(_, (of, _))| *of < node).is_some() {}
            starts.push(next.peek().map_or(pairs.len(), |(at, _)| *at));
        }
        Self { starts, ids: pairs.into_iter().map(|(_, id)| id).collect() }
    }

    fn of(&self, id: u32) -> &[u32] {
        let bounds = usize::try_from(id)
            .ok()
            .and_then(|id| Some(*self.starts.get(id)?..*self.starts.get(id.checked_add(1)?)?));
        bounds.and_then(|bounds| self.ids.get(bounds)).unwrap_or_default()
    }
}

/// Sorts operators and values: an operator waits for all values that it reads, a value for all
/// operators that make it. Each input and output is looked at twice, however they are shared.
struct Sort<'a> {
    graph: &'a Graph,
    links: &'a Links<'a>,
    /// How many others each node waits for.
    waits: Vec<usize>,
    ready: BinaryHeap<Reverse<u32>>,
}

impl<'a> Sort<'a> {
    fn new(graph: &'a Graph, links: &'a Links<'a>) -> Self {
        let ids = (0..).zip(&graph.nodes);
        let mut waits: Vec<usize> = ids
            .map(|(id, node)| match node.kind {
                NodeKind::Operator(_) => links.reads.of(id).len(),
                NodeKind::Value(_) => links.producers.of(id).len(),
                _ => 0,
            })
            .collect();
        for &id in graph.inputs.iter().chain(&graph.captures) {
            let given = node(graph, id).is_some_and(|node| matches!(node.kind, NodeKind::Value(_)));
            if given && let Some(count) = at(&mut waits, id) {
                *count = 0;
            }
        }
        Self { graph, links, waits, ready: BinaryHeap::new() }
    }

    fn run(mut self) -> Order {
        let mut operators = Vec::new();
        let there: Vec<u32> =
            (0..).zip(&self.waits).filter(|(_, waits)| **waits == 0).map(|(id, _)| id).collect();
        let mut done = vec![false; self.graph.nodes.len()];
        for &id in &there {
            self.settle(id, &mut done);
        }
        while let Some(Reverse(id)) = self.ready.pop() {
            operators.push(id);
            for &output in self.outputs(id) {
                if self.operator(output).is_none()
                    && let Some(waits) = at(&mut self.waits, output)
                    && *waits > 0
                {
                    *waits = waits.saturating_sub(1);
                    if *waits == 0 {
                        self.settle(output, &mut done);
                    }
                }
            }
        }
        let cycle = self.cycle();
        Order { operators, cycle }
    }

    /// Marks a node as there: an operator can run, and whoever waits for a value waits no more.
    fn settle(&mut self, id: u32, done: &mut [bool]) {
        match at(done, id) {
            Some(done) if !*done => *done = true,
            _ => return,
        }
        if self.operator(id).is_some() {
            self.ready.push(Reverse(id));
            return;
        }
        let links = self.links;
        for &consumer in links.consumers.of(id) {
            if let Some(waits) = at(&mut self.waits, consumer)
                && *waits > 0
            {
                *waits = waits.saturating_sub(1);
                if *waits == 0 {
                    self.settle_operator(consumer, done);
                }
            }
        }
    }

    fn settle_operator(&mut self, id: u32, done: &mut [bool]) {
        if let Some(done) = at(done, id)
            && !*done
        {
            *done = true;
            self.ready.push(Reverse(id));
        }
    }

    fn operator(&self, id: u32) -> Option<&'a Operator> {
        match &node(self.graph, id)?.kind {
            NodeKind::Operator(operator) => Some(operator),
            _ => None,
        }
    }

    fn outputs(&self, id: u32) -> impl Iterator<Item = &'a u32> + use<'a> {
        self.operator(id).into_iter().flat_map(|operator| operator.outputs.iter().flatten())
    }

    /// Follows what is still waited for until it comes round; empty where nothing waits.
    fn cycle(&self) -> Vec<u32> {
        let waiting = |id: &u32| {
            usize::try_from(*id).ok().and_then(|id| self.waits.get(id)).is_some_and(|w| *w > 0)
        };
        let first = (0..).zip(&self.graph.nodes).map(|(id, _)| id);
        let Some(mut operator) =
            first.into_iter().find(|id| waiting(id) && self.operator(*id).is_some())
        else {
            return Vec::new();
        };
        let mut seen: HashMap<u32, usize> = HashMap::new();
        let mut path: Vec<u32> = Vec::new();
        loop {
            if let Some(&start) = seen.get(&operator) {
                return path.split_off(start);
            }
            seen.insert(operator, path.len());
            path.push(operator);
            let value = self.links.reads.of(operator).iter().find(|id| waiting(id));
            let next = value
                .and_then(|value| self.links.producers.of(*value).iter().find(|id| waiting(id)));
            match next {
                Some(&next) => operator = next,
                // An operator is read where a value should be, which is not a cycle.
                None => return Vec::new(),
            }
        }
    }
}

fn at<T>(list: &mut [T], id: u32) -> Option<&mut T> {
    list.get_mut(usize::try_from(id).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Attributes, OperatorType, Value,
        attributes::{IfAttrs, LoopAttrs},
    };

    fn value(name: &str) -> Node {
        Node::named(name, Value::default())
    }

    fn operator(
        name: &str,
        attributes: Option<Attributes>,
        inputs: &[u32],
        outputs: &[u32],
    ) -> Node {
        let ids = |ids: &[u32]| ids.iter().copied().map(Some).collect();
        let operator_type = OperatorType::Add;
        let (inputs, outputs) = (ids(inputs), ids(outputs));
        Node::named(name, Operator { operator_type, attributes, inputs, outputs })
    }

    fn graph(nodes: Vec<Node>, captures: &[u32]) -> Graph {
        Graph { nodes, inputs: vec![], outputs: vec![], captures: captures.to_vec() }
    }

    fn model(graph: Graph) -> Model {
        Model { graph, metadata: None }
    }

    /// An If in the main graph, with a Loop in its first branch; both inner graphs capture.
    fn nested() -> Model {
        let body = graph(vec![value("x"), value("y"), operator("inner", None, &[0], &[1])], &[0]);
        let body = LoopAttrs { body: Some(Box::new(body)) };
        let then_branch =
            graph(vec![value("z"), operator("loop", Some(body.into()), &[], &[0])], &[]);
        let else_branch = graph(vec![value("c"), value("out")], &[0]);
        let branches = IfAttrs {
            then_branch: Some(Box::new(then_branch)),
            else_branch: Some(Box::new(else_branch)),
        };
        let nodes = vec![
            value("c"),
            value("x"),
            value("r"),
            operator("if", Some(branches.into()), &[0], &[2]),
        ];
        model(graph(nodes, &[]))
    }

    #[test]
    fn graphs_are_in_the_order_of_the_file() {
        let model = nested();
        let mut visited = Vec::new();
        let scopes = walk(&model.graph, |scope, id, _| visited.push((scope, id)));
        let paths: Vec<&str> = scopes.iter().map(Scope::path).collect();
        assert_eq!(
            paths,
            ["graph", "graph/then_branch", "graph/then_branch/body", "graph/else_branch"]
        );
        let depths: Vec<u32> = scopes.iter().map(Scope::depth).collect();
        assert_eq!(depths, [0, 1, 2, 1]);
        assert_eq!(
            visited,
            [
                (0, 0),
                (0, 1),
                (0, 2),
                (0, 3),
                (1, 0),
                (1, 1),
                (2, 0),
                (2, 1),
                (2, 2),
                (3, 0),
                (3, 1)
            ]
        );
        assert_eq!(scopes[2].node_path(2), "graph/then_branch/body/node 2 \"inner\"");
    }

    #[test]
    fn equal_branches_name_their_operator() {
        let of = |name| {
            let body = LoopAttrs { body: Some(Box::new(graph(vec![value("v")], &[]))) };
            operator(name, Some(body.into()), &[], &[])
        };
        let model = model(graph(vec![of("a"), of("b")], &[]));
        let paths: Vec<_> = walk(&model.graph, |_, _, _| ());
        let paths: Vec<&str> = paths.iter().map(Scope::path).collect();
        assert_eq!(paths, ["graph", "graph/body of node 0", "graph/body of node 1"]);
    }

    #[test]
    fn captures_are_found_by_name() {
        let model = nested();
        let topology = Topology::of(&model);
        assert_eq!(topology.capture_source(2, 0), Some((0, 1)));
        assert_eq!(topology.capture_source(3, 0), Some((0, 0)));
        assert_eq!(topology.capture_source(2, 1), None);
        assert_eq!(topology.consumers(0, 1), [3]);
        assert_eq!(topology.consumers(0, 0), [3, 3]);
        assert_eq!(topology.reads(0, 3), [0, 1, 0]);
        assert_eq!(topology.producers(0, 2), [3]);
    }

    #[test]
    fn last_of_a_name_is_found() {
        let model = model(graph(vec![value("a"), value("a"), operator("a", None, &[], &[])], &[]));
        assert_eq!(Topology::of(&model).find(0, "a"), Some(1));
        assert_eq!(Topology::of(&model).find(0, "b"), None);
    }

    #[test]
    fn operators_follow_what_they_read() {
        let nodes = vec![
            value("a"),
            value("b"),
            value("c"),
            operator("second", None, &[1], &[2]),
            operator("first", None, &[0], &[1]),
            operator("free", None, &[], &[]),
        ];
        let model = model(graph(nodes, &[]));
        let order = Topology::of(&model).order(0);
        assert_eq!((order.operators, order.cycle), (vec![4, 3, 5], vec![]));
    }

    #[test]
    fn cycles_are_followed_round() {
        let nodes = vec![
            value("a"),
            value("b"),
            value("c"),
            operator("behind", None, &[1], &[]),
            operator("one", None, &[0], &[1]),
            operator("two", None, &[1], &[0, 2]),
        ];
        let mut model = model(graph(nodes, &[]));
        let order = Topology::of(&model).order(0);
        assert_eq!((order.operators, order.cycle), (vec![], vec![4, 5]));
        model.graph.inputs.push(0);
        let order = Topology::of(&model).order(0);
        assert_eq!((order.operators, order.cycle), (vec![4, 3, 5], vec![]));
    }

    #[test]
    fn ids_of_no_node_count_nowhere() {
        let model = model(graph(vec![operator("a", None, &[7], &[9]), value("b")], &[5]));
        let topology = Topology::of(&model);
        assert_eq!(topology.consumers(0, 7), [0_u32; 0]);
        assert_eq!(topology.producers(3, 0), [0_u32; 0]);
        assert_eq!(topology.order(0).operators, [0]);
        assert_eq!(topology.capture_source(0, 5), None);
    }
}
