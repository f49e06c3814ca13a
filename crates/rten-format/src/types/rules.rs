//! What the ONNX operators take and give: one rule for each operator of the format.
//!
//! Operators with the same rule stand together, in the order of their numbers.
//! Where ONNX Runtime has no kernel for an element type that the ONNX operator takes, but for
//! another one of the same kind, the rule has only that one.

use super::element::{
    Element::{self, Bool, Float, Int8, Int32, Int64, UInt8},
    Elements,
};
use crate::OperatorType;

/// One operator of the format as an ONNX operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Its name in ONNX.
    pub(crate) name: &'static str,
    /// The first release of the operator set that has it in this form; 20 stands for all before.
    pub(crate) opset: i64,
    inputs: &'static [Slot],
    /// How many of the first inputs cannot be left out.
    pub(crate) required: usize,
    outputs: &'static [Slot],
    /// How many of the first outputs cannot be left out.
    pub(crate) made: usize,
    /// Whether the last input, and the last output, may be there any number of times.
    many: [bool; 2],
    /// What the type variables stand for.
    variables: [Elements; VARIABLES],
}

/// The type of one input or output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A tensor of one element type.
    Is(Element),
    /// A tensor of a type that the inputs and outputs with the same variable share.
    Of(Variable),
    /// An output with the type that the attributes name, or else that of a variable.
    Given(Variable),
    /// A sequence of tensors of the type of a variable.
    Sequence(Variable),
    /// A tensor or a sequence, whatever it holds.
    Same(Variable),
}

impl Slot {
    /// Tells whether something there takes part in what a variable stands for.
    pub(crate) const fn is_of(self, variable: Variable) -> bool {
        match self {
            Self::Of(at) | Self::Sequence(at) | Self::Same(at) => at == variable,
            Self::Is(_) | Self::Given(_) => false,
        }
    }
}

/// A type variable of a rule, by its index.
pub(crate) type Variable = usize;

/// The first release of the operator set with attention.
const ATTENTION: i64 = 23;

/// How many variables a rule may have.
pub(crate) const VARIABLES: usize = 2;

impl Rule {
    const fn new(inputs: &'static [Slot], outputs: &'static [Slot]) -> Self {
        Self {
            name: "",
            opset: 20,
            inputs,
            required: 0,
            outputs,
            made: outputs.len(),
            many: [false, false],
            variables: [ANY; VARIABLES],
        }
    }

    /// Sets the name in ONNX, where it is not that in the format.
    pub(crate) const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Sets what the first variable stands for.
    const fn t(mut self, elements: Elements) -> Self {
        self.variables = [elements, self.variables[1]];
        self
    }

    /// Sets what the second variable stands for.
    const fn u(mut self, elements: Elements) -> Self {
        self.variables = [self.variables[0], elements];
        self
    }

    /// Sets how many outputs are always there; those behind may be left out.
    const fn makes(mut self, outputs: usize) -> Self {
        self.made = outputs;
        self
    }

    /// Lets the last input be there any number of times.
    const fn many_inputs(mut self) -> Self {
        self.many = [true, self.many[1]];
        self
    }

    /// Lets the last output be there any number of times.
    const fn many_outputs(mut self) -> Self {
        self.many = [self.many[0], true];
        self
    }

    const fn since(mut self, opset: i64) -> Self {
        self.opset = opset;
        self
    }

    /// Returns the type of an input; `None` where there are fewer.
    pub(crate) fn input(&self, index: usize) -> Option<Slot> {
        at(self.inputs, index, self.many[0])
    }

    /// Returns the type of an output; `None` where there are fewer.
    pub(crate) fn output(&self, index: usize) -> Option<Slot> {
        at(self.outputs, index, self.many[1])
    }

    /// Returns what a variable stands for.
    pub(crate) fn elements(&self, variable: Variable) -> Elements {
        self.variables.get(variable).copied().unwrap_or(ANY)
    }

    /// Tells whether the last output may be there any number of times.
    pub(crate) fn makes_many(&self) -> bool {
        self.many[1]
    }

    /// Returns the release of the operator set that has the operator with so many inputs.
    pub(crate) fn opset_for(&self, inputs: usize) -> i64 {
        // The seventh input of Attention is newer than the operator.
        if self.opset == ATTENTION && inputs > 6 { ATTENTION.saturating_add(1) } else { self.opset }
    }

    /// Returns how many inputs there may be; `None` for any number.
    pub(crate) fn max_inputs(&self) -> Option<usize> {
        (!self.many[0]).then_some(self.inputs.len())
    }
}

fn at(slots: &[Slot], index: usize, many: bool) -> Option<Slot> {
    slots.get(index).or_else(|| slots.last().filter(|_| many)).copied()
}

const T: Slot = Slot::Of(0);
const U: Slot = Slot::Of(1);
const GIVEN: Slot = Slot::Given(0);
const SEQUENCE: Slot = Slot::Sequence(0);
const SAME: Slot = Slot::Same(0);
const F: Slot = Slot::Is(Float);
const I32: Slot = Slot::Is(Int32);
const I64: Slot = Slot::Is(Int64);
const BOOL: Slot = Slot::Is(Bool);
const U8: Slot = Slot::Is(UInt8);

const ANY: Elements = Elements(&[Float, Int8, UInt8, Int64, Int32, Bool]);
const NUMBERS: Elements = Elements(&[Float, Int8, UInt8, Int64, Int32]);
/// Numbers that have a sign.
const SIGNED: Elements = Elements(&[Float, Int8, Int64, Int32]);
/// Numbers of more than 8 bits.
const WIDE: Elements = Elements(&[Float, Int64, Int32]);
/// ONNX Runtime has no 64-bit integers here.
const NARROW: Elements = Elements(&[Float, Int8, UInt8, Int32]);
const INDICES: Elements = Elements(&[Int64, Int32]);
const QUANTIZED: Elements = Elements(&[UInt8, Int8]);
const DEQUANTIZED: Elements = Elements(&[UInt8, Int8, Int32]);
/// In a sequence all 32-bit values of the format are of one type.
const MEMBERS: Elements = Elements(&[Float, Int8, UInt8, Int64]);
const MASK: Elements = Elements(&[Float, Bool]);

/// Matches any of several operators.
macro_rules! any {
    ($($operator:ident)*) => { $( OperatorType::$operator )|* };
}

/// Returns the rule of an operator; `None` for an unknown one.
pub(crate) const fn rule(operator: OperatorType) -> Option<Rule> {
    use OperatorType as O;
    let rule = match operator {
        O::Add | O::Div | O::Mod | O::Mul | O::Sub => binary(NUMBERS),
        O::ArgMin | O::ArgMax => Rule::new(&[T], &[I64]).t(NUMBERS),
        any!(
            AveragePool Cos Erf GlobalAveragePool LeakyRelu Log LogSoftmax Sigmoid
            Sin Sqrt Softmax Tanh Round Floor Ceil Reciprocal Exp Tan Acos Asin Atan
            HardSigmoid HardSwish Elu Softplus Gelu GlobalMaxPool Acosh Asinh Atanh
            Cosh Sinh LpNormalization
        ) => FLOATS,
        O::BatchNormalization => Rule::new(&[F, F, F, F, F], &[F]),
        O::Cast => Rule::new(&[T], &[Slot::Given(1)]),
        O::Clip => Rule::new(&[T, T, T], &[T]).t(NUMBERS),
        O::Concat => Rule::new(&[T], &[T]).many_inputs(),
        O::ConstantOfShape => Rule::new(&[I64], &[GIVEN]),
        O::Conv | O::ConvTranspose => Rule::new(&[F, F, F], &[F]),
        O::CumSum => Rule::new(&[T, U], &[T]).t(WIDE).u(INDICES),
        O::Equal => comparison(ANY),
        O::Expand | O::Reshape | O::Unsqueeze | O::Tile | O::GatherND | O::ReverseSequence => {
            Rule::new(&[T, I64], &[T])
        }
        O::Flatten | O::Transpose | O::DepthToSpace => Rule::new(&[T], &[T]),
        O::Gather | O::GatherElements => Rule::new(&[T, U], &[T]).u(INDICES),
        O::Gemm => Rule::new(&[T, T, T], &[T]).t(WIDE),
        O::Greater | O::Less | O::LessOrEqual | O::GreaterOrEqual => comparison(NUMBERS),
        O::GRU => Rule::new(&[F, F, F, F, I32, F], &[F, F]).makes(0),
        O::Identity => Rule::new(&[SAME], &[SAME]),
        O::LSTM => Rule::new(&[F, F, F, F, I32, F, F], &[F, F, F]).makes(0),
        O::MatMul | O::PRelu => binary(WIDE),
        O::MaxPool => {
            let elements = Elements(&[Float, Int8, UInt8]);
            Rule::new(&[T], &[T, I64]).t(elements).makes(1)
        }
        O::Pad => Rule::new(&[T, I64, T, U], &[T]).u(INDICES),
        O::Pow => Rule::new(&[T, U], &[T]).t(WIDE).u(NUMBERS),
        O::Range => Rule::new(&[T, T, T], &[T]).t(WIDE),
        any!(
            ReduceMean ReduceL2 ReduceProd ReduceSum ReduceSumSquare ReduceL1
            ReduceLogSum ReduceLogSumExp
        ) => reduction(WIDE),
        O::Relu => Rule::new(&[T], &[T]).t(Elements(&[Float, Int8, Int32])),
        O::Resize => Rule::new(&[T, F, F, I64], &[T]).t(NARROW),
        O::Shape | O::NonZero | O::Size => Rule::new(&[T], &[I64]),
        O::Slice => Rule::new(&[T, U, U, U, U], &[T]).u(INDICES),
        O::Split => Rule::new(&[T, I64], &[T]).many_outputs(),
        O::Squeeze | O::Trilu => Rule::new(&[T, I64], &[T]),
        O::Where => Rule::new(&[BOOL, T, T], &[T]).t(NUMBERS),
        O::ReduceMin | O::ReduceMax => reduction(NUMBERS),
        O::ScatterElements => Rule::new(&[T, U, T], &[T]).u(INDICES),
        O::Not => Rule::new(&[BOOL], &[BOOL]),
        O::Abs | O::Sign => Rule::new(&[T], &[T]).t(NUMBERS),
        O::Max | O::Min | O::Einsum => Rule::new(&[T], &[T]).t(NUMBERS).many_inputs(),
        O::Mean | O::Sum => Rule::new(&[F], &[F]).many_inputs(),
        O::OneHot => Rule::new(&[I64, I64, T], &[T]),
        O::TopK => Rule::new(&[T, I64], &[T, I64]).t(NUMBERS),
        O::Neg => Rule::new(&[T], &[T]).t(SIGNED),
        O::InstanceNormalization => Rule::new(&[F, F, F], &[F]),
        O::And | O::Or | O::Xor => LOGIC,
        O::ScatterND => Rule::new(&[T, I64, T], &[T]),
        O::NonMaxSuppression => Rule::new(&[F, F, I64, F, F], &[I64]),
        O::LayerNormalization => Rule::new(&[F, F, F], &[F, F, F]).makes(1),
        O::RandomUniform | O::RandomNormal => Rule::new(&[], &[F]),
        O::RandomUniformLike | O::RandomNormalLike => Rule::new(&[T], &[F]),
        O::If => Rule::new(&[BOOL], &[SAME]).many_outputs(),
        O::DequantizeLinear => Rule::new(&[T, F, T], &[F]).t(DEQUANTIZED),
        O::QuantizeLinear => Rule::new(&[F, F, T], &[T]).t(QUANTIZED),
        O::DynamicQuantizeLinear => Rule::new(&[F], &[U8, F, U8]),
        O::MatMulInteger | O::ConvInteger => INTEGERS,
        O::CastLike => Rule::new(&[T, U], &[U]).u(NUMBERS),
        O::Dropout => Rule::new(&[F, F, BOOL], &[F, BOOL]).makes(1),
        O::EyeLike => Rule::new(&[T], &[GIVEN]).t(NUMBERS),
        O::IsNaN | O::IsInf => Rule::new(&[F], &[BOOL]),
        O::Loop => Rule::new(&[I64, BOOL, SAME], &[SAME]).many_inputs().many_outputs(),
        O::SequenceEmpty => Rule::new(&[], &[SEQUENCE]).t(MEMBERS),
        O::SequenceAt => Rule::new(&[SEQUENCE, U], &[T]).t(MEMBERS).u(INDICES),
        O::SequenceInsert => {
            let inputs = &[SEQUENCE, T, U];
            Rule::new(inputs, &[SEQUENCE]).t(MEMBERS).u(INDICES)
        }
        O::ConcatFromSequence => Rule::new(&[SEQUENCE], &[T]).t(MEMBERS),
        O::SplitToSequence => Rule::new(&[T, U], &[SEQUENCE]).t(MEMBERS).u(INDICES),
        O::SequenceLength => Rule::new(&[SEQUENCE], &[I64]).t(MEMBERS),
        O::SequenceConstruct => Rule::new(&[T], &[SEQUENCE]).t(MEMBERS).many_inputs(),
        O::SequenceErase => Rule::new(&[SEQUENCE, U], &[SEQUENCE]).t(MEMBERS).u(INDICES),
        O::GridSample => Rule::new(&[F, F], &[F]),
        O::STFT => Rule::new(&[F, U, F, U], &[F]).u(INDICES),
        O::Multinomial => Rule::new(&[F], &[I64]),
        O::DFT => Rule::new(&[F, U, I64], &[F]).u(INDICES),
        O::Scatter => Rule::new(&[T, U, T], &[T]).u(INDICES).named("ScatterElements"),
        O::Upsample => Rule::new(&[T, F], &[T]).t(NARROW).named("Resize"),
        O::RotaryEmbedding => Rule::new(&[F, F, F, I64], &[F]).since(ATTENTION),
        O::Attention => {
            let inputs = &[F, F, F, U, F, F, I64];
            Rule::new(inputs, &[F, F, F]).u(MASK).makes(1).since(ATTENTION)
        }
        O::Unknown(_) => return None,
    };
    let Some(info) = operator.info() else { return None };
    let name = if rule.name.is_empty() { info.name } else { rule.name };
    Some(Rule { name, required: info.min_inputs as usize, ..rule })
}

const FLOATS: Rule = Rule::new(&[F], &[F]);
const LOGIC: Rule = Rule::new(&[BOOL, BOOL], &[BOOL]);
const INTEGERS: Rule = Rule::new(&[T, U, T, U], &[I32]).t(QUANTIZED).u(QUANTIZED);

const fn binary(elements: Elements) -> Rule {
    Rule::new(&[T, T], &[T]).t(elements)
}

const fn comparison(elements: Elements) -> Rule {
    Rule::new(&[T, T], &[BOOL]).t(elements)
}

const fn reduction(elements: Elements) -> Rule {
    Rule::new(&[T, I64], &[T]).t(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_has_one() {
        for operator in OperatorType::ALL {
            let rule = rule(*operator).unwrap();
            let info = operator.info().unwrap();
            let renamed = [OperatorType::Scatter, OperatorType::Upsample].contains(operator);
            assert_eq!(rule.name == info.name, !renamed, "{operator}");
        }
        assert!(rule(OperatorType::Unknown(200)).is_none());
    }

    #[test]
    fn as_many_inputs_and_outputs_as_the_format_has() {
        for operator in OperatorType::ALL {
            let (rule, info) = (rule(*operator).unwrap(), operator.info().unwrap());
            assert_eq!(rule.max_inputs(), info.max_inputs.map(|max| max as usize));
            // RTen does not make all that ONNX has.
            let outputs = info.max_outputs.map(|max| max as usize);
            assert_eq!(outputs.is_none(), rule.makes_many(), "{operator}");
            assert!(outputs.is_none_or(|max| max <= rule.outputs.len()), "{operator}");
            assert!(info.max_inputs.is_none_or(|max| info.min_inputs <= max), "{operator}");
        }
    }

    #[test]
    fn last_slot_repeats() {
        let concat = rule(OperatorType::Concat).unwrap();
        assert_eq!(concat.input(7), Some(T));
        assert_eq!(concat.output(1), None);
        let split = rule(OperatorType::Split).unwrap();
        assert_eq!((split.input(2), split.output(9)), (None, Some(T)));
    }
}
