//! Removing what has a hidden name, and nothing else: by handles, through no link, and never what
//! is mounted there.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::{
        fd::AsFd,
        unix::{
            ffi::OsStrExt,
            fs::{MetadataExt, PermissionsExt},
        },
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, renameat, statat, unlinkat},
    io::Errno,
};

use super::{
    hidden::{hides, leads_to},
    options::folder,
};

/// Removes what has a hidden name; puts back first the folder that was moved into it, out of a place
/// where nothing has come since.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let (parent, name) = place(path)?;
    match unlinkat(&parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {
            remove_folder(&parent, name, &open_folder(&parent, name)?)
        }
        removed => Ok(removed?),
    }
}

/// Removes what a dead process has left under a hidden name; a folder only where it is the caller's,
/// and has nothing in it that is not of ours.
pub(super) fn sweep_away(path: &Path) -> io::Result<()> {
    let (parent, name) = place(path)?;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(&parent, name, flags, Mode::empty())?);
    if file.try_lock().is_err() || !leads_to(path, &file)? {
        return Ok(());
    }
    let found = file.metadata()?;
    if found.is_file() {
        return Ok(unlinkat(&parent, name, AtFlags::empty())?);
    }
    let is_ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    if is_ours && all(&file, |name| Ok(matches!(name.as_bytes(), b"new" | b"old")))? {
        remove_folder(&parent, name, &file)?;
    }
    Ok(())
}

fn remove_folder(parent: &File, name: &OsStr, hidden: &File) -> io::Result<()> {
    let mount = Mount::of(parent)?;
    mount.check(hidden)?;
    put_back(parent, name, hidden, mount)?;
    empty(hidden, mount)?;
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// Puts a folder back into its place. Where it is not known to be ours, everything stays.
fn put_back(parent: &File, hidden: &OsStr, folder: &File, mount: Mount) -> io::Result<()> {
    let old = match open_folder(folder, OsStr::new("old")) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        old => old?,
    };
    mount.check(&old)?;
    let is_ours = old.metadata()?.uid() == folder.metadata()?.uid();
    let put_back = |name: &OsStr| {
        let found = statat(&old, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if !(is_ours && is_folder && hides(hidden, name)) {
            return Ok(false);
        }
        match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            // A folder takes the place of nothing but an empty one.
            Err(Errno::NOENT) => renameat(&old, name, parent, name)?,
            found => drop(found?),
        }
        Ok(true)
    };
    if all(&old, put_back)? { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Removes everything in a folder. Files may have other names elsewhere, so their modes stay.
fn empty(folder: &File, mount: Mount) -> io::Result<()> {
    let mode = folder.metadata()?.mode();
    if mode & 0o700 != 0o700 {
        // Where this fails, so does what comes.
        let _ = folder.set_permissions(fs::Permissions::from_mode(mode & 0o7777 | 0o700));
    }
    let remove = |name: &OsStr| {
        match unlinkat(folder, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {}
            removed => return Ok(removed.map(|()| true)?),
        }
        let inner = open_folder(folder, name)?;
        mount.check(&inner)?;
        empty(&inner, mount)?;
        unlinkat(folder, name, AtFlags::REMOVEDIR)?;
        Ok(true)
    };
    all(folder, remove).map(drop)
}

/// Tells whether something holds for all names in a folder; stops at the first for which it does
/// not.
fn all(folder: &File, mut holds: impl FnMut(&OsStr) -> io::Result<bool>) -> io::Result<bool> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") && !holds(OsStr::from_bytes(name))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Opens the folder that a path lies in; returns the name in it, too.
fn place(path: &Path) -> io::Result<(File, &OsStr)> {
    Ok((File::open(folder(path))?, path.file_name().unwrap_or_default()))
}

fn open_folder(folder: impl AsFd, name: &OsStr) -> Result<File, Errno> {
    let flags = OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty()).map(File::from)
}

/// What tells file systems apart, and a part of one that is mounted elsewhere from the rest.
#[derive(Clone, Copy, PartialEq)]
struct Mount {
    device: u64,
    id: Option<u64>,
}

impl Mount {
    fn of(folder: &File) -> io::Result<Self> {
        Ok(Self { device: folder.metadata()?.dev(), id: mount_id(folder) })
    }

    fn check(self, folder: &File) -> io::Result<()> {
        if Self::of(folder)? == self { Ok(()) } else { Err(io::ErrorKind::CrossesDevices.into()) }
    }
}

#[cfg(target_os = "linux")]
fn mount_id(folder: &File) -> Option<u64> {
    use rustix::fs::{StatxFlags, statx};
    let found = statx(folder, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
    let is_told = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    is_told.then_some(found.stx_mnt_id)
}

/// Others have no name for it.
#[cfg(not(target_os = "linux"))]
fn mount_id(_: &File) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use std::{
        env,
        os::unix::{
            fs::{chown, symlink},
            process::CommandExt,
        },
        path::PathBuf,
        process::Command,
    };

    use super::*;
    use crate::output::{options::names, sweep};

    const HIDDEN: &str = ".model.zt.dead00.modelcrate";

    #[test]
    fn nothing_is_moved_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let [secret, repo] = ["secret", "repo"].map(|name| dir.path().join(name));
        fs::create_dir_all(secret.join("model.zt")).unwrap();
        fs::write(secret.join("id_rsa"), "").unwrap();
        fs::create_dir_all(repo.join(HIDDEN)).unwrap();
        symlink("../../secret", repo.join(HIDDEN).join("old")).unwrap();
        sweep(&repo);
        assert_eq!(names(&repo), [""; 0]);
        assert_eq!(names(&secret), ["id_rsa", "model.zt"]);
    }

    #[test]
    fn only_the_folder_of_that_name_is_put_back() {
        for (inside, is_folder) in
            [("old/id_rsa", true), ("old/model.zt", false), ("new/a", false), ("other", true)]
        {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(HIDDEN).join(inside);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if is_folder { fs::create_dir(&path) } else { fs::write(&path, "") }.unwrap();
            sweep(dir.path());
            if inside == "new/a" {
                assert_eq!(names(dir.path()), [""; 0]);
            } else {
                assert_eq!(names(dir.path()), [HIDDEN]);
                assert!(path.exists(), "{inside}");
            }
        }
    }

    #[test]
    fn folders_of_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let hidden = dir.path().join(HIDDEN);
        fs::create_dir_all(hidden.join("old/model.zt")).unwrap();
        if chown(&hidden, Some(1000), None).is_err() {
            return eprintln!("skipped: only root gives folders away");
        }
        sweep(dir.path());
        assert!(hidden.join("old/model.zt").exists());
        // One of ours, but not what is in it.
        chown(&hidden, Some(0), None).unwrap();
        chown(hidden.join("old"), Some(1000), None).unwrap();
        sweep(dir.path());
        assert!(hidden.join("old/model.zt").exists());
    }

    /// In a process of its own, with the rights of anybody.
    #[test]
    fn sweeps_where_it_is_told() {
        if let Some(dir) = env::var_os(TOLD) {
            sweep(Path::new(&dir));
        }
    }

    fn told(command: &mut Command, dir: &Path) -> bool {
        command.args(["--exact", "output::remove::tests::sweeps_where_it_is_told"]);
        command.env(TOLD, dir).output().is_ok_and(|output| output.status.success())
    }

    #[test]
    fn read_only_folders_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let hidden = dir.path().join(HIDDEN);
        let locked: PathBuf = hidden.join("new/read/only");
        fs::create_dir_all(&locked).unwrap();
        fs::write(locked.join("a"), "").unwrap();
        fs::write(dir.path().join("kept"), "").unwrap();
        fs::hard_link(dir.path().join("kept"), locked.join("b")).unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(&dir.path().join("kept"), 0o444);
        let mut command = Command::new(env::current_exe().unwrap());
        if rustix::process::geteuid().is_root() {
            for path in [&locked, &hidden.join("new/read"), &hidden.join("new"), &hidden] {
                chown(path, Some(1000), Some(1000)).unwrap();
            }
            chown(dir.path(), Some(1000), Some(1000)).unwrap();
            command.uid(1000).gid(1000);
        }
        mode(&locked, 0o555);
        mode(&hidden.join("new/read"), 0o555);
        if !told(&mut command, dir.path()) {
            return eprintln!("skipped: no other user can run this");
        }
        assert_eq!(names(dir.path()), ["kept"]);
        assert_eq!(fs::metadata(dir.path().join("kept")).unwrap().mode() & 0o777, 0o444);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_mounted_stays() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("repo").join(HIDDEN).join("new/extra");
        let shared = dir.path().join("shared");
        fs::create_dir_all(&place).unwrap();
        fs::create_dir(&shared).unwrap();
        fs::write(shared.join("a"), "").unwrap();
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", r#"mount --bind "$0" "$1" && shift && exec "$@""#]);
        command.args([&shared, &place]).arg(env::current_exe().unwrap());
        if !told(&mut command, &dir.path().join("repo")) {
            return eprintln!("skipped: nothing can be mounted");
        }
        assert_eq!(names(&shared), ["a"]);
        assert!(place.exists());
    }

    const TOLD: &str = "SWEPT";
}
