//! Where the files of a carton are: in an archive, or in a folder.

use std::{
    fs,
    io::{BufRead, ErrorKind, Read},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use model_archive::{Archive, Entry, EntryReader, Kind, Method};
use tensor_core::{Extent, Source, SourceReader};

use crate::{Error, Manifest, Result, error::FileFault};

/// The files of a carton, whatever holds them.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    Archive(Archive),
    Folder(Folder),
}

/// A file as it is stored, symbolic links followed.
pub(crate) enum Stored<'a> {
    Entry(Entry<'a>),
    Source(Source),
}

impl Storage {
    /// Returns the file of a path; `None` where there is none.
    pub(crate) fn file(&self, path: &str) -> Result<Option<Stored<'_>>> {
        match self {
            Self::Archive(archive) => {
                let entry = archive.entry(path).filter(|entry| entry.info().kind != Kind::Folder);
                let entry = entry.map(Entry::resolve).transpose()?;
                Ok(entry.map(Stored::Entry))
            }
            Self::Folder(folder) => Ok(folder.file(path)?.map(Stored::Source)),
        }
    }

    /// Returns for each line of a manifest the position of its entry in the archive; nothing for
    /// a folder.
    pub(crate) fn positions(&self, manifest: &Manifest) -> Vec<Option<usize>> {
        let Self::Archive(archive) = self else { return Vec::new() };
        let mut positions = vec![None; manifest.len()];
        // Both are sorted by name.
        let files = archive.entries_below("").filter(|entry| entry.info().kind != Kind::Folder);
        let mut files = files.peekable();
        for line in manifest.sorted() {
            let path = manifest.path_at(line);
            while files.next_if(|file| file.name() < path).is_some() {}
            let found = files.next_if(|file| file.name() == path);
            if let Some(position) = positions.get_mut(line) {
                *position = found.map(Entry::index);
            }
        }
        positions
    }

    /// Returns the paths of all files, in the order of the archive; sorted in a folder.
    pub(crate) fn paths(&self) -> Result<Vec<String>> {
        match self {
            Self::Archive(archive) => {
                let files = archive.entries().filter(|entry| entry.info().kind != Kind::Folder);
                Ok(files.map(|entry| entry.name().to_owned()).collect())
            }
            Self::Folder(folder) => folder.paths(),
        }
    }

    pub(crate) const fn archive(&self) -> Option<&Archive> {
        match self {
            Self::Archive(archive) => Some(archive),
            Self::Folder(_) => None,
        }
    }
}

impl Stored<'_> {
    /// Returns the length of the content, in bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Entry(entry) => entry.info().size,
            Self::Source(source) => source.len(),
        }
    }

    /// Returns the content; a slice where it is stored as it is and in memory.
    pub(crate) fn bytes(&self) -> Result<Bytes> {
        match self {
            Self::Entry(entry) => Ok(entry.bytes()?),
            Self::Source(source) => Ok(source.read(Extent::first(source.len()), "file")?),
        }
    }

    /// Returns the content, compared with the checksum of the archive whatever the method.
    pub(crate) fn checked_bytes(&self) -> Result<Bytes> {
        match self {
            Self::Entry(entry) => Ok(entry.checked_bytes()?),
            Self::Source(_) => self.bytes(),
        }
    }

    /// Returns the content as a stream.
    pub(crate) fn reader(&self) -> Result<StoredReader> {
        match self {
            Self::Entry(entry) => Ok(StoredReader::Entry(Box::new(entry.reader()?))),
            Self::Source(source) => {
                Ok(StoredReader::Source(source.stream(Extent::first(source.len()), "file")?))
            }
        }
    }

    /// Tells whether the bytes lie in the carton as they are.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            Self::Entry(entry) => entry.info().method == Method::Stored,
            Self::Source(_) => true,
        }
    }

    /// Returns where the bytes are in the archive, where they lie there as they are.
    pub(crate) fn extent(&self) -> Result<Option<Extent>> {
        match self {
            Self::Entry(entry) if self.is_plain() => Ok(Some(entry.extent()?)),
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
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
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
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Entry(reader) => reader.read(out),
            Self::Source(reader) => reader.read(out),
        }
    }
}

/// A folder that is read as if it were the root of a carton.
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
        Ok(Self { root })
    }

    /// Opens a file; `path` is a checked one. A link that leads out is refused.
    pub(crate) fn file(&self, path: &str) -> Result<Option<Source>> {
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
        if !metadata.is_file() {
            return Err(fail(FileFault::Irregular));
        }
        Ok(Some(Source::open(found)?))
    }

    /// Returns the path of what a symbolic link leads to, one step far; `None` where it is no link,
    /// or leads out.
    pub(crate) fn target(&self, path: &str) -> Option<String> {
        let link = self.root.join(path);
        let target = link.parent()?.join(fs::read_link(&link).ok()?);
        let target = target.parent()?.canonicalize().ok()?.join(target.file_name()?);
        let parts = target.strip_prefix(&self.root).ok()?.iter();
        Some(parts.map(|part| part.to_str()).collect::<Option<Vec<_>>>()?.join("/"))
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.root.join(path).is_file()
    }

    /// Walks the folder; links to folders are not followed.
    pub(crate) fn paths(&self) -> Result<Vec<String>> {
        let mut paths = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            self.list(&folder, &mut folders, &mut paths).map_err(|source| {
                tensor_core::Error::File { path: folder.clone(), what: "listing", source }
            })?;
        }
        paths.sort();
        Ok(paths)
    }

    fn list(
        &self,
        folder: &Path,
        folders: &mut Vec<PathBuf>,
        paths: &mut Vec<String>,
    ) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
                continue;
            }
            let path = entry.path();
            let path = path.strip_prefix(&self.root).unwrap_or(&path);
            let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
            paths.push(parts.join("/"));
        }
        Ok(())
    }
}
