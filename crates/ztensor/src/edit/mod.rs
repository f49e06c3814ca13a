//! Changing files in place: blobs that are there stay where they are.
//!
//! An edit appends: behind the old footer come the new blobs, the new manifest and its footer, while a
//! copy of the old manifest behind all that ends the file. Cutting that copy off is the commit. So the
//! file opens at every moment, as it was or as it is to be: see [`Append`].
//!
//! ```text
//! [blobs][manifest][footer]                                                     before
//! [blobs][manifest][footer][new blobs…    ][old manifest][footer]               meanwhile
//! [blobs][manifest][footer][new blobs…][new manifest][footer]                   after
//! ```
//!
//! In generation 2 the footer says where the manifest is, so that a copy of these 40 bytes alone is the
//! old end. The format's text promises readers nothing while a file is appended to; this holds for every
//! reader that opens the file at one length.

mod compact;

use compact::edit_options;
pub use compact::{compact, compact_dry_run, recover, recoverable, rewrite};

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::Path,
};

use tensor_core::{
    Extent, ReadAt, Source, TensorBuf,
    output::{Append, Edited, LockedFile},
};

use crate::{
    Attributes, Component, Generation, Reader, Shard, Tensor, Value, WriteOptions, Writer,
    error::{Error, Result},
    v2::FOOTER,
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
/// use ztensor::{Editor, tensor_core::TensorBuf};
///
/// let mut editor = Editor::open("model.zt")?;
/// editor.remove("optimizer.step")?;
/// editor.writer().add("bias", &TensorBuf::from_slice([3], &[0.5_f32, 1.0, 1.5])?)?;
/// editor.set_attribute("license", "MIT")?;
/// editor.commit()?;
/// # Ok::<(), ztensor::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "an edit takes effect when it is committed"]
pub struct Editor<W: Write = Append<LockedFile>> {
    // Dropped first: what was appended is cut off before another editor comes in.
    writer: Writer<W>,
    lock: Lock,
    reader: Reader,
    /// Objects that lie where none may, and why: they would come to lie in what is added.
    astray: BTreeMap<String, Error>,
}

/// The file is unlocked at the end, though readers may still hold it; `None` in a dry run.
#[derive(Debug)]
struct Lock(Option<LockedFile>);

impl Lock {
    fn check_in_place(&self) -> Result<()> {
        Ok(self.0.as_ref().map_or(Ok(()), LockedFile::check_in_place)?)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            file.unlock();
        }
    }
}

impl Editor {
    /// Locks and opens a file of generation 1.1, 1.2 or 2 with the default options.
    ///
    /// A canonical file of generation 2 is canonical no more when something was appended;
    /// [`compact`] makes it so again.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::Locked`]; [`Error::NotEditable`] for an older generation; as for
    /// [`Reader::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, WriteOptions::default())
    }

    /// Like [`open`](Self::open), with options; the version stays that of the file.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        options.check()?;
        let path = path.as_ref();
        let file = LockedFile::open_within(path, options.output.wait)?;
        let reader = Reader::from_source(file.source()?)?.with_shards_beside(path)?;
        Self::start(reader, options, Some(file))
    }

    /// Opens a file for an edit that changes nothing: everything is checked as in any edit,
    /// [`commit`](Self::commit) says what that would have done, and nothing is written.
    ///
    /// The file is opened as for an edit, so one that is read-only is refused, and locked for no
    /// longer than it takes to see that it can be.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn dry_run(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        options.check()?;
        let path = path.as_ref();
        let reader = Reader::from_source(options.output.check(path)?)?.with_shards_beside(path)?;
        Self::start(reader, options, None)
    }

    fn start(reader: Reader, options: WriteOptions, file: Option<LockedFile>) -> Result<Self> {
        let options = edit_options(&reader, options)?;
        let source = reader.source();
        // A footer of generation 2 says where the manifest is, so it is the end by itself.
        let end = match reader.generation() {
            Generation::V2 => source.len().saturating_sub(FOOTER),
            _ => reader.manifest().offset(),
        };
        let tail = Extent::between(end, source.len());
        let old = source.read(tail, "manifest")?;
        let sink = file.as_ref().map(LockedFile::try_clone).transpose()?;
        let durability = options.output.durability;
        let out = Append::new(sink, source.len(), durability, move |_| Ok(old.clone()));
        let writer = Writer::resume(out, source.len(), reader.manifest(), options)?;
        let astray = reader.tensors().filter_map(astray).collect();
        Ok(Self { writer, lock: Lock(file), reader, astray })
    }

    /// Makes the edit take effect: writes the new manifest behind everything else. Where nothing
    /// changed, nothing is written. In a dry run it says what would have been done.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] and [`Error::Unfinished`]; [`Error::Component`] where an object that is not
    /// removed lies outside of the blobs, as it would come to lie in what is added;
    /// [`tensor_core::Error::Replaced`] where another file has taken the place of this one. The file
    /// is as it was.
    pub fn commit(mut self) -> Result<Edited> {
        let before = self.reader.source().len();
        if self.writer.changes_nothing(before, self.reader.manifest())? {
            return Ok(Edited::Unchanged);
        }
        self.refuse_astray()?;
        let Self { lock, writer, .. } = self;
        let out = writer.finish()?;
        lock.check_in_place()?;
        let after = out.commit().map_err(|source| Error::Write { offset: before, source })?;
        // Forcing it to the disk takes a while, in which others may replace it as well.
        lock.check_in_place()?;
        Ok(Edited::Appended { before, after })
    }
}

impl<W: Write> Editor<W> {
    /// Edits a copy of a file, which is made in `sink`; [`finish`](Self::finish) completes it. The
    /// file itself is only read.
    ///
    /// # Errors
    ///
    /// [`Error::NotEditable`]; [`Error::Write`]; where the file cannot be read.
    pub fn copy_to(sink: W, reader: &Reader, options: WriteOptions) -> Result<Self> {
        options.check()?;
        let options = edit_options(reader, options)?;
        let blobs = Extent::first(blobs_end(reader)?);
        let mut writer = Writer::resume(sink, 0, reader.manifest(), options)?;
        while writer.position() < blobs.end() {
            let piece = Extent::between(writer.position(), blobs.end());
            let piece = piece.part(0, piece.len().min(PIECE), "blobs")?;
            writer.put(&reader.source().read(piece, "blobs")?)?;
        }
        let astray = reader.tensors().filter_map(astray).collect();
        Ok(Self { writer, lock: Lock(None), reader: reader.clone(), astray })
    }

    /// Writes the new manifest behind everything else, and returns the sink.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Editor::commit).
    pub fn finish(mut self) -> Result<W> {
        self.refuse_astray()?;
        self.writer.finish()
    }

    fn refuse_astray(&mut self) -> Result<()> {
        self.astray.pop_first().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Returns the file as it would be, to be checked before [`commit`](Editor::commit): all but the
    /// bytes of what was added, which are zero in it.
    ///
    /// # Errors
    ///
    /// As for [`Writer::finish`] and [`Reader::open`].
    pub fn preview(&self) -> Result<Reader> {
        let (old, end) = (self.reader.source(), self.writer.position());
        let kept = old.window(Extent::first(old.len().min(end)), "file")?;
        let added = Source::from_read_at(Zeros(end.saturating_sub(kept.len())));
        let manifest = Source::from_bytes(self.writer.end()?);
        let new = Reader::from_source(Source::joined([kept, added, manifest]))?;
        new.with_shards(&|name: &str, _: &Shard| Ok(self.reader.shard(name).cloned()))
    }

    /// Returns the file as it was when it was opened.
    #[must_use]
    pub const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Tells whether an object of a name is there, or was added.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.writer.contains(name)
    }

    /// Returns the writer of what is added. To replace an object, remove it first.
    pub const fn writer(&mut self) -> &mut Writer<W> {
        &mut self.writer
    }

    /// Gives objects other names, all at once, so that two can be swapped. Their blobs stay where they
    /// are.
    ///
    /// # Errors
    ///
    /// [`Error::MissingObject`], also where one is renamed twice; [`Error::DuplicateObject`] where
    /// another object has a new name. Nothing is renamed then.
    pub fn rename(&mut self, names: &[(&str, &str)]) -> Result<()> {
        self.writer.rename(names)?;
        let moved = names.iter().map(|(old, new)| (*new, self.astray.remove(*old)));
        let moved: Vec<_> = moved.collect();
        for (new, error) in moved {
            error.map(|error| self.astray.insert(new.to_owned(), error));
        }
        Ok(())
    }

    /// Removes an object; its blobs stay in the file until it is [compacted](compact).
    ///
    /// # Errors
    ///
    /// [`Error::MissingObject`].
    pub fn remove(&mut self, name: &str) -> Result<()> {
        self.astray.remove(name);
        self.writer.forget(name)
    }

    /// Replaces an object by a dense tensor.
    ///
    /// # Errors
    ///
    /// [`Error::MissingObject`]; as for [`Writer::add`].
    pub fn replace(&mut self, name: &str, tensor: &TensorBuf) -> Result<()> {
        self.remove(name)?;
        self.writer().add(name, tensor)
    }

    /// Returns the attributes of an object, or those of the file where none is named, as they are to
    /// be.
    ///
    /// # Errors
    ///
    /// [`Error::MissingObject`]; as for [`Manifest::attributes`](crate::Manifest::attributes).
    pub fn attributes_of(&self, object: Option<&str>) -> Result<Attributes> {
        self.writer.attributes_of(object)
    }

    /// Sets one attribute of the file.
    ///
    /// # Errors
    ///
    /// As for [`Manifest::attributes`](crate::Manifest::attributes) of the file as it was, and where
    /// [`Writer::set_attributes`] refuses the value.
    pub fn set_attribute(&mut self, key: &str, value: impl Into<Value>) -> Result<()> {
        let value = value.into();
        self.change_attributes(|attributes| drop(attributes.insert(key, value)))
    }

    /// Removes one attribute of the file; one that is not there is none to remove.
    ///
    /// # Errors
    ///
    /// As for [`set_attribute`](Self::set_attribute).
    pub fn remove_attribute(&mut self, key: &str) -> Result<()> {
        self.change_attributes(|attributes| drop(attributes.remove(key)))
    }

    /// Sets one attribute of an object, also of one that was added in this edit.
    ///
    /// # Errors
    ///
    /// [`Error::MissingObject`]; as for [`set_attribute`](Self::set_attribute).
    pub fn set_tensor_attribute(
        &mut self,
        name: &str,
        key: &str,
        value: impl Into<Value>,
    ) -> Result<()> {
        let value = value.into();
        self.change_attributes_of(name, |attributes| drop(attributes.insert(key, value)))
    }

    /// Removes one attribute of an object; one that is not there is none to remove.
    ///
    /// # Errors
    ///
    /// As for [`set_tensor_attribute`](Self::set_tensor_attribute).
    pub fn remove_tensor_attribute(&mut self, name: &str, key: &str) -> Result<()> {
        self.change_attributes_of(name, |attributes| drop(attributes.remove(key)))
    }

    fn change_attributes(&mut self, change: impl FnOnce(&mut Attributes)) -> Result<()> {
        // Says where in the file they are wrong, which the writer does not know.
        self.reader.manifest().attributes()?;
        self.writer.change_attributes(change)
    }

    fn change_attributes_of(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Attributes),
    ) -> Result<()> {
        if let Some(tensor) = self.reader.tensor(name) {
            tensor.attributes()?;
        }
        self.writer.change_attributes_of(name, change)
    }
}

/// Returns where the last blob ends.
fn blobs_end(reader: &Reader) -> Result<u64> {
    if reader.generation() != Generation::V2 {
        return Ok(reader.manifest().offset());
    }
    let mut end = 0;
    for tensor in reader.tensors() {
        for (_, part) in tensor.object()?.components.iter().filter(|(_, part)| part.shard.is_none())
        {
            end = end.max(part.offset.saturating_add(part.length));
        }
    }
    Ok(end)
}

/// As many zeros, in the place of bytes that nobody looks at.
struct Zeros(u64);

impl ReadAt for Zeros {
    fn len(&self) -> u64 {
        self.0
    }

    fn read_exact_at(&self, _: u64, buffer: &mut [u8]) -> io::Result<()> {
        buffer.fill(0);
        Ok(())
    }
}

/// How many bytes are copied at once.
const PIECE: u64 = 1 << 20;

/// Returns why an object lies where none may, and its name.
fn astray(tensor: Tensor<'_>) -> Option<(String, Error)> {
    let object = tensor.object().ok()?;
    let is_outside = |part: &Component| tensor.reader().extent_of(part).is_none();
    let (role, part) = object.components.iter().find(|(_, part)| is_outside(part))?;
    let error = tensor.unsized_blob(role, part).extent().err()?;
    Some((tensor.name().to_owned(), error))
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use tensor_core::{
        Profile,
        output::{Durability, WriteAt},
    };

    use super::*;

    /// A file in memory, which is looked at after every step: each page of a write that makes it
    /// longer, as a system does that; each other write; each cut.
    #[derive(Clone)]
    struct Watched {
        bytes: Rc<RefCell<Vec<u8>>>,
        steps: Rc<RefCell<Vec<Vec<String>>>>,
        /// How many bytes there is room for.
        room: usize,
    }

    impl Watched {
        fn new(bytes: &[u8], room: usize) -> Self {
            let (bytes, steps) = (Rc::new(RefCell::new(bytes.to_vec())), Rc::default());
            Self { bytes, steps, room }
        }

        fn look(&self) {
            let reader = Reader::from_bytes(self.bytes.borrow().clone()).unwrap();
            assert!(reader.lint().is_valid());
            self.steps.borrow_mut().push(names(&reader));
        }
    }

    impl WriteAt for Watched {
        fn byte_len(&self) -> io::Result<u64> {
            Ok(self.bytes.borrow().len() as u64)
        }

        fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
            let mut at = usize::try_from(offset).unwrap();
            let taken = &bytes[..bytes.len().min(self.room.saturating_sub(at))];
            let mut rest = taken;
            while !rest.is_empty() {
                let is_longer = at + rest.len() > self.bytes.borrow().len();
                let step = if is_longer { 4096 - at % 4096 } else { rest.len() }.min(rest.len());
                {
                    let mut file = self.bytes.borrow_mut();
                    let len = file.len().max(at + step);
                    file.resize(len, 0);
                    file[at..at + step].copy_from_slice(&rest[..step]);
                }
                (rest, at) = (&rest[step..], at + step);
                if taken.len() == bytes.len() {
                    self.look();
                }
            }
            if taken.len() == bytes.len() {
                return Ok(());
            }
            Err(io::ErrorKind::StorageFull.into())
        }

        fn set_len(&mut self, len: u64) -> io::Result<()> {
            self.bytes.borrow_mut().truncate(usize::try_from(len).unwrap());
            self.look();
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn names(reader: &Reader) -> Vec<String> {
        reader.manifest().names().map(str::to_owned).collect()
    }

    fn tensor(bytes: usize) -> TensorBuf {
        TensorBuf::from_slice([bytes as u64], &vec![3_u8; bytes]).unwrap()
    }

    fn file() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        writer.add("a", &tensor(80)).unwrap();
        writer.add("b", &tensor(80)).unwrap();
        writer.finish().unwrap()
    }

    /// Starts to edit a file as an editor does.
    fn edit(watched: &Watched) -> Writer<Append<Watched>> {
        let before = watched.bytes.borrow().clone();
        let reader = Reader::from_bytes(before.clone()).unwrap();
        let old = before[usize::try_from(reader.manifest().offset()).unwrap()..].to_vec();
        let len = before.len() as u64;
        let old_end = move |_| Ok(old.clone().into());
        let out = Append::new(Some(watched.clone()), len, Durability::Synced, old_end);
        Writer::resume(out, len, reader.manifest(), WriteOptions::default()).unwrap()
    }

    #[test]
    fn old_or_new_after_every_step() {
        for added in [&[][..], &[100], &[5 << 20, 9 << 20, 100]] {
            let (before, watched) = (file(), Watched::new(&file(), usize::MAX));
            let mut writer = edit(&watched);
            writer.forget("b").unwrap();
            let mut new = vec!["a".to_owned()];
            for (index, &bytes) in added.iter().enumerate() {
                new.push(format!("n{index}"));
                writer.add(&new[index + 1], &tensor(bytes)).unwrap();
            }
            writer.finish().unwrap().commit().unwrap();
            let mut others = watched.steps.take();
            assert_eq!(others.pop().unwrap(), new);
            assert!(others.len() > added.len() && others.iter().all(|step| step == &["a", "b"]));
            let after = watched.bytes.take();
            assert!(after.starts_with(&before));
            assert!(Reader::from_bytes(after).unwrap().validate().is_valid());
        }
    }

    #[test]
    fn full_disks_leave_no_trace() {
        for room in [0, 1, 150, 4000, 5 << 20, 13 << 20] {
            let before = file();
            let watched = Watched::new(&before, before.len() + room);
            let mut writer = edit(&watched);
            let added =
                writer.add("c", &tensor(12 << 20)).and_then(|()| writer.add("d", &tensor(4 << 20)));
            let written = added.and_then(|()| {
                let out = writer.finish()?;
                out.commit().map_err(|source| Error::Write { offset: 0, source })
            });
            assert!(matches!(written, Err(Error::Write { .. })), "{room} bytes of room");
            assert!(watched.bytes.take() == before, "{room} bytes of room");
        }
    }

    #[test]
    fn recovered_after_every_byte() {
        let (before, watched) = (file(), Watched::new(&file(), usize::MAX));
        let mut writer = edit(&watched);
        writer.add("c", &tensor(100)).unwrap();
        writer.finish().unwrap().commit().unwrap();
        let after = watched.bytes.take();
        for len in before.len()..after.len() {
            let cut = after[..len].to_vec();
            let reader = Reader::options().profile(Profile::Lenient).from_bytes(cut).unwrap();
            assert_eq!(names(&reader), ["a", "b"], "{len} bytes");
            assert_eq!(reader.tensor("b").unwrap().bytes().unwrap().len(), 80);
        }
    }
}
