//! What a store answers.

use std::{ops::Range, time::SystemTime};

use bytes::{Bytes, BytesMut};

use super::{Error, Result, stats::Counters};

/// Which version of a file it is, as far as a store says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) etag: Option<String>,
    pub(super) modified: Option<SystemTime>,
}

/// Bytes of a file, and how many it has.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) bytes: Bytes,
    /// Those of the whole file.
    pub(super) len: u64,
    pub(super) version: Version,
}

/// The version and length that all answers have to be of.
#[derive(Clone, Debug)]
pub(super) struct Pin {
    pub(super) version: Version,
    pub(super) len: u64,
}

impl Version {
    /// Returns the entity tag that a server may be asked to compare: a weak one matches nothing.
    pub(super) fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| !etag.starts_with("W/"))
    }
}

impl Pin {
    /// Refuses an answer of another version: by its entity tag, or else by its date.
    pub(super) fn check(&self, version: &Version, len: u64) -> Result<()> {
        let is_same = match (&self.version.etag, &version.etag) {
            (Some(pinned), Some(found)) => pinned == found,
            _ => self.version.modified == version.modified,
        };
        if is_same && self.len == len { Ok(()) } else { Err(Error::Changed) }
    }
}

/// Collects a body of so many bytes, which come in pieces.
#[derive(Debug)]
pub(super) struct Body<'a> {
    counters: &'a Counters,
    expected: u64,
    bytes: BytesMut,
}

impl<'a> Body<'a> {
    pub(super) fn new(expected: u64, counters: &'a Counters) -> Self {
        Self { counters, expected, bytes: BytesMut::new() }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<()> {
        self.counters.bytes(bytes.len());
        let found = (self.bytes.len() as u64).saturating_add(bytes.len() as u64);
        if found > self.expected {
            return Err(Error::Length { found, expected: self.expected });
        }
        if self.bytes.is_empty() {
            // Something came: what was announced is worth its memory.
            self.bytes.reserve(usize::try_from(self.expected).unwrap_or_default());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Bytes> {
        let found = self.bytes.len() as u64;
        match found == self.expected {
            true => Ok(self.bytes.freeze()),
            false => Err(Error::Length { found, expected: self.expected }),
        }
    }
}

/// Returns the part of a range that a file of such a length has.
pub(super) fn clipped(range: &Range<u64>, len: u64) -> Range<u64> {
    range.start.min(len)..range.end.min(len)
}
