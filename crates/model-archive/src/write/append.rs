//! Archives that are changed in place: new entries and a new directory behind their end.
//!
//! ```text
//! [entries][directory][end]                                          before
//! [entries][directory][end][new entries][new directory][new end]     after
//! ```
//!
//! What is no longer listed stays as dead bytes until the archive is rewritten.

use std::io::Write;

use memchr::memmem;
use tensor_core::{Cursor, Extent, Source};

use crate::{
    Archive, ArchiveWriter, Entry, Error, Fault, Flaw, Layout, Result, read::directory::Header,
};

impl<W: Write> ArchiveWriter<W> {
    /// Starts what makes changes of an archive take effect: all that is written to `sink` belongs
    /// behind the last byte of what the archive is read from.
    ///
    /// Entries that `keep` tells to stay are listed as they were, without their data being read;
    /// those of new names are added as to any archive. The comment stays. Nothing of the old
    /// archive is written over, so that a tail which was written in part can be
    /// [found and cut off](last_whole).
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
        mut keep: impl FnMut(Entry<'_>) -> bool,
    ) -> Result<Self> {
        if archive.shift() > 0 {
            return Err(Flaw::archive(0, Fault::Prefix { bytes: archive.shift() }).into());
        }
        let source = archive.source();
        let comment = source.read(archive.comment_extent(), "comment")?;
        let mut writer = Self::behind(sink, source.len()).layout(layout).comment(comment);
        let directory = archive.directory_extent();
        let bytes = source.read(directory, "directory")?;
        let mut cursor = Cursor::new(&bytes, directory.offset());
        for entry in archive.entries() {
            let before = cursor.rest();
            Header::parse(&mut cursor)?;
            if keep(entry) {
                let len = before.len().saturating_sub(cursor.rest().len());
                writer.list(entry.name(), before.get(..len).unwrap_or_default());
            }
        }
        Ok(writer)
    }
}

/// Returns the length of the longest beginning of a source that is a whole archive, in bytes: what
/// stands behind it was appended and not finished. `is_whole` judges the beginnings, longest first.
///
/// # Errors
///
/// [`Error::NotWhole`] where there is none, or a file is made to have too many to try;
/// [`Error::Core`] where it cannot be read.
pub fn last_whole(source: &Source, mut is_whole: impl FnMut(&Source) -> bool) -> Result<u64> {
    let (mut end, mut tries) = (source.len(), 0_u32);
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        // Records may lie across the border of two blocks.
        let block = Extent::between(start, end.saturating_add(END).min(source.len()));
        let bytes = source.read(block, "end record")?;
        for at in memmem::rfind_iter(&bytes, b"PK\x05\x06") {
            let record = block.offset().saturating_add(at as u64);
            let comment = bytes.get(at.saturating_add(20)..).and_then(|rest| rest.first_chunk());
            let comment = comment.map_or(0, |len| u16::from_le_bytes(*len));
            let whole = record.saturating_add(END).saturating_add(comment.into());
            let window = source.window(Extent::first(whole), "archive");
            if window.is_ok_and(|window| is_whole(&window)) {
                return Ok(whole);
            }
            tries = tries.saturating_add(1);
            if tries > TRIES {
                return Err(Error::NotWhole { reason: "it has too many ends of ZIP files in it" });
            }
        }
        end = start;
    }
    Err(Error::NotWhole { reason: "there is no whole ZIP file in it" })
}

/// What is searched for end records at once, in bytes.
const BLOCK: u64 = 1 << 20;
/// Bytes of an end record without its comment.
const END: u64 = 22;
/// How many end records are looked at before the search is given up.
const TRIES: u32 = 1000;
