//! Files that appear whole or not at all.

mod locked;

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

pub use locked::LockedFile;

use crate::{Error, Result};

/// What happens to a file that already stands where a new one is to be put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// The new file takes its place, with its permissions.
    #[default]
    Replace,
    /// The new file is given up and the old one stays.
    Keep,
}

/// Whether a finished file is forced to the disk before it takes its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Data and folder are synchronised: after a power cut there is the old file or the new one.
    #[default]
    Synced,
    /// The system writes when it likes: whole after a crash of the process, not of the machine.
    Cached,
}

/// How a finished file takes its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// What happens to a file that stands there.
    pub existing: Existing,
    /// Whether it is forced to the disk first.
    pub durability: Durability,
}

impl Output {
    /// Starts a file that will stand at `path`; see [`NewFile::create`].
    ///
    /// # Errors
    ///
    /// As for [`NewFile::create`].
    pub fn create(self, path: impl AsRef<Path>) -> Result<NewFile> {
        NewFile::create(path, self.durability)
    }

    /// Puts a finished file in its place; see [`NewFile::commit`].
    ///
    /// # Errors
    ///
    /// As for [`NewFile::commit`].
    pub fn commit(self, mut file: NewFile) -> Result<()> {
        file.commit(self.existing)
    }
}

/// What an edit has done to a file or folder. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Edited {
    /// Nothing: what was asked for is there already.
    Unchanged,
    /// Bytes were added behind the end of the file; those before stay, but for fixed fields.
    Appended {
        /// The length of the file before.
        before: u64,
        /// Its length now.
        after: u64,
    },
    /// Another file stands in its place.
    Replaced {
        /// The length of the file before.
        before: u64,
        /// The length of the one that stands there now.
        after: u64,
    },
    /// Bytes at its end were cut off.
    Truncated {
        /// The length of the file before.
        before: u64,
        /// Its length now.
        after: u64,
    },
    /// Files of the folder were changed.
    Updated {
        /// How many were written.
        written: usize,
        /// How many were removed.
        removed: usize,
    },
}

impl Edited {
    /// Tells whether anything was written.
    #[must_use]
    pub const fn has_changed(self) -> bool {
        !matches!(self, Self::Unchanged)
    }
}

/// A file in the making: a temporary file in the target's folder, renamed over it by
/// [`commit`](Self::commit) and removed when dropped before.
#[derive(Debug)]
pub struct NewFile {
    /// As it was given.
    path: PathBuf,
    /// The file behind it, where that is a link.
    target: PathBuf,
    /// Gone once the file is in its place.
    temporary: Option<BufWriter<NamedTempFile>>,
    durability: Durability,
    written: u64,
}

impl NewFile {
    /// Starts a file that will stand at `path`; nothing is there until [`commit`](Self::commit).
    ///
    /// Where `path` is a symbolic link to a file, that file is replaced and the link stays. Other
    /// hard links of a replaced file keep its old content. Until it takes the place of another,
    /// only the owner can read the new file.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the folder does not let a file be created.
    pub fn create(path: impl AsRef<Path>, durability: Durability) -> Result<Self> {
        let path = path.as_ref();
        let existing = path.canonicalize().ok();
        let target = existing.as_deref().unwrap_or(path);
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(target.file_name().unwrap_or_default());
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // A file that takes the place of another gets its mode at the end. For any other the
            // umask of the process takes away what it takes away.
            let mode = if existing.is_some() { 0o600 } else { 0o666 };
            builder.permissions(fs::Permissions::from_mode(mode));
        }
        let temporary = builder
            .tempfile_in(folder(target))
            .map_err(|source| file_error(path, "creation", source))?;
        let temporary = BufWriter::with_capacity(BUFFER, temporary);
        let (path, target) = (path.to_owned(), target.to_owned());
        Ok(Self { path, target, temporary: Some(temporary), durability, written: 0 })
    }

    /// Puts the file in its place; what is written afterwards fails.
    ///
    /// # Errors
    ///
    /// [`Error::File`] that names the step; the target is as it was before.
    pub fn commit(&mut self, existing: Existing) -> Result<()> {
        let (path, target) = (self.path.as_path(), self.target.as_path());
        let failed = |what| move |source| file_error(path, what, source);
        let temporary = self.temporary.take().ok_or_else(committed).map_err(failed("writing"))?;
        let temporary = temporary.into_inner().map_err(io::IntoInnerError::into_error);
        let temporary = temporary.map_err(failed("writing"))?;
        if existing == Existing::Replace
            && let Ok(old) = fs::metadata(target)
        {
            let kept = temporary.as_file().set_permissions(old.permissions());
            kept.map_err(failed("keeping permissions"))?;
        }
        if self.durability == Durability::Synced {
            temporary.as_file().sync_all().map_err(failed("synchronising"))?;
        }
        match existing {
            Existing::Replace => temporary.persist(target),
            Existing::Keep => temporary.persist_noclobber(target),
        }
        .map_err(|error| file_error(path, "renaming", error.error))?;
        if self.durability == Durability::Synced {
            sync_folder(target).map_err(failed("synchronising the folder"))?;
        }
        Ok(())
    }

    /// Returns how many bytes were written so far.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.temporary.as_mut().ok_or_else(committed)?.write(bytes)?;
        self.written = self.written.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.as_mut().ok_or_else(committed)?.flush()
    }
}

fn committed() -> io::Error {
    io::Error::other("the file is in its place already")
}

/// Makes the entry of a file in its folder durable.
fn sync_folder(target: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    File::open(folder(target))?.sync_all()
}

fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn file_error(path: &Path, what: &'static str, source: io::Error) -> Error {
    Error::File { path: path.to_owned(), what, source }
}

const BUFFER: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn dropped_before_commit_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.zt");
        fs::write(&target, b"old").unwrap();
        let mut file = NewFile::create(&target, Durability::Cached).unwrap();
        file.write_all(b"half of the new").unwrap();
        file.flush().unwrap();
        drop(file);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["model.zt"]);
    }

    #[test]
    fn commit_replaces_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.zt");
        fs::write(&target, b"old").unwrap();
        let mut file = NewFile::create(&target, Durability::Synced).unwrap();
        file.write_all(b"new").unwrap();
        file.commit(Existing::Replace).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["model.zt"]);
    }

    #[test]
    fn existing_file_is_kept_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.zt");
        fs::write(&target, b"old").unwrap();
        let mut file = NewFile::create(&target, Durability::Cached).unwrap();
        let error = file.commit(Existing::Keep).unwrap_err();
        assert!(error.to_string().ends_with("renaming failed"), "{error}");
        assert_eq!(fs::read(&target).unwrap(), b"old");
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_those_of_the_replaced_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.zt");
        fs::write(&target, b"old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        let mut file = NewFile::create(&target, Durability::Cached).unwrap();
        file.commit(Existing::Replace).unwrap();
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn private_files_are_private_while_written() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.zt");
        fs::write(&target, b"old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        let mut file = NewFile::create(&target, Durability::Cached).unwrap();
        let modes = || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().metadata());
        assert_eq!(modes().count(), 2);
        assert!(modes().all(|found| found.unwrap().permissions().mode() & 0o777 == 0o600));
        file.commit(Existing::Replace).unwrap();
        assert!(modes().all(|found| found.unwrap().permissions().mode() & 0o777 == 0o600));
    }

    #[cfg(unix)]
    #[test]
    fn new_files_have_the_mode_of_any_other() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let [ours, other] = ["model.zt", "other"].map(|name| folder.path().join(name));
        fs::write(&other, b"").unwrap();
        NewFile::create(&ours, Durability::Cached).unwrap().commit(Existing::Replace).unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&other));
    }

    #[cfg(unix)]
    #[test]
    fn the_file_behind_a_link_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("model.zt"), folder.path().join("link.zt"));
        fs::write(&target, b"old").unwrap();
        std::os::unix::fs::symlink("model.zt", &link).unwrap();
        let mut file = NewFile::create(&link, Durability::Synced).unwrap();
        file.write_all(b"new").unwrap();
        file.commit(Existing::Replace).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("none/model.zt");
        let error = NewFile::create(&target, Durability::Cached).unwrap_err();
        assert!(error.to_string().ends_with("model.zt\": creation failed"), "{error}");
    }
}
