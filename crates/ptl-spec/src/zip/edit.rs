//! Edits of ZIP files: a tail behind their end, or a file without what is not needed.

use std::io::{self, Write};

use bytes::Bytes;
use model_archive::{Entry, Kind};
use tensor_core::Extent;

use crate::{
    Error, Result,
    edit::{Changes, Writes, extra_name, same},
    read::EXTRA,
    zip::Container,
    zip::layout::{self, Header},
};

/// Returns the tail that makes changes take effect: new records, the headers of all that stay as
/// they are, those of the new ones, and end records.
pub(crate) fn writes(container: &Container, changes: &Changes) -> Result<Writes> {
    let archive = &container.archive;
    let mut directory = Vec::new();
    let mut entries = 0_u64;
    for (record, header) in headers(container)? {
        let extra = record.and_then(extra_name);
        let is_changed =
            changes.iter().any(|(name, _)| extra.is_some_and(|extra| same(extra, name)));
        if !is_changed {
            directory.extend_from_slice(&header);
            entries = entries.saturating_add(1);
        }
    }
    let start = archive.source().len();
    let mut tail = Vec::new();
    let position = |tail: &Vec<u8>| start.saturating_add(tail.len() as u64);
    for (name, content) in changes {
        let Some(content) = content else { continue };
        let name = format!("{}/{EXTRA}{name}", container.root);
        let header = Header::stored(name, content, position(&tail));
        tail.extend(header.local());
        tail.extend_from_slice(content);
        tail.extend(header.descriptor());
        directory.extend(header.central());
        entries = entries.saturating_add(1);
    }
    let comment = archive.source().read(archive.comment_extent(), "comment")?;
    let (offset, len) = (position(&tail), directory.len() as u64);
    tail.extend(directory);
    tail.extend(layout::end(entries, offset, len, &comment));
    Ok(vec![(start, tail)])
}

/// Returns the headers of the directory as they are stored, each with the name of its record.
fn headers(container: &Container) -> Result<Vec<(Option<&str>, Bytes)>> {
    let archive = &container.archive;
    let directory = archive.directory_extent();
    let bytes = archive.source().read(directory, "directory")?;
    let malformed = || Error::NotEditable { reason: "its directory is malformed" };
    check_offsets(container)?;
    let (mut at, mut headers) = (0_usize, Vec::new());
    for index in 0..archive.entries().len() {
        let lens = bytes.get(at.saturating_add(28)..).and_then(|rest| rest.first_chunk::<6>());
        let [a, b, c, d, e, f] = *lens.ok_or_else(malformed)?;
        let len = [[a, b], [c, d], [e, f]].map(u16::from_le_bytes);
        let len = len.into_iter().fold(CENTRAL, |sum, len| sum.saturating_add(len.into()));
        let end = at.saturating_add(len);
        if end > bytes.len() {
            return Err(malformed());
        }
        let header = bytes.slice(at..end);
        headers.push((container.name_at(index), header));
        at = end;
    }
    Ok(headers)
}

/// Refuses files whose offsets do not count from their first byte: a tail would not fit them.
pub(crate) fn check_offsets(container: &Container) -> Result<()> {
    let (archive, directory) = (&container.archive, container.archive.directory_extent());
    // The three end records, as far as they are there.
    let end = archive.comment_extent().offset();
    let records = archive.source().read(Extent::between(directory.end(), end), "end records")?;
    let at = |back: usize| records.len().checked_sub(back).and_then(|at| records.get(at..));
    let narrow = at(END_OFFSET).and_then(|rest| rest.first_chunk().copied());
    let found = match narrow.map(u32::from_le_bytes) {
        Some(u32::MAX) => {
            let wide = at(WIDE_OFFSET).and_then(|rest| rest.first_chunk().copied());
            wide.map(u64::from_le_bytes)
        }
        narrow => narrow.map(u64::from),
    };
    if found == Some(directory.offset()) {
        return Ok(());
    }
    Err(Error::NotEditable { reason: "there are bytes before its first record" })
}

/// Writes the records that `keep` names, in the layout of PyTorch and the order of the old file;
/// returns how many it does not.
pub(crate) fn rewrite<W: Write>(
    container: &Container,
    keep: impl Fn(&str) -> bool,
    sink: W,
) -> Result<u64> {
    if !container.collisions.is_empty() {
        let reason = "two of its records have names that PyTorch takes for one";
        return Err(Error::NotEditable { reason });
    }
    let mut out = Output { sink, position: 0, directory: Vec::new(), entries: 0 };
    let mut removed = 0_u64;
    // Most edits append: the order of the file is that of its first writer.
    let mut entries: Vec<Entry<'_>> =
        container.archive.entries().filter(|entry| entry.info().kind == Kind::File).collect();
    let mut offsets = Vec::with_capacity(entries.len());
    for entry in &entries {
        offsets.push(entry.extent()?.offset());
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|index| offsets.get(*index).copied());
    entries = order.into_iter().filter_map(|index| entries.get(index).copied()).collect();
    for entry in entries {
        match container.name_at(entry.index()) {
            Some(name) if keep(name) => out.copy(entry)?,
            _ => removed = removed.saturating_add(1),
        }
    }
    out.finish()?;
    Ok(removed)
}

/// A ZIP file in the layout of PyTorch, in the making.
struct Output<W> {
    sink: W,
    position: u64,
    directory: Vec<u8>,
    entries: u64,
}

impl<W: Write> Output<W> {
    fn copy(&mut self, entry: Entry<'_>) -> Result<()> {
        let header = Header::copied(entry.name(), entry.info(), self.position);
        self.put(&header.local())?;
        let mut stored = entry.stored_reader()?;
        let copied = io::copy(&mut stored, &mut self.sink).map_err(failed)?;
        self.position = self.position.saturating_add(copied);
        self.put(&header.descriptor())?;
        self.directory.extend(header.central());
        self.entries = self.entries.saturating_add(1);
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        let (offset, len) = (self.position, self.directory.len() as u64);
        let directory = std::mem::take(&mut self.directory);
        self.put(&directory)?;
        self.put(&layout::end(self.entries, offset, len, &[]))?;
        self.sink.flush().map_err(failed)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write_all(bytes).map_err(failed)?;
        self.position = self.position.saturating_add(bytes.len() as u64);
        Ok(())
    }
}

fn failed(source: io::Error) -> Error {
    Error::Write { source }
}

/// Bytes of a header of the directory without what has no fixed length.
const CENTRAL: usize = 46;
/// Where the start of the directory stands in the end record, and in the zip64 end record before its
/// locator, in bytes before the end of all three.
const END_OFFSET: usize = 6;
const WIDE_OFFSET: usize = 22 + 20 + 8;
