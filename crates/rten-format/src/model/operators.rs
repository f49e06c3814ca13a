//! What the format says about each operator.

use crate::{AttributesType, Release, model::enums::coded};

/// What a table of the format holds about one operator.
///
/// What an operator computes is what the ONNX operator of the same name in the default domain does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperatorInfo {
    /// The number that is stored.
    pub code: u8,
    /// The name in the format and in ONNX.
    pub name: &'static str,
    /// Which attributes there are.
    pub attributes: AttributesUse,
    /// How many of the first inputs it needs. A model with fewer can be loaded, not run.
    pub min_inputs: u32,
    /// How many inputs there may be; `None` for any number.
    pub max_inputs: Option<u32>,
    /// How many outputs RTen makes at most, which for some are fewer than in ONNX; `None` for any
    /// number.
    pub max_outputs: Option<u32>,
    /// The first release that reads it.
    pub since: Release,
}

/// Whether an operator has attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributesUse {
    /// None; what is stored is ignored.
    None,
    /// Those of a table that may be absent, or another one that is ignored: defaults take its
    /// place.
    Optional(AttributesType),
    /// Those of a table without which a model cannot be loaded.
    Required(AttributesType),
}

impl AttributesUse {
    /// Returns the table that is expected; `None` for an operator without attributes.
    #[must_use]
    pub const fn attributes_type(self) -> Option<AttributesType> {
        match self {
            Self::None => None,
            Self::Optional(table) | Self::Required(table) => Some(table),
        }
    }

    /// Tells whether a model cannot be loaded without the table.
    #[must_use]
    pub const fn is_required(self) -> bool {
        matches!(self, Self::Required(_))
    }
}

macro_rules! operators {
    ($(
        $code:literal $name:ident $usage:ident $(($table:ident))?,
        inputs $min:literal to $max:tt, outputs $outputs:tt, since $since:tt;
    )*) => {
        coded! {
            /// What an operator computes.
            OperatorType: u8 {
                $( #[doc = concat!("`", stringify!($name), "` of ONNX.")] $code $name; )*
            }
        }

        impl OperatorType {
            /// Returns what the format says about it; `None` for an unknown number.
            #[must_use]
            pub const fn info(self) -> Option<&'static OperatorInfo> {
                match self {
                    $( Self::$name => Some(const { &OperatorInfo {
                        code: $code,
                        name: stringify!($name),
                        attributes: operators!(@$usage $($table)?),
                        min_inputs: $min,
                        max_inputs: operators!(@max $max),
                        max_outputs: operators!(@max $outputs),
                        since: Release::new $since,
                    } }), )*
                    Self::Unknown(_) => None,
                }
            }
        }
    };
    (@none) => { AttributesUse::None };
    (@optional $table:ident) => { AttributesUse::Optional(AttributesType::$table) };
    (@required $table:ident) => { AttributesUse::Required(AttributesType::$table) };
    (@max any) => { None };
    (@max $max:literal) => { Some($max) };
}

operators! {
    0 Add none, inputs 2 to 2, outputs 1, since (2, 0);
    1 ArgMin required(ArgMax), inputs 1 to 1, outputs 1, since (2, 0);
    2 ArgMax required(ArgMax), inputs 1 to 1, outputs 1, since (2, 0);
    3 AveragePool required(AveragePool), inputs 1 to 1, outputs 1, since (2, 0);
    4 BatchNormalization required(BatchNormalization), inputs 5 to 5, outputs 1, since (2, 0);
    5 Cast required(Cast), inputs 1 to 1, outputs 1, since (2, 0);
    6 Clip none, inputs 1 to 3, outputs 1, since (2, 0);
    7 Concat required(Concat), inputs 1 to any, outputs 1, since (2, 0);
    8 ConstantOfShape required(ConstantOfShape), inputs 1 to 1, outputs 1, since (2, 0);
    9 Conv required(Conv), inputs 2 to 3, outputs 1, since (2, 0);
    10 ConvTranspose required(ConvTranspose), inputs 2 to 3, outputs 1, since (2, 0);
    11 Cos none, inputs 1 to 1, outputs 1, since (2, 0);
    12 CumSum optional(CumSum), inputs 2 to 2, outputs 1, since (2, 0);
    13 Div none, inputs 2 to 2, outputs 1, since (2, 0);
    14 Equal none, inputs 2 to 2, outputs 1, since (2, 0);
    15 Erf none, inputs 1 to 1, outputs 1, since (2, 0);
    16 Expand none, inputs 2 to 2, outputs 1, since (2, 0);
    17 Flatten required(Flatten), inputs 1 to 1, outputs 1, since (2, 0);
    18 Gather required(Gather), inputs 2 to 2, outputs 1, since (2, 0);
    19 Gemm required(Gemm), inputs 2 to 3, outputs 1, since (2, 0);
    20 GlobalAveragePool none, inputs 1 to 1, outputs 1, since (2, 0);
    21 Greater none, inputs 2 to 2, outputs 1, since (2, 0);
    22 GRU required(GRU), inputs 3 to 6, outputs 2, since (2, 0);
    23 Identity none, inputs 1 to 1, outputs 1, since (2, 0);
    24 LeakyRelu required(LeakyRelu), inputs 1 to 1, outputs 1, since (2, 0);
    25 Less none, inputs 2 to 2, outputs 1, since (2, 0);
    26 LessOrEqual none, inputs 2 to 2, outputs 1, since (2, 0);
    27 Log none, inputs 1 to 1, outputs 1, since (2, 0);
    28 LogSoftmax required(Softmax), inputs 1 to 1, outputs 1, since (2, 0);
    29 LSTM required(LSTM), inputs 3 to 7, outputs 3, since (2, 0);
    30 MatMul none, inputs 2 to 2, outputs 1, since (2, 0);
    31 MaxPool required(MaxPool), inputs 1 to 1, outputs 1, since (2, 0);
    32 Mod required(Mod), inputs 2 to 2, outputs 1, since (2, 0);
    33 Mul none, inputs 2 to 2, outputs 1, since (2, 0);
    34 Pad optional(Pad), inputs 2 to 4, outputs 1, since (2, 0);
    35 Pow none, inputs 2 to 2, outputs 1, since (2, 0);
    36 Range none, inputs 3 to 3, outputs 1, since (2, 0);
    37 ReduceMean required(ReduceMean), inputs 1 to 2, outputs 1, since (2, 0);
    38 ReduceL2 required(ReduceMean), inputs 1 to 2, outputs 1, since (2, 0);
    39 Relu none, inputs 1 to 1, outputs 1, since (2, 0);
    40 Reshape required(Reshape), inputs 2 to 2, outputs 1, since (2, 0);
    41 Resize required(Resize), inputs 1 to 4, outputs 1, since (2, 0);
    42 Shape optional(Shape), inputs 1 to 1, outputs 1, since (2, 0);
    43 Sigmoid none, inputs 1 to 1, outputs 1, since (2, 0);
    44 Sin none, inputs 1 to 1, outputs 1, since (2, 0);
    45 Slice none, inputs 3 to 5, outputs 1, since (2, 0);
    46 Split required(Split), inputs 1 to 2, outputs any, since (2, 0);
    47 Sqrt none, inputs 1 to 1, outputs 1, since (2, 0);
    48 Squeeze none, inputs 1 to 2, outputs 1, since (2, 0);
    49 Softmax required(Softmax), inputs 1 to 1, outputs 1, since (2, 0);
    50 Sub none, inputs 2 to 2, outputs 1, since (2, 0);
    51 Tanh none, inputs 1 to 1, outputs 1, since (2, 0);
    52 Transpose required(Transpose), inputs 1 to 1, outputs 1, since (2, 0);
    53 Unsqueeze none, inputs 2 to 2, outputs 1, since (2, 0);
    54 Where none, inputs 3 to 3, outputs 1, since (2, 0);
    55 ReduceProd required(ReduceMean), inputs 1 to 2, outputs 1, since (2, 0);
    56 ReduceSum required(ReduceMean), inputs 1 to 2, outputs 1, since (2, 0);
    57 ReduceMin required(ReduceMean), inputs 1 to 2, outputs 1, since (2, 0);
    58 ReduceMax required(ReduceMean), inputs 1 to 2, outputs 1, since (2, 0);
    59 NonZero none, inputs 1 to 1, outputs 1, since (2, 0);
    60 ScatterElements required(ScatterElements), inputs 3 to 3, outputs 1, since (2, 0);
    61 Tile none, inputs 2 to 2, outputs 1, since (2, 0);
    62 Not none, inputs 1 to 1, outputs 1, since (2, 0);
    63 Abs none, inputs 1 to 1, outputs 1, since (2, 0);
    64 Max none, inputs 1 to any, outputs 1, since (2, 0);
    65 Mean none, inputs 1 to any, outputs 1, since (2, 0);
    66 Min none, inputs 1 to any, outputs 1, since (2, 0);
    67 Sum none, inputs 1 to any, outputs 1, since (2, 0);
    68 OneHot required(OneHot), inputs 3 to 3, outputs 1, since (2, 0);
    69 Round none, inputs 1 to 1, outputs 1, since (2, 0);
    70 Floor none, inputs 1 to 1, outputs 1, since (2, 0);
    71 Ceil none, inputs 1 to 1, outputs 1, since (2, 0);
    72 Reciprocal none, inputs 1 to 1, outputs 1, since (2, 0);
    73 TopK required(TopK), inputs 2 to 2, outputs 2, since (2, 0);
    74 Neg none, inputs 1 to 1, outputs 1, since (2, 0);
    75 Exp none, inputs 1 to 1, outputs 1, since (2, 0);
    76 GreaterOrEqual none, inputs 2 to 2, outputs 1, since (2, 0);
    77 Size none, inputs 1 to 1, outputs 1, since (2, 0);
    78 Tan none, inputs 1 to 1, outputs 1, since (2, 0);
    79 Acos none, inputs 1 to 1, outputs 1, since (2, 0);
    80 Asin none, inputs 1 to 1, outputs 1, since (2, 0);
    81 Atan none, inputs 1 to 1, outputs 1, since (2, 0);
    82 InstanceNormalization required(BatchNormalization), inputs 3 to 3, outputs 1, since (2, 0);
    83 HardSigmoid required(HardSigmoid), inputs 1 to 1, outputs 1, since (2, 0);
    84 HardSwish none, inputs 1 to 1, outputs 1, since (2, 0);
    85 And none, inputs 2 to 2, outputs 1, since (2, 0);
    86 Or none, inputs 2 to 2, outputs 1, since (2, 0);
    87 Xor none, inputs 2 to 2, outputs 1, since (2, 0);
    88 Trilu required(Trilu), inputs 1 to 2, outputs 1, since (2, 0);
    89 ScatterND required(ScatterND), inputs 3 to 3, outputs 1, since (2, 0);
    90 NonMaxSuppression required(NonMaxSuppression), inputs 2 to 5, outputs 1, since (2, 0);
    91 Sign none, inputs 1 to 1, outputs 1, since (2, 0);
    92 GatherElements required(Gather), inputs 2 to 2, outputs 1, since (2, 0);
    93 LayerNormalization required(LayerNormalization), inputs 2 to 3, outputs 1, since (3, 0);
    94 ReduceSumSquare required(ReduceMean), inputs 1 to 2, outputs 1, since (5, 0);
    95 RandomUniform required(RandomUniform), inputs 0 to 0, outputs 1, since (6, 0);
    96 Elu required(Elu), inputs 1 to 1, outputs 1, since (8, 0);
    97 RandomUniformLike required(RandomUniformLike), inputs 1 to 1, outputs 1, since (9, 0);
    98 RandomNormal required(RandomNormal), inputs 0 to 0, outputs 1, since (9, 0);
    99 RandomNormalLike required(RandomNormalLike), inputs 1 to 1, outputs 1, since (9, 0);
    100 Softplus none, inputs 1 to 1, outputs 1, since (9, 0);
    101 GatherND required(GatherND), inputs 2 to 2, outputs 1, since (9, 0);
    102 Gelu required(Gelu), inputs 1 to 1, outputs 1, since (11, 0);
    103 Einsum required(Einsum), inputs 1 to any, outputs 1, since (12, 0);
    104 If required(If), inputs 1 to 1, outputs any, since (13, 0);
    105 DequantizeLinear required(DequantizeLinear), inputs 2 to 3, outputs 1, since (14, 0);
    106 QuantizeLinear required(QuantizeLinear), inputs 2 to 3, outputs 1, since (14, 0);
    107 DynamicQuantizeLinear none, inputs 1 to 1, outputs 3, since (14, 0);
    108 MatMulInteger none, inputs 2 to 4, outputs 1, since (14, 0);
    109 DepthToSpace required(DepthToSpace), inputs 1 to 1, outputs 1, since (15, 0);
    110 ConvInteger required(Conv), inputs 2 to 4, outputs 1, since (16, 0);
    111 CastLike required(CastLike), inputs 2 to 2, outputs 1, since (17, 0);
    112 Dropout required(Dropout), inputs 1 to 3, outputs 2, since (17, 0);
    113 EyeLike required(EyeLike), inputs 1 to 1, outputs 1, since (19, 0);
    114 IsNaN none, inputs 1 to 1, outputs 1, since (21, 0);
    115 IsInf required(IsInf), inputs 1 to 1, outputs 1, since (21, 0);
    116 Loop required(Loop), inputs 0 to any, outputs any, since (22, 0);
    117 SequenceEmpty required(SequenceEmpty), inputs 0 to 0, outputs 1, since (22, 0);
    118 SequenceAt none, inputs 2 to 2, outputs 1, since (22, 0);
    119 SequenceInsert none, inputs 2 to 3, outputs 1, since (22, 0);
    120 ConcatFromSequence required(ConcatFromSequence), inputs 1 to 1, outputs 1, since (22, 0);
    121 SplitToSequence required(SplitToSequence), inputs 1 to 2, outputs 1, since (22, 0);
    122 SequenceLength none, inputs 1 to 1, outputs 1, since (22, 0);
    123 SequenceConstruct none, inputs 1 to any, outputs 1, since (22, 0);
    124 SequenceErase none, inputs 1 to 2, outputs 1, since (22, 0);
    125 GridSample required(GridSample), inputs 2 to 2, outputs 1, since (22, 0);
    126 PRelu none, inputs 2 to 2, outputs 1, since (22, 0);
    127 STFT required(STFT), inputs 2 to 4, outputs 1, since (22, 0);
    128 GlobalMaxPool none, inputs 1 to 1, outputs 1, since (24, 0);
    129 ReduceL1 required(ReduceMean), inputs 1 to 2, outputs 1, since (25, 0);
    130 Acosh none, inputs 1 to 1, outputs 1, since (25, 0);
    131 Asinh none, inputs 1 to 1, outputs 1, since (25, 0);
    132 Atanh none, inputs 1 to 1, outputs 1, since (25, 0);
    133 Cosh none, inputs 1 to 1, outputs 1, since (25, 0);
    134 Sinh none, inputs 1 to 1, outputs 1, since (25, 0);
    135 Multinomial required(Multinomial), inputs 1 to 1, outputs 1, since (25, 0);
    136 ReverseSequence required(ReverseSequence), inputs 2 to 2, outputs 1, since (25, 0);
    137 DFT required(DFT), inputs 1 to 3, outputs 1, since (25, 0);
    138 Scatter required(ScatterElements), inputs 3 to 3, outputs 1, since (25, 0);
    139 Upsample required(Upsample), inputs 2 to 2, outputs 1, since (25, 0);
    140 RotaryEmbedding required(RotaryEmbedding), inputs 3 to 4, outputs 1, since (25, 0);
    141 Attention required(Attention), inputs 3 to 7, outputs 3, since (25, 0);
    142 LpNormalization required(LpNormalization), inputs 1 to 1, outputs 1, since (26, 0);
    143 ReduceLogSum required(ReduceMean), inputs 1 to 2, outputs 1, since (26, 0);
    144 ReduceLogSumExp required(ReduceMean), inputs 1 to 2, outputs 1, since (26, 0);
}

impl OperatorType {
    /// Returns the name in the format; `None` for an unknown number.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self.info() {
            Some(info) => Some(info.name),
            None => None,
        }
    }

    /// Returns the operator of a name; `None` where there is none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|operator| operator.name() == Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_consecutive() {
        assert_eq!(OperatorType::ALL.len(), 145);
        for (code, operator) in (0..).zip(OperatorType::ALL) {
            assert_eq!(operator.code(), code);
            assert_eq!(OperatorType::from_code(code), *operator);
            assert_eq!(operator.info().unwrap().code, code);
        }
    }

    #[test]
    fn unknown_numbers_are_kept() {
        let operator = OperatorType::from_code(200);
        assert_eq!(operator, OperatorType::Unknown(200));
        assert_eq!(operator.code(), 200);
        assert_eq!(operator.info(), None);
        assert_eq!(operator.to_string(), "unknown 200");
    }

    #[test]
    fn names_are_found() {
        assert_eq!(OperatorType::from_name("LSTM"), Some(OperatorType::LSTM));
        assert_eq!(OperatorType::from_name("Softsign"), None);
    }

    #[test]
    fn every_attribute_table_serves_an_operator() {
        for table in AttributesType::ALL {
            let mut operators = OperatorType::ALL.iter().filter_map(|operator| operator.info());
            assert!(
                operators.any(|info| info.attributes.attributes_type() == Some(*table)),
                "{table}"
            );
        }
    }
}
