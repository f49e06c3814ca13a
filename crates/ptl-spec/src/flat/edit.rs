//! New extra files of FlatBuffer files: another list of all behind their end, which the module leads
//! to. What the old list had is left for [`rewrite`](super::rewrite) to leave out.

use bytes::Bytes;
use flat_tables::{Buffer, Fault, Problem};
use tensor_core::{CursorMut, Extent, Source};

use super::{Flat, field};
use crate::{Error, Result, edit::changes::Changes};

/// Returns the file with other extra files, and all that it had.
pub(super) fn edited(flat: &Flat, changes: &Changes) -> Result<Source> {
    let (source, files) = (&flat.source, list(&merged(flat, changes)?));
    let at = Buffer::new(source).root("module")?.field(field::EXTRA_FILES)?;
    let reason = "its module has no field for extra files";
    let at = at.ok_or(Error::NotEditable { reason })? as u64;
    let (len, start) = (source.len(), source.len().next_multiple_of(4));
    let found = start.saturating_add(files.len() as u64);
    let offset = u32::try_from(start.saturating_sub(at)).ok().filter(|_| found <= i32::MAX as u64);
    let long = || Fault::new("FlatBuffer", 0, Problem::LongBuffer { found });
    let offset = offset.ok_or_else(long)?.to_le_bytes();
    let part = |start, end| source.window(Extent::between(start, end), "FlatBuffer");
    let padding = vec![0; usize::try_from(start.saturating_sub(len)).unwrap_or_default()];
    let (before, behind) = (part(0, at)?, part(at.saturating_add(4), len)?);
    let [offset, padding, files] = [offset.to_vec(), padding, files].map(Source::from_bytes);
    Ok(Source::joined([before, offset, behind, padding, files]))
}

/// Returns all extra files as they are to be.
fn merged(flat: &Flat, changes: &Changes) -> Result<Vec<(String, Bytes)>> {
    let mut files = Vec::new();
    for file in &flat.extra_files {
        if !changes.iter().any(|(name, _)| *name == file.name()) {
            files.push((file.name().to_owned(), flat.source.read(file.content, "extra file")?));
        }
    }
    let new = changes.iter().filter_map(|(name, content)| Some((name.clone(), content.clone()?)));
    files.extend(new);
    Ok(files)
}

/// Returns a vector of extra files, their tables and texts.
fn list(files: &[(String, Bytes)]) -> Vec<u8> {
    let mut out = CursorMut::default();
    let count = files.len() as u64;
    // Behind the offsets stands one vtable for all tables, then the tables.
    let vtable = count.saturating_mul(4).saturating_add(4);
    let table = |index: u64| index.saturating_mul(TABLE).saturating_add(vtable).saturating_add(8);
    out.u32(narrow(count));
    for index in 0..count {
        let at = index.saturating_mul(4).saturating_add(4);
        out.u32(narrow(table(index).saturating_sub(at)));
    }
    // Bytes of the vtable and of a table, then where its two fields are.
    out.u16(8).u16(12).u16(4).u16(8);
    let mut texts = table(count);
    for (index, (name, content)) in (0..).zip(files) {
        let (at, content_at) = (table(index), texts.saturating_add(text_len(name.as_bytes())));
        out.u32(narrow(at.saturating_sub(vtable)));
        out.u32(narrow(texts.saturating_sub(at.saturating_add(4))));
        out.u32(narrow(content_at.saturating_sub(at.saturating_add(8))));
        texts = content_at.saturating_add(text_len(content));
    }
    let mut bytes = out.into_bytes();
    for text in files.iter().flat_map(|(name, content)| [name.as_bytes(), content]) {
        let end = (bytes.len() as u64).saturating_add(text_len(text));
        bytes.extend(narrow(text.len() as u64).to_le_bytes());
        bytes.extend(text);
        bytes.resize(usize::try_from(end).unwrap_or(usize::MAX), 0);
    }
    bytes
}

/// Returns the bytes that a text takes: its length, itself and a zero, up to a multiple of 4.
fn text_len(content: &[u8]) -> u64 {
    (content.len() as u64).saturating_add(5).next_multiple_of(4)
}

/// Everything is below 2 GiB, which is proved before any of it counts.
fn narrow(offset: u64) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// Bytes of the table of an extra file.
const TABLE: u64 = 12;
