use std::fmt;

use tensor_core::{DType, Shape};

use super::Schema;

/// Declares element types: the number in Circle, that in TFLite, name, and what stands for one.
macro_rules! tensor_types {
    ($( $(#[$doc:meta])* ($circle:tt, $tflite:tt) $variant:ident $name:literal $dtype:expr; )*) => {
        /// The element type of a tensor.
        ///
        /// Circle and TFLite have other numbers for some of them: 4-bit unsigned numbers are -1 in
        /// the one and 20 in the other.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum TensorType {
            $( $(#[$doc])* $variant, )*
            /// A number that has no meaning in the schema of the file.
            Unknown(i8),
        }

        impl TensorType {
            /// Every known element type.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )*];

            /// Returns what a number stands for in a schema.
            #[must_use]
            pub fn from_code(code: i8, schema: Schema) -> Self {
                let mut known = Self::ALL.iter().copied();
                let known = known.find(|known| known.code(schema) == Some(code));
                known.unwrap_or(Self::Unknown(code))
            }

            /// Returns the number that is stored; `None` for a type that the schema has not.
            #[must_use]
            pub const fn code(self, schema: Schema) -> Option<i8> {
                match (self, schema) {
                    $(
                        (Self::$variant, Schema::Circle) => tensor_types!(@code $circle),
                        (Self::$variant, Schema::Tflite) => tensor_types!(@code $tflite),
                    )*
                    (Self::Unknown(code), _) => Some(code),
                }
            }

            /// Returns the name in the format; `None` for an unknown number.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $( Self::$variant => Some($name), )*
                    Self::Unknown(_) => None,
                }
            }

            /// Returns the element type that the crates of this workspace share; `None` where they
            /// have none.
            #[must_use]
            pub const fn dtype(self) -> Option<DType> {
                match self {
                    $( Self::$variant => $dtype, )*
                    Self::Unknown(_) => None,
                }
            }
        }
    };
    (@code none) => { None };
    (@code $code:tt) => { Some($code) };
}

tensor_types! {
    /// IEEE 754, 32 bits.
    (0, 0) Float32 "FLOAT32" Some(DType::F32);
    /// IEEE 754, 16 bits.
    (1, 1) Float16 "FLOAT16" Some(DType::F16);
    /// Signed, 32 bits.
    (2, 2) Int32 "INT32" Some(DType::I32);
    /// Unsigned, 8 bits.
    (3, 3) Uint8 "UINT8" Some(DType::U8);
    /// Signed, 64 bits.
    (4, 4) Int64 "INT64" Some(DType::I64);
    /// Texts: their number and offsets in 32 bits each, then their bytes.
    (5, 5) String "STRING" Some(DType::Str);
    /// One byte, 0 or 1.
    (6, 6) Bool "BOOL" Some(DType::Bool);
    /// Signed, 16 bits.
    (7, 7) Int16 "INT16" Some(DType::I16);
    /// Two numbers of 32 bits.
    (8, 8) Complex64 "COMPLEX64" Some(DType::C64);
    /// Signed, 8 bits.
    (9, 9) Int8 "INT8" Some(DType::I8);
    /// IEEE 754, 64 bits.
    (10, 10) Float64 "FLOAT64" Some(DType::F64);
    /// Two numbers of 64 bits.
    (11, 11) Complex128 "COMPLEX128" Some(DType::C128);
    /// Unsigned, 64 bits.
    (12, 12) Uint64 "UINT64" Some(DType::U64);
    /// A handle on something at run time.
    (13, 13) Resource "RESOURCE" None;
    /// Something that is known at run time.
    (14, 14) Variant "VARIANT" None;
    /// Unsigned, 32 bits.
    (15, 15) Uint32 "UINT32" Some(DType::U32);
    /// Unsigned, 16 bits.
    (16, 16) Uint16 "UINT16" Some(DType::U16);
    /// Signed, two a byte, the first in the low four bits.
    (17, 17) Int4 "INT4" Some(DType::I4);
    /// The upper half of a number of 32 bits.
    (18, 18) Bfloat16 "BFLOAT16" Some(DType::BF16);
    /// Signed, 2 bits; of TFLite alone.
    (none, 19) Int2 "INT2" None;
    /// Unsigned, two a byte, the first in the low four bits.
    ((-1), 20) Uint4 "UINT4" Some(DType::U4);
    /// 8 bits, 4 of them exponent, without infinities; of TFLite alone.
    (none, 21) Float8E4m3fn "FLOAT8_E4M3FN" Some(DType::F8E4M3);
    /// 8 bits, 5 of them exponent; of TFLite alone.
    (none, 22) Float8E5m2 "FLOAT8_E5M2" Some(DType::F8E5M2);
    /// GGML blocks of 32 elements: a scale, and 4 bits each.
    ((-2), none) GgmlQ4_0 "GGML_Q4_0" None;
    /// GGML blocks of 32 elements: a scale, a minimum, and 4 bits each.
    ((-3), none) GgmlQ4_1 "GGML_Q4_1" None;
    /// GGML blocks of 32 elements: a scale, and 8 bits each.
    ((-4), none) GgmlQ8_0 "GGML_Q8_0" None;
    /// GGML blocks of 32 elements: a scale, a sum, and 8 bits each.
    ((-5), none) GgmlQ8_1 "GGML_Q8_1" None;
    /// 4-bit floats with shared scales.
    ((-6), none) Mxfp4 "MXFP4" None;
    /// 8-bit numbers with shared scales.
    ((-7), none) Mxint8 "MXINT8" None;
}

impl TensorType {
    /// Returns the bytes of all elements of a shape.
    ///
    /// `None` where nothing says how they are stored, for texts, where the last dimension is
    /// not a whole number of blocks, and where the product does not fit 64 bits.
    #[must_use]
    pub fn byte_len(self, shape: &Shape) -> Option<u64> {
        let elements = shape.elements().ok()?;
        if let Some(block) = self.block_bytes() {
            let last = shape.dims().last().copied().unwrap_or(1);
            let is_whole = last.checked_rem(BLOCK) == Some(0);
            return is_whole.then(|| elements.checked_div(BLOCK)?.checked_mul(block)).flatten();
        }
        self.dtype()?.byte_len(elements)
    }

    /// Tells whether elements are stored in blocks of 32.
    pub(crate) const fn has_blocks(self) -> bool {
        self.block_bytes().is_some()
    }

    /// Returns the bytes of a block of 32 elements; `None` for types that are not stored in blocks.
    const fn block_bytes(self) -> Option<u64> {
        Some(match self {
            Self::GgmlQ4_0 => 18,
            Self::GgmlQ4_1 => 20,
            Self::GgmlQ8_0 => 34,
            Self::GgmlQ8_1 => 36,
            _ => return None,
        })
    }
}

impl fmt::Display for TensorType {
    /// Writes the name, or `unknown` and the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self) {
            (Some(name), _) => f.pad(name),
            (None, Self::Unknown(code)) => f.pad(&format!("unknown {code}")),
            (None, _) => Ok(()),
        }
    }
}

impl Default for TensorType {
    /// Returns what an absent field means.
    fn default() -> Self {
        Self::Float32
    }
}

/// Elements of a GGML block.
const BLOCK: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_between_schemas() {
        for (schema, code, expected) in [
            (Schema::Circle, -1, TensorType::Uint4),
            (Schema::Tflite, 20, TensorType::Uint4),
            (Schema::Circle, 20, TensorType::Unknown(20)),
            (Schema::Tflite, -1, TensorType::Unknown(-1)),
            (Schema::Circle, 19, TensorType::Unknown(19)),
            (Schema::Tflite, -4, TensorType::Unknown(-4)),
        ] {
            assert_eq!(TensorType::from_code(code, schema), expected);
            assert_eq!(expected.code(schema), Some(code));
        }
        assert_eq!(TensorType::GgmlQ4_0.code(Schema::Tflite), None);
        assert_eq!(TensorType::Unknown(20).to_string(), "unknown 20");
    }

    #[test]
    fn bytes_of_blocks() {
        let len = |dtype: TensorType, dims: &[u64]| dtype.byte_len(&dims.iter().copied().collect());
        assert_eq!(len(TensorType::GgmlQ4_0, &[2, 64]), Some(72));
        assert_eq!(len(TensorType::GgmlQ8_1, &[32]), Some(36));
        assert_eq!(len(TensorType::GgmlQ8_0, &[33]), None);
        assert_eq!(len(TensorType::GgmlQ8_0, &[]), None);
        assert_eq!(len(TensorType::Int4, &[3, 3]), Some(5));
        assert_eq!(len(TensorType::String, &[1]), None);
        assert_eq!(len(TensorType::Mxfp4, &[32]), None);
        assert_eq!(len(TensorType::Float64, &[1 << 61]), None);
    }
}
