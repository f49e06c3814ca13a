//! Edits of ZIP files: a tail behind their end, or a file without what is not needed. What is
//! written has the bytes that PyTorch would have given it.

use std::io::Write;

use model_archive::{ArchiveWriter, Entry, EntryOptions, Kind, Layout};
use tensor_core::{Extent, Source};

use super::{EXTRA, Zip, extra_name};
use crate::{Error, Result, container::Container as _, edit::changes::Changes};

impl Zip {
    /// Refuses files whose offsets do not count from their first byte: a tail would not fit them.
    pub(crate) fn check_offsets(&self) -> Result<()> {
        if self.archive.shift() == 0 {
            return Ok(());
        }
        Err(Error::NotEditable { reason: "there are bytes before its first record" })
    }

    /// Returns the file with the tail that makes changes take effect: new records, the headers of
    /// all that stay as they are, those of the new ones, and end records.
    pub(super) fn with_tail(&self, changes: &Changes) -> Result<Source> {
        self.check_offsets()?;
        let is_kept = |name: &str| {
            extra_name(name)
                .is_none_or(|extra| !changes.iter().any(|(name, _)| self.is_same(name, extra)))
        };
        let archive = &self.archive;
        let keep = |entry: Entry<'_>| self.name_of(entry).is_none_or(is_kept);
        let mut tail = ArchiveWriter::behind_archive(Vec::new(), archive, Layout::PyTorch, keep)?;
        for (name, content) in changes {
            let Some(content) = content else { continue };
            let name = format!("{}/{EXTRA}{name}", self.root);
            tail.add(&name, content, &EntryOptions::default())?;
        }
        let tail = Source::from_bytes(tail.finish()?);
        Ok(Source::joined([archive.source().clone(), tail]))
    }

    /// Tells whether the old end stays where PyTorch looks for it, and the last one, until the new
    /// one is whole.
    pub(super) fn is_found_meanwhile(&self, edited: &Source) -> Result<bool> {
        let old = self.archive.source().len();
        let end = self.archive.comment_extent().offset().saturating_sub(END);
        if edited.len().saturating_sub(end) > SEARCHED {
            return Ok(false);
        }
        let tail = edited.read(Extent::between(old, edited.len()), "tail")?;
        Ok(tail.windows(4).filter(|bytes| *bytes == b"PK\x05\x06").count() == 1)
    }

    /// Writes the records that `keep` names, in the order in which they lie in the file: most edits
    /// append, so that it is that of its first writer.
    pub(super) fn rewrite_to(
        &self,
        keep: &dyn Fn(&str) -> bool,
        sink: &mut dyn Write,
    ) -> Result<u64> {
        self.check_editable()?;
        let mut out = ArchiveWriter::new(sink).layout(Layout::PyTorch);
        let mut removed = 0_u64;
        let files = self.archive.entries_by_offset();
        for entry in files.filter(|entry| entry.info().kind == Kind::File) {
            if self.name_of(entry).is_some_and(keep) {
                out.copy_raw(entry.name(), entry.info().into(), 1, entry.stored_reader()?)?;
            } else {
                removed = removed.saturating_add(1);
            }
        }
        out.finish()?;
        Ok(removed)
    }
}

/// Bytes of an end record without its comment. ZIP application note, section 4.3.16.
const END: u64 = 22;
/// Where PyTorch looks for it, in bytes from the end of the file.
const SEARCHED: u64 = 65_535 + END;
