//! How the integers of a constant stand for real numbers, which the operators that read it say.

use std::collections::HashMap;

use crate::{Attributes, NodeKind, Operator, OperatorType, Reader, Tensor, topology};

/// What turns the integers of a constant into real numbers: `scale × (integer − zero point)`.
#[derive(Clone, Copy, Debug)]
pub struct Quantization<'a> {
    /// One scale, or one for each index along `axis`.
    pub scales: Tensor<'a>,
    /// As many as there are scales; where absent, zeros.
    pub zero_points: Option<Tensor<'a>>,
    /// The dimension, where there is a scale for each of its indices; may be one that there is not.
    pub axis: Option<i64>,
}

/// Scales, zero points and axis of constants, each by its graph and node. The first two are positions
/// among the constants.
pub(crate) type Dequantized = HashMap<(usize, u32), (usize, Option<usize>, i32)>;

impl<'a> Tensor<'a> {
    /// Returns how its integers stand for real numbers: by the first operator `DequantizeLinear` that
    /// reads it with constant scales of its own graph. `None` where there is none; scales that are
    /// multiplied in elsewhere, as behind `MatMulInteger`, are not looked for.
    #[must_use]
    pub fn quantization(self) -> Option<Quantization<'a>> {
        let reader = self.reader();
        let found = reader.dequantized(|| dequantized(reader));
        let &(scales, zero_points, axis) = found.get(&(self.scope(), self.node()))?;
        let constant = |at: usize| Some(Tensor::new(reader, reader.index().constants.get(at)?));
        let scales = constant(scales)?;
        let zero_points = zero_points.and_then(constant);
        // A scale for all is stored as a scalar, or as one of a list.
        let is_list = scales.constant().shape.iter().any(|dim| *dim != 1);
        let rank = i64::try_from(self.constant().shape.len()).unwrap_or(i64::MAX);
        let axis = i64::from(axis);
        let axis = if axis < 0 { axis.saturating_add(rank) } else { axis };
        Some(Quantization { scales, zero_points, axis: is_list.then_some(axis) })
    }
}

fn dequantized(reader: &Reader) -> Dequantized {
    let constants = reader.tensors().enumerate();
    let constants: HashMap<(usize, u32), usize> =
        constants.map(|(at, tensor)| ((tensor.scope(), tensor.node()), at)).collect();
    let mut found = Dequantized::new();
    topology::walk(&reader.model().graph, |scope, _, node| {
        if let NodeKind::Operator(operator) = &node.kind
            && let Some((codes, scales, zero_points, axis)) = dequantizes(operator)
        {
            let constant = |id: u32| constants.get(&(scope, id)).copied();
            // A zero point that is no constant is not known here.
            let zero_points = zero_points.map(constant);
            if let (Some(_), Some(scales), None | Some(Some(_))) =
                (constant(codes), constant(scales), zero_points)
            {
                found.entry((scope, codes)).or_insert((scales, zero_points.flatten(), axis));
            }
        }
    });
    found
}

/// Returns the codes, the scales, the zero points and the axis of an operator that dequantizes.
fn dequantizes(operator: &Operator) -> Option<(u32, u32, Option<u32>, i32)> {
    if operator.operator_type != OperatorType::DequantizeLinear {
        return None;
    }
    let Some(Attributes::DequantizeLinear(table)) = &operator.attributes else { return None };
    let input = |at: usize| operator.inputs.get(at).copied().flatten();
    Some((input(0)?, input(1)?, input(2), table.axis))
}
