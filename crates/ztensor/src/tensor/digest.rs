//! The text form of digests in zTensor, and hashing. Facts: the reference writes `crc32c:0x` with 8
//! upper-case digits and `sha256:` with 64 lower-case digits.

#[cfg(not(feature = "digest"))]
pub(crate) use absent::{Algorithm, Digest, Hasher, parse, parse_v2, stored, text};
#[cfg(feature = "digest")]
pub(crate) use present::{Algorithm, Digest, Hasher, parse, parse_v2, stored, text};

/// What the text of a digest says.
#[cfg_attr(not(feature = "digest"), expect(dead_code, reason = "no algorithm is known then"))]
pub(crate) enum DigestText {
    None,
    Known(Algorithm, Digest),
    Unknown,
}

#[cfg(feature = "digest")]
mod present {
    pub(crate) use tensor_core::digest::{Algorithm, Digest, Hasher};
    use tensor_core::{Extent, Result, Source};

    use crate::tensor::digest::DigestText;

    /// Reads the text of a digest; `None` where it names a known algorithm and has no value.
    pub(crate) fn parse(text: &str) -> Option<DigestText> {
        if let Some(digits) = text.strip_prefix("sha256:") {
            let digest = Digest::Sha256(tensor_core::digest::from_hex(digits)?);
            return Some(DigestText::Known(Algorithm::Sha256, digest));
        }
        let digits = text.strip_prefix("crc32c:0x").or_else(|| text.strip_prefix("crc32c:0X"));
        let Some(digits) = digits else {
            return Some(DigestText::Unknown);
        };
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let value = u32::from_str_radix(digits, 16).ok()?;
        Some(DigestText::Known(Algorithm::Crc32c, Digest::Crc32c(value)))
    }

    /// Reads the text of a digest of generation 2, which opening has found to be one; `None` where it
    /// is too long or too short for its algorithm.
    pub(crate) fn parse_v2(text: &str) -> Option<DigestText> {
        match text.split_once(':') {
            Some(("sha256" | "xxh3", _)) => {
                let digest: Digest = text.parse().ok()?;
                Some(DigestText::Known(digest.algorithm(), digest))
            }
            _ => Some(DigestText::Unknown),
        }
    }

    /// Writes a digest as the reference does.
    pub(crate) fn text(digest: Digest) -> String {
        match digest {
            Digest::Crc32c(value) => format!("crc32c:0x{value:08X}"),
            other => other.to_string(),
        }
    }

    pub(crate) fn stored(source: &Source, extent: Extent, algorithm: Algorithm) -> Result<Digest> {
        tensor_core::digest::digest(source, extent, algorithm, "component")
    }
}

/// Stands in where hashing is left out of the build: every algorithm is unknown.
#[cfg(not(feature = "digest"))]
mod absent {
    use tensor_core::{Extent, Result, Source};

    use crate::tensor::digest::DigestText;

    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Digest;

    #[derive(Clone, Copy)]
    pub(crate) struct Algorithm;

    pub(crate) struct Hasher;

    impl Hasher {
        pub(crate) fn new(_algorithm: Algorithm) -> Self {
            Self
        }

        pub(crate) fn update(&mut self, _bytes: &[u8]) {}

        pub(crate) fn finish(self) -> Digest {
            Digest
        }
    }

    pub(crate) fn parse(_text: &str) -> Option<DigestText> {
        Some(DigestText::Unknown)
    }

    pub(crate) fn parse_v2(_text: &str) -> Option<DigestText> {
        Some(DigestText::Unknown)
    }

    pub(crate) fn text(_digest: Digest) -> String {
        String::new()
    }

    pub(crate) fn stored(_: &Source, _: Extent, _algorithm: Algorithm) -> Result<Digest> {
        Ok(Digest)
    }
}
