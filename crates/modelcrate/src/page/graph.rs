//! The graph, drawn once for each way to collapse it.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
};

use serde_json::{Value as Json, json};

use super::{
    Content,
    text::{Text, count, cut, for_script, size},
};
use crate::{
    Diff,
    graph::{Graph, Node, Subgraph, Value, svg::Drawing},
};

/// Writes the drawings of all graphs; nothing where a file has none. `changed` says what differs from an
/// older file, and `room` how many bytes all of it may have.
pub(super) fn html(content: &Content<'_>, changed: Option<&Diff>, room: usize) -> String {
    // That a graph cannot be read is in the findings.
    let Ok(Some(graph)) = Graph::of(content.reader) else { return String::new() };
    let mut out = String::new();
    if graph.node_count() > ALL {
        out.push_str(&too_many(graph.node_count()));
        return out;
    }
    let changed = changed.map(|diff| Changed::of(&graph, diff)).unwrap_or_default();
    if !changed.nodes.is_empty() {
        out.push_str("<p>Nodes with a thick red border are not as in the older file.</p>\n");
    }
    let depths = 1..=graph.levels().min(DEPTH);
    let collapsed = depths.map(|depth| (depth, graph.collapsed(depth)));
    let mut levels: Vec<(usize, Graph)> = collapsed.collect();
    levels.push((0, graph));
    let subgraphs = levels.last().map_or(&[][..], |(_, graph)| &graph.subgraphs);
    let mut drawn = Drawn { bytes: room.min(ROOM), nodes: DRAWN, changed };
    for (at, subgraph) in subgraphs.iter().enumerate() {
        if subgraph.nodes.is_empty() {
            continue;
        }
        if at >= GRAPHS {
            let left = count(subgraphs.len().saturating_sub(at), "more graph");
            let _ = writeln!(out, "<p>… and {left}: <code>modelcrate graph</code></p>");
            break;
        }
        let title = match (&*subgraph.name, at) {
            ("", 0) => "Main graph".to_owned(),
            ("", at) => format!("Graph {at}"),
            (name, _) => name.to_owned(),
        };
        let title = cut(&title, TITLE).unwrap_or(&title);
        let view = drawn.view(&Level::of(&levels, at), title);
        let _ = match at {
            0 => write!(out, "{view}"),
            _ => write!(out, "<details>\n<summary>{}</summary>\n{view}</details>\n", Text(title)),
        };
    }
    out
}

fn too_many(nodes: usize) -> String {
    format!(
        "<p>{} are too many for this page: <code>modelcrate graph</code></p>\n",
        count(nodes, "node")
    )
}

/// One of the graphs, with groups of so many parts as one node each.
#[derive(Clone, Copy)]
struct Level<'g> {
    /// 0 where nothing is collapsed.
    depth: usize,
    graph: &'g Graph,
    at: usize,
}

impl<'g> Level<'g> {
    /// Returns the ways to collapse a graph, the plain graph last. With each part more, groups become
    /// smaller or stay: so those of as many nodes are alike, and are there once.
    fn of(levels: &'g [(usize, Graph)], at: usize) -> Vec<Self> {
        let mut found: Vec<Self> =
            levels.iter().map(|(depth, graph)| Level { depth: *depth, graph, at }).collect();
        let whole = found.pop();
        found.dedup_by_key(|level| level.nodes().len());
        found.retain(|level| whole.is_some_and(|whole| whole.nodes().len() != level.nodes().len()));
        found.extend(whole);
        found
    }

    fn subgraph(&self) -> Option<&'g Subgraph> {
        self.graph.subgraphs.get(self.at)
    }

    fn nodes(&self) -> &'g [Node] {
        self.subgraph().map_or(&[], |graph| &graph.nodes)
    }
}

/// What is not as it was in an older file.
#[derive(Default)]
struct Changed {
    /// Graphs, and the numbers of nodes in them.
    nodes: HashSet<(usize, usize)>,
    /// Graphs, and groups in them in which a node is.
    groups: HashSet<(usize, String)>,
}

impl Changed {
    fn of(graph: &Graph, diff: &Diff) -> Self {
        let mut changed = Self::default();
        for operator in diff.operators.iter().filter_map(|differing| differing.new.as_ref()) {
            let (at, index) = operator.place;
            let subgraph = graph.subgraphs.get(at);
            let Some(node) = subgraph.and_then(|of| of.nodes.get(index)) else { continue };
            changed.nodes.insert((at, node.id));
            let ends = node.group.match_indices('/').map(|(end, _)| end);
            let groups = ends.chain([node.group.len()]).take(DEPTH);
            let groups = groups.filter_map(|end| node.group.get(..end));
            changed.groups.extend(groups.map(|group| (at, group.to_owned())));
        }
        changed
    }

    fn has(&self, graph: usize, node: &Node) -> bool {
        if node.is_collapsed() {
            return self.groups.contains(&(graph, node.group.clone()));
        }
        self.nodes.contains(&(graph, node.id))
    }
}

/// What may still be drawn.
struct Drawn {
    bytes: usize,
    nodes: usize,
    changed: Changed,
}

impl Drawn {
    /// Draws a graph as it is and, where its names have parts, with groups of them as one node each.
    fn view(&mut self, levels: &[Level<'_>], title: &str) -> String {
        let first = levels.iter().rposition(|level| level.nodes().len() <= AT_ONCE).unwrap_or(0);
        let mut drawings: BTreeMap<usize, String> = BTreeMap::new();
        let others = (0..levels.len()).filter(|at| *at != first);
        for at in std::iter::once(first).chain(others) {
            if let Some(drawing) = levels.get(at).and_then(|level| self.drawing(level, title)) {
                drawings.insert(at, drawing);
            }
        }
        let mut out = String::new();
        let Some((shown, _)) =
            drawings.iter().find(|(at, _)| **at == first).or(drawings.first_key_value())
        else {
            out.push_str(&too_many(levels.last().map_or(0, |level| level.nodes().len())));
            return out;
        };
        out.push_str("<div class=\"graph-view\">\n<form class=\"filter\" hidden>\n");
        if drawings.len() > 1 {
            out.push_str("<label>Groups <select class=\"level\">");
            for at in drawings.keys() {
                let Some(level) = levels.get(*at) else { continue };
                let said = match level.depth {
                    0 => "none".to_owned(),
                    depth => format!("by {}", count(depth, "part")),
                };
                let selected = if at == shown { " selected" } else { "" };
                let nodes = count(level.nodes().len(), "node");
                let _ = write!(out, "<option value=\"{at}\"{selected}>{said}: {nodes}</option>");
            }
            out.push_str("</select></label>\n");
        }
        out.push_str(TOOLS);
        let _ = writeln!(
            out,
            "<div class=\"graph-frame\" tabindex=\"0\" role=\"region\" aria-label=\"Graph {}\">{}</div>",
            Text(title),
            drawings.get(shown).map_or("", String::as_str)
        );
        out.push_str("<div class=\"graph-details\" tabindex=\"0\" role=\"region\" aria-label=\"Node\" aria-live=\"polite\" hidden></div>\n");
        for (at, drawing) in &drawings {
            let drawing = if at == shown { "" } else { drawing };
            let _ = writeln!(out, "<template data-level=\"{at}\">{drawing}</template>");
        }
        if drawings.len() < levels.len() {
            out.push_str(
                "<p>What is too large for this page is left out: <code>modelcrate graph -o model.svg</code></p>\n",
            );
        }
        out.push_str("</div>\n");
        out
    }

    /// Draws a graph, with what a script says of its nodes; `None` where it is too large.
    fn drawing(&mut self, level: &Level<'_>, title: &str) -> Option<String> {
        let (subgraph, nodes) = (level.subgraph()?, level.nodes().len());
        // Time goes with nodes, whatever becomes of the drawing.
        self.nodes = self.nodes.checked_sub(nodes).filter(|_| nodes <= NODES)?;
        let is_changed = |node: &Node| self.changed.has(level.at, node);
        let Drawing { width, height, content, .. } =
            level.graph.marked_drawing(level.at, &is_changed).ok().flatten()?;
        let data = for_script(&described(subgraph));
        let text = format!(
            "<svg class=\"graph\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" aria-label=\"{}: {}\">{content}</svg>\
             <script type=\"application/json\">{data}</script>",
            Text(title),
            count(nodes, "node")
        );
        self.bytes = self.bytes.checked_sub(text.len())?;
        Some(text)
    }
}

/// Returns what is said of nodes and values: lists, as names would be there once for each.
fn described(graph: &Subgraph) -> Json {
    let text = |text: &str| cut(text, LONG).unwrap_or(text).to_owned();
    let node = |node: &Node| {
        let attributes: BTreeMap<String, String> = node
            .attributes
            .iter()
            .map(|(key, value)| (text(key), text(&super::text::value(value))))
            .collect();
        let name = node.name.as_deref().map(text);
        let is_group = u8::from(node.is_collapsed());
        json!([
            text(&node.operator),
            name,
            text(&node.group),
            is_group,
            node.inputs,
            node.outputs,
            attributes
        ])
    };
    let value = |value: &Value| {
        let constant = value.constant.as_ref().map(|constant| {
            constant
                .text
                .as_deref()
                .map_or_else(|| constant.bytes.map_or_else(|| "constant".to_owned(), size), text)
        });
        json!([value.name.as_deref().map(text), text(&value.type_text()), constant])
    };
    let nodes: Vec<Json> = graph.nodes.iter().map(node).collect();
    let values: Vec<Json> = graph.values.iter().map(value).collect();
    json!({ "nodes": nodes, "values": values })
}

/// What a script shows and uses.
const TOOLS: &str = "<label>Search <input type=\"search\" class=\"find\" autocomplete=\"off\" \
    placeholder=\"operator or name\"></label>\n<output class=\"found\" aria-live=\"polite\"></output>\n\
    <button type=\"button\" class=\"out\" aria-label=\"Smaller\">−</button>\n\
    <button type=\"button\" class=\"in\" aria-label=\"Larger\">+</button>\n\
    <button type=\"button\" class=\"fit\">Fit</button>\n</form>\n";

/// Graphs that are drawn.
const GRAPHS: usize = 20;

/// Nodes of a graph that is shown first, where it can be collapsed.
const AT_ONCE: usize = 300;

/// Nodes of a graph that is drawn.
const NODES: usize = 4000;

/// Nodes of all that is drawn.
const DRAWN: usize = 10_000;

/// Nodes of a file whose graphs are looked at.
const ALL: usize = 100_000;

/// Parts of names by which a graph is collapsed.
const DEPTH: usize = 5;

/// Bytes of all drawings.
const ROOM: usize = 2 << 20;

/// Characters of a text that a script shows.
const LONG: usize = 200;

/// Characters of the name of a graph.
const TITLE: usize = 80;
