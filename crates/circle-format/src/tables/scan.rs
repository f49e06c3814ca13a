//! From proved FlatBuffers to values of ours.

use std::{cell::Cell, ops::Range};

use bytes::Bytes;
use flat_tables::UnknownTable;
use flatbuffers::{Follow, Table, VOffsetT, Vector};

use crate::{Error, Result, model::Schema};

/// A value that a field is read into.
pub(crate) trait FromStored<S> {
    fn from_stored(stored: S, scan: &Scan<'_>) -> Self;
}

/// A walk over the tables of one model, which notes how far they reach.
pub(crate) struct Scan<'a> {
    model: &'a Bytes,
    schema: Schema,
    end: Cell<usize>,
    has_unknown: Cell<bool>,
    /// Where the first table is that has fields which are not known.
    unknown_field: Cell<Option<u64>>,
    /// Bytes of buffers that are not in memory, ascending.
    holes: &'a [Range<usize>],
    is_in_hole: Cell<bool>,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(model: &'a Bytes, schema: Schema, holes: &'a [Range<usize>]) -> Self {
        Self {
            model,
            schema,
            end: Cell::new(8),
            has_unknown: Cell::new(false),
            unknown_field: Cell::new(None),
            holes,
            is_in_hole: Cell::new(false),
        }
    }

    /// Returns which schema the model has: what some numbers mean follows from that.
    pub(crate) const fn schema(&self) -> Schema {
        self.schema
    }

    pub(crate) fn read<S, T: FromStored<S>>(&self, stored: S) -> T {
        T::from_stored(stored, self)
    }

    /// Reads a list of tables.
    pub(crate) fn tables<'b, S: Follow<'b> + 'b, T>(
        &self,
        stored: Option<Vector<'b, S>>,
        mut parse: impl FnMut(S::Inner, &Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let Some(stored) = stored else { return Ok(Vec::new()) };
        self.note(stored.bytes());
        stored.iter().map(|table| parse(table, self)).collect()
    }

    /// Returns where bytes of a buffer are that are not in memory; `None` for those that are.
    pub(crate) fn hole(&self, stored: &[u8]) -> Option<Range<usize>> {
        let start = self.start(stored);
        let range = start..start.saturating_add(stored.len());
        let at = self.holes.binary_search_by_key(&start, |hole| hole.start).ok()?;
        if self.holes.get(at) != Some(&range) {
            return None;
        }
        self.note_end(range.end);
        Some(range)
    }

    /// Tells whether anything but the bytes of buffers turned out to be where none were read.
    pub(crate) fn is_in_hole(&self) -> bool {
        !self.holes.is_empty() && (self.is_in_hole.get() || self.has_unknown.get())
    }

    /// Returns bytes of the model as a slice of it.
    pub(crate) fn slice(&self, stored: &[u8]) -> Bytes {
        self.note(stored);
        self.model.slice_ref(stored)
    }

    /// Notes that a table and its list of fields are part of the model, and whether it has fields
    /// behind the last one that is known.
    pub(crate) fn table(&self, table: Table<'_>, last: VOffsetT) {
        let vtable = table.vtable();
        let list = self.start(vtable.as_bytes());
        // Both start with numbers, whatever these say of their lengths.
        self.note_range(list..list.saturating_add(vtable.num_bytes().max(4)));
        let end = table.loc().saturating_add(vtable.object_inline_num_bytes().max(4));
        self.note_range(table.loc()..end);
        self.fields_behind(table);
        let behind = usize::from(last).saturating_add(2);
        let set = vtable.as_bytes().get(behind..).unwrap_or_default();
        if set.iter().any(|byte| *byte != 0) && self.unknown_field.get().is_none() {
            self.unknown_field.set(Some(table.loc() as u64));
        }
    }

    /// Notes fields that a strange table has behind its own end.
    fn fields_behind(&self, table: Table<'_>) {
        let vtable = table.vtable();
        let len = vtable.object_inline_num_bytes();
        let (places, _) = vtable.as_bytes().get(4..).unwrap_or_default().as_chunks::<2>();
        for place in places.iter().map(|place| usize::from(u16::from_le_bytes(*place))) {
            if place >= len {
                let start = table.loc().saturating_add(place);
                // No field has more than 8 bytes.
                self.note_range(start..start.saturating_add(8));
            }
        }
    }

    /// Notes a table of options, which has this many known fields.
    pub(crate) fn options(&self, table: Table<'_>, fields: VOffsetT) {
        self.table(table, fields.saturating_mul(2).saturating_add(2));
    }

    /// Reads a table of a type that this crate does not know; `None` where there is none.
    pub(crate) fn unknown(
        &self,
        what: &'static str,
        tag: u8,
        parent: Table<'_>,
        field: VOffsetT,
    ) -> Result<Option<UnknownTable>> {
        self.has_unknown.set(true);
        let place = usize::from(parent.vtable().get(field));
        if place == 0 {
            return Ok(None);
        }
        let table = UnknownTable::new(self.model, parent.loc().saturating_add(place), tag, what);
        table.map(Some).map_err(Error::Malformed)
    }

    /// Returns how many bytes of the model its parts take, padding behind the last one included;
    /// `None` where there are tables that cannot be looked into.
    pub(crate) fn len(&self) -> Option<u64> {
        let end = self.end.get().checked_next_multiple_of(4).unwrap_or(usize::MAX);
        (!self.has_unknown.get()).then(|| end.min(self.model.len()) as u64)
    }

    /// Returns where the first table is that has fields which this crate does not know, in bytes
    /// from the start of the model.
    pub(crate) fn unknown_field(&self) -> Option<u64> {
        self.unknown_field.get()
    }

    /// Notes the elements of a list, and their number before them.
    pub(crate) fn note(&self, part: &[u8]) {
        let start = self.start(part);
        self.note_range(start.saturating_sub(4)..start.saturating_add(part.len()));
    }

    fn note_range(&self, range: Range<usize>) {
        let next = self.holes.partition_point(|hole| hole.end <= range.start);
        if self.holes.get(next).is_some_and(|hole| hole.start < range.end) {
            self.is_in_hole.set(true);
        }
        self.note_end(range.end);
    }

    fn start(&self, part: &[u8]) -> usize {
        part.as_ptr().addr().wrapping_sub(self.model.as_ptr().addr())
    }

    fn note_end(&self, end: usize) {
        // Bytes that are not there, as an empty slice may be, are nowhere.
        if end <= self.model.len() {
            self.end.set(self.end.get().max(end));
        }
    }
}

macro_rules! plain {
    ($($type:ident)*) => {$(
        impl FromStored<$type> for $type {
            fn from_stored(stored: $type, _: &Scan<'_>) -> Self {
                stored
            }
        }

        impl FromStored<Option<Vector<'_, $type>>> for Vec<$type> {
            fn from_stored(stored: Option<Vector<'_, $type>>, scan: &Scan<'_>) -> Self {
                let Some(stored) = stored else { return Self::new() };
                scan.note(stored.bytes());
                stored.iter().collect()
            }
        }

        impl FromStored<Option<Vector<'_, $type>>> for Option<Vec<$type>> {
            fn from_stored(stored: Option<Vector<'_, $type>>, scan: &Scan<'_>) -> Self {
                stored.map(|stored| scan.read(Some(stored)))
            }
        }
    )*};
}

plain! { bool f32 i32 i64 u16 u32 u64 }

impl FromStored<Option<&str>> for Option<String> {
    fn from_stored(stored: Option<&str>, scan: &Scan<'_>) -> Self {
        let stored = stored?;
        // A zero follows, which does not count.
        let start = scan.start(stored.as_bytes());
        let end = start.saturating_add(stored.len()).saturating_add(1);
        scan.note_range(start.saturating_sub(4)..end);
        Some(stored.to_owned())
    }
}

impl FromStored<Option<Vector<'_, u8>>> for Bytes {
    fn from_stored(stored: Option<Vector<'_, u8>>, scan: &Scan<'_>) -> Self {
        stored.map(|stored| scan.slice(stored.bytes())).unwrap_or_default()
    }
}

impl FromStored<Option<Vector<'_, u8>>> for Option<Bytes> {
    fn from_stored(stored: Option<Vector<'_, u8>>, scan: &Scan<'_>) -> Self {
        stored.map(|stored| scan.slice(stored.bytes()))
    }
}
