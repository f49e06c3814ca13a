//! Files wherever they are stored: in an archive, in a folder of one, or in a folder.

use std::{
    io::{self, BufRead, Read},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use tensor_core::{Extent, Source, SourceReader};

use crate::{
    Archive, Entry, EntryReader, Error, FileFault, Folder, Kind, Method, ReadOptions, Result, name,
};

/// The files of a model, whatever holds them.
///
/// # Examples
///
/// ```
/// use model_archive::{Archive, ArchiveWriter, EntryOptions, Storage};
///
/// let mut writer = ArchiveWriter::new(Vec::new());
/// writer.add("model/weights", b"content", &EntryOptions::default())?;
/// let archive = Archive::from_bytes(writer.finish()?)?;
/// let storage = Storage::from(archive).below("model");
/// assert_eq!(storage.paths()?, ["weights"]);
/// assert_eq!(storage.file("weights")?.unwrap().bytes()?, "content");
/// # Ok::<(), model_archive::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Storage {
    holder: Holder,
    /// What stands before paths in an archive: empty, or with a slash at its end.
    root: String,
}

#[derive(Clone, Debug)]
enum Holder {
    Archive(Archive),
    Folder(Folder),
}

impl From<Archive> for Storage {
    fn from(archive: Archive) -> Self {
        Self { holder: Holder::Archive(archive), root: String::new() }
    }
}

impl From<Folder> for Storage {
    fn from(folder: Folder) -> Self {
        Self { holder: Holder::Folder(folder), root: String::new() }
    }
}

impl Storage {
    /// Opens a folder, or any other file as an archive.
    ///
    /// # Errors
    ///
    /// As for [`Folder::open`] and [`Archive::open`].
    pub fn open(path: impl AsRef<Path>, options: ReadOptions) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            return Ok(Folder::open(path)?.limits(options.limits).into());
        }
        Ok(options.open(path)?.into())
    }

    /// Makes the files below a folder of an archive the only ones that there are; an empty name
    /// stands for all. A folder on the disk stays as it is.
    #[must_use]
    pub fn below(mut self, folder: &str) -> Self {
        if let Holder::Archive(_) = self.holder {
            let folder = folder.strip_suffix('/').unwrap_or(folder);
            self.root = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        }
        self
    }

    /// Returns the archive; `None` for a folder.
    #[must_use]
    pub const fn archive(&self) -> Option<&Archive> {
        match &self.holder {
            Holder::Archive(archive) => Some(archive),
            Holder::Folder(_) => None,
        }
    }

    /// Returns the folder; `None` for an archive.
    #[must_use]
    pub const fn folder(&self) -> Option<&Folder> {
        match &self.holder {
            Holder::Archive(_) => None,
            Holder::Folder(folder) => Some(folder),
        }
    }

    /// Returns what stands before all paths in the archive: empty, or with a slash at its end.
    #[must_use]
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Returns the file of a path, symbolic links followed; `None` where nothing is there.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the path is unsafe, leads out of the folder, or is that of a folder or
    /// a device; [`Fault::Target`](crate::Fault::Target) where a link in an archive leads nowhere.
    pub fn file(&self, path: &str) -> Result<Option<Stored<'_>>> {
        let archive = match &self.holder {
            Holder::Archive(archive) => archive,
            Holder::Folder(folder) => return Ok(folder.file(path)?.map(Stored::Source)),
        };
        if let Err(fault) = name::check(path, archive.limits()) {
            return Err(Error::File { path: path.to_owned(), fault: FileFault::Name(fault) });
        }
        match archive.entry(&self.name(path)) {
            Some(entry) if entry.info().kind != Kind::Folder => {
                Ok(Some(Stored::Entry(entry.resolve()?)))
            }
            _ if self.is_folder(path) => {
                Err(Error::File { path: path.to_owned(), fault: FileFault::Folder })
            }
            _ => Ok(None),
        }
    }

    /// Tells whether there is a file of a path, be it a link that leads nowhere in an archive.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        match &self.holder {
            Holder::Archive(archive) => archive
                .entry(&self.name(path))
                .is_some_and(|entry| entry.info().kind != Kind::Folder),
            Holder::Folder(folder) => folder.has(path),
        }
    }

    /// Tells whether a path is that of a folder, with an entry of its own or without.
    #[must_use]
    pub fn is_folder(&self, path: &str) -> bool {
        match &self.holder {
            Holder::Archive(archive) => {
                let name = self.name(path.strip_suffix('/').unwrap_or(path));
                let entry = archive.entry(&name);
                entry.is_some_and(|entry| entry.info().kind == Kind::Folder)
                    || archive.entries_below(&format!("{name}/")).next().is_some()
            }
            Holder::Folder(folder) => folder.is_folder(path),
        }
    }

    /// Returns the paths of all files and links, sorted.
    ///
    /// # Errors
    ///
    /// Those of [`Folder::paths`]; none for an archive.
    pub fn paths(&self) -> Result<Vec<String>> {
        let archive = match &self.holder {
            Holder::Archive(archive) => archive,
            Holder::Folder(folder) => return folder.paths(),
        };
        let files = archive.entries_below(&self.root);
        let files = files.filter(|entry| entry.info().kind != Kind::Folder);
        let paths = files.filter_map(|entry| entry.name().strip_prefix(&*self.root));
        Ok(paths.map(str::to_owned).collect())
    }

    /// Returns the paths of the folders that have entries of their own in an archive, sorted and
    /// without slashes at their ends; nothing for a folder on the disk.
    #[must_use]
    pub fn folders(&self) -> Vec<&str> {
        let Holder::Archive(archive) = &self.holder else { return Vec::new() };
        let folders = archive.entries_below(&self.root);
        let folders = folders.filter(|entry| entry.info().kind == Kind::Folder);
        let paths = folders.filter_map(|entry| entry.name().strip_prefix(&*self.root));
        paths.map(|path| path.trim_end_matches('/')).filter(|path| !path.is_empty()).collect()
    }

    /// Returns where a file is in the file system, as [`Folder::disk_path`] does; `None` in an
    /// archive.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file).
    pub fn disk_path(&self, path: &str) -> Result<Option<PathBuf>> {
        match &self.holder {
            Holder::Archive(_) => Ok(None),
            Holder::Folder(folder) => folder.disk_path(path),
        }
    }

    fn name(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }
}

/// A file as it is stored, symbolic links followed.
#[derive(Clone, Debug)]
pub enum Stored<'a> {
    /// An entry of an archive.
    Entry(Entry<'a>),
    /// A file of a folder, or whatever else was found elsewhere.
    Source(Source),
}

impl Stored<'_> {
    /// Returns the length of the content, in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Entry(entry) => entry.info().size,
            Self::Source(source) => source.len(),
        }
    }

    /// Tells whether there is no content.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells whether the bytes are stored as they are.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        match self {
            Self::Entry(entry) => entry.info().method == Method::Stored,
            Self::Source(_) => true,
        }
    }

    /// Returns where the bytes are in the archive; `None` where they are compressed, or in no
    /// archive.
    ///
    /// # Errors
    ///
    /// As for [`Entry::extent`].
    pub fn extent(&self) -> Result<Option<Extent>> {
        match self {
            Self::Entry(entry) if self.is_plain() => Ok(Some(entry.extent()?)),
            _ => Ok(None),
        }
    }

    /// Returns the content; a slice where it is stored as it is and in memory.
    ///
    /// # Errors
    ///
    /// As for [`Entry::bytes`].
    pub fn bytes(&self) -> Result<Bytes> {
        match self {
            Self::Entry(entry) => entry.bytes(),
            Self::Source(source) => Ok(source.read(Extent::first(source.len()), "file")?),
        }
    }

    /// Returns the content, compared with the checksum of the archive whatever the method.
    ///
    /// # Errors
    ///
    /// As for [`Entry::checked_bytes`].
    pub fn checked_bytes(&self) -> Result<Bytes> {
        match self {
            Self::Entry(entry) => entry.checked_bytes(),
            Self::Source(_) => self.bytes(),
        }
    }

    /// Returns the first `len` bytes of the content, or all where it has fewer; no more is decoded
    /// than it takes.
    ///
    /// # Errors
    ///
    /// As for [`Entry::reader`].
    pub fn start(&self, len: usize) -> Result<Bytes> {
        if self.is_plain() {
            let source = self.source()?;
            return Ok(source.read(Extent::first(source.len().min(len as u64)), "file")?);
        }
        let mut start = Vec::new();
        self.reader()?.take(len as u64).read_to_end(&mut start).map_err(StoredReader::fault)?;
        Ok(start.into())
    }

    /// Fills the caller's buffer with the content, compared with the checksum of the archive.
    ///
    /// # Errors
    ///
    /// As for [`Entry::read_into`].
    pub fn read_into(&self, buffer: &mut [u8]) -> Result<()> {
        match self {
            Self::Entry(entry) => entry.read_into(buffer),
            Self::Source(source) => {
                Ok(source.read_into(Extent::first(source.len()), buffer, "file")?)
            }
        }
    }

    /// Returns the content as a source: in place where it is stored as it is, else decoded in
    /// memory.
    ///
    /// # Errors
    ///
    /// As for [`Entry::source`].
    pub fn source(&self) -> Result<Source> {
        match self {
            Self::Entry(entry) => entry.source(),
            Self::Source(source) => Ok(source.clone()),
        }
    }

    /// Returns the content as a stream, compared with the checksum of the archive.
    ///
    /// # Errors
    ///
    /// As for [`Entry::reader`].
    pub fn reader(&self) -> Result<StoredReader> {
        match self {
            Self::Entry(entry) => Ok(StoredReader::Entry(Box::new(entry.reader()?))),
            Self::Source(source) => {
                Ok(StoredReader::Source(source.stream(Extent::first(source.len()), "file")?))
            }
        }
    }

    /// Reads all of it, and compares it with the checksum of the archive; a file of a folder has
    /// none.
    ///
    /// # Errors
    ///
    /// As for [`Entry::verify`].
    pub fn verify(&self) -> Result<()> {
        let mut reader = self.reader()?;
        loop {
            let ready = reader.fill_buf().map_err(StoredReader::fault)?.len();
            if ready == 0 {
                return Ok(());
            }
            reader.consume(ready);
        }
    }
}

/// The content of a stored file as a stream, made by [`Stored::reader`].
#[derive(Debug)]
pub enum StoredReader {
    /// Of an entry of an archive.
    Entry(Box<EntryReader>),
    /// Of a file.
    Source(SourceReader),
}

impl StoredReader {
    /// Turns an error of this stream into what it is about.
    #[must_use]
    pub fn fault(error: io::Error) -> Error {
        EntryReader::fault(error)
    }

    /// As [`EntryReader::frames`]; 0 for a file.
    #[must_use]
    pub fn frames(&self) -> u64 {
        match self {
            Self::Entry(reader) => reader.frames(),
            Self::Source(_) => 0,
        }
    }

    /// As [`EntryReader::leftover`]; 0 for a file.
    #[must_use]
    pub fn leftover(&self) -> u64 {
        match self {
            Self::Entry(reader) => reader.leftover(),
            Self::Source(_) => 0,
        }
    }
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
