//! Builds models for tests, node by node.

use rten_format::{
    Attributes, Constant, ConstantData, ConstantDataType, DataType, Dim, Graph, Model, Node,
    Operator, OperatorType, Value, tensor_core::Limits,
};

/// A graph in the making. Values and constants have no names unless they are given some.
#[derive(Clone, Debug, Default)]
pub(super) struct Builder {
    pub(super) graph: Graph,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn model(self) -> Model {
        let model = Model { graph: self.graph, metadata: None };
        // What a test is about should not be that a model is none.
        Model::parse(model.to_bytes().unwrap(), &Limits::default()).unwrap()
    }

    pub(super) fn input(&mut self, name: &str, dtype: DataType, shape: &[u32]) -> u32 {
        let shape = Some(shape.iter().map(|dim| Dim::Fixed(*dim)).collect());
        let id = self.node(Node::named(name, Value { shape, dtype: Some(dtype) }));
        self.graph.inputs.push(id);
        id
    }

    /// Adds a value that nothing is known of.
    pub(super) fn value(&mut self, name: Option<&str>) -> u32 {
        let name = name.map(str::to_owned);
        self.node(Node { name, kind: Value::default().into() })
    }

    /// Adds a value that is found by its name in a graph around this one.
    pub(super) fn capture(&mut self, name: &str) -> u32 {
        let id = self.value(Some(name));
        self.graph.captures.push(id);
        id
    }

    pub(super) fn ints(&mut self, shape: &[u32], data: &[i32]) -> u32 {
        let bytes: Vec<u8> = data.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(shape, ConstantDataType::Int32, ConstantData::Int32(bytes.into()))
    }

    pub(super) fn floats(&mut self, shape: &[u32], data: &[f32]) -> u32 {
        let bytes: Vec<u8> = data.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(shape, ConstantDataType::Float32, ConstantData::Float(bytes.into()))
    }

    pub(super) fn bytes(&mut self, shape: &[u32], data: &[u8]) -> u32 {
        let data = ConstantData::UInt8(data.to_vec().into());
        self.constant(shape, ConstantDataType::UInt8, data)
    }

    pub(super) fn int(&mut self, value: i32) -> u32 {
        self.ints(&[], &[value])
    }

    pub(super) fn float(&mut self, value: f32) -> u32 {
        self.floats(&[], &[value])
    }

    fn constant(&mut self, shape: &[u32], dtype: ConstantDataType, data: ConstantData) -> u32 {
        let (shape, dtype, data) = (shape.to_vec(), Some(dtype), Some(data));
        let kind = Constant { shape, dtype, data, data_offset: None }.into();
        self.node(Node { name: None, kind })
    }

    /// Adds an operator that makes one value.
    pub(super) fn op(
        &mut self,
        operator_type: OperatorType,
        attributes: Option<Attributes>,
        inputs: &[u32],
    ) -> u32 {
        self.ops(operator_type, attributes, inputs, 1)[0]
    }

    /// Adds an operator that makes several values.
    pub(super) fn ops(
        &mut self,
        operator_type: OperatorType,
        attributes: Option<Attributes>,
        inputs: &[u32],
        count: usize,
    ) -> Vec<u32> {
        let made: Vec<u32> = (0..count).map(|_| self.value(None)).collect();
        let inputs = inputs.iter().copied().map(Some).collect();
        let outputs = made.iter().copied().map(Some).collect();
        let operator = Operator { operator_type, attributes, inputs, outputs };
        self.node(Node { name: None, kind: operator.into() });
        made
    }

    /// Adds an operator that makes a value that is there already.
    pub(super) fn make(
        &mut self,
        operator_type: OperatorType,
        attributes: Option<Attributes>,
        inputs: &[u32],
        made: u32,
    ) {
        let inputs = inputs.iter().copied().map(Some).collect();
        let outputs = vec![Some(made)];
        let operator = Operator { operator_type, attributes, inputs, outputs };
        self.node(Node { name: None, kind: operator.into() });
    }

    pub(super) fn output(&mut self, id: u32) {
        self.graph.outputs.push(id);
    }

    pub(super) fn node(&mut self, node: Node) -> u32 {
        self.graph.nodes.push(node);
        u32::try_from(self.graph.nodes.len() - 1).unwrap()
    }
}
