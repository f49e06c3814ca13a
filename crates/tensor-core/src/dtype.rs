use std::{fmt, str::FromStr};

/// The type of one element, over all formats of the workspace.
///
/// A format whose vocabulary is wider keeps its own names and maps those that are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// One byte per element, 0 or 1.
    Bool,
    /// Signed, two elements a byte, the first in the low four bits.
    I4,
    /// Unsigned, two elements a byte, the first in the low four bits.
    U4,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// OCP 8-bit float, 4 exponent bits, bias 7, no infinities, largest value 448.
    F8E4M3,
    /// OCP 8-bit float, 5 exponent bits, bias 15, with infinities.
    F8E5M2,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of an IEEE 754 binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Two `F32`, real part first.
    C64,
    /// Two `F64`, real part first.
    C128,
    /// Text of any length; only some formats store it.
    Str,
}

impl DType {
    /// All element types, in the order of their declaration.
    pub const ALL: [Self; 20] = [
        Self::Bool,
        Self::I4,
        Self::U4,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F8E4M3,
        Self::F8E5M2,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
        Self::C64,
        Self::C128,
        Self::Str,
    ];

    /// Returns the width of one element in bits; `None` for text.
    #[must_use]
    pub const fn bits(self) -> Option<u32> {
        match self {
            Self::I4 | Self::U4 => Some(4),
            Self::Bool | Self::I8 | Self::U8 | Self::F8E4M3 | Self::F8E5M2 => Some(8),
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => Some(16),
            Self::I32 | Self::U32 | Self::F32 => Some(32),
            Self::I64 | Self::U64 | Self::F64 | Self::C64 => Some(64),
            Self::C128 => Some(128),
            Self::Str => None,
        }
    }

    /// Returns the width of one element in bytes; `None` for text and for 4-bit types.
    #[must_use]
    pub const fn width(self) -> Option<u64> {
        match self.bits() {
            Some(8) => Some(1),
            Some(16) => Some(2),
            Some(32) => Some(4),
            Some(64) => Some(8),
            Some(128) => Some(16),
            _ => None,
        }
    }

    /// Returns the bytes that `elements` elements take, 4-bit types rounded up to a whole byte.
    ///
    /// `None` for text, and where the product does not fit 64 bits.
    #[must_use]
    pub const fn byte_len(self, elements: u64) -> Option<u64> {
        match (self.width(), self.bits()) {
            (Some(width), _) => elements.checked_mul(width),
            (None, Some(_)) => Some(elements.div_ceil(2)),
            (None, None) => None,
        }
    }

    /// Tells whether elements are whole numbers.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::I4
                | Self::U4
                | Self::I8
                | Self::I16
                | Self::I32
                | Self::I64
                | Self::U8
                | Self::U16
                | Self::U32
                | Self::U64
        )
    }

    /// Returns the name, as `FromStr` reads it: lower case, with the width in bits.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I4 => "i4",
            Self::U4 => "u4",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F8E4M3 => "f8_e4m3",
            Self::F8E5M2 => "f8_e5m2",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::C64 => "c64",
            Self::C128 => "c128",
            Self::Str => "str",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = UnknownDType;

    /// Reads the name of an element type, in upper or lower case, and the names that `NumPy`,
    /// `PyTorch` and safetensors give it.
    fn from_str(text: &str) -> Result<Self, UnknownDType> {
        let name = text.to_ascii_lowercase();
        let known = Self::ALL.into_iter().find(|dtype| dtype.name() == name);
        let known = known
            .or_else(|| ALIASES.iter().find(|(alias, _)| *alias == name).map(|&(_, dtype)| dtype));
        known.ok_or_else(|| UnknownDType { found: text.to_owned() })
    }
}

/// What libraries call element types beside our names.
const ALIASES: [(&str, DType); 23] = [
    ("boolean", DType::Bool),
    ("int4", DType::I4),
    ("uint4", DType::U4),
    ("int8", DType::I8),
    ("int16", DType::I16),
    ("int32", DType::I32),
    ("int64", DType::I64),
    ("uint8", DType::U8),
    ("uint16", DType::U16),
    ("uint32", DType::U32),
    ("uint64", DType::U64),
    ("float8_e4m3fn", DType::F8E4M3),
    ("float8_e5m2", DType::F8E5M2),
    ("float16", DType::F16),
    ("half", DType::F16),
    ("bfloat16", DType::BF16),
    ("float32", DType::F32),
    ("float", DType::F32),
    ("float64", DType::F64),
    ("double", DType::F64),
    ("complex64", DType::C64),
    ("complex128", DType::C128),
    ("string", DType::Str),
];

#[cfg(feature = "serde")]
impl serde::Serialize for DType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A text that names no element type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("element type is {found:?}, expected a name such as \"f32\" or \"i64\"")]
pub struct UnknownDType {
    /// The text.
    pub found: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for dtype in DType::ALL {
            assert_eq!(dtype.to_string().parse(), Ok(dtype));
        }
        for (alias, dtype) in
            [("BOOL", DType::Bool), ("F8_E4M3", DType::F8E4M3), ("BF16", DType::BF16)]
        {
            assert_eq!(alias.parse(), Ok(dtype));
        }
        assert_eq!("float32".parse(), Ok(DType::F32));
        let error = "F33".parse::<DType>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "element type is \"F33\", expected a name such as \"f32\" or \"i64\""
        );
    }

    #[test]
    fn bytes_follow_bits() {
        for dtype in DType::ALL {
            for elements in [0, 1, 2, 3, 1000] {
                let expected = dtype.bits().map(|bits| (elements * u64::from(bits)).div_ceil(8));
                assert_eq!(dtype.byte_len(elements), expected, "{elements} of {dtype}");
            }
        }
    }

    #[test]
    fn byte_len_overflow_is_none() {
        assert_eq!(DType::F64.byte_len(1 << 61), None);
        assert_eq!(DType::U4.byte_len(u64::MAX), Some(1 << 63));
    }
}
