use super::release::Release;

macro_rules! types {
    ($( $tag:literal $name:ident since $since:tt: $table:ident; )*) => {
        /// Which table holds the attributes of an operator.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum AttributesType {
            $(
                #[doc = concat!(
                    "See [`", stringify!($table), "`](crate::attributes::", stringify!($table), ")."
                )]
                $name,
            )*
            /// A table that this crate does not know.
            Unknown(u8),
        }

        impl AttributesType {
            /// Every known table, by number.
            pub const ALL: &'static [Self] = &[$( Self::$name, )*];

            /// Returns what a stored number stands for; `None` for 0, which is not a table.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    0 => None,
                    $( $tag => Some(Self::$name), )*
                    _ => Some(Self::Unknown(code)),
                }
            }

            /// Returns the number that is stored.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self {
                    $( Self::$name => $tag, )*
                    Self::Unknown(code) => code,
                }
            }

            /// Returns the name of the table in the format; `None` for an unknown number.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $( Self::$name => Some(stringify!($table)), )*
                    Self::Unknown(_) => None,
                }
            }

            /// Returns the first release that reads it; `None` for an unknown number.
            #[must_use]
            pub const fn since(self) -> Option<Release> {
                match self {
                    $( Self::$name => Some(Release::new $since), )*
                    Self::Unknown(_) => None,
                }
            }
        }
    };
}

// By the number of the table in the union, with the first release that reads it.
types! {
    1 ArgMax since (2, 0): ArgMaxAttrs;
    2 AveragePool since (2, 0): AveragePoolAttrs;
    3 BatchNormalization since (2, 0): BatchNormalizationAttrs;
    4 Cast since (2, 0): CastAttrs;
    5 Concat since (2, 0): ConcatAttrs;
    6 ConstantOfShape since (2, 0): ConstantOfShapeAttrs;
    7 Conv since (2, 0): ConvAttrs;
    8 ConvTranspose since (2, 0): ConvTransposeAttrs;
    9 Flatten since (2, 0): FlattenAttrs;
    10 Gather since (2, 0): GatherAttrs;
    11 Gemm since (2, 0): GemmAttrs;
    12 GRU since (2, 0): GRUAttrs;
    13 LeakyRelu since (2, 0): LeakyReluAttrs;
    14 LSTM since (2, 0): LSTMAttrs;
    15 MaxPool since (2, 0): MaxPoolAttrs;
    16 ReduceMean since (2, 0): ReduceMeanAttrs;
    17 Reshape since (2, 0): ReshapeAttrs;
    18 Resize since (2, 0): ResizeAttrs;
    19 Split since (2, 0): SplitAttrs;
    20 Softmax since (2, 0): SoftmaxAttrs;
    21 Transpose since (2, 0): TransposeAttrs;
    22 Mod since (2, 0): ModAttrs;
    23 ScatterElements since (2, 0): ScatterElementsAttrs;
    24 OneHot since (2, 0): OneHotAttrs;
    25 TopK since (2, 0): TopKAttrs;
    26 HardSigmoid since (2, 0): HardSigmoidAttrs;
    27 Trilu since (2, 0): TriluAttrs;
    28 ScatterND since (2, 0): ScatterNDAttrs;
    29 NonMaxSuppression since (2, 0): NonMaxSuppressionAttrs;
    30 LayerNormalization since (3, 0): LayerNormalizationAttrs;
    31 RandomUniform since (6, 0): RandomUniformAttrs;
    32 Elu since (8, 0): EluAttrs;
    33 RandomUniformLike since (9, 0): RandomUniformLikeAttrs;
    34 RandomNormal since (9, 0): RandomNormalAttrs;
    35 RandomNormalLike since (9, 0): RandomNormalLikeAttrs;
    36 GatherND since (9, 0): GatherNDAttrs;
    37 Gelu since (11, 0): GeluAttrs;
    38 Einsum since (12, 0): EinsumAttrs;
    39 If since (13, 0): IfAttrs;
    40 Pad since (13, 1): PadAttrs;
    41 DequantizeLinear since (14, 0): DequantizeLinearAttrs;
    42 QuantizeLinear since (14, 0): QuantizeLinearAttrs;
    43 DepthToSpace since (15, 0): DepthToSpaceAttrs;
    44 CastLike since (17, 0): CastLikeAttrs;
    45 Shape since (17, 0): ShapeAttrs;
    46 Dropout since (17, 0): DropoutAttrs;
    47 EyeLike since (19, 0): EyeLikeAttrs;
    48 IsInf since (21, 0): IsInfAttrs;
    49 Loop since (22, 0): LoopAttrs;
    50 SequenceEmpty since (22, 0): SequenceEmptyAttrs;
    51 ConcatFromSequence since (22, 0): ConcatFromSequenceAttrs;
    52 SplitToSequence since (22, 0): SplitToSequenceAttrs;
    53 GridSample since (22, 0): GridSampleAttrs;
    54 STFT since (22, 0): STFTAttrs;
    55 Multinomial since (25, 0): MultinomialAttrs;
    56 ReverseSequence since (25, 0): ReverseSequenceAttrs;
    57 DFT since (25, 0): DFTAttrs;
    58 Upsample since (25, 0): UpsampleAttrs;
    59 RotaryEmbedding since (25, 0): RotaryEmbeddingAttrs;
    60 Attention since (25, 0): AttentionAttrs;
    61 CumSum since (26, 0): CumSumAttrs;
    62 LpNormalization since (26, 0): LpNormalizationAttrs;
}
