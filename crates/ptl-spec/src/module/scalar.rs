use std::fmt;

use tensor_core::DType;

/// The element type of a tensor in a model file, with the number that FlatBuffer files give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScalarType {
    /// 0: unsigned, 8 bits.
    Byte,
    /// 1: signed, 8 bits.
    Char,
    /// 2: signed, 16 bits.
    Short,
    /// 3: signed, 32 bits.
    Int,
    /// 4: signed, 64 bits.
    Long,
    /// 5: IEEE 754 binary16.
    Half,
    /// 6: IEEE 754 binary32.
    Float,
    /// 7: IEEE 754 binary64.
    Double,
    /// 8: two `Half`.
    ComplexHalf,
    /// 9: two `Float`.
    ComplexFloat,
    /// 10: two `Double`.
    ComplexDouble,
    /// 11: one byte, 0 or 1.
    Bool,
    /// 12: quantized, signed, 8 bits.
    QInt8,
    /// 13: quantized, unsigned, 8 bits.
    QUInt8,
    /// 14: quantized, signed, 32 bits.
    QInt32,
    /// 15: the upper half of a `Float`.
    BFloat16,
}

impl ScalarType {
    const ALL: [Self; 16] = [
        Self::Byte,
        Self::Char,
        Self::Short,
        Self::Int,
        Self::Long,
        Self::Half,
        Self::Float,
        Self::Double,
        Self::ComplexHalf,
        Self::ComplexFloat,
        Self::ComplexDouble,
        Self::Bool,
        Self::QInt8,
        Self::QUInt8,
        Self::QInt32,
        Self::BFloat16,
    ];

    /// Returns the type of a number; `None` for those that no file has.
    #[must_use]
    pub fn from_code(code: i8) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// Returns the type of a storage class, such as `FloatStorage`.
    #[must_use]
    pub fn from_storage(class: &str) -> Option<Self> {
        let name = class.strip_suffix("Storage")?;
        Self::ALL.into_iter().find(|scalar| scalar.name() == name)
    }

    /// Returns the name, as storage classes start with it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Byte => "Byte",
            Self::Char => "Char",
            Self::Short => "Short",
            Self::Int => "Int",
            Self::Long => "Long",
            Self::Half => "Half",
            Self::Float => "Float",
            Self::Double => "Double",
            Self::ComplexHalf => "ComplexHalf",
            Self::ComplexFloat => "ComplexFloat",
            Self::ComplexDouble => "ComplexDouble",
            Self::Bool => "Bool",
            Self::QInt8 => "QInt8",
            Self::QUInt8 => "QUInt8",
            Self::QInt32 => "QInt32",
            Self::BFloat16 => "BFloat16",
        }
    }

    /// Returns the element type of the stored numbers; `None` for complex halves. A quantized type
    /// has that of its integers.
    #[must_use]
    pub const fn dtype(self) -> Option<DType> {
        Some(match self {
            Self::Byte | Self::QUInt8 => DType::U8,
            Self::Char | Self::QInt8 => DType::I8,
            Self::Short => DType::I16,
            Self::Int | Self::QInt32 => DType::I32,
            Self::Long => DType::I64,
            Self::Half => DType::F16,
            Self::Float => DType::F32,
            Self::Double => DType::F64,
            Self::ComplexHalf => return None,
            Self::ComplexFloat => DType::C64,
            Self::ComplexDouble => DType::C128,
            Self::Bool => DType::Bool,
            Self::BFloat16 => DType::BF16,
        })
    }

    /// Returns the bytes of one element.
    #[must_use]
    pub const fn width(self) -> u64 {
        match self {
            Self::Byte | Self::Char | Self::Bool | Self::QInt8 | Self::QUInt8 => 1,
            Self::Short | Self::Half | Self::BFloat16 => 2,
            Self::Int | Self::Float | Self::QInt32 | Self::ComplexHalf => 4,
            Self::Long | Self::Double | Self::ComplexFloat => 8,
            Self::ComplexDouble => 16,
        }
    }

    /// Returns the bytes whose order is that of the machine: half of a complex number.
    pub(crate) const fn word(self) -> usize {
        match self {
            Self::ComplexHalf => 2,
            Self::ComplexFloat => 4,
            Self::ComplexDouble | Self::Long | Self::Double => 8,
            Self::Byte | Self::Char | Self::Bool | Self::QInt8 | Self::QUInt8 => 1,
            Self::Short | Self::Half | Self::BFloat16 => 2,
            Self::Int | Self::Float | Self::QInt32 => 4,
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_read_back() {
        for (code, scalar) in (0..).zip(ScalarType::ALL) {
            assert_eq!(ScalarType::from_code(code), Some(scalar));
            assert_eq!(ScalarType::from_storage(&format!("{scalar}Storage")), Some(scalar));
            let width = scalar.dtype().and_then(DType::width);
            assert!(width.is_none_or(|width| width == scalar.width()), "{scalar}");
        }
        assert_eq!(ScalarType::from_code(16), None);
        assert_eq!(ScalarType::from_code(-1), None);
        assert_eq!(ScalarType::from_storage("Float"), None);
    }
}
