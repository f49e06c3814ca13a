use std::path::Path;

use crate::{Error, Result};

/// Refuses what a disk has no room for: `needed` bytes, and a sixteenth of them and 1 MiB to spare,
/// but not more than 1 GiB. `path` may be that of a file or folder which is not there yet. Where
/// the system does not say how much is free, everything is let through.
///
/// # Errors
///
/// [`Error::DiskFull`].
pub fn check_space(path: impl AsRef<Path>, needed: u64) -> Result<()> {
    let path = path.as_ref();
    let with_spare = needed.saturating_add((needed / 16).saturating_add(1 << 20).min(1 << 30));
    match free_bytes(path) {
        Some(free) if free < with_spare => {
            Err(Error::DiskFull { path: path.to_owned(), needed: with_spare, free })
        }
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn free_bytes(path: &Path) -> Option<u64> {
    let mut there = path;
    let disk = loop {
        // Relative paths end with an empty one.
        let asked = if there.as_os_str().is_empty() { Path::new(".") } else { there };
        match rustix::fs::statvfs(asked) {
            Err(rustix::io::Errno::NOENT) => there = there.parent()?,
            found => break found.ok()?,
        }
    };
    // Some file systems that have no fixed size say that they have none at all.
    (disk.f_blocks > 0).then(|| disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is() {
        let dir = tempfile::tempdir().unwrap();
        check_space(dir.path().join("not/there/yet"), 1).unwrap();
        check_space("relative", 1).unwrap();
        if cfg!(unix) {
            let error = check_space(dir.path(), 1 << 62).unwrap_err();
            assert!(matches!(error, Error::DiskFull { .. }), "{error}");
        }
    }
}
