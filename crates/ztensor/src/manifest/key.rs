use std::fmt::Write as _;

use bytes::Bytes;

/// A key that the format does not name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Its text; of what is not text the encoded bytes in hex, as far as they are worth showing.
    name: String,
    /// As it is encoded, where it is not text: in generation 2 only.
    encoded: Option<Bytes>,
}

impl Key {
    /// Takes an encoded key that is not text.
    pub(crate) fn not_text(encoded: Bytes) -> Self {
        let mut name = "h'".to_owned();
        for byte in encoded.iter().take(SHOWN) {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        name.push_str(if encoded.len() > SHOWN { "…'" } else { "'" });
        Self { name, encoded: Some(encoded) }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.name
    }

    /// Returns the bytes of a key that is not text.
    pub(crate) const fn encoded(&self) -> Option<&Bytes> {
        self.encoded.as_ref()
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self { name: text.to_owned(), encoded: None }
    }
}

/// How many bytes of a key are shown that is not text.
const SHOWN: usize = 16;
