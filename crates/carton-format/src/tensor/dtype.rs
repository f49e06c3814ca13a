//! The element types that the format stores, and its names for them. Format text: "`carton.toml`".

use std::fmt;

use tensor_core::DType;

/// All of them, in the order of the format text.
pub const STORED: [(DType, &str); 11] = [
    (DType::F32, "float32"),
    (DType::F64, "float64"),
    (DType::Str, "string"),
    (DType::I8, "int8"),
    (DType::I16, "int16"),
    (DType::I32, "int32"),
    (DType::I64, "int64"),
    (DType::U8, "uint8"),
    (DType::U16, "uint16"),
    (DType::U32, "uint32"),
    (DType::U64, "uint64"),
];

/// Returns the format's name of an element type; `None` for those that it does not store.
#[must_use]
pub fn name(dtype: DType) -> Option<&'static str> {
    STORED.iter().find(|(stored, _)| *stored == dtype).map(|(_, name)| *name)
}

/// Returns the element type of a name of the format; `None` for any other text.
#[must_use]
pub fn parse(text: &str) -> Option<DType> {
    STORED.iter().find(|(_, name)| *name == text).map(|(dtype, _)| *dtype)
}

/// Says what is expected where a text is not such a name.
pub(crate) fn expected() -> String {
    format!("one of {}", STORED.map(|(_, name)| name).join(", "))
}

/// An element type as messages about documents show it: by the format's name where it has one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name(pub(crate) DType);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match name(self.0) {
            Some(name) => f.pad(name),
            None => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for (dtype, _) in STORED {
            assert_eq!(parse(&Name(dtype).to_string()), Some(dtype));
        }
        assert_eq!(name(DType::Bool), None);
    }

    #[test]
    fn other_names_are_refused() {
        for text in ["", "Float32", "float16", "bool", "nested", "float32 ", "int"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(
            expected(),
            "one of float32, float64, string, int8, int16, int32, int64, uint8, uint16, uint32, \
             uint64"
        );
    }
}
