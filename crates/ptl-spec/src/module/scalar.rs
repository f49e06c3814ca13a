use std::fmt;

use tensor_core::DType;

macro_rules! scalar_types {
    ($($(#[$doc:meta])* $name:ident: $dtype:expr, $width:literal, $word:literal;)*) => {
        /// The element type of a tensor in a model file, with the number that FlatBuffer files give it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ScalarType {
            $($(#[$doc])* $name,)*
        }

        impl ScalarType {
            const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the name, as storage classes start with it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// Returns the element type of the stored numbers; `None` for complex halves. A quantized
            /// type has that of its integers.
            #[must_use]
            pub const fn dtype(self) -> Option<DType> {
                match self { $(Self::$name => $dtype,)* }
            }

            /// Returns the bytes of one element.
            #[must_use]
            pub const fn width(self) -> u64 {
                match self { $(Self::$name => $width,)* }
            }

            /// Returns the bytes whose order is that of the machine: half of a complex number.
            pub(crate) const fn word(self) -> usize {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

// The element type, the bytes of an element, and those of what has an order of bytes.
scalar_types! {
    /// 0: unsigned, 8 bits.
    Byte: Some(DType::U8), 1, 1;
    /// 1: signed, 8 bits.
    Char: Some(DType::I8), 1, 1;
    /// 2: signed, 16 bits.
    Short: Some(DType::I16), 2, 2;
    /// 3: signed, 32 bits.
    Int: Some(DType::I32), 4, 4;
    /// 4: signed, 64 bits.
    Long: Some(DType::I64), 8, 8;
    /// 5: IEEE 754 binary16.
    Half: Some(DType::F16), 2, 2;
    /// 6: IEEE 754 binary32.
    Float: Some(DType::F32), 4, 4;
    /// 7: IEEE 754 binary64.
    Double: Some(DType::F64), 8, 8;
    /// 8: two `Half`.
    ComplexHalf: None, 4, 2;
    /// 9: two `Float`.
    ComplexFloat: Some(DType::C64), 8, 4;
    /// 10: two `Double`.
    ComplexDouble: Some(DType::C128), 16, 8;
    /// 11: one byte, 0 or 1.
    Bool: Some(DType::Bool), 1, 1;
    /// 12: quantized, signed, 8 bits.
    QInt8: Some(DType::I8), 1, 1;
    /// 13: quantized, unsigned, 8 bits.
    QUInt8: Some(DType::U8), 1, 1;
    /// 14: quantized, signed, 32 bits.
    QInt32: Some(DType::I32), 4, 4;
    /// 15: the upper half of a `Float`.
    BFloat16: Some(DType::BF16), 2, 2;
}

impl ScalarType {
    /// Returns the type of a number; `None` for those that no file has.
    #[must_use]
    pub fn from_code(code: i8) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// Returns the type of a storage class, such as `FloatStorage`.
    #[must_use]
    pub fn from_storage(class: &str) -> Option<Self> {
        let name = class.strip_suffix("Storage")?;
        Self::ALL.iter().copied().find(|scalar| scalar.name() == name)
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
        for (code, &scalar) in (0..).zip(ScalarType::ALL) {
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
