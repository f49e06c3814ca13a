//! Changes of cartons that are there already.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use tensor_core::output::{Edited, Existing, LockedFile};

#[cfg(feature = "edit")]
use crate::Change;
use crate::{
    Description, Error, File, Finished, Place, Reader, Result, Sha256, WriteFault, WriteOptions,
    Writer, manifest::check_path, paths::CARTON_TOML, write::rewrite::replace_files,
};

#[cfg(feature = "edit")]
pub(crate) mod change;

/// Changes the files of a carton: `carton.toml`, or any other.
///
/// The carton is locked until the editor is gone, so that of two editors one is told that there is
/// another. [`commit`](Self::commit) writes a new file, which takes the place of the old one whole
/// or not at all; what stays the same is copied as it is stored. Links and symbolic links stay;
/// [what is not listed](Reader::unlisted) does not. The model hash changes with what is changed.
///
/// # Examples
///
/// ```
/// use carton_format::{
///     Description, Editor, Reader, Runner, Writer,
///     tensor_core::output::Edited,
/// };
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.carton");
/// let mut writer = Writer::create(&path)?;
/// writer.description(&Description::new(Runner::new("noop", "=1".parse()?)))?;
/// writer.file("model/weights.bin", b"1234")?;
/// writer.finish()?;
///
/// let mut editor = Editor::open(&path)?;
/// let mut description = editor.reader().description()?.clone();
/// description.license = Some("MIT".to_owned());
/// editor.description(&description)?.put("misc/notes.txt", "tuned")?;
/// assert!(matches!(editor.commit()?, Edited::Replaced { .. }));
///
/// let reader = Reader::open(&path)?;
/// assert_eq!(reader.description()?.license.as_deref(), Some("MIT"));
/// assert_eq!(reader.file("misc/notes.txt").unwrap().bytes()?, "tuned");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is changed before `commit`"]
pub struct Editor {
    path: PathBuf,
    /// None of a dry run.
    lock: Option<LockedFile>,
    reader: Reader,
    options: WriteOptions,
    /// The new content of files; `None` of those that are removed.
    changes: BTreeMap<String, Option<Bytes>>,
}

impl Editor {
    /// Opens and locks a carton.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::Locked`] where another editor has it for longer than
    /// [`Output::wait`](tensor_core::output::Output::wait) says;
    /// [`tensor_core::Error::NotAFile`] for a folder; as for [`Reader::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, WriteOptions::default())
    }

    /// Like [`open`](Self::open), but says how new files are compressed and how the carton is
    /// written. What happens to a file that is there already has no meaning here.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        let lock = LockedFile::open_within(&path, options.output.wait)?;
        let reader = Reader::from_source(lock.source()?)?;
        Ok(Self::start(path.as_ref(), Some(lock), reader, options))
    }

    /// Like [`open_with`](Self::open_with), but [`commit`](Self::commit) only says what it would
    /// do: nothing is written, and no editor is kept out.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn dry_run(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        let reader = Reader::from_source(options.output.check(&path)?)?;
        Ok(Self::start(path.as_ref(), None, reader, options))
    }

    /// Edits a carton, or a folder with the files of one, that is [written](Self::write) elsewhere;
    /// [`commit`](Self::commit) only says what it would do.
    pub fn from_reader(reader: Reader, options: WriteOptions) -> Self {
        Self::start(Path::new(""), None, reader, options)
    }

    /// Tells whether the carton would stay as it is.
    #[must_use]
    pub fn changes_nothing(&self) -> bool {
        self.changes.iter().all(|(path, change)| self.is_same(path, change.as_ref()))
    }

    fn start(path: &Path, lock: Option<LockedFile>, reader: Reader, options: WriteOptions) -> Self {
        Self { path: path.to_owned(), lock, reader, options, changes: BTreeMap::new() }
    }

    /// Puts another description in the place of the one that is there, without its comments.
    ///
    /// # Errors
    ///
    /// [`Error::Document`] where it cannot be written.
    pub fn description(&mut self, description: &Description) -> Result<&mut Self> {
        self.put(CARTON_TOML, description.to_bytes()?)
    }

    /// Makes changes of `carton.toml`, whose comments, order and unknown keys stay.
    ///
    /// # Errors
    ///
    /// As for [`Description::edit`].
    #[cfg(feature = "edit")]
    pub fn change(&mut self, changes: &[Change]) -> Result<&mut Self> {
        let text = Description::edit(&self.carton_toml()?, changes, self.reader.limits())?;
        self.put(CARTON_TOML, text)
    }

    /// Puts a file into the carton, in the place of one that is there or linked under its path.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] where the path is unsafe or reserved; [`Error::Document`] where it is that of
    /// `carton.toml` and the content is not a description.
    pub fn put(&mut self, path: &str, content: impl Into<Bytes>) -> Result<&mut Self> {
        let content = content.into();
        check_path(path, self.reader.limits())
            .map_err(|fault| refused(path, WriteFault::Path(fault)))?;
        if path == CARTON_TOML {
            Description::parse(&content, self.reader.limits())?;
        }
        self.changes.insert(path.to_owned(), Some(content));
        Ok(self)
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] where there is none of the path.
    pub fn remove(&mut self, path: &str) -> Result<&mut Self> {
        let is_there = match self.changes.get(path) {
            Some(change) => change.is_some(),
            None => self.reader.file(path).is_some(),
        };
        if !is_there {
            return Err(refused(path, WriteFault::Absent));
        }
        self.changes.insert(path.to_owned(), None);
        Ok(self)
    }

    /// Returns the carton as it is.
    #[must_use]
    pub const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns `carton.toml` with the changes made so far; it need not be a description.
    ///
    /// # Errors
    ///
    /// [`Error::MissingDocument`]; as for [`File::bytes`].
    pub fn carton_toml(&self) -> Result<Bytes> {
        match self.changes.get(CARTON_TOML) {
            Some(changed) => changed.clone(),
            None => self.reader.file(CARTON_TOML).map(File::bytes).transpose()?,
        }
        .ok_or(Error::MissingDocument { path: CARTON_TOML })
    }

    /// Writes the carton with the changes made so far to somewhere else.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit).
    pub fn write<W: Write>(&self, writer: Writer<W>) -> Result<Finished<W>> {
        replace_files(&self.reader, &self.changes, writer)
    }

    /// Makes the changes. Where there are none, nothing is written.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] where a symbolic link would lead to nothing, or [`Reader::lint`] would call
    /// something an error that it does not find in the carton as it is, unless that is
    /// [unchecked](WriteOptions::unchecked); [`Error::MissingDocument`] where `carton.toml` was removed;
    /// [`tensor_core::Error::Replaced`] where another file has taken the place of the carton; as
    /// for [`Writer::copy`]. The carton is as it was before.
    pub fn commit(self) -> Result<Edited> {
        if self.changes_nothing() {
            return Ok(Edited::Unchanged);
        }
        let before = self.reader.source().map_or(0, tensor_core::Source::len);
        let after = match &self.lock {
            None => {
                self.options.output.check_create(&self.path)?;
                self.write(self.options.write_to(Count(0)))?.sink.0
            }
            Some(lock) => {
                let file = self.options.output.create(&self.path)?;
                let mut file = self.write(self.options.write_to(file))?.sink;
                lock.check_in_place()?;
                file.commit(Existing::Replace)?;
                file.written()
            }
        };
        Ok(Edited::Replaced { before, after })
    }

    /// Tells whether a file is as a change wants it: what is only linked, lost or damaged is not,
    /// though `MANIFEST` has its digest.
    fn is_same(&self, path: &str, change: Option<&Bytes>) -> bool {
        match (self.reader.file(path), change) {
            (Some(file), Some(content)) => {
                let is_listed = file.sha256() == Sha256::digest(content);
                is_listed && file.place() == Place::Here && file.verify().is_ok()
            }
            (file, change) => file.is_none() && change.is_none(),
        }
    }
}

/// Clones of the reader may hold the file open, and the lock with it.
impl Drop for Editor {
    fn drop(&mut self) {
        if let Some(lock) = &self.lock {
            lock.unlock();
        }
    }
}

fn refused(path: &str, fault: WriteFault) -> Error {
    Error::Write { path: path.to_owned(), fault }
}

/// Counts bytes and keeps none.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
