//! Graphs as text that other programs draw.

use std::collections::HashSet;

use tensor_core::{
    draw::{Direction, Drawing, Form, Language, lines},
    text::short,
};

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
    pub fn dot(&self) -> String {
        Graphs::of(self).draw(Language::Dot)
    }

    /// Returns the graphs as a flowchart of Mermaid, drawn as by [`dot`](Self::dot).
    #[must_use]
    pub fn mermaid(&self) -> String {
        Graphs::of(self).draw(Language::Mermaid)
    }
}

struct Graphs<'a> {
    topology: Topology<'a>,
    /// Of each graph the values that are more than edges: those that come from outside or go there.
    listed: Vec<HashSet<u32>>,
}

impl<'a> Graphs<'a> {
    fn of(model: &'a Model) -> Self {
        let topology = Topology::of(model);
        let listed = topology.scopes().iter().map(|scope| {
            let graph = scope.graph();
            let lists = [&graph.inputs, &graph.outputs, &graph.captures];
            lists.into_iter().flatten().copied().collect()
        });
        let listed = listed.collect();
        Self { topology, listed }
    }

    fn draw(&self, language: Language) -> String {
        let mut drawing = Drawing::new(language, "model", Direction::Down);
        for (index, scope) in self.topology.scopes().iter().enumerate() {
            self.nodes(&mut drawing, index, scope);
        }
        for (index, scope) in self.topology.scopes().iter().enumerate() {
            self.edges(&mut drawing, index, scope);
        }
        drawing.finish()
    }

    /// Draws the nodes of one graph, in a frame where it is a subgraph.
    fn nodes(&self, drawing: &mut Drawing, index: usize, scope: &Scope<'_>) {
        let is_framed = scope.parent().is_some();
        if is_framed {
            drawing.frame(index, scope.path());
        }
        for (id, node) in (0..).zip(&scope.graph().nodes) {
            let name = node.name.as_deref().unwrap_or_default();
            let (form, label) = match &node.kind {
                NodeKind::Operator(operator) => {
                    (Form::Box, lines(&operator.operator_type.to_string(), name))
                }
                NodeKind::Constant(constant) => {
                    (Form::Plain, lines(name, &constant_type(constant)))
                }
                NodeKind::Value(value) if self.is_drawn(index, id) => {
                    (Form::Ellipse, lines(name, &value_type(value)))
                }
                _ => continue,
            };
            drawing.node(name_of(index, id), form, &label);
        }
        if is_framed {
            drawing.end_frame();
        }
    }

    /// Tells whether a value is more than an edge: as those that nothing makes are, too.
    fn is_drawn(&self, scope: usize, id: u32) -> bool {
        self.listed.get(scope).is_some_and(|listed| listed.contains(&id))
            || self.topology.producers(scope, id).is_empty()
    }

    /// Draws what goes into each operator of one graph, and into each value that is drawn.
    fn edges(&self, drawing: &mut Drawing, index: usize, scope: &Scope<'_>) {
        let captures: HashSet<u32> = scope.graph().captures.iter().copied().collect();
        // A label may be as long as the file and stand at as many edges: so it is cut, and cut once.
        let labels: Vec<String> = scope.graph().nodes.iter().map(edge_label).collect();
        for (id, node) in (0..).zip(&scope.graph().nodes) {
            match &node.kind {
                NodeKind::Operator(operator) => {
                    for input in operator.inputs.iter().flatten() {
                        self.edge_from(drawing, (index, scope), &labels, *input, id);
                    }
                }
                NodeKind::Value(_) if self.is_drawn(index, id) => {
                    for producer in self.topology.producers(index, id) {
                        drawing.edge(name_of(index, *producer), name_of(index, id), "");
                    }
                    if captures.contains(&id)
                        && let Some((around, source)) = self.topology.capture_source(index, id)
                    {
                        let drawn = match self.topology.producers(around, source) {
                            [.., last] if !self.is_drawn(around, source) => *last,
                            _ => source,
                        };
                        drawing.dotted_edge(name_of(around, drawn), name_of(index, id));
                    }
                }
                _ => {}
            }
        }
    }

    /// Draws the edge that brings a value or constant to an operator.
    fn edge_from(
        &self,
        drawing: &mut Drawing,
        (index, scope): (usize, &Scope<'_>),
        labels: &[String],
        input: u32,
        operator: u32,
    ) {
        let Some(found) = node(scope.graph(), input) else { return };
        match &found.kind {
            NodeKind::Value(_) if !self.is_drawn(index, input) => {
                // The last one wins where there are several.
                let Some(&from) = self.topology.producers(index, input).last() else { return };
                let label = usize::try_from(input).ok().and_then(|input| labels.get(input));
                let label = label.map_or("", String::as_str);
                drawing.edge(name_of(index, from), name_of(index, operator), label);
            }
            NodeKind::Unknown(_) | NodeKind::Missing => {}
            _ => drawing.edge(name_of(index, input), name_of(index, operator), ""),
        }
    }
}

/// Returns what a node is called in a drawing.
fn name_of(scope: usize, id: u32) -> String {
    format!("s{scope}n{id}")
}

/// Returns name, element type and shape of a value, as far as they are worth showing.
fn edge_label(node: &Node) -> String {
    match &node.kind {
        NodeKind::Value(value) => {
            let name = node.name.as_deref().unwrap_or_default();
            lines(&short(name), &short(&value_type(value)))
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
            model().dot(),
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
            model().mermaid(),
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
