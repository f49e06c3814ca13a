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

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value.into())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Integer(value.into())
    }
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
