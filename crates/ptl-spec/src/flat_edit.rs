//! Edits of FlatBuffer files. Offsets lead forward, so what is new stands behind all else; tables
//! that refer to it are patched, or made anew.

use bytes::Bytes;
use tensor_core::CursorMut;

use crate::{
    Error, Result,
    edit::{Changes, Writes},
    flat::{Flat, FlatFile, field},
    table::Table,
};

/// Returns what makes changes take effect: bytes behind the end, and the offset that leads there.
pub(crate) fn writes(flat: &Flat, changes: &Changes) -> Result<Writes> {
    let start = (flat.bytes.len() as u64).next_multiple_of(4);
    let padding = start.saturating_sub(flat.bytes.len() as u64);
    let (appended, target, at) = match changes.as_slice() {
        [(name, Some(content))] if let Some(at) = content_field(flat, name) => {
            (text(content), start, at)
        }
        changes => {
            let root = Table::root(&flat.bytes, "module")?;
            let at = root.field(field::EXTRA_FILES)?;
            let reason = "its module has no field for extra files";
            (vector(&merged(flat, changes)?), start, at.ok_or(Error::NotEditable { reason })?)
        }
    };
    let end = start.saturating_add(appended.len() as u64);
    if end > i32::MAX as u64 {
        return Err(Error::TooLong { found: end });
    }
    let mut tail = vec![0; usize::try_from(padding).unwrap_or_default()];
    tail.extend(appended);
    // The end is below 2 GiB, and the field lies before the start.
    let offset = target.saturating_sub(at as u64);
    let offset = u32::try_from(offset).map_err(|_| Error::TooLong { found: end })?;
    Ok(vec![(flat.bytes.len() as u64, tail), (at as u64, offset.to_le_bytes().to_vec())])
}

/// Returns where the offset of the content of an extra file is stored.
fn content_field(flat: &Flat, name: &str) -> Option<usize> {
    let mut files = flat.extra_files.iter().filter(|file| file.name == name);
    let field = files.next()?.content_field;
    // Of two files of one name readers take either.
    field.filter(|_| files.next().is_none())
}

/// Returns all extra files as they are to be.
fn merged(flat: &Flat, changes: &[(String, Option<Bytes>)]) -> Result<Vec<(String, Bytes)>> {
    let changed = |file: &&FlatFile| !changes.iter().any(|(name, _)| *name == file.name);
    let kept = flat.extra_files.iter().filter(changed);
    let kept =
        kept.map(|file| Ok((file.name.clone(), flat.bytes.read(file.content, "extra file")?)));
    let new = changes.iter().filter_map(|(name, content)| Some((name.clone(), content.clone()?)));
    kept.chain(new.map(Ok)).collect()
}

/// Returns a vector of extra files, their tables and texts.
fn vector(files: &[(String, Bytes)]) -> Vec<u8> {
    let mut out = CursorMut::default();
    let count = u32::try_from(files.len()).unwrap_or(u32::MAX);
    // Behind the offsets stands one vtable for all tables, then the tables.
    let vtable = u64::from(count).saturating_mul(4).saturating_add(4);
    let tables = vtable.saturating_add(VTABLE);
    out.u32(count);
    for index in 0..u64::from(count) {
        let at = index.saturating_mul(4).saturating_add(4);
        let table = tables.saturating_add(index.saturating_mul(TABLE));
        out.u32(narrow(table.saturating_sub(at)));
    }
    // Bytes of the vtable and of a table, then where its two fields are.
    out.u16(8).u16(12).u16(4).u16(8);
    let mut texts = tables.saturating_add(u64::from(count).saturating_mul(TABLE));
    for (index, (name, content)) in (0_u64..).zip(files) {
        let table = tables.saturating_add(index.saturating_mul(TABLE));
        let (name_at, len) = (texts, text(name.as_bytes()).len() as u64);
        let content_at = name_at.saturating_add(len);
        texts = content_at.saturating_add(text_len(content));
        out.u32(narrow(table.saturating_sub(vtable)));
        out.u32(narrow(name_at.saturating_sub(table.saturating_add(4))));
        out.u32(narrow(content_at.saturating_sub(table.saturating_add(8))));
    }
    for (name, content) in files {
        out.bytes(&text(name.as_bytes())).bytes(&text(content));
    }
    out.into_bytes()
}

/// Returns a text as FlatBuffers have it, filled up to a multiple of 4 bytes.
fn text(content: &[u8]) -> Vec<u8> {
    let mut out = CursorMut::default();
    out.u32(u32::try_from(content.len()).unwrap_or(u32::MAX)).bytes(content).u8(0);
    let mut bytes = out.into_bytes();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn text_len(content: &[u8]) -> u64 {
    (content.len() as u64).saturating_add(5).next_multiple_of(4)
}

/// Everything is below 2 GiB, which the caller proves before it is written.
fn narrow(offset: u64) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// Bytes of the vtable and of a table of an extra file.
const VTABLE: u64 = 8;
const TABLE: u64 = 12;
