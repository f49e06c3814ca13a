use std::{fmt, ops::Range};

use bytes::Bytes;
use flatbuffers::{Table, VOffsetT};

use crate::{Error, Result, WriteFault};

/// A table of a kind that this crate does not know: what a later release of the format added.
///
/// What it holds cannot be told, nor where its parts are. It can be looked at, but no model with
/// such a table can be written.
#[derive(Clone)]
pub struct UnknownTable {
    tag: u8,
    /// The model in which the table is.
    model: Bytes,
    /// Where the table starts in it.
    position: usize,
    /// The fields of the table, which start with the distance to its list of fields.
    fields: Range<usize>,
    /// The list of its fields.
    list: Range<usize>,
}

impl UnknownTable {
    /// Reads the place of the table that a field of a verified table refers to; `None` where the
    /// field is absent.
    ///
    /// The verifier checks nothing of a table that it does not know, not even that it is there.
    pub(crate) fn parse(
        what: &'static str,
        tag: u8,
        parent: Table<'_>,
        field: VOffsetT,
        model: &Bytes,
    ) -> Result<Option<Self>> {
        let in_parent = usize::from(parent.vtable().get(field));
        if in_parent == 0 {
            return Ok(None);
        }
        let reference = parent.loc().saturating_add(in_parent);
        let position =
            u32_at(model, reference).and_then(|offset| reference.checked_add(usize(offset)?));
        let found = position.and_then(|position| Self::at(position, tag, model));
        found.map(Some).ok_or_else(|| Error::UnknownTable {
            what,
            tag,
            offset: position.unwrap_or(reference) as u64,
            len: model.len() as u64,
        })
    }

    /// Finds the two parts of a table; `None` where one is not in the model.
    fn at(position: usize, tag: u8, model: &Bytes) -> Option<Self> {
        let distance = i32::from_le_bytes(u32_at(model, position)?.to_le_bytes());
        let away = usize(distance.unsigned_abs())?;
        let list =
            if distance < 0 { position.checked_add(away)? } else { position.checked_sub(away)? };
        let list_len = u16_at(model, list)?.max(4);
        let fields_len = u16_at(model, list.checked_add(2)?)?.max(4);
        let list = list..list.checked_add(list_len)?;
        let fields = position..position.checked_add(fields_len)?;
        model.get(list.clone())?;
        model.get(fields.clone())?;
        Some(Self { tag, model: model.clone(), position, fields, list })
    }

    /// Returns the number of the table in its union.
    #[must_use]
    pub const fn tag(&self) -> u8 {
        self.tag
    }

    /// Returns how many fields the table may have: one more than the highest id of those set.
    #[must_use]
    pub fn fields(&self) -> usize {
        (self.list.len() / 2).saturating_sub(2)
    }

    /// Says that it cannot be written: what it refers to is somewhere around it.
    pub(crate) const fn fault(&self, what: &'static str) -> WriteFault {
        WriteFault::Unknown { what, tag: self.tag }
    }

    /// Returns the bytes of the table itself: what it refers to is elsewhere.
    fn bytes(&self) -> [&[u8]; 2] {
        [&self.list, &self.fields].map(|part| self.model.get(part.clone()).unwrap_or_default())
    }
}

/// Compares the tables themselves, not what they refer to.
impl PartialEq for UnknownTable {
    fn eq(&self, other: &Self) -> bool {
        self.tag == other.tag && self.bytes() == other.bytes()
    }
}

impl fmt::Debug for UnknownTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnknownTable")
            .field("tag", &self.tag)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    let (number, _) = bytes.get(at..)?.split_first_chunk()?;
    Some(usize::from(u16::from_le_bytes(*number)))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let (number, _) = bytes.get(at..)?.split_first_chunk()?;
    Some(u32::from_le_bytes(*number))
}

fn usize(number: u32) -> Option<usize> {
    usize::try_from(number).ok()
}
