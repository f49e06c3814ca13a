//! What is in a model, in numbers.

use tensor_core::{DType, Shape};

use crate::{Constant, ConstantData, ConstantDataType, Model, NodeKind, OperatorType, topology};

/// How much of what is in a model, subgraphs included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Graphs, the main one included.
    pub graphs: u64,
    /// Nodes that are operators.
    pub operators: u64,
    /// Nodes that are values.
    pub values: u64,
    /// Nodes that are constants.
    pub constants: u64,
    /// Elements of all constants, as their shapes say. A shape with too many to count counts as
    /// many as 64 bits can hold.
    pub parameters: u64,
    /// Bytes of the constants inside the model data.
    pub inline_bytes: u64,
    /// Bytes of the constants in the tensor data, as their shapes say. Shared bytes count each
    /// time.
    pub external_bytes: u64,
    /// How many operators of each type there are, by number.
    pub by_operator: Vec<(OperatorType, u64)>,
}

impl Model {
    /// Counts what is in the model.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let mut counts = [0_u64; 256];
        let graphs = topology::walk(&self.graph, |_, _, node| match &node.kind {
            NodeKind::Operator(operator) => {
                add(&mut totals.operators, 1);
                if let Some(count) = counts.get_mut(usize::from(operator.operator_type.code())) {
                    add(count, 1);
                }
            }
            NodeKind::Value(_) => add(&mut totals.values, 1),
            NodeKind::Constant(constant) => totals.constant(constant),
            _ => {}
        });
        totals.graphs = graphs.len() as u64;
        let types = (0..=u8::MAX).map(OperatorType::from_code);
        totals.by_operator = types.zip(counts).filter(|(_, count)| *count > 0).collect();
        totals
    }
}

impl Totals {
    fn constant(&mut self, constant: &Constant) {
        add(&mut self.constants, 1);
        let shape: Shape = constant.shape.iter().map(|dim| u64::from(*dim)).collect();
        let elements = shape.elements().unwrap_or(u64::MAX);
        add(&mut self.parameters, elements);
        if constant.data_offset.is_some() {
            let width = constant.dtype.and_then(ConstantDataType::dtype).and_then(DType::width);
            add(&mut self.external_bytes, elements.saturating_mul(width.unwrap_or_default()));
        } else if let Some(data) = constant.data.as_ref().and_then(ConstantData::bytes) {
            add(&mut self.inline_bytes, data.len() as u64);
        }
    }
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
