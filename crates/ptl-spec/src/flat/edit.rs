//! Edits of FlatBuffer files. Offsets lead forward, so what is new stands behind all else; tables
//! that refer to it are patched, or replaced by new ones.

use std::io;

use bytes::Bytes;
use flat_tables::{Buffer, Fault, Problem};
use tensor_core::{CursorMut, Extent, Limits, ReadAt, Source};

use super::{Flat, FlatFile, field, is_flat};
use crate::{
    Error, Result,
    edit::changes::{Changes, Writes},
};

/// Returns what makes changes take effect: bytes behind the end, and the offset that leads there.
pub(super) fn writes(flat: &Flat, changes: &Changes) -> Result<Writes> {
    let len = flat.source.len();
    let start = len.next_multiple_of(4);
    let padding = start.saturating_sub(len);
    let (appended, target, at) = match changes.as_slice() {
        [(name, Some(content))] if let Some(at) = content_field(flat, name) => {
            (text(content), start, at)
        }
        changes => {
            let buffer = Buffer::new(&flat.source);
            let at = buffer.root("module")?.field(field::EXTRA_FILES)?;
            let reason = "its module has no field for extra files";
            (vector(&merged(flat, changes)?), start, at.ok_or(Error::NotEditable { reason })?)
        }
    };
    let end = start.saturating_add(appended.len() as u64);
    if end > i32::MAX as u64 {
        return Err(too_long(end));
    }
    let mut tail = vec![0; usize::try_from(padding).unwrap_or_default()];
    tail.extend(appended);
    // The end is below 2 GiB, and the field lies before the start.
    let offset = target.saturating_sub(at as u64);
    let offset = u32::try_from(offset).map_err(|_| too_long(end))?;
    let edited = Edited { source: flat.source.clone(), tail: tail.clone(), at: at as u64, offset };
    if !edited.gives(flat, changes)? {
        return Err(Error::NotEditable { reason: "its parts overlap" });
    }
    Ok(vec![(len, tail), (at as u64, offset.to_le_bytes().to_vec())])
}

fn too_long(found: u64) -> Error {
    Fault::new("FlatBuffer", 0, Problem::LongBuffer { found }).into()
}

/// A file as an edit will leave it.
struct Edited {
    source: Source,
    tail: Vec<u8>,
    /// Where the offset is that leads into the tail.
    at: u64,
    offset: u32,
}

impl Edited {
    /// Proves that the edit does what it should, and nothing else: in a file whose parts overlap one
    /// offset may stand for more.
    fn gives(self, flat: &Flat, changes: &Changes) -> Result<bool> {
        let edited = Source::from_read_at(self);
        let start = edited.read(Extent::first(edited.len().min(8)), "first bytes")?;
        let Ok(new) = Flat::open(edited, &Limits::default()) else { return Ok(false) };
        if !is_flat(&start) || others(flat)? != others(&new)? {
            return Ok(false);
        }
        let is_kept = |file: &&FlatFile| !changes.iter().any(|(name, _)| *name == file.name);
        let names = |flat: &Flat| {
            let kept = flat.extra_files.iter().filter(is_kept);
            kept.map(|file| (file.name.clone(), file.content.len())).collect::<Vec<_>>()
        };
        for (name, content) in changes {
            let mut found = new.extra_files.iter().filter(|file| file.name == *name);
            let is_right = match (found.next(), content) {
                (None, None) => true,
                (Some(file), Some(content)) => {
                    new.source.read(file.content, "extra file")? == content
                }
                _ => false,
            };
            if !is_right || found.next().is_some() {
                return Ok(false);
            }
        }
        Ok(names(flat) == names(&new))
    }
}

/// Returns the fields of the module but that of the extra files: where each is, and what stands
/// there.
fn others(flat: &Flat) -> Result<Vec<(usize, [u8; 4])>> {
    let buffer = Buffer::new(&flat.source);
    let root = buffer.root("module")?;
    let mut fields = Vec::new();
    for id in (0..root.field_count()).filter(|id| *id != field::EXTRA_FILES) {
        // None is at the start of the file.
        let at = root.field(id)?.unwrap_or_default();
        fields.push((at, buffer.array(at)?.unwrap_or_default()));
    }
    Ok(fields)
}

impl ReadAt for Edited {
    fn len(&self) -> u64 {
        self.source.len().saturating_add(self.tail.len() as u64)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let old = self.source.len().saturating_sub(offset).min(buffer.len() as u64);
        let (head, tail) = buffer.split_at_mut(usize::try_from(old).unwrap_or(usize::MAX));
        let extent = Extent::between(offset.min(self.source.len()), offset.saturating_add(old));
        if !head.is_empty() {
            self.source.read_into(extent, head, "FlatBuffer").map_err(io::Error::other)?;
        }
        for (at, byte) in (self.at..).zip(self.offset.to_le_bytes()) {
            let place = at.checked_sub(offset).and_then(|place| usize::try_from(place).ok());
            if let Some(place) = place.and_then(|place| head.get_mut(place)) {
                *place = byte;
            }
        }
        let start = offset.saturating_sub(self.source.len());
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let end = start.saturating_add(tail.len());
        let bytes = self.tail.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        tail.copy_from_slice(bytes);
        Ok(())
    }
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
    let mut files = Vec::new();
    for file in flat.extra_files.iter().filter(changed) {
        files.push((file.name.clone(), flat.source.read(file.content, "extra file")?));
    }
    let new = changes.iter().filter_map(|(name, content)| Some((name.clone(), content.clone()?)));
    files.extend(new);
    Ok(files)
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
