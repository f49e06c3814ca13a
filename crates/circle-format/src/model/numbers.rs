//! Numbers of the format that stand for one of several things.
//!
//! Each type holds the number as it is stored; those that have a meaning are constants under the
//! names of the format, any other is kept as it is.

use std::fmt;

macro_rules! numbers {
    ($(
        $(#[$doc:meta])*
        $name:ident: $code:ident { $( $value:literal $constant:ident; )* }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name($code);

        impl $name {
            $(
                #[allow(non_upper_case_globals, reason = "the format spells four of them so")]
                #[doc = concat!("Number ", $value, ": `", stringify!($constant), "`.")]
                pub const $constant: Self = Self($value);
            )*

            /// Every number that has a meaning, ascending.
            pub const KNOWN: &'static [Self] = &[$( Self::$constant, )*];

            /// Holds a stored number, whether it has a meaning or not.
            #[must_use]
            pub const fn from_code(code: $code) -> Self {
                Self(code)
            }

            /// Returns the number that is stored.
            #[must_use]
            pub const fn code(self) -> $code {
                self.0
            }

            /// Returns the name in the format; `None` for a number without a meaning.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $value => Some(stringify!($constant)), )*
                    _ => None,
                }
            }

            /// Returns the number of a name in the format.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::KNOWN.iter().copied().find(|number| number.name() == Some(name))
            }
        }

        impl fmt::Display for $name {
            /// Writes the name, or `unknown` and the number.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => f.pad(&format!("unknown {}", self.0)),
                }
            }
        }
    )*};
}

numbers! {
    /// What an operator computes. Numbers below zero are of Circle alone.
    BuiltinOperator: i32 {
        -9 ATTENTION; -8 RUN_MODEL; -7 ROPE; -6 RMS_NORM; -5 GRU; -4 BCQ_GATHER;
        -3 BCQ_FULLY_CONNECTED; -2 INSTANCE_NORM; 0 ADD; 1 AVERAGE_POOL_2D; 2 CONCATENATION;
        3 CONV_2D; 4 DEPTHWISE_CONV_2D; 5 DEPTH_TO_SPACE; 6 DEQUANTIZE; 7 EMBEDDING_LOOKUP; 8 FLOOR;
        9 FULLY_CONNECTED; 10 HASHTABLE_LOOKUP; 11 L2_NORMALIZATION; 12 L2_POOL_2D;
        13 LOCAL_RESPONSE_NORMALIZATION; 14 LOGISTIC; 15 LSH_PROJECTION; 16 LSTM; 17 MAX_POOL_2D;
        18 MUL; 19 RELU; 20 RELU_N1_TO_1; 21 RELU6; 22 RESHAPE; 23 RESIZE_BILINEAR; 24 RNN;
        25 SOFTMAX; 26 SPACE_TO_DEPTH; 27 SVDF; 28 TANH; 29 CONCAT_EMBEDDINGS; 30 SKIP_GRAM;
        31 CALL; 32 CUSTOM; 33 EMBEDDING_LOOKUP_SPARSE; 34 PAD; 35 UNIDIRECTIONAL_SEQUENCE_RNN;
        36 GATHER; 37 BATCH_TO_SPACE_ND; 38 SPACE_TO_BATCH_ND; 39 TRANSPOSE; 40 MEAN; 41 SUB;
        42 DIV; 43 SQUEEZE; 44 UNIDIRECTIONAL_SEQUENCE_LSTM; 45 STRIDED_SLICE;
        46 BIDIRECTIONAL_SEQUENCE_RNN; 47 EXP; 48 TOPK_V2; 49 SPLIT; 50 LOG_SOFTMAX; 51 DELEGATE;
        52 BIDIRECTIONAL_SEQUENCE_LSTM; 53 CAST; 54 PRELU; 55 MAXIMUM; 56 ARG_MAX; 57 MINIMUM;
        58 LESS; 59 NEG; 60 PADV2; 61 GREATER; 62 GREATER_EQUAL; 63 LESS_EQUAL; 64 SELECT; 65 SLICE;
        66 SIN; 67 TRANSPOSE_CONV; 68 SPARSE_TO_DENSE; 69 TILE; 70 EXPAND_DIMS; 71 EQUAL;
        72 NOT_EQUAL; 73 LOG; 74 SUM; 75 SQRT; 76 RSQRT; 77 SHAPE; 78 POW; 79 ARG_MIN;
        80 FAKE_QUANT; 81 REDUCE_PROD; 82 REDUCE_MAX; 83 PACK; 84 LOGICAL_OR; 85 ONE_HOT;
        86 LOGICAL_AND; 87 LOGICAL_NOT; 88 UNPACK; 89 REDUCE_MIN; 90 FLOOR_DIV; 91 REDUCE_ANY;
        92 SQUARE; 93 ZEROS_LIKE; 94 FILL; 95 FLOOR_MOD; 96 RANGE; 97 RESIZE_NEAREST_NEIGHBOR;
        98 LEAKY_RELU; 99 SQUARED_DIFFERENCE; 100 MIRROR_PAD; 101 ABS; 102 SPLIT_V; 103 UNIQUE;
        104 CEIL; 105 REVERSE_V2; 106 ADD_N; 107 GATHER_ND; 108 COS; 109 WHERE; 110 RANK; 111 ELU;
        112 REVERSE_SEQUENCE; 113 MATRIX_DIAG; 114 QUANTIZE; 115 MATRIX_SET_DIAG; 116 ROUND;
        117 HARD_SWISH; 118 IF; 119 WHILE; 120 NON_MAX_SUPPRESSION_V4; 121 NON_MAX_SUPPRESSION_V5;
        122 SCATTER_ND; 123 SELECT_V2; 124 DENSIFY; 125 SEGMENT_SUM; 126 BATCH_MATMUL;
        127 PLACEHOLDER_FOR_GREATER_OP_CODES; 128 CUMSUM; 129 CALL_ONCE; 130 BROADCAST_TO;
        131 RFFT2D; 132 CONV_3D; 133 IMAG; 134 REAL; 135 COMPLEX_ABS; 136 HASHTABLE;
        137 HASHTABLE_FIND; 138 HASHTABLE_IMPORT; 139 HASHTABLE_SIZE; 140 REDUCE_ALL;
        141 CONV_3D_TRANSPOSE; 142 VAR_HANDLE; 143 READ_VARIABLE; 144 ASSIGN_VARIABLE;
        145 BROADCAST_ARGS; 146 RANDOM_STANDARD_NORMAL; 147 BUCKETIZE; 148 RANDOM_UNIFORM;
        149 MULTINOMIAL; 150 GELU; 151 DYNAMIC_UPDATE_SLICE; 152 RELU_0_TO_1;
        153 UNSORTED_SEGMENT_PROD; 154 UNSORTED_SEGMENT_MAX; 155 UNSORTED_SEGMENT_SUM; 156 ATAN2;
        157 UNSORTED_SEGMENT_MIN; 158 SIGN; 159 BITCAST; 160 BITWISE_XOR; 161 RIGHT_SHIFT;
        162 STABLEHLO_LOGISTIC; 163 STABLEHLO_ADD; 164 STABLEHLO_DIVIDE; 165 STABLEHLO_MULTIPLY;
        166 STABLEHLO_MAXIMUM; 167 STABLEHLO_RESHAPE; 168 STABLEHLO_CLAMP;
        169 STABLEHLO_CONCATENATE; 170 STABLEHLO_BROADCAST_IN_DIM; 171 STABLEHLO_CONVOLUTION;
        172 STABLEHLO_SLICE; 173 STABLEHLO_CUSTOM_CALL; 174 STABLEHLO_REDUCE; 175 STABLEHLO_ABS;
        176 STABLEHLO_AND; 177 STABLEHLO_COSINE; 178 STABLEHLO_EXPONENTIAL; 179 STABLEHLO_FLOOR;
        180 STABLEHLO_LOG; 181 STABLEHLO_MINIMUM; 182 STABLEHLO_NEGATE; 183 STABLEHLO_OR;
        184 STABLEHLO_POWER; 185 STABLEHLO_REMAINDER; 186 STABLEHLO_RSQRT; 187 STABLEHLO_SELECT;
        188 STABLEHLO_SUBTRACT; 189 STABLEHLO_TANH; 190 STABLEHLO_SCATTER; 191 STABLEHLO_COMPARE;
        192 STABLEHLO_CONVERT; 193 STABLEHLO_DYNAMIC_SLICE; 194 STABLEHLO_DYNAMIC_UPDATE_SLICE;
        195 STABLEHLO_PAD; 196 STABLEHLO_IOTA; 197 STABLEHLO_DOT_GENERAL;
        198 STABLEHLO_REDUCE_WINDOW; 199 STABLEHLO_SORT; 200 STABLEHLO_WHILE; 201 STABLEHLO_GATHER;
        202 STABLEHLO_TRANSPOSE; 203 DILATE; 204 STABLEHLO_RNG_BIT_GENERATOR; 205 REDUCE_WINDOW;
        206 STABLEHLO_COMPOSITE; 207 STABLEHLO_SHIFT_LEFT; 208 STABLEHLO_CBRT; 209 STABLEHLO_CASE;
    }

    /// What is applied to the result of an operator before it is stored.
    ActivationFunctionType: i8 {
        0 NONE; 1 RELU; 2 RELU_N1_TO_1; 3 RELU6; 4 TANH; 5 SIGN_BIT;
    }

    /// How `EMBEDDING_LOOKUP_SPARSE` joins the rows of one output.
    CombinerType: i8 {
        0 SUM; 1 MEAN; 2 SQRTN;
    }

    /// How the elements of a constant are packed. Schema 0.9 and later.
    CompressionType: i8 {
        0 NONE; 1 HUFFMAN;
    }

    /// How the options of an operator without a number of its own are written.
    CustomOptionsFormat: i8 {
        0 FLEXBUFFERS;
    }

    /// Where the channels are among the dimensions.
    DataFormat: i8 {
        0 CHANNELS_LAST; 1 CHANNELS_FIRST;
    }

    /// How one level of a sparse tensor is stored: every index, or those that are there.
    DimensionType: i8 {
        0 DENSE; 1 SPARSE_CSR;
    }

    /// In which order the weights of `FULLY_CONNECTED` are stored.
    FullyConnectedOptionsWeightsFormat: i8 {
        0 DEFAULT; 1 SHUFFLED4x16INT8; 127 SHUFFLED16x1FLOAT32;
    }

    /// What `LSH_PROJECTION` puts out.
    LSHProjectionType: i8 {
        0 UNKNOWN; 1 SPARSE; 2 DENSE;
    }

    /// Which of two sets of operands `LSTM` has.
    LSTMKernelType: i8 {
        0 FULL; 1 BASIC;
    }

    /// How far outputs are from what they should be, in training.
    LossFn: i8 {
        0 SPARSE_CATEGORICAL_CROSSENTROPY; 1 CATEGORICAL_CROSSENTROPY; 2 MEAN_SQUARED_ERROR;
    }

    /// How the losses of a batch become one number: their sum, or that by the size of the batch.
    LossReductionType: i8 {
        0 SumOverBatchSize; 1 Sum;
    }

    /// Whether the element at the edge is mirrored with the others (`SYMMETRIC`).
    MirrorPadMode: i8 {
        0 REFLECT; 1 SYMMETRIC;
    }

    /// How weights are changed after a batch, in training.
    Optimizer: i8 {
        0 SGD; 1 ADAM;
    }

    /// How a window that reaches over the edge is dealt with: `SAME` fills with zeros, `VALID`
    /// leaves it out.
    Padding: i8 {
        0 SAME; 1 VALID;
    }

    /// What `REDUCE_WINDOW` does to the elements of a window.
    ReduceWindowFunction: i32 {
        0 UNSUPPORTED; 1 ADD; 2 MUL; 3 MINIMUM; 4 MAXIMUM; 5 ALL; 6 ANY;
    }

    /// The generator of `STABLEHLO_RNG_BIT_GENERATOR`.
    RngAlgorithm: i8 {
        0 DEFAULT; 1 PHILOX; 2 THREEFRY;
    }

    /// Which elements `ROPE` turns together: halves (`GPT_NEOX`) or neighbours (`GPT_J`).
    RoPEMode: i32 {
        0 GPT_NEOX; 1 GPT_J;
    }

    /// What `STABLEHLO_COMPARE` asks.
    StablehloComparisonDirection: u32 {
        0 STABLEHLO_COMPARISON_DIRECTION_EQ; 1 STABLEHLO_COMPARISON_DIRECTION_NE;
        2 STABLEHLO_COMPARISON_DIRECTION_GE; 3 STABLEHLO_COMPARISON_DIRECTION_GT;
        4 STABLEHLO_COMPARISON_DIRECTION_LE; 5 STABLEHLO_COMPARISON_DIRECTION_LT;
    }

    /// As what `STABLEHLO_COMPARE` takes its operands.
    StablehloComparisonType: u32 {
        0 STABLEHLO_COMPARISON_TYPE_NOTYPE; 1 STABLEHLO_COMPARISON_TYPE_FLOAT;
        2 STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER; 3 STABLEHLO_COMPARISON_TYPE_SIGNED;
        4 STABLEHLO_COMPARISON_TYPE_UNSIGNED;
    }

    /// How exact a product of `STABLEHLO` has to be.
    StablehloPrecisionConfig: u32 {
        0 DEFAULT; 1 HIGH; 2 HIGHEST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_numbers_are_kept() {
        let known = BuiltinOperator::from_code(-6);
        assert_eq!((known, known.name()), (BuiltinOperator::RMS_NORM, Some("RMS_NORM")));
        let unknown = BuiltinOperator::from_code(-1);
        assert_eq!((unknown.code(), unknown.name()), (-1, None));
        assert_eq!(unknown.to_string(), "unknown -1");
    }

    #[test]
    fn names_read_back() {
        assert_eq!(BuiltinOperator::KNOWN.len(), 218);
        for &operator in BuiltinOperator::KNOWN {
            assert_eq!(BuiltinOperator::from_name(operator.name().unwrap()), Some(operator));
        }
    }
}
