//! How the bytes of a component go into the file: encoded, hashed, counted.

use std::{
    io::{self, Write},
    num::NonZeroUsize,
};

use tensor_core::Error as Core;
#[cfg(feature = "zstd")]
use tensor_core::parallel;

use super::{Compression, Storage};
use crate::{
    container::MAGIC,
    error::{Error, Result},
    tensor::digest,
};

/// How the bytes of a component go into the file.
pub(crate) enum Codec<'o, W: Write> {
    Raw(StoredWriter<'o, W>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::stream::write::Encoder<'static, StoredWriter<'o, W>>),
    #[cfg(feature = "zstd")]
    Frames(FrameWriter<'o, W>),
}

impl<'o, W: Write> Codec<'o, W> {
    #[cfg_attr(
        not(feature = "zstd"),
        expect(unused_variables, clippy::unnecessary_wraps, reason = "nothing is compressed then")
    )]
    pub(crate) fn new(
        out: &'o mut Sink<W>,
        storage: &Storage,
        threads: NonZeroUsize,
    ) -> Result<Self> {
        #[cfg(feature = "zstd")]
        let offset = out.position;
        let stored = StoredWriter { out, hasher: storage.hasher(), length: 0 };
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
                Self::Frames(FrameWriter { stored, level, frame, threads, buffer: Vec::new() })
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
        }
    }

    pub(crate) fn is_encoded(&self) -> bool {
        !matches!(self, Self::Raw(_))
    }

    /// Ends the component; returns its stored length in bytes and the text of its digest.
    pub(crate) fn finish(self) -> Result<(u64, Option<String>)> {
        let stored = match self {
            Self::Raw(stored) => stored,
            #[cfg(feature = "zstd")]
            Self::Zstd(encoder) => encoder.try_finish().map_err(|(encoder, source)| {
                Error::Write { offset: encoder.get_ref().out.position, source }
            })?,
            #[cfg(feature = "zstd")]
            Self::Frames(mut frames) => match frames.finish() {
                Ok(()) => frames.stored,
                Err(source) => {
                    return Err(Error::Write { offset: frames.stored.out.position, source });
                }
            },
        };
        Ok((stored.length, stored.hasher.map(|hasher| digest::text(hasher.finish()))))
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
}

#[cfg(feature = "zstd")]
impl<W: Write> FrameWriter<'_, W> {
    /// Returns how many bytes are compressed at once: a frame for each thread.
    fn batch(&self) -> usize {
        self.frame.saturating_mul(self.threads.get())
    }

    fn compress(&mut self, bytes: &[u8]) -> io::Result<()> {
        let frames: Vec<&[u8]> = bytes.chunks(self.frame).collect();
        let level = self.level;
        for frame in
            parallel::map(&frames, self.threads, |frame| zstd::bulk::compress(frame, level))
        {
            self.stored.write_all(&frame?)?;
        }
        Ok(())
    }

    /// Compresses what is left.
    fn finish(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.buffer);
        self.compress(&rest)?;
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
            return Ok(batch);
        }
        let room = batch.saturating_sub(self.buffer.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
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
}

impl<W: Write> Sink<W> {
    /// Writes the magic, unless the file is begun.
    pub(crate) fn begin(&mut self) -> Result<()> {
        if self.position == 0 { self.put(MAGIC) } else { Ok(()) }
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
