use std::{fmt, str::FromStr};

use crate::InvalidText;

/// The type of one element, by the format's names. Format text: "`carton.toml`".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
    /// Text of any length.
    String,
    /// Signed, 8 bits.
    Int8,
    /// Signed, 16 bits.
    Int16,
    /// Signed, 32 bits.
    Int32,
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 8 bits.
    Uint8,
    /// Unsigned, 16 bits.
    Uint16,
    /// Unsigned, 32 bits.
    Uint32,
    /// Unsigned, 64 bits.
    Uint64,
}

impl DType {
    /// All element types, in the order of the format text.
    pub const ALL: [Self; 11] = [
        Self::Float32,
        Self::Float64,
        Self::String,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
    ];

    /// Returns the name, as it stands in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::String => "string",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
        }
    }

    /// Returns the element type by which the rest of the workspace knows this one.
    #[must_use]
    pub const fn dtype(self) -> tensor_core::DType {
        match self {
            Self::Float32 => tensor_core::DType::F32,
            Self::Float64 => tensor_core::DType::F64,
            Self::String => tensor_core::DType::Str,
            Self::Int8 => tensor_core::DType::I8,
            Self::Int16 => tensor_core::DType::I16,
            Self::Int32 => tensor_core::DType::I32,
            Self::Int64 => tensor_core::DType::I64,
            Self::Uint8 => tensor_core::DType::U8,
            Self::Uint16 => tensor_core::DType::U16,
            Self::Uint32 => tensor_core::DType::U32,
            Self::Uint64 => tensor_core::DType::U64,
        }
    }

    /// Returns the format's own element type; `None` for those that it lacks.
    #[must_use]
    pub fn of(dtype: tensor_core::DType) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.dtype() == dtype)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == text).ok_or_else(|| {
            InvalidText::new(text, format!("one of {}", Self::ALL.map(Self::name).join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for dtype in DType::ALL {
            assert_eq!(dtype.to_string().parse(), Ok(dtype));
            assert_eq!(DType::of(dtype.dtype()), Some(dtype));
        }
        assert_eq!(DType::of(tensor_core::DType::Bool), None);
    }

    #[test]
    fn other_names_are_refused() {
        for text in ["", "Float32", "float16", "bool", "nested", "float32 ", "int"] {
            assert_eq!(
                text.parse::<DType>().unwrap_err().to_string(),
                format!(
                    "{text:?} is not one of float32, float64, string, int8, int16, int32, int64, \
                     uint8, uint16, uint32, uint64"
                )
            );
        }
    }
}
