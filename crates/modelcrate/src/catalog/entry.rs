use std::{fmt, path::Path, str::FromStr};

use tensor_core::digest::{Algorithm, Digest};

use super::{
    old::OldRow,
    options::CatalogOptions,
    row::{FileRow, Stamp, TensorRow, read_options},
};
#[cfg(feature = "remote")]
use crate::remote::{Listed, Location, Remote};

/// A file of a catalogue: where it is, and what is known of it without opening it.
#[derive(Clone, Debug)]
pub struct Entry {
    path: String,
    place: Place,
    /// Why it cannot be read, where that is known already.
    fault: Option<String>,
}

#[derive(Clone, Debug)]
enum Place {
    Path(std::path::PathBuf),
    #[cfg(feature = "remote")]
    Remote {
        remote: Remote,
        location: Location,
        stamp: Stamp,
    },
}

/// What became of a file.
pub(super) struct Described {
    pub(super) file: FileRow,
    pub(super) tensors: Vec<TensorRow>,
    pub(super) is_old: bool,
}

impl Entry {
    /// Stands for a file, or the folder of a carton or an nnpackage. What of the path is not UTF-8 is
    /// replaced in its row.
    #[must_use]
    pub fn at_path(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let shown = path.to_string_lossy().into_owned();
        Self { path: shown, place: Place::Path(path.to_owned()), fault: None }
    }

    /// Stands for a file at an address, of which nothing is known before it is opened.
    #[cfg(feature = "remote")]
    #[must_use]
    pub fn at_address(remote: &Remote, location: &Location) -> Self {
        if let Some(path) = location.as_path() {
            return Self::at_path(path);
        }
        let (remote, location) = (remote.clone(), location.clone());
        let path = location.to_string();
        let place = Place::Remote { remote, location, stamp: Stamp::default() };
        Self { path, place, fault: None }
    }

    /// Stands for a file that a listing found, which is not opened where an old row of its version is
    /// there.
    #[cfg(feature = "remote")]
    #[must_use]
    pub fn listed(remote: &Remote, listed: Listed) -> Self {
        let Listed { location, len, etag, modified } = listed;
        let path = location.to_string();
        let stamp = Stamp { bytes: Some(len), etag, modified };
        Self { path, place: Place::Remote { remote: remote.clone(), location, stamp }, fault: None }
    }

    /// Stands for what could not be looked at, such as a folder that cannot be listed.
    #[must_use]
    pub fn unread(path: impl Into<String>, reason: impl Into<String>) -> Self {
        let path = path.into();
        Self { place: Place::Path(path.clone().into()), path, fault: Some(reason.into()) }
    }

    /// Returns its path or address, as its row has it.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Describes the file, and its tensors where they are asked for. It does not fail: a file that is
    /// broken or cannot be read is described as such.
    #[must_use]
    pub fn rows(&self, options: CatalogOptions) -> (FileRow, Vec<TensorRow>) {
        let Described { file, tensors, .. } = self.describe(None, options);
        (file, tensors)
    }

    /// Describes the file, or takes what is said of it in an old catalogue.
    pub(super) fn describe(&self, old: Option<&OldRow>, options: CatalogOptions) -> Described {
        let fresh = |(file, tensors)| Described { file, tensors, is_old: false };
        let taken = |stamp: &Stamp| {
            let old = old.filter(|old| old.file.holds(stamp, options))?;
            let (file, tensors) = (old.file.clone(), old.tensors.clone());
            Some(Described { file, tensors, is_old: true })
        };
        let stamp = self.stamp();
        if let Some(fault) = &self.fault {
            return fresh((FileRow::new(&self.path, &stamp).unread(fault), Vec::new()));
        }
        if let Some(taken) = taken(&stamp) {
            return taken;
        }
        let mut row = FileRow::new(&self.path, &stamp);
        match &self.place {
            Place::Path(path) => match read_options().open(path) {
                Ok(reader) => {
                    let tensors = row.describe(&reader, options);
                    fresh((row, tensors))
                }
                Err(error) => fresh((row.refused(&error), Vec::new())),
            },
            #[cfg(feature = "remote")]
            Place::Remote { remote, location, .. } => {
                let opened = match remote.open(location) {
                    Ok(opened) => opened,
                    Err(error) => return fresh((row.refused(&error.into()), Vec::new())),
                };
                // What was opened is what the row is about.
                let stamp = Stamp::of(&opened);
                if let Some(taken) = taken(&stamp) {
                    return taken;
                }
                row = FileRow::new(&self.path, &stamp);
                let (row, tensors) = match remote.reader_of(&opened, location, read_options()) {
                    Ok(reader) => {
                        let tensors = row.describe(&reader, options);
                        (row, tensors)
                    }
                    Err(error) => (row.refused(&error), Vec::new()),
                };
                match opened.fault() {
                    Some(fault) => fresh((row.unread(fault), Vec::new())),
                    None => fresh((row, tensors)),
                }
            }
        }
    }

    /// Returns what is known without opening the file.
    fn stamp(&self) -> Stamp {
        match &self.place {
            Place::Path(path) => match path.metadata() {
                Ok(file) if file.is_file() => {
                    Stamp { bytes: Some(file.len()), etag: None, modified: file.modified().ok() }
                }
                // What is in a folder may change without it.
                _ => Stamp::default(),
            },
            #[cfg(feature = "remote")]
            Place::Remote { stamp, .. } => stamp.clone(),
        }
    }
}

/// A part of the files: those whose number is the remainder of their hash.
///
/// The hash of a file is the first eight bytes of the SHA-256 of its path, as a big-endian number; it is
/// of shard `i` of `n` where the remainder of its division by `n` is `i - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    count: u64,
}

impl Shard {
    /// Tells whether a file is of this part.
    #[must_use]
    pub fn has(self, path: &str) -> bool {
        let Digest::Sha256(digest) = Algorithm::Sha256.digest(path.as_bytes()) else {
            return false;
        };
        let hash = digest.first_chunk().copied().map_or(0, u64::from_be_bytes);
        hash.checked_rem(self.count) == self.index.checked_sub(1)
    }
}

impl FromStr for Shard {
    type Err = InvalidShard;

    fn from_str(text: &str) -> Result<Self, InvalidShard> {
        let parse = || {
            let (index, count) = text.split_once('/')?;
            let (index, count) = (index.parse().ok()?, count.parse().ok()?);
            (1..=count).contains(&index).then_some(Self { index, count })
        };
        parse().ok_or(InvalidShard)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// A text is no part such as `2/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a shard and their number, such as 2/8")]
pub struct InvalidShard;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_all_files_among_them() {
        let shards: Vec<Shard> = (1..=3).map(|i| format!("{i}/3").parse().unwrap()).collect();
        for number in 0..100 {
            let path = format!("models/{number}.zt");
            assert_eq!(shards.iter().filter(|shard| shard.has(&path)).count(), 1);
        }
        // As `printf a | sha256sum | cut -c1-16` says: 0xca978112ca1bbdca is 1 modulo 3.
        assert_eq!(0xca97_8112_ca1b_bdca_u64 % 3, 1);
        assert!("2/3".parse::<Shard>().unwrap().has("a"));
        for text in ["", "1", "0/3", "4/3", "1/0", "a/b", "-1/3"] {
            assert_eq!(text.parse::<Shard>(), Err(InvalidShard), "{text}");
        }
    }
}
