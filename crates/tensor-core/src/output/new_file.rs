use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{
    aside::Aside,
    blocks::Blocks,
    hidden::{Hidden, sweep_beside},
    keep::{check_folder, check_replaceable, check_writable, keep_metadata},
    options::{Durability, Existing, Output, file_error, folder, in_place},
};
use crate::{Result, Source, source::refuse_irregular};

impl Output {
    /// Starts a file that will stand at `path`; nothing is there until [`commit`](NewFile::commit).
    ///
    /// Where `path` is a symbolic link to a file, that file is replaced and the link stays. Other
    /// hard links of a replaced file keep its old content. Until it takes the place of another,
    /// only the owner can read the new file.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) where the folder is not there or does not let a file be
    /// created, where `path` is a link that leads nowhere, and where a file is there that nobody,
    /// or not the caller, may write to; [`Error::NotAFile`](crate::Error::NotAFile).
    pub fn create(self, path: impl AsRef<Path>) -> Result<NewFile> {
        NewFile::start(path.as_ref(), self, true)
    }

    /// Like [`create`](Self::create), but sweeps nothing: for a dry run that looks at what would be
    /// written.
    ///
    /// # Errors
    ///
    /// As for [`create`](Self::create).
    pub fn dry_run(self, path: impl AsRef<Path>) -> Result<NewFile> {
        NewFile::start(path.as_ref(), self, false)
    }

    /// Refuses what [`create`](Self::create) refuses, for a dry run: nothing is made, nor swept.
    ///
    /// # Errors
    ///
    /// As for [`create`](Self::create).
    pub fn check_create(self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let existing = self.look_at(path)?;
        let target = existing.as_deref().unwrap_or(path);
        check_folder(folder(target))
            .map_err(|source| file_error(path, "creation", why_not(target, source)))
    }

    /// Returns the file that would be replaced, behind all links.
    fn look_at(self, path: &Path) -> Result<Option<PathBuf>> {
        let existing = match path.canonicalize() {
            Ok(existing) => existing,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                // `new/` and `new/.` have the file name `new`.
                let (all, name) = (path.as_os_str().as_encoded_bytes(), path.file_name());
                if name.is_some_and(|name| all.ends_with(name.as_encoded_bytes())) {
                    return Ok(None);
                }
                let kind = io::ErrorKind::NotADirectory;
                let error = io::Error::new(kind, "it is the path of a folder, which is not there");
                return Err(file_error(path, "creation", error));
            }
            Err(error) => return Err(file_error(path, "creation", why_not(path, error))),
        };
        let failed = |source| file_error(path, "opening for writing", source);
        refuse_irregular(path, &fs::metadata(&existing).map_err(failed)?)?;
        if self.existing == Existing::Replace {
            check_writable(&existing)
                .and_then(|()| check_replaceable(&existing))
                .map_err(failed)?;
        }
        Ok(Some(existing))
    }
}

/// A file in the making, which stands nowhere until [`commit`](Self::commit), and is gone when it
/// is dropped before.
///
/// On Linux it has no name until then, so that a process which is killed leaves nothing; only the
/// moment in which it takes the place of another it has a [hidden](super::is_temporary) one beside
/// it. Elsewhere, and on file systems that do not have such files, it has that from the start. What a
/// dead process left of these is [swept](super::sweep) when the next file is made in the folder.
#[derive(Debug)]
pub struct NewFile {
    /// As it was given.
    path: PathBuf,
    /// The file behind it, where that is a link.
    target: PathBuf,
    /// Gone once the file is in its place.
    file: Option<Blocks>,
    /// Where it is, if anywhere.
    hidden: Option<Hidden>,
    durability: Durability,
    written: u64,
}

impl NewFile {
    fn start(path: &Path, output: Output, sweeps: bool) -> Result<Self> {
        let existing = output.look_at(path)?;
        let target = existing.as_deref().unwrap_or(path);
        // A file that takes the place of another gets its mode at the end. For any other the umask
        // of the process takes away what it takes away.
        let mode = if existing.is_some() { 0o600 } else { 0o666 };
        if sweeps {
            sweep_beside(target);
        }
        let (hidden, file) = make(target, mode)
            .map_err(|source| file_error(path, "creation", why_not(target, source)))?;
        let file = Some(Blocks::new(file));
        let (path, target) = (path.to_owned(), target.to_owned());
        Ok(Self { path, target, file, hidden, durability: output.durability, written: 0 })
    }

    /// Closes the file until it is [committed](Self::commit), for which `aside` has to be there still;
    /// what is written meanwhile fails. One for another file system than that of `aside` stays open.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) where not all can be written.
    pub fn set_aside(&mut self, aside: &Aside) -> Result<()> {
        self.flush().map_err(|source| file_error(&self.path, "writing", source))?;
        let Some(file) = &self.file else { return Ok(()) };
        let moved = aside.take(|path| match &self.hidden {
            Some(hidden) => fs::rename(hidden.path(), path),
            None => link_unnamed(file.file(), path),
        });
        if let Ok(path) = moved {
            (self.hidden, self.file) = (Some(Hidden::inside(path)), None);
        }
        Ok(())
    }

    /// Puts the file in its place; what is written afterwards fails.
    ///
    /// One that takes the place of another keeps what [`keep_metadata`] says.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) that names the step. The target is as it was before, but
    /// where the last step fails, "synchronising the folder": the new file is then in its place, and
    /// may not be on the disk yet.
    pub fn commit(&mut self, existing: Existing) -> Result<()> {
        let (path, target) = (self.path.as_path(), self.target.as_path());
        let failed = |what| move |source| file_error(path, what, source);
        let file = match (self.file.take(), &self.hidden) {
            (Some(file), _) => file.into_file(),
            (None, Some(aside)) => File::options().read(true).write(true).open(aside.path()),
            (None, None) => Err(committed()),
        };
        let file = file.map_err(failed("writing"))?;
        if existing == Existing::Replace && target.exists() {
            keep_metadata(target, &file).map_err(failed("keeping permissions"))?;
        }
        if self.durability == Durability::Synced {
            file.sync_all().map_err(failed("synchronising"))?;
        }
        match self.hidden.take() {
            Some(hidden) => hidden.place(target, existing),
            None => place_unnamed(&file, target, existing),
        }
        .map_err(failed("renaming"))?;
        // A source may hold it open longer.
        let _ = file.unlock();
        if self.durability == Durability::Synced {
            let synced = sync_folder(target).map_err(|error| in_place(&error));
            synced.map_err(failed("synchronising the folder"))?;
        }
        Ok(())
    }

    /// Returns a source over what was written so far, to be looked at before it is put in its
    /// place.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File).
    pub fn source(&mut self) -> Result<Source> {
        let file = self.file.as_mut().ok_or_else(committed).and_then(|file| {
            file.flush()?;
            file.file().try_clone()
        });
        Source::from_file(file.map_err(|source| file_error(&self.path, "writing", source))?)
    }

    /// Returns how many bytes were written so far.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.as_mut().ok_or_else(committed)?.write(bytes)?;
        self.written = self.written.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().ok_or_else(committed)?.flush()
    }
}

/// Makes a file without a name where there are such, else one with a hidden name.
fn make(target: &Path, mode: u32) -> io::Result<(Option<Hidden>, File)> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(file) = make_unnamed(target, mode) {
        return Ok((None, file));
    }
    let (hidden, file) = Hidden::file(target, mode)?;
    Ok((Some(hidden), file))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn make_unnamed(target: &Path, mode: u32) -> Option<File> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, folder(target), flags, Mode::from_raw_mode(mode)).ok()?);
    // Its name comes from there.
    fs::metadata(handle_path(&file)).ok()?;
    // Held while it has a hidden name.
    let _ = file.lock();
    Some(file)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn handle_path(file: &File) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn place_unnamed(file: &File, target: &Path, existing: Existing) -> io::Result<()> {
    super::hidden::place_unnamed(target, existing, |path| link_unnamed(file, path))
}

/// Gives a file without a name one.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn link_unnamed(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, handle_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn place_unnamed(_: &File, _: &Path, _: Existing) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn link_unnamed(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Says what is in the way of a file better than the system does.
fn why_not(target: &Path, error: io::Error) -> io::Error {
    let folder = folder(target);
    let reason = match fs::read_link(target) {
        _ if error.kind() != io::ErrorKind::NotFound => return error,
        Ok(link) => format!("it is a symbolic link to {link:?}, which is not there"),
        Err(_) if !folder.exists() => format!("there is no folder {folder:?}"),
        Err(_) => return error,
    };
    io::Error::new(error.kind(), reason)
}

fn committed() -> io::Error {
    io::Error::other("the file is in its place already")
}

/// Makes the entry of a file in its folder durable.
fn sync_folder(target: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    File::open(folder(target))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Chain, Error, Extent,
        output::{
            LockedFile,
            hidden::leads_to,
            options::{names, new_file},
        },
    };

    /// A folder with a file in it, and the path of that.
    fn old() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.zt");
        fs::write(&target, b"old").unwrap();
        (folder, target)
    }

    #[test]
    fn dropped_before_commit_leaves_nothing() {
        let (folder, target) = old();
        let mut file = new_file(&target, Durability::Cached).unwrap();
        file.write_all(b"half of the new").unwrap();
        file.flush().unwrap();
        drop(file);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["model.zt"]);
    }

    #[test]
    fn commit_replaces_whole() {
        let (folder, target) = old();
        let mut file = new_file(&target, Durability::Synced).unwrap();
        file.write_all(b"new").unwrap();
        file.commit(Existing::Replace).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["model.zt"]);
    }

    #[test]
    fn existing_file_is_kept_when_asked() {
        let (_folder, target) = old();
        let mut file = new_file(&target, Durability::Cached).unwrap();
        let error = file.commit(Existing::Keep).unwrap_err();
        assert!(error.to_string().ends_with("renaming failed"), "{error}");
        assert_eq!(fs::read(&target).unwrap(), b"old");
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_those_of_the_replaced_file() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, target) = old();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        let mut file = new_file(&target, Durability::Cached).unwrap();
        file.commit(Existing::Replace).unwrap();
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn private_files_are_private_while_written() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, target) = old();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        let mut file = new_file(&target, Durability::Cached).unwrap();
        let open = file.file.as_ref().unwrap().file().try_clone().unwrap();
        let mode = || open.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        file.commit(Existing::Replace).unwrap();
        assert_eq!((mode(), leads_to(&target, &open).unwrap()), (0o600, true));
    }

    #[cfg(unix)]
    #[test]
    fn new_files_have_the_mode_of_any_other() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let [ours, other] = ["model.zt", "other"].map(|name| folder.path().join(name));
        fs::write(&other, b"").unwrap();
        new_file(&ours, Durability::Cached).unwrap().commit(Existing::Replace).unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&other));
    }

    #[cfg(unix)]
    #[test]
    fn the_file_behind_a_link_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("model.zt"), folder.path().join("link.zt"));
        fs::write(&target, b"old").unwrap();
        std::os::unix::fs::symlink("model.zt", &link).unwrap();
        let mut file = new_file(&link, Durability::Synced).unwrap();
        file.write_all(b"new").unwrap();
        file.commit(Existing::Replace).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("none/model.zt");
        let error = new_file(&target, Durability::Cached).unwrap_err();
        let missing = folder.path().join("none");
        let expected = format!("{target:?}: creation failed: there is no folder {missing:?}");
        assert_eq!(Chain(&error).to_string(), expected);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_nowhere_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link.zt");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let error = new_file(&link, Durability::Cached).unwrap_err();
        let reason = "it is a symbolic link to \"nowhere\", which is not there";
        assert_eq!(Chain(&error).to_string(), format!("{link:?}: creation failed: {reason}"));
    }

    #[test]
    fn what_is_no_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let error = new_file(folder.path(), Durability::Cached).unwrap_err();
        assert!(matches!(error, Error::NotAFile { found: "a folder", .. }), "{error}");
    }

    #[test]
    fn read_only_files_are_not_replaced() {
        let (_folder, target) = old();
        let mut permissions = fs::metadata(&target).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&target, permissions).unwrap();
        for error in [
            new_file(&target, Durability::Cached).unwrap_err(),
            LockedFile::open(&target).unwrap_err(),
        ] {
            let Error::File { what, source, .. } = error else { panic!("{error}") };
            let expected = ("opening for writing", io::ErrorKind::PermissionDenied);
            assert_eq!((what, source.kind()), expected);
        }
        let kept = Output { existing: Existing::Keep, ..Output::default() };
        let error = kept.create(&target).unwrap().commit(Existing::Keep).unwrap_err();
        assert!(error.to_string().ends_with("renaming failed"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_created_is_known_before() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        fs::create_dir(&folder).unwrap();
        for (path, mode) in [("file", 0o600), ("read_only", 0o400), ("folder/file", 0o600)] {
            fs::write(dir.path().join(path), b"old").unwrap();
            fs::set_permissions(dir.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
        fs::write(dir.path().join(".file.dead00.modelcrate"), b"").unwrap();
        // Root may write there all the same.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
        let mut answers = Vec::new();
        for path in ["new", "file", "read_only", "link", "folder", "none/new", "file/new"]
            .into_iter()
            .chain(["folder/file", "folder/new", "new/", "new/.", "new//"])
        {
            let path = dir.path().join(path);
            for existing in [Existing::Replace, Existing::Keep] {
                let output = Output { existing, ..Output::default() };
                let answer = output.check_create(&path).map_err(|error| Chain(&error).to_string());
                let dry = output.dry_run(&path).map(drop);
                let dry = dry.map_err(|error| Chain(&error).to_string());
                assert_eq!(dry, answer);
                let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"new/");
                assert!(!is_folder || answer.is_err());
                answers.push((path.clone(), output, answer));
            }
        }
        // Nothing is swept before.
        assert!(names(dir.path()).contains(&".file.dead00.modelcrate".to_owned()));
        for (path, output, expected) in answers {
            let created = output.create(&path).map(drop);
            assert_eq!(created.map_err(|error| Chain(&error).to_string()), expected);
        }
    }

    #[test]
    fn what_was_written_can_be_read_before() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model.zt");
        let mut file = new_file(&target, Durability::Cached).unwrap();
        file.write_all(b"new").unwrap();
        let source = file.source().unwrap();
        assert_eq!(source.read(Extent::first(3), "all").unwrap(), "new");
        assert!(!target.exists());
        file.commit(Existing::Keep).unwrap();
        // The lock has gone with the name, though the source is still there.
        LockedFile::open(&target).unwrap();
        drop(source);
    }

    /// As on systems that have no files without names.
    fn with_hidden_name(target: &Path) -> NewFile {
        let mut file = new_file(target, Durability::Synced).unwrap();
        let (hidden, handle) = Hidden::file(target, 0o600).unwrap();
        (file.hidden, file.file) = (Some(hidden), Some(Blocks::new(handle)));
        file.write_all(b"new").unwrap();
        file
    }

    #[test]
    fn hidden_names_come_and_go() {
        let (folder, target) = old();
        let mut kept = with_hidden_name(&target);
        kept.commit(Existing::Keep).unwrap_err();
        drop((kept, with_hidden_name(&target)));
        assert_eq!(names(folder.path()), ["model.zt"]);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        let mut file = with_hidden_name(&target);
        assert_eq!(names(folder.path()).len(), 2);
        file.commit(Existing::Replace).unwrap();
        assert_eq!(names(folder.path()), ["model.zt"]);
        assert_eq!(fs::read(&target).unwrap(), b"new");
        let other = folder.path().join("other.zt");
        with_hidden_name(&other).commit(Existing::Keep).unwrap();
        assert_eq!(fs::read(other).unwrap(), b"new");
    }

    #[test]
    fn files_that_wait_are_closed_and_whole() {
        let (folder, target) = old();
        let other = folder.path().join("other.zt");
        let aside = Aside::create(folder.path()).unwrap();
        let unnamed = |target: &Path| new_file(target, Durability::Synced).unwrap();
        for make in [unnamed, with_hidden_name] {
            let mut files = [&target, &other].map(|path| make(path));
            for file in &mut files {
                file.write_all(b" and more").unwrap();
                file.set_aside(&aside).unwrap();
                assert!(file.file.is_none());
                file.write_all(b"late").unwrap_err();
            }
            assert_eq!(names(folder.path()).len(), 2);
            let [mut first, mut second] = files;
            second.commit(Existing::Keep).unwrap();
            second.commit(Existing::Keep).unwrap_err();
            first.commit(Existing::Keep).unwrap_err();
            assert_eq!(fs::read(&target).unwrap(), b"old");
            assert!(fs::read(&other).unwrap().ends_with(b" and more"));
            fs::remove_file(&other).unwrap();
        }
        let mut replacing = with_hidden_name(&target);
        replacing.set_aside(&aside).unwrap();
        let mut dropped = with_hidden_name(&other);
        dropped.set_aside(&aside).unwrap();
        replacing.commit(Existing::Replace).unwrap();
        drop((dropped, aside));
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["model.zt"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_has_a_name_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = new_file(folder.path().join("model.zt"), Durability::Cached).unwrap();
        if file.hidden.is_none() {
            assert_eq!(names(folder.path()), Vec::<String>::new());
        }
    }
}
