//! Content of entries on its way into the archive: compressed whole, or block by block.

use std::io;
#[cfg(any(feature = "deflate", feature = "zstd"))]
use std::io::Write as _;

use crate::{Method, WriteFault};

/// A method and its level, proved to be in this build.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Codec {
    Stored,
    #[cfg(feature = "deflate")]
    Deflate(flate2::Compression),
    #[cfg(feature = "zstd")]
    Zstd(i32),
}

impl Codec {
    #[cfg(feature = "deflate")]
    pub(crate) fn deflate(level: i32) -> Result<Self, WriteFault> {
        match u32::try_from(level) {
            Ok(level @ 1..=9) => Ok(Self::Deflate(flate2::Compression::new(level))),
            _ => Err(WriteFault::Level { found: level, expected: "1 to 9" }),
        }
    }

    #[cfg(not(feature = "deflate"))]
    pub(crate) const fn deflate(_level: i32) -> Result<Self, WriteFault> {
        Err(WriteFault::Method(Method::Deflate))
    }

    #[cfg(feature = "zstd")]
    pub(crate) fn zstd(level: i32) -> Result<Self, WriteFault> {
        if !zstd::compression_level_range().contains(&level) {
            let expected = "a level of zstd, at most 22";
            return Err(WriteFault::Level { found: level, expected });
        }
        Ok(Self::Zstd(level))
    }

    #[cfg(not(feature = "zstd"))]
    pub(crate) const fn zstd(_level: i32) -> Result<Self, WriteFault> {
        Err(WriteFault::Method(Method::Zstd))
    }

    pub(crate) const fn method(self) -> Method {
        match self {
            Self::Stored => Method::Stored,
            #[cfg(feature = "deflate")]
            Self::Deflate(_) => Method::Deflate,
            #[cfg(feature = "zstd")]
            Self::Zstd(_) => Method::Zstd,
        }
    }

    /// Compresses content that is in memory; `None` where it is stored as it is.
    #[cfg_attr(
        not(any(feature = "deflate", feature = "zstd")),
        expect(unused_variables, clippy::unnecessary_wraps, reason = "nothing is compressed then")
    )]
    pub(crate) fn compress(self, content: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(match self {
            Self::Stored => None,
            #[cfg(feature = "deflate")]
            Self::Deflate(level) => {
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
                encoder.write_all(content)?;
                Some(encoder.finish()?)
            }
            #[cfg(feature = "zstd")]
            Self::Zstd(level) => Some(zstd::bulk::compress(content, level)?),
        })
    }

    /// Returns a size in bytes that content of `size` does not exceed once it is encoded.
    pub(crate) const fn worst(self, size: u64) -> u64 {
        match self {
            Self::Stored => size,
            // Fixed Huffman codes, which fast levels use, have up to 9 bits a byte.
            #[cfg(feature = "deflate")]
            Self::Deflate(_) => size.saturating_add(size / 8).saturating_add(1 << 10),
            #[cfg(feature = "zstd")]
            Self::Zstd(_) => size.saturating_add(size / 8).saturating_add(1 << 10),
        }
    }

    /// Starts to encode content of `size` bytes, where that is known.
    #[cfg_attr(not(feature = "zstd"), expect(unused_variables, reason = "only zstd stores it"))]
    #[cfg_attr(
        not(any(feature = "deflate", feature = "zstd")),
        expect(clippy::unnecessary_wraps, reason = "nothing is compressed then")
    )]
    pub(crate) fn encoder(self, size: Option<u64>) -> io::Result<Encoder> {
        Ok(match self {
            Self::Stored => Encoder::Stored,
            #[cfg(feature = "deflate")]
            Self::Deflate(level) => {
                Encoder::Deflate(flate2::write::DeflateEncoder::new(Vec::new(), level))
            }
            #[cfg(feature = "zstd")]
            Self::Zstd(level) => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), level)?;
                encoder.set_pledged_src_size(size)?;
                Encoder::Zstd(encoder)
            }
        })
    }
}

/// An entry in the making. What it emits depends on the blocks that it is given, so those must not
/// depend on how the content arrives.
pub(crate) enum Encoder {
    Stored,
    #[cfg(feature = "deflate")]
    Deflate(flate2::write::DeflateEncoder<Vec<u8>>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    /// Takes the next block and returns what is to be written of it.
    #[cfg_attr(
        not(any(feature = "deflate", feature = "zstd")),
        expect(clippy::unnecessary_wraps, reason = "nothing is compressed then")
    )]
    pub(crate) fn encode<'b>(&'b mut self, block: &'b [u8]) -> io::Result<&'b [u8]> {
        match self {
            Self::Stored => Ok(block),
            #[cfg(feature = "deflate")]
            Self::Deflate(encoder) => {
                encoder.get_mut().clear();
                encoder.write_all(block)?;
                Ok(encoder.get_ref())
            }
            #[cfg(feature = "zstd")]
            Self::Zstd(encoder) => {
                encoder.get_mut().clear();
                encoder.write_all(block)?;
                Ok(encoder.get_ref())
            }
        }
    }

    /// Ends the entry and returns the rest of what is to be written.
    #[cfg_attr(
        not(any(feature = "deflate", feature = "zstd")),
        expect(clippy::unnecessary_wraps, reason = "nothing is compressed then")
    )]
    pub(crate) fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Stored => Ok(Vec::new()),
            #[cfg(feature = "deflate")]
            Self::Deflate(mut encoder) => {
                encoder.get_mut().clear();
                encoder.finish()
            }
            #[cfg(feature = "zstd")]
            Self::Zstd(mut encoder) => {
                encoder.get_mut().clear();
                encoder.finish()
            }
        }
    }
}
