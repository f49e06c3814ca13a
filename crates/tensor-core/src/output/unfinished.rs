#[cfg(not(unix))]
use std::path::Path;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

#[cfg(unix)]
pub(super) use super::remove::remove;

/// Removes what this process has under [hidden names](super::is_temporary), and cuts off what it
/// was appending, unless something else has changed the length of that file: for a handler of
/// signals that ends the process right after.
///
/// From then on nothing takes its place any more: who tries waits for the end.
pub fn abandon() {
    let mut held = hold();
    for left in std::mem::take(&mut held.left).into_values() {
        // Nobody is left to be told.
        let _ = match left {
            Left::Path(path) => {
                // Other threads may still put files into a folder, or be removing it themselves.
                let is_gone = |_| remove(&path).is_ok() || fs::symlink_metadata(&path).is_err();
                (0..1000).any(is_gone).then_some(()).ok_or(io::ErrorKind::ResourceBusy.into())
            }
            Left::Tail { file, start, len } => match file.metadata() {
                Ok(found) if len > start && found.len() == len => file.set_len(start),
                // Nothing was written, or another program has changed the length.
                _ => Ok(()),
            },
        };
    }
    std::mem::forget(held);
}

/// What is left behind by a process that ends now.
pub(super) enum Left {
    /// A hidden file or folder.
    Path(PathBuf),
    /// A file that is being appended to, its length before, and the one that the last write left.
    Tail { file: File, start: u64, len: u64 },
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

    /// Keeps the length that the last write left.
    pub(super) fn set_len(&mut self, unfinished: Option<&Unfinished>, now: u64) {
        let left = unfinished.and_then(|unfinished| self.left.get_mut(&unfinished.0));
        if let Some(Left::Tail { len, .. }) = left {
            *len = now;
        }
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

/// Removes what has a hidden name; puts back first the folder that was moved into it, out of a place
/// where nothing has come since.
#[cfg(not(unix))]
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let is_folder = |path: &Path| fs::symlink_metadata(path).map(|found| found.is_dir());
    if !is_folder(path)? {
        return fs::remove_file(path);
    }
    let old = path.join("old");
    for old in fs::read_dir(&old).into_iter().filter(|_| is_folder(&old).is_ok_and(|is| is)) {
        for old in old {
            let (old, place) = old.map(|old| (old.path(), path.with_file_name(old.file_name())))?;
            if is_folder(&old)? && fs::symlink_metadata(&place).is_err() {
                fs::rename(old, place)?;
            }
        }
    }
    fs::remove_dir_all(path)
}

#[cfg(test)]
mod tests {
    use std::{env, fs, io::Write as _, mem::forget, process::Command};

    use super::*;
    use crate::output::{Append, Durability, Hidden, LockedFile, options::new_file};

    /// In a process of its own: nothing can be finished afterwards.
    #[test]
    fn abandons_where_it_is_told() {
        let Some(dir) = env::var_os(TOLD).map(PathBuf::from) else { return };
        let new = new_file(dir.join("new"), Durability::Cached).unwrap();
        let file = Hidden::file(&dir.join("file"), 0o600).unwrap();
        let folder = Hidden::folder(&dir.join("folder")).unwrap();
        fs::write(folder.path().join("part"), "part").unwrap();
        let locked = LockedFile::open(dir.join("model")).unwrap();
        let mut append = Append::new(Some(locked), 3, Durability::Synced, |_| Ok("old".into()));
        append.write_all(&[0; 5 << 20]).unwrap();
        assert!(append.has_written());
        // What other programs have written stays.
        let [unwritten, longer] = ["unwritten", "longer"].map(|name| {
            let locked = LockedFile::open(dir.join(name)).unwrap();
            let mut other = locked.try_clone().unwrap();
            let end = locked.byte_len().unwrap();
            let mut append =
                Append::new(Some(locked), end, Durability::Synced, |_| Ok("old".into()));
            if name == "longer" {
                append.write_all(&[0; 5 << 20]).unwrap();
            }
            other.write_all_at(b"theirs", other.byte_len().unwrap()).unwrap();
            append
        });
        abandon();
        forget((new, file, folder, append, unwritten, longer));
    }

    #[test]
    fn nothing_is_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["model", "unwritten", "longer"] {
            fs::write(dir.path().join(name), "old").unwrap();
        }
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "output::unfinished::tests::abandons_where_it_is_told"]);
        assert!(command.env(TOLD, dir.path()).output().unwrap().status.success());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
        let content = |name| fs::read(dir.path().join(name)).unwrap();
        assert_eq!(content("model"), b"old");
        assert_eq!(content("unwritten"), b"oldtheirs");
        assert!(content("longer").ends_with(b"theirs"));
    }

    /// In a process of its own, which ends while a folder is being removed.
    #[test]
    fn abandons_what_is_being_removed() {
        let Some(dir) = env::var_os(REMOVED).map(PathBuf::from) else { return };
        let folder = Hidden::folder(&dir.join("folder")).unwrap();
        for number in 0..300 {
            fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        let removing = std::thread::spawn(|| drop(folder));
        abandon();
        forget(removing);
        // As a handler of signals does, without a word to the other thread.
        #[expect(clippy::exit, reason = "nothing is to run on")]
        std::process::exit(0);
    }

    #[test]
    fn nothing_is_left_of_what_was_being_removed() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..8 {
            let mut command = Command::new(env::current_exe().unwrap());
            command.args(["--exact", "output::unfinished::tests::abandons_what_is_being_removed"]);
            assert!(command.env(REMOVED, dir.path()).output().unwrap().status.success());
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    const TOLD: &str = "ABANDONED";
    const REMOVED: &str = "REMOVED";
}
