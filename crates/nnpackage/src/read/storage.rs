//! Where the package is in an archive, and what was meant to be it.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use model_archive::{Archive, Entry, Kind, Stored, name};
use tensor_core::Limits;

use crate::{Error, FileFault, Result, layout::MANIFEST, read::body::Body};

/// The files of a package.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    /// In an archive or a folder.
    Stored(model_archive::Storage),
    /// As they are going to be written, without a list of digests.
    Planned(Arc<BTreeMap<String, Body>>),
}

impl Storage {
    /// Returns the file of a path, symbolic links followed; `None` where nothing is there.
    pub(crate) fn file(&self, path: &str) -> Result<Option<Stored<'_>>> {
        match self {
            Self::Stored(storage) => Ok(storage.file(path)?),
            Self::Planned(files) => {
                if let Some(body) = files.get(path) {
                    return Ok(Some(body.stored()?));
                }
                let fault = match name::check(path, &Limits::default()) {
                    Err(fault) => FileFault::Path(fault),
                    Ok(()) if is_folder(files, path) => FileFault::Folder,
                    Ok(()) => return Ok(None),
                };
                Err(Error::File { path: path.to_owned(), fault })
            }
        }
    }

    /// Returns the paths of all files, sorted.
    pub(crate) fn paths(&self) -> Result<Vec<String>> {
        match self {
            Self::Stored(storage) => Ok(storage.paths()?),
            Self::Planned(files) => Ok(files.keys().cloned().collect()),
        }
    }

    /// Tells whether a path is that of a folder, by a symbolic link or not.
    pub(crate) fn is_folder(&self, path: &str) -> bool {
        match self {
            Self::Stored(storage) => storage.is_folder(path),
            Self::Planned(files) => is_folder(files, path),
        }
    }

    pub(crate) fn disk_path(&self, path: &str) -> Result<Option<PathBuf>> {
        match self {
            Self::Stored(storage) => Ok(storage.disk_path(path)?),
            Self::Planned(_) => Ok(None),
        }
    }

    /// Returns the paths of folders that have entries of their own.
    pub(crate) fn folders(&self) -> Vec<&str> {
        match self {
            Self::Stored(storage) => storage.folders(),
            Self::Planned(_) => Vec::new(),
        }
    }

    /// Returns the archive; `None` for what is not in one.
    pub(crate) fn archive(&self) -> Option<&Archive> {
        match self {
            Self::Stored(storage) => storage.archive(),
            Self::Planned(_) => None,
        }
    }

    /// Returns the folder in the archive: empty, or with a slash at its end.
    pub(crate) fn root(&self) -> &str {
        match self {
            Self::Stored(storage) => storage.root(),
            Self::Planned(_) => "",
        }
    }
}

fn is_folder(files: &BTreeMap<String, Body>, path: &str) -> bool {
    let inside = format!("{path}/");
    let next = files.range(inside.clone()..).next();
    next.is_some_and(|(path, _)| path.starts_with(&inside))
}

/// Finds the package in an archive: at its root, or in the only folder that holds one.
pub(crate) fn in_archive(archive: Archive) -> Result<Storage> {
    let root = root(&archive)?;
    Ok(Storage::Stored(model_archive::Storage::from(archive).below(&root)))
}

/// Returns the folder in an archive that is a package: empty, or with a slash at its end.
pub(crate) fn root(archive: &Archive) -> Result<String> {
    if archive.entry(MANIFEST).is_some() {
        return Ok(String::new());
    }
    let in_folder = |entry: Entry<'_>| {
        let root = entry.name().strip_suffix(MANIFEST)?;
        let folder = root.strip_suffix('/')?;
        (!folder.contains('/')).then(|| root.to_owned())
    };
    let mut roots: Vec<String> = archive.entries_below("").filter_map(in_folder).collect();
    match (roots.pop(), roots.pop()) {
        (Some(root), None) => Ok(root),
        (Some(second), Some(first)) => Err(Error::SeveralPackages { first, second }),
        (None, _) => {
            let names = archive.entries().map(Entry::name);
            Err(Error::ManifestMissing { found: similar(names) })
        }
    }
}

/// Returns a path that may have been meant to be that of the manifest.
pub(crate) fn similar<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let is_it = |name: &&str| {
        let last = name.rsplit('/').next().unwrap_or(name);
        last.eq_ignore_ascii_case("MANIFEST") || last.eq_ignore_ascii_case("MANIFEST.json")
    };
    names.filter(is_it).min_by_key(|name| name.len()).map(str::to_owned)
}

/// Returns the names of files in the archive that are not in the package, sorted.
pub(crate) fn outside(storage: &Storage) -> Vec<&str> {
    let Some(archive) = storage.archive() else { return Vec::new() };
    let files = archive.entries_below("").filter(|entry| entry.info().kind == Kind::File);
    files.map(Entry::name).filter(|name| !name.starts_with(storage.root())).collect()
}

/// Returns the file of an archive that has a name.
pub(crate) fn entry<'a>(archive: &'a Archive, name: &str) -> Result<Entry<'a>> {
    let entry = archive.entry(name).filter(|entry| entry.info().kind == Kind::File);
    entry.ok_or_else(|| Error::File { path: name.to_owned(), fault: FileFault::Missing })
}
