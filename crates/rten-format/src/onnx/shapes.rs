//! How many dimensions values have that the file says nothing of.
//!
//! ONNX's checker wants a shape for every input and output of a model; of what a file leaves open,
//! the rank is followed through the operators. Lengths are only known of what holds a shape or
//! axes itself, as ranks depend on those.

use crate::{
    Attributes, Constant, Dim, Node, NodeKind, Operator, OperatorType, Value,
    attributes::{ReduceMeanAttrs, ShapeAttrs},
};

/// The dimensions of a tensor, or of each member of a sequence; `None` for a length that is not
/// known.
pub(super) type Dims = Vec<Option<u64>>;

/// Returns what the file says about the shape of a value or constant.
pub(super) fn declared(node: &Node) -> Option<Dims> {
    let known = |dim: &Dim| match dim {
        Dim::Fixed(0) | Dim::Symbol(_) => None,
        Dim::Fixed(len) => Some(u64::from(*len)),
    };
    let dims: Dims = match &node.kind {
        NodeKind::Value(Value { shape, .. }) => {
            shape.as_ref()?.iter().take(MORE).map(known).collect()
        }
        NodeKind::Constant(Constant { shape, .. }) => {
            shape.iter().take(MORE).map(|dim| Some(u64::from(*dim))).collect()
        }
        _ => return None,
    };
    Some(dims).filter(|dims| dims.len() <= MAX_RANK)
}

/// Returns the shape of what an operator without graphs makes, where its inputs tell.
pub(super) fn infer(operator: &Operator, inputs: &[Option<&Dims>], output: usize) -> Option<Dims> {
    Shapes { operator, inputs, output }.infer()
}

struct Shapes<'a> {
    operator: &'a Operator,
    /// Shapes of the inputs, `None` where they are left out or not known.
    inputs: &'a [Option<&'a Dims>],
    /// Which output it is about.
    output: usize,
}

impl Shapes<'_> {
    fn infer(&self) -> Option<Dims> {
        use OperatorType as O;
        match self.operator.operator_type {
            O::Add | O::Sub | O::Mul | O::Div | O::Pow | O::Mod => self.broadcast(),
            O::Equal | O::Greater | O::GreaterOrEqual | O::Less | O::LessOrEqual => {
                self.broadcast()
            }
            O::And | O::Or | O::Xor | O::Where => self.broadcast(),
            O::Max | O::Min | O::Mean | O::Sum => self.broadcast(),
            O::Identity | O::Cast | O::CastLike => self.input(0).cloned(),
            O::Shape => self.shape(),
            O::Size | O::SequenceLength => Some(Vec::new()),
            O::Range => unknown(1),
            O::Gemm | O::Flatten | O::NonZero | O::Multinomial | O::EyeLike => unknown(2),
            O::NonMaxSuppression => unknown(2),
            O::STFT => unknown(4),
            O::ConstantOfShape => unknown(self.length(0)?),
            O::Reshape => unknown(self.length(1)?),
            O::Expand => unknown(self.rank(0)?.max(self.length(1)?)),
            O::RandomUniform | O::RandomNormal => self.random(),
            O::MatMul | O::MatMulInteger => self.product(),
            O::ArgMax | O::ArgMin => self.extremum(),
            O::Squeeze => unknown(self.rank(0)?.checked_sub(self.length(1)?)?),
            O::Unsqueeze => self.unsqueeze(),
            O::OneHot => unknown(self.rank(0)?.checked_add(1)?),
            O::Concat => self.concat(),
            O::Gather => self.gather(),
            O::GatherElements => unknown(self.rank(1)?),
            O::GatherND => self.gather_nd(),
            O::GRU | O::LSTM => unknown(if self.output == 0 { 4 } else { 3 }),
            O::DynamicQuantizeLinear if self.output > 0 => Some(Vec::new()),
            O::Attention if self.output > 0 => unknown(4),
            O::Einsum => self.einsum(),
            _ => self.other(),
        }
    }

    /// Shapes of reductions and of what holds or makes sequences; as the first input for all else.
    fn other(&self) -> Option<Dims> {
        match (self.operator.operator_type, &self.operator.attributes) {
            (_, Some(Attributes::ReduceMean(table))) => self.reduction(table),
            (OperatorType::SequenceEmpty, _) => None,
            (OperatorType::SequenceInsert | OperatorType::SequenceConstruct, _) => self.agreed(),
            (_, Some(Attributes::SplitToSequence(table))) => {
                let keeps = table.keep_dims || self.inputs.len() > 1;
                unknown(self.rank(0)?.checked_sub(usize::from(!keeps))?)
            }
            (_, Some(Attributes::ConcatFromSequence(table))) => {
                unknown(self.rank(0)?.checked_add(usize::from(table.new_axis))?)
            }
            _ => unknown(self.rank(0)?),
        }
    }

    fn input(&self, index: usize) -> Option<&Dims> {
        self.inputs.get(index).copied().flatten()
    }

    fn rank(&self, index: usize) -> Option<usize> {
        self.input(index).map(Vec::len)
    }

    /// Returns the number of elements of an input that is a list.
    fn length(&self, index: usize) -> Option<usize> {
        match &self.input(index)?[..] {
            [len] => usize::try_from((*len)?).ok().filter(|len| *len <= MAX_RANK),
            _ => None,
        }
    }

    fn broadcast(&self) -> Option<Dims> {
        let mut inputs = self.inputs.iter();
        let mut dims = (*inputs.next()?)?.clone();
        for other in inputs {
            let other = (*other)?;
            if dims != **other {
                dims = unknown(dims.len().max(other.len()))?;
            }
        }
        Some(dims)
    }

    /// Returns the rank that all inputs have.
    fn agreed(&self) -> Option<Dims> {
        let count = if self.operator.operator_type == OperatorType::SequenceInsert {
            2
        } else {
            self.inputs.len()
        };
        let rank = self.rank(0)?;
        let all = (0..count).all(|index| self.rank(index) == Some(rank));
        unknown(rank).filter(|_| all)
    }

    fn shape(&self) -> Option<Dims> {
        let rank = i64::try_from(self.rank(0)?).ok()?;
        let (start, end) = match &self.operator.attributes {
            Some(Attributes::Shape(ShapeAttrs { start, end })) => (*start, *end),
            _ => (None, None),
        };
        let resolve = |at: i64| if at < 0 { at.saturating_add(rank) } else { at }.clamp(0, rank);
        let start = resolve(start.map_or(0, i64::from));
        let end = resolve(end.map_or(rank, i64::from));
        Some(vec![Some(u64::try_from(end.saturating_sub(start)).unwrap_or_default())])
    }

    fn random(&self) -> Option<Dims> {
        let shape = match self.operator.attributes.as_ref()? {
            Attributes::RandomUniform(table) => &table.shape,
            Attributes::RandomNormal(table) => &table.shape,
            _ => return None,
        };
        unknown(shape.as_ref().map_or(0, Vec::len))
    }

    fn product(&self) -> Option<Dims> {
        unknown(match (self.rank(0)?, self.rank(1)?) {
            (0, _) | (_, 0) => return None,
            (1, 1) => 0,
            (1, other) | (other, 1) => other.checked_sub(1)?,
            (left, right) => left.max(right),
        })
    }

    fn extremum(&self) -> Option<Dims> {
        match self.operator.attributes.as_ref()? {
            Attributes::ArgMax(table) => {
                unknown(self.rank(0)?.checked_sub(usize::from(!table.keep_dims))?)
            }
            _ => None,
        }
    }

    fn reduction(&self, table: &ReduceMeanAttrs) -> Option<Dims> {
        let rank = self.rank(0)?;
        let has_input = self.operator.inputs.get(1).is_some_and(Option::is_some);
        let axes = match (&table.axes, has_input) {
            (_, true) => self.length(1)?,
            (axes, false) => axes.as_ref().map_or(0, Vec::len),
        };
        unknown(match (table.keep_dims, axes, table.noop_with_empty_axes) {
            (true, ..) | (_, 0, true) => rank,
            (false, 0, false) => 0,
            (false, axes, _) => rank.checked_sub(axes)?,
        })
    }

    fn unsqueeze(&self) -> Option<Dims> {
        let (rank, axes) = (self.rank(0)?, self.length(1)?);
        if (rank, axes) == (0, 1) {
            return Some(vec![Some(1)]);
        }
        unknown(rank.checked_add(axes)?)
    }

    fn concat(&self) -> Option<Dims> {
        let rank = self.rank(0)?;
        if rank != 1 {
            return unknown(rank);
        }
        let lens = (0..self.inputs.len()).map(|index| self.length(index));
        let total = lens.sum::<Option<usize>>().and_then(|total| u64::try_from(total).ok());
        Some(vec![total])
    }

    fn gather(&self) -> Option<Dims> {
        let (data, indices) = (self.rank(0)?, self.input(1)?);
        if data == 1 {
            return Some(indices.clone());
        }
        unknown(data.checked_sub(1)?.checked_add(indices.len())?)
    }

    fn gather_nd(&self) -> Option<Dims> {
        let Some(Attributes::GatherND(table)) = &self.operator.attributes else { return None };
        let indices = self.input(1)?;
        let depth = usize::try_from((*indices.last()?)?).ok()?;
        let batch = usize::try_from(table.batch_dims).ok()?;
        let all = self.rank(0)?.checked_add(indices.len())?;
        unknown(all.checked_sub(depth)?.checked_sub(batch)?.checked_sub(1)?)
    }

    fn einsum(&self) -> Option<Dims> {
        let Some(Attributes::Einsum(table)) = &self.operator.attributes else { return None };
        let (_, result) = table.equation.as_ref()?.split_once("->")?;
        let is_plain = result.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
        let letters = result.chars().filter(char::is_ascii_alphabetic).count();
        unknown(letters).filter(|_| is_plain)
    }
}

/// Returns a shape of which only the rank is known.
pub(super) fn unknown(rank: usize) -> Option<Dims> {
    (rank <= MAX_RANK).then(|| vec![None; rank])
}

/// Dimensions that any known operator can make something of; a file may claim millions for
/// everything in it.
const MAX_RANK: usize = 64;

/// Dimensions that show that there are too many.
const MORE: usize = MAX_RANK + 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::{
        ArgMaxAttrs, ConcatAttrs, EinsumAttrs, GatherAttrs, GatherNDAttrs, SplitToSequenceAttrs,
    };

    /// Writes a shape with `?` for what is not known.
    fn text(dims: Option<Dims>) -> String {
        let Some(dims) = dims else { return "unknown".to_owned() };
        let one = |dim: &Option<u64>| dim.map_or("?".to_owned(), |dim| dim.to_string());
        format!("[{}]", dims.iter().map(one).collect::<Vec<_>>().join(", "))
    }

    fn inferred(
        operator_type: OperatorType,
        attributes: Option<Attributes>,
        inputs: &[&[u64]],
    ) -> String {
        let shapes: Vec<Dims> =
            inputs.iter().map(|dims| dims.iter().map(|dim| Some(*dim)).collect()).collect();
        let ids = (0..).zip(inputs).map(|(id, _)| Some(id)).collect();
        let operator = Operator { operator_type, attributes, inputs: ids, outputs: vec![] };
        text(infer(&operator, &shapes.iter().map(Some).collect::<Vec<_>>(), 0))
    }

    /// An operator with attributes and the shapes of its inputs, and the shape that it makes.
    type Case = (OperatorType, Option<Attributes>, &'static [&'static [u64]], &'static str);

    #[test]
    fn ranks_follow_operators() {
        use OperatorType as O;
        let gather = || Some(GatherAttrs::default().into());
        let concat = || Some(ConcatAttrs::default().into());
        let keep = Some(ArgMaxAttrs { axis: 0, keep_dims: false }.into());
        let axes = ReduceMeanAttrs { axes: Some(vec![0, 1]), ..Default::default() };
        let nd = Some(GatherNDAttrs { batch_dims: 1 }.into());
        let equation = |text: &str| -> Option<Attributes> {
            Some(EinsumAttrs { equation: Some(text.to_owned()) }.into())
        };
        let split = || Some(SplitToSequenceAttrs { axis: 0, keep_dims: false }.into());
        let cases: [Case; 27] = [
            (O::Relu, None, &[&[2, 3]], "[?, ?]"),
            (O::Identity, None, &[&[2, 3]], "[2, 3]"),
            (O::Add, None, &[&[2, 3], &[2, 3]], "[2, 3]"),
            (O::Add, None, &[&[2, 3], &[4, 1, 3]], "[?, ?, ?]"),
            (O::Shape, None, &[&[2, 3, 4]], "[3]"),
            (
                O::Shape,
                Some(ShapeAttrs { start: Some(-2), end: None }.into()),
                &[&[2, 3, 4]],
                "[2]",
            ),
            (O::Size, None, &[&[2, 3]], "[]"),
            (O::Reshape, None, &[&[2, 3], &[4]], "[?, ?, ?, ?]"),
            (O::Expand, None, &[&[2, 3], &[1]], "[?, ?]"),
            (O::MatMul, None, &[&[5, 2, 3], &[3]], "[?, ?]"),
            (O::MatMul, None, &[&[3], &[3]], "[]"),
            (O::Squeeze, None, &[&[1, 2, 1], &[2]], "[?]"),
            (O::Unsqueeze, None, &[&[], &[1]], "[1]"),
            (O::Unsqueeze, None, &[&[2], &[2]], "[?, ?, ?]"),
            (O::Concat, concat(), &[&[2], &[3]], "[5]"),
            (O::Concat, concat(), &[&[2, 1], &[3, 1]], "[?, ?]"),
            (O::Gather, gather(), &[&[7], &[3]], "[3]"),
            (O::Gather, gather(), &[&[7, 8], &[3, 4]], "[?, ?, ?]"),
            (O::GatherND, nd, &[&[5, 6, 7], &[5, 4, 2]], "[?, ?]"),
            (O::ArgMax, keep, &[&[2, 3]], "[?]"),
            (O::ReduceSum, Some(axes.into()), &[&[2, 3, 4]], "[?]"),
            (O::Einsum, equation("ij,jk->ik"), &[&[2, 3], &[3, 4]], "[?, ?]"),
            (O::Einsum, equation("...ij->...j"), &[&[2, 3]], "unknown"),
            (O::SplitToSequence, split(), &[&[2, 3]], "[?]"),
            (O::SplitToSequence, split(), &[&[2, 3], &[2]], "[?, ?]"),
            (O::SequenceInsert, None, &[&[2, 3], &[2]], "unknown"),
            (O::LSTM, None, &[], "[?, ?, ?, ?]"),
        ];
        for (operator, attributes, inputs, expected) in cases {
            assert_eq!(inferred(operator, attributes, inputs), expected, "{operator} {inputs:?}");
        }
    }

    #[test]
    fn more_dimensions_than_anything_has_are_not_known() {
        assert!(unknown(64).is_some());
        assert_eq!(unknown(65), None);
        let shape = Some(vec![Dim::Fixed(1); 65]);
        let value = Node::named("v", Value { shape, dtype: None });
        assert_eq!(declared(&value), None);
    }

    /// Converters write 0 for what they do not know.
    #[test]
    fn fixed_zero_is_not_known() {
        let shape = Some(vec![Dim::Fixed(0), Dim::Fixed(2), Dim::Symbol("n".to_owned())]);
        let value = Node::named("v", Value { shape, dtype: None });
        assert_eq!(text(declared(&value)), "[?, 2, ?]");
    }
}
