//! Folders that are read as archives are: nothing outside of them is.

pub(crate) mod edit;
pub(crate) mod new;
pub(crate) mod storage;
mod tree;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, File},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use tensor_core::{Limit, Limits, Source, output::is_temporary};

use crate::{Error, FileFault, Result, name};

/// A folder whose files are read as if they were entries of an archive.
///
/// Paths are checked as the names of entries are, and have `/` between their components. Symbolic
/// links are followed as long as they stay in the folder; one that leads out is refused, and so is
/// what is not a regular file. On Unix a file is opened component by component from the open
/// folder, and nothing through a link: to swap a folder or a file for a link while it is opened
/// leads nowhere. Hard links cannot be told from files.
///
/// # Examples
///
/// ```
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("weights"), [0; 64])?;
/// let folder = model_archive::Folder::open(folder.path())?;
/// assert_eq!(folder.file("weights")?.unwrap().len(), 64);
/// assert!(folder.file("../weights").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Folder {
    /// With every link resolved.
    root: PathBuf,
    limits: Limits,
    #[cfg(unix)]
    handle: std::sync::Arc<std::os::fd::OwnedFd>,
}

impl Folder {
    /// Opens a folder; nothing in it is read.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where it cannot be opened, or is not a folder.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::of_path(path).map_err(|source| failed(path, "opening", source))
    }

    /// Sets the ceilings on paths, and on how many files and folders may be listed.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns where it is, with every link resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Opens the file of a path, which is then read by position and only where it is asked for;
    /// `None` where nothing is there.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the path is unsafe, leads out of the folder, or is not that of a file;
    /// [`tensor_core::Error::Replaced`] where nothing is there since another folder has come to the
    /// place of this one.
    pub fn file(&self, path: &str) -> Result<Option<Source>> {
        let Some(inside) = self.find(path)? else { return self.check_in_place().map(|()| None) };
        let file = match self.open_file(&inside) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return self.check_in_place().map(|()| None);
            }
            // What had no link in it a moment ago has one now.
            Err(error) if is_swapped(&error) => return Err(fault(path, FileFault::Replaced)),
            Err(error) => return Err(fault(path, FileFault::Io(error))),
        };
        let metadata = file.metadata().map_err(|error| fault(path, FileFault::Io(error)))?;
        if !metadata.is_file() {
            return Err(fault(path, FileFault::Irregular));
        }
        Ok(Some(Source::from_file(file)?))
    }

    /// Tells whether [`file`](Self::file) finds a file.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.find(path).is_ok_and(|found| found.is_some())
    }

    /// Tells whether a path leads to a folder in this one.
    #[must_use]
    pub fn is_folder(&self, path: &str) -> bool {
        self.resolve(path)
            .is_ok_and(|found| found.is_some_and(|inside| self.root.join(inside).is_dir()))
    }

    /// Returns where a file is in the file system, links resolved; `None` where nothing is there.
    ///
    /// It is there as long as nobody puts something else in its place: [`file`](Self::file) does
    /// not depend on that, whoever opens this path does.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file).
    pub fn disk_path(&self, path: &str) -> Result<Option<PathBuf>> {
        Ok(self.find(path)?.map(|inside| self.root.join(inside)))
    }

    /// Returns the path that a symbolic link leads to, one step far; `None` where it is not a link,
    /// or leads out.
    #[must_use]
    pub fn target(&self, path: &str) -> Option<String> {
        name::check(path, &self.limits).ok()?;
        let link = self.root.join(path);
        let folder = link.parent()?.canonicalize().ok()?;
        folder.strip_prefix(&self.root).ok()?;
        let target = folder.join(fs::read_link(folder.join(link.file_name()?)).ok()?);
        let target = target.parent()?.canonicalize().ok()?.join(target.file_name()?);
        let parts = target.strip_prefix(&self.root).ok()?.iter();
        Some(parts.map(|part| part.to_str()).collect::<Option<Vec<_>>>()?.join("/"))
    }

    /// Returns the paths of all that is not a folder, sorted, without
    /// [what is not complete](is_temporary). Links to folders are not followed but are themselves
    /// listed; what is not UTF-8 in a name is replaced, and such a path finds nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where a folder cannot be listed, there is more in them than
    /// [`Limits::entries`], or another folder has come to the place of this one; [`Error::File`]
    /// where they lie deeper than [`Limits::name_components`].
    pub fn paths(&self) -> Result<Vec<String>> {
        let (mut paths, mut folders) = (BTreeSet::new(), vec![PathBuf::new()]);
        let mut found = 0_u64;
        while let Some(folder) = folders.pop() {
            self.check_depth(&folder)?;
            let listed = self.list(&folder);
            // An edit removes the folder that was here.
            self.check_in_place()?;
            let listed =
                listed.map_err(|source| failed(&self.root.join(&folder), "listing", source))?;
            found = found.saturating_add(listed.len() as u64);
            self.limits.check(Limit::Entries, "number of files and folders", found)?;
            for (name, is_folder) in listed {
                if is_temporary(&name) {
                    continue;
                }
                let path = folder.join(name);
                if is_folder {
                    folders.push(path);
                } else {
                    paths.insert(text(&path));
                }
            }
        }
        Ok(paths.into_iter().collect())
    }

    fn check_depth(&self, folder: &Path) -> Result<()> {
        let (components, limit) = (folder.iter().count() as u64, self.limits.name_components);
        if components <= limit {
            return Ok(());
        }
        Err(fault(&text(folder), FileFault::Name(name::NameFault::Deep { components, limit })))
    }

    /// Finds a file that is in this folder, and returns its path from there, links resolved.
    fn find(&self, path: &str) -> Result<Option<PathBuf>> {
        let Some(inside) = self.resolve(path)? else { return Ok(None) };
        let metadata = self.root.join(&inside).metadata();
        let metadata = metadata.map_err(|error| fault(path, FileFault::Io(error)))?;
        if metadata.is_dir() {
            return Err(fault(path, FileFault::Folder));
        }
        if !metadata.is_file() {
            return Err(fault(path, FileFault::Irregular));
        }
        Ok(Some(inside))
    }

    /// Checks a path and resolves its links; what is found is in this folder.
    fn resolve(&self, path: &str) -> Result<Option<PathBuf>> {
        name::check(path, &self.limits).map_err(|found| fault(path, FileFault::Name(found)))?;
        let found = match self.root.join(path).canonicalize() {
            Ok(found) => found,
            // Not a folder: one of the components is a file.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(fault(path, FileFault::Io(error))),
        };
        match found.strip_prefix(&self.root) {
            Ok(inside) => Ok(Some(inside.to_owned())),
            Err(_) => Err(fault(path, FileFault::Outside)),
        }
    }
}

#[cfg(unix)]
impl Folder {
    fn of_path(path: &Path) -> io::Result<Self> {
        use rustix::fs;
        let root = path.canonicalize()?;
        let handle = fs::openat(fs::CWD, &root, FOLDER, fs::Mode::empty())?;
        Ok(Self { root, limits: Limits::default(), handle: std::sync::Arc::new(handle) })
    }

    /// Proves that no other folder has come to the place of this one: what is not in it any more
    /// may be in that. A link there is not followed, so that nothing else is either.
    fn check_in_place(&self) -> Result<()> {
        use std::os::unix::fs::MetadataExt;
        match (fs::symlink_metadata(&self.root), rustix::fs::fstat(&self.handle)) {
            (Ok(there), Ok(ours)) if there.is_dir() && there.ino() != ours.st_ino => {
                Err(tensor_core::Error::Replaced { path: self.root.clone() }.into())
            }
            _ => Ok(()),
        }
    }

    /// Opens a file by a path without links.
    fn open_file(&self, inside: &Path) -> io::Result<File> {
        use rustix::fs;
        let (folder, name) = (inside.parent(), inside.file_name());
        let folder = self.open_folder(folder.unwrap_or(Path::new("")))?;
        let name = name.unwrap_or_default();
        Ok(fs::openat(&folder, name, FILE, fs::Mode::empty())?.into())
    }

    /// Opens a folder by a path without links.
    fn open_folder(&self, inside: &Path) -> io::Result<std::os::fd::OwnedFd> {
        use rustix::fs;
        let open = |at: &std::os::fd::OwnedFd, name: &std::ffi::OsStr| {
            fs::openat(at, name, FOLDER, fs::Mode::empty())
        };
        let mut names = inside.iter();
        let mut folder = match names.next() {
            Some(name) => open(&self.handle, name)?,
            None => self.handle.try_clone()?,
        };
        for name in names {
            folder = open(&folder, name)?;
        }
        Ok(folder)
    }

    /// Lists a folder by a path without links, and tells folders from everything else.
    fn list(&self, inside: &Path) -> io::Result<Vec<(OsString, bool)>> {
        use rustix::fs::{AtFlags, Dir, FileType, statat};
        use std::os::unix::ffi::OsStringExt;
        let folder = self.open_folder(inside)?;
        let mut listed = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let found = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(found.st_mode)
                }
                known => known,
            };
            let name = OsString::from_vec(name.to_bytes().to_vec());
            listed.push((name, kind == FileType::Directory));
        }
        Ok(listed)
    }
}

#[cfg(not(unix))]
impl Folder {
    fn of_path(path: &Path) -> io::Result<Self> {
        let root = path.canonicalize()?;
        if !root.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        Ok(Self { root, limits: Limits::default() })
    }

    /// Proves nothing: this system does not tell folders apart.
    fn check_in_place(&self) -> Result<()> {
        Ok(())
    }

    /// Opens a file by a path without links, and proves that it has none still.
    fn open_file(&self, inside: &Path) -> io::Result<File> {
        let path = self.root.join(inside);
        let file = File::open(&path)?;
        if path.canonicalize()? != path {
            return Err(ErrorKind::NotADirectory.into());
        }
        Ok(file)
    }

    /// Lists a folder by a path without links, and tells folders from everything else.
    fn list(&self, inside: &Path) -> io::Result<Vec<(OsString, bool)>> {
        let entries = fs::read_dir(self.root.join(inside))?;
        let listed = entries.map(|entry| {
            let entry = entry?;
            Ok((entry.file_name(), entry.file_type()?.is_dir()))
        });
        listed.collect()
    }
}

/// Refuses to write what would never be content: a path through a [hidden name](is_temporary).
fn check_content(path: &str) -> Result<()> {
    if path.split('/').any(|name| is_temporary(name.as_ref())) {
        return Err(fault(path, FileFault::Temporary));
    }
    Ok(())
}

fn fault(path: &str, fault: FileFault) -> Error {
    Error::File { path: path.to_owned(), fault }
}

fn failed(path: &Path, what: &'static str, source: io::Error) -> Error {
    tensor_core::Error::File { path: path.to_owned(), what, source }.into()
}

/// Tells whether a link, or something that is not a folder, stood where neither was looked for.
fn is_swapped(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return true;
    }
    error.kind() == ErrorKind::NotADirectory
}

fn text(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

#[cfg(unix)]
use tree::FOLDER;
/// A pipe that has come there since is not waited for.
#[cfg(unix)]
const FILE: rustix::fs::OFlags = rustix::fs::OFlags::RDONLY
    .union(rustix::fs::OFlags::NOFOLLOW)
    .union(rustix::fs::OFlags::NONBLOCK)
    .union(rustix::fs::OFlags::NOCTTY)
    .union(rustix::fs::OFlags::CLOEXEC);

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(outer: &Path) -> Folder {
        fs::create_dir_all(outer.join("root/sub")).unwrap();
        fs::write(outer.join("root/sub/file"), b"inside").unwrap();
        fs::create_dir(outer.join("other")).unwrap();
        fs::write(outer.join("other/file"), b"secret").unwrap();
        Folder::open(outer.join("root")).unwrap()
    }

    /// What is swapped between looking and opening: the path was found without links.
    #[test]
    fn what_is_swapped_for_a_link_is_not_opened() {
        let outer = tempfile::tempdir().unwrap();
        let (folder, root) = (folder(outer.path()), outer.path().join("root"));
        let inside = folder.find("sub/file").unwrap().unwrap();
        assert_eq!(folder.open_file(&inside).unwrap().metadata().unwrap().len(), 6);
        fs::remove_file(root.join("sub/file")).unwrap();
        symlink("../../other/file", root.join("sub/file")).unwrap();
        assert!(is_swapped(&folder.open_file(&inside).unwrap_err()));
        fs::remove_dir_all(root.join("sub")).unwrap();
        symlink("../other", root.join("sub")).unwrap();
        assert!(is_swapped(&folder.open_file(&inside).unwrap_err()));
        assert!(is_swapped(&folder.list(Path::new("sub")).unwrap_err()));
    }

    /// The folder itself is held open.
    #[test]
    fn the_folder_itself_is_swapped() {
        let outer = tempfile::tempdir().unwrap();
        let (folder, root) = (folder(outer.path()), outer.path().join("root"));
        let inside = folder.find("sub/file").unwrap().unwrap();
        fs::rename(&root, outer.path().join("moved")).unwrap();
        symlink("other", &root).unwrap();
        assert_eq!(folder.open_file(&inside).unwrap().metadata().unwrap().len(), 6);
        assert_eq!(folder.paths().unwrap(), ["sub/file"]);
        assert!(matches!(folder.file("file"), Err(Error::File { fault: FileFault::Outside, .. })));
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let outer = tempfile::tempdir().unwrap();
        let (folder, root) = (folder(outer.path()), outer.path().join("root"));
        let inside = folder.find("sub/file").unwrap().unwrap();
        fs::remove_file(root.join("sub/file")).unwrap();
        let path = root.join("sub/file");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if made.is_ok_and(|status| status.success()) {
            assert!(!folder.open_file(&inside).unwrap().metadata().unwrap().is_file());
        }
    }
}
