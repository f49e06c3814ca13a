//! Files that are changed in place.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

use crate::{Error, Result, Source};

/// A file open for reading and writing that no other editor has, until it is unlocked or the last
/// handle on it, clones included, is closed.
///
/// The lock is advisory: it keeps out those who ask for it.
#[derive(Debug)]
pub struct LockedFile {
    path: PathBuf,
    file: File,
}

impl LockedFile {
    /// Opens and locks a file that is there.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] where another has it; [`Error::NotAFile`]; [`Error::File`] where it cannot
    /// be opened for writing.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        // Refuses what is not a regular file before it is opened for writing.
        drop(Source::open(path)?);
        let file = OpenOptions::new().read(true).write(true).open(path);
        Self::lock(path, file, "opening for writing", File::try_lock)
    }

    /// Opens a file for reading only and keeps editors out; others may do the same.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] where an editor has it; [`Error::NotAFile`]; [`Error::File`].
    pub fn shared(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        drop(Source::open(path)?);
        Self::lock(path, File::open(path), "opening", File::try_lock_shared)
    }

    fn lock(
        path: &Path,
        file: io::Result<File>,
        opening: &'static str,
        lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self> {
        let failed = |what| move |source| Error::File { path: path.to_owned(), what, source };
        let file = file.map_err(failed(opening))?;
        match lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(failed("locking")(source)),
        }
        let locked = Self { path: path.to_owned(), file };
        locked.check_in_place()?;
        Ok(locked)
    }

    /// Proves that the path still leads to the file that was locked: another editor may have
    /// replaced it in between.
    ///
    /// # Errors
    ///
    /// [`Error::Replaced`]; [`Error::File`] where nothing can be found out.
    #[cfg(unix)]
    pub fn check_in_place(&self) -> Result<()> {
        use std::os::unix::fs::MetadataExt;
        let failed = |source| self.failed("reading metadata", source);
        let (ours, theirs) = (self.file.metadata(), std::fs::metadata(&self.path));
        let (ours, theirs) = (ours.map_err(failed)?, theirs.map_err(failed)?);
        if (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()) {
            return Ok(());
        }
        Err(Error::Replaced { path: self.path.clone() })
    }

    /// Does nothing: this system does not tell files apart.
    ///
    /// # Errors
    ///
    /// None.
    #[cfg(not(unix))]
    pub fn check_in_place(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a source over the file, as long as it is now.
    ///
    /// # Errors
    ///
    /// [`Error::File`].
    pub fn source(&self) -> Result<Source> {
        Source::from_file(self.try_clone()?.file)
    }

    /// Returns another handle under the same lock.
    ///
    /// # Errors
    ///
    /// [`Error::File`].
    pub fn try_clone(&self) -> Result<Self> {
        let file = self.file.try_clone().map_err(|source| self.failed("reopening", source))?;
        Ok(Self { path: self.path.clone(), file })
    }

    /// Lets other editors in, though readers may still hold clones of the handle.
    pub fn unlock(&self) {
        // Where this fails, closing the last handle does it.
        let _ = self.file.unlock();
    }

    /// Returns the length of the file in bytes.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn byte_len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Writes bytes at an offset from the start of the file, which grows where they end behind it.
    ///
    /// # Errors
    ///
    /// What the system says; some of the bytes may be written.
    pub fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset);
        #[cfg(not(unix))]
        {
            use std::io::{Seek as _, Write as _};
            self.file.seek(io::SeekFrom::Start(offset))?;
            self.file.write_all(bytes)
        }
    }

    /// Cuts the file to a length in bytes, or fills it up to there with zeros.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    /// Forces what was written to the disk.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Returns the error of a step that failed.
    #[must_use]
    pub fn failed(&self, what: &'static str, source: io::Error) -> Error {
        Error::File { path: self.path.clone(), what, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dir: &tempfile::TempDir) -> PathBuf {
        let path = dir.path().join("model");
        std::fs::write(&path, b"0123").unwrap();
        path
    }

    #[test]
    fn one_editor_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(&dir);
        let first = LockedFile::open(&path).unwrap();
        let error = LockedFile::open(&path).unwrap_err();
        assert_eq!(error.to_string(), format!("{path:?} is locked, expected no other writer"));
        let clone = first.try_clone().unwrap();
        first.unlock();
        LockedFile::open(&path).unwrap();
        drop(clone);
    }

    #[test]
    fn readers_keep_editors_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(&dir);
        let first = LockedFile::shared(&path).unwrap();
        let second = LockedFile::shared(&path).unwrap();
        assert!(matches!(LockedFile::open(&path), Err(Error::Locked { .. })));
        drop((first, second));
        LockedFile::open(&path).unwrap();
    }

    #[test]
    fn writes_where_it_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(&dir);
        let mut locked = LockedFile::open(&path).unwrap();
        locked.write_all_at(b"ab", 3).unwrap();
        locked.sync().unwrap();
        assert_eq!(
            (locked.byte_len().unwrap(), std::fs::read(&path).unwrap()),
            (5, b"012ab".into())
        );
        locked.set_len(4).unwrap();
        assert_eq!(locked.source().unwrap().len(), 4);
    }

    #[cfg(unix)]
    #[test]
    fn notices_that_it_was_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(&dir);
        let locked = LockedFile::open(&path).unwrap();
        std::fs::rename(file(&dir), dir.path().join("other")).unwrap();
        std::fs::write(&path, b"new").unwrap();
        assert!(matches!(locked.check_in_place(), Err(Error::Replaced { .. })));
    }

    #[test]
    fn folders_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(LockedFile::open(dir.path()), Err(Error::NotAFile { .. })));
    }
}
