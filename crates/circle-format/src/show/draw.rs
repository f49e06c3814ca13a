//! Graphs as text that other programs draw.

use tensor_core::{
    draw::{Direction, Drawing, Form, Language, lines},
    text::short,
};

use crate::model::{Model, OperatorCode, Subgraph, Tensor};

impl Model {
    /// Returns the graphs in the DOT language of Graphviz.
    ///
    /// Operators are boxes, inputs and outputs ellipses, constants plain text; each graph stands in a
    /// frame where there are several. An edge is a tensor, with its name, type and shape.
    #[must_use]
    pub fn dot(&self) -> String {
        self.draw(Language::Dot)
    }

    /// Returns the graphs as a flowchart of Mermaid, drawn as by [`dot`](Self::dot).
    #[must_use]
    pub fn mermaid(&self) -> String {
        self.draw(Language::Mermaid)
    }

    fn draw(&self, language: Language) -> String {
        let mut drawing = Drawing::new(language, "model", Direction::Down);
        for (index, graph) in self.subgraphs.iter().enumerate() {
            if self.subgraphs.len() > 1 {
                let name = graph.name.as_deref().map(short).unwrap_or_default();
                drawing.frame(index, format!("subgraph {index} {name}").trim_end());
            }
            Graph::of(self, index, graph).nodes(&mut drawing);
            if self.subgraphs.len() > 1 {
                drawing.end_frame();
            }
        }
        for (index, graph) in self.subgraphs.iter().enumerate() {
            Graph::of(self, index, graph).edges(&mut drawing);
        }
        drawing.finish()
    }
}

struct Graph<'a> {
    model: &'a Model,
    index: usize,
    graph: &'a Subgraph,
    /// Of each tensor the last operator that makes it.
    producers: Vec<Option<usize>>,
    /// Of each tensor whether it is more than an edge: as what comes from outside or goes there is,
    /// and what nothing makes.
    drawn: Vec<bool>,
}

impl<'a> Graph<'a> {
    fn of(model: &'a Model, index: usize, graph: &'a Subgraph) -> Self {
        let count = graph.tensors.len();
        let (mut producers, mut is_used) = (vec![None; count], vec![false; count]);
        for (at, operator) in graph.operators.iter().enumerate() {
            for output in positions(&operator.outputs) {
                if let Some(producer) = producers.get_mut(output) {
                    *producer = Some(at);
                }
            }
            for input in positions(&operator.inputs) {
                if let Some(is_used) = is_used.get_mut(input) {
                    *is_used = true;
                }
            }
        }
        let mut drawn: Vec<bool> = is_used
            .iter()
            .zip(&producers)
            .map(|(&is_used, producer)| is_used && producer.is_none())
            .collect();
        for port in positions(&graph.inputs).chain(positions(&graph.outputs)) {
            if let Some(is_drawn) = drawn.get_mut(port) {
                *is_drawn = true;
            }
        }
        Self { model, index, graph, producers, drawn }
    }

    fn nodes(&self, drawing: &mut Drawing) {
        let index = self.index;
        for (at, operator) in self.graph.operators.iter().enumerate() {
            let code = self.model.operator_code(operator).map(OperatorCode::name);
            let name = code.unwrap_or("?".into());
            drawing.node(format_args!("s{index}o{at}"), Form::Box, &lines(&short(&name), ""));
        }
        for (at, tensor) in self.graph.tensors.iter().enumerate() {
            if self.drawn.get(at).is_some_and(|is_drawn| *is_drawn) {
                let is_constant = tensor.buffer != 0 || tensor.external_buffer != 0;
                let form = if is_constant { Form::Plain } else { Form::Ellipse };
                drawing.node(format_args!("s{index}t{at}"), form, &label(tensor));
            }
        }
    }

    fn edges(&self, drawing: &mut Drawing) {
        let index = self.index;
        // A label may be long and stand at many edges: so it is cut, and cut once.
        let labels: Vec<String> = self.graph.tensors.iter().map(label).collect();
        for (at, operator) in self.graph.operators.iter().enumerate() {
            let to = format!("s{index}o{at}");
            for input in positions(&operator.inputs) {
                match (self.drawn.get(input), self.producers.get(input).copied().flatten()) {
                    (Some(true), _) => drawing.edge(format_args!("s{index}t{input}"), &to, ""),
                    (Some(false), Some(from)) => {
                        let label = labels.get(input).map_or("", String::as_str);
                        drawing.edge(format_args!("s{index}o{from}"), &to, label);
                    }
                    _ => {}
                }
            }
        }
        for (at, (producer, is_drawn)) in self.producers.iter().zip(&self.drawn).enumerate() {
            if let (Some(from), true) = (producer, is_drawn) {
                drawing.edge(format_args!("s{index}o{from}"), format_args!("s{index}t{at}"), "");
            }
        }
    }
}

/// Returns what leads to a tensor; -1 stands for none.
fn positions(stored: &[i32]) -> impl Iterator<Item = usize> {
    stored.iter().filter_map(|&position| usize::try_from(position).ok())
}

/// Returns name, type and shape of a tensor.
fn label(tensor: &Tensor) -> String {
    let name = tensor.name.as_deref().unwrap_or_default();
    // Where a dimension is unknown, the signature says so.
    let dims = tensor.shape_signature.as_deref().unwrap_or(&tensor.shape);
    let shown: Vec<_> = dims.iter().take(SHOWN_DIMS).map(i32::to_string).collect();
    let more = if dims.len() > SHOWN_DIMS { ", …" } else { "" };
    lines(&short(name), &format!("{} [{}{more}]", tensor.tensor_type, shown.join(", ")))
}

/// Dimensions of a shape that are shown.
const SHOWN_DIMS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BuiltinOperator, ModelBuilder, Operator, Schema, TensorType};

    #[test]
    fn operators_are_boxes_and_tensors_arrows() {
        let mut builder = ModelBuilder::new(Schema::Circle);
        let mut graph = builder.subgraph("main");
        let tensor = |name| Tensor::new(name, TensorType::Float32, vec![1, 4]);
        let x = graph.input(tensor("x"));
        let w = graph.constant(tensor("w\"]"), vec![0; 16]);
        let h = graph.tensor(tensor("h"));
        let y = graph.output(tensor("y"));
        graph.operator(BuiltinOperator::ADD, Operator::new(vec![x, w, -1, 99], vec![h]));
        graph.operator(BuiltinOperator::RELU, Operator::new(vec![h], vec![y, 99]));
        graph.finish();
        let model = builder.finish();
        assert_eq!(
            model.dot(),
            r#"digraph model {
    s0o0 [shape=box, label="ADD"];
    s0o1 [shape=box, label="RELU"];
    s0t0 [shape=ellipse, label="x\nFLOAT32 [1, 4]"];
    s0t1 [shape=plaintext, label="w\"]\nFLOAT32 [1, 4]"];
    s0t3 [shape=ellipse, label="y\nFLOAT32 [1, 4]"];
  s0t0 -> s0o0;
  s0t1 -> s0o0;
  s0o0 -> s0o1 [label="h\nFLOAT32 [1, 4]"];
  s0o1 -> s0t3;
}
"#
        );
        assert!(model.mermaid().starts_with("flowchart TD\n    s0o0[\"ADD\"]\n"));
    }
}
