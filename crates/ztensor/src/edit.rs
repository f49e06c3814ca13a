//! Changing files in place: blobs that are there stay where they are.
//!
//! An edit appends: behind the old footer come the new blobs, the new manifest and its footer. The
//! old manifest is never overwritten, and every single write ends with a copy of it, or is the
//! last one and ends with the new one. So after any write the file opens, as it was or as it is to
//! be; where the system cuts a write itself short, [`recover`] finds the old one.
//!
//! ```text
//! [blobs][manifest][footer]                                          before
//! [blobs][manifest][footer][new blobs…][old manifest][old footer]    after every write but the last
//! [blobs][manifest][footer][new blobs…][new manifest][new footer]    after the last
//! ```

use std::{
    io::{self, Write},
    path::Path,
};

use bytes::Bytes;
use tensor_core::{
    Extent, LockedFile, Tensor as Elements,
    output::{Durability, Existing, NewFile},
};

use crate::{
    Generation, Reader, Tensor, WriteOptions, Writer,
    container::last_complete,
    error::{Error, Result},
    write::Moved,
};

/// A file that is being edited, locked against other editors.
///
/// Nothing changes for a reader before [`commit`](Self::commit) has returned; dropped before, the
/// file is as it was. What the editor appended is cut off only where nothing else changed the
/// length of the file meanwhile; else it stays, and the file ends with what the other left.
///
/// # Examples
///
/// ```no_run
/// use ztensor::{Editor, tensor_core::Tensor};
///
/// let mut editor = Editor::open("model.zt")?;
/// editor.remove("optimizer.step")?;
/// editor.writer().add("bias", &Tensor::from_slice([3], &[0.5_f32, 1.0, 1.5])?)?;
/// editor.commit()?;
/// # Ok::<(), ztensor::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "an edit takes effect when it is committed"]
pub struct Editor {
    writer: Option<Writer<Tail<Option<LockedFile>>>>,
    /// None in a rehearsal.
    file: Option<LockedFile>,
    reader: Reader,
    options: WriteOptions,
}

impl Editor {
    /// Locks and opens a file of generation 1.1 or 1.2 with the default options.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::Locked`]; [`Error::NotEditable`] for an older generation; as for
    /// [`Reader::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, WriteOptions::default())
    }

    /// Does as [`open`](Self::open) with options; the version stays that of the file.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        options.check()?;
        let file = LockedFile::open(path)?;
        let reader = Reader::from_source(file.source()?)?;
        Self::start(reader, options, Some(file))
    }

    /// Opens a file for an edit that changes nothing: everything is checked as in any edit, and
    /// what would be written is thrown away.
    ///
    /// The file is opened for reading only and is not locked.
    ///
    /// # Errors
    ///
    /// [`Error::NotEditable`] for an older generation; as for [`Reader::open`].
    pub fn rehearse(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        options.check()?;
        Self::start(Reader::open(path)?, options, None)
    }

    fn start(reader: Reader, options: WriteOptions, file: Option<LockedFile>) -> Result<Self> {
        let options = match reader.generation() {
            Generation::V1_1 => options.version(crate::Version::V1_1),
            Generation::V1_2 => options.version(crate::Version::V1_2),
            found => return Err(Error::NotEditable { found }),
        };
        let source = reader.source();
        let tail = Extent::between(reader.manifest().offset(), source.len());
        let old = source.read(tail, "manifest")?;
        let sink = file.as_ref().map(LockedFile::try_clone).transpose()?;
        let tail = Tail::new(sink, source.len(), old);
        let writer = Writer::resume(tail, source.len(), reader.manifest(), options)?;
        Ok(Self { writer: Some(writer), file, reader, options })
    }

    /// Returns the file as it was when it was opened.
    #[must_use]
    pub const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the writer of what is added. To replace an object, remove it first.
    ///
    /// # Panics
    ///
    /// Never: the writer is taken away only by [`commit`](Self::commit).
    #[expect(clippy::expect_used, reason = "commit consumes the editor")]
    pub fn writer(&mut self) -> &mut Writer<impl Write + use<>> {
        self.writer.as_mut().expect("there until the commit")
    }

    /// Removes an object; its blobs stay in the file until it is [compacted](compact).
    ///
    /// # Errors
    ///
    /// [`Error::MissingObject`].
    pub fn remove(&mut self, name: &str) -> Result<()> {
        match &mut self.writer {
            Some(writer) => writer.forget(name),
            None => Err(Error::MissingObject { name: name.to_owned() }),
        }
    }

    /// Replaces an object by a dense tensor.
    ///
    /// # Errors
    ///
    /// [`Error::MissingObject`]; as for [`Writer::add`].
    pub fn replace(&mut self, name: &str, tensor: &Elements) -> Result<()> {
        self.remove(name)?;
        self.writer().add(name, tensor)
    }

    /// Makes the edit take effect: writes the new manifest behind everything else. Where nothing
    /// changed, nothing is written.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] and [`Error::Unfinished`]; the file is as it was.
    pub fn commit(mut self) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let tail = writer.finish()?;
        if !tail.has_written() && tail.buffer == self.unchanged()? {
            return Ok(());
        }
        let committed = tail.commit(self.options.is_durable());
        committed.map_err(|source| Error::Write { offset: self.reader.source().len(), source })
    }

    /// Returns what an edit ends with that changes nothing. The manifest need not be the one in
    /// the file to the byte: another writer may have encoded that.
    fn unchanged(&self) -> Result<Vec<u8>> {
        let (len, manifest) = (self.reader.source().len(), self.reader.manifest());
        Writer::resume(Vec::new(), len, manifest, self.options)?.finish()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // What was appended is cut off before another editor comes in.
        drop(self.writer.take());
        if let Some(file) = &self.file {
            file.unlock();
        }
    }
}

/// Rewrites a file without the bytes that belong to no object, and replaces it atomically.
///
/// Blobs keep their order, their stored bytes, and whom they are shared by. Where `path` is a
/// symbolic link, the file behind it is replaced; other hard links of that file keep the old
/// content.
///
/// # Errors
///
/// As for [`Editor::open`]; [`Error::Component`] where a blob does not lie where it may. The file is
/// as it was.
pub fn compact(path: impl AsRef<Path>, options: WriteOptions) -> Result<Compacted> {
    options.check()?;
    let path = path.as_ref();
    let file = LockedFile::open(path)?;
    let reader = Reader::from_source(file.source()?)?;
    let options = match reader.generation() {
        Generation::V1_1 => options.version(crate::Version::V1_1),
        Generation::V1_2 => options.version(crate::Version::V1_2),
        found => return Err(Error::NotEditable { found }),
    };
    let durability = if options.is_durable() { Durability::Synced } else { Durability::Cached };
    let new = NewFile::create(path, durability)?;
    let mut writer = Writer::start(new, options, |_, _| Ok(()));
    copy_all(&reader, &mut writer)?;
    let mut new = writer.finish()?;
    let (before, after) = (reader.source().len(), new.written());
    file.check_in_place()?;
    new.commit(Existing::Replace)?;
    file.unlock();
    Ok(Compacted { before, after })
}

/// What compacting a file has done to its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// The length before, in bytes.
    pub before: u64,
    /// The length afterwards, in bytes, at most the one before.
    pub after: u64,
}

/// Copies a whole file: its attributes, what it says beyond the schema, and all objects in the
/// order of their blobs.
pub(crate) fn copy_all<W: Write>(reader: &Reader, writer: &mut Writer<W>) -> Result<()> {
    let (attributes, other) = reader.manifest().encoded_root();
    writer.set_encoded_attributes(attributes);
    writer.set_unknown_fields(other);
    writer.set_version_text(reader.manifest().version());
    let mut moved = Moved::default();
    for tensor in in_file_order(reader)? {
        writer.copy_as(tensor.name(), tensor, tensor.object()?, &mut moved)?;
    }
    Ok(())
}

/// Returns the objects in the order in which their blobs were written.
pub(crate) fn in_file_order(reader: &Reader) -> Result<Vec<Tensor<'_>>> {
    let mut tensors = Vec::new();
    for tensor in reader.tensors() {
        let object = tensor.object()?;
        let places = object.components.iter().map(|(_, c)| (c.offset, c.length));
        tensors.push((places.min(), tensor));
    }
    tensors.sort_by_key(|(place, _)| *place);
    Ok(tensors.into_iter().map(|(_, tensor)| tensor).collect())
}

/// Cuts a file whose end is missing back to the last complete file inside it: what an edit that
/// was interrupted leaves. Returns how many bytes were cut off.
///
/// # Errors
///
/// [`Error::NothingToRecover`] where there is none; [`tensor_core::Error::Locked`].
pub fn recover(path: impl AsRef<Path>) -> Result<u64> {
    let mut file = LockedFile::open(path)?;
    let source = file.source()?;
    let len = match Reader::from_source(source.clone()) {
        Ok(_) => {
            file.unlock();
            return Ok(0);
        }
        Err(_) => last_complete(&source, &Reader::options().into_limits())?.0,
    };
    let truncated = file.set_len(len).and_then(|()| file.sync());
    truncated.map_err(|source| file.failed("truncating", source))?;
    file.unlock();
    Ok(source.len().saturating_sub(len))
}

/// What an edit writes to: bytes at positions, and a way to force them to the disk.
trait WriteAt {
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

/// Nothing takes what is written: a rehearsal.
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
struct Tail<F: WriteAt> {
    file: F,
    /// The length of the file before.
    start: u64,
    /// The length that the last write left, where there was one whose bytes may go again.
    left: Option<u64>,
    /// Where the next write goes.
    offset: u64,
    /// The old manifest and its footer.
    old: Bytes,
    buffer: Vec<u8>,
    /// How much is gathered before it is written: so much that the copies of the old manifest
    /// stay the smaller part.
    enough: usize,
}

impl<F: WriteAt> Tail<F> {
    fn new(file: F, offset: u64, old: Bytes) -> Self {
        let enough = ENOUGH.max(old.len());
        Self { file, start: offset, left: None, offset, old, buffer: Vec::new(), enough }
    }

    const fn has_written(&self) -> bool {
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

    /// Writes what was gathered last, which ends with the new manifest and its footer.
    fn commit(mut self, durable: bool) -> io::Result<()> {
        if durable {
            // What the new manifest speaks of is on the disk before the manifest is.
            self.file.sync()?;
        }
        self.write_buffer()?;
        if durable {
            self.file.sync()?;
        }
        self.left = None;
        Ok(())
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

    use super::*;

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
            writer.add(name, &Elements::from_slice([40], &[7_u16; 40]).unwrap()).unwrap();
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
            writer.add(name, &Elements::from_slice([100], &[3_u8; 100]).unwrap()).unwrap();
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
            let reader = Reader::options().recover(true).from_bytes(cut).unwrap();
            assert_eq!(names(&reader), ["a", "b"], "{len} bytes");
            assert_eq!(reader.tensor("b").unwrap().bytes().unwrap().len(), 80);
        }
    }
}
