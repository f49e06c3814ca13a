//! Changing model files: a new file takes the place of the old one.

mod change;
mod mend;

use std::path::{Path, PathBuf};

use tensor_core::{
    Source,
    output::{Edited, Existing, LockedFile},
};

use crate::{Error, Reader, Result, WriteFault, WriteOptions, model::Model};

pub use mend::Mended;

/// A model file that is being changed, locked against other editors.
///
/// Nothing changes for a reader before [`commit`](Self::commit), which puts a new file in the place
/// of the old one; dropped before, the file is as it was. Bytes of buffers are copied, not looked
/// at.
///
/// # Examples
///
/// ```no_run
/// use circle_format::Editor;
///
/// let mut editor = Editor::open("model.circle")?;
/// editor.model_mut().set_metadata("license", "MIT");
/// editor.model_mut().rename_tensors([("serving_default_x:0", "x")]);
/// editor.commit()?;
/// # Ok::<(), circle_format::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "an edit takes effect when it is committed"]
pub struct Editor {
    path: PathBuf,
    /// None in a dry run.
    file: Option<LockedFile>,
    reader: Reader,
    model: Model,
    options: WriteOptions,
}

impl Editor {
    /// Locks and opens a file, to be written with the default options.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::Locked`]; as for [`Reader::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, WriteOptions::default())
    }

    /// Like [`open`](Self::open), with options. That there is a file already does not count.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        let file = LockedFile::open_within(&path, options.output.wait)?;
        let reader = Reader::from_source(file.source()?)?;
        Ok(Self::start(path.as_ref(), Some(file), reader, options))
    }

    /// Opens a file for an edit that changes nothing: [`commit`](Self::commit) says what it would
    /// have done, and nothing is written. The file does not stay locked.
    ///
    /// # Errors
    ///
    /// As for [`open_with`](Self::open_with).
    pub fn dry_run(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        let reader = Reader::from_source(options.output.check(&path)?)?;
        Ok(Self::start(path.as_ref(), None, reader, options))
    }

    fn start(path: &Path, file: Option<LockedFile>, reader: Reader, options: WriteOptions) -> Self {
        let (path, model) = (path.to_owned(), reader.model().clone());
        Self { path, file, reader, model, options: options.existing(Existing::Replace) }
    }

    /// Returns the file as it was when it was opened.
    #[must_use]
    pub const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the model as it is to be.
    #[must_use]
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the model to be changed.
    pub const fn model_mut(&mut self) -> &mut Model {
        &mut self.model
    }

    /// Puts the changed model in the place of the file, unless nothing has changed.
    ///
    /// # Errors
    ///
    /// As for [`Writer::finish`](crate::Writer::finish); [`WriteFault::Invalid`] where
    /// [`Reader::lint`] would find an error that the file has not, unless that is
    /// [unchecked](WriteOptions::unchecked); [`tensor_core::Error::Replaced`] where another file has
    /// taken the place of this one. The file is as it was.
    pub fn commit(self) -> Result<Edited> {
        let is_same = self.model == *self.reader.model();
        if is_same && !self.options.moves_buffers() {
            return Ok(Edited::Unchanged);
        }
        let output = self.options.output;
        let sink = match self.file {
            Some(_) => output.create(&self.path)?,
            None => output.dry_run(&self.path)?,
        };
        let mut new = self.options.write_to(sink, &self.model).origin(&self.reader).finish()?;
        if !self.options.is_unchecked {
            self.check(new.source()?)?;
        }
        let (before, after) = (self.reader.source().len(), new.written());
        if let Some(file) = &self.file {
            file.check_in_place()?;
            new.commit(output.existing)?;
        }
        Ok(Edited::Replaced { before, after })
    }

    /// Refuses a model with an error that the old one does not have.
    fn check(&self, new: Source) -> Result<()> {
        let new = Reader::options().limits(*self.reader.limits()).from_source(new)?;
        let Some(error) = new.lint().new_error_since(&self.reader.lint()) else { return Ok(()) };
        let path = error.at.path.unwrap_or_else(|| "model".to_owned());
        Err(Error::Unwritable { path, fault: WriteFault::Invalid(error.message) })
    }
}
