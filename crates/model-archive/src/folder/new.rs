//! Unpacking: a folder that appears whole or not at all.

use std::{
    fs::{self, File},
    io::{self, BufRead, Write},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tensor_core::{
    output::{Aside, Hidden, check_space},
    parallel,
};

use super::{check_content, tree::Tree};
use crate::{Archive, Entry, EntryReader, Error, Fault, FaultAt, Kind, Result};

/// How an archive is unpacked.
#[derive(Clone, Copy, Debug)]
pub struct UnpackOptions {
    threads: NonZeroUsize,
}

impl UnpackOptions {
    /// Sets how many threads decode and write files; by default as many as the system offers.
    #[must_use]
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }
}

impl Default for UnpackOptions {
    fn default() -> Self {
        Self { threads: parallel::available() }
    }
}

impl Archive {
    /// Unpacks all entries into a folder, which must not be there before, or be empty.
    ///
    /// The folder appears once everything is in it: until then a hidden folder beside it is written
    /// to, which a failure removes. Nothing is written elsewhere, and nothing through a symbolic
    /// link. Size and CRC-32 of all files are compared. Modes and times in the archive do not
    /// count: files have the mode 0644 and folders 0755, less what the umask takes away; an empty
    /// folder that was there keeps its own. Nothing is forced to the disk.
    ///
    /// # Errors
    ///
    /// [`Error::Unpack`] that names what could not be made: the folder, where something is in it, or
    /// an entry, such as one of two that are one file on this system; those of [`check_space`], of
    /// [`check_total`](Self::check_total), of reading entries and of
    /// [resolving](Entry::resolve) links; [`Error::File`] as for [`NewFolder::file`].
    pub fn unpack(&self, folder: impl AsRef<Path>, options: &UnpackOptions) -> Result<()> {
        self.check_total()?;
        let folder = NewFolder::create(folder)?;
        check_space(&folder.folder, self.total_size())?;
        self.unpack_into(&folder, options.threads)?;
        folder.commit()
    }

    fn unpack_into(&self, folder: &NewFolder, threads: NonZeroUsize) -> Result<()> {
        let (links, others): (Vec<_>, Vec<_>) =
            self.entries().partition(|entry| entry.info().kind == Kind::Symlink);
        let has_failed = AtomicBool::new(false);
        let results = parallel::map(&others, threads, |entry| {
            // What comes after a failure is thrown away.
            if has_failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let result = entry.unpack_into(folder);
            has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
            result
        });
        results.into_iter().collect::<Result<()>>()?;
        // Links come last, so that nothing can be written through one.
        links.iter().try_for_each(|entry| entry.unpack_into(folder))
    }
}

impl Entry<'_> {
    /// Makes one entry in a folder.
    fn unpack_into(self, folder: &NewFolder) -> Result<()> {
        let name = self.name();
        match self.info().kind {
            Kind::Folder => folder.folder(name.strip_suffix('/').unwrap_or(name)),
            Kind::File => {
                // The local header is looked at before a file is made.
                let content = self.reader()?;
                let mut file = folder.file(name)?;
                self.copy_to(content, &mut file, |source| folder.failed(name, source))
            }
            Kind::Symlink => {
                // No link that is made leads to a folder, so none leads out by way of another.
                self.resolve()?;
                folder.symlink(name, &self.target()?)
            }
        }
    }

    /// Copies the content, and no byte more than it is said to have.
    fn copy_to(
        self,
        mut content: EntryReader,
        file: &mut impl Write,
        failed: impl Fn(io::Error) -> Error,
    ) -> Result<()> {
        let expected = self.info().size;
        let mut found = 0_u64;
        loop {
            let ready = content.fill_buf().map_err(EntryReader::fault)?;
            if ready.is_empty() {
                return Ok(());
            }
            found = found.saturating_add(ready.len() as u64);
            if found > expected {
                let fault = Fault::Size { found, expected };
                return Err(FaultAt { entry: Some(self.name().into()), offset: None, fault }.into());
            }
            file.write_all(ready).map_err(&failed)?;
            let copied = ready.len();
            content.consume(copied);
        }
    }
}

/// A folder in the making: in a [hidden one](Hidden) beside its place, to which it is moved once it
/// is complete, and removed when it is dropped before.
///
/// It only takes new files. On Unix, nothing that is written can leave it: each folder on the way
/// to a file is opened from the one above it, and none through a symbolic link.
#[derive(Debug)]
pub struct NewFolder {
    folder: PathBuf,
    /// Where it is until then.
    new: PathBuf,
    /// What that is in.
    hidden: Arc<Hidden>,
    /// Gone where it was set aside.
    tree: Option<Tree>,
}

impl NewFolder {
    /// Starts a folder that will stand at `folder`, which must not be there before, or be empty;
    /// the owner, permissions and extended attributes of an empty one are kept on Unix.
    ///
    /// # Errors
    ///
    /// [`Error::Unpack`] where something is in it, or nothing can be made beside it.
    pub fn create(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        Self::start(folder).map_err(|source| Error::Unpack { path: folder.to_owned(), source })
    }

    /// Refuses a path that [`file`](Self::file) refuses for its name, whatever is there, for a dry run.
    ///
    /// # Errors
    ///
    /// [`Error::File`], as there.
    pub fn check(path: &str) -> Result<()> {
        check_content(path)
    }

    /// Makes a file; `path` has `/` between its components, and folders are made on the way.
    ///
    /// # Errors
    ///
    /// [`Error::Unpack`] where it is there already, also under another spelling that is one to the
    /// file system, or where its path leads elsewhere; [`Error::File`] where a component of it is a
    /// [hidden name](tensor_core::output::is_temporary), which is never content.
    pub fn file(&self, path: &str) -> Result<File> {
        check_content(path)?;
        self.tree().and_then(|tree| tree.add_file(path)).map_err(|source| self.failed(path, source))
    }

    /// Removes a file again, such as one that could not be written to its end.
    ///
    /// # Errors
    ///
    /// [`Error::Unpack`] where it is not there.
    pub fn remove(&self, path: &str) -> Result<()> {
        let removed = self.tree().and_then(|tree| tree.remove(path));
        removed.map_err(|source| self.failed(path, source))
    }

    /// Makes a folder in it.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file), but a folder that is there already is not an error.
    pub fn folder(&self, path: &str) -> Result<()> {
        check_content(path)?;
        self.tree()
            .and_then(|tree| tree.add_folder(path))
            .map_err(|source| self.failed(path, source))
    }

    /// Makes a symbolic link. What it leads to is the caller's to check.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file).
    pub fn symlink(&self, path: &str, target: &str) -> Result<()> {
        check_content(path)?;
        self.tree()
            .and_then(|tree| tree.add_symlink(path, target))
            .map_err(|source| self.failed(path, source))
    }

    /// Keeps the folder as it is, and nothing open, until it is [committed](Self::commit). One for
    /// another file system than that of `aside` stays where it is.
    pub fn set_aside(&mut self, aside: &Aside) {
        if let Ok(path) = aside.take(|path| fs::rename(&self.new, path)) {
            (self.new, self.tree) = (path, None);
            self.hidden = Arc::clone(aside.hidden());
        }
    }

    /// Returns where it is until then, to be read.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.new
    }

    /// Puts the folder in its place, where by now there may only be an empty one.
    ///
    /// # Errors
    ///
    /// [`Error::Unpack`] where something has come there since.
    pub fn commit(self) -> Result<()> {
        let failed = |source| Error::Unpack { path: self.folder.clone(), source };
        #[cfg(not(unix))]
        match fs::remove_dir(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let moved = self.hidden.uninterrupted(|_| fs::rename(&self.new, &self.folder));
        moved.map_err(failed)
    }

    /// Returns the error of a file that could not be written, which names its place.
    #[must_use]
    pub fn failed(&self, path: &str, source: io::Error) -> Error {
        Error::Unpack { path: self.folder.join(path), source }
    }

    fn start(folder: &Path) -> io::Result<Self> {
        let folder = match folder.canonicalize() {
            Ok(found) if fs::read_dir(&found)?.next().is_some() => {
                return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, "it is not empty"));
            }
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => folder.to_owned(),
            Err(error) => return Err(error),
        };
        if folder.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no name"));
        }
        let hidden = Hidden::folder(&folder)?;
        let new = hidden.path().join(NEW);
        let builder = &mut fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(builder, 0o755);
        builder.create(&new)?;
        // Before anything is in it, which then gets what the folder passes on.
        #[cfg(unix)]
        if folder.is_dir() {
            tensor_core::output::keep_metadata(&folder, &File::open(&new)?)?;
        }
        let tree = Some(Tree::open(&new)?);
        Ok(Self { folder, new, hidden: Arc::new(hidden), tree })
    }

    fn tree(&self) -> io::Result<&Tree> {
        self.tree.as_ref().ok_or_else(|| io::Error::other("the folder is complete already"))
    }
}

/// What it is called until then.
const NEW: &str = "new";
