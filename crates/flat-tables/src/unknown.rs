use std::{fmt, ops::Range};

use bytes::Bytes;

use crate::{Fault, Problem, Result};

/// A table of a kind that its reader does not know: what a later release of its format added.
///
/// What it holds cannot be told, nor where its parts are, so the buffer around it is kept with it.
#[derive(Clone)]
pub struct UnknownTable {
    tag: u8,
    buffer: Bytes,
    parts: Parts,
}

/// Where a table is.
#[derive(Clone)]
struct Parts {
    /// The table, which starts with the distance to the list of its fields.
    table: Range<usize>,
    vtable: Range<usize>,
}

impl UnknownTable {
    /// Reads the table that the reference at `reference` leads to, which is the value of a union
    /// under `tag`.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where it or the list of its fields is not in the buffer.
    pub fn new(
        buffer: &Bytes,
        reference: usize,
        tag: u8,
        what: &'static str,
    ) -> Result<Self, Fault> {
        let parts = Parts::new(buffer, reference, what)?;
        Ok(Self { tag, buffer: buffer.clone(), parts })
    }

    /// Proves that [`new`](Self::new) finds a table.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn require(buffer: &[u8], reference: usize, what: &'static str) -> Result<(), Fault> {
        Parts::new(buffer, reference, what).map(drop)
    }

    /// Returns the number of the table in its union.
    #[must_use]
    pub const fn tag(&self) -> u8 {
        self.tag
    }

    /// Returns how many fields the table may have: one more than the highest id of those set.
    #[must_use]
    pub fn fields(&self) -> usize {
        (self.parts.vtable.len() / 2).saturating_sub(2)
    }

    /// Returns the buffer in which the table is.
    #[must_use]
    pub const fn buffer(&self) -> &Bytes {
        &self.buffer
    }

    /// Returns where the table starts, in bytes from the start of the buffer.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.parts.table.start
    }

    /// Returns the bytes of the table itself: what it refers to is elsewhere.
    fn bytes(&self) -> [&[u8]; 2] {
        [&self.parts.vtable, &self.parts.table]
            .map(|part| self.buffer.get(part.clone()).unwrap_or_default())
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
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}

impl Parts {
    /// Finds the table that a reference leads to.
    fn new(buffer: &[u8], reference: usize, what: &'static str) -> Result<Self, Fault> {
        let table = crate::Buffer::from_slice(buffer);
        let table = table.table(reference, what).map_err(|error| match error {
            crate::Error::Fault(fault) => fault,
            // Nothing is read from a source.
            crate::Error::Core(_) => Fault::new(what, reference as u64, Problem::NoOffset),
        })?;
        let range = |extent: tensor_core::Extent| {
            let [start, end] = [extent.offset(), extent.end()].map(usize::try_from);
            start.unwrap_or_default()..end.unwrap_or_default()
        };
        Ok(Self { table: range(table.extent()), vtable: range(table.vtable()) })
    }
}
