//! Unpacking: a folder that appears whole or not at all.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufRead, Write},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use tempfile::TempDir;
use tensor_core::parallel;

use crate::{Archive, Entry, EntryReader, Error, Fault, Flaw, Kind, Result, folder::tree::Tree};

/// How an archive is unpacked.
#[derive(Clone, Copy, Debug)]
pub struct UnpackOptions {
    threads: NonZeroUsize,
    spare: u64,
}

impl UnpackOptions {
    /// Sets how many threads decode and write files; by default as many as the system offers.
    #[must_use]
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets how many bytes must stay free on the disk, where the system says how many there are;
    /// 1 GiB by default.
    #[must_use]
    pub const fn spare(mut self, bytes: u64) -> Self {
        self.spare = bytes;
        self
    }
}

impl Default for UnpackOptions {
    fn default() -> Self {
        Self { threads: parallel::available(), spare: SPARE }
    }
}

impl Archive {
    /// Unpacks all entries into a folder, which must not be there before, or be empty.
    ///
    /// The folder appears once everything is in it: until then a hidden folder beside it is written
    /// to, which a failure removes. Nothing is written elsewhere, and nothing through a symbolic
    /// link. Size and CRC-32 of all files are compared. Modes and times in the archive do not
    /// count: files have the mode 0644 and folders 0755, less what the umask takes away. Nothing is
    /// forced to the disk.
    ///
    /// # Errors
    ///
    /// [`Error::Unpack`] that names what could not be made: the folder, where something is in it
    /// or the disk is too full, or an entry, such as one of two that are one file on this system;
    /// those of [`check_total`](Self::check_total), of reading entries and of
    /// [resolving](Entry::resolve) links.
    pub fn unpack(&self, folder: impl AsRef<Path>, options: &UnpackOptions) -> Result<()> {
        self.check_total()?;
        let folder = NewFolder::create(folder)?;
        folder.check_space(self.total_size(), options.spare)?;
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
                return Err(Flaw { entry: Some(self.name().into()), offset: None, fault }.into());
            }
            file.write_all(ready).map_err(&failed)?;
            let copied = ready.len();
            content.consume(copied);
        }
    }
}

/// A folder in the making: a hidden one beside its place, which is renamed once it is complete and
/// removed when it is dropped before.
///
/// It only takes new files. On Unix, nothing that is written can leave it: each folder on the way
/// to a file is opened from the one above it, and none through a symbolic link.
#[derive(Debug)]
pub struct NewFolder {
    folder: PathBuf,
    hidden: TempDir,
    tree: Tree,
}

impl NewFolder {
    /// Starts a folder that will stand at `folder`, which must not be there before, or be empty.
    ///
    /// # Errors
    ///
    /// [`Error::Unpack`] where something is in it, or nothing can be made beside it.
    pub fn create(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        Self::start(folder).map_err(|source| Error::Unpack { path: folder.to_owned(), source })
    }

    /// Makes a file; `path` has `/` between its components, and folders are made on the way.
    ///
    /// # Errors
    ///
    /// [`Error::Unpack`] where it is there already, also under another spelling that is one to the
    /// file system, or where its path leads elsewhere.
    pub fn file(&self, path: &str) -> Result<File> {
        self.tree.add_file(path).map_err(|source| self.failed(path, source))
    }

    /// Makes a folder in it.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file), but a folder that is there already is not an error.
    pub fn folder(&self, path: &str) -> Result<()> {
        self.tree.add_folder(path).map_err(|source| self.failed(path, source))
    }

    /// Makes a symbolic link. What it leads to is the caller's to check.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file).
    pub fn symlink(&self, path: &str, target: &str) -> Result<()> {
        self.tree.add_symlink(path, target).map_err(|source| self.failed(path, source))
    }

    /// Refuses to go on where the disk would be left with less than `spare` bytes, as far as the
    /// system says how many are free.
    ///
    /// # Errors
    ///
    /// [`Error::Unpack`] with both numbers.
    pub fn check_space(&self, needed: u64, spare: u64) -> Result<()> {
        let Some(free) = self.tree.free_bytes() else {
            return Ok(());
        };
        if needed.saturating_add(spare) <= free {
            return Ok(());
        }
        let message =
            format!("{needed} bytes and {spare} to spare are needed, but {free} are free");
        let source = io::Error::new(io::ErrorKind::StorageFull, message);
        Err(Error::Unpack { path: self.folder.clone(), source })
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
        fs::rename(self.hidden.path(), &self.folder).map_err(failed)?;
        // Nothing is left to remove.
        let _ = self.hidden.keep();
        Ok(())
    }

    fn failed(&self, path: &str, source: io::Error) -> Error {
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
        let Some(name) = folder.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no name"));
        };
        let parent = match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut prefix = OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755));
        let hidden = builder.tempdir_in(parent)?;
        let tree = Tree::open(hidden.path())?;
        Ok(Self { folder, hidden, tree })
    }
}

/// What is left to the system and to others.
const SPARE: u64 = 1 << 30;
