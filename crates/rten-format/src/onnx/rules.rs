//! What the ONNX operators take and give: one rule for each operator of the format.
//!
//! Where ONNX Runtime has no kernel for an element type that the ONNX operator takes, but for
//! another one of the same kind, the rule has only that one.

use super::element::{
    Element::{self, Bool, Float, Int8, Int32, Int64, UInt8},
    Elements,
};
use crate::OperatorType;

/// One operator of the format as an ONNX operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// Its name in ONNX.
    pub(super) name: &'static str,
    /// The first release of the operator set that has it in this form; 20 stands for all before.
    pub(super) opset: i64,
    inputs: &'static [Slot],
    /// How many of the first inputs cannot be left out.
    pub(super) required: usize,
    outputs: &'static [Slot],
    /// How many of the first outputs cannot be left out.
    pub(super) made: usize,
    /// Whether the last input, and the last output, may be there any number of times.
    many: [bool; 2],
    /// What the type variables stand for.
    variables: [Elements; VARIABLES],
}

/// The type of one input or output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
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
    pub(super) const fn is_of(self, variable: Variable) -> bool {
        match self {
            Self::Of(at) | Self::Sequence(at) | Self::Same(at) => at == variable,
            Self::Is(_) | Self::Given(_) => false,
        }
    }
}

/// A type variable of a rule, by its index.
pub(super) type Variable = usize;

/// The first release of the operator set with attention.
const ATTENTION: i64 = 23;

/// How many variables a rule may have.
pub(super) const VARIABLES: usize = 2;

impl Rule {
    const fn new(name: &'static str, inputs: &'static [Slot], outputs: &'static [Slot]) -> Self {
        Self {
            name,
            opset: 20,
            inputs,
            required: inputs.len(),
            outputs,
            made: outputs.len(),
            many: [false, false],
            variables: [ANY; VARIABLES],
        }
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

    /// Sets how many inputs are needed; those behind may be left out.
    const fn needs(mut self, inputs: usize) -> Self {
        self.required = inputs;
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
    pub(super) fn input(&self, index: usize) -> Option<Slot> {
        at(self.inputs, index, self.many[0])
    }

    /// Returns the type of an output; `None` where there are fewer.
    pub(super) fn output(&self, index: usize) -> Option<Slot> {
        at(self.outputs, index, self.many[1])
    }

    /// Returns what a variable stands for.
    pub(super) fn elements(&self, variable: Variable) -> Elements {
        self.variables.get(variable).copied().unwrap_or(ANY)
    }

    /// Tells whether the last output may be there any number of times.
    pub(super) fn makes_many(&self) -> bool {
        self.many[1]
    }

    /// Returns the release of the operator set that has the operator with so many inputs.
    pub(super) fn opset_for(&self, inputs: usize) -> i64 {
        // The seventh input of Attention is newer than the operator.
        if self.opset == ATTENTION && inputs > 6 { ATTENTION.saturating_add(1) } else { self.opset }
    }

    /// Returns how many inputs there may be; `None` for any number.
    pub(super) fn max_inputs(&self) -> Option<usize> {
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

/// Returns the rule of an operator; `None` for an unknown one.
pub(super) const fn rule(operator: OperatorType) -> Option<Rule> {
    use OperatorType as O;
    Some(match operator {
        O::Add => binary("Add", NUMBERS),
        O::ArgMin => Rule::new("ArgMin", &[T], &[I64]).t(NUMBERS),
        O::ArgMax => Rule::new("ArgMax", &[T], &[I64]).t(NUMBERS),
        O::AveragePool => unary("AveragePool"),
        O::BatchNormalization => Rule::new("BatchNormalization", &[F, F, F, F, F], &[F]),
        O::Cast => Rule::new("Cast", &[T], &[Slot::Given(1)]),
        O::Clip => Rule::new("Clip", &[T, T, T], &[T]).t(NUMBERS).needs(1),
        O::Concat => Rule::new("Concat", &[T], &[T]).many_inputs(),
        O::ConstantOfShape => Rule::new("ConstantOfShape", &[I64], &[GIVEN]),
        O::Conv => Rule::new("Conv", &[F, F, F], &[F]).needs(2),
        O::ConvTranspose => Rule::new("ConvTranspose", &[F, F, F], &[F]).needs(2),
        O::Cos => unary("Cos"),
        O::CumSum => Rule::new("CumSum", &[T, U], &[T]).t(WIDE).u(INDICES),
        O::Div => binary("Div", NUMBERS),
        O::Equal => comparison("Equal", ANY),
        O::Erf => unary("Erf"),
        O::Expand => Rule::new("Expand", &[T, I64], &[T]),
        O::Flatten => Rule::new("Flatten", &[T], &[T]),
        O::Gather => Rule::new("Gather", &[T, U], &[T]).u(INDICES),
        O::Gemm => Rule::new("Gemm", &[T, T, T], &[T]).t(WIDE).needs(2),
        O::GlobalAveragePool => unary("GlobalAveragePool"),
        O::Greater => comparison("Greater", NUMBERS),
        O::GRU => Rule::new("GRU", &[F, F, F, F, I32, F], &[F, F]).needs(3).makes(0),
        O::Identity => Rule::new("Identity", &[SAME], &[SAME]),
        O::LeakyRelu => unary("LeakyRelu"),
        O::Less => comparison("Less", NUMBERS),
        O::LessOrEqual => comparison("LessOrEqual", NUMBERS),
        O::Log => unary("Log"),
        O::LogSoftmax => unary("LogSoftmax"),
        O::LSTM => Rule::new("LSTM", &[F, F, F, F, I32, F, F], &[F, F, F]).needs(3).makes(0),
        O::MatMul => binary("MatMul", WIDE),
        O::MaxPool => {
            let elements = Elements(&[Float, Int8, UInt8]);
            Rule::new("MaxPool", &[T], &[T, I64]).t(elements).makes(1)
        }
        O::Mod => binary("Mod", NUMBERS),
        O::Mul => binary("Mul", NUMBERS),
        O::Pad => Rule::new("Pad", &[T, I64, T, U], &[T]).u(INDICES).needs(2),
        O::Pow => Rule::new("Pow", &[T, U], &[T]).t(WIDE).u(NUMBERS),
        O::Range => Rule::new("Range", &[T, T, T], &[T]).t(WIDE),
        O::ReduceMean => reduction("ReduceMean", WIDE),
        O::ReduceL2 => reduction("ReduceL2", WIDE),
        O::Relu => Rule::new("Relu", &[T], &[T]).t(Elements(&[Float, Int8, Int32])),
        O::Reshape => Rule::new("Reshape", &[T, I64], &[T]),
        O::Resize => Rule::new("Resize", &[T, F, F, I64], &[T]).t(NARROW).needs(1),
        O::Shape => Rule::new("Shape", &[T], &[I64]),
        O::Sigmoid => unary("Sigmoid"),
        O::Sin => unary("Sin"),
        O::Slice => Rule::new("Slice", &[T, U, U, U, U], &[T]).u(INDICES).needs(3),
        O::Split => Rule::new("Split", &[T, I64], &[T]).needs(1).many_outputs(),
        O::Sqrt => unary("Sqrt"),
        O::Squeeze => Rule::new("Squeeze", &[T, I64], &[T]).needs(1),
        O::Softmax => unary("Softmax"),
        O::Sub => binary("Sub", NUMBERS),
        O::Tanh => unary("Tanh"),
        O::Transpose => Rule::new("Transpose", &[T], &[T]),
        O::Unsqueeze => Rule::new("Unsqueeze", &[T, I64], &[T]),
        O::Where => Rule::new("Where", &[BOOL, T, T], &[T]).t(NUMBERS),
        O::ReduceProd => reduction("ReduceProd", WIDE),
        O::ReduceSum => reduction("ReduceSum", WIDE),
        O::ReduceMin => reduction("ReduceMin", NUMBERS),
        O::ReduceMax => reduction("ReduceMax", NUMBERS),
        O::NonZero => Rule::new("NonZero", &[T], &[I64]),
        O::ScatterElements => Rule::new("ScatterElements", &[T, U, T], &[T]).u(INDICES),
        O::Tile => Rule::new("Tile", &[T, I64], &[T]),
        O::Not => Rule::new("Not", &[BOOL], &[BOOL]),
        O::Abs => Rule::new("Abs", &[T], &[T]).t(NUMBERS),
        O::Max => Rule::new("Max", &[T], &[T]).t(NUMBERS).many_inputs(),
        O::Mean => Rule::new("Mean", &[F], &[F]).many_inputs(),
        O::Min => Rule::new("Min", &[T], &[T]).t(NUMBERS).many_inputs(),
        O::Sum => Rule::new("Sum", &[F], &[F]).many_inputs(),
        O::OneHot => Rule::new("OneHot", &[I64, I64, T], &[T]),
        O::Round => unary("Round"),
        O::Floor => unary("Floor"),
        O::Ceil => unary("Ceil"),
        O::Reciprocal => unary("Reciprocal"),
        O::TopK => Rule::new("TopK", &[T, I64], &[T, I64]).t(NUMBERS),
        O::Neg => Rule::new("Neg", &[T], &[T]).t(SIGNED),
        O::Exp => unary("Exp"),
        O::GreaterOrEqual => comparison("GreaterOrEqual", NUMBERS),
        O::Size => Rule::new("Size", &[T], &[I64]),
        O::Tan => unary("Tan"),
        O::Acos => unary("Acos"),
        O::Asin => unary("Asin"),
        O::Atan => unary("Atan"),
        O::InstanceNormalization => Rule::new("InstanceNormalization", &[F, F, F], &[F]),
        O::HardSigmoid => unary("HardSigmoid"),
        O::HardSwish => unary("HardSwish"),
        O::And => logic("And"),
        O::Or => logic("Or"),
        O::Xor => logic("Xor"),
        O::Trilu => Rule::new("Trilu", &[T, I64], &[T]).needs(1),
        O::ScatterND => Rule::new("ScatterND", &[T, I64, T], &[T]),
        O::NonMaxSuppression => Rule::new("NonMaxSuppression", &[F, F, I64, F, F], &[I64]).needs(2),
        O::Sign => Rule::new("Sign", &[T], &[T]).t(NUMBERS),
        O::GatherElements => Rule::new("GatherElements", &[T, U], &[T]).u(INDICES),
        O::LayerNormalization => {
            Rule::new("LayerNormalization", &[F, F, F], &[F, F, F]).needs(2).makes(1)
        }
        O::ReduceSumSquare => reduction("ReduceSumSquare", WIDE),
        O::RandomUniform => Rule::new("RandomUniform", &[], &[F]),
        O::Elu => unary("Elu"),
        O::RandomUniformLike => Rule::new("RandomUniformLike", &[T], &[F]),
        O::RandomNormal => Rule::new("RandomNormal", &[], &[F]),
        O::RandomNormalLike => Rule::new("RandomNormalLike", &[T], &[F]),
        O::Softplus => unary("Softplus"),
        O::GatherND => Rule::new("GatherND", &[T, I64], &[T]),
        O::Gelu => unary("Gelu"),
        O::Einsum => Rule::new("Einsum", &[T], &[T]).t(NUMBERS).many_inputs(),
        O::If => Rule::new("If", &[BOOL], &[SAME]).many_outputs(),
        O::DequantizeLinear => {
            Rule::new("DequantizeLinear", &[T, F, T], &[F]).t(DEQUANTIZED).needs(2)
        }
        O::QuantizeLinear => Rule::new("QuantizeLinear", &[F, F, T], &[T]).t(QUANTIZED).needs(2),
        O::DynamicQuantizeLinear => Rule::new("DynamicQuantizeLinear", &[F], &[U8, F, U8]),
        O::MatMulInteger => quantized("MatMulInteger"),
        O::DepthToSpace => Rule::new("DepthToSpace", &[T], &[T]),
        O::ConvInteger => quantized("ConvInteger"),
        O::CastLike => Rule::new("CastLike", &[T, U], &[U]).u(NUMBERS),
        O::Dropout => Rule::new("Dropout", &[F, F, BOOL], &[F, BOOL]).needs(1).makes(1),
        O::EyeLike => Rule::new("EyeLike", &[T], &[GIVEN]).t(NUMBERS),
        O::IsNaN => Rule::new("IsNaN", &[F], &[BOOL]),
        O::IsInf => Rule::new("IsInf", &[F], &[BOOL]),
        O::Loop => {
            Rule::new("Loop", &[I64, BOOL, SAME], &[SAME]).needs(0).many_inputs().many_outputs()
        }
        O::SequenceEmpty => Rule::new("SequenceEmpty", &[], &[SEQUENCE]).t(MEMBERS),
        O::SequenceAt => Rule::new("SequenceAt", &[SEQUENCE, U], &[T]).t(MEMBERS).u(INDICES),
        O::SequenceInsert => {
            let inputs = &[SEQUENCE, T, U];
            Rule::new("SequenceInsert", inputs, &[SEQUENCE]).t(MEMBERS).u(INDICES).needs(2)
        }
        O::ConcatFromSequence => Rule::new("ConcatFromSequence", &[SEQUENCE], &[T]).t(MEMBERS),
        O::SplitToSequence => {
            Rule::new("SplitToSequence", &[T, U], &[SEQUENCE]).t(MEMBERS).u(INDICES).needs(1)
        }
        O::SequenceLength => Rule::new("SequenceLength", &[SEQUENCE], &[I64]).t(MEMBERS),
        O::SequenceConstruct => {
            Rule::new("SequenceConstruct", &[T], &[SEQUENCE]).t(MEMBERS).many_inputs()
        }
        O::SequenceErase => {
            Rule::new("SequenceErase", &[SEQUENCE, U], &[SEQUENCE]).t(MEMBERS).u(INDICES).needs(1)
        }
        O::GridSample => Rule::new("GridSample", &[F, F], &[F]),
        O::PRelu => binary("PRelu", WIDE),
        O::STFT => Rule::new("STFT", &[F, U, F, U], &[F]).u(INDICES).needs(2),
        O::GlobalMaxPool => unary("GlobalMaxPool"),
        O::ReduceL1 => reduction("ReduceL1", WIDE),
        O::Acosh => unary("Acosh"),
        O::Asinh => unary("Asinh"),
        O::Atanh => unary("Atanh"),
        O::Cosh => unary("Cosh"),
        O::Sinh => unary("Sinh"),
        O::Multinomial => Rule::new("Multinomial", &[F], &[I64]),
        O::ReverseSequence => Rule::new("ReverseSequence", &[T, I64], &[T]),
        O::DFT => Rule::new("DFT", &[F, U, I64], &[F]).u(INDICES).needs(1),
        O::Scatter => Rule::new("ScatterElements", &[T, U, T], &[T]).u(INDICES),
        O::Upsample => Rule::new("Resize", &[T, F], &[T]).t(NARROW),
        O::RotaryEmbedding => {
            Rule::new("RotaryEmbedding", &[F, F, F, I64], &[F]).needs(3).since(ATTENTION)
        }
        O::Attention => {
            let inputs = &[F, F, F, U, F, F, I64];
            Rule::new("Attention", inputs, &[F, F, F]).u(MASK).needs(3).makes(1).since(ATTENTION)
        }
        O::LpNormalization => unary("LpNormalization"),
        O::ReduceLogSum => reduction("ReduceLogSum", WIDE),
        O::ReduceLogSumExp => reduction("ReduceLogSumExp", WIDE),
        _ => return None,
    })
}

/// Floats in, floats out.
const fn unary(name: &'static str) -> Rule {
    Rule::new(name, &[F], &[F])
}

const fn binary(name: &'static str, elements: Elements) -> Rule {
    Rule::new(name, &[T, T], &[T]).t(elements)
}

const fn comparison(name: &'static str, elements: Elements) -> Rule {
    Rule::new(name, &[T, T], &[BOOL]).t(elements)
}

const fn logic(name: &'static str) -> Rule {
    Rule::new(name, &[BOOL, BOOL], &[BOOL])
}

const fn reduction(name: &'static str, elements: Elements) -> Rule {
    Rule::new(name, &[T, I64], &[T]).t(elements).needs(1)
}

const fn quantized(name: &'static str) -> Rule {
    Rule::new(name, &[T, U, T, U], &[I32]).t(QUANTIZED).u(QUANTIZED).needs(2)
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
    fn as_many_inputs_as_the_format_has() {
        for operator in OperatorType::ALL {
            let max = operator.info().unwrap().max_inputs;
            assert_eq!(rule(*operator).unwrap().max_inputs(), max.map(|max| max as usize));
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
