//! FlatBuffers read by hand: flatc makes no Rust code for unions of structs, which these files have,
//! and editing needs to know where fields are.
//!
//! ```text
//! table   offset to its vtable i32 (subtracted) · fields
//! vtable  bytes of the vtable u16 · bytes of the table u16 · place of each field in the table u16
//! vector  number of elements u32 · elements
//! text    number of bytes u32 · bytes · 0
//! ```

use std::borrow::Cow;

use tensor_core::Extent;

use crate::{Result, blocks::Blocks};

/// A table of a FlatBuffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'b> {
    bytes: &'b Blocks,
    /// Where it starts.
    pub(crate) at: usize,
    /// Where its vtable is behind the two lengths, and the bytes from there on.
    fields: usize,
    fields_len: usize,
    /// Bytes of the table.
    len: usize,
}

/// A vector of a FlatBuffer: where its elements are, and how many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector<'b> {
    bytes: &'b Blocks,
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

impl<'b> Table<'b> {
    /// Reads the root table.
    pub(crate) fn root(bytes: &'b Blocks, what: &'static str) -> Result<Self> {
        let at = follow(bytes, 0, what)?;
        Self::new(bytes, at, what)
    }

    pub(crate) fn new(bytes: &'b Blocks, at: usize, what: &'static str) -> Result<Self> {
        let outside = || fault(what, at, "lies outside the file");
        let back = i32::from_le_bytes(bytes.chunk(at)?.ok_or_else(outside)?);
        let vtable = i64::try_from(at).ok().and_then(|at| at.checked_sub(back.into()));
        let vtable = vtable.and_then(|vtable| usize::try_from(vtable).ok());
        let no_vtable = || fault(what, at, "has its vtable outside the file");
        let vtable = vtable.ok_or_else(no_vtable)?;
        let [a, b, c, d] = bytes.chunk(vtable)?.ok_or_else(no_vtable)?;
        let (vtable_len, len) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let end = vtable.checked_add(vtable_len.into()).filter(|end| *end <= bytes.len());
        end.ok_or_else(no_vtable)?;
        let too_short = || fault(what, at, "has a vtable that is too short");
        let fields_len = usize::from(vtable_len).checked_sub(4).ok_or_else(too_short)?;
        let len = usize::from(len);
        let is_inside = at.checked_add(len).is_some_and(|end| end <= bytes.len());
        if !is_inside || len < 4 {
            let problem = "is longer than the file or shorter than its first field";
            return Err(fault(what, at, problem).into());
        }
        Ok(Self { bytes, at, fields: vtable.saturating_add(4), fields_len, len })
    }

    /// Returns where a field is; `None` where it is absent.
    pub(crate) fn field(self, id: usize) -> Result<Option<usize>> {
        let entry = id.saturating_mul(2);
        if entry.saturating_add(2) > self.fields_len {
            return Ok(None);
        }
        let entry = self.bytes.chunk(self.fields.saturating_add(entry))?;
        match entry.map_or(0, u16::from_le_bytes) {
            0 => Ok(None),
            offset => Ok(self.at.checked_add(offset.into())),
        }
    }

    fn scalar<const N: usize>(self, id: usize, what: &'static str) -> Result<Option<[u8; N]>> {
        let Some(at) = self.field(id)? else { return Ok(None) };
        let end = at.checked_add(N).filter(|end| Some(*end) <= self.at.checked_add(self.len));
        let bytes = if end.is_some() { self.bytes.chunk(at)? } else { None };
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
        Self::new(self.bytes, follow(self.bytes, at, what)?, what).map(Some)
    }

    pub(crate) fn text(self, id: usize, what: &'static str) -> Result<Option<Cow<'b, str>>> {
        let Some(vector) = self.vector(id, 1, what)? else { return Ok(None) };
        vector.text(what).map(Some)
    }

    pub(crate) fn vector(
        self,
        id: usize,
        width: usize,
        what: &'static str,
    ) -> Result<Option<Vector<'b>>> {
        let Some(at) = self.field(id)? else { return Ok(None) };
        Vector::new(self.bytes, follow(self.bytes, at, what)?, width, what).map(Some)
    }
}

impl<'b> Vector<'b> {
    fn new(bytes: &'b Blocks, at: usize, width: usize, what: &'static str) -> Result<Self> {
        let outside = || fault(what, at, "lies outside the file");
        let count = u32::from_le_bytes(bytes.chunk(at)?.ok_or_else(outside)?) as usize;
        let start = at.saturating_add(4);
        let end = count.checked_mul(width).and_then(|len| start.checked_add(len));
        if end.is_none_or(|end| end > bytes.len()) {
            return Err(fault(what, at, "ends behind the end of the file").into());
        }
        Ok(Self { bytes, at: start, count, width })
    }

    /// Returns where the elements are in the file.
    pub(crate) fn extent(self) -> Extent {
        let len = self.count.saturating_mul(self.width);
        Extent::between(self.at as u64, self.at.saturating_add(len) as u64)
    }

    pub(crate) fn text(self, what: &'static str) -> Result<Cow<'b, str>> {
        let content = self.bytes.get(self.at, self.count)?.unwrap_or_default();
        let text = match content {
            Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
        };
        text.ok_or_else(|| fault(what, self.at, "is not UTF-8").into())
    }

    pub(crate) fn u32s(self) -> impl ExactSizeIterator<Item = Result<u32>> + use<'b> {
        (0..self.count).map(move |index| self.word(index).map(u32::from_le_bytes))
    }

    pub(crate) fn i32s(self) -> impl ExactSizeIterator<Item = Result<i32>> + use<'b> {
        (0..self.count).map(move |index| self.word(index).map(i32::from_le_bytes))
    }

    /// Returns the table that an element leads to.
    pub(crate) fn table(self, index: usize, what: &'static str) -> Result<Option<Table<'b>>> {
        if index >= self.count {
            return Ok(None);
        }
        let at = index.checked_mul(4).and_then(|offset| self.at.checked_add(offset));
        let at = at.ok_or_else(|| fault(what, self.at, "lies outside the file"))?;
        Table::new(self.bytes, follow(self.bytes, at, what)?, what).map(Some)
    }

    pub(crate) fn tables(
        self,
        what: &'static str,
    ) -> impl Iterator<Item = Result<Table<'b>>> + use<'b> {
        (0..self.count).filter_map(move |index| self.table(index, what).transpose())
    }

    /// Returns the text that an element leads to.
    pub(crate) fn text_at(self, index: usize, what: &'static str) -> Result<Option<Cow<'b, str>>> {
        if index >= self.count {
            return Ok(None);
        }
        let at = self.at.saturating_add(index.saturating_mul(4));
        Self::new(self.bytes, follow(self.bytes, at, what)?, 1, what)?.text(what).map(Some)
    }

    /// Returns an element of 4 bytes; all of them lie in the file.
    fn word(self, index: usize) -> Result<[u8; 4]> {
        let at = self.at.saturating_add(index.saturating_mul(4));
        Ok(self.bytes.chunk(at)?.unwrap_or_default())
    }
}

/// Returns where the offset at `at` leads.
fn follow(bytes: &Blocks, at: usize, what: &'static str) -> Result<usize> {
    let no_offset = || fault(what, at, "has its offset outside the file");
    let offset = u32::from_le_bytes(bytes.chunk(at)?.ok_or_else(no_offset)?);
    let target = at.checked_add(offset as usize).filter(|&target| target < bytes.len());
    let target = target.filter(|_| offset > 0);
    Ok(target.ok_or_else(|| fault(what, at, "has an offset that leads nowhere"))?)
}

fn fault(what: &'static str, at: usize, problem: &'static str) -> TableFault {
    TableFault { what, at: at as u64, problem }
}
