//! Element types: the four that a `.rten` file has, and the six that they become in ONNX.

use std::fmt;

use tensor_core::DType;

use crate::DataType;

/// What the elements of a value are as far as RTen tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Float,
    Int8,
    UInt8,
    /// `Int32` of the format, which is one of the bool, 32-bit and 64-bit integers of ONNX.
    Int,
}

impl Kind {
    pub(crate) const fn of(dtype: DataType) -> Option<Self> {
        match dtype {
            DataType::Int32 => Some(Self::Int),
            DataType::Float => Some(Self::Float),
            DataType::Int8 => Some(Self::Int8),
            DataType::UInt8 => Some(Self::UInt8),
            DataType::Unknown(_) => None,
        }
    }

    /// Returns what a constant holds: `info` of a tensor gives no other element types.
    pub(crate) const fn of_constant(dtype: DType) -> Self {
        match dtype {
            DType::F32 => Self::Float,
            DType::I8 => Self::Int8,
            DType::U8 => Self::UInt8,
            _ => Self::Int,
        }
    }

    /// Returns the element type that has room for everything of this kind.
    pub(crate) const fn widest(self) -> Element {
        match self {
            Self::Float => Element::Float,
            Self::Int8 => Element::Int8,
            Self::UInt8 => Element::UInt8,
            Self::Int => Element::Int64,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Float => "Float",
            Self::Int8 => "Int8",
            Self::UInt8 => "UInt8",
            Self::Int => "Int32",
        })
    }
}

/// An element type of ONNX; the number is that of `TensorProto.DataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Element {
    Float = 1,
    UInt8 = 2,
    Int8 = 3,
    Int32 = 6,
    Int64 = 7,
    Bool = 9,
}

impl Element {
    /// Returns what an element type of the other formats is.
    pub(crate) const fn of(dtype: DType) -> Option<Self> {
        Some(match dtype {
            DType::F32 => Self::Float,
            DType::U8 => Self::UInt8,
            DType::I8 => Self::Int8,
            DType::I32 => Self::Int32,
            DType::I64 => Self::Int64,
            DType::Bool => Self::Bool,
            _ => return None,
        })
    }

    /// Returns its name in ONNX.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Float => "FLOAT",
            Self::UInt8 => "UINT8",
            Self::Int8 => "INT8",
            Self::Int32 => "INT32",
            Self::Int64 => "INT64",
            Self::Bool => "BOOL",
        }
    }

    pub(crate) const fn code(self) -> i32 {
        self as i32
    }

    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Float => Kind::Float,
            Self::UInt8 => Kind::UInt8,
            Self::Int8 => Kind::Int8,
            Self::Int32 | Self::Int64 | Self::Bool => Kind::Int,
        }
    }

    /// Returns the bytes of one element.
    pub(crate) const fn width(self) -> u64 {
        match self {
            Self::Float | Self::Int32 => 4,
            Self::Int64 => 8,
            Self::UInt8 | Self::Int8 | Self::Bool => 1,
        }
    }

    /// Returns what a value that is cast to this type is called by.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::UInt8 => "uint8",
            Self::Int8 => "int8",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Bool => "bool",
        }
    }
}

/// Element types that something takes, those of one kind in the order in which they are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elements(pub(crate) &'static [Element]);

impl Elements {
    /// Returns what inputs of these types, all of one kind, have to be cast to; `None` where their
    /// kind is not taken at all.
    pub(crate) fn join(self, found: &[Element], kind: Kind) -> Option<Element> {
        let (first, rest) = found.split_first().map_or((None, found), |(f, r)| (Some(*f), r));
        let agreed = first.filter(|first| rest.iter().all(|other| other == first));
        agreed.filter(|element| self.0.contains(element)).or_else(|| self.preferred(kind))
    }

    /// Returns the kind of all of them, where they are of one.
    pub(crate) fn only(self) -> Option<Kind> {
        let (first, rest) = self.0.split_first()?;
        let is_same = rest.iter().all(|other| other.kind() == first.kind());
        is_same.then(|| first.kind())
    }

    /// Returns the first element type of a kind.
    pub(crate) fn preferred(self, kind: Kind) -> Option<Element> {
        self.0.iter().copied().find(|element| element.kind() == kind)
    }
}

impl fmt::Display for Elements {
    /// Writes the kinds, once each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds: Vec<String> = Vec::new();
        for kind in self.0.iter().map(|element| element.kind().to_string()) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        f.write_str(&kinds.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: Elements = Elements(&[Element::Float, Element::Int64, Element::Int32]);

    #[test]
    fn equal_types_that_are_taken_stay() {
        let join = |found: &[Element]| NUMBERS.join(found, Kind::Int);
        assert_eq!(join(&[Element::Int32, Element::Int32]), Some(Element::Int32));
        assert_eq!(join(&[Element::Int64]), Some(Element::Int64));
    }

    #[test]
    fn other_types_become_the_preferred_one() {
        let join = |found: &[Element]| NUMBERS.join(found, Kind::Int);
        assert_eq!(join(&[Element::Int32, Element::Int64]), Some(Element::Int64));
        assert_eq!(join(&[Element::Bool, Element::Bool]), Some(Element::Int64));
        assert_eq!(join(&[]), Some(Element::Int64));
        assert_eq!(NUMBERS.join(&[Element::Int8], Kind::Int8), None);
    }

    #[test]
    fn one_kind_is_told_from_several() {
        assert_eq!(NUMBERS.only(), None);
        assert_eq!(Elements(&[Element::Int64, Element::Bool]).only(), Some(Kind::Int));
    }

    #[test]
    fn kinds_are_listed_once() {
        assert_eq!(NUMBERS.to_string(), "Float, Int32");
    }
}
