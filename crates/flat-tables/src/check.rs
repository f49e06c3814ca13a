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
        let distance = i32::from_le_bytes(self.number(position)?);
        // What leads to before the start wraps around, far behind the end.
        let vtable = (position as u64).wrapping_sub(i64::from(distance).cast_unsigned());
        let list = self.tail(vtable);
        let [a, b, c, d, ..] = *list else {
            return Err(self.vtable_fault(position, vtable));
        };
        let (vtable_len, found) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let list = match list.get(..vtable_len.into()) {
            Some(list) if vtable_len >= 4 && (u64::from(vtable_len) | vtable).is_multiple_of(2) => {
                list
            }
            _ => return Err(self.vtable_fault(position, vtable)),
        };
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
        self.count(list.len().saturating_add(LEADING), position)?;
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
        let number = self.number(position)?;
        self.count(WIDTH, position)?;
        Ok(number)
    }

    /// Proves bytes that start at a multiple of `alignment`: a struct.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where they are not in the buffer or not aligned.
    pub fn inline(&mut self, position: usize, size: usize, alignment: usize) -> Result<(), Fault> {
        require_aligned(position, alignment)?;
        if self.bytes.get(position..position.saturating_add(size)).is_none() {
            return Err(self.outside("struct", position, size));
        }
        self.count(size, position)
    }

    /// Proves the struct that a reference leads to.
    pub(crate) fn referred(
        &mut self,
        reference: usize,
        size: usize,
        alignment: usize,
    ) -> Result<(), Fault> {
        self.count(PREFIX, reference)?;
        self.inline(self.follow(reference)?, size, alignment)
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
        let (start, elements) = self.part(reference, size, alignment)?;
        Ok(Extent::between(start as u64, start.saturating_add(elements.len()) as u64))
    }

    /// Returns where a text is; it is UTF-8, and a zero is behind it.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where that is not so.
    #[inline]
    pub fn text(&mut self, reference: usize) -> Result<Extent, Fault> {
        let (start, text) = self.part(reference, 1, 1)?;
        let end = start.saturating_add(text.len());
        let problem = if !text.is_ascii() && str::from_utf8(text).is_err() {
            Problem::NotUtf8
        } else if self.bytes.get(end) != Some(&0) {
            Problem::Unterminated
        } else {
            return Ok(Extent::between(start as u64, end as u64));
        };
        Err(Fault::new("text", start as u64, problem))
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
        let (start, elements) = self.part(reference, PREFIX, PREFIX)?;
        Ok((start..start.saturating_add(elements.len())).step_by(PREFIX))
    }

    /// Proves that the table is there which a reference leads to, whatever fields it has.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where it or its list of fields is not in the buffer.
    pub fn unknown(&self, reference: usize) -> Result<(), Fault> {
        UnknownTable::require(self.bytes, reference, "table")
    }

    /// Returns where the reference at a place leads. Whoever looks there counts its bytes, too.
    #[inline(always)]
    fn follow(&self, reference: usize) -> Result<usize, Fault> {
        let offset = u32::from_le_bytes(self.number(reference)?);
        if offset == 0 {
            return Err(Fault::new("reference", reference as u64, Problem::NoOffset));
        }
        Ok(reference.saturating_add(usize::try_from(offset).unwrap_or(usize::MAX)))
    }

    /// Returns where the elements of a vector start, and their bytes.
    #[inline(always)]
    fn part(
        &mut self,
        reference: usize,
        size: usize,
        alignment: usize,
    ) -> Result<(usize, &'a [u8]), Fault> {
        let position = self.follow(reference)?;
        let count = u32::from_le_bytes(self.number(position)?);
        let start = position.saturating_add(PREFIX);
        require_aligned(start, alignment)?;
        let len = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(size);
        let Some(elements) = self.bytes.get(start..start.saturating_add(len)) else {
            return Err(self.outside("vector", start, len));
        };
        self.count(len.saturating_add(PREFIX + PREFIX), start)?;
        Ok((start, elements))
    }

    #[inline(always)]
    fn tail(&self, position: u64) -> &'a [u8] {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        self.bytes.get(position..).unwrap_or_default()
    }

    /// Reads a number without counting its bytes.
    #[inline(always)]
    fn number<const WIDTH: usize>(&self, position: usize) -> Result<[u8; WIDTH], Fault> {
        require_aligned(position, WIDTH)?;
        match self.bytes.get(position..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => Ok(*bytes),
            None => Err(self.outside("number", position, WIDTH)),
        }
    }

    /// Counts bytes of a part that is in the buffer.
    #[inline]
    fn count(&mut self, bytes: usize, at: usize) -> Result<(), Fault> {
        match self.left.apparent_size.checked_sub(bytes) {
            Some(left) => {
                self.left.apparent_size = left;
                Ok(())
            }
            None => {
                let problem = Problem::TooMuch { limit: self.bounds.apparent_size };
                Err(Fault::new("part", at as u64, problem))
            }
        }
    }

    #[cold]
    fn outside(&self, what: &'static str, at: usize, needed: usize) -> Fault {
        let remaining = self.bytes.len().saturating_sub(at) as u64;
        Fault::new(what, at as u64, Problem::OutOfBounds { needed: needed as u64, remaining })
    }

    /// Says why the list of the fields of a table is none.
    #[cold]
    fn vtable_fault(&self, position: usize, vtable: u64) -> Fault {
        let rest = self.tail(vtable);
        let found = rest.first_chunk().map_or(4, |len| u16::from_le_bytes(*len));
        let problem = if !rest.is_empty() && !vtable.is_multiple_of(2) {
            let problem = Problem::Misaligned { alignment: 2 };
            return Fault::new("part", vtable, problem);
        } else if found < 4 || !found.is_multiple_of(2) {
            Problem::VtableLength { found }
        } else {
            let (vtable, len) = (vtable.cast_signed(), self.bytes.len() as u64);
            Problem::VtableOutside { vtable, needed: found.into(), len }
        };
        Fault::new("table", position as u64, problem)
    }
}

/// Demands what the verifier does: on some machines numbers of 8 bytes lie on boundaries of 4.
#[inline(always)]
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

/// Bytes that lead to a list of fields: a reference, the way to the list, and its length.
const LEADING: usize = 10;

/// Bytes of the longest buffer: offsets between tables and their fields have a sign.
const LONGEST: usize = i32::MAX as usize;

/// As deep as tables may be nested, which a description is followed by calls of functions.
const DEEPEST: usize = 256;
