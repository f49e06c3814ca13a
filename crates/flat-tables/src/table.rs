use tensor_core::Extent;

use crate::{
    Buffer, Fault, Problem, Result, Vector,
    buffer::{outside, require_aligned},
};

/// A table: it and the list of its fields are in the buffer.
///
/// ```text
/// table   back to its vtable i32 · fields
/// vtable  bytes of the vtable u16 · bytes of the table u16 · place of each field in the table u16
/// ```
///
/// A place of 0 stands for a field that is absent, as do those that the vtable has no room for.
#[derive(Clone, Copy, Debug)]
pub struct Table<'b> {
    buffer: &'b Buffer<'b>,
    position: usize,
    len: usize,
    vtable: usize,
    vtable_len: usize,
}

impl<'b> Table<'b> {
    /// Reads the table at a place.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::table`].
    pub fn new(buffer: &'b Buffer<'b>, position: usize, what: &'static str) -> Result<Self> {
        let fault = |problem| Fault::new(what, position as u64, problem);
        let back = i32::from_le_bytes(buffer.aligned(position, what)?);
        let distance = i64::try_from(position).unwrap_or(i64::MAX).saturating_sub(back.into());
        let outside = |needed| {
            fault(Problem::VtableOutside { vtable: distance, needed, len: buffer.len() as u64 })
        };
        let vtable = usize::try_from(distance).ok();
        let Some(vtable) = vtable.filter(|vtable| *vtable < buffer.len()) else {
            return Err(outside(4).into());
        };
        require_aligned(vtable, 2, "vtable")?;
        let Some([a, b, c, d]) = buffer.array(vtable)? else {
            return Err(outside(4).into());
        };
        let (vtable_len, len) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        if vtable_len < 4 || !vtable_len.is_multiple_of(2) {
            return Err(fault(Problem::VtableLength { found: vtable_len }).into());
        }
        let remaining = |start: usize| buffer.len().saturating_sub(start);
        if remaining(vtable) < vtable_len.into() {
            return Err(outside(vtable_len.into()).into());
        }
        let remaining = remaining(position);
        if len < 4 || remaining < len.into() {
            let remaining = remaining as u64;
            return Err(fault(Problem::TableLength { found: len, remaining }).into());
        }
        let (len, vtable_len) = (len.into(), vtable_len.into());
        Ok(Self { buffer, position, len, vtable, vtable_len })
    }

    /// Returns where the table starts, in bytes from the start of the buffer.
    #[must_use]
    pub const fn position(self) -> usize {
        self.position
    }

    /// Returns where the table is; what its fields refer to is elsewhere.
    #[must_use]
    pub const fn extent(self) -> Extent {
        Extent::between(self.position as u64, self.position.saturating_add(self.len) as u64)
    }

    /// Returns where the list of its fields is. Tables may share one.
    #[must_use]
    pub const fn vtable(self) -> Extent {
        Extent::between(self.vtable as u64, self.vtable.saturating_add(self.vtable_len) as u64)
    }

    /// Returns how many fields there may be: one more than the highest id of those set.
    #[must_use]
    pub const fn field_count(self) -> usize {
        self.vtable_len.saturating_sub(4) / 2
    }

    /// Returns where a field is, in bytes from the start of the buffer; `None` where it is absent.
    ///
    /// Nothing is said of whether it lies in the table.
    ///
    /// # Errors
    ///
    /// [`Error::Core`](crate::Error::Core) where the source cannot be read.
    pub fn field(self, id: usize) -> Result<Option<usize>> {
        if id >= self.field_count() {
            return Ok(None);
        }
        let entry = self.vtable.saturating_add(4).saturating_add(id.saturating_mul(2));
        let place = self.buffer.array(entry)?.map_or(0, u16::from_le_bytes);
        Ok((place > 0).then(|| self.position.saturating_add(place.into())))
    }

    /// Returns the bytes of a number in the table; `None` where the field is absent.
    ///
    /// # Errors
    ///
    /// [`Error::Fault`](crate::Error::Fault) where it is not in the table or not aligned.
    pub fn scalar<const N: usize>(self, id: usize, what: &'static str) -> Result<Option<[u8; N]>> {
        let Some(at) = self.field(id)? else { return Ok(None) };
        require_aligned(at, N, what)?;
        let end = at.saturating_add(N).saturating_sub(self.position);
        if end > self.len {
            let problem = Problem::FieldOutside { end: end as u64, len: self.len as u64 };
            return Err(Fault::new(what, at as u64, problem).into());
        }
        let bytes = self.buffer.array(at)?;
        bytes.map(Some).ok_or_else(|| outside(what, at, N, self.buffer.len()).into())
    }

    /// Returns the first bytes of a struct that a field leads to, as unions hold them; `None` where
    /// the field is absent.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::follow`]; where the bytes are not in the buffer.
    pub fn structure<const N: usize>(
        self,
        id: usize,
        what: &'static str,
    ) -> Result<Option<[u8; N]>> {
        let Some(at) = self.field(id)? else { return Ok(None) };
        let at = self.buffer.follow(at, what)?;
        let bytes = self.buffer.array(at)?;
        bytes.map(Some).ok_or_else(|| outside(what, at, N, self.buffer.len()).into())
    }

    /// Returns the table that a field leads to; `None` where the field is absent.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::table`].
    pub fn table(self, id: usize, what: &'static str) -> Result<Option<Self>> {
        self.field(id)?.map(|at| self.buffer.table(at, what)).transpose()
    }

    /// Returns the vector that a field leads to, of elements of `width` bytes; `None` where the
    /// field is absent.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::vector`].
    pub fn vector(self, id: usize, width: usize, what: &'static str) -> Result<Option<Vector<'b>>> {
        self.field(id)?.map(|at| self.buffer.vector(at, width, what)).transpose()
    }

    /// Returns the text that a field leads to, of `limit` bytes at most; `None` where the field is
    /// absent.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::vector`] and [`Vector::text`].
    pub fn text(self, id: usize, limit: u64, what: &'static str) -> Result<Option<String>> {
        self.vector(id, 1, what)?.map(|vector| vector.text(limit, what)).transpose()
    }
}

macro_rules! numbers {
    ($($name:ident)*) => {$(
        impl Table<'_> {
            #[doc = concat!("Returns a field of type `", stringify!($name), "`; 0 where it is absent.")]
            ///
            /// # Errors
            ///
            /// As for [`scalar`](Self::scalar).
            pub fn $name(self, id: usize, what: &'static str) -> Result<$name> {
                Ok(self.scalar(id, what)?.map_or_else(Default::default, $name::from_le_bytes))
            }
        }
    )*};
}

numbers! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }
