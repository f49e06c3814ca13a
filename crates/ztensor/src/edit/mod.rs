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

pub use compact::{Compacted, compact, recover};

use std::{io::Write, path::Path};

use tensor_core::{Extent, LockedFile, Tensor as Elements};

use self::tail::Tail;
use crate::{
    Generation, Reader, Version, WriteOptions, Writer,
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
