//! Where the parts of a drawing stand: layers from the top down.
//!
//! Order and coordinates are those of `rust-sugiyama`, which knows nothing of long edges but straight
//! lines: so each edge goes through a place of its own in every layer between its ends, and one that
//! would cross very many layers is drawn as a reference to what it comes from.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
};

use rust_sugiyama::configure::{Config, RankingType};

use super::{
    Subgraph,
    select::Links,
    text::{Ends, Source},
};

/// What stands in a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    Node(usize),
    /// A value that comes from outside.
    Input(usize),
    /// A value that goes outside.
    Output(usize),
    /// A value that is made far away.
    Reference(usize),
}

/// A drawing of one graph.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) items: Vec<Placed>,
    pub(super) edges: Vec<Edge>,
}

/// Something in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) item: Item,
    /// The centre.
    pub(super) at: (f64, f64),
    pub(super) size: (f64, f64),
}

/// The way of a value from one item to another.
#[derive(Debug)]
pub(super) struct Edge {
    /// Positions in the items.
    pub(super) ends: (usize, usize),
    pub(super) value: usize,
    /// Where it passes between them.
    pub(super) points: Vec<(f64, f64)>,
}

/// What has to be placed: items with their sizes, and edges between them with their values.
struct Parts {
    items: Vec<(Item, (f64, f64))>,
    edges: Vec<(usize, usize, usize)>,
}

impl Layout {
    /// Places what is in a graph; `None` where there is more than can be looked at.
    pub(super) fn of(
        graph: &Subgraph,
        size: impl Fn(Item) -> (f64, f64),
    ) -> io::Result<Option<Self>> {
        let Some(parts) = Parts::of(graph, size) else { return Ok(None) };
        let mut layout = parts.layered()?;
        layout.iter_mut().for_each(Self::frame);
        Ok(layout)
    }

    /// Moves everything so that it starts at the margin, and measures it.
    fn frame(&mut self) {
        let (mut low, mut high) = ((f64::MAX, f64::MAX), (0.0_f64, 0.0_f64));
        for Placed { at, size, .. } in &self.items {
            low = (low.0.min(at.0 - size.0 / 2.0), low.1.min(at.1 - size.1 / 2.0));
        }
        if self.items.is_empty() {
            low = (0.0, 0.0);
        }
        let moved = |at: &mut (f64, f64)| {
            *at = ((at.0 - low.0 + MARGIN).round(), (at.1 - low.1 + MARGIN).round());
        };
        for Placed { at, size, .. } in &mut self.items {
            moved(at);
            high = (high.0.max(at.0 + size.0 / 2.0), high.1.max(at.1 + size.1 / 2.0));
        }
        for point in self.edges.iter_mut().flat_map(|edge| &mut edge.points) {
            moved(point);
            high.0 = high.0.max(point.0);
        }
        (self.width, self.height) = (high.0 + MARGIN, high.1 + MARGIN);
    }
}

impl Parts {
    fn of(graph: &Subgraph, size: impl Fn(Item) -> (f64, f64)) -> Option<Self> {
        let ends = Ends::of(graph);
        let mut items: Vec<Item> = (0..graph.nodes.len()).map(Item::Node).collect();
        let mut inputs: BTreeMap<usize, usize> = BTreeMap::new();
        for value in (0..graph.values.len()).filter(|at| ends.is_drawn(*at)) {
            if ends.producer(value).is_none() {
                inputs.insert(value, items.len());
                items.push(Item::Input(value));
            }
        }
        let mut edges: BTreeSet<(usize, usize, usize)> = BTreeSet::new();
        let start = |value: usize| match ends.source(value)? {
            Source::Node(node) => Some(node),
            Source::Value => inputs.get(&value).copied(),
        };
        for (at, node) in graph.nodes.iter().enumerate() {
            let values = node.inputs.iter().flatten();
            edges.extend(values.filter_map(|value| Some((start(*value)?, at, *value))));
        }
        let outputs: BTreeSet<usize> = graph.outputs.iter().copied().collect();
        for value in outputs {
            // An input that goes straight out is one thing.
            if let Some(producer) = ends.producer(value) {
                edges.insert((producer, items.len(), value));
                items.push(Item::Output(value));
            }
        }
        if items.len() > MAX_ITEMS || edges.len() > MAX_EDGES {
            return None;
        }
        let items = items.into_iter().map(|item| (item, size(item))).collect();
        Some(Self { items, edges: edges.into_iter().collect() })
    }

    /// Gives every item a layer, such that edges lead down; those that cannot, in a loop, are `None`
    /// in the list of spans.
    fn layers(&self) -> (Vec<usize>, Vec<Option<usize>>) {
        let count = self.items.len();
        let mut links = Links { after: vec![Vec::new(); count], before: vec![Vec::new(); count] };
        // What reads what it makes itself is no order.
        for (from, to, _) in self.edges.iter().filter(|(from, to, _)| from != to) {
            if let (Some(after), Some(before)) =
                (links.after.get_mut(*from), links.before.get_mut(*to))
            {
                after.push(*to);
                before.push(*from);
            }
        }
        let mut waits: Vec<usize> = links.before.iter().map(Vec::len).collect();
        let mut layers: Vec<Option<usize>> = vec![None; count];
        let mut ready: VecDeque<usize> =
            (0..count).filter(|at| waits.get(*at) == Some(&0)).collect();
        let (mut order, mut next) = (Vec::with_capacity(count), 0..count);
        loop {
            let Some(at) = ready.pop_front() else {
                // What is left is in a loop, which is broken before its first item.
                match next.by_ref().find(|at| matches!(layers.get(*at), Some(None))) {
                    Some(first) => ready.push_back(first),
                    None => break,
                }
                continue;
            };
            if !matches!(layers.get(at), Some(None)) {
                continue;
            }
            let before = links.before.get(at).into_iter().flatten();
            let above = before.filter_map(|from| layers.get(*from).copied().flatten()).max();
            if let Some(layer) = layers.get_mut(at) {
                *layer = Some(above.map_or(0, |above| above.saturating_add(1)));
            }
            order.push(at);
            for to in links.after.get(at).into_iter().flatten() {
                if let Some(waits) = waits.get_mut(*to) {
                    *waits = waits.saturating_sub(1);
                    if *waits == 0 {
                        ready.push_back(*to);
                    }
                }
            }
        }
        let mut layers: Vec<usize> = layers.into_iter().map(Option::unwrap_or_default).collect();
        // What nothing leads to stands just above what it leads to.
        for at in order.into_iter().rev() {
            let after = links.after.get(at).into_iter().flatten();
            let below = after.filter_map(|to| layers.get(*to)).min().copied();
            if let (Some([]), Some(below)) = (links.before.get(at).map(Vec::as_slice), below)
                && let Some(layer) = layers.get_mut(at)
            {
                *layer = below.saturating_sub(1).max(*layer);
            }
        }
        let span = |(from, to, _): &(usize, usize, usize)| {
            let (from, to) = (layers.get(*from)?, layers.get(*to)?);
            to.checked_sub(*from).filter(|span| *span > 0)
        };
        let spans = self.edges.iter().map(span).collect();
        (layers, spans)
    }

    fn layered(mut self) -> io::Result<Option<Layout>> {
        let (mut layers, spans) = self.layers();
        // Above the first layer is place for what the references come from.
        layers.iter_mut().for_each(|layer| *layer = layer.saturating_add(1));
        let passed = |limit: usize| {
            let spans = spans.iter().flatten().filter(|span| **span <= limit);
            spans.map(|span| span.saturating_sub(1)).sum::<usize>()
        };
        let Some(limit) = SPANS.into_iter().find(|limit| passed(*limit) <= MAX_ITEMS) else {
            return Ok(None);
        };
        let mut references: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let edges = std::mem::take(&mut self.edges);
        // Of each edge the vertices that it passes.
        let mut ways: Vec<(usize, usize, usize, Vec<usize>)> = Vec::new();
        let mut vertices: Vec<(f64, f64)> = self.items.iter().map(|(_, size)| *size).collect();
        let mut passing = Vec::new();
        for ((from, to, value), span) in edges.iter().zip(&spans) {
            match span.filter(|span| *span <= limit) {
                Some(span) => passing.push((*from, *to, *value, span)),
                None => {
                    references.entry((*to, *value)).or_insert_with(|| {
                        let reference = self.items.len();
                        self.items.push((Item::Reference(*value), REFERENCE));
                        vertices.push(REFERENCE);
                        layers.push(layers.get(*to).map_or(0, |layer| layer.saturating_sub(1)));
                        ways.push((reference, *to, *value, Vec::new()));
                        reference
                    });
                }
            }
        }
        for (from, to, value, span) in passing {
            let first = vertices.len();
            vertices.extend(std::iter::repeat_n(LANE, span.saturating_sub(1)));
            let above = layers.get(from).copied().unwrap_or_default();
            layers.extend((1..span).map(|down| above.saturating_add(down)));
            ways.push((from, to, value, (first..vertices.len()).collect()));
        }
        let vertices: Vec<Vertex> =
            vertices.into_iter().zip(layers).map(|(size, layer)| Vertex { size, layer }).collect();
        let places = placed(&vertices, &ways)?;
        let place = |at: usize| places.get(at).copied().unwrap_or_default();
        let items = self.items.iter().enumerate();
        let items =
            items.map(|(at, (item, size))| Placed { item: *item, at: place(at), size: *size });
        let edges = ways.into_iter().map(|(from, to, value, way)| {
            let points = way.into_iter().map(place).collect();
            Edge { ends: (from, to), value, points }
        });
        Ok(Some(Layout { items: items.collect(), edges: edges.collect(), ..Layout::default() }))
    }
}

/// What the library places: an item, or a place where an edge passes.
#[derive(Clone, Copy)]
struct Vertex {
    size: (f64, f64),
    layer: usize,
}

/// Returns the centre of each vertex. What hangs together stands together, side by side with the rest,
/// in rows.
fn placed(
    vertices: &[Vertex],
    ways: &[(usize, usize, usize, Vec<usize>)],
) -> io::Result<Vec<(f64, f64)>> {
    let mut edges: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (from, to, _, way) in ways {
        let starts = std::iter::once(from).chain(way);
        edges.extend(starts.zip(way.iter().chain([to])).map(|(from, to)| (*from, *to)));
    }
    let parts = connected(vertices.len(), &edges);
    let layouts = || parts.iter().map(|part| laid_out(part, vertices, &edges)).collect();
    // The library calls itself as deep as there are vertices.
    let parts: Vec<Vec<(usize, (f64, f64))>> = if parts.iter().all(|part| part.len() <= SHALLOW) {
        layouts()
    } else {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK);
            let joined = thread.spawn_scoped(scope, layouts)?.join();
            joined.map_err(|_| io::Error::other("the thread for it ended early"))
        })?
    };
    let mut places = vec![(0.0, 0.0); vertices.len()];
    let (mut corner, mut row) = ((0.0_f64, 0.0_f64), 0.0_f64);
    for part in parts {
        let (mut low, mut high) = ((f64::MAX, f64::MAX), (f64::MIN, f64::MIN));
        for (vertex, at) in &part {
            let (width, height) = vertices.get(*vertex).map_or((0.0, 0.0), |of| of.size);
            low = (low.0.min(at.0 - width / 2.0), low.1.min(at.1 - height / 2.0));
            high = (high.0.max(at.0 + width / 2.0), high.1.max(at.1 + height / 2.0));
        }
        if corner.0 > ROW {
            corner = (0.0, corner.1 + row + SPACING);
            row = 0.0;
        }
        for (vertex, at) in part {
            if let Some(place) = places.get_mut(vertex) {
                *place = (at.0 - low.0 + corner.0, at.1 - low.1 + corner.1);
            }
        }
        corner.0 += high.0 - low.0 + SPACING;
        row = row.max(high.1 - low.1);
    }
    Ok(places)
}

/// Returns what hangs together, each part in order, by its first vertex.
fn connected(count: usize, edges: &BTreeSet<(usize, usize)>) -> Vec<Vec<usize>> {
    let mut links: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (from, to) in edges {
        for (one, other) in [(*from, *to), (*to, *from)] {
            if let Some(links) = links.get_mut(one) {
                links.push(other);
            }
        }
    }
    let mut is_seen = vec![false; count];
    let mut parts = Vec::new();
    for first in 0..count {
        let (mut part, mut stack) = (Vec::new(), vec![first]);
        while let Some(at) = stack.pop() {
            let Some(is_seen @ false) = is_seen.get_mut(at) else { continue };
            *is_seen = true;
            part.push(at);
            stack.extend(links.get(at).into_iter().flatten());
        }
        part.sort_unstable();
        parts.extend(Some(part).filter(|part| !part.is_empty()));
    }
    parts
}

/// Places one part. The library keeps as much for each part of what it is given as for all of it, so that
/// it gets one at a time.
fn laid_out(
    part: &[usize],
    vertices: &[Vertex],
    edges: &BTreeSet<(usize, usize)>,
) -> Vec<(usize, (f64, f64))> {
    if let [single] = part {
        return vec![(*single, (0.0, 0.0))];
    }
    let number = |vertex: &usize| u32::try_from(part.binary_search(vertex).ok()?).ok();
    let size = |vertex: &usize| vertices.get(*vertex).map_or((0.0, 0.0), |of| of.size);
    let mut numbered: Vec<(u32, (f64, f64))> = (0..).zip(part.iter().map(size)).collect();
    let from = |vertex: &usize| edges.range((*vertex, 0)..=(*vertex, usize::MAX));
    let inner = part.iter().flat_map(from);
    let mut inner: Vec<(u32, u32)> =
        inner.filter_map(|(from, to)| Some((number(from)?, number(to)?))).collect();
    spine(part, vertices, &mut numbered, &mut inner);
    let config = Config {
        vertex_spacing: SPACING,
        dummy_vertices: false,
        ranking_type: RankingType::Up,
        transpose: inner.len() <= MAX_TRANSPOSED,
        ..Config::default()
    };
    let layouts = rust_sugiyama::from_vertices_and_edges(&numbered, &inner, &config);
    let placed = layouts.into_iter().flat_map(|(placed, _, _)| placed);
    let mut placed: Vec<(usize, (f64, f64))> =
        placed.filter_map(|(vertex, at)| Some((*part.get(vertex)?, at))).collect();
    placed.sort_unstable_by_key(|(vertex, _)| *vertex);
    placed
}

/// Adds a vertex for each layer, from which edges lead to all that nothing else leads to: so the layers
/// that the library gives, each vertex as far up as it can be, are ours.
fn spine(
    part: &[usize],
    vertices: &[Vertex],
    numbered: &mut Vec<(u32, (f64, f64))>,
    edges: &mut Vec<(u32, u32)>,
) {
    let layers = part.iter().filter_map(|vertex| vertices.get(*vertex)).map(|of| of.layer);
    let layers: Vec<usize> = layers.collect();
    let first = layers.iter().min().copied().unwrap_or_default();
    let mut is_led_to = vec![false; layers.len()];
    for (_, to) in &*edges {
        if let Some(is_led_to) = usize::try_from(*to).ok().and_then(|to| is_led_to.get_mut(to)) {
            *is_led_to = true;
        }
    }
    let starts = (0_u32..).zip(layers.iter().zip(is_led_to));
    let starts = starts.filter(|(_, (layer, is_led_to))| !is_led_to && **layer > first);
    let starts: Vec<(u32, u32)> = starts
        .filter_map(|(at, (layer, _))| Some((at, u32::try_from(layer.checked_sub(first)?).ok()?)))
        .collect();
    let height = starts.iter().map(|(_, depth)| *depth).max().unwrap_or_default();
    let top = u32::try_from(numbered.len()).unwrap_or(u32::MAX);
    numbered.extend((0..height).map(|down| (top.saturating_add(down), (0.0, 0.0))));
    let below = |depth: u32| top.saturating_add(depth.saturating_sub(1));
    edges.extend((1..height).map(|down| (below(down), below(down.saturating_add(1)))));
    edges.extend(starts.into_iter().map(|(at, depth)| (below(depth), at)));
}

/// Nodes, inputs and outputs that a drawing can have, and places that edges pass.
pub(super) const MAX_ITEMS: usize = 20_000;

/// Edges that a drawing can have.
const MAX_EDGES: usize = 25_000;

/// Edges up to which neighbours are swapped to lessen crossings, which takes more than linear time.
const MAX_TRANSPOSED: usize = 12_000;

/// Layers that an edge may cross; fewer, where there are very many edges.
const SPANS: [usize; 4] = [24, 8, 2, 1];

/// Pixels between neighbours.
const SPACING: f64 = 24.0;

/// Pixels around a drawing.
const MARGIN: f64 = 16.0;

/// Pixels behind which parts that do not hang together start a row of their own.
const ROW: f64 = 2400.0;

/// The size of a reference in pixels.
const REFERENCE: (f64, f64) = (120.0, 18.0);

/// The size in pixels of the place where an edge passes a layer.
const LANE: (f64, f64) = (8.0, 8.0);

/// Vertices that the stack of any thread is enough for.
const SHALLOW: usize = 500;

/// Bytes of the stack that a larger layout gets; only what is used of it is taken.
const STACK: usize = 256 << 20;
