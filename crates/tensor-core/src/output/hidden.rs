//! Hidden names: what is not in its place yet, and what a process that is dead has left.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tempfile::TempPath;

#[cfg(unix)]
use super::remove::sweep_away;
use super::{
    keep::check_folder,
    options::{Existing, folder},
    unfinished::{self, Left, Unfinished, remove},
};

/// A file or folder beside the place of another, under a name such as `.model.zt.Xq3vB7.modelcrate`.
///
/// It is locked as long as its process lives, so that [`sweep`] knows what is left of the dead, and
/// removed when it is dropped.
#[derive(Debug)]
pub struct Hidden {
    path: PathBuf,
    /// Held while it is there; a file has its own handle.
    _lock: Option<File>,
    _unfinished: Unfinished,
}

impl Hidden {
    /// Makes a file, open for reading and writing, with the permissions `mode` on Unix; sweeps
    /// nothing.
    pub(super) fn file(target: &Path, mode: u32) -> io::Result<(Self, File)> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
        let _ = mode;
        let (path, file, _unfinished) = make(target, |path| {
            let file = options.open(path)?;
            hold(&file, path)?;
            Ok(file)
        })?;
        Ok((Self { path, _lock: None, _unfinished }, file))
    }

    /// Takes over what has come to lie in a hidden folder.
    pub(super) fn inside(path: PathBuf) -> Self {
        let _unfinished = unfinished::hold().add(Left::Path(path.clone()));
        Self { path, _lock: None, _unfinished }
    }

    /// Makes a folder beside the place of another, for its owner only.
    ///
    /// A folder `old` in it may hold the one that has been moved out of that place, under its own
    /// name: where nothing came there, it is put back before the rest is removed, or [swept](sweep).
    /// Only what is called `old` or `new` is swept.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn folder(target: &Path) -> io::Result<Self> {
        sweep_beside(target);
        let (path, _lock, _unfinished) = make(target, |path| {
            let builder = &mut fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(builder, 0o700);
            builder.create(path)?;
            match open(path) {
                Ok(lock) => hold(&lock, path).map(|()| Some(lock)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Err(swept()),
                Err(error) if cfg!(unix) => Err(error),
                // Not every system opens folders.
                Err(_) => Ok(None),
            }
        })?;
        Ok(Self { path, _lock, _unfinished })
    }

    /// Refuses what [`folder`](Self::folder) refuses, for a dry run.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn check(target: &Path) -> io::Result<()> {
        check_folder(folder(target))
    }

    /// Returns where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes moves that belong together: [`abandon`](super::abandon) waits until they are done.
    ///
    /// # Errors
    ///
    /// Those of `moves`.
    pub fn uninterrupted(&self, moves: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
        let _held = unfinished::hold();
        moves(&self.path)
    }

    /// Gives a file its place.
    pub(super) fn place(&self, target: &Path, existing: Existing) -> io::Result<()> {
        self.uninterrupted(|path| {
            let path = TempPath::try_from_path(path)?;
            let placed = match existing {
                Existing::Replace => path.persist(target),
                Existing::Keep => path.persist_noclobber(target),
            };
            placed.map_err(|error| error.error)
        })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // Where this fails, it is swept once this process is gone.
        let _ = remove(&self.path);
    }
}

/// Gives an unnamed file its place by `link`; where another file is there, by way of a hidden name.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn place_unnamed(
    target: &Path,
    existing: Existing,
    link: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let _held = unfinished::hold();
    match (link(target), existing) {
        (Err(error), Existing::Replace) if error.kind() == io::ErrorKind::AlreadyExists => {
            let made = named(target, |name, parent| name.make_in(parent, |path| link(path)))?;
            made.into_temp_path().persist(target).map_err(|error| error.error)
        }
        (linked, _) => linked,
    }
}

/// Tells whether a name is one that files and folders have here until they are complete: such are
/// never content.
#[must_use]
pub fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let rest = name.strip_suffix(SUFFIX.as_bytes()).and_then(|name| name.strip_prefix(b"."));
    rest.and_then(|rest| rest.split_last_chunk::<RANDOM>()).is_some_and(|(name, random)| {
        name.ends_with(b".") && random.iter().all(u8::is_ascii_alphanumeric)
    })
}

/// Removes what dead processes have left in a folder under [hidden names](is_temporary), and puts
/// back a folder that one of them had moved out of its place. What cannot be looked at stays, as
/// does all that another process holds, and a folder that is not the caller's or holds what these
/// crates do not make. Nothing is followed, and nothing removed that is mounted there.
///
/// Locks tell who is dead. Where they do not reach from one machine to another, as on NFS with
/// `local_lock`, and on some file systems of FUSE and 9p, what is being made on another machine is
/// taken for dead: there, only one machine may change files in a folder.
pub fn sweep(folder: &Path) {
    sweep_listed(folder);
}

/// Returns how many names there are in the folder.
fn sweep_listed(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let swept = entries.inspect(|entry| {
        if is_temporary(&entry.file_name()) {
            // What is not ours to remove does no harm.
            let _ = sweep_away(&entry.path());
        }
    });
    swept.count()
}

#[cfg(not(unix))]
fn sweep_away(path: &Path) -> io::Result<()> {
    let file = open(path)?;
    let is_dead = file.try_lock().is_ok() && leads_to(path, &file)?;
    if is_dead { remove(path) } else { Ok(()) }
}

/// Sweeps the folder of a file that is to be written or changed; one with many files not each time.
pub(super) fn sweep_beside(target: &Path) {
    static LARGE: Mutex<Option<(PathBuf, Instant)>> = Mutex::new(None);
    let folder = folder(target);
    let mut large = LARGE.lock().unwrap_or_else(PoisonError::into_inner);
    match &*large {
        Some((swept, when)) if swept == folder && when.elapsed() < PAUSE => {}
        _ if sweep_listed(folder) > MANY => *large = Some((folder.to_owned(), Instant::now())),
        _ => {}
    }
}

/// Makes something under a new hidden name.
fn make<F>(
    target: &Path,
    make: impl FnMut(&Path) -> io::Result<F>,
) -> io::Result<(PathBuf, F, Unfinished)> {
    // So that a signal finds what is made.
    let mut held = unfinished::hold();
    let made = named(target, |name, parent| name.make_in(parent, make))?;
    let (file, path) = made.into_parts();
    let path = path.keep().map_err(|error| error.error)?;
    let unfinished = held.add(Left::Path(path.clone()));
    Ok((path, file, unfinished))
}

/// Calls `make` with what finds a hidden name, and the folder where the name is to be.
fn named<T>(target: &Path, make: impl FnOnce(&tempfile::Builder<'_, '_>, &Path) -> T) -> T {
    let prefix = prefix(target.file_name().unwrap_or_default());
    let mut builder = tempfile::Builder::new();
    make(builder.prefix(&prefix).suffix(SUFFIX).rand_bytes(RANDOM), folder(target))
}

/// Returns what the hidden names of a file or folder begin with.
fn prefix(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    // Names of 255 bytes are the longest that file systems have.
    format!(".{}.", name.get(..name.floor_char_boundary(LONGEST)).unwrap_or_default())
}

/// Tells whether a hidden name is one of a file or folder.
#[cfg(unix)]
pub(super) fn hides(hidden: &OsStr, name: &OsStr) -> bool {
    let rest = hidden.as_encoded_bytes().strip_prefix(prefix(name).as_bytes());
    rest.is_some_and(|rest| rest.len() == RANDOM.saturating_add(SUFFIX.len()))
}

/// Locks what has just been made.
///
/// # Errors
///
/// `AlreadyExists`, so that another name is tried, where it was swept away before.
fn hold(file: &File, path: &Path) -> io::Result<()> {
    // Where there are no locks, nothing is swept either.
    if file.lock().is_ok() && !leads_to(path, file)? {
        return Err(swept());
    }
    Ok(())
}

/// Has another name tried.
fn swept() -> io::Error {
    io::ErrorKind::AlreadyExists.into()
}

/// Opens a file or a folder for its lock, and nothing through a link.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    options.open(path)
}

/// Tells whether a path leads to an open file.
///
/// # Errors
///
/// Where the system does not say.
#[cfg(unix)]
pub fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(theirs) => Ok((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// This system does not tell files apart, nor does it let open ones go.
#[cfg(not(unix))]
pub fn leads_to(_: &Path, _: &File) -> io::Result<bool> {
    Ok(true)
}

const SUFFIX: &str = ".modelcrate";
/// How many characters between the name and the suffix are random.
const RANDOM: usize = 6;
/// How many bytes of a name are part of its hidden one.
const LONGEST: usize = 200;
/// How many files are listed each time.
const MANY: usize = 100;
/// How often more are.
const PAUSE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::output::options::names;

    #[test]
    fn names_of_ours() {
        for ours in
            [".model.zt.Xq3vB7.modelcrate", "..000000.modelcrate", ".\u{e9}.abcdef.modelcrate"]
        {
            assert!(is_temporary(ours.as_ref()), "{ours}");
        }
        for other in [
            ".model.zt.Xq3vB7",
            "model.zt.Xq3vB7.modelcrate",
            ".modelXq3vB7.modelcrate",
            ".model.Xq-vB7.modelcrate",
            ".modelcrate",
            "",
        ] {
            assert!(!is_temporary(other.as_ref()), "{other}");
        }
    }

    #[test]
    fn long_names_are_cut() {
        let dir = tempfile::tempdir().unwrap();
        let (hidden, _file) = Hidden::file(&dir.path().join("\u{e9}".repeat(127)), 0o600).unwrap();
        assert!(is_temporary(hidden.path().file_name().unwrap()));
    }

    #[test]
    fn only_what_nobody_holds_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("model");
        let (file, _lock) = Hidden::file(&target, 0o600).unwrap();
        let folder = Hidden::folder(&target).unwrap();
        fs::write(folder.path().join("part"), b"").unwrap();
        fs::write(dir.path().join(".model.dead00.modelcrate"), b"").unwrap();
        fs::create_dir_all(dir.path().join(".model.dead01.modelcrate/new")).unwrap();
        fs::write(dir.path().join(".model.swp"), b"").unwrap();
        sweep(dir.path());
        let held = [file.path(), folder.path(), Path::new(".model.swp")];
        let mut held = held.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
        held.sort();
        assert_eq!(names(dir.path()), held);
        drop((file, folder));
        assert_eq!(names(dir.path()).len(), 1);
    }

    #[test]
    fn a_folder_out_of_its_place_is_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let hidden = dir.path().join(".package.dead00.modelcrate");
        for (path, content) in [("old/package/a", "old"), ("new/a", "new")] {
            fs::create_dir_all(hidden.join(path).parent().unwrap()).unwrap();
            fs::write(hidden.join(path), content).unwrap();
        }
        sweep(dir.path());
        assert_eq!(names(dir.path()), ["package"]);
        assert_eq!(fs::read(dir.path().join("package/a")).unwrap(), b"old");
        // It need not have died for that.
        let alive = Hidden::folder(&dir.path().join("other")).unwrap();
        fs::create_dir_all(alive.path().join("old/other")).unwrap();
        drop(alive);
        fs::remove_dir(dir.path().join("other")).unwrap();
        // Another came to its place.
        fs::create_dir_all(hidden.join("old/package")).unwrap();
        sweep(dir.path());
        assert_eq!(names(dir.path()), ["package"]);
        assert_eq!(fs::read(dir.path().join("package/a")).unwrap(), b"old");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_swept_through() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("other/old")).unwrap();
        std::os::unix::fs::symlink("other", dir.path().join(".x.dead00.modelcrate")).unwrap();
        sweep(dir.path());
        assert!(dir.path().join("other/old").exists());
    }

    #[test]
    fn who_sweeps_takes_nothing_that_is_being_made() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("model");
        thread::scope(|scope| {
            let made = scope.spawn(|| {
                for _ in 0..200 {
                    let (hidden, file) = Hidden::file(&target, 0o600).unwrap();
                    assert!(leads_to(hidden.path(), &file).unwrap());
                    assert!(Hidden::folder(&target).unwrap().path().is_dir());
                }
            });
            while !made.is_finished() {
                sweep(dir.path());
            }
        });
    }
}
