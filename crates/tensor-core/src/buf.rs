//! Owned bytes on 64-byte boundaries, filled without being zeroed first.
#![expect(unsafe_code, reason = "memory that is filled only once needs it")]

use std::{
    alloc::{self, Layout},
    fmt, io,
    mem::MaybeUninit,
    num::NonZeroUsize,
    ops::{Deref, DerefMut},
    ptr::NonNull,
    slice,
    sync::{Mutex, PoisonError},
    thread,
};

use bytes::Bytes;

use crate::{Error, Result};

/// Growable owned bytes that start at a multiple of 64, so that elements of every type can be
/// viewed in place.
///
/// Allocation fails with an error instead of an abort. From 4 MiB on the memory starts at a
/// multiple of 2 MiB and the system is asked for pages of that size, where it has such: the first
/// touch of a page costs more than filling it.
pub struct AlignedBuf {
    start: NonNull<u8>,
    len: usize,
    capacity: usize,
}

impl AlignedBuf {
    /// Makes an empty buffer without an allocation.
    #[must_use]
    pub const fn new() -> Self {
        // An aligned address that is never read from, as long as the capacity is 0.
        Self { start: NonNull::<CacheLine>::dangling().cast(), len: 0, capacity: 0 }
    }

    /// Makes an empty buffer with room for `capacity` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn with_capacity(capacity: usize) -> Result<Self> {
        if capacity == 0 {
            return Ok(Self::new());
        }
        let out_of_memory = || Error::OutOfMemory { bytes: capacity as u64 };
        let layout = layout(capacity).ok_or_else(out_of_memory)?;
        // SAFETY: the size of the layout is `capacity`, which is not 0.
        let start = NonNull::new(unsafe { alloc::alloc(layout) }).ok_or_else(out_of_memory)?;
        if layout.align() == HUGE_PAGE {
            advise_huge_pages(start, capacity);
        }
        Ok(Self { start, len: 0, capacity })
    }

    /// Makes a buffer of `len` bytes of 0.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn zeroed(len: usize) -> Result<Self> {
        let mut buffer = Self::with_capacity(len)?;
        // SAFETY: there is room for `len` bytes, and they are initialised before `len` says so.
        unsafe { buffer.start.as_ptr().write_bytes(0, len) };
        buffer.len = len;
        Ok(buffer)
    }

    /// Makes a buffer of `len` bytes that `read` fills, on up to `threads` threads.
    ///
    /// `read` is given an offset from the start of the buffer and memory to fill from there on,
    /// and returns the part of it, from its beginning, that it has filled: as `read(2)` does. It
    /// is called until the buffer is full.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::OutOfMemory`]; [`io::ErrorKind::UnexpectedEof`] where `read` fills
    /// nothing; whatever `read` returns.
    ///
    /// # Panics
    ///
    /// Where `read` returns anything but the beginning of what it was given.
    pub fn fill<F>(len: usize, threads: NonZeroUsize, read: F) -> io::Result<Self>
    where
        F: for<'s> Fn(u64, &'s mut [MaybeUninit<u8>]) -> io::Result<&'s mut [u8]> + Sync,
    {
        let mut buffer = Self::with_capacity(len)
            .map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error))?;
        let spare = buffer.spare();
        let spare = spare.get_mut(..len).unwrap_or_default();
        if len <= PIECE {
            fill_piece(0, spare, &read)?;
            buffer.len = len;
            return Ok(buffer);
        }
        let piece = len.div_ceil(threads.get()).next_multiple_of(HUGE_PAGE).max(PIECE);
        let pieces = Mutex::new((0_u64..).step_by(piece).zip(spare.chunks_mut(piece)));
        let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
        let run = || {
            while let Some((offset, piece)) = next() {
                fill_piece(offset, piece, &read)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let mut running = Vec::new();
            for _ in 1..len.div_ceil(piece) {
                // Where the system gives no more threads, this one fills the rest.
                let Ok(thread) = thread::Builder::new().spawn_scoped(scope, run) else { break };
                running.push(thread);
            }
            let own = run();
            let died = |_| Err(io::Error::other("a reading thread died"));
            let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(died);
            running.into_iter().map(join).fold(own, Result::and)
        })?;
        // `fill_piece` returned for every piece, so all of the first `len` bytes are initialised.
        buffer.len = len;
        Ok(buffer)
    }

    /// Appends bytes, growing where there is no room: at least to double the capacity.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]; the buffer is as it was.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<()> {
        let needed = self.len.checked_add(bytes.len());
        let needed = needed.ok_or(Error::OutOfMemory { bytes: u64::MAX })?;
        if needed > self.capacity {
            let mut grown = Self::with_capacity(needed.max(self.capacity.saturating_mul(2)))?;
            grown.extend_from_slice(self)?;
            *self = grown;
        }
        // SAFETY: the bytes from `len` up to `needed` lie within the capacity, and `bytes` cannot
        // overlap them, as it is borrowed from elsewhere while this buffer is borrowed mutably.
        unsafe {
            let spare = self.start.as_ptr().add(self.len);
            spare.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.len = needed;
        Ok(())
    }

    /// Removes all bytes and keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Turns the buffer into shared bytes, without a copy.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }

    fn spare(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: `len <= capacity`, and the memory between is ours and may be uninitialised.
        unsafe {
            let spare = self.start.as_ptr().add(self.len).cast();
            slice::from_raw_parts_mut(spare, self.capacity.wrapping_sub(self.len))
        }
    }
}

impl Default for AlignedBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are initialised.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the first `len` bytes are initialised, and we are borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for AlignedBuf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuf").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if let (1.., Some(layout)) = (self.capacity, layout(self.capacity)) {
            // SAFETY: `with_capacity` allocated with the layout of this capacity.
            unsafe { alloc::dealloc(self.start.as_ptr(), layout) };
        }
    }
}

// SAFETY: the memory is owned by this value alone.
unsafe impl Send for AlignedBuf {}
// SAFETY: a shared borrow only reads.
unsafe impl Sync for AlignedBuf {}

/// What every buffer is aligned to: a cache line, and what zTensor asks of its blobs.
#[repr(align(64))]
struct CacheLine;

/// Calls `read` until `rest` is full.
fn fill_piece<F>(mut offset: u64, mut rest: &mut [MaybeUninit<u8>], read: &F) -> io::Result<()>
where
    F: for<'s> Fn(u64, &'s mut [MaybeUninit<u8>]) -> io::Result<&'s mut [u8]>,
{
    while !rest.is_empty() {
        let start = rest.as_ptr().addr();
        let filled = match read(offset, rest) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            filled => filled?,
        };
        // Initialised bytes at this very place can only be those that were to be filled.
        let (filled, at) = (filled.len(), filled.as_ptr().addr());
        if filled == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        assert!(at == start && filled <= rest.len(), "filled bytes are not the ones given");
        offset = offset.saturating_add(filled as u64);
        rest = rest.split_at_mut(filled).1;
    }
    Ok(())
}

fn layout(capacity: usize) -> Option<Layout> {
    let alignment = if capacity >= LARGE { HUGE_PAGE } else { ALIGNMENT };
    Layout::from_size_align(capacity, alignment).ok()
}

#[cfg(target_os = "linux")]
fn advise_huge_pages(start: NonNull<u8>, len: usize) {
    use rustix::mm::{Advice, madvise};
    let whole_pages = len & !(HUGE_PAGE.wrapping_sub(1));
    // SAFETY: the range is ours, starts at a multiple of the page size, and this advice changes
    // no content. A system without huge pages refuses it, and nothing is lost.
    let _ = unsafe { madvise(start.as_ptr().cast(), whole_pages, Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages(_start: NonNull<u8>, _len: usize) {}

// The alignment of every buffer in bytes.
const ALIGNMENT: usize = align_of::<CacheLine>();
const HUGE_PAGE: usize = 2 << 20;
const LARGE: usize = 4 << 20;
/// Below this a second thread costs more than it gains.
const PIECE: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NonZeroUsize = NonZeroUsize::MIN;

    #[test]
    fn every_size_is_aligned() {
        for len in [0, 1, 63, 64, 65, 4096, LARGE - 1, LARGE, LARGE + 1] {
            let buffer = AlignedBuf::zeroed(len).unwrap();
            assert_eq!(buffer.as_ptr().addr() % ALIGNMENT, 0);
            assert!(buffer.len() == len && buffer.iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn more_than_there_is_fails() {
        for len in [isize::MAX as usize, usize::MAX] {
            let error = AlignedBuf::with_capacity(len).unwrap_err();
            assert_eq!(error.to_string(), format!("{len} bytes of memory could not be allocated"));
        }
    }

    #[test]
    fn grows_and_keeps_what_is_there() {
        let mut buffer = AlignedBuf::new();
        for chunk in (0..=255_u8).collect::<Vec<_>>().chunks(7) {
            buffer.extend_from_slice(chunk).unwrap();
        }
        assert!(buffer.iter().copied().eq(0..=255));
        buffer.clear();
        assert!(buffer.is_empty());
    }

    fn counted(offset: u64, memory: &mut [MaybeUninit<u8>], at_most: usize) -> &mut [u8] {
        let take = memory.len().min(at_most);
        let bytes: Vec<u8> = (offset..).take(take).map(|at| (at % 251) as u8).collect();
        memory[..take].write_copy_of_slice(&bytes)
    }

    #[test]
    fn short_reads_go_on() {
        let buffer =
            AlignedBuf::fill(100, ONE, |offset, memory| Ok(counted(offset, memory, 3))).unwrap();
        assert!(buffer.iter().copied().eq(0..100));
    }

    #[test]
    fn pieces_of_several_threads_fit() {
        let len = 3 * PIECE + 5;
        let threads = NonZeroUsize::new(3).unwrap();
        let buffer =
            AlignedBuf::fill(len, threads, |offset, memory| Ok(counted(offset, memory, 1 << 20)))
                .unwrap();
        assert!(buffer.iter().enumerate().all(|(at, &byte)| byte == (at % 251) as u8));
    }

    #[test]
    fn end_before_full_is_an_error() {
        let error = AlignedBuf::fill(9, ONE, |_, memory| Ok(counted(0, memory, 0))).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn bytes_are_not_copied() {
        let mut buffer = AlignedBuf::new();
        buffer.extend_from_slice(b"abc").unwrap();
        let start = buffer.as_ptr();
        let bytes = buffer.into_bytes();
        assert!(bytes.as_ptr() == start && bytes == b"abc"[..]);
    }
}
