//! The names of element types in each generation.

use std::fmt;

use tensor_core::DType;

/// What a component's `dtype` says: one of the format's element types, or another text.
///
/// An unknown text keeps the file open; only the use of that component fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredType {
    /// An element type of the format.
    Known(DType),
    /// Any other text, as it stands in the manifest.
    Unknown(String),
}

impl StoredType {
    /// Reads a name of generation 1.1 or 1.2. Format text: Part II, section 4.
    pub(crate) fn parse(name: &str) -> Self {
        Self::find(&NAMES, name)
    }

    /// Reads a name of generation 0.1 or 1.0.
    pub(crate) fn parse_long(name: &str) -> Self {
        Self::find(&LONG_NAMES, name)
    }

    fn find(names: &[(DType, &str)], name: &str) -> Self {
        names
            .iter()
            .find(|(_, known)| *known == name)
            .map_or_else(|| Self::Unknown(name.to_owned()), |(dtype, _)| Self::Known(*dtype))
    }

    /// Returns the text of generation 1.1.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            // `Known` holds only types of the table: `parse` and `of` make no other.
            Self::Known(dtype) => name_of(*dtype).unwrap_or("unknown"),
            Self::Unknown(name) => name,
        }
    }
}

impl fmt::Display for StoredType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Returns the name of an element type in generation 1.1; `None` for types that the format lacks.
pub(crate) fn name_of(dtype: DType) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == dtype).map(|(_, name)| *name)
}

/// Returns the element type of a name in generation 1.1.
pub(crate) fn of_name(name: &[u8]) -> Option<DType> {
    NAMES.iter().find(|(_, known)| known.as_bytes() == name).map(|(dtype, _)| *dtype)
}

impl From<DType> for ElementType {
    fn from(dtype: DType) -> Self {
        Self::Plain(dtype)
    }
}

impl ElementType {
    /// Returns the storage type and the `type` by which generation 2 writes it; `None` where it cannot.
    pub(crate) fn as_in_v2(self) -> Option<(DType, Option<&'static str>)> {
        match self {
            Self::Plain(dtype) => name_of(dtype).map(|_| as_in_v2(dtype)),
            Self::Packed { .. } => {
                let found = LOGICAL_V2.iter().find(|(.., elements)| *elements == self);
                found.map(|(name, stored, _)| (*stored, Some(*name)))
            }
        }
    }
}

/// Returns the element type that generation 1.2 means by a storage type and its `type`; `None`
/// for a `type` that is not known.
pub(crate) fn logical(storage: DType, logical: &str) -> Option<DType> {
    LOGICAL
        .iter()
        .find(|(_, name, stored)| *name == logical && *stored == storage)
        .map(|(dtype, ..)| *dtype)
}

/// What the elements of a component are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElementType {
    /// Elements of a type that the workspace's tensors have.
    Plain(DType),
    /// Elements of another type, without a gap between them.
    Packed {
        /// The `type` of generation 2.
        name: &'static str,
        /// Bits of an element, 4 or 8; of two in a byte the first is in the low four.
        bits: u32,
    },
}

impl ElementType {
    /// Returns how many bytes a number of elements takes; `None` where that does not fit 64 bits.
    #[must_use]
    pub const fn byte_len(self, elements: u64) -> Option<u64> {
        match self {
            Self::Plain(dtype) => dtype.byte_len(elements),
            Self::Packed { bits: 4, .. } => Some(elements.div_ceil(2)),
            Self::Packed { .. } => Some(elements),
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(dtype) => dtype.fmt(f),
            Self::Packed { name, .. } => f.pad(name),
        }
    }
}

/// Returns what generation 2 means by a storage type and its `type`; `None` for a `type` that is not
/// known, or is not stored so.
pub(crate) fn element_type_v2(storage: DType, logical: Option<&str>) -> Option<ElementType> {
    let Some(logical) = logical else { return Some(ElementType::Plain(storage)) };
    let found = LOGICAL_V2.iter().find(|(name, ..)| *name == logical);
    found.filter(|(_, stored, _)| *stored == storage).map(|(.., elements)| *elements)
}

/// Returns the storage type of a `type` of generation 2; `None` where it is not known.
pub(crate) fn storage_v2(logical: &str) -> Option<DType> {
    LOGICAL_V2.iter().find(|(name, ..)| *name == logical).map(|(_, stored, _)| *stored)
}

/// Returns the storage type and the `type` by which generation 2 writes an element type.
fn as_in_v2(dtype: DType) -> (DType, Option<&'static str>) {
    let plain = ElementType::Plain(dtype);
    let found = LOGICAL_V2.iter().find(|(.., elements)| *elements == plain);
    found.map_or((dtype, None), |(name, stored, _)| (*stored, Some(*name)))
}

/// Tells whether an element type is one that parts are stored in; any other is a `type` of one.
pub(crate) fn is_storage(dtype: DType) -> bool {
    !matches!(dtype, DType::Bool | DType::F8E4M3 | DType::F8E5M2 | DType::C64 | DType::C128)
}

const fn packed(name: &'static str, bits: u32) -> (&'static str, DType, ElementType) {
    (name, DType::U8, ElementType::Packed { name, bits })
}

/// The `type`s of generation 2, and what they are stored in.
const LOGICAL_V2: [(&str, DType, ElementType); 9] = [
    ("bool", DType::U8, ElementType::Plain(DType::Bool)),
    ("f8_e4m3fn", DType::U8, ElementType::Plain(DType::F8E4M3)),
    ("f8_e5m2", DType::U8, ElementType::Plain(DType::F8E5M2)),
    packed("f8_e4m3fnuz", 8),
    packed("f8_e5m2fnuz", 8),
    packed("f8_e8m0", 8),
    packed("f4_e2m1", 4),
    ("complex64", DType::F32, ElementType::Plain(DType::C64)),
    ("complex128", DType::F64, ElementType::Plain(DType::C128)),
];

/// Returns the storage type and the `type` by which generation 1.2 writes an element type; `None`
/// where it is written under its own name.
pub(crate) fn storage_of(dtype: DType) -> Option<(DType, &'static str)> {
    LOGICAL
        .iter()
        .find(|(known, ..)| *known == dtype && *known != DType::Bool)
        .map(|(_, name, stored)| (*stored, *name))
}

/// Format text: Part II, section 4; the most frequent first.
const NAMES: [(DType, &str); 17] = [
    (DType::F32, "f32"),
    (DType::BF16, "bf16"),
    (DType::F16, "f16"),
    (DType::I64, "i64"),
    (DType::U64, "u64"),
    (DType::F64, "f64"),
    (DType::I32, "i32"),
    (DType::I16, "i16"),
    (DType::I8, "i8"),
    (DType::U32, "u32"),
    (DType::U16, "u16"),
    (DType::U8, "u8"),
    (DType::Bool, "bool"),
    (DType::F8E4M3, "f8_e4m3"),
    (DType::F8E5M2, "f8_e5m2"),
    (DType::C64, "complex64"),
    (DType::C128, "complex128"),
];

const LONG_NAMES: [(DType, &str); 13] = [
    (DType::F32, "float32"),
    (DType::BF16, "bfloat16"),
    (DType::F16, "float16"),
    (DType::F64, "float64"),
    (DType::I64, "int64"),
    (DType::I32, "int32"),
    (DType::I16, "int16"),
    (DType::I8, "int8"),
    (DType::U64, "uint64"),
    (DType::U32, "uint32"),
    (DType::U16, "uint16"),
    (DType::U8, "uint8"),
    (DType::Bool, "bool"),
];

/// Element type, its `type` in generation 1.2, and the storage type that stands beside it. The
/// name that is written comes before others of the same element type.
const LOGICAL: [(DType, &str, DType); 6] = [
    (DType::F8E4M3, "f8_e4m3fn", DType::U8),
    (DType::F8E4M3, "f8_e4m3", DType::U8),
    (DType::F8E5M2, "f8_e5m2", DType::U8),
    (DType::C64, "complex64", DType::F32),
    (DType::C128, "complex128", DType::F64),
    (DType::Bool, "bool", DType::U8),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for (dtype, name) in NAMES {
            assert_eq!(StoredType::parse(name), StoredType::Known(dtype));
            assert_eq!(StoredType::Known(dtype).name(), name);
        }
        assert_eq!(StoredType::parse("F32"), StoredType::Unknown("F32".to_owned()));
        assert_eq!(StoredType::parse_long("bfloat16"), StoredType::Known(DType::BF16));
        assert_eq!(StoredType::parse_long("f32"), StoredType::Unknown("f32".to_owned()));
    }

    #[test]
    fn storage_types_lead_back() {
        for dtype in DType::ALL {
            if let Some((storage, name)) = storage_of(dtype) {
                assert_eq!(logical(storage, name), Some(dtype));
            }
        }
        assert_eq!(logical(DType::I32, "complex64"), None);
    }
}
