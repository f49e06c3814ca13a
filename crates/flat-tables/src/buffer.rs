use std::{borrow::Cow, cell::RefCell};

use bytes::Bytes;
use tensor_core::{Extent, Source};

use crate::{Fault, Problem, Result, Table, Vector};

/// The bytes of a FlatBuffer: in memory, or in a source, of which those pages are read that are
/// looked at.
///
/// A buffer that is read by pages holds 256 of them at most.
#[derive(Debug)]
pub struct Buffer<'s> {
    bytes: Stored<'s>,
    len: usize,
}

#[derive(Debug)]
enum Stored<'s> {
    Whole(&'s [u8]),
    Paged(Paged<'s>),
}

#[derive(Debug)]
struct Paged<'s> {
    source: &'s Source,
    page_len: u64,
    /// Pages that were read last, each at the remainder of its number.
    pages: RefCell<Vec<Option<(u64, Bytes)>>>,
}

impl<'s> Buffer<'s> {
    /// Looks at all of a source; one that is in memory is not copied.
    #[must_use]
    pub fn new(source: &'s Source) -> Self {
        Self::first(source, source.len())
    }

    /// Looks at the first `len` bytes of a source, or all where there are fewer.
    #[must_use]
    pub fn first(source: &'s Source, len: u64) -> Self {
        let len = usize::try_from(len.min(source.len())).unwrap_or(usize::MAX);
        let bytes = match source.as_slice() {
            Some(bytes) => Stored::Whole(bytes.get(..len).unwrap_or(bytes)),
            None => Stored::Paged(Paged { source, page_len: PAGE, pages: RefCell::default() }),
        };
        Self { bytes, len }
    }

    /// Sets how many bytes are read at once of a source that is not in memory, 1 at least. The
    /// default is 4096.
    #[must_use]
    pub fn page_len(mut self, bytes: u64) -> Self {
        if let Stored::Paged(paged) = &mut self.bytes {
            paged.page_len = bytes.max(1);
            paged.pages = RefCell::default();
        }
        self
    }

    /// Looks at bytes in memory.
    #[must_use]
    pub const fn from_slice(bytes: &'s [u8]) -> Self {
        Self { bytes: Stored::Whole(bytes), len: bytes.len() }
    }

    /// Returns how many bytes there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Tells whether there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the root table: the first four bytes lead there.
    ///
    /// # Errors
    ///
    /// [`Error::Fault`](crate::Error::Fault) as for [`table`](Self::table).
    pub fn root(&self, what: &'static str) -> Result<Table<'_>> {
        self.table(0, what)
    }

    /// Returns the table that the reference at `reference` leads to.
    ///
    /// # Errors
    ///
    /// [`Error::Fault`](crate::Error::Fault) where the reference, the table or the list of its
    /// fields is not in the buffer or not aligned, or one of the two has an impossible length.
    pub fn table(&self, reference: usize, what: &'static str) -> Result<Table<'_>> {
        Table::new(self, self.follow(reference, what)?, what)
    }

    /// Returns the vector that the reference at `reference` leads to, of elements of `width` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Fault`](crate::Error::Fault) where the reference or the vector is not in the buffer
    /// or not aligned.
    pub fn vector(&self, reference: usize, width: usize, what: &'static str) -> Result<Vector<'_>> {
        Vector::new(self, self.follow(reference, what)?, width, what)
    }

    /// Returns where the reference at `reference` leads.
    ///
    /// # Errors
    ///
    /// [`Error::Fault`](crate::Error::Fault) where that is nowhere.
    pub fn follow(&self, reference: usize, what: &'static str) -> Result<usize> {
        let offset = u32::from_le_bytes(self.aligned(reference, what)?);
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let target = reference.saturating_add(offset);
        let problem = match offset {
            0 => Problem::NoOffset,
            _ if target < self.len => return Ok(target),
            _ => Problem::Dangling { target: target as u64, len: self.len as u64 },
        };
        Err(Fault::new(what, reference as u64, problem).into())
    }

    /// Returns the bytes at a place; `None` where they are not all in the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::Core`](crate::Error::Core) where the source cannot be read.
    pub fn array<const N: usize>(&self, at: usize) -> Result<Option<[u8; N]>> {
        let paged = match &self.bytes {
            Stored::Whole(bytes) => {
                return Ok(bytes.get(at..).and_then(<[u8]>::first_chunk).copied());
            }
            Stored::Paged(paged) => paged,
        };
        if at.checked_add(N).is_none_or(|end| end > self.len) {
            return Ok(None);
        }
        let mut bytes = [0; N];
        paged.fill(at as u64, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// Returns the bytes of an extent: borrowed where they are in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Core`](crate::Error::Core) where they are not all in the buffer, or cannot be read.
    pub fn read(&self, extent: Extent, what: &'static str) -> Result<Cow<'_, [u8]>> {
        let extent = extent.within(self.len as u64, what)?;
        match &self.bytes {
            Stored::Whole(bytes) => Ok(Cow::Borrowed(extent.slice(bytes).unwrap_or_default())),
            Stored::Paged(paged) if extent.len() <= paged.page_len => {
                let mut bytes = vec![0; usize::try_from(extent.len()).unwrap_or_default()];
                paged.fill(extent.offset(), &mut bytes)?;
                Ok(Cow::Owned(bytes))
            }
            Stored::Paged(paged) => Ok(Cow::Owned(paged.source.read(extent, what)?.into())),
        }
    }

    /// Returns the bytes of a number, which must be there and aligned.
    pub(crate) fn aligned<const N: usize>(&self, at: usize, what: &'static str) -> Result<[u8; N]> {
        require_aligned(at, N, what)?;
        self.array(at)?.ok_or_else(|| outside(what, at, N, self.len).into())
    }
}

impl Paged<'_> {
    /// Fills a buffer with bytes that there are.
    fn fill(&self, mut at: u64, mut rest: &mut [u8]) -> Result<()> {
        while !rest.is_empty() {
            let number = at.checked_div(self.page_len).unwrap_or_default();
            let page = self.page(number)?;
            let start = number.saturating_mul(self.page_len);
            let within = usize::try_from(at.saturating_sub(start)).unwrap_or_default();
            let found = page.get(within..).unwrap_or_default();
            let len = found.len().min(rest.len());
            let (to, behind) = rest.split_at_mut(len);
            to.copy_from_slice(found.get(..len).unwrap_or_default());
            (rest, at) = (behind, at.saturating_add(len as u64));
        }
        Ok(())
    }

    fn page(&self, number: u64) -> Result<Bytes> {
        let mut pages = self.pages.borrow_mut();
        if pages.is_empty() {
            pages.resize(usize::try_from(PAGES).unwrap_or_default(), None);
        }
        let slot = usize::try_from(number % PAGES).unwrap_or_default();
        let slot = pages.get_mut(slot);
        if let Some(Some((known, page))) = &slot
            && *known == number
        {
            return Ok(page.clone());
        }
        let start = number.saturating_mul(self.page_len);
        let end = start.saturating_add(self.page_len).min(self.source.len());
        let page = self.source.read(Extent::between(start, end), "FlatBuffer")?;
        if let Some(slot) = slot {
            *slot = Some((number, page.clone()));
        }
        Ok(page)
    }
}

pub(crate) fn outside(what: &'static str, at: usize, needed: usize, len: usize) -> Fault {
    let remaining = len.saturating_sub(at) as u64;
    Fault::new(what, at as u64, Problem::OutOfBounds { needed: needed as u64, remaining })
}

/// Demands that numbers of a width start at a multiple of it; none of more than 8 bytes does.
pub(crate) fn require_aligned(at: usize, width: usize, what: &'static str) -> Result<(), Fault> {
    let alignment = alignment(width);
    if at.is_multiple_of(alignment) {
        return Ok(());
    }
    let alignment = alignment as u64;
    Err(Fault::new(what, at as u64, Problem::Misaligned { alignment }))
}

/// Returns what elements of so many bytes are aligned to at least: structs are as their widest field.
const fn alignment(width: usize) -> usize {
    match width.trailing_zeros() {
        0 => 1,
        1 => 2,
        2 => 4,
        _ => 8,
    }
}

/// Bytes that are read at once of a source that is not in memory, and how many such pages are kept.
const PAGE: u64 = 1 << 12;
const PAGES: u64 = 256;
