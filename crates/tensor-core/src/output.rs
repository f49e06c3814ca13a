//! Files that appear whole or not at all.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

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

/// A file in the making: a temporary file in the target's folder, renamed over it by
/// [`commit`](Self::commit) and removed when dropped before.
#[derive(Debug)]
pub struct NewFile {
    target: PathBuf,
    /// Gone once the file is in its place.
    temporary: Option<BufWriter<NamedTempFile>>,
    durability: Durability,
}

impl NewFile {
    /// Starts a file that will stand at `target`; nothing is there until [`commit`](Self::commit).
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the folder does not let a file be created.
    pub fn create(target: impl AsRef<Path>, durability: Durability) -> Result<Self> {
        let target = target.as_ref();
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(target.file_name().unwrap_or_default());
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As for any new file; the umask of the process takes away what it takes away.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let temporary = builder
            .tempfile_in(folder(target))
            .map_err(|source| file_error(target, "creation", source))?;
        let temporary = BufWriter::with_capacity(BUFFER, temporary);
        Ok(Self { target: target.to_owned(), temporary: Some(temporary), durability })
    }

    /// Puts the file in its place; what is written afterwards fails.
    ///
    /// # Errors
    ///
    /// [`Error::File`] that names the step; the target is as it was before.
    pub fn commit(&mut self, existing: Existing) -> Result<()> {
        let target = self.target.as_path();
        let failed = |what| move |source| file_error(target, what, source);
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
        .map_err(|error| file_error(target, "renaming", error.error))?;
        if self.durability == Durability::Synced {
            sync_folder(target)?;
        }
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.as_mut().ok_or_else(committed)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.as_mut().ok_or_else(committed)?.flush()
    }
}

fn committed() -> io::Error {
    io::Error::other("the file is in its place already")
}

/// Makes the entry of a file in its folder durable.
fn sync_folder(target: &Path) -> Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    File::open(folder(target))
        .and_then(|folder| folder.sync_all())
        .map_err(|source| file_error(target, "synchronising the folder", source))
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

    #[test]
    fn missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("none/model.zt");
        let error = NewFile::create(&target, Durability::Cached).unwrap_err();
        assert!(error.to_string().ends_with("model.zt\": creation failed"), "{error}");
    }
}
