//! The bytes of a FlatBuffer: in memory, or read block by block where its tables lead.

use std::{borrow::Cow, fmt, sync::OnceLock};

use bytes::Bytes;
use tensor_core::{Extent, Source};

use crate::Result;

/// A file of which only the blocks are read that something is looked up in. They stay in memory.
pub(crate) struct Blocks {
    source: Source,
    len: usize,
    /// None where the source is in memory.
    blocks: Box<[OnceLock<Bytes>]>,
}

impl Blocks {
    /// Stands on a source, the length of which fits.
    pub(crate) fn new(source: Source) -> Self {
        let len = usize::try_from(source.len()).unwrap_or(usize::MAX);
        let count = if source.as_slice().is_some() { 0 } else { len.div_ceil(BLOCK) };
        Self { source, len, blocks: (0..count).map(|_| OnceLock::new()).collect() }
    }

    /// Returns the bytes of the file.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns some bytes; `None` where they do not lie in the file.
    pub(crate) fn get(&self, at: usize, len: usize) -> Result<Option<Cow<'_, [u8]>>> {
        let Some(end) = at.checked_add(len).filter(|end| *end <= self.len) else { return Ok(None) };
        if let Some(memory) = self.source.as_slice() {
            return Ok(memory.get(at..end).map(Cow::Borrowed));
        }
        let (index, start) = (at / BLOCK, at % BLOCK);
        if let Some(block) = self.block(index)?
            && let Some(part) = start.checked_add(len).and_then(|end| block.get(start..end))
        {
            return Ok(Some(Cow::Borrowed(part)));
        }
        // What lies across blocks is looked at once, mostly: a long text.
        let bytes = self.source.read(Extent::between(at as u64, end as u64), "FlatBuffer")?;
        Ok(Some(Cow::Owned(bytes.into())))
    }

    /// Returns `N` bytes; `None` where they do not lie in the file.
    pub(crate) fn chunk<const N: usize>(&self, at: usize) -> Result<Option<[u8; N]>> {
        Ok(self.get(at, N)?.and_then(|bytes| bytes.first_chunk().copied()))
    }

    /// Reads bytes that lie in the file.
    pub(crate) fn read(&self, extent: Extent, what: &'static str) -> Result<Bytes> {
        Ok(self.source.read(extent, what)?)
    }

    fn block(&self, index: usize) -> Result<Option<&Bytes>> {
        let Some(slot) = self.blocks.get(index) else { return Ok(None) };
        if let Some(block) = slot.get() {
            return Ok(Some(block));
        }
        let start = index.saturating_mul(BLOCK);
        let end = start.saturating_add(BLOCK).min(self.len);
        let block = self.source.read(Extent::between(start as u64, end as u64), "FlatBuffer")?;
        Ok(Some(slot.get_or_init(|| block)))
    }
}

impl fmt::Debug for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocks").field("source", &self.source).finish_non_exhaustive()
    }
}

/// Bytes that are read at once: tables lie close together, and far from the data between them.
const BLOCK: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use test_support::CountingSource;

    use super::*;

    #[test]
    fn bytes_are_those_of_memory_wherever_blocks_end() {
        let file: Vec<u8> = (0..2 * BLOCK as u32 + 7).map(|at| (at % 251) as u8).collect();
        let memory = Blocks::new(Source::from_bytes(file.clone()));
        let store = CountingSource::new(&file);
        let blocks = Blocks::new(store.source());
        for at in [0, 1, BLOCK - 3, BLOCK, 2 * BLOCK - 1, 2 * BLOCK + 3, file.len(), usize::MAX] {
            for len in [0, 1, 4, 8, BLOCK, BLOCK + 9, usize::MAX] {
                let expected = memory.get(at, len).unwrap();
                assert_eq!(blocks.get(at, len).unwrap(), expected, "{len} bytes at {at}");
            }
        }
        assert_eq!(blocks.chunk::<4>(file.len() - 3).unwrap(), None);
    }

    #[test]
    fn a_block_is_read_once() {
        let store = CountingSource::new(&vec![7; 3 * BLOCK]);
        let blocks = Blocks::new(store.source());
        for at in BLOCK..BLOCK + 100 {
            assert_eq!(blocks.chunk(at).unwrap(), Some([7; 4]));
        }
        assert_eq!(store.take_reads(), [Extent::new(BLOCK as u64, BLOCK as u64).unwrap()]);
    }
}
