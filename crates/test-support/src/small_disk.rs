use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A disk in memory with little room, mounted until it is dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one of so many bytes on a folder; `None`, with a line that says so, where that is not
    /// permitted.
    #[must_use]
    #[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
    pub fn mount(folder: &Path, bytes: u64) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]).arg(folder);
        mount.stdout(Stdio::null()).stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(Self(folder.to_owned()));
        }
        eprintln!("skipped: a disk in memory cannot be mounted");
        None
    }

    /// Returns where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Where this fails, it goes with the machine.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
