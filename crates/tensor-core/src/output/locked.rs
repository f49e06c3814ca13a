//! Files that are changed in place.

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::{
    append::WriteAt,
    hidden::{leads_to, sweep_beside},
    keep::check_writable,
    options::{Output, file_error},
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

impl Output {
    /// Opens a file for the dry run of an edit: refuses what [`LockedFile::open_within`] refuses, after
    /// the same [`wait`](Self::wait). Nothing is swept, and the lock is gone again.
    ///
    /// An edit that puts another file in its place needs [`check_create`](Self::check_create), too.
    ///
    /// # Errors
    ///
    /// As for [`LockedFile::open_within`].
    pub fn check(self, path: impl AsRef<Path>) -> Result<Source> {
        let locked = LockedFile::open_unswept(path.as_ref(), self.wait)?;
        locked.unlock();
        locked.source()
    }
}

impl LockedFile {
    /// Opens and locks a file that is there, and [sweeps](super::sweep) its folder.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] where another has it; [`Error::NotAFile`]; [`Error::File`] where it cannot
    /// be opened for writing, or nobody is permitted to write to it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_within(path, Duration::ZERO)
    }

    /// Like [`open`](Self::open), but waits so long for another to let the file go. Where that one
    /// has put another file in its place, that is the one which is opened.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_within(path: impl AsRef<Path>, wait: Duration) -> Result<Self> {
        let path = path.as_ref();
        sweep_beside(path.canonicalize().as_deref().unwrap_or(path));
        Self::open_unswept(path, wait)
    }

    fn open_unswept(path: &Path, wait: Duration) -> Result<Self> {
        const OPENING: &str = "opening for writing";
        // Refuses what is not a regular file before it is opened for writing.
        drop(Source::open(path)?);
        check_writable(path).map_err(|source| file_error(path, OPENING, source))?;
        let open = || File::options().read(true).write(true).open(path);
        Self::lock(path, OPENING, open, File::try_lock, wait)
    }

    /// Opens a file for reading only and keeps editors out; others may do the same. Waits as
    /// [`open_within`](Self::open_within) does.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] where an editor has it; [`Error::NotAFile`]; [`Error::File`].
    pub fn shared(path: impl AsRef<Path>, wait: Duration) -> Result<Self> {
        let path = path.as_ref();
        drop(Source::open(path)?);
        Self::lock(path, "opening", || File::open(path), File::try_lock_shared, wait)
    }

    /// Locks a folder; waits as [`open_within`](Self::open_within) does. Such a lock is all that this
    /// is good for. Its [path](Self::path) has every link resolved.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] where another has it; [`Error::File`] where it cannot be opened, as on
    /// systems other than Unix.
    pub fn folder(path: impl AsRef<Path>, wait: Duration) -> Result<Self> {
        let path = path.as_ref();
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut options = File::options();
        options.read(true);
        #[cfg(unix)]
        {
            let flags = rustix::fs::OFlags::DIRECTORY.bits().cast_signed();
            std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
        }
        Self::lock(&path, "opening", || options.open(&path), File::try_lock, wait)
    }

    fn lock(
        path: &Path,
        opening: &'static str,
        open: impl Fn() -> io::Result<File>,
        lock: impl Fn(&File) -> Result<(), TryLockError>,
        wait: Duration,
    ) -> Result<Self> {
        let (until, mut pause) = (Instant::now().checked_add(wait.max(MOMENT)), SHORTEST);
        loop {
            let file = open().map_err(|source| file_error(path, opening, source))?;
            match lock(&file) {
                Ok(()) => {
                    let locked = Self { path: path.to_owned(), file };
                    match locked.check_in_place() {
                        // The one who had it has put another in its place.
                        Err(Error::Replaced { .. }) => continue,
                        checked => return checked.map(|()| locked),
                    }
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => {
                    return Err(file_error(path, "locking", source));
                }
            }
            let rest = until.map_or(pause, |until| until.saturating_duration_since(Instant::now()));
            if rest.is_zero() {
                return Err(Error::Locked { path: path.to_owned() });
            }
            thread::sleep(pause.min(rest));
            pause = pause.saturating_mul(2).min(LONGEST);
        }
    }

    /// Proves that the path still leads to the file that was locked, where the system tells files
    /// apart: a program that takes no lock may have replaced it.
    ///
    /// # Errors
    ///
    /// [`Error::Replaced`]; [`Error::File`] where nothing can be found out.
    pub fn check_in_place(&self) -> Result<()> {
        match leads_to(&self.path, &self.file) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Replaced { path: self.path.clone() }),
            Err(source) => Err(self.failed("reading metadata", source)),
        }
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
        file_error(&self.path, what, source)
    }
}

impl WriteAt for LockedFile {
    fn byte_len(&self) -> io::Result<u64> {
        Self::byte_len(self)
    }

    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        Self::write_all_at(self, bytes, offset)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        Self::set_len(self, len)
    }

    fn sync(&mut self) -> io::Result<()> {
        Self::sync(self)
    }

    fn handle(&self) -> Option<File> {
        self.file.try_clone().ok()
    }
}

/// How long to wait before the next attempt: twice as long each time.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(200);
/// How long to wait in any case: longer than a dry run has the lock.
const MOMENT: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model");
        std::fs::write(&path, b"0123").unwrap();
        (dir, path)
    }

    #[test]
    fn one_editor_at_a_time() {
        let (_dir, path) = file();
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
        let (_dir, path) = file();
        let share = || LockedFile::shared(&path, Duration::ZERO).unwrap();
        let (first, second) = (share(), share());
        assert!(matches!(LockedFile::open(&path), Err(Error::Locked { .. })));
        drop((first, second));
        LockedFile::open(&path).unwrap();
    }

    #[test]
    fn writes_where_it_is_told() {
        let (_dir, path) = file();
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

    #[test]
    fn dry_runs_do_not_keep_each_other_out() {
        let (_dir, path) = file();
        thread::scope(|scope| {
            let locked = LockedFile::open(&path).unwrap();
            let dry_run = scope.spawn(|| Output::default().check(&path).map(drop));
            thread::sleep(Duration::from_millis(10));
            drop(locked);
            dry_run.join().unwrap().unwrap();
        });
    }

    #[test]
    fn an_editor_is_waited_for() {
        let (dir, path) = file();
        let first = LockedFile::open(&path).unwrap();
        let second = thread::spawn({
            let path = path.clone();
            move || LockedFile::open_within(path, Duration::from_secs(30)).unwrap().source()
        });
        let other = dir.path().join("other");
        std::fs::write(&other, b"another").unwrap();
        std::fs::rename(&other, &path).unwrap();
        drop(first);
        // What is there now, not what it waited for.
        assert_eq!(second.join().unwrap().unwrap().len(), 7);
        let _third = LockedFile::open(&path).unwrap();
        let error = LockedFile::open_within(&path, Duration::from_millis(1)).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }));
    }

    #[test]
    fn a_dry_run_is_refused_as_an_edit_is() {
        let (dir, path) = file();
        let left = dir.path().join(".model.dead00.modelcrate");
        std::fs::write(&left, b"").unwrap();
        let refused = || {
            let output = Output { wait: Duration::from_millis(1), ..Output::default() };
            let edit = LockedFile::open_unswept(&path, output.wait).unwrap_err();
            assert_eq!(output.check(&path).unwrap_err().to_string(), edit.to_string());
            edit
        };
        let shared = LockedFile::shared(&path, Duration::ZERO).unwrap();
        assert!(matches!(refused(), Error::Locked { .. }));
        drop(shared);
        // A process that another test starts holds a lock until it runs its program.
        let wait = Duration::from_secs(10);
        let locked = LockedFile::open_unswept(&path, wait).unwrap();
        assert!(matches!(refused(), Error::Locked { .. }));
        drop(locked);
        let source = Output { wait, ..Output::default() }.check(&path).unwrap();
        // What has read the file keeps nobody out.
        drop(LockedFile::open_unswept(&path, wait).unwrap());
        assert!(source.len() == 4 && left.exists());
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&path, permissions).unwrap();
        assert!(matches!(refused(), Error::File { .. }));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(refused().kind(), crate::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn notices_that_it_was_replaced() {
        let (dir, path) = file();
        let locked = LockedFile::open(&path).unwrap();
        std::fs::rename(&path, dir.path().join("other")).unwrap();
        std::fs::write(&path, b"new").unwrap();
        assert!(matches!(locked.check_in_place(), Err(Error::Replaced { .. })));
    }

    #[test]
    fn folders_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(LockedFile::open(dir.path()), Err(Error::NotAFile { .. })));
    }
}
