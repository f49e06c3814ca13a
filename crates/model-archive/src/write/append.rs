//! Archives that are changed in place: new entries and a new directory behind their end.
//!
//! ```text
//! [entries][directory][end]                                          before
//! [entries][directory][end][new entries][new directory][new end]     after
//! ```
//!
//! What is no longer listed stays as dead bytes until the archive is rewritten.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use memchr::memmem;
use tensor_core::{Cursor, Extent, ReadAt, Source};

use crate::{
    Archive, ArchiveWriter, Entry, Error, Fault, FaultAt, Layout, Result, read::directory::Header,
};

impl<W: Write> ArchiveWriter<W> {
    /// Starts what makes changes of an archive take effect: all that is written to `sink` belongs
    /// behind the last byte of what the archive is read from.
    ///
    /// Entries that `keep` tells to stay are listed as they were, without their data being read;
    /// those of new names are added as to any archive. The comment stays. Nothing of the old
    /// archive is written over, so that a tail which was written in part can be
    /// [found and cut off](Archive::recoverable_len).
    ///
    /// # Errors
    ///
    /// [`Fault::Prefix`] where bytes stand before the archive that its offsets do not count: those
    /// of a tail would not fit them.
    ///
    /// # Examples
    ///
    /// ```
    /// use model_archive::{Archive, ArchiveWriter, EntryOptions, Layout};
    ///
    /// let mut writer = ArchiveWriter::new(Vec::new());
    /// writer.add("weights", &[0; 64], &EntryOptions::default())?;
    /// writer.add("labels", b"cat", &EntryOptions::default())?;
    /// let mut bytes = writer.finish()?;
    ///
    /// let archive = Archive::from_bytes(bytes.clone())?;
    /// let keep = |entry: model_archive::Entry<'_>| entry.name() != "labels";
    /// let mut tail = ArchiveWriter::behind_archive(Vec::new(), &archive, Layout::Plain, keep)?;
    /// tail.add("labels", b"dog", &EntryOptions::default())?;
    /// bytes.extend(tail.finish()?);
    ///
    /// let archive = Archive::options()
    ///     .profile(model_archive::tensor_core::Profile::Lenient)
    ///     .from_bytes(bytes)?;
    /// assert_eq!(archive.entry("labels").unwrap().bytes()?, "dog");
    /// # Ok::<(), model_archive::Error>(())
    /// ```
    pub fn behind_archive(
        sink: W,
        archive: &Archive,
        layout: Layout,
        keep: impl FnMut(Entry<'_>) -> bool,
    ) -> Result<Self> {
        Self::behind(sink, archive.source().len()).layout(layout).listing(archive, keep)
    }

    /// Lists entries of an archive, and takes over its comment.
    fn listing(
        mut self,
        archive: &Archive,
        mut keep: impl FnMut(Entry<'_>) -> bool,
    ) -> Result<Self> {
        if archive.shift() > 0 {
            return Err(FaultAt::archive(0, Fault::Prefix { bytes: archive.shift() }).into());
        }
        let source = archive.source();
        let comment = source.read(archive.comment_extent(), "comment")?;
        self = self.comment(comment);
        let directory = archive.directory_extent();
        let bytes = source.read(directory, "directory")?;
        let mut cursor = Cursor::new(&bytes, directory.offset());
        for entry in archive.entries() {
            let before = cursor.rest();
            Header::parse(&mut cursor)?;
            if keep(entry) {
                let len = before.len().saturating_sub(cursor.rest().len());
                self.list(entry.name(), before.get(..len).unwrap_or_default());
            }
        }
        Ok(self)
    }
}

impl Archive {
    /// Returns the directory and the end records as they are where they stand at `offset`, behind
    /// the end of the archive: what [`Append`](tensor_core::output::Append) keeps at the end of a
    /// file while a [tail](ArchiveWriter::behind_archive) is written.
    ///
    /// # Errors
    ///
    /// As for [`ArchiveWriter::behind_archive`].
    pub fn directory_at(&self, offset: u64) -> Result<Bytes> {
        let end = ArchiveWriter::behind(Vec::new(), offset).listing(self, |_| true)?;
        Ok(end.finish()?.into())
    }

    /// Returns the length of the longest beginning of a source that is a whole archive, in bytes: what
    /// stands behind it was appended and not finished. `is_whole` judges the beginnings, longest first;
    /// where offsets are to count from the first byte, it is to refuse any other
    /// [`shift`](Self::shift): an archive that is stored in the file may end there.
    ///
    /// `is_whole` may read as many bytes as the source has twice over, and 64 MiB, in all.
    ///
    /// # Errors
    ///
    /// [`Error::NotWhole`] where there is none, or a file is made to need more reading;
    /// [`Error::Core`] where it cannot be read.
    pub fn recoverable_len(
        source: &Source,
        mut is_whole: impl FnMut(&Source) -> bool,
    ) -> Result<u64> {
        let budget = source.len().saturating_mul(2).saturating_add(LEAST);
        let metered = Metered { source: source.clone(), left: Arc::new(Mutex::new(budget)) };
        let beginnings = Source::from_read_at(metered.clone());
        let mut end = source.len();
        while end > 0 {
            let start = end.saturating_sub(BLOCK);
            // Records may lie across the border of two blocks.
            let block = Extent::between(start, end.saturating_add(END).min(source.len()));
            let bytes = source.read(block, "end record")?;
            for at in memmem::rfind_iter(&bytes, b"PK\x05\x06") {
                let record = block.offset().saturating_add(at as u64);
                let comment =
                    bytes.get(at.saturating_add(20)..).and_then(|rest| rest.first_chunk());
                let comment = comment.map_or(0, |len| u16::from_le_bytes(*len));
                let whole = record.saturating_add(END).saturating_add(comment.into());
                let window = beginnings.window(Extent::first(whole), "archive");
                if window.is_ok_and(|window| is_whole(&window)) {
                    return Ok(whole);
                }
                if *metered.left() == 0 {
                    return Err(Error::NotWhole {
                        reason: "it has too many ends of ZIP files in it",
                    });
                }
            }
            end = start;
        }
        Err(Error::NotWhole { reason: "there is no whole ZIP file in it" })
    }
}

/// A source of which only so many bytes can be read.
#[derive(Clone)]
struct Metered {
    source: Source,
    left: Arc<Mutex<u64>>,
}

impl Metered {
    fn left(&self) -> MutexGuard<'_, u64> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadAt for Metered {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let len = buffer.len() as u64;
        let mut left = self.left();
        let rest = left.checked_sub(len);
        *left = rest.unwrap_or(0);
        rest.ok_or(io::ErrorKind::QuotaExceeded)?;
        let read = Extent::new(offset, len)
            .and_then(|extent| self.source.read_into(extent, buffer, "archive"));
        read.map_err(io::Error::other)
    }
}

/// What is searched for end records at once, in bytes.
const BLOCK: u64 = 1 << 20;
/// Bytes of an end record without its comment.
const END: u64 = 22;
/// How many bytes may be read of any file.
const LEAST: u64 = 64 << 20;
