//! Edits of ZIP files: a tail behind their end, or a file without what is not needed. What is
//! written has the bytes that PyTorch would have given it.

use std::io::Write;

use model_archive::{ArchiveWriter, Entry, EntryOptions, Kind, Layout};

use super::{EXTRA, Zip, extra_name};
use crate::{
    Error, Result,
    container::Container as _,
    edit::changes::{Changes, Writes},
};

impl Zip {
    /// Refuses files whose offsets do not count from their first byte: a tail would not fit them.
    pub(crate) fn check_offsets(&self) -> Result<()> {
        if self.archive.shift() == 0 {
            return Ok(());
        }
        Err(Error::NotEditable { reason: "there are bytes before its first record" })
    }

    /// Returns the tail that makes changes take effect: new records, the headers of all that stay
    /// as they are, those of the new ones, and end records.
    pub(super) fn tail(&self, changes: &Changes) -> Result<Writes> {
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
        Ok(vec![(archive.source().len(), tail.finish()?)])
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
