//! Numbers of the format that stand for one of several things.
//!
//! Each enumeration is one entry of a table: number, name, and the release that added it where it
//! is not as old as the enumeration. A number that is not in the table is kept as it is.

use crate::Release;

macro_rules! enums {
    ($(
        $(#[$doc:meta])*
        $name:ident: $code:ident since $since:tt {
            $( $(#[$value_doc:meta])* $value:literal $variant:ident $(since $value_since:tt)?; )*
        }
    )*) => {$(
        coded! {
            $(#[$doc])*
            $name: $code { $( $(#[$value_doc])* $value $variant; )* }
        }

        impl $name {
            /// Returns the name in the format; `None` for an unknown number.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $( Self::$variant => Some(stringify!($variant)), )*
                    Self::Unknown(_) => None,
                }
            }

            /// Returns the first release that reads it; `None` for an unknown number.
            #[must_use]
            pub const fn since(self) -> Option<Release> {
                match self {
                    $( Self::$variant => Some($crate::model::release::since!($($value_since)? $since)), )*
                    Self::Unknown(_) => None,
                }
            }
        }

    )*};
}

/// Declares an enumeration and its numbers. It needs a method `name`, by which it is shown.
macro_rules! coded {
    (
        $(#[$doc:meta])*
        $name:ident: $code:ident { $( $(#[$value_doc:meta])* $value:literal $variant:ident; )* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$value_doc])* $variant, )*
            /// A number that this crate does not know, and none of those that it does.
            Unknown($code),
        }

        impl $name {
            /// All that are known, by number.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )*];

            /// Returns what a stored number stands for.
            #[must_use]
            pub const fn from_code(code: $code) -> Self {
                match code {
                    $( $value => Self::$variant, )*
                    _ => Self::Unknown(code),
                }
            }

            /// Returns the number that is stored.
            #[must_use]
            pub const fn code(self) -> $code {
                match self {
                    $( Self::$variant => $value, )*
                    Self::Unknown(code) => code,
                }
            }
        }

        $crate::model::enums::show_name!($name);
    };
}
pub(crate) use coded;

/// Shows an enumeration by the names of the format.
macro_rules! show_name {
    ($name:ident) => {
        impl std::fmt::Display for $name {
            /// Writes the name, or `unknown` and the number.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => f.pad(&format!("unknown {}", self.code())),
                }
            }
        }
    };
}
pub(crate) use show_name;

enums! {
    /// The direction in which a recurrent layer walks along the sequence.
    RNNDirection: u8 since (2, 0) {
        /// From the first element to the last.
        0 Forward;
        /// From the last element to the first.
        1 Reverse;
        /// Both, one after the other in the output.
        2 Bidirectional;
    }

    /// Where the padding of a convolution or pool comes from.
    AutoPad: u8 since (2, 0) {
        /// As much as keeps the size, an odd element at the end: `SAME_UPPER` in ONNX.
        0 Same;
        /// The attribute `pads`.
        1 NotSet;
    }

    /// The element type of a value, or the one that an operator makes.
    DataType: u8 since (2, 0) {
        /// Signed, 32 bits; stands for the bool and the 64-bit integers of ONNX as well.
        0 Int32;
        /// IEEE 754, 32 bits.
        1 Float;
        /// Signed, 8 bits.
        2 Int8 since (14, 0);
        /// Unsigned, 8 bits.
        3 UInt8 since (14, 0);
    }

    /// The element type of a constant: those of [`DataType`] under names of their own.
    ConstantDataType: u16 since (11, 0) {
        /// Signed, 32 bits; stands for the bool and the 64-bit integers of ONNX as well.
        0 Int32;
        /// IEEE 754, 32 bits.
        1 Float32;
        /// Signed, 8 bits.
        2 Int8 since (14, 0);
        /// Unsigned, 8 bits.
        3 UInt8 since (14, 0);
    }

    /// How Resize maps a coordinate of the output to one of the input.
    CoordTransformMode: u8 since (2, 0) {
        /// Centres of elements lie at halves.
        0 HalfPixel;
        /// Coordinates are scaled.
        1 Asymmetric;
        /// Centres of the first and the last elements are mapped to each other.
        2 AlignCorners since (3, 0);
        /// As `HalfPixel`, but a dimension of one element is mapped to the first.
        3 PytorchHalfPixel since (17, 0);
    }

    /// How Resize rounds a coordinate.
    NearestMode: u8 since (2, 0) {
        /// Down.
        0 Floor;
        /// Up.
        1 Ceil;
        /// To the nearest, halves down.
        2 RoundPreferFloor;
        /// To the nearest, halves up.
        3 RoundPreferCeil;
    }

    /// How Resize and Upsample fill in elements.
    ResizeMode: u8 since (2, 0) {
        /// By copies of the nearest one.
        0 Nearest;
        /// By weighted means.
        1 Linear;
    }

    /// The order in which `DepthToSpace` takes channels apart.
    DepthToSpaceMode: u8 since (15, 0) {
        /// Depth, column, row.
        0 DCR;
        /// Column, row, depth.
        1 CRD;
    }

    /// The formula of Gelu.
    GeluApproximation: u8 since (19, 0) {
        /// The exact one, by the error function.
        0 None;
        /// An approximation by the hyperbolic tangent.
        1 Tanh;
    }

    /// What the four numbers of a box are.
    NMSBoxOrder: u8 since (2, 0) {
        /// Two opposite corners, vertical coordinate first.
        0 TopLeftBottomRight;
        /// Centre, width and height, horizontal coordinate first.
        1 CenterWidthHeight;
    }

    /// What Pad fills with.
    PadMode: u8 since (13, 1) {
        /// One value.
        0 Constant;
        /// The tensor mirrored at its outer elements.
        1 Reflect;
        /// The outer elements.
        2 Edge since (22, 0);
        /// The tensor from its other end.
        3 Wrap since (22, 0);
    }

    /// How the Scatter operators join an update and the element that is there.
    ScatterReduction: u8 since (2, 0) {
        /// The update takes its place.
        0 None;
        /// Their sum.
        1 Add;
        /// Their product.
        2 Mul;
        /// The smaller one.
        3 Min;
        /// The larger one.
        4 Max;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_numbers_are_kept() {
        assert_eq!(PadMode::from_code(3), PadMode::Wrap);
        assert_eq!(PadMode::from_code(4), PadMode::Unknown(4));
        assert_eq!(PadMode::from_code(4).code(), 4);
        assert_eq!(PadMode::from_code(4).name(), None);
        assert_eq!(PadMode::from_code(4).to_string(), "unknown 4");
        assert_eq!(PadMode::Wrap.to_string(), "Wrap");
    }

    #[test]
    fn values_are_as_old_as_their_enumeration_or_newer() {
        assert_eq!(PadMode::Constant.since(), Some(Release::new(13, 1)));
        assert_eq!(PadMode::Edge.since(), Some(Release::new(22, 0)));
        assert_eq!(PadMode::Unknown(9).since(), None);
    }
}
