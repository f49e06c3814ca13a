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
    shapes::Dims,
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
        let dims = operand.dims.as_ref().filter(|_| !is_sequence);
        let shape = dims.map(|dims| shape(node, dims));
        if has_zero(node) && self.scopes.is_interface(scope, id) {
            // RTen's converter writes it for a dimension of which ONNX says nothing.
            let message = "has a dimension of 0 elements, which is taken as unknown";
            let at = At::file().path(self.scopes.node_path(scope, id));
            self.report.push(Severity::Note, ZERO, at, message);
        }
        if shape.is_none() && !is_sequence && self.scopes.is_interface(scope, id) {
            let message = "has no shape, which ONNX's checker wants of inputs and outputs";
            let at = At::file().path(self.scopes.node_path(scope, id));
            self.report.push(Severity::Warning, NO_SHAPE, at, message);
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

/// Returns the dimensions of a value, with the names that the file has for them.
fn shape(node: &Node, dims: &Dims) -> TensorShapeProto {
    let symbol = |index: usize| match &node.kind {
        NodeKind::Value(Value { shape: Some(declared), .. }) => match declared.get(index)? {
            Dim::Symbol(name) => Some(DimensionValue::Symbol(name.clone())),
            Dim::Fixed(_) => None,
        },
        _ => None,
    };
    let fixed = |len: u64| i64::try_from(len).ok().map(DimensionValue::Fixed);
    let dims = dims.iter().enumerate();
    let dim = dims.map(|(index, len)| DimensionProto {
        value: len.and_then(fixed).or_else(|| symbol(index)),
    });
    TensorShapeProto { dim: dim.collect() }
}

fn has_zero(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Value(Value { shape: Some(dims), .. }) => dims.contains(&Dim::Fixed(0)),
        _ => false,
    }
}

/// Rule of a dimension that is 0 because the converter did not know it.
const ZERO: &str = "rten/onnx-fixed-zero";

/// Rule of an input or output of which not even the rank is known.
const NO_SHAPE: &str = "rten/onnx-no-shape";
