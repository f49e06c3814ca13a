//! Model data in the making.

use bytes::Bytes;
use flat_tables::UnknownTable;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, Vector, WIPOffset};

use crate::{Error, Result};

/// Builds a FlatBuffer from its end to its start: what a table refers to is built before it.
///
/// Whoever starts one has proved by [`Size`] that everything fits; beyond, it would panic.
pub(crate) struct Builder {
    fbb: FlatBufferBuilder<'static>,
    /// Model data that holds unknown tables, with its distance from the end of this one.
    foreign: Vec<(Bytes, u32)>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self { fbb: FlatBufferBuilder::new(), foreign: Vec::new() }
    }

    pub(crate) const fn fbb(&mut self) -> &mut FlatBufferBuilder<'static> {
        &mut self.fbb
    }

    /// Stores little-endian elements of 4 bytes without a look at what they are.
    pub(crate) fn words<T>(&mut self, bytes: &[u8]) -> Result<WIPOffset<Vector<'static, T>>> {
        let (words, []) = bytes.as_chunks::<4>() else {
            return Err(Error::PartialElement { found: bytes.len() as u64, width: 4 });
        };
        let words = words.iter().map(|word| u32::from_le_bytes(*word));
        Ok(WIPOffset::new(self.fbb.create_vector_from_iter(words).value()))
    }

    /// Refers to an unknown table: its model data is stored whole, once for all tables in it.
    ///
    /// All offsets in it are relative and all alignment is kept, so that it stays as good as it is.
    pub(crate) fn unknown(&mut self, table: &UnknownTable) -> Result<WIPOffset<UnionWIPOffset>> {
        let distance = match self.distance(table.buffer()) {
            Some(distance) => distance,
            None => self.store(table.buffer()),
        };
        let position = u32::try_from(table.position()).ok();
        let distance = position.and_then(|position| distance.checked_sub(position));
        // A table lies within its model data, of which all bytes are counted in the distance.
        distance.map(WIPOffset::new).ok_or(Error::TooLarge { found: u64::MAX, limit: MAX_BYTES })
    }

    fn distance(&self, model: &Bytes) -> Option<u32> {
        let stored = self.foreign.iter().find(|(stored, _)| is_same(stored, model));
        stored.map(|(_, distance)| *distance)
    }

    /// Stores other model data on a boundary of 8 bytes, the widest that any field has.
    fn store(&mut self, model: &Bytes) -> u32 {
        let mut padded = model.to_vec();
        padded.resize(model.len().next_multiple_of(8), 0);
        let (words, _) = padded.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        let vector = self.fbb.create_vector_from_iter(words);
        // The elements of a vector follow their number, which has 4 bytes.
        let distance = vector.value().saturating_sub(4);
        self.foreign.push((model.clone(), distance));
        distance
    }

    /// Ends the model data with its root.
    pub(crate) fn finish<T>(mut self, root: WIPOffset<T>) -> Vec<u8> {
        // RTen writes no file identifier.
        self.fbb.finish(root, None);
        let (mut bytes, start) = self.fbb.collapse();
        bytes.drain(..start);
        bytes
    }
}

/// An upper bound of the length of model data that is not built yet, in bytes.
#[derive(Default)]
pub(crate) struct Size {
    bytes: u64,
    /// Model data that holds unknown tables.
    foreign: Vec<Bytes>,
    /// How many subgraphs are around what is being measured.
    depth: u32,
}

impl Size {
    /// Adds a table of the schema with its list of fields, and the padding, the lengths and the
    /// closing zeros of what it refers to.
    pub(crate) fn table(&mut self) {
        self.bytes(TABLE);
    }

    pub(crate) fn bytes(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Adds numbers of 4 bytes.
    pub(crate) fn words(&mut self, count: usize) {
        self.bytes((count as u64).saturating_mul(4));
    }

    /// Adds the model data around an unknown table, once.
    pub(crate) fn unknown(&mut self, table: &UnknownTable) {
        if !self.foreign.iter().any(|counted| is_same(counted, table.buffer())) {
            self.foreign.push(table.buffer().clone());
            self.bytes(TABLE.saturating_add(table.buffer().len() as u64));
        }
    }

    /// Adds what is in a subgraph.
    ///
    /// Nothing that is deeper than the format allows is looked at, so that no graph can make this
    /// or [`Builder`] recurse too deeply.
    pub(crate) fn subgraph(&mut self, measure: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.depth >= MAX_SUBGRAPH_DEPTH {
            return Err(Error::SubgraphDepth { limit: MAX_SUBGRAPH_DEPTH });
        }
        self.depth = self.depth.saturating_add(1);
        measure(self)?;
        self.depth = self.depth.saturating_sub(1);
        Ok(())
    }

    /// Refuses what would not fit.
    pub(crate) const fn require(&self) -> Result<()> {
        if self.bytes > MAX_BYTES {
            return Err(Error::TooLarge { found: self.bytes, limit: MAX_BYTES });
        }
        Ok(())
    }
}

/// Tells whether two handles are on the same bytes of memory.
fn is_same(a: &Bytes, b: &Bytes) -> bool {
    a.as_ptr() == b.as_ptr() && a.len() == b.len()
}

/// What FlatBuffers allow: signed offsets have 32 bits.
const MAX_BYTES: u64 = i32::MAX as u64;

/// Levels of subgraphs below the main graph: each takes four tables, and readers allow 64.
pub(crate) const MAX_SUBGRAPH_DEPTH: u32 = 15;

/// No table has more than 8 fields, each with 8 bytes, 2 in the list, and a reference to something
/// that has a length, padding and a closing zero of its own.
const TABLE: u64 = 256;
