//! Where the files of a package are: in an archive, or in a folder.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, BufRead, ErrorKind, Read},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use model_archive::{Archive, Entry, EntryReader, Kind, Method, name};
use tensor_core::{Extent, Limits, Source, SourceReader};

use crate::{
    Content, Error, Result,
    error::{FileFault, check_bytes},
};

/// The files of a package, whatever holds them.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    Archive {
        archive: Archive,
        /// The folder in it that is the package: empty, or with a slash at its end.
        root: String,
    },
    Folder(Folder),
}

/// A file as it is stored.
pub(crate) enum Stored<'a> {
    Entry(&'a Archive, Entry<'a>),
    Source(Source),
}

impl Storage {
    /// Finds the package in an archive: at its root, or in the only folder that holds one.
    pub(crate) fn of_archive(archive: Archive) -> Result<Self> {
        let root = root(&archive)?;
        Ok(Self::Archive { archive, root })
    }

    /// Returns the file of a path; `None` where there is none.
    pub(crate) fn file(&self, path: &str, limits: &Limits) -> Result<Option<Stored<'_>>> {
        if let Err(fault) = name::check(path, limits) {
            let path = path.to_owned();
            return Err(Error::File { path, fault: FileFault::Path(fault) });
        }
        match self {
            Self::Archive { archive, root } => {
                let entry = archive.entry(&format!("{root}{path}"));
                let entry = entry.filter(|entry| entry.info().kind == Kind::File);
                Ok(entry.map(|entry| Stored::Entry(archive, entry)))
            }
            Self::Folder(folder) => Ok(folder.file(path)?.map(Stored::Source)),
        }
    }

    /// Returns where a file is in the file system; `None` in an archive.
    pub(crate) fn disk_path(&self, path: &str) -> Result<Option<PathBuf>> {
        match self {
            Self::Archive { .. } => Ok(None),
            Self::Folder(folder) => folder.find(path),
        }
    }

    /// Tells whether a path is a folder.
    pub(crate) fn is_folder(&self, path: &str) -> bool {
        match self {
            Self::Archive { archive, root } => {
                let folder = format!("{root}{path}/");
                archive.entries_below(&folder).next().is_some()
            }
            Self::Folder(folder) => folder.root.join(path).is_dir(),
        }
    }

    /// Returns the paths of all files of the package, sorted.
    pub(crate) fn paths(&self) -> Result<Vec<String>> {
        match self {
            Self::Archive { archive, root } => {
                let files = archive.entries_below(root);
                let files = files.filter(|entry| entry.info().kind == Kind::File);
                let paths = files.filter_map(|entry| entry.name().strip_prefix(root.as_str()));
                Ok(paths.map(str::to_owned).collect())
            }
            Self::Folder(folder) => folder.paths(),
        }
    }

    /// Returns the folders that have entries of their own in an archive.
    pub(crate) fn folders(&self) -> Vec<&str> {
        let Self::Archive { archive, root } = self else { return Vec::new() };
        let folders = archive.entries_below(root);
        let folders = folders.filter(|entry| entry.info().kind == Kind::Folder);
        let paths = folders.filter_map(|entry| entry.name().strip_prefix(root.as_str()));
        paths.map(|path| path.trim_end_matches('/')).filter(|path| !path.is_empty()).collect()
    }

    /// Returns the names of files in the archive that are not in the package, sorted.
    pub(crate) fn strays(&self) -> Vec<&str> {
        let Self::Archive { archive, root } = self else { return Vec::new() };
        let files = archive.entries_below("").filter(|entry| entry.info().kind == Kind::File);
        files.map(Entry::name).filter(|name| !name.starts_with(root.as_str())).collect()
    }

    pub(crate) const fn archive(&self) -> Option<&Archive> {
        match self {
            Self::Archive { archive, .. } => Some(archive),
            Self::Folder(_) => None,
        }
    }

    pub(crate) fn root(&self) -> &str {
        match self {
            Self::Archive { root, .. } => root,
            Self::Folder(_) => "",
        }
    }
}

/// Returns the file of an archive that has a name.
pub(crate) fn entry<'a>(archive: &'a Archive, name: &str) -> Result<Entry<'a>> {
    let entry = archive.entry(name).filter(|entry| entry.info().kind == Kind::File);
    entry.ok_or_else(|| Error::File { path: name.to_owned(), fault: FileFault::Missing })
}

/// Turns an error of a stream into what it is about; `offset` is how far it was read, in bytes.
pub(crate) fn fault(error: io::Error, offset: u64) -> Error {
    match error.downcast::<model_archive::Error>() {
        Ok(error) => error.into(),
        Err(source) => tensor_core::Error::Read { what: "file", offset, source }.into(),
    }
}

fn root(archive: &Archive) -> Result<String> {
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
fn similar<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let is_it = |name: &&str| {
        let last = name.rsplit('/').next().unwrap_or(name);
        last.eq_ignore_ascii_case("MANIFEST") || last.eq_ignore_ascii_case("MANIFEST.json")
    };
    names.filter(is_it).min_by_key(|name| name.len()).map(str::to_owned)
}

impl Stored<'_> {
    /// Returns the length of the content, in bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Entry(_, entry) => entry.info().size,
            Self::Source(source) => source.len(),
        }
    }

    /// Returns the content of a document, which may have up to `limit` bytes.
    pub(crate) fn document(&self, what: &'static str, limit: u64) -> Result<Bytes> {
        check_bytes(what, self.len(), limit, "document_bytes")?;
        match self {
            Self::Entry(_, entry) => Ok(entry.checked_bytes()?),
            Self::Source(source) => Ok(source.read(Extent::first(source.len()), what)?),
        }
    }

    /// Returns the content as a source: in place where it is stored as it is, else in memory.
    pub(crate) fn source(&self) -> Result<Source> {
        match self {
            Self::Entry(archive, entry) if entry.info().method == Method::Stored => {
                let extent = entry.extent()?;
                Ok(archive.source().window(extent, "entry")?)
            }
            Self::Entry(_, entry) => Ok(Source::from_bytes(entry.bytes()?)),
            Self::Source(source) => Ok(source.clone()),
        }
    }

    /// Returns what the content is by its first bytes; no more of it is decoded.
    pub(crate) fn content(&self) -> Result<Content> {
        match self {
            Self::Entry(_, entry) if entry.info().method != Method::Stored => {
                let mut reader = entry.reader()?;
                let mut start = Vec::new();
                while start.len() < Content::START {
                    let ready = reader.fill_buf().map_err(EntryReader::fault)?;
                    if ready.is_empty() {
                        break;
                    }
                    start.extend_from_slice(ready);
                    let taken = ready.len();
                    reader.consume(taken);
                }
                Ok(Content::of(&start))
            }
            _ => Ok(Content::of_source(&self.source()?)?),
        }
    }

    /// Returns the content as a stream, compared with the checksum of the archive.
    pub(crate) fn reader(&self) -> Result<StoredReader> {
        match self {
            Self::Entry(_, entry) => Ok(StoredReader::Entry(Box::new(entry.reader()?))),
            Self::Source(source) => {
                Ok(StoredReader::Source(source.stream(Extent::first(source.len()), "file")?))
            }
        }
    }

    /// Returns where the bytes are in the archive, where they lie there as they are.
    pub(crate) fn extent(&self) -> Result<Option<Extent>> {
        match self {
            Self::Entry(_, entry) if entry.info().method == Method::Stored => {
                Ok(Some(entry.extent()?))
            }
            _ => Ok(None),
        }
    }
}

/// The content of a stored file as a stream.
#[derive(Debug)]
pub(crate) enum StoredReader {
    Entry(Box<EntryReader>),
    Source(SourceReader),
}

impl BufRead for StoredReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Entry(reader) => reader.fill_buf(),
            Self::Source(reader) => reader.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        match self {
            Self::Entry(reader) => reader.consume(amount),
            Self::Source(reader) => reader.consume(amount),
        }
    }
}

impl Read for StoredReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Entry(reader) => reader.read(out),
            Self::Source(reader) => reader.read(out),
        }
    }
}

/// A folder that is read as a package.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    /// With every link resolved.
    root: PathBuf,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = |source| {
            let path = path.to_owned();
            tensor_core::Error::File { path, what: "opening", source }
        };
        let root = path.canonicalize().map_err(failed)?;
        if !root.is_dir() {
            return Err(failed(ErrorKind::NotADirectory.into()).into());
        }
        let folder = Self { root };
        if folder.file(MANIFEST)?.is_none() {
            let paths = folder.paths()?;
            return Err(Error::ManifestMissing {
                found: similar(paths.iter().map(|path| &**path)),
            });
        }
        Ok(folder)
    }

    /// Opens a file; `path` is a checked one.
    fn file(&self, path: &str) -> Result<Option<Source>> {
        Ok(self.find(path)?.map(Source::open).transpose()?)
    }

    /// Finds a file; `path` is a checked one. A link that leads out is refused.
    fn find(&self, path: &str) -> Result<Option<PathBuf>> {
        let fail = |fault| Error::File { path: path.to_owned(), fault };
        let found = match self.root.join(path).canonicalize() {
            Ok(found) => found,
            // Not a folder: one of the components is a file.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(fail(FileFault::Io(error))),
        };
        if !found.starts_with(&self.root) {
            return Err(fail(FileFault::Outside));
        }
        let metadata = found.metadata().map_err(|error| fail(FileFault::Io(error)))?;
        if metadata.is_dir() {
            return Ok(None);
        }
        if !metadata.is_file() {
            return Err(fail(FileFault::Irregular));
        }
        Ok(Some(found))
    }

    /// Walks the folder; links to folders are not followed.
    fn paths(&self) -> Result<Vec<String>> {
        let mut paths = BTreeSet::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            self.list(&folder, &mut folders, &mut paths).map_err(|source| {
                tensor_core::Error::File { path: folder.clone(), what: "listing", source }
            })?;
        }
        Ok(paths.into_iter().collect())
    }

    fn list(
        &self,
        folder: &Path,
        folders: &mut Vec<PathBuf>,
        paths: &mut BTreeSet<String>,
    ) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
                continue;
            }
            let path = entry.path();
            let path = path.strip_prefix(&self.root).unwrap_or(&path);
            let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
            paths.insert(parts.join("/"));
        }
        Ok(())
    }
}

/// The document that makes a folder a package. Format text: "Packaging Structure".
pub(crate) const MANIFEST: &str = "metadata/MANIFEST";
