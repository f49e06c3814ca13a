//! Changing model files: a new file takes the place of the old one.

mod change;

use std::path::{Path, PathBuf};

use tensor_core::{
    LockedFile,
    output::{Existing, NewFile},
};

use crate::{Reader, Result, WriteOptions, Writer, model::Model};

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
    file: LockedFile,
    reader: Reader,
    model: Model,
    options: WriteOptions,
}

impl Editor {
    /// Locks and opens a file.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::Locked`]; as for [`Reader::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = LockedFile::open(&path)?;
        let reader = Reader::from_source(file.source()?)?;
        let (path, model) = (path.as_ref().to_owned(), reader.model().clone());
        Ok(Self { path, file, reader, model, options: WriteOptions::default() })
    }

    /// Sets how the new file is written. That there is a file already does not count.
    pub fn options(mut self, options: WriteOptions) -> Self {
        self.options = options.existing(Existing::Replace);
        self
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

    /// Puts the changed model in the place of the file, unless nothing has changed; returns whether
    /// it has.
    ///
    /// # Errors
    ///
    /// As for [`Writer::write`]; [`tensor_core::Error::Replaced`] where another file has taken
    /// the place of this one. The file is as it was.
    pub fn commit(self) -> Result<bool> {
        let is_same = self.model == *self.reader.model();
        if is_same && !self.options.moves_buffers() {
            return Ok(false);
        }
        let writer = Writer::of(&self.reader).model(&self.model).options(self.options);
        let new = NewFile::create(&self.path, self.options.durability_of())?;
        let mut new = writer.write(new)?;
        self.file.check_in_place()?;
        new.commit(Existing::Replace)?;
        Ok(true)
    }
}
