//! FlatBuffers read by hand: flatc makes no Rust code for unions of structs, which these files have,
//! and editing needs to know where fields are.
//!
//! ```text
//! table   offset to its vtable i32 (subtracted) · fields
//! vtable  bytes of the vtable u16 · bytes of the table u16 · place of each field in the table u16
//! vector  number of elements u32 · elements
//! text    number of bytes u32 · bytes · 0
//! ```

use std::cell::RefCell;

use bytes::Bytes;
use tensor_core::{Extent, Source};

use crate::Result;

/// The bytes of a FlatBuffer, of which only those are read that are looked at.
#[derive(Debug)]
pub(crate) struct Buffer<'s> {
    source: &'s Source,
    /// All bytes, where they are in memory.
    whole: Option<&'s [u8]>,
    /// Pages that were read last, each at the remainder of its number.
    pages: RefCell<Vec<Option<(u64, Bytes)>>>,
}

/// A table of a FlatBuffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'b> {
    buffer: &'b Buffer<'b>,
    /// Where it starts.
    pub(crate) at: usize,
    /// Bytes of the table.
    pub(crate) len: usize,
    /// Where its vtable starts.
    pub(crate) vtable: usize,
    /// Bytes of the vtable.
    pub(crate) vtable_len: usize,
}

/// A vector of a FlatBuffer: where its elements are, and how many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector<'b> {
    buffer: &'b Buffer<'b>,
    pub(crate) at: usize,
    pub(crate) count: usize,
    width: usize,
}

/// Something in a FlatBuffer does not lie where it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at} {problem}")]
pub struct TableFault {
    /// The part.
    pub what: &'static str,
    /// Where it is or should be, in bytes from the start of the file.
    pub at: u64,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl<'s> Buffer<'s> {
    pub(crate) fn new(source: &'s Source) -> Self {
        Self { source, whole: source.as_slice(), pages: RefCell::default() }
    }

    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.source.len()).unwrap_or(usize::MAX)
    }

    /// Returns the bytes at a place; `None` where they are not all in the file.
    pub(crate) fn array<const N: usize>(&self, at: usize) -> Result<Option<[u8; N]>> {
        if let Some(bytes) = self.whole {
            return Ok(bytes.get(at..).and_then(|rest| rest.first_chunk()).copied());
        }
        if at.checked_add(N).is_none_or(|end| end > self.len()) {
            return Ok(None);
        }
        let mut bytes = [0; N];
        let mut rest = bytes.as_mut_slice();
        let mut at = at as u64;
        while !rest.is_empty() {
            let page = self.page(at.checked_div(PAGE).unwrap_or_default())?;
            let within = usize::try_from(at.checked_rem(PAGE).unwrap_or_default());
            let found = page.get(within.unwrap_or_default()..).unwrap_or_default();
            let len = found.len().min(rest.len());
            let (to, behind) = rest.split_at_mut(len);
            to.copy_from_slice(found.get(..len).unwrap_or_default());
            (rest, at) = (behind, at.saturating_add(len as u64));
        }
        Ok(Some(bytes))
    }

    fn page(&self, number: u64) -> Result<Bytes> {
        let mut pages = self.pages.borrow_mut();
        if pages.is_empty() {
            pages.resize(PAGES, None);
        }
        let slot = usize::try_from(number).unwrap_or_default().checked_rem(PAGES);
        let slot = slot.and_then(|slot| pages.get_mut(slot));
        if let Some(Some((known, page))) = &slot
            && *known == number
        {
            return Ok(page.clone());
        }
        let start = number.saturating_mul(PAGE);
        let end = start.saturating_add(PAGE).min(self.source.len());
        let page = self.source.read(Extent::between(start, end), "FlatBuffer")?;
        if let Some(slot) = slot {
            *slot = Some((number, page.clone()));
        }
        Ok(page)
    }

    fn u32(&self, at: usize) -> Result<Option<u32>> {
        Ok(self.array(at)?.map(u32::from_le_bytes))
    }

    /// Returns where the offset at `at` leads.
    pub(crate) fn follow(&self, at: usize, what: &'static str) -> Result<usize> {
        let offset = self.u32(at)?;
        let offset = offset.ok_or_else(|| fault(what, at, "has its offset outside the file"))?;
        let target = at.checked_add(offset as usize).filter(|&target| target < self.len());
        let target = target.filter(|_| offset > 0);
        Ok(target.ok_or_else(|| fault(what, at, "has an offset that leads nowhere"))?)
    }

    /// Reads the vector at a place.
    pub(crate) fn vector(&self, at: usize, width: usize, what: &'static str) -> Result<Vector<'_>> {
        let count = self.u32(at)?.ok_or_else(|| fault(what, at, "lies outside the file"))?;
        let (count, start) = (count as usize, at.saturating_add(4));
        let end = count.checked_mul(width).and_then(|len| start.checked_add(len));
        if end.is_none_or(|end| end > self.len()) {
            return Err(fault(what, at, "ends behind the end of the file").into());
        }
        Ok(Vector { buffer: self, at: start, count, width })
    }
}

impl<'b> Table<'b> {
    /// Reads the root table.
    pub(crate) fn root(buffer: &'b Buffer<'b>, what: &'static str) -> Result<Self> {
        Self::new(buffer, buffer.follow(0, what)?, what)
    }

    pub(crate) fn new(buffer: &'b Buffer<'b>, at: usize, what: &'static str) -> Result<Self> {
        let back = buffer.array(at)?.ok_or_else(|| fault(what, at, "lies outside the file"))?;
        let vtable = i64::try_from(at).ok();
        let vtable = vtable.and_then(|at| at.checked_sub(i32::from_le_bytes(back).into()));
        let vtable = vtable.and_then(|vtable| usize::try_from(vtable).ok());
        let no_vtable = || fault(what, at, "has its vtable outside the file");
        let vtable = vtable.ok_or_else(no_vtable)?;
        let [a, b, c, d] = buffer.array(vtable)?.ok_or_else(no_vtable)?;
        let (vtable_len, len) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let (vtable_len, len) = (usize::from(vtable_len), usize::from(len));
        let is_inside =
            |start: usize, len| start.checked_add(len).is_some_and(|end| end <= buffer.len());
        if !is_inside(vtable, vtable_len) {
            return Err(no_vtable().into());
        }
        if vtable_len < 4 {
            return Err(fault(what, at, "has a vtable that is too short").into());
        }
        if !is_inside(at, len) || len < 4 {
            let problem = "is longer than the file or shorter than its first field";
            return Err(fault(what, at, problem).into());
        }
        Ok(Self { buffer, at, len, vtable, vtable_len })
    }

    /// Returns how many fields the vtable has room for.
    pub(crate) const fn field_count(self) -> usize {
        self.vtable_len.saturating_sub(4) / 2
    }

    /// Returns where a field is; `None` where it is absent.
    pub(crate) fn field(self, id: usize) -> Result<Option<usize>> {
        if id >= self.field_count() {
            return Ok(None);
        }
        let entry = self.vtable.saturating_add(id.saturating_mul(2)).saturating_add(4);
        let offset = self.buffer.array(entry)?.map_or(0, u16::from_le_bytes);
        Ok(if offset == 0 { None } else { self.at.checked_add(offset.into()) })
    }

    fn scalar<const N: usize>(self, id: usize, what: &'static str) -> Result<Option<[u8; N]>> {
        let Some(at) = self.field(id)? else { return Ok(None) };
        let end = at.checked_add(N).filter(|end| Some(*end) <= self.at.checked_add(self.len));
        let bytes = if end.is_some() { self.buffer.array(at)? } else { None };
        match bytes {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(fault(what, at, "lies outside its table").into()),
        }
    }

    pub(crate) fn u8(self, id: usize, what: &'static str) -> Result<u8> {
        Ok(self.scalar(id, what)?.map_or(0, u8::from_le_bytes))
    }

    pub(crate) fn i8(self, id: usize, what: &'static str) -> Result<i8> {
        Ok(self.scalar(id, what)?.map_or(0, i8::from_le_bytes))
    }

    pub(crate) fn u32(self, id: usize, what: &'static str) -> Result<u32> {
        Ok(self.scalar(id, what)?.map_or(0, u32::from_le_bytes))
    }

    pub(crate) fn i32(self, id: usize, what: &'static str) -> Result<i32> {
        Ok(self.scalar(id, what)?.map_or(0, i32::from_le_bytes))
    }

    pub(crate) fn f64(self, id: usize, what: &'static str) -> Result<f64> {
        Ok(self.scalar(id, what)?.map_or(0.0, f64::from_le_bytes))
    }

    pub(crate) fn table(self, id: usize, what: &'static str) -> Result<Option<Self>> {
        let Some(at) = self.field(id)? else { return Ok(None) };
        Self::new(self.buffer, self.buffer.follow(at, what)?, what).map(Some)
    }

    pub(crate) fn text(self, id: usize, what: &'static str) -> Result<Option<String>> {
        self.vector(id, 1, what)?.map(|vector| vector.text(what)).transpose()
    }

    pub(crate) fn vector(
        self,
        id: usize,
        width: usize,
        what: &'static str,
    ) -> Result<Option<Vector<'b>>> {
        let Some(at) = self.field(id)? else { return Ok(None) };
        self.buffer.vector(self.buffer.follow(at, what)?, width, what).map(Some)
    }
}

impl<'b> Vector<'b> {
    /// Returns where the elements are in the file.
    pub(crate) fn extent(self) -> Extent {
        let len = self.count.saturating_mul(self.width);
        Extent::between(self.at as u64, self.at.saturating_add(len) as u64)
    }

    pub(crate) fn text(self, what: &'static str) -> Result<String> {
        let (found, limit) = (self.count as u64, TEXT);
        if found > limit {
            return Err(fault(what, self.at, "is longer than 1 MiB").into());
        }
        let bytes = self.buffer.source.read(self.extent(), what)?;
        let text = String::from_utf8(bytes.into());
        Ok(text.map_err(|_| fault(what, self.at, "is not UTF-8"))?)
    }

    /// Returns where an element is; `None` behind the last one.
    pub(crate) fn element(self, index: usize) -> Option<usize> {
        let offset = index.checked_mul(self.width).filter(|_| index < self.count)?;
        self.at.checked_add(offset)
    }

    pub(crate) fn u32s(self) -> impl Iterator<Item = Result<u32>> + use<'b> {
        let elements = (0..self.count).filter_map(move |index| self.element(index));
        // The vector was proved to lie inside.
        elements.map(move |at| Ok(self.buffer.u32(at)?.unwrap_or_default()))
    }

    pub(crate) fn i32s(self) -> impl Iterator<Item = Result<i32>> + use<'b> {
        self.u32s().map(|number| number.map(u32::cast_signed))
    }

    /// Returns the table that an element leads to.
    pub(crate) fn table(self, index: usize, what: &'static str) -> Result<Option<Table<'b>>> {
        let Some(at) = self.element(index) else { return Ok(None) };
        Table::new(self.buffer, self.buffer.follow(at, what)?, what).map(Some)
    }

    pub(crate) fn tables(
        self,
        what: &'static str,
    ) -> impl Iterator<Item = Result<Table<'b>>> + use<'b> {
        (0..self.count).filter_map(move |index| self.table(index, what).transpose())
    }

    /// Returns the text that an element leads to.
    pub(crate) fn text_at(self, index: usize, what: &'static str) -> Result<Option<String>> {
        let Some(at) = self.element(index) else { return Ok(None) };
        self.buffer.vector(self.buffer.follow(at, what)?, 1, what)?.text(what).map(Some)
    }
}

pub(crate) fn fault(what: &'static str, at: usize, problem: &'static str) -> TableFault {
    TableFault { what, at: at as u64, problem }
}

/// What is read at once of a file that is not in memory, in bytes, and how many such pages are kept.
const PAGE: u64 = 1 << 12;
const PAGES: usize = 256;
/// Bytes of the longest text that is taken for a name.
const TEXT: u64 = 1 << 20;
