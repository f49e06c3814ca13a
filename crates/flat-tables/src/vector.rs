use tensor_core::Extent;

use crate::{
    Buffer, Fault, Problem, Result, Table,
    buffer::{outside, require_aligned},
};

/// A vector: its elements are in the buffer.
///
/// ```text
/// vector  number of elements u32 · elements
/// text    number of bytes u32 · bytes · 0
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Vector<'b> {
    buffer: &'b Buffer<'b>,
    start: usize,
    count: usize,
    width: usize,
}

impl<'b> Vector<'b> {
    /// Reads the vector at a place, of elements of `width` bytes.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::vector`].
    pub fn new(
        buffer: &'b Buffer<'b>,
        position: usize,
        width: usize,
        what: &'static str,
    ) -> Result<Self> {
        let count = u32::from_le_bytes(buffer.aligned(position, what)?);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let start = position.saturating_add(4);
        let len = count.saturating_mul(width);
        if len > buffer.len().saturating_sub(start) {
            return Err(outside(what, start, len, buffer.len()).into());
        }
        if count > 0 {
            require_aligned(start, width, what)?;
        }
        Ok(Self { buffer, start, count, width })
    }

    /// Returns where the elements are, in bytes from the start of the buffer. Their number stands in
    /// the 4 bytes before.
    #[must_use]
    pub const fn extent(self) -> Extent {
        let len = self.count.saturating_mul(self.width);
        Extent::between(self.start as u64, self.start.saturating_add(len) as u64)
    }

    /// Returns how many elements there are.
    #[must_use]
    pub const fn count(self) -> usize {
        self.count
    }

    /// Returns where an element is; `None` behind the last one.
    #[must_use]
    pub fn element(self, index: usize) -> Option<usize> {
        let offset = index.checked_mul(self.width).filter(|_| index < self.count)?;
        self.start.checked_add(offset)
    }

    /// Returns the elements as they are stored, `N` bytes of each.
    pub fn elements<const N: usize>(self) -> impl Iterator<Item = Result<[u8; N]>> + use<'b, N> {
        let places = (0..self.count).filter_map(move |index| self.element(index));
        // The vector was proved to lie inside.
        places.map(move |at| Ok(self.buffer.array(at)?.unwrap_or([0; N])))
    }

    /// Returns elements of type `u32`.
    pub fn u32s(self) -> impl Iterator<Item = Result<u32>> + use<'b> {
        self.elements().map(|element| element.map(u32::from_le_bytes))
    }

    /// Returns elements of type `i32`.
    pub fn i32s(self) -> impl Iterator<Item = Result<i32>> + use<'b> {
        self.elements().map(|element| element.map(i32::from_le_bytes))
    }

    /// Returns the table that an element leads to; `None` behind the last one.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::table`].
    pub fn table(self, index: usize, what: &'static str) -> Result<Option<Table<'b>>> {
        self.element(index).map(|at| self.buffer.table(at, what)).transpose()
    }

    /// Returns the tables that the elements lead to.
    pub fn tables(self, what: &'static str) -> impl Iterator<Item = Result<Table<'b>>> + use<'b> {
        (0..self.count).filter_map(move |index| self.table(index, what).transpose())
    }

    /// Returns the text that an element leads to, of `limit` bytes at most; `None` behind the last
    /// one.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::vector`] and [`text`](Self::text).
    pub fn text_at(self, index: usize, limit: u64, what: &'static str) -> Result<Option<String>> {
        let Some(at) = self.element(index) else { return Ok(None) };
        self.buffer.vector(at, 1, what)?.text(limit, what).map(Some)
    }

    /// Returns the elements, bytes each, as text; the zero behind them is not asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Fault`](crate::Error::Fault) where there are more than `limit`, or they are not
    /// UTF-8.
    pub fn text(self, limit: u64, what: &'static str) -> Result<String> {
        let at = self.extent().offset();
        let found = self.extent().len();
        if found > limit {
            return Err(Fault::new(what, at, Problem::LongText { found, limit }).into());
        }
        let bytes = self.buffer.read(self.extent(), what)?;
        let text = String::from_utf8(bytes.into_owned());
        text.map_err(|_| Fault::new(what, at, Problem::NotUtf8).into())
    }
}
