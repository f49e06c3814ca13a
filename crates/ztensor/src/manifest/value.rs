use std::fmt;

/// A free-form value of an attribute: any CBOR data item.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `null`, or `undefined`, which means the same here.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number from -2^64 to 2^64 - 1.
    Integer(i128),
    /// A float of any width; written in the shortest that keeps the value.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A list.
    Array(Vec<Self>),
    /// Pairs in the order of the file; keys are unique and may be of any type.
    Map(Vec<(Self, Self)>),
    /// A tagged value.
    Tag(u64, Box<Self>),
}

macro_rules! values {
    ($($from:ty => $variant:ident,)*) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

values! {
    &str => Text,
    String => Text,
    bool => Bool,
    f64 => Float,
    i64 => Integer,
    u64 => Integer,
}

impl fmt::Display for Value {
    /// Writes diagnostic notation (RFC 8949, section 8), with text escaped as in Rust.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = |index| if index == 0 { "" } else { ", " };
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Bytes(bytes) => {
                f.write_str("h'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
            Self::Array(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", separator(index))?;
                }
                f.write_str("]")
            }
            Self::Map(pairs) => {
                f.write_str("{")?;
                for (index, (key, value)) in pairs.iter().enumerate() {
                    write!(f, "{}{key}: {value}", separator(index))?;
                }
                f.write_str("}")
            }
            Self::Tag(tag, value) => write!(f, "{tag}({value})"),
        }
    }
}
