//! The decoded bytes of one component, one piece after another.

use std::io::{self, BufRead, Read};

use tensor_core::{Error as Core, Limit, SourceReader};

use super::digest;
#[cfg(feature = "zstd")]
use super::seekable::Frames;
use crate::{
    Fault, Role,
    error::{Decoded, Error},
};

/// How many bytes a component holds after decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Len {
    /// Exactly so many.
    Exactly(u64),
    /// Unknown before it is decoded, but no more than its object has use for.
    Within(u64),
    /// Unknown before it is decoded, but no more than a limit of the caller allows.
    AtMost(u64),
}

/// A stream of the decoded bytes of a component, made by [`Blob::stream`](crate::Blob::stream).
pub struct BlobReader {
    pub(super) decoder: Decoder,
    pub(super) len: Len,
    pub(super) decoded: u64,
    pub(super) offset: u64,
    pub(super) fault: (String, Role),
    /// What hashes the decoded bytes, where the digest is over these and they are not as stored.
    pub(super) hasher: Option<digest::Hasher>,
}

pub(super) enum Decoder {
    Raw(StoredReader),
    Swapped {
        stored: StoredReader,
        width: usize,
        ready: Vec<u8>,
        at: usize,
    },
    #[cfg(feature = "zstd")]
    Zstd(zstd::stream::read::Decoder<'static, StoredReader>),
    #[cfg(feature = "zstd")]
    Frames(Box<Frames>),
}

/// The stored bytes, hashed on the way where there is a digest to compare.
pub(super) struct StoredReader {
    pub(super) inner: SourceReader,
    pub(super) hasher: Option<digest::Hasher>,
}

impl BlobReader {
    /// Gives up the stream for the digest that it computes, once all of it was read.
    pub(super) fn into_hasher(self) -> Option<digest::Hasher> {
        if self.hasher.is_some() {
            return self.hasher;
        }
        match self.decoder {
            Decoder::Raw(stored) | Decoder::Swapped { stored, .. } => stored.hasher,
            #[cfg(feature = "zstd")]
            Decoder::Zstd(decoder) => decoder.finish().hasher,
            #[cfg(feature = "zstd")]
            Decoder::Frames(_) => None,
        }
    }

    /// Shows all that is left, piece by piece: in place where it is stored raw.
    pub(crate) fn visit(&mut self, mut show: impl FnMut(&[u8])) -> io::Result<()> {
        if let Decoder::Raw(stored) = &mut self.decoder {
            // The length was proved when the stream was opened.
            loop {
                let ready = stored.fill_buf()?;
                let piece = ready.get(..SCRATCH).unwrap_or(ready);
                if piece.is_empty() {
                    return Ok(());
                }
                show(piece);
                let shown = piece.len();
                self.decoded = self.decoded.saturating_add(shown as u64);
                stored.consume(shown);
            }
        }
        let mut scratch = vec![0; self.scratch()];
        loop {
            match self.read(&mut scratch)? {
                0 => return Ok(()),
                read => show(scratch.get(..read).unwrap_or_default()),
            }
        }
    }

    /// Fills a buffer as far as there are bytes; returns how many it took.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0_usize;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read(rest)? {
                0 => break,
                read => filled = filled.saturating_add(read),
            }
        }
        Ok(filled)
    }

    /// Returns how many bytes are worth decoding at once.
    fn scratch(&self) -> usize {
        let (Len::Exactly(len) | Len::Within(len) | Len::AtMost(len)) = self.len;
        usize::try_from(len).unwrap_or(SCRATCH).clamp(1, SCRATCH)
    }

    /// Makes the error of a stream that does not end where it should.
    fn wrong_length(&self, found: Decoded, expected: u64) -> io::Error {
        let (object, role) = self.fault.clone();
        let fault = Fault::DecodedLength { offset: self.offset, found, expected };
        io::Error::new(
            io::ErrorKind::InvalidData,
            Error::Component { object, role, fault: Box::new(fault) },
        )
    }
}

impl Read for BlobReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        // One byte more than is left is room enough to see that there is more.
        let (Len::Exactly(len) | Len::Within(len) | Len::AtMost(len)) = self.len;
        let room = len.saturating_sub(self.decoded).saturating_add(1);
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(out.len());
        let read = self.decoder.read(out.get_mut(..room).unwrap_or_default())?;
        self.decoded = self.decoded.saturating_add(read as u64);
        if let Some(hasher) = &mut self.hasher {
            hasher.update(out.get(..read).unwrap_or_default());
        }
        match self.len {
            Len::Exactly(expected) | Len::Within(expected) if self.decoded > expected => {
                Err(self.wrong_length(Decoded::MoreThan(expected), expected))
            }
            Len::Exactly(expected) if read == 0 && self.decoded < expected => {
                Err(self.wrong_length(Decoded::Exactly(self.decoded), expected))
            }
            Len::AtMost(limit) if self.decoded > limit => {
                let (object, role) = self.fault.clone();
                let (what, field) = ("decoded size in bytes", Limit::DecodedBytes.name());
                let reason = Core::OverLimit { what, found: self.decoded, limit, field };
                let fault = Fault::Read { reason };
                let error = Error::Component { object, role, fault: Box::new(fault) };
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
            _ => Ok(read),
        }
    }
}

impl Read for Decoder {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Raw(stored) => stored.read(out),
            Self::Swapped { stored, width, ready, at } => {
                if *at >= ready.len() {
                    // A whole number of elements, unless the stream ends: its length was checked.
                    ready.clear();
                    let whole = SCRATCH.next_multiple_of((*width).max(1)) as u64;
                    stored.take(whole).read_to_end(ready)?;
                    ready.chunks_mut((*width).max(1)).for_each(<[u8]>::reverse);
                    *at = 0;
                }
                let read = ready.get(*at..).unwrap_or_default().read(out)?;
                *at = at.saturating_add(read);
                Ok(read)
            }
            #[cfg(feature = "zstd")]
            Self::Zstd(decoder) => decoder.read(out),
            #[cfg(feature = "zstd")]
            Self::Frames(frames) => frames.read(out),
        }
    }
}

impl BufRead for StoredReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Some(hasher) = &mut self.hasher
            && let Ok(ready) = self.inner.fill_buf()
        {
            // What is consumed was just offered, so nothing is read here.
            hasher.update(ready.get(..amount).unwrap_or_default());
        }
        self.inner.consume(amount);
    }
}

impl Read for StoredReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(out.get(..read).unwrap_or_default());
        }
        Ok(read)
    }
}

/// What is decoded at once: it stays in the cache of one core.
const SCRATCH: usize = 128 << 10;
