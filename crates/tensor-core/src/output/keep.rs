//! What a file has besides its content: what it keeps when another takes its place.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

/// Gives a file or folder the owner, group, permissions and extended attributes of another, as far
/// as the caller may.
///
/// Where owner and group are not the caller's to give, setuid and setgid are dropped, and where the
/// group is not, it may do what all others may. Attributes that cannot be set, such as those of
/// security modules, are left out, as are `security.ima` and `security.evm`, which are about
/// content.
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
    let mut mode = metadata.mode() & 0o7777;
    if (found.uid(), found.gid()) != (owner, group) {
        mode &= 0o777;
    }
    if found.gid() != group {
        mode = mode & 0o707 | (mode & 0o7) << 3;
    }
    keep_attributes(old, new);
    new.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn keep_attributes(old: &Path, new: &File) {
    use rustix::fs::{XattrFlags, fsetxattr, getxattr, listxattr};
    let mut names = vec![0; 64 << 10];
    let listed = listxattr(old, &mut names[..]).unwrap_or_default();
    names.truncate(listed);
    let mut value = vec![0; 64 << 10];
    for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        if matches!(name, b"security.ima" | b"security.evm") {
            continue;
        }
        if let Ok(len) = getxattr(old, name, &mut value[..]) {
            let _ = fsetxattr(new, name, value.get(..len).unwrap_or_default(), XattrFlags::empty());
        }
    }
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android", target_vendor = "apple"))))]
fn keep_attributes(_: &Path, _: &File) {}

/// Refuses a file that nobody may write to, or not the caller: to put another in its place would
/// change it all the same.
pub(super) fn check_writable(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.permissions().readonly() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    #[cfg(unix)]
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?;
    Ok(())
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
