//! What a store answers.

use std::{
    future::Future,
    ops::Range,
    time::{Duration, SystemTime},
};

use bytes::{Bytes, BytesMut};

use tokio::time::{Instant, timeout_at};

use super::{Error, Result, options::RATE, stats::Counters};

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
    /// Refuses an answer of another version: by its entity tag, or else by its date, and by its length.
    /// One that has lost what it is told by proves nothing.
    pub(super) fn check(&self, version: &Version, len: u64) -> Result<()> {
        let pinned = &self.version;
        let is_same = match (&pinned.etag, &version.etag) {
            (Some(pinned), Some(found)) => pinned == found,
            (Some(_), None) => return Err(Error::Unproved { what: "entity tag" }),
            (None, found) => match (pinned.modified, version.modified) {
                (Some(_), None) => return Err(Error::Unproved { what: "time of change" }),
                (None, None) => found.is_none(),
                (pinned, found) => pinned == found,
            },
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

/// Waits for the pieces of an answer, as long as some come, and in all bring [`RATE`].
#[derive(Debug)]
pub(super) struct Pace {
    began: Instant,
    /// How long nothing may come.
    patience: Duration,
    came: u64,
}

impl Pace {
    pub(super) fn new(patience: Duration) -> Self {
        Self { began: Instant::now(), patience, came: 0 }
    }

    /// Waits for the next piece, or for the head of the answer.
    pub(super) async fn next<T>(&self, piece: impl Future<Output = T>) -> Result<T> {
        let earned = Duration::from_millis(self.came.saturating_mul(1000) / RATE);
        let allowed = self.patience.saturating_add(earned);
        let end = self.began.checked_add(allowed).unwrap_or(self.began);
        let late = |_| Error::Timeout { seconds: self.patience.as_secs() };
        timeout_at(end, piece).await.map_err(late)
    }

    /// Counts what came.
    pub(super) const fn add(&mut self, bytes: usize) {
        self.came = self.came.saturating_add(bytes as u64);
    }
}

/// Returns the part of a range that a file of such a length has.
pub(super) fn clipped(range: &Range<u64>, len: u64) -> Range<u64> {
    range.start.min(len)..range.end.min(len)
}
