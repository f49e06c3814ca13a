use std::str;

use tensor_core::Extent;

use crate::{Fault, Problem, Result, UnknownTable};

/// Follows the references in a FlatBuffer in memory, and proves every part before it is used.
///
/// What is accepted here is accepted by the verifier of the crate `flatbuffers` under the same
/// bounds, and is sound for its accessors, which the verifier alone does not prove: tables and the
/// lists of their fields have the 4 bytes that each of them starts with, and are in the buffer as
/// long as they say, and no position takes more than 31 bits. It takes a fraction of the verifier's
/// time.
///
/// [`TableType::verify`](crate::TableType::verify) drives one by the description of a schema.
#[derive(Debug)]
pub struct Checker<'a> {
    bytes: &'a [u8],
    bounds: Bounds,
    /// How many more tables may be visited, how much deeper, and how many more bytes.
    left: Bounds,
}

/// What a buffer may make a [`Checker`] do. Parts that are shared count each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Tables.
    pub tables: usize,
    /// Tables within tables; never more than 256.
    pub depth: usize,
    /// Bytes.
    pub apparent_size: usize,
}

/// The fields of a table that a [`Checker`] visits.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    position: usize,
    /// Where each field is, in bytes from the start of the table; 0 for an absent one.
    vtable: &'a [u8],
}

impl Default for Bounds {
    /// Returns those of the crate `flatbuffers`: a million tables, 64 deep, of 2 GiB.
    fn default() -> Self {
        Self { tables: 1_000_000, depth: 64, apparent_size: 1 << 31 }
    }
}

impl Fields<'_> {
    /// Returns where the table starts, in bytes from the start of the buffer.
    #[must_use]
    pub const fn position(self) -> usize {
        self.position
    }

    /// Tells whether a field is set that lies in the list at `vtable_offset` or behind.
    #[must_use]
    #[inline]
    pub fn has_from(self, vtable_offset: u16) -> bool {
        let rest = self.vtable.get(usize::from(vtable_offset)..).unwrap_or_default();
        rest.iter().any(|byte| *byte != 0)
    }
}

impl<'a> Checker<'a> {
    /// Begins with a buffer.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where it is longer than the 2 GiB that offsets of FlatBuffers lead.
    pub fn new(bytes: &'a [u8], bounds: Bounds) -> Result<Self, Fault> {
        if bytes.len() > LONGEST {
            let found = bytes.len() as u64;
            return Err(Fault::new("buffer", 0, Problem::LongBuffer { found }));
        }
        let bounds = Bounds { depth: bounds.depth.min(DEEPEST), ..bounds };
        Ok(Self { bytes, bounds, left: bounds })
    }

    /// Returns the buffer.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Visits the table that the reference at a place leads to, until [`leave`](Self::leave).
    ///
    /// # Errors
    ///
    /// A [`Fault`] where the table or its list of fields is not in the buffer or not aligned, one of
    /// them has an impossible length, or a bound is reached.
    #[inline]
    pub fn enter(&mut self, reference: usize) -> Result<Fields<'a>, Fault> {
        let position = self.follow(reference)?;
        let distance = i32::from_le_bytes(self.read(position)?);
        let vtable = vtable_of(position, distance).filter(|start| *start < self.bytes.len());
        let Some(vtable) = vtable else {
            return Err(self.vtable_outside(position, distance, 4));
        };
        let vtable_len = u16::from_le_bytes(self.read(vtable)?);
        if vtable_len < 4 || !vtable_len.is_multiple_of(2) {
            let problem = Problem::VtableLength { found: vtable_len };
            return Err(Fault::new("table", position as u64, problem));
        }
        let list = self.range(vtable, vtable_len.into(), "vtable")?;
        let [_, _, a, b, ..] = *list else {
            return Err(self.vtable_outside(position, distance, 4));
        };
        let found = u16::from_le_bytes([a, b]);
        let remaining = self.bytes.len().saturating_sub(position);
        if found < 4 || usize::from(found) > remaining {
            let problem = Problem::TableLength { found, remaining: remaining as u64 };
            return Err(Fault::new("table", position as u64, problem));
        }
        let Some(tables) = self.left.tables.checked_sub(1) else {
            let problem = Problem::TooManyTables { limit: self.bounds.tables };
            return Err(Fault::new("table", position as u64, problem));
        };
        let Some(depth) = self.left.depth.checked_sub(1) else {
            let problem = Problem::TooDeep { limit: self.bounds.depth };
            return Err(Fault::new("table", position as u64, problem));
        };
        (self.left.tables, self.left.depth) = (tables, depth);
        Ok(Fields { position, vtable: list })
    }

    /// Ends the visit of a table.
    #[inline]
    pub const fn leave(&mut self) {
        self.left.depth = self.left.depth.saturating_add(1);
    }

    /// Returns where a field is whose place stands in the list at `vtable_offset`; `None` where it
    /// is absent. The field of id `n` is at `4 + 2 * n`.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where a bound is reached.
    #[inline]
    pub fn field(
        &mut self,
        fields: Fields<'_>,
        vtable_offset: u16,
    ) -> Result<Option<usize>, Fault> {
        let place = fields.vtable.get(usize::from(vtable_offset)..).and_then(<[u8]>::first_chunk);
        let Some(&place) = place else { return Ok(None) };
        self.count(size_of::<u16>(), fields.position)?;
        let place = usize::from(u16::from_le_bytes(place));
        Ok((place > 0).then(|| fields.position.saturating_add(place)))
    }

    /// Returns where a field is that must be there.
    ///
    /// # Errors
    ///
    /// A [`Fault`] with the field's name where it is absent, or a bound is reached.
    #[inline]
    pub fn required(
        &mut self,
        fields: Fields<'_>,
        vtable_offset: u16,
        what: &'static str,
    ) -> Result<usize, Fault> {
        let place = self.field(fields, vtable_offset)?;
        place.ok_or_else(|| Fault::new(what, fields.position as u64, Problem::Missing))
    }

    /// Returns the tag and the place of the value of a union; `None` where it is absent.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where only one of the two is there.
    #[inline]
    pub fn union(
        &mut self,
        fields: Fields<'_>,
        tag: u16,
        value: u16,
    ) -> Result<Option<(u8, usize)>, Fault> {
        match (self.field(fields, tag)?, self.field(fields, value)?) {
            (None, None) => Ok(None),
            (Some(tag), Some(value)) => {
                let [tag] = self.read(tag)?;
                Ok(Some((tag, value)))
            }
            _ => Err(Fault::new("union", fields.position as u64, Problem::HalfUnion)),
        }
    }

    /// Reads a number of so many bytes.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where it is not in the buffer or not aligned.
    #[inline]
    pub fn read<const WIDTH: usize>(&mut self, position: usize) -> Result<[u8; WIDTH], Fault> {
        require_aligned(position, WIDTH)?;
        match self.range(position, WIDTH, "number")?.first_chunk() {
            Some(bytes) => Ok(*bytes),
            None => Err(self.outside("number", position, WIDTH)),
        }
    }

    /// Proves bytes that start at a multiple of `alignment`: a struct.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where they are not in the buffer or not aligned.
    pub fn inline(&mut self, position: usize, size: usize, alignment: usize) -> Result<(), Fault> {
        require_aligned(position, alignment)?;
        self.range(position, size, "struct").map(drop)
    }

    /// Returns where the numbers of a vector are, each of so many bytes.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where they are not in the buffer or not aligned.
    #[inline]
    pub fn vector<const WIDTH: usize>(&mut self, reference: usize) -> Result<Extent, Fault> {
        self.elements(reference, WIDTH, WIDTH)
    }

    /// Returns where the elements of a vector are, each of `size` bytes.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where they are not in the buffer, or do not start at a multiple of `alignment`.
    #[inline]
    pub fn elements(
        &mut self,
        reference: usize,
        size: usize,
        alignment: usize,
    ) -> Result<Extent, Fault> {
        let position = self.follow(reference)?;
        let count = u32::from_le_bytes(self.read(position)?);
        let start = position.saturating_add(PREFIX);
        require_aligned(start, alignment)?;
        let len = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(size);
        let len = self.range(start, len, "vector")?.len();
        Ok(Extent::between(start as u64, start.saturating_add(len) as u64))
    }

    /// Returns where a text is; it is UTF-8, and a zero is behind it.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where that is not so.
    #[inline]
    pub fn text(&mut self, reference: usize) -> Result<Extent, Fault> {
        let text = self.vector::<1>(reference)?;
        let fault = |problem| Fault::new("text", text.offset(), problem);
        if text.of(self.bytes).is_none_or(|text| str::from_utf8(text).is_err()) {
            return Err(fault(Problem::NotUtf8));
        }
        let end = usize::try_from(text.end()).ok().and_then(|end| self.bytes.get(end));
        if end == Some(&0) { Ok(text) } else { Err(fault(Problem::Unterminated)) }
    }

    /// Returns the places of the references in a vector of tables or texts.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where they are not in the buffer or not aligned.
    #[inline]
    pub fn tables(
        &mut self,
        reference: usize,
    ) -> Result<impl ExactSizeIterator<Item = usize> + use<>, Fault> {
        let elements = self.vector::<PREFIX>(reference)?;
        let end = usize::try_from(elements.end()).unwrap_or_default();
        let start = usize::try_from(elements.offset()).unwrap_or_default();
        Ok((start..end).step_by(PREFIX))
    }

    /// Proves that the table is there which a reference leads to, whatever fields it has.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where it or its list of fields is not in the buffer.
    pub fn unknown(&self, reference: usize) -> Result<(), Fault> {
        UnknownTable::require(self.bytes, reference, "table")
    }

    #[inline]
    pub(crate) fn follow(&mut self, reference: usize) -> Result<usize, Fault> {
        let offset = u32::from_le_bytes(self.read(reference)?);
        if offset == 0 {
            return Err(Fault::new("reference", reference as u64, Problem::NoOffset));
        }
        Ok(reference.saturating_add(usize::try_from(offset).unwrap_or(usize::MAX)))
    }

    #[inline]
    fn range(&mut self, start: usize, len: usize, what: &'static str) -> Result<&'a [u8], Fault> {
        self.count(len, start)?;
        match self.bytes.get(start..start.saturating_add(len)) {
            Some(bytes) => Ok(bytes),
            None => Err(self.outside(what, start, len)),
        }
    }

    #[inline]
    fn count(&mut self, bytes: usize, at: usize) -> Result<(), Fault> {
        match self.left.apparent_size.checked_sub(bytes) {
            Some(left) => {
                self.left.apparent_size = left;
                Ok(())
            }
            None => Err(self.too_much(bytes, at)),
        }
    }

    #[cold]
    fn too_much(&self, bytes: usize, at: usize) -> Fault {
        if at.saturating_add(bytes) > self.bytes.len() {
            return self.outside("part", at, bytes);
        }
        let problem = Problem::TooMuch { limit: self.bounds.apparent_size };
        Fault::new("part", at as u64, problem)
    }

    #[cold]
    fn outside(&self, what: &'static str, at: usize, needed: usize) -> Fault {
        let remaining = self.bytes.len().saturating_sub(at) as u64;
        Fault::new(what, at as u64, Problem::OutOfBounds { needed: needed as u64, remaining })
    }

    #[cold]
    fn vtable_outside(&self, position: usize, distance: i32, needed: u64) -> Fault {
        let vtable = i64::try_from(position).unwrap_or(i64::MAX).saturating_sub(distance.into());
        let problem = Problem::VtableOutside { vtable, needed, len: self.bytes.len() as u64 };
        Fault::new("table", position as u64, problem)
    }
}

/// Returns where the list of fields is of a table that is so far behind it.
#[inline]
fn vtable_of(position: usize, distance: i32) -> Option<usize> {
    let away = usize::try_from(distance.unsigned_abs()).ok()?;
    if distance > 0 { position.checked_sub(away) } else { position.checked_add(away) }
}

/// Demands what the verifier does: on some machines numbers of 8 bytes lie on boundaries of 4.
#[inline]
fn require_aligned(position: usize, width: usize) -> Result<(), Fault> {
    let alignment = if width == 8 { align_of::<u64>() } else { width };
    if position.is_multiple_of(alignment) {
        return Ok(());
    }
    let alignment = alignment as u64;
    Err(Fault::new("part", position as u64, Problem::Misaligned { alignment }))
}

/// Bytes of a reference, and of the number of elements in front of a vector.
const PREFIX: usize = 4;

/// Bytes of the longest buffer: offsets between tables and their fields have a sign.
const LONGEST: usize = i32::MAX as usize;

/// As deep as tables may be nested, which a description is followed by calls of functions.
const DEEPEST: usize = 256;
