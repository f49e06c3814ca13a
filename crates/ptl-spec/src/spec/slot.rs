use std::fmt;

use crate::{Fault, Json};

/// A value that stands in a spec, or the stub of one that the call gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Slot<T> {
    /// The value.
    Value(T),
    /// The name of the parameter, without the dollar sign.
    Stub(String),
}

impl<T> Slot<T> {
    /// Makes the stub of a parameter.
    pub fn stub(name: impl Into<String>) -> Self {
        Self::Stub(name.into())
    }

    /// Returns the value; `None` for a stub.
    pub const fn value(&self) -> Option<&T> {
        if let Self::Value(value) = self { Some(value) } else { None }
    }

    /// Returns the value of a spec whose stubs were replaced.
    pub(crate) fn bound(&self) -> Result<&T, Fault> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Stub(key) => Err(Fault::Unbound { key: key.clone() }),
        }
    }
}

impl<T> From<T> for Slot<T> {
    fn from(value: T) -> Self {
        Self::Value(value)
    }
}

impl<T: fmt::Display> fmt::Display for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Stub(key) => write!(f, "${key}"),
        }
    }
}

/// Returns the name of the parameter that a text stands for. Facts of the format: a stub is a whole
/// text, a dollar sign and the name.
pub(crate) fn stub_of(value: &Json) -> Option<&str> {
    value.as_str()?.strip_prefix('$').filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_texts_are_stubs() {
        assert_eq!(stub_of(&"$width".into()), Some("width"));
        assert_eq!(stub_of(&"$a.b c".into()), Some("a.b c"));
        for text in ["a$x", "$", "", "width"] {
            assert_eq!(stub_of(&text.into()), None, "{text}");
        }
        assert_eq!(stub_of(&Json::Int(1)), None);
    }
}
