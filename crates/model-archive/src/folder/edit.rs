//! Changing folders, whole or not at all.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, ErrorKind},
    path::{Path, PathBuf, absolute},
};

#[cfg(unix)]
use tensor_core::output::LockedFile;
use tensor_core::output::{Durability, Edited, Hidden, Output, is_temporary, keep_metadata, sweep};

use super::{check_content, failed, fault, text, tree::Tree};
use crate::{Error, FileFault, Folder, Result, name};

/// A folder that is being edited, locked against other editors.
///
/// The first change makes a hidden folder beside it, in which everything that does not change is a
/// hard link to what is there, or a copy where there are no such links. Symbolic links stay what
/// they are, owner, permissions and extended attributes of files and folders are kept, and
/// [hidden names of ours](is_temporary) are left out. What is mounted, it or something in it, is
/// refused. [`commit`](Self::commit) lets the two change places in one step, on Linux and macOS;
/// dropped before, the folder is as it was. On other systems, and on file systems that cannot do
/// this, there is no folder in the place for the moment between two renames: where the process is
/// killed just then, the old one is put back when the folder is next edited.
///
/// The folder at the place is then another: who had it open, or stands in it, still has the old
/// one, whose files are gone. What others put into it during the edit without asking for the lock
/// is lost. To edit takes the right to create in the folder that it lies in. Systems other than
/// Unix have no locks on folders.
///
/// # Examples
///
/// ```
/// use std::io::Write;
///
/// use model_archive::{FolderEdit, tensor_core::output::Output};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("package");
/// std::fs::create_dir(&path)?;
/// std::fs::write(path.join("old"), b"")?;
/// let mut edit = FolderEdit::open(&path, Output::default())?;
/// edit.file("metadata/new")?.write_all(b"content")?;
/// edit.remove("old")?;
/// assert_eq!(edit.prepared()?.paths()?, ["metadata/new"]);
/// edit.commit()?;
/// assert_eq!(model_archive::Folder::open(&path)?.paths()?, ["metadata/new"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "an edit takes effect when it is committed"]
pub struct FolderEdit {
    folder: Folder,
    #[cfg(unix)]
    lock: LockedFile,
    durability: Durability,
    /// None before the first change.
    prepared: Option<Prepared>,
    written: BTreeSet<String>,
    removed: usize,
}

/// A folder that is to take the place of another.
#[derive(Debug)]
struct Prepared {
    folder: Folder,
    tree: Tree,
    /// Holds it, and in the end the old one.
    hidden: Hidden,
}

impl FolderEdit {
    /// Locks a folder, for which it waits as `output` says, and [sweeps](sweep) first the one that it is
    /// in, from where it may be put back. Nothing is written.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::Locked`]; as for [`Folder::open`].
    pub fn open(path: impl AsRef<Path>, output: Output) -> Result<Self> {
        let path = path.as_ref();
        let resolved = path.canonicalize().or_else(|_| absolute(path));
        if let Some(parent) = resolved.ok().as_deref().and_then(Path::parent) {
            sweep(parent);
        }
        #[cfg(unix)]
        let lock = LockedFile::folder(path, output.wait)?;
        // A link in the path may lead to another than the locked one by now.
        #[cfg(unix)]
        let path = lock.path();
        Ok(Self {
            folder: Folder::open(path)?,
            #[cfg(unix)]
            lock,
            durability: output.durability,
            prepared: None,
            written: BTreeSet::new(),
            removed: 0,
        })
    }

    /// Refuses what [`open`](Self::open) and the first change refuse, for a dry run: nothing is made,
    /// swept or kept locked. [`Folder::check_file`] says more of each file.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open); [`Error::Core`](crate::Error::Core) where nothing can be made beside
    /// the folder, or something in it is mounted, or a file that can be neither linked nor read.
    pub fn check(path: impl AsRef<Path>, output: Output) -> Result<()> {
        let path = path.as_ref();
        #[cfg(unix)]
        LockedFile::folder(path, output.wait)?.unlock();
        let folder = Folder::open(path)?;
        let beside = |source| failed(folder.path(), BESIDE, source);
        Hidden::check(folder.path()).map_err(beside)?;
        let device = device_beside(folder.path()).map_err(beside)?;
        let mut folders = vec![PathBuf::new()];
        while let Some(inside) = folders.pop() {
            for (name, is_folder) in folder.taken_over(&inside, device)? {
                let path = inside.join(name);
                if is_folder {
                    folders.push(path);
                } else {
                    folder.check_link(&path).map_err(|source| folder.not_taken(&path, source))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the folder as it is before the edit.
    #[must_use]
    pub const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Returns the folder as it will be after what was done so far.
    ///
    /// # Errors
    ///
    /// [`Error::Core`](crate::Error::Core) where it cannot be made.
    pub fn prepared(&mut self) -> Result<&Folder> {
        Ok(&self.prepare()?.folder)
    }

    /// Starts a file, in the place of one that is there, whose owner, permissions and extended
    /// attributes it gets; folders are made on the way. Where the path is that of a symbolic link
    /// to a file in the folder, that file is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) where the path is unsafe, leads out of the folder, is that
    /// of a folder, or of a file that nobody may write to; [`Error::Core`](crate::Error::Core) where
    /// nothing can be made.
    pub fn file(&mut self, path: &str) -> Result<File> {
        let inside = self.folder.check_file(path)?;
        let old = self.folder.path().join(&inside);
        let failed = |source| fault(path, FileFault::Io(source));
        let tree = &self.prepare()?.tree;
        match tree.remove(&inside) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let file = tree.add_file(&inside).map_err(failed)?;
        if old.is_file() {
            keep_metadata(&old, &file).map_err(failed)?;
        }
        self.written.insert(inside);
        Ok(file)
    }

    /// Removes a file, or a symbolic link itself.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) where the path is unsafe, leads out of the folder, or is
    /// not that of a file.
    pub fn remove(&mut self, path: &str) -> Result<()> {
        let inside = self.folder.inside(path)?;
        let removed = self.prepare()?.tree.remove(&inside);
        removed.map_err(|source| fault(path, FileFault::Io(source)))?;
        self.removed = self.removed.saturating_add(1);
        Ok(())
    }

    /// Puts the changed folder in its place. Where nothing was changed, nothing is written.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::Replaced`] where another folder has come to its place;
    /// [`Error::Core`](crate::Error::Core). The folder is as it was, unless the step that failed says
    /// that the changed one is in its place: it may then not be on the disk yet, or something of the
    /// old one stays under a hidden name, which is the path of the error.
    pub fn commit(mut self) -> Result<Edited> {
        let Some(prepared) = self.prepared.take() else { return Ok(Edited::Unchanged) };
        let root = self.folder.path();
        let failed = |what| move |source| failed(root, what, source);
        if self.durability == Durability::Synced {
            prepared.sync(&self.written).map_err(failed("synchronising"))?;
        }
        #[cfg(unix)]
        self.lock.check_in_place()?;
        let new = prepared.folder.path();
        let moved = prepared.hidden.uninterrupted(|hidden| exchange(new, root, hidden));
        moved.map_err(failed("replacing"))?;
        if self.durability == Durability::Synced && cfg!(unix) {
            let parent = root.parent().unwrap_or(root);
            let synced = File::open(parent).and_then(|parent| parent.sync_all());
            synced.map_err(failed(UNSYNCED))?;
        }
        let hidden = prepared.hidden.path().to_owned();
        drop(prepared);
        // It is gone, or at least empty.
        match fs::remove_dir(&hidden) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(super::failed(&hidden, LEFT_OVER, error));
            }
            _ => {}
        }
        Ok(Edited::Updated { written: self.written.len(), removed: self.removed })
    }

    fn prepare(&mut self) -> Result<&Prepared> {
        let prepared = self.prepared.take();
        let prepared = prepared.map_or_else(|| Prepared::new(&self.folder), Ok)?;
        Ok(self.prepared.insert(prepared))
    }
}

impl Prepared {
    fn new(old: &Folder) -> Result<Self> {
        let beside = |source| failed(old.path(), BESIDE, source);
        let hidden = Hidden::folder(old.path()).map_err(beside)?;
        let new = hidden.path().join("new");
        fs::create_dir(&new).map_err(beside)?;
        let folder = Folder { limits: old.limits, ..Folder::of_path(&new).map_err(beside)? };
        let device = device_beside(old.path()).map_err(beside)?;
        let mut folders = vec![PathBuf::new()];
        while let Some(inside) = folders.pop() {
            for (name, is_folder) in old.taken_over(&inside, device)? {
                let path = inside.join(&name);
                let taken = if is_folder {
                    // Its own mode comes when it is complete.
                    fs::create_dir(new.join(&path))
                } else {
                    old.link(&folder, &inside, &name)
                };
                taken.map_err(|source| old.not_taken(&path, source))?;
                if is_folder {
                    folders.push(path);
                }
            }
            #[cfg(unix)]
            File::open(new.join(&inside))
                .and_then(|new| keep_metadata(&old.path().join(&inside), &new))
                .map_err(|source| old.not_taken(&inside, source))?;
        }
        let tree = Tree::open(&new).map_err(beside)?;
        Ok(Self { folder, tree, hidden })
    }

    /// Forces what is new to the disk.
    fn sync(&self, written: &BTreeSet<String>) -> io::Result<()> {
        for path in written {
            // What was written may have been removed since.
            match self.folder.open_file(Path::new(path)) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                file => file?.sync_all()?,
            }
        }
        let mut folders = vec![PathBuf::new()];
        while let Some(inside) = folders.pop() {
            let listed = self.folder.list(&inside)?.into_iter();
            folders.extend(
                listed.filter(|(_, is_folder)| *is_folder).map(|(name, _)| inside.join(name)),
            );
            #[cfg(unix)]
            File::open(self.folder.path().join(inside))?.sync_all()?;
        }
        Ok(())
    }
}

impl Folder {
    /// Refuses what [`FolderEdit::file`] refuses, for a dry run; returns where the file is to be, from
    /// the folder on and behind all links.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File), as there.
    pub fn check_file(&self, path: &str) -> Result<String> {
        let inside = self.place(path)?;
        check_content(&inside)?;
        match fs::metadata(self.path().join(&inside)) {
            Ok(found) if found.is_dir() => Err(fault(path, FileFault::Folder)),
            Ok(found) if found.permissions().readonly() => {
                Err(fault(path, FileFault::Io(ErrorKind::PermissionDenied.into())))
            }
            _ => Ok(inside),
        }
    }

    /// Returns where a file is to be, from the folder on: links are followed as they are there.
    fn place(&self, path: &str) -> Result<String> {
        match self.resolve(path)? {
            Some(inside) => Ok(text(&inside)),
            None => self.inside(path),
        }
    }

    /// Like [`place`](Self::place), but the last component is taken as it stands.
    fn inside(&self, path: &str) -> Result<String> {
        let checked = name::check(path, &self.limits);
        checked.map_err(|found| fault(path, FileFault::Name(found)))?;
        match path.rsplit_once('/') {
            Some((parent, name)) => Ok(format!("{}/{name}", self.place(parent)?)),
            None => Ok(path.to_owned()),
        }
    }

    /// Lists what an edit takes over from a folder, by a path without links; refuses what is mounted.
    fn taken_over(&self, inside: &Path, device: Device) -> Result<Vec<(OsString, bool)>> {
        let listed = self.list(inside).map_err(|source| self.not_taken(inside, source))?;
        let paths = listed.iter().map(|(name, _)| inside.join(name));
        let root = inside.as_os_str().is_empty().then(PathBuf::new);
        for path in root.into_iter().chain(paths) {
            let checked = self.check_not_mounted(&path, device);
            checked.map_err(|source| self.not_taken(&path, source))?;
        }
        Ok(listed.into_iter().filter(|(name, _)| !is_temporary(name)).collect())
    }

    fn not_taken(&self, inside: &Path, source: io::Error) -> Error {
        let root = self.path();
        let path = if inside.as_os_str().is_empty() { root.into() } else { root.join(inside) };
        failed(&path, "linking or copying", source)
    }

    /// Refuses what is mounted, or on another device than what is made: its content would go with
    /// the old folder.
    #[cfg(unix)]
    fn check_not_mounted(&self, inside: &Path, device: Device) -> io::Result<()> {
        use rustix::fs::{AtFlags, FileType, statat};
        let folder = self.open_folder(inside.parent().unwrap_or(Path::new("")))?;
        let name = inside.file_name().unwrap_or(OsStr::new("."));
        let found = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        // Not all file systems say the same of files as of folders. A file cannot be removed where
        // it is mounted.
        let is_mounted =
            FileType::from_raw_mode(found.st_mode) == FileType::Directory && found.st_dev != device;
        // A part of the same device has come from elsewhere.
        #[cfg(target_os = "linux")]
        let is_mounted = is_mounted || {
            use rustix::fs::{StatxAttributes, StatxFlags, statx};
            let found = statx(&folder, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
            found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
        };
        if is_mounted {
            let what = "it is a mount or a volume of its own, expected neither";
            return Err(io::Error::new(ErrorKind::CrossesDevices, what));
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn check_not_mounted(&self, _inside: &Path, (): Device) -> io::Result<()> {
        Ok(())
    }

    /// Refuses what [`link`](Self::link) refuses: where the system protects hard links, a file of
    /// somebody else that cannot be read.
    #[cfg(target_os = "linux")]
    fn check_link(&self, inside: &Path) -> io::Result<()> {
        use rustix::{
            fs::{AtFlags, FileType, statat},
            process::geteuid,
        };
        let folder = self.open_folder(inside.parent().unwrap_or(Path::new("")))?;
        let name = inside.file_name().unwrap_or_default();
        let found = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(found.st_mode);
        let user = geteuid();
        if kind == FileType::Symlink || user.is_root() || user.as_raw() == found.st_uid {
            return Ok(());
        }
        let protects = fs::read_to_string("/proc/sys/fs/protected_hardlinks");
        match protects.as_deref().map(str::trim) {
            Ok("1") if kind == FileType::RegularFile => self.open_file(inside).map(drop),
            Ok("1") => Err(ErrorKind::Unsupported.into()),
            _ => Ok(()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn check_link(&self, _inside: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Gives a file of this folder a second place in another, or copies it.
    #[cfg(unix)]
    fn link(&self, new: &Self, inside: &Path, name: &OsStr) -> io::Result<()> {
        use rustix::fs::{AtFlags, FileType, linkat, readlinkat, statat, symlinkat};
        let (from, to) = (self.open_folder(inside)?, new.open_folder(inside)?);
        if linkat(&from, name, &to, name, AtFlags::empty()).is_ok() {
            return Ok(());
        }
        let found = statat(&from, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => Ok(symlinkat(readlinkat(&from, name, Vec::new())?, &to, name)?),
            FileType::RegularFile => {
                let path = inside.join(name);
                let mut copy = File::create_new(new.path().join(&path))?;
                io::copy(&mut self.open_file(&path)?, &mut copy)?;
                keep_metadata(&self.path().join(path), &copy)?;
                copy.sync_all()
            }
            _ => Err(ErrorKind::Unsupported.into()),
        }
    }

    #[cfg(not(unix))]
    fn link(&self, new: &Self, inside: &Path, name: &OsStr) -> io::Result<()> {
        let [from, to] = [self, new].map(|folder| folder.path().join(inside).join(name));
        fs::hard_link(&from, &to).or_else(|_| fs::copy(from, to).map(drop))
    }
}

/// The device of a file.
#[cfg(unix)]
type Device = rustix::fs::Dev;
#[cfg(not(unix))]
type Device = ();

/// Returns the device that is written to where something is made beside a folder.
#[cfg(unix)]
fn device_beside(folder: &Path) -> io::Result<Device> {
    Ok(rustix::fs::stat(folder.parent().unwrap_or(folder))?.st_dev)
}

#[cfg(not(unix))]
fn device_beside(_folder: &Path) -> io::Result<Device> {
    Ok(())
}

/// Lets two folders change places; `hidden` is one that may hold what is on the way.
fn exchange(new: &Path, root: &Path, hidden: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        use rustix::{
            fs::{CWD, RenameFlags, renameat_with},
            io::Errno,
        };
        match renameat_with(CWD, new, CWD, root, RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            exchanged => return Ok(exchanged?),
        }
    }
    exchange_by_renaming(new, root, hidden)
}

/// Does it in two steps. What is in a folder `old` is put back where the second one never comes.
fn exchange_by_renaming(new: &Path, root: &Path, hidden: &Path) -> io::Result<()> {
    let old = hidden.join("old");
    fs::create_dir(&old)?;
    let old = old.join(root.file_name().unwrap_or_default());
    fs::rename(root, &old)?;
    fs::rename(new, root).inspect_err(|_| {
        // Where this fails too, it is put back when the folder is next edited.
        let _ = fs::rename(&old, root);
    })
}

const BESIDE: &str = "making another beside it";
const UNSYNCED: &str = "the changed folder is in its place, but synchronising the one around it";
const LEFT_OVER: &str = "the changed folder is in its place, but removing all of the old one";

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_mounted() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        let [of_root, of_proc, of_dir] =
            [Path::new("/x"), Path::new("/proc/x"), &dir.path().join("x")]
                .map(|path| device_beside(path).unwrap());
        let [root, dir] = [Path::new("/"), dir.path()].map(|path| Folder::open(path).unwrap());
        let error = root.check_not_mounted(Path::new("proc"), of_proc).unwrap_err();
        let expected = "it is a mount or a volume of its own, expected neither";
        assert_eq!(error.to_string(), expected);
        root.check_not_mounted(Path::new(""), of_root).unwrap_err();
        dir.check_not_mounted(Path::new("a/b"), of_dir).unwrap();
        dir.check_not_mounted(Path::new("a/b"), of_proc).unwrap_err();
    }

    /// A link to the folder leads to one and to the other while it is opened.
    #[cfg(unix)]
    #[test]
    fn what_is_locked_is_edited() {
        let dir = tempfile::tempdir().unwrap();
        let [link, next] = ["link", "next"].map(|name| dir.path().join(name));
        let switch = |target| {
            std::os::unix::fs::symlink(target, &next).unwrap();
            fs::rename(&next, &link).unwrap();
        };
        for name in ["a", "b"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        switch("a");
        // A process that another test starts holds the lock too, until it runs its program.
        let output = Output { wait: std::time::Duration::from_secs(10), ..Output::default() };
        std::thread::scope(|scope| {
            let edits = scope.spawn(|| {
                for _ in 0..500 {
                    let edit = FolderEdit::open(&link, output).unwrap();
                    assert_eq!(edit.folder.path(), edit.lock.path());
                }
            });
            while !edits.is_finished() {
                ["b", "a"].into_iter().for_each(switch);
            }
        });
    }

    #[test]
    fn exchanged_by_two_renames() {
        let dir = tempfile::tempdir().unwrap();
        let [root, hidden] = ["package", "hidden"].map(|name| dir.path().join(name));
        let new = hidden.join("new");
        for folder in [&root, &hidden, &new] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(root.join("old"), "").unwrap();
        exchange_by_renaming(&dir.path().join("none"), &root, &hidden).unwrap_err();
        assert!(root.join("old").exists());
        fs::remove_dir(hidden.join("old")).unwrap();
        exchange_by_renaming(&new, &root, &hidden).unwrap();
        assert!(hidden.join("old/package/old").exists() && !root.join("old").exists());
    }
}
