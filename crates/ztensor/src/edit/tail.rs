//! What an edit appends, so that the file is complete after every write: see the module above.

use std::io::{self, Write};

use bytes::Bytes;
use tensor_core::output::LockedFile;

/// What an edit writes to: bytes at positions, and a way to force them to the disk.
pub(super) trait WriteAt {
    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
    fn byte_len(&self) -> io::Result<u64>;
    fn cut(&mut self, len: u64) -> io::Result<()>;
}

impl WriteAt for LockedFile {
    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        Self::write_all_at(self, bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        Self::sync(self)
    }

    fn byte_len(&self) -> io::Result<u64> {
        Self::byte_len(self)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}

/// Nothing takes what is written: a dry run.
impl<F: WriteAt> WriteAt for Option<F> {
    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), |file| file.write_all_at(bytes, offset))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), F::sync)
    }

    fn byte_len(&self) -> io::Result<u64> {
        self.as_ref().map_or(Ok(0), F::byte_len)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), |file| file.cut(len))
    }
}

/// Appends to a file so that it is complete after every write: see the module. Dropped before its
/// commit, it cuts off what it appended.
#[derive(Debug)]
pub(super) struct Tail<F: WriteAt> {
    file: F,
    /// The length of the file before.
    start: u64,
    /// The length that the last write left, where there was one whose bytes may go again.
    left: Option<u64>,
    /// Where the next write goes.
    offset: u64,
    /// The old manifest and its footer.
    old: Bytes,
    pub(super) buffer: Vec<u8>,
    /// How much is gathered before it is written: so much that the copies of the old manifest
    /// stay the smaller part.
    enough: usize,
}

impl<F: WriteAt> Tail<F> {
    pub(super) fn new(file: F, offset: u64, old: Bytes) -> Self {
        let enough = ENOUGH.max(old.len());
        Self { file, start: offset, left: None, offset, old, buffer: Vec::new(), enough }
    }

    pub(super) const fn has_written(&self) -> bool {
        self.left.is_some()
    }

    /// Returns how much is gathered before some of it is written. What stays behind is as long as
    /// the copy that follows what is written, so that the last write covers that copy.
    fn full(&self) -> usize {
        self.enough.saturating_add(self.old.len())
    }

    /// Writes the first part of what was gathered, followed by a copy of the old manifest.
    fn write_complete(&mut self) -> io::Result<()> {
        let rest = self.buffer.split_off(self.enough.min(self.buffer.len()));
        let written = self.buffer.len() as u64;
        self.buffer.extend_from_slice(&self.old);
        self.write_buffer()?;
        self.offset = self.offset.saturating_add(written);
        self.buffer.clear();
        self.buffer.extend_from_slice(&rest);
        Ok(())
    }

    /// Writes what was gathered last, which ends with the new manifest and its footer; returns the
    /// length of the file.
    pub(super) fn commit(mut self, durable: bool) -> io::Result<u64> {
        if durable {
            // What the new manifest speaks of is on the disk before the manifest is.
            self.file.sync()?;
        }
        self.write_buffer()?;
        if durable {
            self.file.sync()?;
        }
        self.left = None;
        Ok(self.offset.saturating_add(self.buffer.len() as u64))
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        let written = self.file.write_all_at(&self.buffer, self.offset);
        self.left = match written {
            Ok(()) => Some(self.offset.saturating_add(self.buffer.len() as u64)),
            // A part may have been written, up to where the disk was full.
            Err(_) => self.file.byte_len().ok(),
        };
        written
    }
}

impl<F: WriteAt> Write for Tail<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() >= self.full() {
            self.write_complete()?;
        }
        let room = self.full().saturating_sub(self.buffer.len()).max(1);
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.buffer.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<F: WriteAt> Drop for Tail<F> {
    fn drop(&mut self) {
        // A lock keeps other editors out, not other programs: what those left is not ours to cut.
        if self.left.is_some() && self.file.byte_len().ok() == self.left {
            // Where even that fails, the file still ends with a copy of its old manifest.
            let _ = self.file.cut(self.start);
        }
    }
}

const ENOUGH: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use tensor_core::{Profile, TensorBuf};

    use super::*;
    use crate::{Reader, WriteOptions, Writer};

    /// A file in memory, and what it was after each write.
    #[derive(Clone)]
    struct Recorded(Rc<RefCell<Vec<Vec<u8>>>>);

    impl WriteAt for Recorded {
        fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
            let mut states = self.0.borrow_mut();
            let mut state = states.last().unwrap().clone();
            let start = usize::try_from(offset).unwrap();
            state.resize(state.len().max(start + bytes.len()), 0);
            state[start..start + bytes.len()].copy_from_slice(bytes);
            states.push(state);
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn byte_len(&self) -> io::Result<u64> {
            Ok(self.0.borrow().last().unwrap().len() as u64)
        }

        fn cut(&mut self, len: u64) -> io::Result<()> {
            let mut states = self.0.borrow_mut();
            let mut state = states.last().unwrap().clone();
            state.resize(usize::try_from(len).unwrap(), 0);
            states.push(state);
            Ok(())
        }
    }

    /// A disk with so much room, which takes what fits.
    struct Disk(Recorded, usize);

    impl WriteAt for Disk {
        fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
            let room = self.1.saturating_sub(usize::try_from(offset).unwrap());
            self.0.write_all_at(&bytes[..room.min(bytes.len())], offset)?;
            if room < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }

        fn sync(&mut self) -> io::Result<()> {
            self.0.sync()
        }

        fn byte_len(&self) -> io::Result<u64> {
            self.0.byte_len()
        }

        fn cut(&mut self, len: u64) -> io::Result<()> {
            self.0.cut(len)
        }
    }

    fn file(names: &[&str]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        for name in names {
            writer.add(name, &TensorBuf::from_slice([40], &[7_u16; 40]).unwrap()).unwrap();
        }
        writer.finish().unwrap()
    }

    /// Appends three tensors in small writes; returns the file after each of them.
    fn appended(before: &[u8]) -> Vec<Vec<u8>> {
        let reader = Reader::from_bytes(before.to_vec()).unwrap();
        let states = Recorded(Rc::new(RefCell::new(vec![before.to_vec()])));
        let old = before[usize::try_from(reader.manifest().offset()).unwrap()..].to_vec();
        let mut tail = Tail::new(states.clone(), before.len() as u64, old.into());
        tail.enough = 100;
        let options = WriteOptions::default();
        let mut writer =
            Writer::resume(tail, before.len() as u64, reader.manifest(), options).unwrap();
        writer.forget("b").unwrap();
        for name in ["b", "c", "d"] {
            writer.add(name, &TensorBuf::from_slice([100], &[3_u8; 100]).unwrap()).unwrap();
        }
        writer.finish().unwrap().commit(true).unwrap();
        states.0.take()
    }

    fn names(reader: &Reader) -> Vec<&str> {
        reader.manifest().names().collect()
    }

    #[test]
    fn complete_after_every_write() {
        let before = file(&["a", "b"]);
        let states = appended(&before);
        assert!(states.len() > 4, "{} writes", states.len());
        let (last, others) = states.split_last().unwrap();
        for state in others {
            let reader = Reader::from_bytes(state.clone()).unwrap();
            assert_eq!(names(&reader), ["a", "b"]);
            assert!(reader.validate().is_valid());
        }
        let reader = Reader::from_bytes(last.clone()).unwrap();
        assert_eq!(names(&reader), ["a", "b", "c", "d"]);
        assert_eq!(reader.tensor("b").unwrap().bytes().unwrap(), [3; 100][..]);
        assert!(reader.validate().is_valid());
    }

    #[test]
    fn full_disks_leave_no_trace() {
        let before = file(&["a", "b"]);
        for room in [0, 1, 50, 150, 300] {
            let states = Recorded(Rc::new(RefCell::new(vec![before.clone()])));
            let disk = Disk(states.clone(), before.len() + room);
            let mut tail = Tail::new(disk, before.len() as u64, before[100..].to_vec().into());
            tail.enough = 100;
            let written = tail.write_all(&[3; 1000]);
            assert_eq!(written.unwrap_err().kind(), io::ErrorKind::StorageFull);
            drop(tail);
            assert_eq!(states.0.borrow().last().unwrap(), &before, "{room} bytes of room");
        }
    }

    #[test]
    fn recovered_after_every_byte() {
        let before = file(&["a", "b"]);
        let after = appended(&before).pop().unwrap();
        for len in before.len()..after.len() {
            let cut = after[..len].to_vec();
            let reader = Reader::options().profile(Profile::Lenient).from_bytes(cut).unwrap();
            assert_eq!(names(&reader), ["a", "b"], "{len} bytes");
            assert_eq!(reader.tensor("b").unwrap().bytes().unwrap().len(), 80);
        }
    }
}
