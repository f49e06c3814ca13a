//! Blobs of generation 2 that are written once, whatever the number of parts that hold their bytes.

use std::{
    collections::{HashMap, HashSet},
    io::{self, Read as _, Seek as _, Write},
};

use bytes::Bytes;
use tempfile::SpooledTempFile;
use tensor_core::Extent;

use super::codec::Sink;
use crate::{
    error::{Error, Result},
    v2::container::hash,
};

/// Reads what was written to a sink.
pub(crate) type ReadBack<W> = fn(&mut W, Extent) -> Result<Bytes>;

/// How blobs that hold the same bytes are told from others of the same length and hash.
#[derive(Clone, Copy)]
pub(crate) enum Sharing<W> {
    /// Not at all: each part has a blob of its own.
    Off,
    /// By the bytes, which are read back.
    Bytes(ReadBack<W>),
    /// By their SHA-256, where a sink cannot be read.
    Digest,
}

/// The blobs that were written.
#[derive(Debug, Default)]
pub(crate) struct Blobs {
    /// By length and XXH3.
    known: HashMap<(u64, u64), Vec<Known>>,
    /// The XXH3 of what long ones start with.
    starts: HashSet<u64>,
}

#[derive(Debug)]
struct Known {
    offset: u64,
    sha256: Option<[u8; 32]>,
}

/// The bytes of a part, none of which are written before they prove to be others than those of any
/// blob that is there, or until all of them were taken.
pub(crate) struct Pending<'o, W: Write> {
    out: &'o mut Sink<W>,
    blobs: &'o mut Blobs,
    sharing: Sharing<W>,
    alignment: u64,
    /// What was taken, and not written: what a part starts with, and then all of it.
    buffer: Vec<u8>,
    held: Option<SpooledTempFile>,
    /// Where it is written, once it is.
    offset: Option<u64>,
    hashes: Hashes,
    length: u64,
    start: Option<u64>,
}

/// What is computed over all bytes.
pub(crate) struct Hashes {
    xxh3: twox_hash::xxhash3_64::Hasher,
    #[cfg(feature = "digest")]
    sha256: Option<tensor_core::digest::Hasher>,
}

impl Hashes {
    /// Starts with no bytes.
    pub(crate) fn new(with_sha256: bool) -> Self {
        #[cfg(not(feature = "digest"))]
        let _ = with_sha256;
        Self {
            xxh3: twox_hash::xxhash3_64::Hasher::new(),
            #[cfg(feature = "digest")]
            sha256: with_sha256
                .then(|| tensor_core::digest::Hasher::new(tensor_core::digest::Algorithm::Sha256)),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        std::hash::Hasher::write(&mut self.xxh3, bytes);
        #[cfg(feature = "digest")]
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(bytes);
        }
    }

    fn finish(self) -> (u64, Option<[u8; 32]>) {
        #[cfg(feature = "digest")]
        let sha256 = match self.sha256.map(tensor_core::digest::Hasher::finish) {
            Some(tensor_core::digest::Digest::Sha256(bytes)) => Some(bytes),
            _ => None,
        };
        #[cfg(not(feature = "digest"))]
        let sha256 = None;
        (std::hash::Hasher::finish(&self.xxh3), sha256)
    }
}

/// Where the bytes of a part are, and their digest.
pub(crate) struct Placed {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) digest: String,
}

impl<'o, W: Write> Pending<'o, W> {
    pub(crate) fn new(
        out: &'o mut Sink<W>,
        blobs: &'o mut Blobs,
        sharing: Sharing<W>,
        alignment: u64,
        wants_sha256: bool,
    ) -> Self {
        let hashes = Hashes::new(wants_sha256 || matches!(sharing, Sharing::Digest));
        let (buffer, held, offset, start) = (Vec::new(), None, None, None);
        Self { out, blobs, sharing, alignment, buffer, held, offset, hashes, length: 0, start }
    }

    pub(crate) const fn position(&self) -> u64 {
        self.out.position
    }

    /// Takes all bytes of the part at once, which are not copied.
    pub(crate) fn whole(mut self, bytes: &[u8], wants_sha256: bool) -> Result<Placed> {
        self.hashes.update(bytes);
        self.length = bytes.len() as u64;
        self.start = bytes.get(..START).map(hash);
        self.end(Rest::Memory(bytes), wants_sha256)
    }

    /// Ends the part.
    pub(crate) fn finish(mut self, wants_sha256: bool) -> Result<Placed> {
        let (held, buffer) = (self.held.take(), std::mem::take(&mut self.buffer));
        self.end(held.map_or(Rest::Memory(&buffer), Rest::Held), wants_sha256)
    }

    fn end(mut self, mut rest: Rest<'_>, wants_sha256: bool) -> Result<Placed> {
        let hashes = std::mem::replace(&mut self.hashes, Hashes::new(false));
        let (xxh3, sha256) = hashes.finish();
        let offset = match self.offset {
            // All of it is written.
            Some(offset) => offset,
            None => match self.find(&mut rest, xxh3, sha256)? {
                Some(offset) => return Ok(self.placed(offset, xxh3, sha256, wants_sha256)),
                None => {
                    let offset = self.out.align(self.alignment)?;
                    rest.each(|piece| self.out.put(piece).map(|()| true))?;
                    offset
                }
            },
        };
        if !matches!(self.sharing, Sharing::Off) {
            let known = self.blobs.known.entry((self.length, xxh3)).or_default();
            known.push(Known { offset, sha256 });
            self.blobs.starts.extend(self.start);
        }
        Ok(self.placed(offset, xxh3, sha256, wants_sha256))
    }

    fn placed(self, offset: u64, xxh3: u64, sha256: Option<[u8; 32]>, wants: bool) -> Placed {
        let digest = match sha256.filter(|_| wants) {
            Some(bytes) => {
                let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
                format!("sha256:{}", digits.collect::<String>())
            }
            None => format!("xxh3:{xxh3:016x}"),
        };
        Placed { offset, length: self.length, digest }
    }

    /// Returns where a blob is that holds the same bytes.
    fn find(
        &mut self,
        rest: &mut Rest<'_>,
        xxh3: u64,
        sha256: Option<[u8; 32]>,
    ) -> Result<Option<u64>> {
        let Some(known) = self.blobs.known.get(&(self.length, xxh3)) else { return Ok(None) };
        for blob in known {
            let is_same = match self.sharing {
                Sharing::Off => false,
                Sharing::Digest => blob.sha256.is_some() && blob.sha256 == sha256,
                Sharing::Bytes(read_back) => {
                    holds(&mut self.out.sink, read_back, blob.offset, rest)?
                }
            };
            if is_same {
                return Ok(Some(blob.offset));
            }
        }
        Ok(None)
    }
}

/// All bytes of a part that are not written yet.
enum Rest<'b> {
    Memory(&'b [u8]),
    Held(SpooledTempFile),
}

impl Rest<'_> {
    /// Shows the bytes piece by piece as long as `show` wants more; tells whether it saw all.
    fn each(&mut self, mut show: impl FnMut(&[u8]) -> Result<bool>) -> Result<bool> {
        let held = match self {
            Self::Memory(bytes) => {
                for piece in bytes.chunks(PIECE) {
                    if !show(piece)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            Self::Held(held) => held,
        };
        held.rewind().map_err(not_held)?;
        let mut piece = Vec::new();
        loop {
            piece.clear();
            held.take(PIECE as u64).read_to_end(&mut piece).map_err(not_held)?;
            if piece.is_empty() {
                return Ok(true);
            }
            if !show(&piece)? {
                return Ok(false);
            }
        }
    }
}

fn not_held(source: io::Error) -> Error {
    tensor_core::Error::Read { what: "part that is held back", offset: 0, source }.into()
}

/// Tells whether a sink holds some bytes at an offset.
fn holds<W>(
    sink: &mut W,
    read_back: ReadBack<W>,
    offset: u64,
    bytes: &mut Rest<'_>,
) -> Result<bool> {
    let mut at = offset;
    bytes.each(|piece| {
        let extent = Extent::new(at, piece.len() as u64)?;
        at = extent.end();
        Ok(read_back(sink, extent)? == piece)
    })
}

impl<W: Write> Write for Pending<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let failed = |error: Error| io::Error::other(error);
        self.hashes.update(bytes);
        self.length = self.length.saturating_add(bytes.len() as u64);
        if self.offset.is_some() {
            self.out.put(bytes).map_err(failed)?;
            return Ok(bytes.len());
        }
        if let Some(held) = &mut self.held {
            held.write_all(bytes)?;
            return Ok(bytes.len());
        }
        self.buffer.extend_from_slice(bytes);
        if let Some(start) = self.buffer.get(..START) {
            let (start, buffer) = (hash(start), std::mem::take(&mut self.buffer));
            self.start = Some(start);
            if self.blobs.starts.contains(&start) {
                let mut held = SpooledTempFile::new(HELD);
                held.write_all(&buffer)?;
                self.held = Some(held);
            } else {
                // What no blob starts with is in none.
                self.offset = Some(self.out.align(self.alignment).map_err(failed)?);
                self.out.put(&buffer).map_err(failed)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is looked at before a part is written as it comes.
const START: usize = 64 << 10;
/// How much of a part is held back in memory; what is more goes into a temporary file.
const HELD: usize = 16 << 20;
/// How much is read back at once.
const PIECE: usize = 1 << 20;
