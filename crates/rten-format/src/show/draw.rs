//! Graphs as text that other programs draw.

use std::{collections::HashSet, fmt};

use tensor_core::text::short;

use crate::{
    Constant, ConstantData, Dim, Model, Node, NodeKind, Value,
    topology::{Scope, Topology, node},
};

impl Model {
    /// Returns the graphs in the DOT language of Graphviz.
    ///
    /// Operators are boxes, inputs and outputs ellipses, constants plain text; subgraphs stand in
    /// frames of their own. An edge is a value, with its name and shape; what a subgraph captures
    /// comes in from outside by a dotted edge.
    #[must_use]
    pub fn dot(&self) -> impl fmt::Display {
        Drawing::new(self, Language::Dot)
    }

    /// Returns the graphs as a flowchart of Mermaid, drawn as by [`dot`](Self::dot).
    #[must_use]
    pub fn mermaid(&self) -> impl fmt::Display {
        Drawing::new(self, Language::Mermaid)
    }
}

struct Drawing<'a> {
    topology: Topology<'a>,
    /// Of each graph the values that are more than edges: those that come from outside or go there.
    listed: Vec<HashSet<u32>>,
    language: Language,
}

#[derive(Clone, Copy)]
enum Language {
    Dot,
    Mermaid,
}

#[derive(Clone, Copy)]
enum Form {
    Operator,
    Port,
    Constant,
}

impl fmt::Display for Drawing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.language {
            Language::Dot => f.write_str("digraph model {\n")?,
            Language::Mermaid => f.write_str("flowchart TD\n")?,
        }
        for index in 0..self.topology.scopes().len() {
            self.scope(f, index)?;
        }
        for index in 0..self.topology.scopes().len() {
            self.edges(f, index)?;
        }
        match self.language {
            Language::Dot => f.write_str("}\n"),
            Language::Mermaid => Ok(()),
        }
    }
}

impl<'a> Drawing<'a> {
    fn new(model: &'a Model, language: Language) -> Self {
        let topology = Topology::of(model);
        let listed = topology.scopes().iter().map(|scope| {
            let graph = scope.graph();
            let lists = [&graph.inputs, &graph.outputs, &graph.captures];
            lists.into_iter().flatten().copied().collect()
        });
        let listed = listed.collect();
        Self { topology, listed, language }
    }

    /// Writes the nodes of one graph, in a frame where it is a subgraph.
    fn scope(&self, f: &mut fmt::Formatter<'_>, index: usize) -> fmt::Result {
        let Some(scope) = self.topology.scopes().get(index) else { return Ok(()) };
        let framed = scope.parent().is_some();
        if framed {
            let label = self.quoted(scope.path());
            match self.language {
                Language::Dot => {
                    writeln!(f, "  subgraph cluster_{index} {{\n    label={label};")?;
                }
                Language::Mermaid => writeln!(f, "  subgraph s{index}[{label}]")?,
            }
        }
        for (id, node) in (0..).zip(&scope.graph().nodes) {
            let name = node.name.as_deref().unwrap_or_default();
            let (form, label) = match &node.kind {
                NodeKind::Operator(operator) => {
                    (Form::Operator, join(&operator.operator_type.to_string(), name))
                }
                NodeKind::Constant(constant) => {
                    (Form::Constant, join(name, &constant_type(constant)))
                }
                NodeKind::Value(value) if self.is_drawn(index, id) => {
                    (Form::Port, join(name, &value_type(value)))
                }
                _ => continue,
            };
            self.node(f, index, id, form, &label)?;
        }
        match (framed, self.language) {
            (false, _) => Ok(()),
            (true, Language::Dot) => f.write_str("  }\n"),
            (true, Language::Mermaid) => f.write_str("  end\n"),
        }
    }

    fn node(
        &self,
        f: &mut fmt::Formatter<'_>,
        scope: usize,
        id: u32,
        form: Form,
        label: &str,
    ) -> fmt::Result {
        let label = self.quoted(label);
        match (self.language, form) {
            (Language::Dot, form) => {
                let shape = match form {
                    Form::Operator => "box",
                    Form::Port => "ellipse",
                    Form::Constant => "plaintext",
                };
                writeln!(f, "    s{scope}n{id} [shape={shape}, label={label}];")
            }
            (Language::Mermaid, Form::Operator) => writeln!(f, "    s{scope}n{id}[{label}]"),
            (Language::Mermaid, Form::Port) => writeln!(f, "    s{scope}n{id}([{label}])"),
            (Language::Mermaid, Form::Constant) => writeln!(f, "    s{scope}n{id}>{label}]"),
        }
    }

    /// Tells whether a value is more than an edge: as those that nothing makes are, too.
    fn is_drawn(&self, scope: usize, id: u32) -> bool {
        self.listed.get(scope).is_some_and(|listed| listed.contains(&id))
            || self.topology.producers(scope, id).is_empty()
    }

    /// Writes what goes into each operator of one graph, and into each value that is drawn.
    fn edges(&self, f: &mut fmt::Formatter<'_>, index: usize) -> fmt::Result {
        let Some(scope) = self.topology.scopes().get(index) else { return Ok(()) };
        let captures: HashSet<u32> = scope.graph().captures.iter().copied().collect();
        // A label may be as long as the file and stand at as many edges: so it is cut, and cut once.
        let labels: Vec<String> = scope.graph().nodes.iter().map(edge_label).collect();
        for (id, node) in (0..).zip(&scope.graph().nodes) {
            match &node.kind {
                NodeKind::Operator(operator) => {
                    for input in operator.inputs.iter().flatten() {
                        self.edge_from(f, index, &labels, *input, id)?;
                    }
                }
                NodeKind::Value(_) if self.is_drawn(index, id) => {
                    for producer in self.topology.producers(index, id) {
                        self.edge(f, (index, *producer), (index, id), "", "")?;
                    }
                    if captures.contains(&id)
                        && let Some((around, source)) = self.topology.capture_source(index, id)
                    {
                        let drawn = match self.topology.producers(around, source) {
                            [.., last] if !self.is_drawn(around, source) => *last,
                            _ => source,
                        };
                        self.edge(f, (around, drawn), (index, id), "", "dotted")?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the edges that bring a value or constant to an operator.
    fn edge_from(
        &self,
        f: &mut fmt::Formatter<'_>,
        scope: usize,
        labels: &[String],
        input: u32,
        operator: u32,
    ) -> fmt::Result {
        let graph = self.topology.scopes().get(scope).map(Scope::graph);
        let Some(found) = graph.and_then(|graph| node(graph, input)) else { return Ok(()) };
        match &found.kind {
            NodeKind::Value(_) if !self.is_drawn(scope, input) => {
                let label = usize::try_from(input).ok().and_then(|input| labels.get(input));
                // The last one wins where there are several.
                let producer = self.topology.producers(scope, input).last();
                let Some(&producer) = producer else { return Ok(()) };
                let label = label.map_or("", String::as_str);
                self.edge(f, (scope, producer), (scope, operator), label, "")
            }
            NodeKind::Unknown(_) | NodeKind::Missing => Ok(()),
            _ => self.edge(f, (scope, input), (scope, operator), "", ""),
        }
    }

    fn edge(
        &self,
        f: &mut fmt::Formatter<'_>,
        (from_scope, from): (usize, u32),
        (to_scope, to): (usize, u32),
        label: &str,
        style: &str,
    ) -> fmt::Result {
        let quoted = self.quoted(label);
        let (from, to) = (format!("s{from_scope}n{from}"), format!("s{to_scope}n{to}"));
        match (self.language, label.is_empty(), style.is_empty()) {
            (Language::Dot, true, true) => writeln!(f, "  {from} -> {to};"),
            (Language::Dot, false, _) => writeln!(f, "  {from} -> {to} [label={quoted}];"),
            (Language::Dot, true, false) => writeln!(f, "  {from} -> {to} [style={style}];"),
            (Language::Mermaid, true, true) => writeln!(f, "  {from} --> {to}"),
            (Language::Mermaid, false, _) => writeln!(f, "  {from} -->|{quoted}| {to}"),
            (Language::Mermaid, true, false) => writeln!(f, "  {from} -.-> {to}"),
        }
    }

    /// Quotes a text of a file so that it ends where it should, in either language.
    fn quoted(&self, text: &str) -> String {
        let mut quoted = String::from("\"");
        for found in text.chars() {
            match (self.language, found) {
                (Language::Dot, '\n') => quoted.push_str("\\n"),
                (Language::Dot, '"' | '\\') => quoted.extend(['\\', found]),
                (Language::Mermaid, '\n') => quoted.push_str("<br>"),
                (Language::Mermaid, '"' | '#' | '&' | '<' | '>' | '`' | '\\' | '|') => {
                    quoted.push_str(&format!("#{};", u32::from(found)));
                }
                (_, found) if is_hidden(found) => {
                    quoted.push_str(&format!("U+{:04X}", u32::from(found)));
                }
                (_, found) => quoted.push(found),
            }
        }
        quoted.push('"');
        quoted
    }
}

/// Tells whether a character moves what is around it, or cannot be seen.
pub(crate) fn is_hidden(found: char) -> bool {
    found.is_control()
        || matches!(found, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Puts two texts on lines of their own. Line ends inside them are no line ends.
fn join(first: &str, second: &str) -> String {
    let one_line = |text: &str| text.replace('\n', "\u{240a}");
    match (first, second) {
        ("", second) => one_line(second),
        (first, "") => one_line(first),
        (first, second) => format!("{}\n{}", one_line(first), one_line(second)),
    }
}

/// Returns name, element type and shape of a value, as far as they are worth showing.
fn edge_label(node: &Node) -> String {
    match &node.kind {
        NodeKind::Value(value) => {
            let name = node.name.as_deref().unwrap_or_default();
            join(&short(name), &short(&value_type(value)))
        }
        _ => String::new(),
    }
}

/// Returns element type and shape, such as `Float [batch, 10]`.
pub(crate) fn value_type(value: &Value) -> String {
    let dtype = value.dtype.map_or_else(String::new, |dtype| dtype.to_string());
    let Some(dims) = &value.shape else { return dtype };
    let dims: Vec<String> = dims
        .iter()
        .map(|dim| match dim {
            Dim::Fixed(elements) => elements.to_string(),
            Dim::Symbol(symbol) => symbol.clone(),
        })
        .collect();
    format!("{dtype} [{}]", dims.join(", ")).trim_start().to_owned()
}

/// Returns element type and shape, such as `f32 [8, 4]`.
pub(crate) fn constant_type(constant: &Constant) -> String {
    let inline = constant.data.as_ref().filter(|_| constant.data_offset.is_none());
    let dtype = match inline {
        Some(data) => data.dtype(),
        None => constant.dtype.and_then(crate::ConstantDataType::dtype),
    };
    let dims: Vec<String> = constant.shape.iter().map(u32::to_string).collect();
    let dtype = dtype.map_or_else(
        || match inline {
            Some(ConstantData::Unknown(table)) => format!("unknown {}", table.tag()),
            _ => "unknown".to_owned(),
        },
        |dtype| dtype.to_string(),
    );
    format!("{dtype} [{}]", dims.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Graph, Operator, OperatorType,
        attributes::{IfAttrs, SoftmaxAttrs},
    };

    fn value(name: &str) -> Node {
        let shape = Some(vec![Dim::Symbol("n".to_owned()), Dim::Fixed(2)]);
        Node::named(name, Value { shape, dtype: Some(crate::DataType::Float) })
    }

    /// `y = if c { softmax(x) } else { x }` behind a Relu of a name that ends strings.
    fn model() -> Model {
        let ids = |ids: &[u32]| ids.iter().copied().map(Some).collect::<Vec<_>>();
        let operator = |operator_type, attributes, inputs: &[u32], outputs: &[u32]| Operator {
            operator_type,
            attributes,
            inputs: ids(inputs),
            outputs: ids(outputs),
        };
        let softmax =
            operator(OperatorType::Softmax, Some(SoftmaxAttrs { axis: 1 }.into()), &[0], &[1]);
        let then_branch = Graph {
            nodes: vec![value("h"), value("p"), Node::named("", softmax)],
            inputs: vec![],
            outputs: vec![1],
            captures: vec![0],
        };
        let branches = IfAttrs { then_branch: Some(Box::new(then_branch)), else_branch: None };
        let constant = Constant { shape: vec![], dtype: None, data: None, data_offset: None };
        let nodes = vec![
            value("x"),
            value("h"),
            Node::named("c", constant),
            value("y"),
            Node::named("a\"b]|<\u{202e}", operator(OperatorType::Relu, None, &[0], &[1])),
            Node::named("if", operator(OperatorType::If, Some(branches.into()), &[2, 1], &[3])),
        ];
        let graph = Graph { nodes, inputs: vec![0], outputs: vec![3], captures: vec![] };
        Model { graph, metadata: None }
    }

    #[test]
    fn dot_of_a_branch() {
        assert_eq!(
            model().dot().to_string(),
            r#"digraph model {
    s0n0 [shape=ellipse, label="x\nFloat [n, 2]"];
    s0n2 [shape=plaintext, label="c\nunknown []"];
    s0n3 [shape=ellipse, label="y\nFloat [n, 2]"];
    s0n4 [shape=box, label="Relu\na\"b]|<U+202E"];
    s0n5 [shape=box, label="If\nif"];
  subgraph cluster_1 {
    label="graph/then_branch";
    s1n0 [shape=ellipse, label="h\nFloat [n, 2]"];
    s1n1 [shape=ellipse, label="p\nFloat [n, 2]"];
    s1n2 [shape=box, label="Softmax"];
  }
  s0n5 -> s0n3;
  s0n0 -> s0n4;
  s0n2 -> s0n5;
  s0n4 -> s0n5 [label="h\nFloat [n, 2]"];
  s0n4 -> s1n0 [style=dotted];
  s1n2 -> s1n1;
  s1n0 -> s1n2;
}
"#
        );
    }

    #[test]
    fn mermaid_of_a_branch() {
        assert_eq!(
            model().mermaid().to_string(),
            r#"flowchart TD
    s0n0(["x<br>Float [n, 2]"])
    s0n2>"c<br>unknown []"]
    s0n3(["y<br>Float [n, 2]"])
    s0n4["Relu<br>a#34;b]#124;#60;U+202E"]
    s0n5["If<br>if"]
  subgraph s1["graph/then_branch"]
    s1n0(["h<br>Float [n, 2]"])
    s1n1(["p<br>Float [n, 2]"])
    s1n2["Softmax"]
  end
  s0n5 --> s0n3
  s0n0 --> s0n4
  s0n2 --> s0n5
  s0n4 -->|"h<br>Float [n, 2]"| s0n5
  s0n4 -.-> s1n0
  s1n2 --> s1n1
  s1n0 --> s1n2
"#
        );
    }
}
