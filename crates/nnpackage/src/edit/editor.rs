//! Changing packages in place: a new archive, or a new folder, takes the place of the old one at
//! once.

use std::{
    io::{self, Write},
    mem,
    path::{Path, PathBuf},
};

use model_archive::{Folder, FolderEdit};
use tensor_core::{
    Source,
    output::{Edited, Existing, LockedFile},
};

use crate::{
    BuildFault, Edit, Error, Reader, Result, Sums, WriteOptions,
    edit::Planned,
    layout::MANIFEST,
    read::is_not_a_folder,
    write::{copy, document},
};

/// A package that is being changed in place, locked against other editors.
///
/// Nothing changes before [`commit`](Self::commit); dropped before, the package is as it was.
///
/// # Examples
///
/// ```no_run
/// use nnpackage::{ConfigChange, Editor};
///
/// let mut editor = Editor::open("package.zip")?;
/// editor.edit_mut().change_config(&[ConfigChange::set("NUM_THREADS", "4")])?;
/// editor.commit()?;
/// # Ok::<(), nnpackage::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "an edit takes effect when it is committed"]
pub struct Editor {
    path: PathBuf,
    held: Held,
    edit: Edit,
    options: WriteOptions,
}

/// What is locked; nothing in a dry run.
#[derive(Debug)]
enum Held {
    Archive(Option<LockedFile>),
    Folder(Box<FolderEdit>),
    DryFolder(Folder),
}

impl Editor {
    /// Locks and opens a package: an archive or a folder.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::Locked`]; as for [`Reader::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, WriteOptions::default())
    }

    /// Like [`open`](Self::open), but with options; those of entries are for what is new.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        let (path, output) = (path.as_ref(), options.output);
        let (held, reader) = match FolderEdit::open(path, output) {
            Ok(folder) => {
                let reader = Reader::options().read_folder(folder.folder().clone())?;
                (Held::Folder(Box::new(folder)), reader)
            }
            Err(error) if is_not_a_folder(&error) => {
                let lock = LockedFile::open_within(path, output.wait)?;
                let reader = Reader::from_source(lock.source()?)?;
                (Held::Archive(Some(lock)), reader)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { path: path.to_owned(), held, edit: Edit::new(&reader), options })
    }

    /// Opens a package for a dry run: everything is checked as in any edit, and what would be written
    /// is thrown away. The package does not stay locked.
    ///
    /// # Errors
    ///
    /// As for [`open_with`](Self::open_with).
    pub fn dry_run(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        let (path, output) = (path.as_ref(), options.output);
        let (held, reader) = match Folder::open(path) {
            Ok(folder) => {
                FolderEdit::check(folder.path(), output)?;
                let reader = Reader::options().read_folder(folder.clone())?;
                (Held::DryFolder(folder), reader)
            }
            Err(error) if is_not_a_folder(&error) => {
                (Held::Archive(None), Reader::from_source(output.check(path)?)?)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { path: path.to_owned(), held, edit: Edit::new(&reader), options })
    }

    /// Returns the package as it was.
    #[must_use]
    pub const fn reader(&self) -> &Reader {
        self.edit.reader()
    }

    /// Returns the changes so far.
    pub const fn edit(&self) -> &Edit {
        &self.edit
    }

    /// Returns the changes, to be added to.
    pub const fn edit_mut(&mut self) -> &mut Edit {
        &mut self.edit
    }

    /// Makes the edit take effect. Where nothing changes, nothing is written.
    ///
    /// # Errors
    ///
    /// As for [`Writer::finish`](crate::Writer::finish); [`BuildFault::Invalid`] where
    /// [`Reader::lint`] would find an error that the package has not, unless that is
    /// [unchecked](WriteOptions::unchecked); [`tensor_core::Error::Replaced`] where somebody else has
    /// changed the package; [`Error::Write`] and [`Error::Core`] where it cannot be
    /// written. The package is as it was.
    pub fn commit(mut self) -> Result<Edited> {
        let planned = self.edit.planned()?;
        if planned.is_nothing() {
            return Ok(Edited::Unchanged);
        }
        self.check()?;
        let before = self.edit.reader().source().map_or(0, Source::len);
        match mem::replace(&mut self.held, Held::Archive(None)) {
            Held::Folder(mut folder) => {
                for path in &planned.removed {
                    folder.remove(path)?;
                }
                update(&planned, |path| folder.file(path))?;
                Ok(folder.commit()?)
            }
            Held::DryFolder(folder) => {
                let written = update(&planned, |path| folder.check_file(path).map(|_| io::sink()))?;
                Ok(Edited::Updated { written, removed: planned.removed.len() })
            }
            Held::Archive(Some(lock)) => {
                let replaced = self.replace(&planned, &lock, before);
                lock.unlock();
                replaced
            }
            Held::Archive(None) => {
                self.options.output.check_create(&self.path)?;
                let after = planned.whole.write_to(Counter(0), &self.options)?.0;
                Ok(Edited::Replaced { before, after })
            }
        }
    }

    /// Refuses a package with an error that the old one does not have.
    fn check(&self) -> Result<()> {
        if self.options.is_unchecked {
            return Ok(());
        }
        let new = self.edit.preview()?.lint().new_error_since(&self.reader().lint());
        new.map_or(Ok(()), |error| {
            let path = error.at.entry.unwrap_or_else(|| MANIFEST.to_owned());
            Err(Error::Build { path, fault: BuildFault::Invalid(error.message) })
        })
    }

    fn replace(&self, planned: &Planned, lock: &LockedFile, before: u64) -> Result<Edited> {
        let new = self.options.output.create(&self.path)?;
        let mut new = planned.whole.write_to(new, &self.options)?;
        let after = new.written();
        // Nobody else may have changed it: the lock only keeps out those who ask for it.
        lock.check_in_place()?;
        if !lock.byte_len().is_ok_and(|len| len == before) {
            return Err(tensor_core::Error::Replaced { path: self.path.clone() }.into());
        }
        new.commit(Existing::Replace)?;
        Ok(Edited::Replaced { before, after })
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // Readers may still have the file open.
        if let Held::Archive(Some(lock)) = &self.held {
            lock.unlock();
        }
    }
}

/// Writes what changes into the files of a folder; returns how many there are.
fn update<W: Write + 'static>(
    planned: &Planned,
    mut file: impl FnMut(&str) -> model_archive::Result<W>,
) -> Result<usize> {
    let whole = &planned.whole;
    let (mut sums, mut written) = (whole.sums.clone(), 0_usize);
    let mut create = |path: &str| -> Result<Box<dyn Write>> {
        written = written.saturating_add(1);
        Ok(Box::new(file(path)?))
    };
    for file in &whole.files {
        let is_changed = planned.is_changed(&file.path);
        let wants_digest = whole.wants_digest(&file.path);
        if !is_changed && !wants_digest {
            continue;
        }
        let mut out = if is_changed { create(&file.path)? } else { Box::new(io::sink()) };
        let digest = copy(file, &mut out, wants_digest)?;
        if let Some((sums, digest)) = sums.as_mut().zip(digest) {
            sums.insert(&file.path, digest);
        }
    }
    if let Some(sums) = &sums {
        let list = create(Sums::PATH)?.write_all(&document(sums)?);
        list.map_err(|source| Error::Write { path: Sums::PATH.to_owned(), source })?;
    }
    Ok(written)
}

/// Counts what is written.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
