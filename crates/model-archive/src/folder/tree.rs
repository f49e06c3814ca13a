//! Files, folders and links below one folder, which nothing that is made here can leave.

use std::{fs::File, io, path::Path};

/// A folder that only takes new files. Paths have `/` between their components.
///
/// On Unix each folder on the way to a file is opened from the one above it, and none through a
/// symbolic link: to swap a folder for a link while it is written to leads nowhere.
#[derive(Debug)]
pub(crate) struct Tree {
    #[cfg(unix)]
    root: std::os::fd::OwnedFd,
    #[cfg(not(unix))]
    root: std::path::PathBuf,
}

/// Refuses a path with components that lead up, nowhere, or to another place on some system.
fn check(path: &str) -> io::Result<()> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
    if path.split('/').all(is_plain) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "path is not of plain components"))
}

/// Splits a path into the folder, which is empty for the root, and what is in it.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

#[cfg(unix)]
impl Tree {
    /// Opens a folder that is there.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let root = rustix::fs::openat(rustix::fs::CWD, root, FOLDER, rustix::fs::Mode::empty())?;
        Ok(Self { root })
    }

    /// Makes a folder and those that it lies in, unless they are there.
    pub(crate) fn add_folder(&self, path: &str) -> io::Result<()> {
        self.folder(path).map(drop)
    }

    /// Makes a file, and the folders that it lies in; nothing may be there under its name.
    pub(crate) fn add_file(&self, path: &str) -> io::Result<File> {
        check(path)?;
        let (folder, name) = split(path);
        let folder = self.folder(folder)?;
        Ok(rustix::fs::openat(&folder, name, NEW_FILE, FILE_MODE)?.into())
    }

    /// Makes a symbolic link, as [`add_file`](Self::add_file) makes a file.
    pub(crate) fn add_symlink(&self, path: &str, target: &str) -> io::Result<()> {
        check(path)?;
        let (folder, name) = split(path);
        Ok(rustix::fs::symlinkat(target, self.folder(folder)?, name)?)
    }

    /// Removes what is not a folder, or a symbolic link itself.
    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        check(path)?;
        let (folder, name) = split(path);
        Ok(rustix::fs::unlinkat(self.folder(folder)?, name, rustix::fs::AtFlags::empty())?)
    }

    /// Opens a folder, and makes those on the way that are not there.
    fn folder(&self, path: &str) -> io::Result<std::os::fd::OwnedFd> {
        use rustix::{fs, io::Errno};
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
pub(crate) const FOLDER: rustix::fs::OFlags = rustix::fs::OFlags::RDONLY
    .union(rustix::fs::OFlags::DIRECTORY)
    .union(rustix::fs::OFlags::NOFOLLOW)
    .union(rustix::fs::OFlags::CLOEXEC);
#[cfg(unix)]
const NEW_FILE: rustix::fs::OFlags = rustix::fs::OFlags::WRONLY
    .union(rustix::fs::OFlags::CREATE)
    .union(rustix::fs::OFlags::EXCL)
    .union(rustix::fs::OFlags::NOFOLLOW)
    .union(rustix::fs::OFlags::CLOEXEC);
/// The umask of the process takes away what it takes away.
#[cfg(unix)]
const FILE_MODE: rustix::fs::Mode = rustix::fs::Mode::from_raw_mode(0o644);
/// As for files.
#[cfg(unix)]
const FOLDER_MODE: rustix::fs::Mode = rustix::fs::Mode::from_raw_mode(0o755);

#[cfg(not(unix))]
impl Tree {
    /// Opens a folder that is there.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        Ok(Self { root: root.canonicalize()? })
    }

    /// Makes a folder and those that it lies in, unless they are there.
    pub(crate) fn add_folder(&self, path: &str) -> io::Result<()> {
        self.folder(path).map(drop)
    }

    /// Makes a file, and the folders that it lies in; nothing may be there under its name.
    pub(crate) fn add_file(&self, path: &str) -> io::Result<File> {
        check(path)?;
        let (folder, name) = split(path);
        File::create_new(self.folder(folder)?.join(name))
    }

    /// Makes a symbolic link, as [`add_file`](Self::add_file) makes a file.
    pub(crate) fn add_symlink(&self, path: &str, target: &str) -> io::Result<()> {
        check(path)?;
        let (folder, name) = split(path);
        let link = self.folder(folder)?.join(name);
        #[cfg(windows)]
        return std::os::windows::fs::symlink_file(target.replace('/', "\\"), link);
        #[cfg(not(windows))]
        return Err(io::Error::new(io::ErrorKind::Unsupported, format!("{link:?} to {target:?}")));
    }

    /// Removes what is not a folder, or a symbolic link itself.
    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        check(path)?;
        let (folder, name) = split(path);
        std::fs::remove_file(self.folder(folder)?.join(name))
    }

    /// Returns the path of a folder, and makes those on the way that are not there.
    fn folder(&self, path: &str) -> io::Result<std::path::PathBuf> {
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
