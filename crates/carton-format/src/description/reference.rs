use std::{fmt, str::FromStr};

use crate::InvalidText;

/// What an input or output of a self test or an example stands for. Format text: "`carton.toml`".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// A tensor, by its name in `tensor_data/index.toml`: `@tensor_data/<name>`.
    Tensor(String),
    /// A file, by its path in `misc/`: `@misc/<path>`.
    Misc(String),
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor(name) => write!(f, "{TENSOR}{name}"),
            Self::Misc(path) => write!(f, "{MISC}{path}"),
        }
    }
}

impl FromStr for Reference {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        if let Some(name) = text.strip_prefix(TENSOR) {
            return Ok(Self::Tensor(name.to_owned()));
        }
        if let Some(path) = text.strip_prefix(MISC) {
            return Ok(Self::Misc(path.to_owned()));
        }
        Err(InvalidText::new(text, "\"@tensor_data/<name>\" or \"@misc/<path>\""))
    }
}

pub(crate) const TENSOR: &str = "@tensor_data/";
pub(crate) const MISC: &str = "@misc/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_read_back() {
        for (text, reference) in [
            ("@tensor_data/a/b c", Reference::Tensor("a/b c".to_owned())),
            ("@misc/sub/x.png", Reference::Misc("sub/x.png".to_owned())),
            ("@misc/@tensor_data/", Reference::Misc("@tensor_data/".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(reference.clone()));
            assert_eq!(reference.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "@", "@...", "misc/x", "@misc", "@Misc/x", " @misc/x", "@tensor_data"] {
            assert_eq!(
                text.parse::<Reference>().unwrap_err().to_string(),
                format!("{text:?} is not \"@tensor_data/<name>\" or \"@misc/<path>\"")
            );
        }
    }
}
