//! What a caller can choose about an entry that is written.

use std::io;

use tensor_core::digest::Algorithm;

use crate::{Method, WriteFault, write::encode::Codec};

/// How an entry is written: as it is, without digest, where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub struct EntryOptions {
    compression: Compression,
    alignment: u32,
    pub(crate) digest: Option<Algorithm>,
    pub(crate) size: Option<u64>,
}

impl EntryOptions {
    /// Sets how the content is compressed; not at all by default.
    #[must_use]
    pub const fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets what the data starts at a multiple of, in bytes from the start of the archive, where it
    /// is stored as it is: a power of two up to 32,768. The default is 1.
    #[must_use]
    pub const fn alignment(mut self, alignment: u32) -> Self {
        self.alignment = alignment;
        self
    }

    /// Sets the algorithm of a digest of the content, which [`Written`](crate::Written) carries.
    #[must_use]
    pub const fn digest(mut self, algorithm: Algorithm) -> Self {
        self.digest = Some(algorithm);
        self
    }

    /// Sets how many bytes the content has; any other number is then an error.
    ///
    /// A stream of unknown size gets headers that hold sizes beyond 4 GiB, which a few readers do
    /// not know.
    #[must_use]
    pub const fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    pub(crate) fn plan(&self) -> Result<Plan, WriteFault> {
        let (codec, is_trial) = self.compression.codec()?;
        Ok(Plan { codec, is_trial, alignment: check_alignment(self.alignment)? })
    }
}

impl Default for EntryOptions {
    fn default() -> Self {
        Self { compression: Compression::Stored, alignment: 1, digest: None, size: None }
    }
}

/// How the content of an entry is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    #[default]
    Stored,
    /// By DEFLATE.
    Deflate {
        /// 1 for speed to 9 for size.
        level: i32,
    },
    /// By zstd, as one frame.
    Zstd {
        /// 1 to 22, or below zero for speed.
        level: i32,
    },
    /// By DEFLATE where that saves a twentieth, and not at all elsewhere.
    ///
    /// Content in memory is compressed whole to find out. Of a stream the first 1 MiB decides: what
    /// is random there and regular later is stored as it is.
    DeflateIfSmaller {
        /// 1 for speed to 9 for size.
        level: i32,
    },
    /// By zstd where that saves a twentieth, decided as for
    /// [`DeflateIfSmaller`](Self::DeflateIfSmaller).
    ZstdIfSmaller {
        /// 1 to 22, or below zero for speed.
        level: i32,
    },
}

impl Compression {
    /// Returns what encodes, and whether it has to prove its worth.
    fn codec(self) -> Result<(Codec, bool), WriteFault> {
        Ok(match self {
            Self::Stored => (Codec::Stored, false),
            Self::Deflate { level } => (Codec::deflate(level)?, false),
            Self::Zstd { level } => (Codec::zstd(level)?, false),
            Self::DeflateIfSmaller { level } => (Codec::deflate(level)?, true),
            Self::ZstdIfSmaller { level } => (Codec::zstd(level)?, true),
        })
    }
}

/// Options that are proved to be ones that can be followed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) codec: Codec,
    /// Whether content that does not get smaller is stored as it is.
    is_trial: bool,
    alignment: u32,
}

impl Plan {
    /// Compresses content that is in memory; `None` where it is stored as it is.
    pub(crate) fn compress(self, content: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let compressed = self.codec.compress(content)?;
        Ok(compressed.filter(|compressed| !self.is_trial || pays(compressed, content)))
    }

    /// Chooses what encodes a stream that starts with a block.
    pub(crate) fn choose(self, first: &[u8]) -> io::Result<Codec> {
        if self.is_trial && self.compress(first)?.is_none() {
            return Ok(Codec::Stored);
        }
        Ok(self.codec)
    }

    /// Returns what data of a method is aligned to.
    pub(crate) fn alignment(self, method: Method) -> u32 {
        if method == Method::Stored { self.alignment } else { 1 }
    }
}

/// Tells whether a twentieth of the bytes is saved.
fn pays(compressed: &[u8], content: &[u8]) -> bool {
    compressed.len().saturating_add(content.len().div_ceil(20)) <= content.len()
}

pub(crate) fn check_alignment(alignment: u32) -> Result<u32, WriteFault> {
    if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
        return Err(WriteFault::Alignment { found: alignment.into() });
    }
    Ok(alignment)
}

/// The largest power of two that leaves room in an extra field, whose length has 16 bits.
const MAX_ALIGNMENT: u32 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignments() {
        for shift in 0..=15 {
            assert_eq!(check_alignment(1 << shift), Ok(1 << shift));
        }
        for found in [0, 3, 65, 32769, 1 << 16, u32::MAX] {
            let fault = WriteFault::Alignment { found: found.into() };
            assert_eq!(check_alignment(found), Err(fault));
        }
    }

    #[cfg(feature = "deflate")]
    #[test]
    fn levels_of_deflate() {
        for level in 1..=9 {
            assert!(Compression::Deflate { level }.codec().is_ok());
        }
        for found in [i32::MIN, -1, 0, 10] {
            let fault = Compression::DeflateIfSmaller { level: found }.codec().unwrap_err();
            assert_eq!(fault, WriteFault::Level { found, expected: "1 to 9" });
        }
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn levels_of_zstd() {
        for level in [-7, 0, 3, 22] {
            assert!(Compression::Zstd { level }.codec().is_ok());
        }
        for found in [i32::MIN, 23] {
            let fault = Compression::ZstdIfSmaller { level: found }.codec().unwrap_err();
            assert_eq!(fault, WriteFault::Level { found, expected: "a level of zstd, at most 22" });
        }
    }

    #[cfg(not(any(feature = "deflate", feature = "zstd")))]
    #[test]
    fn methods_of_other_builds() {
        let fault = |compression: Compression| compression.codec().unwrap_err();
        let deflate = Compression::Deflate { level: 6 };
        assert_eq!(fault(deflate), WriteFault::Method(Method::Deflate));
        let zstd = Compression::ZstdIfSmaller { level: 3 };
        assert_eq!(fault(zstd), WriteFault::Method(Method::Zstd));
    }
}
