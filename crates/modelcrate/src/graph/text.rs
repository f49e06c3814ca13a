//! Graphs as text: for people, and for programs that draw.

use std::fmt::{self, Write as _};

use tensor_core::{
    draw::{Drawing, Form, Language},
    text::{Plain, Quoted, short},
};

use super::{Graph, Node, Subgraph, Value};

impl Graph {
    /// Returns the graph in the DOT language of Graphviz.
    ///
    /// Nodes are boxes, which name the constants that they read; inputs and outputs are ellipses. Each
    /// graph stands in a frame where there are several. An edge is a value, with its name, type and
    /// shape; what comes from another graph comes by a dotted edge.
    #[must_use]
    pub fn dot(&self) -> String {
        self.draw(Language::Dot)
    }

    /// Returns the graph as a flowchart of Mermaid, drawn as by [`dot`](Self::dot).
    #[must_use]
    pub fn mermaid(&self) -> String {
        self.draw(Language::Mermaid)
    }

    fn draw(&self, language: Language) -> String {
        let mut drawing = Drawing::new(language, "model");
        let ends: Vec<Ends> = self.subgraphs.iter().map(Ends::of).collect();
        for (index, (graph, ends)) in self.subgraphs.iter().zip(&ends).enumerate() {
            if self.subgraphs.len() > 1 {
                drawing.frame(index, &one_line(&short(&graph.name)));
            }
            for (at, node) in graph.nodes.iter().enumerate() {
                drawing.node(format_args!("s{index}n{at}"), Form::Box, &graph.label(node));
            }
            for (at, value) in graph.values.iter().enumerate().filter(|(at, _)| ends.is_drawn(*at))
            {
                drawing.node(format_args!("s{index}v{at}"), Form::Ellipse, &end_label(value));
            }
            if self.subgraphs.len() > 1 {
                drawing.end_frame();
            }
        }
        for (index, (graph, of)) in self.subgraphs.iter().zip(&ends).enumerate() {
            // A label may be long and stand at many edges: so it is cut, and cut once.
            let labels: Vec<String> = graph.values.iter().map(label).collect();
            for (at, node) in graph.nodes.iter().enumerate() {
                for input in node.inputs.iter().flatten() {
                    match of.source(*input) {
                        Some(Source::Value) => drawing.edge(
                            format_args!("s{index}v{input}"),
                            format_args!("s{index}n{at}"),
                            "",
                        ),
                        Some(Source::Node(from)) => {
                            let label = labels.get(*input).map_or("", String::as_str);
                            let from = format_args!("s{index}n{from}");
                            drawing.edge(from, format_args!("s{index}n{at}"), label);
                        }
                        None => {}
                    }
                }
            }
            for (at, value) in graph.values.iter().enumerate().filter(|(at, _)| of.is_drawn(*at)) {
                if let Some(from) = of.producers.get(at).copied().flatten() {
                    drawing.edge(
                        format_args!("s{index}n{from}"),
                        format_args!("s{index}v{at}"),
                        "",
                    );
                }
                if let Some(outer) = value.outer {
                    let to = format_args!("s{index}v{at}");
                    let (graph, value) = (outer.subgraph, outer.value);
                    match ends.get(graph).and_then(|ends| ends.source(value)) {
                        Some(Source::Value) => {
                            drawing.dotted_edge(format_args!("s{graph}v{value}"), to);
                        }
                        Some(Source::Node(from)) => {
                            drawing.dotted_edge(format_args!("s{graph}n{from}"), to);
                        }
                        None => {}
                    }
                }
            }
        }
        drawing.finish()
    }
}

/// Which values of a graph are more than edges.
pub(super) struct Ends {
    producers: Vec<Option<usize>>,
    drawn: Vec<bool>,
}

/// Where an edge starts.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Node(usize),
    /// A value that is drawn itself.
    Value,
}

impl Ends {
    pub(super) fn of(graph: &Subgraph) -> Self {
        let producers = graph.producers();
        let constants: Vec<bool> =
            graph.values.iter().map(|value| value.constant.is_some()).collect();
        let mut drawn = vec![false; graph.values.len()];
        for at in graph.inputs.iter().chain(&graph.outputs) {
            if let Some(is_drawn) = drawn.get_mut(*at) {
                *is_drawn = true;
            }
        }
        // What nothing makes comes from somewhere.
        for at in graph.nodes.iter().flat_map(|node| &node.inputs).flatten() {
            let is_made = producers.get(*at).copied().flatten().is_some();
            let is_constant = constants.get(*at).is_some_and(|is| *is);
            if let Some(is_drawn) = drawn.get_mut(*at) {
                *is_drawn |= !is_made && !is_constant;
            }
        }
        Self { producers, drawn }
    }

    pub(super) fn is_drawn(&self, value: usize) -> bool {
        self.drawn.get(value).is_some_and(|is_drawn| *is_drawn)
    }

    pub(super) fn producer(&self, value: usize) -> Option<usize> {
        self.producers.get(value).copied().flatten()
    }

    /// Returns where the edge of a value starts; `None` for a constant, which is a part of the node
    /// that reads it.
    pub(super) fn source(&self, value: usize) -> Option<Source> {
        match self.producer(value) {
            Some(from) => Some(Source::Node(from)),
            None if self.is_drawn(value) => Some(Source::Value),
            None => None,
        }
    }
}

impl Subgraph {
    /// Returns what stands in the box of a node: the operator, its name, the constants that it reads.
    fn label(&self, node: &Node) -> String {
        let mut label = one_line(&short(&node.operator));
        for line in self.lines(node) {
            let _ = write!(label, "\n{line}");
        }
        label
    }

    /// Returns what stands below the operator in the box of a node.
    pub(super) fn lines(&self, node: &Node) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        lines.extend(node.name.as_deref().map(|name| one_line(&short(name))));
        let constants = node.inputs.iter().flatten().filter_map(|at| self.value(*at));
        let mut constants = constants.filter(|value| value.constant.is_some());
        lines.extend(constants.by_ref().take(SHOWN_CONSTANTS).map(constant_line));
        let more = constants.count();
        lines.extend((more > 0).then(|| format!("and {more} more")));
        lines
    }
}

fn constant_line(value: &Value) -> String {
    let text = value.constant.as_ref().and_then(|constant| constant.text.as_deref());
    let name = value.name.as_deref().unwrap_or_default();
    let type_text = value.type_text();
    let mut line = one_line(&short(name));
    for part in [text.unwrap_or_default(), &type_text] {
        if !part.is_empty() {
            let gap = if line.is_empty() { "" } else { " " };
            let _ = write!(line, "{gap}{}", one_line(&short(part)));
        }
    }
    line
}

/// Returns name, type and shape of a value on lines of their own.
pub(super) fn label(value: &Value) -> String {
    let name = value.name.as_deref().map(short).unwrap_or_default();
    let type_text = value.type_text();
    two_lines(&name, &short(&type_text))
}

/// Returns the label of a value that is drawn itself: its number, where nothing is known of it.
pub(super) fn end_label(value: &Value) -> String {
    let label = label(value);
    if label.is_empty() { format!("#{}", value.id) } else { label }
}

/// Puts two texts on lines of their own.
fn two_lines(first: &str, second: &str) -> String {
    let found = [first, second].into_iter().filter(|text| !text.is_empty());
    found.map(one_line).collect::<Vec<_>>().join("\n")
}

/// Line ends inside of a name are no line ends.
pub(super) fn one_line(text: &str) -> String {
    text.replace('\n', "\u{240a}")
}

/// Writes every graph: what goes in and comes out, and each node with what it reads and makes.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, graph) in self.subgraphs.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "graph {index}")?;
            if !graph.name.is_empty() {
                write!(f, " {}", Quoted(&graph.name))?;
            }
            writeln!(f)?;
            graph.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Subgraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (side, list) in [("input", &self.inputs), ("output", &self.outputs)] {
            for at in list {
                let Some(value) = self.value(*at) else { continue };
                writeln!(f, "  {side:<6}  {}{}", self.called(*at), typed(value))?;
            }
        }
        for node in &self.nodes {
            write!(f, "  {:>6}  {}", node.id, Plain(&short(&node.operator)))?;
            if let Some(name) = &node.name {
                write!(f, " {}", Quoted(name))?;
            }
            let list = |list: &[Option<usize>]| {
                let shown = list.iter().take(SHOWN_VALUES);
                let shown: Vec<String> = shown
                    .map(|at| at.map_or_else(|| "none".to_owned(), |at| self.called(at)))
                    .collect();
                let more = if list.len() > SHOWN_VALUES { ", …" } else { "" };
                format!("{}{more}", shown.join(", "))
            };
            if !node.inputs.is_empty() {
                write!(f, ": {}", list(&node.inputs))?;
            }
            if !node.outputs.is_empty() {
                write!(f, " -> {}", list(&node.outputs))?;
            }
            writeln!(f)?;
            for (name, value) in &node.attributes {
                writeln!(
                    f,
                    "          {} = {}",
                    Plain(&short(name)),
                    Plain(&short(&value.to_string()))
                )?;
            }
            if !node.bodies.is_empty() {
                let bodies: Vec<String> = node.bodies.iter().map(usize::to_string).collect();
                writeln!(f, "          graphs {}", bodies.join(", "))?;
            }
        }
        let constants = self.values.iter().enumerate();
        for (at, value) in constants.filter(|(_, value)| value.constant.is_some()) {
            write!(f, "  constant {}{}", self.called(at), typed(value))?;
            let constant = value.constant.as_ref();
            if let Some(text) = constant.and_then(|constant| constant.text.as_deref()) {
                write!(f, " = {}", Plain(&short(text)))?;
            }
            if let Some(bytes) = constant.and_then(|constant| constant.bytes) {
                write!(f, ", {bytes} bytes")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl Subgraph {
    /// Returns what a value is called: by its name, or else by its place.
    pub(super) fn called(&self, at: usize) -> String {
        match self.value(at).and_then(|value| value.name.as_deref()) {
            Some(name) => Quoted(name).to_string(),
            None => format!("#{}", self.value(at).map_or(at, |value| value.id)),
        }
    }
}

fn typed(value: &Value) -> String {
    let text = value.type_text();
    if text.is_empty() { text } else { format!(": {}", Plain(&short(&text))) }
}

/// Constants of a node that are named in its box.
const SHOWN_CONSTANTS: usize = 4;

/// Inputs and outputs of a node that are shown.
const SHOWN_VALUES: usize = 64;

#[cfg(test)]
mod tests {
    use crate::graph::{Constant, Graph, Node, Outer, Subgraph, Value};

    /// `y = If(Relu(x, w))`, whose body reads what Relu makes; names that end strings.
    fn graph() -> Graph {
        let value = |name: &str| Value::new(Some(name), Some("f32".to_owned()), None);
        let mut weight = value("w\"]\n");
        weight.constant = Some(Constant { bytes: Some(4), text: None });
        let mut relu = Node::new("Relu").named(Some("a\"b]|<\u{202e}"));
        (relu.inputs, relu.outputs) = (vec![Some(0), Some(1), None], vec![Some(2)]);
        let mut branch = Node::new("If");
        branch.id = 1;
        (branch.inputs, branch.outputs, branch.bodies) = (vec![Some(2)], vec![Some(3)], vec![1]);
        let values = vec![value("x"), weight, value("h"), value("y")];
        let main = Subgraph {
            name: "main".to_owned(),
            inputs: vec![0],
            outputs: vec![3],
            nodes: vec![relu, branch],
            values,
        };
        let mut outer = value("h");
        outer.outer = Some(Outer { subgraph: 0, value: 2 });
        let mut node = Node::new("Neg");
        node.attributes.insert("axis".to_owned(), 1.into());
        (node.inputs, node.outputs) = (vec![Some(0)], vec![Some(1)]);
        let body = Subgraph {
            name: "then".to_owned(),
            outputs: vec![1],
            nodes: vec![node],
            values: vec![outer, value("p")],
            inputs: vec![],
        };
        Graph { subgraphs: vec![main, body] }
    }

    #[test]
    fn dot_of_a_branch() {
        assert_eq!(
            graph().dot(),
            r#"digraph model {
  subgraph cluster_0 {
    label="main";
    s0n0 [shape=box, label="Relu\na\"b]|<U+202E\nw\"]␊ f32"];
    s0n1 [shape=box, label="If"];
    s0v0 [shape=ellipse, label="x\nf32"];
    s0v3 [shape=ellipse, label="y\nf32"];
  }
  subgraph cluster_1 {
    label="then";
    s1n0 [shape=box, label="Neg"];
    s1v0 [shape=ellipse, label="h\nf32"];
    s1v1 [shape=ellipse, label="p\nf32"];
  }
  s0v0 -> s0n0;
  s0n0 -> s0n1 [label="h\nf32"];
  s0n1 -> s0v3;
  s1v0 -> s1n0;
  s0n0 -> s1v0 [style=dotted];
  s1n0 -> s1v1;
}
"#
        );
        assert!(graph().mermaid().starts_with("flowchart TD\n  subgraph s0[\"main\"]\n"));
    }

    #[test]
    fn text_of_a_branch() {
        assert_eq!(
            graph().to_string(),
            r#"graph 0 "main"
  input   "x": f32
  output  "y": f32
       0  Relu "a\"b]|<\u{202e}": "x", "w\"]\n", none -> "h"
       1  If: "h" -> "y"
          graphs 1
  constant "w\"]\n": f32, 4 bytes

graph 1 "then"
  output  "p": f32
       0  Neg: "h" -> "p"
          axis = 1
"#
        );
    }
}
