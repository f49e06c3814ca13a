use std::{
    cell::RefCell, collections::BTreeMap, ffi::OsStr, fmt, fmt::Write as _, path::Path,
    str::FromStr,
};

use tensor_core::{
    Source,
    digest::{Algorithm, Digest},
};

use super::{
    old::OldRow,
    options::CatalogOptions,
    row::{FileRow, PartRow, Stamp, TensorRow, read_options},
};
#[cfg(feature = "remote")]
use crate::remote::{Listed, Location, Opened, Remote};

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
    /// Stands for a file, or the folder of a carton or an nnpackage. A path that is not UTF-8 is written
    /// as a URL in its row: `file:///models/%FF.zt`.
    #[must_use]
    pub fn at_path(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Self { path: written(path), place: Place::Path(path.to_owned()), fault: None }
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
    pub fn unread(path: impl AsRef<Path>, reason: impl Into<String>) -> Self {
        Self { fault: Some(reason.into()), ..Self::at_path(path) }
    }

    /// Returns its path or address, as its row has it. Where several addresses differ by what is not
    /// shown of them, a catalogue has `#1`, `#2` and so on behind the second and later ones.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Sorts entries by their paths, each of them once.
    pub(super) fn sort(mut entries: Vec<Self>) -> Vec<Self> {
        entries.sort_by(|a, b| (&a.path, a.has_query()).cmp(&(&b.path, b.has_query())));
        let mut unique: Vec<Self> = Vec::with_capacity(entries.len());
        for entry in entries {
            let mut alike = unique.iter().rev().take_while(|other| other.path == entry.path);
            if !alike.any(|other| other.is(&entry)) {
                unique.push(entry);
            }
        }
        for alike in unique.chunk_by_mut(|a, b| a.path == b.path) {
            for (number, entry) in alike.iter_mut().enumerate().skip(1) {
                entry.path.push_str(&format!("#{number}"));
            }
        }
        unique.sort_by(|a, b| a.path.cmp(&b.path));
        unique
    }

    /// Tells whether it is the same file as another of the same path.
    fn is(&self, other: &Self) -> bool {
        match (&self.place, &other.place) {
            #[cfg(feature = "remote")]
            (Place::Remote { location: a, .. }, Place::Remote { location: b, .. }) => a == b,
            _ => true,
        }
    }

    fn has_query(&self) -> bool {
        match &self.place {
            Place::Path(_) => false,
            #[cfg(feature = "remote")]
            Place::Remote { location, .. } => location.has_query(),
        }
    }

    /// Describes the file, and its tensors where they are asked for. It does not fail: a file that is
    /// broken or cannot be read is described as such.
    #[must_use]
    pub fn rows(&self, options: CatalogOptions) -> (FileRow, Vec<TensorRow>) {
        let Described { file, tensors, .. } = self.describe(&[], &[], options);
        (file, tensors)
    }

    /// Describes the file, or takes what is said of it in old catalogues. `all` are the entries of the
    /// catalogue, sorted.
    pub(super) fn describe(
        &self,
        old: &[OldRow],
        all: &[Self],
        options: CatalogOptions,
    ) -> Described {
        let fresh = |(file, tensors)| Described { file, tensors, is_old: false };
        let taken = |stamp: &Stamp| {
            let holds = |old: &&OldRow| {
                let mut parts = old.file.parts.iter();
                old.file.holds(stamp, options)
                    && parts.all(|part| part.holds(&self.stamp_beside(&part.name, all)))
            };
            let old = old.iter().find(holds)?;
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
        let parts = RefCell::new(BTreeMap::new());
        let note = |name: &str, stamp: &Stamp| {
            parts.borrow_mut().insert(name.to_owned(), PartRow::new(name, stamp));
        };
        let mut row = FileRow::new(&self.path, &stamp);
        let (opened, fault) = match &self.place {
            Place::Path(path) => {
                let beside = |name: &OsStr| {
                    let path = path.with_file_name(name);
                    note(&name.to_string_lossy(), &Stamp::of_path(&path));
                    Source::open(path)
                };
                (read_options().open_beside(path, &beside), None)
            }
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
                let note = |name: &str, found: Option<&Opened>| {
                    note(name, &found.map(Stamp::of).unwrap_or_default());
                };
                let reader = remote.reader_beside(&opened, location, read_options(), &note);
                (reader, Some(opened))
            }
        };
        let (mut row, tensors) = match opened {
            Ok(reader) => {
                let tensors = row.describe(&reader, options);
                (row, tensors)
            }
            Err(error) => (row.refused(&error), Vec::new()),
        };
        row.parts = parts.into_inner().into_values().collect();
        match fault_of(fault.as_ref()) {
            Some(fault) => fresh((row.unread(fault), Vec::new())),
            None => fresh((row, tensors)),
        }
    }

    /// Returns what is known without opening the file.
    fn stamp(&self) -> Stamp {
        match &self.place {
            Place::Path(path) => Stamp::of_path(path),
            #[cfg(feature = "remote")]
            Place::Remote { stamp, .. } => stamp.clone(),
        }
    }

    /// Returns what is known of a file beside it: by the list that has both, or by opening it.
    #[cfg_attr(not(feature = "remote"), expect(unused_variables, reason = "there are no lists"))]
    fn stamp_beside(&self, name: &str, all: &[Self]) -> Stamp {
        match &self.place {
            Place::Path(path) => Stamp::of_path(&path.with_file_name(name)),
            #[cfg(feature = "remote")]
            Place::Remote { remote, location, .. } => {
                let Some(there) = location.beside(name) else { return Stamp::default() };
                let path = there.to_string();
                let listed = all.binary_search_by(|entry| entry.path.cmp(&path)).ok();
                let listed = listed.and_then(|at| all.get(at)).map(Self::stamp);
                let opened = || remote.open(&there).map(|opened| Stamp::of(&opened));
                match listed.filter(Stamp::names_a_version) {
                    Some(stamp) => stamp,
                    None => opened().unwrap_or_default(),
                }
            }
        }
    }
}

#[cfg(feature = "remote")]
fn fault_of(opened: Option<&Opened>) -> Option<&str> {
    opened.and_then(Opened::fault)
}

#[cfg(not(feature = "remote"))]
const fn fault_of(_: Option<&()>) -> Option<&'static str> {
    None
}

/// Returns a path as a text that stands for no other.
fn written(path: &Path) -> String {
    if let Some(text) = path.to_str() {
        return text.to_owned();
    }
    let whole = std::path::absolute(path);
    let whole = whole.as_deref().unwrap_or(path).as_os_str().as_encoded_bytes();
    let mut text = "file://".to_owned();
    for byte in whole {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(*byte)),
            // A text takes all that is written.
            byte => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
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
