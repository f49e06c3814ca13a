//! Files, folders and links below one folder, which nothing that is made here can leave.

use std::{fs::File, io, path::Path};

#[cfg(unix)]
use rustix::{fs, io::Errno};

/// A folder that only takes new files. Paths have `/` between their components.
///
/// On Unix each folder on the way to a file is opened from the one above it, and none through a
/// symbolic link: to swap a folder for a link while it is written to leads nowhere.
#[derive(Debug)]
pub(crate) struct Tree {
    root: Handle,
}

#[cfg(unix)]
type Handle = std::os::fd::OwnedFd;
#[cfg(not(unix))]
type Handle = std::path::PathBuf;

/// Refuses a path with components that lead up, nowhere, or to another place on some system.
fn check(path: &str) -> io::Result<()> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
    if path.split('/').all(is_plain) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "path is not of plain components"))
}

impl Tree {
    /// Makes a folder and those that it lies in, unless they are there.
    pub(crate) fn add_folder(&self, path: &str) -> io::Result<()> {
        self.folder(path).map(drop)
    }

    /// Makes a file, and the folders that it lies in; nothing may be there under its name.
    pub(crate) fn add_file(&self, path: &str) -> io::Result<File> {
        let (folder, name) = self.place(path)?;
        create(&folder, name)
    }

    /// Makes a symbolic link, as [`add_file`](Self::add_file) makes a file.
    pub(crate) fn add_symlink(&self, path: &str, target: &str) -> io::Result<()> {
        let (folder, name) = self.place(path)?;
        link(&folder, name, target)
    }

    /// Removes what is not a folder, or a symbolic link itself.
    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        let (folder, name) = self.place(path)?;
        remove(&folder, name)
    }

    /// Returns the folder that a path leads to, made where it is not there, and what is in it.
    fn place<'p>(&self, path: &'p str) -> io::Result<(Handle, &'p str)> {
        check(path)?;
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.folder(folder)?, name))
    }
}

#[cfg(unix)]
impl Tree {
    /// Opens a folder that is there.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        Ok(Self { root: fs::openat(fs::CWD, root, FOLDER, fs::Mode::empty())? })
    }

    /// Opens a folder, and makes those on the way that are not there.
    fn folder(&self, path: &str) -> io::Result<Handle> {
        let mut folder = self.root.try_clone()?;
        if path.is_empty() {
            return Ok(folder);
        }
        check(path)?;
        for name in path.split('/') {
            let open = || fs::openat(&folder, name, FOLDER, fs::Mode::empty());
            folder = match open() {
                Err(Errno::NOENT) => match fs::mkdirat(&folder, name, FOLDER_MODE) {
                    // Another thread may have been faster.
                    Ok(()) | Err(Errno::EXIST) => open(),
                    Err(error) => Err(error),
                },
                opened => opened,
            }?;
        }
        Ok(folder)
    }
}

#[cfg(unix)]
fn create(folder: &Handle, name: &str) -> io::Result<File> {
    let new = fs::OFlags::WRONLY | fs::OFlags::CREATE | fs::OFlags::EXCL;
    let flags = new | fs::OFlags::NOFOLLOW | fs::OFlags::CLOEXEC;
    Ok(fs::openat(folder, name, flags, FILE_MODE)?.into())
}

#[cfg(unix)]
fn link(folder: &Handle, name: &str, target: &str) -> io::Result<()> {
    Ok(fs::symlinkat(target, folder, name)?)
}

#[cfg(unix)]
fn remove(folder: &Handle, name: &str) -> io::Result<()> {
    Ok(fs::unlinkat(folder, name, fs::AtFlags::empty())?)
}

#[cfg(unix)]
pub(crate) const FOLDER: fs::OFlags = fs::OFlags::RDONLY
    .union(fs::OFlags::DIRECTORY)
    .union(fs::OFlags::NOFOLLOW)
    .union(fs::OFlags::CLOEXEC);
/// The umask of the process takes away what it takes away.
#[cfg(unix)]
const FILE_MODE: fs::Mode = fs::Mode::from_raw_mode(0o644);
/// As for files.
#[cfg(unix)]
const FOLDER_MODE: fs::Mode = fs::Mode::from_raw_mode(0o755);

#[cfg(not(unix))]
impl Tree {
    /// Opens a folder that is there.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        Ok(Self { root: root.canonicalize()? })
    }

    /// Returns the path of a folder, and makes those on the way that are not there.
    fn folder(&self, path: &str) -> io::Result<Handle> {
        let mut folder = self.root.clone();
        if path.is_empty() {
            return Ok(folder);
        }
        check(path)?;
        for name in path.split('/') {
            folder.push(name);
            match std::fs::create_dir(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            // A name that means another place to the system, or a link, shows here.
            folder = folder.canonicalize()?;
            if !folder.starts_with(&self.root) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "path leads elsewhere"));
            }
        }
        Ok(folder)
    }
}

#[cfg(not(unix))]
fn create(folder: &Handle, name: &str) -> io::Result<File> {
    File::create_new(folder.join(name))
}

#[cfg(not(unix))]
fn link(folder: &Handle, name: &str, target: &str) -> io::Result<()> {
    let link = folder.join(name);
    #[cfg(windows)]
    return std::os::windows::fs::symlink_file(target.replace('/', "\\"), link);
    #[cfg(not(windows))]
    return Err(io::Error::new(io::ErrorKind::Unsupported, format!("{link:?} to {target:?}")));
}

#[cfg(not(unix))]
fn remove(folder: &Handle, name: &str) -> io::Result<()> {
    std::fs::remove_file(folder.join(name))
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;

    /// Returns the paths of all that is below a folder.
    fn walk(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![folder.to_owned()];
        while let Some(next) = open.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                found.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
                if fs::symlink_metadata(&path).unwrap().is_dir() {
                    open.push(path);
                }
            }
        }
        found.sort();
        found
    }

    fn tree(outer: &Path) -> Tree {
        let root = outer.join("root");
        fs::create_dir(&root).unwrap();
        Tree::open(&root).unwrap()
    }

    #[test]
    fn files_and_folders() {
        let outer = tempfile::tempdir().unwrap();
        let tree = tree(outer.path());
        tree.add_file("a").unwrap().write_all(b"content").unwrap();
        tree.add_file("b/c/d").unwrap();
        tree.add_folder("b/c").unwrap();
        tree.add_folder("b/e").unwrap();
        let expected =
            ["root", "root/a", "root/b", "root/b/c", "root/b/c/d", "root/b/e"].map(String::from);
        assert_eq!(walk(outer.path()), expected);
        assert_eq!(fs::read(outer.path().join("root/a")).unwrap(), b"content");
    }

    #[test]
    fn paths_that_lead_elsewhere() {
        let outer = tempfile::tempdir().unwrap();
        let tree = tree(outer.path());
        for path in ["", "..", "../a", "/a", "a/../../b", "a/..", "./a", "a//b", "a/", "a\\b", "\0"]
        {
            let kind = |result: io::Result<()>| result.unwrap_err().kind();
            let refused = io::ErrorKind::InvalidInput;
            assert_eq!(kind(tree.add_file(path).map(drop)), refused, "{path:?}");
            assert_eq!(kind(tree.add_symlink(path, "x")), refused, "{path:?}");
            if !path.is_empty() {
                assert_eq!(kind(tree.add_folder(path)), refused, "{path:?}");
            }
        }
        assert_eq!(walk(outer.path()), ["root"]);
    }

    #[test]
    fn nothing_is_replaced() {
        let outer = tempfile::tempdir().unwrap();
        let tree = tree(outer.path());
        tree.add_file("a").unwrap().write_all(b"first").unwrap();
        let exists = io::ErrorKind::AlreadyExists;
        assert_eq!(tree.add_file("a").unwrap_err().kind(), exists);
        #[cfg(unix)]
        assert_eq!(tree.add_symlink("a", "b").unwrap_err().kind(), exists);
        tree.add_file("a/b").unwrap_err();
        assert_eq!(fs::read(outer.path().join("root/a")).unwrap(), b"first");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_written_through() {
        let outer = tempfile::tempdir().unwrap();
        let tree = tree(outer.path());
        fs::write(outer.path().join("passwd"), b"old").unwrap();
        tree.add_symlink("folder", "..").unwrap();
        tree.add_symlink("file", "../passwd").unwrap();
        tree.add_symlink("dangling", "../new").unwrap();
        for path in ["folder/passwd", "folder/new", "file", "dangling", "folder/x/y"] {
            tree.add_file(path).unwrap_err();
            tree.add_folder(path).unwrap_err();
        }
        let expected = ["passwd", "root", "root/dangling", "root/file", "root/folder"];
        assert_eq!(walk(outer.path()), expected);
        assert_eq!(fs::read(outer.path().join("passwd")).unwrap(), b"old");
    }
}
