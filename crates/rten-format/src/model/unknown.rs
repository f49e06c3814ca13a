use std::{fmt, ops::Range};

use bytes::Bytes;
use flatbuffers::{Table, VOffsetT};

use crate::{Error, Result};

/// A table of a kind that this crate does not know: what a later release of the format added.
///
/// What it holds cannot be told, nor where its parts are, so the model data around it is kept with
/// it, and becomes a part of whatever model data it is written into.
#[derive(Clone)]
pub struct UnknownTable {
    tag: u8,
    /// The model data in which the table is.
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
        let position = follow(reference, model);
        let found = position.and_then(|position| Some((position, parts(position, model)?)));
        let Some((position, (fields, list))) = found else {
            let (offset, len) = (position.unwrap_or(reference) as u64, model.len() as u64);
            return Err(Error::UnknownTable { what, tag, offset, len });
        };
        Ok(Some(Self { tag, model: model.clone(), position, fields, list }))
    }

    /// Tells whether a reference leads to a table that is in the model data.
    pub(crate) fn is_at(reference: usize, model: &[u8]) -> bool {
        follow(reference, model).and_then(|position| parts(position, model)).is_some()
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

    pub(crate) const fn model(&self) -> &Bytes {
        &self.model
    }

    pub(crate) const fn position(&self) -> usize {
        self.position
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

/// Returns where a reference leads; `None` where that is nowhere.
fn follow(reference: usize, model: &[u8]) -> Option<usize> {
    reference.checked_add(usize(u32_at(model, reference)?)?)
}

/// Returns where the fields of a table and their list are; `None` where one is not in the model
/// data.
fn parts(position: usize, model: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
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
    Some((fields, list))
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
