//! Types of values.

use prost::Message as _;
use tensor_core::{At, Finding, Severity};

use crate::{Dim, Node, NodeKind, Value, types::Form};

use super::{
    error::Result,
    lower::{Lowering, Operand},
    proto::{
        DimensionProto, DimensionValue, SequenceTypeProto, TensorShapeProto, TensorTypeProto,
        TypeProto, TypeValue, ValueInfoProto,
    },
    shapes::Dims,
};

impl Lowering<'_> {
    /// Returns the name and the type of an input or output of the main graph, and reports what a
    /// user of the model has to know about it.
    pub(super) fn interface(
        &mut self,
        scope: usize,
        id: u32,
        node: &Node,
        operand: &Operand,
    ) -> Result<ValueInfoProto> {
        let mut report = |severity, rule, message: &str| {
            let at = At::file().path(self.scopes.node_path(scope, id));
            self.report.add(Finding::new(severity, rule, message).at(at));
        };
        if has_zero(node) {
            // RTen's converter writes it for a dimension of which ONNX says nothing.
            let message = "has a dimension of 0 elements, which is taken as unknown";
            report(Severity::Note, ZERO, message);
        }
        if operand.dims.is_none() && operand.form == Form::Tensor {
            let message = "has no shape, which ONNX's checker wants of inputs and outputs";
            report(Severity::Warning, NO_SHAPE, message);
        }
        self.value_info(node, operand)
    }

    /// Returns the name and the type of a value.
    pub(super) fn value_info(&mut self, node: &Node, operand: &Operand) -> Result<ValueInfoProto> {
        let is_sequence = operand.form == Form::Sequence;
        let elem_type = Some(operand.element.code());
        let dims = operand.dims.as_ref().filter(|_| !is_sequence);
        let shape = dims.map(|dims| shape(node, dims));
        let tensor = TypeValue::Tensor(TensorTypeProto { elem_type, shape });
        let tensor = TypeProto { value: Some(tensor) };
        let r#type = if is_sequence {
            let sequence = SequenceTypeProto { elem_type: Some(tensor) };
            TypeProto { value: Some(TypeValue::Sequence(Box::new(sequence))) }
        } else {
            tensor
        };
        let info = ValueInfoProto { name: Some(operand.name.clone()), r#type: Some(r#type) };
        self.spend(info.encoded_len())?;
        Ok(info)
    }
}

/// Returns the dimensions of a value, with the names that the file has for them.
fn shape(node: &Node, dims: &Dims) -> TensorShapeProto {
    let symbol = |index: usize| match &node.kind {
        NodeKind::Value(Value { shape: Some(declared), .. }) if declared.len() == dims.len() => {
            match declared.get(index)? {
                Dim::Symbol(name) => Some(DimensionValue::Symbol(name.clone())),
                Dim::Fixed(_) => None,
            }
        }
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
