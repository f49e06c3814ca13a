//! FlatBuffers read by hand: flatc makes no Rust code for unions of structs, which these files have,
//! and editing needs to know where fields are.
//!
//! ```text
//! table   offset to its vtable i32 (subtracted) · fields
//! vtable  bytes of the vtable u16 · bytes of the table u16 · place of each field in the table u16
//! vector  number of elements u32 · elements
//! text    number of bytes u32 · bytes · 0
//! ```

use tensor_core::Extent;

/// A table of a FlatBuffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'b> {
    bytes: &'b [u8],
    /// Where it starts.
    pub(crate) at: usize,
    /// Its vtable behind the two lengths.
    fields: &'b [u8],
    /// Bytes of the table.
    len: usize,
}

/// A vector of a FlatBuffer: where its elements are, and how many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector<'b> {
    bytes: &'b [u8],
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

type Read<T> = Result<T, TableFault>;

impl<'b> Table<'b> {
    /// Reads the root table.
    pub(crate) fn root(bytes: &'b [u8], what: &'static str) -> Read<Self> {
        let at = follow(bytes, 0, what)?;
        Self::new(bytes, at, what)
    }

    pub(crate) fn new(bytes: &'b [u8], at: usize, what: &'static str) -> Read<Self> {
        let outside = || fault(what, at, "lies outside the file");
        let back = i32::from_le_bytes(chunk(bytes, at).ok_or_else(outside)?);
        let vtable = i64::try_from(at).ok().and_then(|at| at.checked_sub(back.into()));
        let vtable = vtable.and_then(|vtable| usize::try_from(vtable).ok());
        let vtable = vtable.ok_or_else(|| fault(what, at, "has its vtable outside the file"))?;
        let no_vtable = || fault(what, at, "has its vtable outside the file");
        let sizes: [u8; 4] = chunk(bytes, vtable).ok_or_else(no_vtable)?;
        let [a, b, c, d] = sizes;
        let (vtable_len, len) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let end = vtable.checked_add(vtable_len.into());
        let vtable = end.and_then(|end| bytes.get(vtable..end)).ok_or_else(no_vtable)?;
        let fields =
            vtable.get(4..).ok_or_else(|| fault(what, at, "has a vtable that is too short"))?;
        let len = usize::from(len);
        let is_inside = at.checked_add(len).is_some_and(|end| end <= bytes.len());
        if !is_inside || len < 4 {
            return Err(fault(what, at, "is longer than the file or shorter than its first field"));
        }
        Ok(Self { bytes, at, fields, len })
    }

    /// Returns where a field is; `None` where it is absent.
    pub(crate) fn field(self, id: usize) -> Option<usize> {
        let entry: [u8; 2] = chunk(self.fields, id.checked_mul(2)?)?;
        match usize::from(u16::from_le_bytes(entry)) {
            0 => None,
            offset => self.at.checked_add(offset),
        }
    }

    fn scalar<const N: usize>(self, id: usize, what: &'static str) -> Read<Option<[u8; N]>> {
        let Some(at) = self.field(id) else { return Ok(None) };
        let end = at.checked_add(N).filter(|end| Some(*end) <= self.at.checked_add(self.len));
        match end.and_then(|_| chunk(self.bytes, at)) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(fault(what, at, "lies outside its table")),
        }
    }

    pub(crate) fn u8(self, id: usize, what: &'static str) -> Read<u8> {
        Ok(self.scalar(id, what)?.map_or(0, u8::from_le_bytes))
    }

    pub(crate) fn i8(self, id: usize, what: &'static str) -> Read<i8> {
        Ok(self.scalar(id, what)?.map_or(0, i8::from_le_bytes))
    }

    pub(crate) fn u32(self, id: usize, what: &'static str) -> Read<u32> {
        Ok(self.scalar(id, what)?.map_or(0, u32::from_le_bytes))
    }

    pub(crate) fn i32(self, id: usize, what: &'static str) -> Read<i32> {
        Ok(self.scalar(id, what)?.map_or(0, i32::from_le_bytes))
    }

    pub(crate) fn f64(self, id: usize, what: &'static str) -> Read<f64> {
        Ok(self.scalar(id, what)?.map_or(0.0, f64::from_le_bytes))
    }

    pub(crate) fn table(self, id: usize, what: &'static str) -> Read<Option<Self>> {
        let Some(at) = self.field(id) else { return Ok(None) };
        Self::new(self.bytes, follow(self.bytes, at, what)?, what).map(Some)
    }

    pub(crate) fn text(self, id: usize, what: &'static str) -> Read<Option<&'b str>> {
        let Some(vector) = self.vector(id, 1, what)? else { return Ok(None) };
        vector.text(what).map(Some)
    }

    pub(crate) fn vector(
        self,
        id: usize,
        width: usize,
        what: &'static str,
    ) -> Read<Option<Vector<'b>>> {
        let Some(at) = self.field(id) else { return Ok(None) };
        let at = follow(self.bytes, at, what)?;
        let outside = || fault(what, at, "lies outside the file");
        let count = u32::from_le_bytes(chunk(self.bytes, at).ok_or_else(outside)?) as usize;
        let start = at.saturating_add(4);
        let end = count.checked_mul(width).and_then(|len| start.checked_add(len));
        if end.is_none_or(|end| end > self.bytes.len()) {
            return Err(fault(what, at, "ends behind the end of the file"));
        }
        Ok(Some(Vector { bytes: self.bytes, at: start, count, width }))
    }
}

impl<'b> Vector<'b> {
    /// Returns the bytes of all elements.
    pub(crate) fn content(self) -> &'b [u8] {
        let len = self.count.saturating_mul(self.width);
        self.bytes.get(self.at..self.at.saturating_add(len)).unwrap_or_default()
    }

    /// Returns where the elements are in the file.
    pub(crate) fn extent(self) -> Extent {
        Extent::between(self.at as u64, self.at.saturating_add(self.content().len()) as u64)
    }

    pub(crate) fn text(self, what: &'static str) -> Read<&'b str> {
        std::str::from_utf8(self.content()).map_err(|_| fault(what, self.at, "is not UTF-8"))
    }

    pub(crate) fn u32s(self) -> impl ExactSizeIterator<Item = u32> + use<'b> {
        self.content().as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes))
    }

    pub(crate) fn i32s(self) -> impl ExactSizeIterator<Item = i32> + use<'b> {
        self.content().as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes))
    }

    /// Returns the table that an element leads to.
    pub(crate) fn table(self, index: usize, what: &'static str) -> Read<Option<Table<'b>>> {
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
    ) -> impl Iterator<Item = Read<Table<'b>>> + use<'b> {
        (0..self.count).filter_map(move |index| self.table(index, what).transpose())
    }

    /// Returns the text that an element leads to.
    pub(crate) fn text_at(self, index: usize, what: &'static str) -> Read<Option<&'b str>> {
        if index >= self.count {
            return Ok(None);
        }
        let at = self.at.saturating_add(index.saturating_mul(4));
        let at = follow(self.bytes, at, what)?;
        let outside = || fault(what, at, "lies outside the file");
        let count = u32::from_le_bytes(chunk(self.bytes, at).ok_or_else(outside)?) as usize;
        let start = at.saturating_add(4);
        let text = start.checked_add(count).and_then(|end| self.bytes.get(start..end));
        let text = text.ok_or_else(|| fault(what, at, "ends behind the end of the file"))?;
        std::str::from_utf8(text).map(Some).map_err(|_| fault(what, at, "is not UTF-8"))
    }
}

/// Returns where the offset at `at` leads.
fn follow(bytes: &[u8], at: usize, what: &'static str) -> Read<usize> {
    let offset = u32::from_le_bytes(
        chunk(bytes, at).ok_or_else(|| fault(what, at, "has its offset outside the file"))?,
    );
    let target = at.checked_add(offset as usize).filter(|&target| target < bytes.len());
    target.filter(|_| offset > 0).ok_or_else(|| fault(what, at, "has an offset that leads nowhere"))
}

pub(crate) fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn fault(what: &'static str, at: usize, problem: &'static str) -> TableFault {
    TableFault { what, at: at as u64, problem }
}
