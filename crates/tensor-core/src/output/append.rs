use std::{
    fmt,
    fs::File,
    io::{self, Write},
};

use bytes::Bytes;

use super::{
    options::Durability,
    unfinished::{self, Left, Unfinished},
};

/// What can be written at positions: a file, or what stands for one in tests.
pub trait WriteAt {
    /// Returns the length in bytes.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn byte_len(&self) -> io::Result<u64>;

    /// Writes bytes at an offset from the start; what lies between the end and there is zeros.
    ///
    /// # Errors
    ///
    /// What the system says; some of the bytes may be written.
    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts it to a length in bytes.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn set_len(&mut self, len: u64) -> io::Result<()>;

    /// Forces what was written to the disk.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn sync(&mut self) -> io::Result<()>;

    /// Returns another handle, for [`abandon`](super::abandon) to cut the file.
    fn handle(&self) -> Option<File> {
        None
    }
}

/// Nothing takes what is written: a dry run.
impl<F: WriteAt> WriteAt for Option<F> {
    fn byte_len(&self) -> io::Result<u64> {
        self.as_ref().map_or_else(|| Err(io::ErrorKind::Unsupported.into()), F::byte_len)
    }

    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), |file| file.write_all_at(bytes, offset))
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), |file| file.set_len(len))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), F::sync)
    }

    fn handle(&self) -> Option<File> {
        self.as_ref().and_then(F::handle)
    }
}

/// Appends to a file that is read from its end, so that readers and whoever looks at what a killed
/// process left find the old end there or the new one, each whole.
///
/// What is written goes behind the old end, and ends with the new one. A copy of the old end is
/// first written behind the place of all that; [`commit`](Self::commit) cuts it off again.
///
/// ```text
/// [… old end]                                              before
/// [… old end][hole                           ][old end]    the copy, in one write
/// [… old end][what is new … new end][hole    ][old end]    filled in any number of writes
/// [… old end][what is new … new end]                       after: one cut
/// ```
///
/// Where it is not known how long all will be, the copy moves on, each time as far again. The cut
/// is one step to everybody. A copy of up to 4096 bytes lies in one page, and so is its write. A
/// longer one is written page by page: a process that is killed just then, within microseconds for
/// each MiB, leaves a part of the copy and zeros behind a whole file, and a reader may come upon
/// that. What finds the last whole end in a file, as the `recover` of a format does, finds the
/// old one.
///
/// Dropped before its commit, it cuts off what it wrote, unless something else has changed the
/// length of the file.
pub struct Append<F: WriteAt> {
    file: F,
    /// Returns the old end, as it is to stand at an offset.
    old_end: Box<dyn FnMut(u64) -> io::Result<Bytes> + Send>,
    /// The length of the file before.
    start: u64,
    /// What the buffer holds goes there.
    position: u64,
    buffer: Vec<u8>,
    /// Where the copy of the old end is; where none is needed yet, the start.
    copy: u64,
    /// The length that the last write left.
    len: u64,
    unfinished: Option<Unfinished>,
}

impl<F: WriteAt> Append<F> {
    /// Starts to append to a file of `len` bytes, which ends with what `old_end` returns. That is
    /// given the offset at which a copy is to stand, for formats whose ends depend on it.
    pub fn new(
        file: F,
        len: u64,
        old_end: impl FnMut(u64) -> io::Result<Bytes> + Send + 'static,
    ) -> Self {
        let unfinished =
            file.handle().map(|handle| unfinished::hold().add(Left::Tail(handle, len)));
        let (old_end, buffer) = (Box::new(old_end), Vec::new());
        Self { file, old_end, start: len, position: len, buffer, copy: len, len, unfinished }
    }

    /// Tells whether anything is in the file yet.
    #[must_use]
    pub const fn has_written(&self) -> bool {
        self.position > self.start
    }

    /// Makes what was written the end of the file; returns its length in bytes.
    ///
    /// # Errors
    ///
    /// What the system says; the file is as it was.
    pub fn commit(mut self, durability: Durability) -> io::Result<u64> {
        self.write_buffer()?;
        if durability == Durability::Synced {
            // What the new end speaks of is on the disk before it is the end.
            self.file.sync()?;
        }
        if self.has_written() {
            let mut held = unfinished::hold();
            self.check_unchanged()?;
            self.file.set_len(self.position)?;
            held.done(self.unfinished.take());
            (self.start, self.len) = (self.position, self.position);
        }
        if durability == Durability::Synced {
            self.file.sync()?;
        }
        Ok(self.position)
    }

    /// Writes what was gathered, and makes room for it first.
    fn write_buffer(&mut self) -> io::Result<()> {
        let end = self.position.saturating_add(self.buffer.len() as u64);
        if end > self.copy {
            self.move_copy(end)?;
        }
        let _held = unfinished::hold();
        self.file.write_all_at(&self.buffer, self.position)?;
        self.position = end;
        self.buffer.clear();
        Ok(())
    }

    /// A lock keeps other editors out, not other programs: what those wrote is not ours to lose.
    fn check_unchanged(&self) -> io::Result<()> {
        match self.file.byte_len() {
            Ok(len) if len != self.len => {
                Err(io::Error::other("another program has changed the file meanwhile"))
            }
            _ => Ok(()),
        }
    }

    /// Writes a copy of the old end behind the one that is there, and behind `end`.
    fn move_copy(&mut self, end: u64) -> io::Result<()> {
        let twice = self.copy.saturating_add(self.copy.saturating_sub(self.start));
        let copy = end.max(twice).max(self.len);
        let copy = copy.checked_next_multiple_of(PAGE).unwrap_or(copy);
        let old_end = (self.old_end)(copy)?;
        let _held = unfinished::hold();
        self.check_unchanged()?;
        let written = self.file.write_all_at(&old_end, copy);
        self.len = match written {
            Ok(()) => copy.saturating_add(old_end.len() as u64),
            // A part may have been written, up to where the disk was full.
            Err(_) => self.file.byte_len().unwrap_or(self.len),
        };
        self.copy = copy;
        written
    }
}

impl<F: WriteAt> Write for Append<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() >= BUFFER {
            self.write_buffer()?;
        }
        let room = BUFFER.saturating_sub(self.buffer.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.buffer.extend_from_slice(taken);
        Ok(taken.len())
    }

    /// Does nothing: what is gathered is written in pieces that are worth it.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<F: WriteAt> Drop for Append<F> {
    fn drop(&mut self) {
        if self.len > self.start && self.check_unchanged().is_ok() {
            // Where even that fails, the file still ends with a copy of its old end.
            let _ = self.file.set_len(self.start);
        }
    }
}

impl<F: WriteAt> fmt::Debug for Append<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, position, copy, len, .. } = self;
        write!(f, "Append {{ start: {start}, position: {position}, copy: {copy}, len: {len} }}")
    }
}

/// How much is gathered before it is written, in bytes.
const BUFFER: usize = 4 << 20;
/// What is written within so many bytes, from a multiple of it on, is there whole or not at all.
const PAGE: u64 = 4096;
