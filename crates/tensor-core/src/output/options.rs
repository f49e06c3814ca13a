use std::{io, path::Path, time::Duration};

use crate::Error;
#[cfg(test)]
use crate::output::NewFile;

/// What happens to a file that already stands where a new one is to be put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// The new file takes its place, with its owner, permissions and extended attributes.
    #[default]
    Replace,
    /// The new file is given up and the old one stays.
    Keep,
}

/// Whether a finished file is forced to the disk before it takes its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Data and folder are synchronised: after a power cut there is the old file or the new one.
    #[default]
    Synced,
    /// The system writes when it likes: whole after a crash of the process, not of the machine.
    Cached,
}

/// How a finished file takes its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// What happens to a file that stands there.
    pub existing: Existing,
    /// Whether it is forced to the disk first.
    pub durability: Durability,
    /// How long an edit waits for another editor; by default only as long as a dry run takes to find
    /// out that there is none.
    pub wait: Duration,
}

/// What an edit has done to a file or folder. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Edited {
    /// Nothing: what was asked for is there already.
    Unchanged,
    /// Bytes were added behind the end of the file; those before stay, but for fixed fields.
    Appended {
        /// The length of the file before.
        before: u64,
        /// Its length now.
        after: u64,
    },
    /// Another file stands in its place.
    Replaced {
        /// The length of the file before.
        before: u64,
        /// The length of the one that stands there now.
        after: u64,
    },
    /// Bytes at its end were cut off.
    Truncated {
        /// The length of the file before.
        before: u64,
        /// Its length now.
        after: u64,
    },
    /// Files of the folder were changed.
    Updated {
        /// How many were written.
        written: usize,
        /// How many were removed.
        removed: usize,
    },
}

impl Edited {
    /// Tells whether anything was written.
    #[must_use]
    pub const fn has_changed(self) -> bool {
        !matches!(self, Self::Unchanged)
    }
}

/// Returns the folder that a file stands in.
pub(super) fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Says of an error that it came after the change.
pub(super) fn in_place(error: &io::Error) -> io::Error {
    let text = format!("the change is in its place, but may not be on the disk yet: {error}");
    io::Error::new(error.kind(), text)
}

#[cfg(test)]
pub(super) fn new_file(path: impl AsRef<Path>, durability: Durability) -> crate::Result<NewFile> {
    Output { durability, ..Output::default() }.create(path)
}

/// Returns the names in a folder, sorted.
#[cfg(test)]
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(super) fn file_error(path: &Path, what: &'static str, source: io::Error) -> Error {
    Error::File { path: path.to_owned(), what, source }
}
