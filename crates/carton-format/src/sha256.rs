use std::{fmt, str::FromStr};

use tensor_core::digest::{self, Algorithm, Digest};

use crate::InvalidText;

/// A SHA-256, written as 64 lower-case hex digits.
///
/// Unlike [`Digest`] it cannot be of another algorithm, which no document of the format could say,
/// and it is sorted, as the keys of `LINKS` are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// Returns the digest of bytes in memory.
    #[must_use]
    pub fn digest(bytes: &[u8]) -> Self {
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
}

impl FromStr for Sha256 {
    type Err = InvalidText;

    /// Reads 64 hex digits of either case.
    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let parsed = digest::from_hex(text).map(Self);
        parsed.ok_or_else(|| InvalidText::new(text, "64 hex digits"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_back() {
        let sha256 = Sha256::digest(b"abc");
        assert_eq!(sha256.to_string().parse(), Ok(sha256));
        assert_eq!(sha256.to_string().to_uppercase().parse(), Ok(sha256));
        for text in ["", "ab", &"g".repeat(64), &"0".repeat(63), &"0".repeat(66)] {
            let message = format!("{text:?} is not 64 hex digits");
            assert_eq!(text.parse::<Sha256>().unwrap_err().to_string(), message);
        }
    }
}
