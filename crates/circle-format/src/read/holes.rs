//! Opening a model that is not in memory without the large constants in its tables.
//!
//! Converters write the bytes of each constant between the tables. Where they are follows from a few
//! numbers, which are looked up first; everything else is then read into memory that stays as it is,
//! all zeros, where they would be. What turns out to refer into such a hole, as only a strange file
//! does, is read whole.

use std::{collections::BTreeSet, iter, ops::Range};

use bytes::Bytes;
use flat_tables::{Buffer, Table};
use tensor_core::{Extent, Limits, Result, Source};

/// Returns where the first `len` bytes of a model have large bytes of buffers, ascending; none where
/// it had better be read whole.
pub(crate) fn find(source: &Source, len: u64) -> Result<Vec<Range<usize>>> {
    let buffer = Buffer::first(source, len);
    match buffer.root(WHAT).and_then(holes) {
        Ok(found) => Ok(joined(found, len).unwrap_or_default()),
        // Whatever is not in its place is found, and said, where all of it is proved.
        Err(flat_tables::Error::Fault(_)) => Ok(Vec::new()),
        Err(flat_tables::Error::Core(error)) => Err(error),
    }
}

/// Returns the places of large bytes of buffers that are not metadata.
fn holes(model: Table<'_>) -> flat_tables::Result<Vec<Range<usize>>> {
    let Some(buffers) = model.vector(BUFFERS, 4, WHAT)? else { return Ok(Vec::new()) };
    let metadata = model.vector(METADATA, 4, WHAT)?;
    if buffers.count() > MOST || metadata.is_some_and(|metadata| metadata.count() > MOST) {
        return Ok(Vec::new());
    }
    let metadata = metadata.into_iter().flat_map(|metadata| metadata.tables(WHAT));
    let metadata: BTreeSet<u32> =
        metadata.map(|table| table?.u32(METADATA_BUFFER, WHAT)).collect::<Result<_, _>>()?;
    let (mut holes, mut kept) = (Vec::new(), BTreeSet::new());
    for (index, buffer) in (0_u32..).zip(buffers.tables(WHAT)) {
        let buffer = buffer?;
        if buffer.field(BUFFER_OFFSET)?.is_some() {
            continue;
        }
        let Some(data) = buffer.vector(BUFFER_DATA, 1, WHAT)? else { continue };
        let [start, end] = [data.extent().offset(), data.extent().end()].map(usize::try_from);
        let (Ok(start), Ok(end)) = (start, end) else { continue };
        if metadata.contains(&index) {
            kept.insert((start, end));
        } else if data.count() >= LARGE {
            holes.push(start..end);
        }
    }
    // What is metadata, too, is read.
    holes.retain(|hole| !kept.contains(&(hole.start, hole.end)));
    Ok(holes)
}

/// Reads the first `len` bytes of a model but for holes, which all end before; `None` where it had
/// better be read whole.
pub(crate) fn read_around(
    holes: &[Range<usize>],
    source: &Source,
    len: u64,
    limits: &Limits,
) -> Result<Option<Bytes>> {
    let kept = holes.iter().fold(len, |kept, hole| kept.saturating_sub(hole.len() as u64));
    let Ok(all) = usize::try_from(len) else { return Ok(None) };
    // What is read whole is held to the limit there.
    if kept > limits.decoded_bytes {
        return Ok(None);
    }
    let Some(mut buffer) = zeros(all) else { return Ok(None) };
    let mut start = 0;
    for hole in holes.iter().cloned().chain(iter::once(all..all)) {
        let extent = Extent::between(start as u64, hole.start as u64);
        if let Some(part) = buffer.get_mut(start..hole.start) {
            source.read_into(extent, part, WHAT)?;
        }
        start = hole.end;
    }
    Ok(Some(buffer.into()))
}

/// Returns zeros, which take no memory before they are touched; `None` where there is no room for so
/// many.
fn zeros(len: usize) -> Option<Vec<u8>> {
    // Whoever asks for the zeros without asking first is ended where there is none.
    Vec::<u8>::new().try_reserve_exact(len).ok()?;
    Some(vec![0; len])
}

/// Bytes of a buffer that are worth a read of their own less.
const LARGE: usize = 64 << 10;

/// Sorts holes; `None` where one reaches into another, into the number before that, or beyond an end.
fn joined(mut holes: Vec<Range<usize>>, len: u64) -> Option<Vec<Range<usize>>> {
    holes.sort_by_key(|hole| (hole.start, hole.end));
    holes.dedup();
    let mut pairs = holes.iter().zip(holes.iter().skip(1));
    let is_sound = pairs.all(|(a, b)| a.end.saturating_add(4) <= b.start)
        && holes.first().is_none_or(|first| first.start >= 12)
        && holes.last().is_none_or(|last| last.end as u64 <= len);
    is_sound.then_some(holes)
}

/// Buffers that are looked up at most: each may cost a few reads, and that of a whole file is one.
const MOST: usize = 1 << 18;

const WHAT: &str = "model";

// Fields of tables, the same in both schemas.
const BUFFERS: usize = 4;
const METADATA: usize = 6;
const METADATA_BUFFER: usize = 1;
const BUFFER_DATA: usize = 0;
const BUFFER_OFFSET: usize = 1;
