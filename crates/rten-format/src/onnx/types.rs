//! Types of values.

use tensor_core::{At, Severity};

use crate::{Dim, Node, NodeKind, Value};

use super::{
    kinds::Form,
    lower::{Lowering, Operand},
    proto::{
        DimensionProto, DimensionValue, SequenceTypeProto, TensorShapeProto, TensorTypeProto,
        TypeProto, TypeValue, ValueInfoProto,
    },
};

impl Lowering<'_> {
    /// Returns the name and the type of a value.
    pub(super) fn value_info(
        &mut self,
        scope: usize,
        id: u32,
        node: &Node,
        operand: &Operand,
    ) -> ValueInfoProto {
        let is_sequence = operand.form == Form::Sequence;
        let elem_type = Some(operand.element.code());
        let shape = shape(node).filter(|_| !is_sequence);
        if has_zero(node) && self.scopes.is_interface(scope, id) {
            let message = "has a dimension of 0 elements, which is taken as unknown";
            let at = At::file().path(self.scopes.node_path(scope, id));
            self.report.push(Severity::Note, ZERO, at, message);
        }
        let tensor = TypeValue::Tensor(TensorTypeProto { elem_type, shape });
        let tensor = TypeProto { value: Some(tensor) };
        let r#type = if is_sequence {
            let sequence = SequenceTypeProto { elem_type: Some(tensor) };
            TypeProto { value: Some(TypeValue::Sequence(Box::new(sequence))) }
        } else {
            tensor
        };
        ValueInfoProto { name: Some(operand.name.clone()), r#type: Some(r#type) }
    }
}

fn shape(node: &Node) -> Option<TensorShapeProto> {
    let dim = match &node.kind {
        NodeKind::Value(value) => value.shape.as_ref()?.iter().map(dimension).collect(),
        NodeKind::Constant(constant) => constant.shape.iter().map(|dim| fixed(*dim)).collect(),
        _ => return None,
    };
    Some(TensorShapeProto { dim })
}

/// RTen's converter writes a fixed 0 for a dimension of which ONNX says nothing.
fn dimension(dim: &Dim) -> DimensionProto {
    match dim {
        Dim::Fixed(0) => DimensionProto { value: None },
        Dim::Fixed(value) => fixed(*value),
        Dim::Symbol(name) => DimensionProto { value: Some(DimensionValue::Symbol(name.clone())) },
    }
}

fn fixed(value: u32) -> DimensionProto {
    DimensionProto { value: Some(DimensionValue::Fixed(i64::from(value))) }
}

fn has_zero(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Value(Value { shape: Some(dims), .. }) => dims.contains(&Dim::Fixed(0)),
        _ => false,
    }
}

/// Rule of a dimension that is 0 because the converter did not know it.
const ZERO: &str = "rten/onnx-fixed-zero";
