//! What a file has besides its content: what it keeps when another takes its place.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

#[cfg(unix)]
use rustix::fs::Access;

/// Gives a file or folder the owner, group, permissions and extended attributes of another, as far
/// as the caller may.
///
/// Files lose setuid and setgid, and so do folders whose owner and group are not the caller's to
/// give; where the group is not, it may do what all others may. Access control lists are those of the
/// old one, and none where that has none: what the new one has from the folder that it was made in
/// goes. Other attributes that cannot be set, such as those of security modules, are left out, as are
/// `security.ima`, `security.evm` and `security.capability`, which are about content.
///
/// # Errors
///
/// What the system says, but for what the caller may not do.
pub fn keep_metadata(old: &Path, new: &File) -> io::Result<()> {
    let metadata = fs::metadata(old)?;
    #[cfg(unix)]
    return keep(old, &metadata, new);
    #[cfg(not(unix))]
    return new.set_permissions(metadata.permissions());
}

#[cfg(unix)]
fn keep(old: &Path, metadata: &fs::Metadata, new: &File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let (owner, group) = (metadata.uid(), metadata.gid());
    let found = new.metadata()?;
    if (found.uid(), found.gid()) != (owner, group) {
        // The group alone may be ours to give; what came of it shows below.
        let _ = fchown(new, Some(owner), Some(group)).or_else(|_| fchown(new, None, Some(group)));
    }
    let found = new.metadata()?;
    let mut mode = metadata.mode() & if metadata.is_dir() { 0o7777 } else { 0o1777 };
    if (found.uid(), found.gid()) != (owner, group) {
        mode &= 0o777;
    }
    if found.gid() != group {
        mode = mode & 0o707 | (mode & 0o7) << 3;
    }
    keep_attributes(old, new)?;
    new.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn keep_attributes(old: &Path, new: &File) -> io::Result<()> {
    use rustix::{
        fs::{XattrFlags, fremovexattr, fsetxattr, getxattr, listxattr},
        io::Errno,
    };
    let mut names = vec![0; 64 << 10];
    let listed = listxattr(old, &mut names[..]).unwrap_or_default();
    names.truncate(listed);
    let mut value = vec![0; 64 << 10];
    for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        if ABOUT_CONTENT.contains(&name) || ACLS.contains(&name) {
            continue;
        }
        if let Ok(len) = getxattr(old, name, &mut value[..]) {
            let _ = fsetxattr(new, name, value.get(..len).unwrap_or_default(), XattrFlags::empty());
        }
    }
    for &name in ACLS {
        match getxattr(old, name, &mut value[..]) {
            Ok(len) => {
                let value = value.get(..len).unwrap_or_default();
                fsetxattr(new, name, value, XattrFlags::empty())?;
            }
            Err(Errno::NODATA) => match fremovexattr(new, name) {
                Err(Errno::NODATA | Errno::NOTSUP) => {}
                removed => removed?,
            },
            Err(Errno::NOTSUP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What is not the same of other content.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
const ABOUT_CONTENT: &[&[u8]] = &[b"security.ima", b"security.evm", b"security.capability"];

/// Who may do what, beyond what the mode says: with such a list, the bits of the group in the mode
/// are the most that it gives.
#[cfg(any(target_os = "linux", target_os = "android"))]
const ACLS: &[&[u8]] = &[b"system.posix_acl_access", b"system.posix_acl_default"];
/// They are no extended attributes here.
#[cfg(target_vendor = "apple")]
const ACLS: &[&[u8]] = &[];

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android", target_vendor = "apple"))))]
fn keep_attributes(_: &Path, _: &File) -> io::Result<()> {
    Ok(())
}

/// Refuses a file that nobody may write to, or not the caller: to put another in its place would
/// change it all the same.
pub(super) fn check_writable(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.permissions().readonly() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    #[cfg(unix)]
    rustix::fs::access(path, Access::WRITE_OK)?;
    Ok(())
}

/// Refuses a file that is another's in a folder where everybody replaces only what is theirs, such as
/// `/tmp`.
pub(super) fn check_replaceable(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if !may_replace(path, rustix::process::geteuid().as_raw())? {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let _ = path;
    Ok(())
}

#[cfg(unix)]
fn may_replace(path: &Path, user: u32) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (file, folder) = (fs::metadata(path)?, fs::metadata(super::options::folder(path))?);
    let is_sticky = folder.mode() & 0o1000 != 0;
    // Root may.
    Ok(!is_sticky || [0, file.uid(), folder.uid()].contains(&user))
}

/// Refuses a folder in which the caller may make nothing.
pub(super) fn check_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return Ok(rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)?);
    #[cfg(not(unix))]
    return fs::metadata(folder).map(drop);
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    use super::*;

    fn files(dir: &tempfile::TempDir, mode: u32) -> (std::path::PathBuf, File) {
        let old = dir.path().join("old");
        fs::write(&old, b"old").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(mode)).unwrap();
        (old, File::create(dir.path().join("new")).unwrap())
    }

    #[test]
    fn owner_and_group() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = files(&dir, 0o640);
        if chown(&old, Some(1000), Some(1001)).is_err() {
            return eprintln!("skipped: only root gives files away");
        }
        keep_metadata(&old, &new).unwrap();
        let found = new.metadata().unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (1000, 1001, 0o640));
    }

    #[test]
    fn setuid_and_setgid_are_of_the_old_content() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = files(&dir, 0o6755);
        keep_metadata(&old, &new).unwrap();
        assert_eq!(new.metadata().unwrap().mode() & 0o7777, 0o755);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o2750)).unwrap();
        let other = tempfile::tempdir().unwrap();
        let folder = File::open(other.path()).unwrap();
        keep_metadata(dir.path(), &folder).unwrap();
        assert_eq!(folder.metadata().unwrap().mode() & 0o7777, 0o2750);
    }

    #[test]
    fn files_of_others_in_sticky_folders() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = files(&dir, 0o666);
        let owner = new.metadata().unwrap().uid();
        for (mode, user, expected) in
            [(0o777, owner + 1, true), (0o1777, owner + 1, false), (0o1777, owner, true)]
        {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(may_replace(&old, user).unwrap(), expected);
        }
        assert!(may_replace(&old, 0).unwrap());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn access_control_lists() {
        use rustix::fs::{XattrFlags, fgetxattr, getxattr, removexattr, setxattr};
        const ACCESS: &str = "system.posix_acl_access";
        const DEFAULT: &str = "system.posix_acl_default";
        // Version 2: the owner, user 1000, the group, the mask, and others.
        let list: Vec<u8> = [(1, 7, u32::MAX), (2, 7, 1000), (4, 5, u32::MAX)]
            .into_iter()
            .chain([(16, 7, u32::MAX), (32, 0, u32::MAX)])
            .fold(vec![2, 0, 0, 0], |list, (tag, may, id)| {
                [list, vec![tag, 0, may, 0], id.to_le_bytes().into()].concat()
            });
        let dir = tempfile::tempdir().unwrap();
        if setxattr(dir.path(), DEFAULT, &list, XattrFlags::empty()).is_err() {
            return eprintln!("skipped: the file system has no access control lists");
        }
        let (old, new) = files(&dir, 0o660);
        let mut value = [0; 128];
        keep_metadata(&old, &new).unwrap();
        let inherited = getxattr(&old, ACCESS, &mut value[..]).unwrap();
        assert_eq!(fgetxattr(&new, ACCESS, &mut value[..]).unwrap(), inherited);
        removexattr(&old, ACCESS).unwrap();
        keep_metadata(&old, &new).unwrap();
        fgetxattr(&new, ACCESS, &mut value[..]).unwrap_err();
        let [old, new] = ["old_folder", "new_folder"].map(|name| dir.path().join(name));
        fs::create_dir(&old).unwrap();
        fs::create_dir(&new).unwrap();
        for name in [ACCESS, DEFAULT] {
            removexattr(&old, name).unwrap();
        }
        keep_metadata(&old, &File::open(&new).unwrap()).unwrap();
        for name in [ACCESS, DEFAULT] {
            getxattr(&new, name, &mut value[..]).unwrap_err();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn extended_attributes() {
        use rustix::fs::{XattrFlags, fgetxattr, setxattr};
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = files(&dir, 0o600);
        if setxattr(&old, "user.origin", b"hub", XattrFlags::empty()).is_err() {
            return eprintln!("skipped: the file system has no extended attributes");
        }
        keep_metadata(&old, &new).unwrap();
        let mut value = [0; 8];
        assert_eq!(fgetxattr(&new, "user.origin", &mut value[..]).unwrap(), 3);
        assert_eq!(&value[..3], b"hub");
    }
}
