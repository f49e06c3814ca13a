use super::{enums::show_name, release::Release};

/// Declares the tables by number, and by the first release that reads them. That of `Name` is
/// called `NameAttrs`.
macro_rules! types {
    ($( since $since:tt: $( $tag:literal $name:ident )*; )*) => {
        /// Which table holds the attributes of an operator.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum AttributesType {
            $($(
                #[doc = concat!(
                    "See [`", stringify!($name), "Attrs`](crate::attributes::", stringify!($name),
                    "Attrs)."
                )]
                $name,
            )*)*
            /// A table that this crate does not know.
            Unknown(u8),
        }

        impl AttributesType {
            /// Every known table, by number.
            pub const ALL: &'static [Self] = &[$($( Self::$name, )*)*];

            /// Returns what a stored number stands for; `None` for 0, which is not a table.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    0 => None,
                    $($( $tag => Some(Self::$name), )*)*
                    _ => Some(Self::Unknown(code)),
                }
            }

            /// Returns the number that is stored.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self {
                    $($( Self::$name => $tag, )*)*
                    Self::Unknown(code) => code,
                }
            }

            /// Returns the name of the table in the format; `None` for an unknown number.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $($( Self::$name => Some(concat!(stringify!($name), "Attrs")), )*)*
                    Self::Unknown(_) => None,
                }
            }

            /// Returns the first release that reads it; `None` for an unknown number.
            #[must_use]
            pub const fn since(self) -> Option<Release> {
                match self {
                    $( $( Self::$name )|* => Some(Release::new $since), )*
                    Self::Unknown(_) => None,
                }
            }
        }

        show_name!(AttributesType);
    };
}

types! {
    since (2, 0):
        1 ArgMax 2 AveragePool 3 BatchNormalization 4 Cast 5 Concat 6 ConstantOfShape 7 Conv
        8 ConvTranspose 9 Flatten 10 Gather 11 Gemm 12 GRU 13 LeakyRelu 14 LSTM 15 MaxPool
        16 ReduceMean 17 Reshape 18 Resize 19 Split 20 Softmax 21 Transpose 22 Mod
        23 ScatterElements 24 OneHot 25 TopK 26 HardSigmoid 27 Trilu 28 ScatterND
        29 NonMaxSuppression;
    since (3, 0): 30 LayerNormalization;
    since (6, 0): 31 RandomUniform;
    since (8, 0): 32 Elu;
    since (9, 0): 33 RandomUniformLike 34 RandomNormal 35 RandomNormalLike 36 GatherND;
    since (11, 0): 37 Gelu;
    since (12, 0): 38 Einsum;
    since (13, 0): 39 If;
    since (13, 1): 40 Pad;
    since (14, 0): 41 DequantizeLinear 42 QuantizeLinear;
    since (15, 0): 43 DepthToSpace;
    since (17, 0): 44 CastLike 45 Shape 46 Dropout;
    since (19, 0): 47 EyeLike;
    since (21, 0): 48 IsInf;
    since (22, 0):
        49 Loop 50 SequenceEmpty 51 ConcatFromSequence 52 SplitToSequence 53 GridSample 54 STFT;
    since (25, 0):
        55 Multinomial 56 ReverseSequence 57 DFT 58 Upsample 59 RotaryEmbedding 60 Attention;
    since (26, 0): 61 CumSum 62 LpNormalization;
}
