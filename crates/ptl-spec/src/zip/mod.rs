//! The ZIP container: records below one root folder.

use std::collections::BTreeMap;

use model_archive::{Archive, Entry, Method as Codec, Profile as Strictness};
use tensor_core::{Extent, Limits, Source};

use crate::{Error, Result};

pub(crate) mod edit;
pub(crate) mod layout;

/// An archive whose records all lie below one folder.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) archive: Archive,
    pub(crate) root: String,
    /// Positions of the records by their names in lower case, without the root: PyTorch does not
    /// tell cases apart.
    by_name: BTreeMap<String, usize>,
    /// Names that are one to PyTorch.
    pub(crate) collisions: Vec<String>,
}

impl Container {
    pub(crate) fn open(source: &Source, limits: &Limits) -> Result<Self> {
        let options = Archive::options()
            .methods(&[Codec::Stored, Codec::Deflate])
            .profile(Strictness::Lenient)
            .limits(*limits);
        let archive = match options.from_source(source.clone()) {
            Err(end @ model_archive::Error::Directory { .. }) if starts_with_a_record(source) => {
                return Err(Error::NoEnd { source: end });
            }
            archive => archive?,
        };
        let first = archive.entry_at(0).map(Entry::name).unwrap_or_default();
        let Some((root, _)) = first.split_once('/') else {
            return Err(Error::NoRoot { entry: first.to_owned() });
        };
        let (root, mut by_name, mut collisions) = (root.to_owned(), BTreeMap::new(), Vec::new());
        for entry in archive.entries() {
            let name = entry.name();
            let Some(name) = name.strip_prefix(&root).and_then(|name| name.strip_prefix('/'))
            else {
                return Err(Error::OutsideRoot { entry: name.to_owned(), root });
            };
            if name.is_empty() || name.ends_with('/') {
                continue;
            }
            if by_name.insert(name.to_ascii_lowercase(), entry.index()).is_some() {
                collisions.push(name.to_owned());
            }
        }
        Ok(Self { archive, root, by_name, collisions })
    }

    /// Returns the position of a record in the directory.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        let exact = self.archive.entry(&format!("{}/{name}", self.root));
        let exact = exact.map(Entry::index);
        exact.or_else(|| self.by_name.get(&name.to_ascii_lowercase()).copied())
    }

    /// Returns the name of a record without the root folder; `None` for a folder.
    pub(crate) fn name_at(&self, index: usize) -> Option<&str> {
        let name = self.archive.entry_at(index)?.name();
        let name = name.get(self.root.len()..)?.strip_prefix('/')?;
        Some(name).filter(|name| !name.is_empty() && !name.ends_with('/'))
    }

    /// Returns the positions of all records, in the order of the directory.
    pub(crate) fn positions(&self) -> impl Iterator<Item = usize> {
        (0..self.archive.entries().len()).filter(|index| self.name_at(*index).is_some())
    }
}

/// Tells whether the first bytes are a header of a ZIP file.
pub(crate) fn starts_with_a_record(source: &Source) -> bool {
    let start = source.read(Extent::first(4), "first record");
    start.is_ok_and(|start| *start == *b"PK\x03\x04")
}
