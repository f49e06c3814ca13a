use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Removes what this process has under [hidden names](super::is_temporary), and cuts off what it
/// was appending: for a handler of signals that ends the process right after.
///
/// From then on nothing takes its place any more: who tries waits for the end.
pub fn abandon() {
    let mut held = hold();
    for left in std::mem::take(&mut held.left).into_values() {
        // Nobody is left to be told.
        let _ = match left {
            Left::Path(path) => {
                let is_filled = |removed: &io::Result<()>| match removed {
                    Err(error) => error.kind() == io::ErrorKind::DirectoryNotEmpty,
                    Ok(()) => false,
                };
                // Other threads may still put files into a folder.
                let mut attempts = (0..1000).map(|_| remove(&path));
                attempts.find(|removed| !is_filled(removed)).unwrap_or(Ok(()))
            }
            Left::Tail(file, len) => file.set_len(len),
        };
    }
    std::mem::forget(held);
}

/// What is left behind by a process that ends now.
pub(super) enum Left {
    /// A hidden file or folder.
    Path(PathBuf),
    /// A file that is being appended to, and its length before.
    Tail(File, u64),
}

/// All that this process has not finished.
pub(super) struct All {
    next: u64,
    left: BTreeMap<u64, Left>,
}

impl All {
    /// Adds what is left until the result is dropped.
    pub(super) fn add(&mut self, left: Left) -> Unfinished {
        self.next = self.next.wrapping_add(1);
        self.left.insert(self.next, left);
        Unfinished(self.next)
    }

    /// Takes out what is finished now.
    pub(super) fn done(&mut self, finished: Option<Unfinished>) {
        if let Some(finished) = finished {
            self.left.remove(&finished.0);
            std::mem::forget(finished);
        }
    }
}

/// Something that is not finished yet.
#[derive(Debug)]
pub(super) struct Unfinished(u64);

impl Drop for Unfinished {
    fn drop(&mut self) {
        hold().left.remove(&self.0);
    }
}

/// Keeps [`abandon`] from what is being done until the result is dropped.
pub(super) fn hold() -> MutexGuard<'static, All> {
    static ALL: Mutex<All> = Mutex::new(All { next: 0, left: BTreeMap::new() });
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what has a hidden name; puts back first what was moved into it, out of a place where
/// nothing has come since.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return fs::remove_file(path);
    }
    for old in fs::read_dir(path.join("old")).into_iter().flatten().flatten() {
        let place = path.with_file_name(old.file_name());
        if fs::symlink_metadata(&place).is_err() {
            fs::rename(old.path(), place)?;
        }
    }
    fs::remove_dir_all(path)
}

#[cfg(test)]
mod tests {
    use std::{env, io::Write as _, mem::forget, process::Command};

    use super::*;
    use crate::output::{Append, Durability, Hidden, LockedFile, NewFile};

    /// In a process of its own: nothing can be finished afterwards.
    #[test]
    fn abandons_where_it_is_told() {
        let Some(dir) = env::var_os(TOLD).map(PathBuf::from) else { return };
        let new = NewFile::create(dir.join("new"), Durability::Cached).unwrap();
        let file = Hidden::file(&dir.join("file"), 0o600).unwrap();
        let folder = Hidden::folder(&dir.join("folder")).unwrap();
        fs::write(folder.path().join("part"), "part").unwrap();
        let locked = LockedFile::open(dir.join("model")).unwrap();
        let mut append = Append::new(locked, 3, |_| Ok("old".into()));
        append.write_all(&[0; 5 << 20]).unwrap();
        assert!(append.has_written());
        abandon();
        forget((new, file, folder, append));
    }

    #[test]
    fn nothing_is_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("model"), "old").unwrap();
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "output::unfinished::tests::abandons_where_it_is_told"]);
        assert!(command.env(TOLD, dir.path()).output().unwrap().status.success());
        let names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["model"]);
        assert_eq!(fs::read(dir.path().join("model")).unwrap(), b"old");
    }

    const TOLD: &str = "ABANDONED";
}
