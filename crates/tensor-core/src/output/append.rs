use std::{
    fmt,
    fs::File,
    io::{self, Write},
};

use bytes::Bytes;

use super::{
    options::{Durability, in_place},
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
/// Where it is not known how long all will be, the copy moves on, each time as far again. The cut is
/// one step to everybody. With [`Durability::Synced`] the copy is on the disk before anything goes in
/// front of it, so that a power cut leaves it as well; a process that is killed leaves it in any case. A copy of up to 4096 bytes lies in one page, and so is its write. A
/// longer one is written page by page: a process that is killed just then, within microseconds for
/// each MiB, leaves a part of the copy and zeros behind a whole file, and a reader may come upon
/// that. What finds the last whole end in a file, as the `recover` of a format does, finds the
/// old one.
///
/// Dropped before its commit, it cuts off what it wrote, unless something else has changed the
/// length of the file.
pub struct Append<F: WriteAt> {
    /// None in a dry run.
    file: Option<F>,
    durability: Durability,
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
    /// given the offset at which a copy is to stand, for formats whose ends depend on it. Without a
    /// file it is a dry run.
    pub fn new(
        file: Option<F>,
        len: u64,
        durability: Durability,
        old_end: impl FnMut(u64) -> io::Result<Bytes> + Send + 'static,
    ) -> Self {
        let handle = file.as_ref().and_then(F::handle);
        let unfinished =
            handle.map(|file| unfinished::hold().add(Left::Tail { file, start: len, len }));
        let (old_end, buffer) = (Box::new(old_end), Vec::new());
        let (start, position, copy) = (len, len, len);
        Self { file, durability, old_end, start, position, buffer, copy, len, unfinished }
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
    /// What the system says; the file is as it was, but where the error says that the change is in
    /// its place.
    pub fn commit(mut self) -> io::Result<u64> {
        self.write_buffer()?;
        // What the new end speaks of is on the disk before it is the end.
        self.sync()?;
        if self.has_written() {
            let mut held = unfinished::hold();
            self.check_unchanged()?;
            let end = self.position;
            self.change(|file| file.set_len(end))?;
            held.done(self.unfinished.take());
            (self.start, self.len) = (end, end);
        }
        self.sync().map_err(|error| in_place(&error))?;
        Ok(self.position)
    }

    /// Writes what was gathered, and makes room for it first.
    fn write_buffer(&mut self) -> io::Result<()> {
        let end = self.position.saturating_add(self.buffer.len() as u64);
        if end > self.copy && self.file.is_some() {
            self.move_copy(end)?;
        }
        let _held = unfinished::hold();
        if let Some(file) = &mut self.file {
            file.write_all_at(&self.buffer, self.position)?;
        }
        self.position = end;
        self.buffer.clear();
        Ok(())
    }

    fn change(&mut self, change: impl FnOnce(&mut F) -> io::Result<()>) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), change)
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.durability {
            Durability::Synced => self.change(F::sync),
            Durability::Cached => Ok(()),
        }
    }

    /// A lock keeps other editors out, not other programs: what those wrote is not ours to lose.
    fn check_unchanged(&self) -> io::Result<()> {
        match &self.file {
            Some(file) if file.byte_len()? != self.len => {
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
        let mut held = unfinished::hold();
        self.check_unchanged()?;
        let written = self.change(|file| file.write_all_at(&old_end, copy));
        self.len = match (&written, &self.file) {
            // A part may have been written, up to where the disk was full.
            (Err(_), Some(file)) => file.byte_len().unwrap_or(self.len),
            _ => copy.saturating_add(old_end.len() as u64),
        };
        held.set_len(self.unfinished.as_ref(), self.len);
        drop(held);
        written?;
        // The system writes in what order it likes: what goes before the copy must not be the end.
        self.sync()?;
        self.copy = copy;
        Ok(())
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
            let start = self.start;
            let _ = self.change(|file| file.set_len(start));
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// The places of writes, and "sync", of which one fails.
    #[derive(Clone, Default)]
    struct Steps {
        steps: Arc<Mutex<Vec<String>>>,
        len: u64,
        fails: usize,
        /// Whether its length cannot be read.
        is_lost: bool,
    }

    impl Steps {
        fn step(&self, step: String) {
            self.steps.lock().unwrap().push(step);
        }
    }

    impl WriteAt for Steps {
        fn byte_len(&self) -> io::Result<u64> {
            if self.is_lost { Err(io::ErrorKind::HostUnreachable.into()) } else { Ok(self.len) }
        }

        fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
            self.len = self.len.max(offset + bytes.len() as u64);
            self.step(format!("{} at {offset}", bytes.len()));
            Ok(())
        }

        fn set_len(&mut self, len: u64) -> io::Result<()> {
            self.len = len;
            self.step(format!("cut to {len}"));
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            self.step("sync".into());
            let syncs = self.steps.lock().unwrap().iter().filter(|step| *step == "sync").count();
            if syncs == self.fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }
    }

    fn append(file: Option<&Steps>, len: usize, durability: Durability) -> io::Result<u64> {
        let file = file.map(|file| Steps { len: 3, ..file.clone() });
        let mut append = Append::new(file, 3, durability, |_| Ok("old".into()));
        append.write_all(&vec![0; len])?;
        append.commit()
    }

    #[test]
    fn copies_are_on_the_disk_before_what_goes_in_front_of_them() {
        let file = Steps::default();
        append(Some(&file), 5 << 20, Durability::Synced).unwrap();
        let expected = [
            "3 at 4198400",
            "sync",
            "4194304 at 3",
            "3 at 8396800",
            "sync",
            "1048576 at 4194307",
            "sync",
            "cut to 5242883",
            "sync",
        ];
        assert_eq!(*file.steps.lock().unwrap(), expected);
        let cached = Steps::default();
        append(Some(&cached), 5 << 20, Durability::Cached).unwrap();
        let others = expected.into_iter().filter(|step| *step != "sync");
        assert_eq!(*cached.steps.lock().unwrap(), others.collect::<Vec<_>>());
    }

    #[test]
    fn a_copy_that_failed_is_made_again() {
        let file = Steps { len: 3, fails: 1, ..Steps::default() };
        let old_end = |_| Ok("old".into());
        let mut append = Append::new(Some(file.clone()), 3, Durability::Synced, old_end);
        append.write_all(&vec![0; 5 << 20]).unwrap_err();
        append.write_all(&[0]).unwrap();
        let steps = file.steps.lock().unwrap();
        assert!(
            steps[2].starts_with("3 at ") && steps[3..] == ["sync", "4194304 at 3"],
            "{steps:?}"
        );
    }

    #[test]
    fn a_dry_run_says_how_long_it_would_be() {
        assert_eq!(append(None, 5 << 20, Durability::Synced).unwrap(), 3 + (5 << 20));
    }

    #[test]
    fn a_file_whose_length_is_not_known_is_not_changed() {
        let file = Steps { is_lost: true, ..Steps::default() };
        let error = append(Some(&file), 5, Durability::Synced).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::HostUnreachable);
        assert!(file.steps.lock().unwrap().is_empty());
    }

    #[test]
    fn what_fails_after_the_change_says_so() {
        for (fails, last, is_in_place) in
            [(1, "cut to 3", false), (2, "cut to 3", false), (3, "sync", true)]
        {
            let file = Steps { fails, ..Steps::default() };
            let error = append(Some(&file), 5, Durability::Synced).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert_eq!(error.to_string().starts_with("the change is in its place"), is_in_place);
            assert_eq!(file.steps.lock().unwrap().last().unwrap(), last);
        }
    }
}
