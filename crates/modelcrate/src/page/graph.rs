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
    graph::{Family, Graph, Node, Subgraph, Value},
};

/// Writes the drawings of all graphs; nothing where a file has none. `changed` says what differs from an
/// older file.
pub(super) fn html(content: &Content<'_>, changed: Option<&Diff>) -> String {
    // That a graph cannot be read is in the findings.
    let Ok(Some(graph)) = Graph::of(content.reader) else { return String::new() };
    let mut out = String::new();
    if graph.node_count() > ALL {
        out.push_str(&too_many(graph.node_count()));
        return out;
    }
    let changed = changed.map(outputs).unwrap_or_default();
    let mut drawn = Drawn { bytes: ROOM, nodes: DRAWN, changed };
    for (at, subgraph) in graph.subgraphs.iter().enumerate() {
        if subgraph.nodes.is_empty() {
            continue;
        }
        if at >= GRAPHS {
            let left = count(graph.subgraphs.len().saturating_sub(at), "more graph");
            let _ = writeln!(out, "<p>… and {left}: <code>modelcrate graph</code></p>");
            break;
        }
        let title = match (&*subgraph.name, at) {
            ("", 0) => "Main graph".to_owned(),
            ("", at) => format!("Graph {at}"),
            (name, _) => name.to_owned(),
        };
        let title = cut(&title, TITLE).unwrap_or(&title);
        let view = drawn.view(&graph, at, title);
        let _ = match at {
            0 => write!(out, "{view}"),
            _ => write!(out, "<details>\n<summary>{}</summary>\n{view}</details>\n", Text(title)),
        };
    }
    out
}

/// Returns the names of what operators make that are not as they were.
fn outputs(diff: &Diff) -> HashSet<String> {
    let new = diff.operators.iter().filter_map(|differing| differing.new.as_ref());
    new.flat_map(|operator| operator.outputs.iter().flatten().cloned()).collect()
}

fn too_many(nodes: usize) -> String {
    format!(
        "<p>{} are too many for this page: <code>modelcrate graph</code></p>\n",
        count(nodes, "node")
    )
}

/// What may still be drawn.
struct Drawn {
    bytes: usize,
    nodes: usize,
    /// The names of what changed operators make.
    changed: HashSet<String>,
}

impl Drawn {
    /// Draws a graph as it is and, where its names have parts, with groups of them as one node each.
    fn view(&mut self, graph: &Graph, at: usize, title: &str) -> String {
        let levels = levels(graph, at);
        let nodes = |graph: &Graph| graph.subgraphs.get(at).map_or(0, |one| one.nodes.len());
        let first = levels.iter().rposition(|(_, graph)| nodes(graph) <= AT_ONCE).unwrap_or(0);
        let mut drawings: BTreeMap<usize, String> = BTreeMap::new();
        let others = (0..levels.len()).filter(|level| *level != first);
        for level in std::iter::once(first).chain(others) {
            if let Some(drawing) =
                levels.get(level).and_then(|(_, graph)| self.drawing(graph, at, title))
            {
                drawings.insert(level, drawing);
            }
        }
        let mut out = String::new();
        let Some((shown, _)) =
            drawings.iter().find(|(level, _)| **level == first).or(drawings.first_key_value())
        else {
            out.push_str(&too_many(levels.last().map_or(0, |(_, graph)| nodes(graph))));
            return out;
        };
        out.push_str("<div class=\"graph-view\">\n<form class=\"filter\" hidden>\n");
        if drawings.len() > 1 {
            out.push_str("<label>Groups <select class=\"level\">");
            for level in drawings.keys() {
                let (depth, graph) =
                    levels.get(*level).map_or((0, 0), |(depth, graph)| (*depth, nodes(graph)));
                let said = if depth == 0 {
                    "none".to_owned()
                } else {
                    format!("by {}", count(depth, "part"))
                };
                let selected = if level == shown { " selected" } else { "" };
                let _ = write!(
                    out,
                    "<option value=\"{level}\"{selected}>{said}: {}</option>",
                    count(graph, "node")
                );
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
        for (level, drawing) in &drawings {
            let drawing = if level == shown { "" } else { drawing };
            let _ = writeln!(out, "<template data-level=\"{level}\">{drawing}</template>");
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
    fn drawing(&mut self, graph: &Graph, at: usize, title: &str) -> Option<String> {
        let subgraph = graph.subgraphs.get(at)?;
        let nodes = subgraph.nodes.len();
        // Time goes with nodes, whatever becomes of the drawing.
        self.nodes = self.nodes.checked_sub(nodes).filter(|_| nodes <= NODES)?;
        let drawing = graph.drawing(at).ok().flatten()?;
        let mut content = drawing.content;
        for (node, found) in subgraph.nodes.iter().enumerate() {
            if self.is_changed(subgraph, found) {
                let place = format!("\" data-node=\"{node}\"");
                content = content.replacen(&place, &format!(" changed{place}"), 1);
            }
        }
        let data = for_script(&described(subgraph));
        let (width, height) = (drawing.width, drawing.height);
        let text = format!(
            "<svg class=\"graph\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" aria-label=\"{}: {}\">{content}</svg>\
             <script type=\"application/json\">{data}</script>",
            Text(title),
            count(subgraph.nodes.len(), "node")
        );
        self.bytes = self.bytes.checked_sub(text.len())?;
        Some(text)
    }

    fn is_changed(&self, graph: &Subgraph, node: &Node) -> bool {
        let mut made = node.outputs.iter().flatten().filter_map(|at| graph.values.get(*at));
        made.any(|value| value.name.as_ref().is_some_and(|name| self.changed.contains(name)))
    }
}

/// Returns the graph collapsed to groups of one part and so on, and last as it is; those that look alike
/// once.
fn levels(graph: &Graph, at: usize) -> Vec<(usize, Graph)> {
    let nodes = |graph: &Graph| graph.subgraphs.get(at).map_or(0, |one| one.nodes.len());
    let mut levels: Vec<(usize, Graph)> = Vec::new();
    let depth = graph.subgraphs.get(at).map_or(0, Subgraph::levels).min(DEPTH);
    for (depth, collapsed) in
        (1..=depth).map(|depth| (depth, graph.collapsed(depth))).chain([(0, graph.clone())])
    {
        let is_new = levels.last().is_none_or(|(_, last)| nodes(last) != nodes(&collapsed));
        if is_new {
            levels.push((depth, collapsed));
        }
    }
    levels
}

/// Returns what is said of nodes and values: lists, as names would be there once for each.
fn described(graph: &Subgraph) -> Json {
    let text = |text: &str| cut(text, LONG).unwrap_or(text).to_owned();
    let node = |node: &Node| {
        let attributes: BTreeMap<&str, String> = node
            .attributes
            .iter()
            .map(|(key, value)| (&**key, text(&super::text::value(value))))
            .collect();
        let name = node.name.as_deref().map(text);
        let is_group = u8::from(node.family == Family::Group);
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
        json!([value.name.as_deref().map(text), value.type_text(), constant])
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
