//! Opening a model that is not in memory without the large constants in its tables.
//!
//! Converters write the bytes of each constant between the tables. Where they are follows from a few
//! numbers, which are looked up first; everything else is then read into memory that stays as it is,
//! all zeros, where they would be. What turns out to refer into such a hole, as only a strange file
//! does, is read whole.

use std::{collections::BTreeSet, iter, ops::Range};

use bytes::Bytes;
use tensor_core::{Extent, Limits, Result, Source};

/// Returns where the first `len` bytes of a model have large bytes of buffers, ascending; none where
/// it had better be read whole.
pub(crate) fn find(source: &Source, len: u64) -> Result<Vec<Range<usize>>> {
    Ok(Finder { source, len, pages: [None, None] }.holes()?.unwrap_or_default())
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

/// Looks for the bytes of buffers. Whatever is not as it should be is for the verifier to find.
struct Finder<'s> {
    source: &'s Source,
    len: u64,
    /// Two pages that were read last: lists are walked while tables are looked up.
    pages: [Option<(u64, Bytes)>; 2],
}

impl Finder<'_> {
    /// Returns the places of large bytes of buffers that are no metadata.
    fn holes(&mut self) -> Result<Option<Vec<Range<usize>>>> {
        let Some(model) = self.follow(0)? else { return Ok(None) };
        let Some((first, count)) = self.list(model, BUFFERS)? else { return Ok(None) };
        if count > MOST {
            return Ok(None);
        }
        let Some(metadata) = self.metadata(model)? else { return Ok(None) };
        let (mut holes, mut kept) = (Vec::new(), BTreeSet::new());
        for index in 0..count {
            let at = first.saturating_add(index.saturating_mul(4));
            let Some(buffer) = self.follow(at)? else { return Ok(None) };
            if self.field(buffer, BUFFER_OFFSET)?.is_some() {
                continue;
            }
            let Some((start, len)) = self.list(buffer, BUFFER_DATA)? else { continue };
            let end = usize::try_from(start.saturating_add(len)).ok();
            let Some((start, end)) = usize::try_from(start).ok().zip(end) else { continue };
            if metadata.binary_search(&index).is_ok() {
                kept.insert((start, end));
            } else if len >= LARGE {
                holes.push(start..end);
            }
        }
        // What is metadata, too, is read.
        holes.retain(|hole| !kept.contains(&(hole.start, hole.end)));
        Ok(joined(holes, self.len))
    }

    /// Returns the positions of buffers that are metadata, ascending.
    fn metadata(&mut self, model: u64) -> Result<Option<Vec<u64>>> {
        let Some((first, count)) = self.list(model, METADATA)? else { return Ok(Some(Vec::new())) };
        if count > MOST {
            return Ok(None);
        }
        let mut buffers = Vec::new();
        for index in 0..count {
            let at = first.saturating_add(index.saturating_mul(4));
            let Some(metadata) = self.follow(at)? else { return Ok(None) };
            let buffer = match self.field(metadata, METADATA_BUFFER)? {
                Some(at) => self.u32(at)?,
                None => Some(0),
            };
            let Some(buffer) = buffer else { return Ok(None) };
            buffers.push(buffer.into());
        }
        buffers.sort_unstable();
        Ok(Some(buffers))
    }

    /// Returns where the elements of a list are, and how many there are, if a table has it.
    fn list(&mut self, table: u64, field: u64) -> Result<Option<(u64, u64)>> {
        let Some(at) = self.field(table, field)? else { return Ok(None) };
        let Some(list) = self.follow(at)? else { return Ok(None) };
        let Some(count) = self.u32(list)? else { return Ok(None) };
        let count = u64::from(count);
        // No element is shorter than a byte.
        let fits = list.saturating_add(4).saturating_add(count) <= self.len;
        Ok(fits.then(|| (list.saturating_add(4), count)))
    }

    /// Returns where a field of a table is, if the table has it.
    fn field(&mut self, table: u64, field: u64) -> Result<Option<u64>> {
        let Some(distance) = self.u32(table)? else { return Ok(None) };
        let distance = i64::from(i32::from_le_bytes(distance.to_le_bytes()));
        let Some(list) = table.checked_add_signed(distance.saturating_neg()) else {
            return Ok(None);
        };
        let Some(len) = self.u16(list)? else { return Ok(None) };
        if field.saturating_add(2) > len.into() {
            return Ok(None);
        }
        let place = self.u16(list.saturating_add(field))?.filter(|place| *place > 0);
        Ok(place.map(|place| table.saturating_add(place.into())))
    }

    /// Returns where a reference leads.
    fn follow(&mut self, at: u64) -> Result<Option<u64>> {
        let offset = self.u32(at)?;
        let target = offset.map(|offset| at.saturating_add(offset.into()));
        Ok(target.filter(|target| *target < self.len))
    }

    fn u32(&mut self, at: u64) -> Result<Option<u32>> {
        Ok(self.array(at)?.map(u32::from_le_bytes))
    }

    fn u16(&mut self, at: u64) -> Result<Option<u16>> {
        Ok(self.array(at)?.map(u16::from_le_bytes))
    }

    fn array<const N: usize>(&mut self, at: u64) -> Result<Option<[u8; N]>> {
        let end = at.saturating_add(N as u64);
        if end > self.len {
            return Ok(None);
        }
        for (start, page) in self.pages.iter().flatten() {
            let within = at.checked_sub(*start).and_then(|within| usize::try_from(within).ok());
            let rest = within.and_then(|within| page.get(within..));
            if let Some(found) = rest.and_then(|rest| rest.first_chunk()) {
                return Ok(Some(*found));
            }
        }
        let extent = Extent::between(at, at.saturating_add(PAGE).min(self.len));
        let page = self.source.read(extent, WHAT)?;
        let found = page.first_chunk().copied();
        self.pages.swap(0, 1);
        let [newest, _] = &mut self.pages;
        *newest = Some((at, page));
        Ok(found)
    }
}

/// Bytes of a buffer that are worth a read of their own less.
const LARGE: u64 = 64 << 10;

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
const MOST: u64 = 1 << 18;

/// Bytes that are read at once.
const PAGE: u64 = 4 << 10;

const WHAT: &str = "model";

// Places of fields in the list of a table, the same in both schemas.
const BUFFERS: u64 = 12;
const METADATA: u64 = 16;
const METADATA_BUFFER: u64 = 6;
const BUFFER_DATA: u64 = 4;
const BUFFER_OFFSET: u64 = 6;
