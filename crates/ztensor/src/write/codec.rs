//! How the bytes of a component go into the file: encoded, hashed, counted.

#[cfg(feature = "zstd")]
use std::num::NonZeroU64;
use std::{
    io::{self, Write},
    num::NonZeroUsize,
};

use tensor_core::Error as Core;
#[cfg(feature = "zstd")]
use tensor_core::parallel;

use super::{
    Compression, Storage, Version,
    share::{Pending, Placed},
};
#[cfg(feature = "zstd")]
use crate::tensor::seekable::{SEEKABLE, SKIPPABLE};
use crate::{
    container::MAGIC,
    error::{Error, Result},
    tensor::digest,
    v2,
};

/// How the bytes of a component go into the file.
pub(crate) enum Codec<'o, W: Write> {
    Raw(StoredWriter<'o, W>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::stream::write::Encoder<'static, StoredWriter<'o, W>>),
    #[cfg(feature = "zstd")]
    Frames(FrameWriter<'o, W>),
    /// Of generation 2, and shared with others of the same bytes; by SHA-256, or else by XXH3.
    Shared(Box<Pending<'o, W>>, bool),
}

/// Where a component is, and its digest.
pub(crate) struct Stored {
    /// Where it is, where that is known only now.
    pub(crate) offset: Option<u64>,
    pub(crate) length: u64,
    pub(crate) digest: Option<String>,
}

impl<'o, W: Write> Codec<'o, W> {
    #[cfg_attr(
        not(feature = "zstd"),
        expect(unused_variables, clippy::unnecessary_wraps, reason = "nothing is compressed then")
    )]
    pub(crate) fn new(
        out: &'o mut Sink<W>,
        storage: &Storage,
        version: Version,
        threads: NonZeroUsize,
    ) -> Result<Self> {
        let is_v2 = version == Version::V2;
        let hasher = if is_v2 { storage.hasher_v2() } else { storage.hasher() };
        #[cfg(feature = "zstd")]
        let offset = out.position;
        #[cfg(feature = "zstd")]
        if let (true, Compression::Zstd { level, frame }) = (is_v2, storage.compression) {
            let frame = frame.map_or(FRAME, NonZeroU64::get);
            let frame = usize::try_from(frame).unwrap_or(usize::MAX);
            let stored = StoredWriter { out, hasher: None, length: 0 };
            let table = Some(Table { frames: Vec::new(), hasher });
            let buffer = Vec::new();
            return Ok(Self::Frames(FrameWriter { stored, level, frame, threads, buffer, table }));
        }
        let stored = StoredWriter { out, hasher, length: 0 };
        Ok(match storage.compression {
            Compression::None => Self::Raw(stored),
            #[cfg(feature = "zstd")]
            Compression::Zstd { level, frame: None } => {
                let encoder = zstd::stream::write::Encoder::new(stored, level);
                Self::Zstd(encoder.map_err(|source| Error::Write { offset, source })?)
            }
            #[cfg(feature = "zstd")]
            Compression::Zstd { level, frame: Some(frame) } => {
                let frame = usize::try_from(frame.get()).unwrap_or(usize::MAX);
                let (buffer, table) = (Vec::new(), None);
                Self::Frames(FrameWriter { stored, level, frame, threads, buffer, table })
            }
        })
    }

    /// Returns how far into the file the stored bytes have come.
    pub(crate) fn position(&self) -> u64 {
        match self {
            Self::Raw(stored) => stored.out.position,
            #[cfg(feature = "zstd")]
            Self::Zstd(encoder) => encoder.get_ref().out.position,
            #[cfg(feature = "zstd")]
            Self::Frames(frames) => frames.stored.out.position,
            Self::Shared(pending, _) => pending.position(),
        }
    }

    pub(crate) fn is_encoded(&self) -> bool {
        !matches!(self, Self::Raw(_) | Self::Shared(..))
    }

    /// Ends the component.
    pub(crate) fn finish(self) -> Result<Stored> {
        let stored = match self {
            Self::Shared(pending, wants_sha256) => {
                return pending.finish(wants_sha256).map(Stored::from);
            }
            Self::Raw(stored) => stored,
            #[cfg(feature = "zstd")]
            Self::Zstd(encoder) => encoder.try_finish().map_err(|(encoder, source)| {
                Error::Write { offset: encoder.get_ref().out.position, source }
            })?,
            #[cfg(feature = "zstd")]
            Self::Frames(mut frames) => match frames.finish() {
                Ok(()) => {
                    if let Some(table) = frames.table {
                        frames.stored.hasher = table.hasher;
                    }
                    frames.stored
                }
                Err(source) => {
                    return Err(Error::Write { offset: frames.stored.out.position, source });
                }
            },
        };
        let digest = stored.hasher.map(|hasher| digest::text(hasher.finish()));
        Ok(Stored { offset: None, length: stored.length, digest })
    }
}

impl From<Placed> for Stored {
    fn from(Placed { offset, length, digest }: Placed) -> Self {
        Self { offset: Some(offset), length, digest: Some(digest) }
    }
}

impl<W: Write> Write for Codec<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Raw(stored) => stored.write(bytes),
            #[cfg(feature = "zstd")]
            Self::Zstd(encoder) => encoder.write(bytes),
            #[cfg(feature = "zstd")]
            Self::Frames(frames) => frames.write(bytes),
            Self::Shared(pending, _) => pending.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compresses pieces of one size, each into a zstd frame of its own, several at once.
#[cfg(feature = "zstd")]
pub(crate) struct FrameWriter<'o, W: Write> {
    stored: StoredWriter<'o, W>,
    level: i32,
    /// Decoded bytes of a frame; the last one may be shorter.
    frame: usize,
    threads: NonZeroUsize,
    buffer: Vec<u8>,
    /// What generation 2 writes behind the frames.
    table: Option<Table>,
}

/// The lengths of frames, stored and decoded, and what hashes the decoded bytes.
#[cfg(feature = "zstd")]
struct Table {
    frames: Vec<[u32; 2]>,
    hasher: Option<digest::Hasher>,
}

#[cfg(feature = "zstd")]
impl Table {
    /// Encodes the table as [`Frames`](crate::tensor::seekable::Frames) reads it.
    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let too_long = |_| io::Error::other("a part has more frames than a table can list");
        let count = u32::try_from(self.frames.len()).map_err(too_long)?;
        let content = u64::from(count).saturating_mul(8).saturating_add(9);
        let content = u32::try_from(content).map_err(too_long)?;
        let mut bytes = [SKIPPABLE, &content.to_le_bytes()].concat();
        bytes.extend(self.frames.iter().flatten().flat_map(|len| len.to_le_bytes()));
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.push(0);
        bytes.extend_from_slice(SEEKABLE);
        Ok(bytes)
    }
}

#[cfg(feature = "zstd")]
impl<W: Write> FrameWriter<'_, W> {
    /// Returns how many bytes are compressed at once: a frame for each thread.
    fn batch(&self) -> usize {
        self.frame.saturating_mul(self.threads.get())
    }

    fn compress(&mut self, bytes: &[u8]) -> io::Result<()> {
        let frames: Vec<&[u8]> = bytes.chunks(self.frame).collect();
        let (level, checksum) = (self.level, self.table.is_some());
        let compress = |frame: &&[u8]| {
            let mut compressor = zstd::bulk::Compressor::new(level)?;
            compressor.include_checksum(checksum)?;
            compressor.compress(frame)
        };
        for (frame, decoded) in
            parallel::map(&frames, self.threads, compress).into_iter().zip(&frames)
        {
            let frame = frame?;
            self.stored.write_all(&frame)?;
            if let Some(table) = &mut self.table {
                // A frame is 16 MiB at most, and takes little more.
                let lens = [frame.len(), decoded.len()].map(u32::try_from);
                let [Ok(stored), Ok(decoded)] = lens else {
                    return Err(io::Error::other("a frame is too long for a table"));
                };
                table.frames.push([stored, decoded]);
            }
        }
        Ok(())
    }

    fn hash(&mut self, decoded: &[u8]) {
        if let Some(Table { hasher: Some(hasher), .. }) = &mut self.table {
            hasher.update(decoded);
        }
    }

    /// Compresses what is left.
    fn finish(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.buffer);
        self.compress(&rest)?;
        if let Some(table) = &self.table {
            let bytes = table.to_bytes()?;
            return self.stored.write_all(&bytes);
        }
        if self.stored.length == 0 {
            // No bytes at all are an empty frame, not an empty blob.
            self.stored.write_all(&zstd::bulk::compress(&[], self.level)?)?;
        }
        Ok(())
    }
}

#[cfg(feature = "zstd")]
impl<W: Write> Write for FrameWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let batch = self.batch();
        if self.buffer.is_empty()
            && let Some(whole) = bytes.get(..batch)
        {
            self.compress(whole)?;
            self.hash(whole);
            return Ok(batch);
        }
        let room = batch.saturating_sub(self.buffer.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.hash(taken);
        self.buffer.extend_from_slice(taken);
        if self.buffer.len() == batch {
            let full = std::mem::take(&mut self.buffer);
            self.compress(&full)?;
            self.buffer = full;
            self.buffer.clear();
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes stored bytes, counts them, and hashes them where a digest is wanted.
pub(crate) struct StoredWriter<'o, W: Write> {
    out: &'o mut Sink<W>,
    hasher: Option<digest::Hasher>,
    length: u64,
}

impl<W: Write> Write for StoredWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.sink.write(bytes)?;
        self.out.position = self.out.position.saturating_add(written as u64);
        self.length = self.length.saturating_add(written as u64);
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes.get(..written).unwrap_or_default());
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A sink that knows how far into the file it is.
pub(crate) struct Sink<W> {
    pub(crate) sink: W,
    pub(crate) position: u64,
    pub(crate) version: Version,
}

impl<W: Write> Sink<W> {
    /// Writes the magic, unless the file is begun.
    pub(crate) fn begin(&mut self) -> Result<()> {
        let magic = if self.version == Version::V2 { v2::MAGIC } else { MAGIC };
        if self.position == 0 { self.put(magic) } else { Ok(()) }
    }

    /// Writes zeros up to the next multiple of `alignment`, and returns where that is.
    pub(crate) fn align(&mut self, alignment: u64) -> Result<u64> {
        self.begin()?;
        let next = self.position.checked_next_multiple_of(alignment);
        let next = next.ok_or(Core::ExtentOverflow { offset: self.position, len: alignment })?;
        while self.position < next {
            let missing = usize::try_from(next.saturating_sub(self.position));
            let zeros = missing.ok().and_then(|missing| ZEROS.get(..missing)).unwrap_or(&ZEROS);
            self.put(zeros)?;
        }
        Ok(next)
    }

    pub(crate) fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let written = match self.sink.write(bytes) {
                Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                written => written,
            };
            let failed = |source| Error::Write { offset: self.position, source };
            let written = written.map_err(failed)?;
            self.position = self.position.saturating_add(written as u64);
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }
}

const ZEROS: [u8; 4096] = [0; 4096];
/// What a frame of generation 2 decodes to where nothing else is asked for, in bytes.
#[cfg(feature = "zstd")]
const FRAME: u64 = 1 << 20;
