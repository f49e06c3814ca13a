use std::{fmt, str::FromStr};

use tensor_core::digest::{self, Algorithm, Digest};

/// A SHA-256, written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// Returns the digest of bytes in memory.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_digest(Algorithm::Sha256.digest(bytes))
    }

    /// Takes what a hasher of [`Algorithm::Sha256`] returned.
    pub(crate) const fn from_digest(digest: Digest) -> Self {
        match digest {
            Digest::Sha256(bytes) => Self(bytes),
            // Hashers return digests of the algorithm that they were made with.
            _ => Self([0; 32]),
        }
    }

    /// Tells whether a text is a digest, and whether it is written with small letters only.
    pub(crate) fn parse(text: &str) -> Option<(Self, Case)> {
        let bytes = digest::from_hex(text)?;
        let is_lower = !text.bytes().any(|digit| digit.is_ascii_uppercase());
        Some((Self(bytes), if is_lower { Case::Lower } else { Case::Upper }))
    }
}

/// How the hex digits of a digest are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Lower,
    Upper,
}

impl FromStr for Sha256 {
    type Err = ParseSha256Error;

    /// Reads 64 hex digits of either case.
    fn from_str(text: &str) -> Result<Self, ParseSha256Error> {
        let parsed = Self::parse(text).map(|(sha256, _)| sha256);
        parsed.ok_or_else(|| ParseSha256Error { found: text.to_owned() })
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("digest is {found:?}, expected 64 hex digits")]
pub struct ParseSha256Error {
    /// The text.
    pub found: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_back() {
        let sha256 = Sha256::of(b"abc");
        assert_eq!(sha256.to_string().parse(), Ok(sha256));
        assert_eq!(sha256.to_string().to_uppercase().parse(), Ok(sha256));
        for text in ["", "ab", &"g".repeat(64), &"0".repeat(63), &"0".repeat(66)] {
            assert!(text.parse::<Sha256>().is_err(), "{text:?}");
        }
    }
}
