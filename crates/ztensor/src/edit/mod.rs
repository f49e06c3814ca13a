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

mod compact;
mod tail;

pub use compact::{compact, recover};

use std::{io::Write, path::Path};

use tensor_core::{
    Extent, TensorBuf,
    output::{Edited, LockedFile},
};

use self::tail::Tail;
use crate::{
    Attributes, Generation, Reader, Value, Version, WriteOptions, Writer,
    error::{Error, Result},
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
pub struct Editor {
    writer: Option<Writer<Tail<Option<LockedFile>>>>,
    /// None in a dry run.
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

    /// Like [`open`](Self::open), with options; the version stays that of the file.
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

    /// Opens a file for an edit that changes nothing: everything is checked as in any edit,
    /// [`commit`](Self::commit) says what that would have done, and nothing is written.
    ///
    /// The file is opened for reading only and is not locked.
    ///
    /// # Errors
    ///
    /// [`Error::NotEditable`] for an older generation; as for [`Reader::open`].
    pub fn dry_run(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        options.check()?;
        Self::start(Reader::open(path)?, options, None)
    }

    fn start(reader: Reader, options: WriteOptions, file: Option<LockedFile>) -> Result<Self> {
        let options = match reader.generation() {
            Generation::V1_1 => options.version(Version::V1_1),
            Generation::V1_2 => options.version(Version::V1_2),
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
    pub fn replace(&mut self, name: &str, tensor: &TensorBuf) -> Result<()> {
        self.remove(name)?;
        self.writer().add(name, tensor)
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
        self.writer.as_mut().map_or(Ok(()), |writer| writer.change_attributes(change))
    }

    fn change_attributes_of(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Attributes),
    ) -> Result<()> {
        if let Some(tensor) = self.reader.tensor(name) {
            tensor.attributes()?;
        }
        self.writer.as_mut().map_or(Ok(()), |writer| writer.change_attributes_of(name, change))
    }

    /// Makes the edit take effect: writes the new manifest behind everything else. Where nothing
    /// changed, nothing is written. In a dry run it says what would have been done.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] and [`Error::Unfinished`]; the file is as it was.
    pub fn commit(mut self) -> Result<Edited> {
        let Some(writer) = self.writer.take() else { return Ok(Edited::Unchanged) };
        let tail = writer.finish()?;
        if !tail.has_written() && tail.buffer == self.unchanged()? {
            return Ok(Edited::Unchanged);
        }
        let before = self.reader.source().len();
        let committed = tail.commit(self.options.is_durable());
        let after = committed.map_err(|source| Error::Write { offset: before, source })?;
        Ok(Edited::Appended { before, after })
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
