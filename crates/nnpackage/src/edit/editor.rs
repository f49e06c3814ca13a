//! Changing packages in place.
//!
//! A new archive is written beside the old one and takes its place at once. In a folder every file
//! that changes is written beside its place first; then they take their places one after another,
//! the list of digests and the manifest last, and only then do files go away that nothing names any
//! more. Until the manifest is there the folder is the package that it was, with files that it does
//! not name; only a file that keeps its name may be the new one already. What was there is kept
//! until everything is done, and put back where something fails.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use model_archive::Archive;
use tensor_core::output::{Durability, Edited, Existing, LockedFile, NewFile};

use crate::{
    Edit, Error, FileFault, Reader, Result, Sums, WriteOptions,
    edit::Planned,
    layout::MANIFEST,
    write::{Body, NewEntry, Use, copy, document},
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
    /// None in a dry run.
    lock: Option<LockedFile>,
    edit: Edit,
    options: WriteOptions,
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
        let path = path.as_ref();
        let (lock, reader) = if path.is_dir() {
            // What is not a package is told first.
            drop(Reader::open(path)?);
            let lock = LockedFile::open(path.join(MANIFEST))?;
            (lock, Reader::open(path)?)
        } else {
            let lock = LockedFile::open(path)?;
            let reader = Reader::from_source(lock.source()?)?;
            (lock, reader)
        };
        Ok(Self { path: path.to_owned(), lock: Some(lock), edit: Edit::new(&reader), options })
    }

    /// Opens a package for a dry run: everything is checked as in any edit, and what would be written
    /// is thrown away. The package is not locked.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn dry_run(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let edit = Edit::new(&Reader::open(&path)?);
        Ok(Self { path, lock: None, edit, options })
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
    /// As for [`WriteOptions::write_to`]; [`tensor_core::Error::Replaced`] where somebody else has changed
    /// the package; [`Error::Write`] and [`Error::Core`] where it cannot be written. The package is
    /// as it was.
    pub fn commit(self) -> Result<Edited> {
        let planned = self.edit.planned()?;
        if planned.is_nothing() {
            return Ok(Edited::Unchanged);
        }
        match (self.edit.reader().archive(), &self.lock) {
            (Some(archive), Some(lock)) => self.replace(&planned, archive, lock),
            (Some(archive), None) => {
                let after = planned.whole.write_to(Counter(0), &self.options)?.0;
                Ok(Edited::Replaced { before: archive.source().len(), after })
            }
            (None, lock) => {
                let update = Update::of(&self.path, &planned)?;
                let Some(lock) = lock else { return update.dry_run() };
                update.commit(lock, self.options.durability_of())
            }
        }
    }

    fn replace(&self, planned: &Planned, old: &Archive, lock: &LockedFile) -> Result<Edited> {
        let new = NewFile::create(&self.path, self.options.durability_of())?;
        let mut new = planned.whole.write_to(new, &self.options)?;
        let (before, after) = (old.source().len(), new.written());
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
        if let Some(lock) = &self.lock {
            lock.unlock();
        }
    }
}

/// Counts what is written.
struct Counter(u64);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What changes in a folder.
struct Update<'p> {
    root: PathBuf,
    /// In the order in which they take their places, without list and manifest.
    files: Vec<&'p NewEntry>,
    manifest: Option<&'p NewEntry>,
    planned: &'p Planned,
}

impl<'p> Update<'p> {
    fn of(root: &Path, planned: &'p Planned) -> Result<Self> {
        let failed = |source| {
            let (path, what) = (root.to_owned(), "opening");
            tensor_core::Error::File { path, what, source }
        };
        let root = root.canonicalize().map_err(failed)?;
        let files = planned.whole.files.iter();
        let changed = files.clone().filter(|file| planned.changed.contains(&file.path));
        let manifest = files.clone().find(|file| planned.has_manifest && file.path == MANIFEST);
        Ok(Self { root, files: changed.collect(), manifest, planned })
    }

    /// Does everything but to write.
    fn dry_run(&self) -> Result<Edited> {
        for file in self.files.iter().copied().chain(self.manifest) {
            copy(file, &mut io::sink())?;
        }
        let removed = self.planned.removed.len();
        let lists = usize::from(self.planned.whole.sums.is_some());
        let written = self.files.len().saturating_add(usize::from(self.manifest.is_some()));
        Ok(Edited::Updated { written: written.saturating_add(lists), removed })
    }

    fn commit(&self, lock: &LockedFile, durability: Durability) -> Result<Edited> {
        let mut done = Done { root: self.root.clone(), folders: Vec::new(), replaced: Vec::new() };
        match self.place(&mut done, lock, durability) {
            Ok(edited) => {
                done.forget();
                Ok(edited)
            }
            Err(error) => {
                done.undo();
                Err(error)
            }
        }
    }

    fn place(&self, done: &mut Done, lock: &LockedFile, durability: Durability) -> Result<Edited> {
        let mut sums = self.planned.whole.sums.clone();
        let mut new = Vec::new();
        for file in &self.files {
            let (target, mut out) = done.start(&file.path, durability)?;
            let digest = copy(file, &mut out)?;
            if let Some(sums) = &mut sums {
                sums.insert(&file.path, digest);
            }
            new.push((file.path.clone(), target, out));
        }
        if let Some(mut sums) = sums {
            for file in &self.planned.whole.files {
                if self.planned.whole.wants_digest(&file.path) && sums.get(&file.path).is_none() {
                    sums.insert(&file.path, copy(file, &mut io::sink())?);
                }
            }
            let body = Body::from_bytes(document(&sums)?);
            let file = NewEntry { path: Sums::PATH.to_owned(), body, used: Use::Whole };
            let (target, mut out) = done.start(&file.path, durability)?;
            copy(&file, &mut out)?;
            new.push((file.path.clone(), target, out));
        }
        if let Some(file) = self.manifest {
            let (target, mut out) = done.start(&file.path, durability)?;
            copy(file, &mut out)?;
            new.push((file.path.clone(), target, out));
        }
        let written = new.len();
        lock.check_in_place()?;
        for (path, target, mut out) in new {
            done.keep(&path, &target)?;
            out.commit(Existing::Replace)?;
        }
        for path in &self.planned.removed {
            done.set_aside(path)?;
        }
        Ok(Edited::Updated { written, removed: self.planned.removed.len() })
    }
}

/// What was done to a folder so far, to be undone where something fails.
struct Done {
    root: PathBuf,
    /// Folders that were made, outer ones first.
    folders: Vec<PathBuf>,
    /// Files that took a place or went away, with where the old ones are.
    replaced: Vec<(PathBuf, Option<PathBuf>)>,
}

impl Done {
    /// Starts a file beside its place, and makes the folders that it lies in.
    fn start(&mut self, path: &str, durability: Durability) -> Result<(PathBuf, NewFile)> {
        let target = self.root.join(path);
        let outside = || Error::File { path: path.to_owned(), fault: FileFault::Outside };
        let mut folder = self.root.clone();
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        for part in parent.split('/').filter(|part| !part.is_empty()) {
            folder.push(part);
            match fs::create_dir(&folder) {
                Ok(()) => self.folders.push(folder.clone()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(failed(path, source)),
            }
            // A link may lead elsewhere in the folder, but not out of it.
            let found = folder.canonicalize().map_err(|source| failed(path, source))?;
            if !found.starts_with(&self.root) {
                return Err(outside());
            }
        }
        if target.canonicalize().is_ok_and(|found| !found.starts_with(&self.root)) {
            return Err(outside());
        }
        let file = NewFile::create(&target, durability)?;
        Ok((target, file))
    }

    /// Keeps the file that is at a place, under a hidden name beside it.
    fn keep(&mut self, path: &str, target: &Path) -> Result<()> {
        let Ok(found) = target.canonicalize() else {
            self.replaced.push((target.to_owned(), None));
            return Ok(());
        };
        let old = hidden(&found);
        let kept = fs::hard_link(&found, &old).or_else(|_| {
            // Not every file system has links.
            io::copy(&mut fs::File::open(&found)?, &mut fs::File::create_new(&old)?).map(drop)
        });
        if let Err(source) = kept {
            // Half of a copy.
            let _ = fs::remove_file(&old);
            return Err(failed(path, source));
        }
        self.replaced.push((found, Some(old)));
        Ok(())
    }

    /// Moves the file that is at a place to a hidden name beside it.
    fn set_aside(&mut self, path: &str) -> Result<()> {
        let target = self.root.join(path);
        let old = hidden(&target);
        fs::rename(&target, &old).map_err(|source| failed(path, source))?;
        self.replaced.push((target, Some(old)));
        Ok(())
    }

    /// Removes what was kept.
    fn forget(self) {
        for (_, old) in self.replaced {
            // It does no harm but to take room.
            let _ = old.map(fs::remove_file);
        }
    }

    /// Puts back what was there; the last comes first.
    fn undo(self) {
        for (target, old) in self.replaced.into_iter().rev() {
            // Nothing is left to be done where this fails too: what was kept stays.
            let _ = match old {
                Some(old) => fs::rename(old, target),
                None => fs::remove_file(target),
            };
        }
        for folder in self.folders.into_iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Returns a name for an old file beside it that nothing has.
fn hidden(path: &Path) -> PathBuf {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    let mut number = 0_u32;
    loop {
        let mut name = prefix.clone();
        name.push(format!(".{}.{number}.old", std::process::id()));
        let hidden = path.with_file_name(name);
        if hidden.symlink_metadata().is_err() {
            return hidden;
        }
        number = number.wrapping_add(1);
    }
}

fn failed(path: &str, source: io::Error) -> Error {
    Error::Write { path: path.to_owned(), source }
}
