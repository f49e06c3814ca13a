//! `FlatBuffers`, checked as they are read.

use std::str;

use flatbuffers::{VOffsetT, VerifierOptions};
use tensor_core::Extent;

/// Follows the references in a `FlatBuffer` and accepts what the verifier of the crate
/// `flatbuffers` accepts, no more and no less, in a fraction of its time.
///
/// The verifier prepares an account of its errors on the way, which a sound file has no use for.
/// What is refused here goes to it, to learn why.
pub(crate) struct Checker<'a> {
    bytes: &'a [u8],
    /// How many more tables may be visited.
    tables: usize,
    /// How much deeper tables may be nested.
    depth: usize,
    /// How many more bytes may be visited. Those that are shared count each time.
    apparent_size: usize,
}

/// A table whose list of fields is in bounds.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    position: usize,
    /// Where each field is, in bytes from the start of the table; 0 for an absent one.
    list: &'a [u8],
}

impl Table<'_> {
    /// Tells whether a field is set whose id is this one or a higher one.
    pub(crate) fn has_from(self, field: VOffsetT) -> bool {
        let rest = self.list.get(usize::from(field)..).unwrap_or_default();
        rest.iter().any(|byte| *byte != 0)
    }
}

/// Something is wrong, for a reason that the verifier knows.
pub(crate) struct Refused;

/// What is left of a check that went well.
pub(crate) type Checked<T = ()> = Result<T, Refused>;

impl<'a> Checker<'a> {
    pub(crate) const fn new(bytes: &'a [u8], options: &VerifierOptions) -> Self {
        Self {
            bytes,
            tables: options.max_tables,
            depth: options.max_depth,
            apparent_size: options.max_apparent_size,
        }
    }

    pub(crate) const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Visits the table that the reference at a position leads to, until [`leave`](Self::leave).
    pub(crate) fn enter(&mut self, reference: usize) -> Checked<Table<'a>> {
        let position = self.follow(reference)?;
        let distance = i32::from_le_bytes(self.read(position)?);
        let away = usize::try_from(distance.unsigned_abs()).map_err(|_| Refused)?;
        let list = if distance > 0 {
            position.checked_sub(away).ok_or(Refused)?
        } else {
            position.saturating_add(away)
        };
        let len = usize::from(u16::from_le_bytes(self.read(list)?));
        let list = self.range(list, len)?;
        self.tables = self.tables.checked_sub(1).ok_or(Refused)?;
        self.depth = self.depth.checked_sub(1).ok_or(Refused)?;
        len.is_multiple_of(2).then_some(Table { position, list }).ok_or(Refused)
    }

    pub(crate) const fn leave(&mut self) {
        self.depth = self.depth.saturating_add(1);
    }

    /// Returns where a field is; `None` where it is absent.
    pub(crate) fn field(&mut self, table: Table<'_>, field: VOffsetT) -> Checked<Option<usize>> {
        let listed = table.list.get(usize::from(field)..).and_then(<[u8]>::first_chunk);
        let Some(&offset) = listed else { return Ok(None) };
        self.count(size_of::<VOffsetT>())?;
        let offset = usize::from(VOffsetT::from_le_bytes(offset));
        Ok((offset > 0).then(|| table.position.saturating_add(offset)))
    }

    /// Returns the tag and the place of the value of a union; `None` where it is absent.
    pub(crate) fn union(
        &mut self,
        table: Table<'_>,
        tag: VOffsetT,
        value: VOffsetT,
    ) -> Checked<Option<(u8, usize)>> {
        match (self.field(table, tag)?, self.field(table, value)?) {
            (None, None) => Ok(None),
            (Some(tag), Some(value)) => {
                let [tag] = self.read(tag)?;
                Ok(Some((tag, value)))
            }
            _ => Err(Refused),
        }
    }

    /// Reads a number of so many bytes.
    pub(crate) fn read<const WIDTH: usize>(&mut self, position: usize) -> Checked<[u8; WIDTH]> {
        is_aligned(position, WIDTH)?;
        self.range(position, WIDTH)?.first_chunk().copied().ok_or(Refused)
    }

    /// Returns where the numbers of a vector are, each of so many bytes.
    pub(crate) fn vector<const WIDTH: usize>(&mut self, reference: usize) -> Checked<Extent> {
        let position = self.follow(reference)?;
        let count = u32::from_le_bytes(self.read(position)?);
        let start = position.saturating_add(PREFIX);
        is_aligned(start, WIDTH)?;
        let len = usize::try_from(count).ok().and_then(|count| count.checked_mul(WIDTH));
        let elements = self.range(start, len.ok_or(Refused)?)?;
        Extent::new(start as u64, elements.len() as u64).map_err(|_| Refused)
    }

    /// Returns where a text is; it is UTF-8.
    pub(crate) fn text(&mut self, reference: usize) -> Checked<Extent> {
        let text = self.vector::<1>(reference)?;
        let is_text = text.of(self.bytes).is_some_and(|text| str::from_utf8(text).is_ok());
        let end = usize::try_from(text.end()).ok().and_then(|end| self.bytes.get(end));
        if is_text && end == Some(&0) { Ok(text) } else { Err(Refused) }
    }

    /// Returns the places of the references in a vector of tables.
    pub(crate) fn tables(
        &mut self,
        reference: usize,
    ) -> Checked<impl Iterator<Item = usize> + use<>> {
        let elements = self.vector::<PREFIX>(reference)?;
        let ends = [elements.offset(), elements.end()].map(usize::try_from);
        let [Ok(start), Ok(end)] = ends else { return Err(Refused) };
        Ok((start..end).step_by(PREFIX))
    }

    fn follow(&mut self, reference: usize) -> Checked<usize> {
        let offset = u32::from_le_bytes(self.read(reference)?);
        let offset = usize::try_from(offset).map_err(|_| Refused)?;
        Ok(reference.saturating_add(offset))
    }

    fn range(&mut self, start: usize, len: usize) -> Checked<&'a [u8]> {
        self.count(len)?;
        let range = start..start.saturating_add(len);
        self.bytes.get(range).ok_or(Refused)
    }

    fn count(&mut self, bytes: usize) -> Checked {
        self.apparent_size = self.apparent_size.checked_sub(bytes).ok_or(Refused)?;
        Ok(())
    }
}

/// Demands what the verifier does: on some machines numbers of 8 bytes lie on boundaries of 4.
fn is_aligned(position: usize, width: usize) -> Checked {
    let alignment = width.min(align_of::<u64>());
    if position.is_multiple_of(alignment) { Ok(()) } else { Err(Refused) }
}

/// Bytes of a reference, and of the number of elements in front of a vector.
const PREFIX: usize = 4;
