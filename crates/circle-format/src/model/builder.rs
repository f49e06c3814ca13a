//! Models made piece by piece.

use bytes::Bytes;

use super::{
    Buffer, BuiltinOptions, Model, Operator, OperatorCode, Schema, Subgraph, Tensor, TensorType,
};

/// Makes a model piece by piece: graphs, and in them tensors, constants and operators.
///
/// Positions are handed out as things are added. What is built is what was asked for; whether it
/// makes sense is for [`Reader::validate`](crate::Reader::validate) to tell once it is
/// written.
///
/// # Examples
///
/// See [`Writer`](crate::Writer).
#[derive(Clone, Debug)]
#[must_use = "a builder makes a model when it is finished"]
pub struct ModelBuilder {
    model: Model,
}

impl ModelBuilder {
    /// Starts a model with the version that tools write, and the empty buffer at position 0.
    pub fn new(schema: Schema) -> Self {
        let buffers = vec![Buffer::default()];
        Self { model: Model { buffers, ..Model::new(schema) } }
    }

    /// Starts a graph; the first one is where the model starts.
    pub fn subgraph(&mut self, name: impl Into<String>) -> SubgraphBuilder<'_> {
        let graph = Subgraph { name: Some(name.into()), ..Subgraph::default() };
        SubgraphBuilder { model: &mut self.model, graph }
    }

    /// Returns the model, whose fields can be set as well.
    #[must_use]
    pub fn finish(self) -> Model {
        self.model
    }
}

/// Makes one graph of a model. Tensors and operators come in the order in which they are added.
#[derive(Debug)]
#[must_use = "a graph is part of its model once it is finished"]
pub struct SubgraphBuilder<'a> {
    model: &'a mut Model,
    graph: Subgraph,
}

impl SubgraphBuilder<'_> {
    /// Adds a tensor that an operator makes, and returns its position.
    pub fn tensor(&mut self, tensor: Tensor) -> i32 {
        self.graph.tensors.push(tensor);
        // Nobody has 2³¹ tensors in memory.
        position(self.graph.tensors.len())
    }

    /// Adds an input of the graph, and returns its position.
    pub fn input(&mut self, tensor: Tensor) -> i32 {
        let position = self.tensor(tensor);
        self.graph.inputs.push(position);
        position
    }

    /// Adds an output of the graph, and returns its position.
    pub fn output(&mut self, tensor: Tensor) -> i32 {
        let position = self.tensor(tensor);
        self.graph.outputs.push(position);
        position
    }

    /// Adds a constant with its elements: little-endian, in row-major order. Returns its position.
    pub fn constant(&mut self, tensor: Tensor, elements: impl Into<Bytes>) -> i32 {
        let buffer = self.model.add_buffer(elements);
        self.tensor(Tensor { buffer, ..tensor })
    }

    /// Adds an operator of a code, which is stored once however many operators are of it.
    pub fn operator(&mut self, code: impl Into<OperatorCode>, operator: Operator) {
        let opcode_index = self.model.add_operator_code(code.into());
        self.graph.operators.push(Operator { opcode_index, ..operator });
    }

    /// Adds the graph to the model and returns its position there.
    #[expect(clippy::must_use_candidate, reason = "few graphs are referred to")]
    pub fn finish(self) -> u32 {
        self.model.subgraphs.push(self.graph);
        position(self.model.subgraphs.len()).unsigned_abs()
    }
}

/// Returns the last position of a list.
fn position(len: usize) -> i32 {
    i32::try_from(len.saturating_sub(1)).unwrap_or(i32::MAX)
}

impl Tensor {
    /// Makes a tensor with a name, an element type and a shape: dimensions in elements, outermost
    /// first.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        tensor_type: TensorType,
        shape: impl Into<Vec<i32>>,
    ) -> Self {
        let (name, shape) = (Some(name.into()), shape.into());
        Self { name, tensor_type, shape, ..Self::default() }
    }
}

impl Operator {
    /// Makes an operator without options: positions of its inputs, -1 for one that is left out, and
    /// of its outputs.
    #[must_use]
    pub fn new(inputs: impl Into<Vec<i32>>, outputs: impl Into<Vec<i32>>) -> Self {
        Self { inputs: inputs.into(), outputs: outputs.into(), ..Self::default() }
    }

    /// Sets its options.
    #[must_use]
    pub fn options(self, options: impl Into<BuiltinOptions>) -> Self {
        Self { options: Some(options.into()), ..self }
    }
}
