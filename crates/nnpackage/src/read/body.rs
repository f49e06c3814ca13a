//! What a file holds, wherever that is.

use std::path::PathBuf;

use bytes::Bytes;
use model_archive::{Archive, Stored, StoredReader};
use tensor_core::{Extent, Source};

use crate::{
    Content, Error, FileFault, Result,
    read::storage::{Storage, entry},
    sums,
};

/// What a file holds that is written.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// Bytes of the caller.
    Source(Source),
    /// A file of the system, opened when it is written; with every link resolved.
    Disk(PathBuf),
    /// A file of a package in a folder, opened when it is written.
    File { storage: Storage, path: String },
    /// An entry of another archive, by its name there.
    Entry { archive: Archive, name: String },
}

impl Body {
    /// Takes a file of a package, which may not be there; then it cannot be opened.
    pub(crate) fn of(storage: &Storage, path: &str) -> Self {
        match storage.archive() {
            Some(archive) => {
                Self::Entry { archive: archive.clone(), name: format!("{}{path}", storage.root()) }
            }
            None => Self::File { storage: storage.clone(), path: path.to_owned() },
        }
    }

    pub(crate) fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self::Source(Source::from_bytes(bytes))
    }

    /// Returns the length of the content in bytes, and the content as a stream.
    pub(crate) fn open(&self) -> Result<(u64, StoredReader)> {
        let stored = self.stored()?;
        Ok((stored.len(), stored.reader()?))
    }

    /// Returns the content as it is stored.
    pub(crate) fn stored(&self) -> Result<Stored<'_>> {
        Ok(match self {
            Self::Source(source) => Stored::Source(source.clone()),
            Self::Disk(path) => Stored::Source(Source::open(path)?),
            Self::File { storage, path } => storage.file(path)?.ok_or_else(|| {
                let (path, fault) = (path.clone(), FileFault::Missing);
                Error::File { path, fault }
            })?,
            Self::Entry { archive, name } => Stored::Entry(entry(archive, name)?),
        })
    }

    /// Returns the content as a source: decoded in memory where it is compressed.
    pub(crate) fn source(&self) -> Result<Source> {
        Ok(self.stored()?.source()?)
    }

    /// Returns what the content is by its first bytes; no more of it is decoded.
    pub(crate) fn content(&self) -> Result<Content> {
        Ok(Content::of(&self.stored()?.start(Content::START)?))
    }

    /// Returns all of the content.
    pub(crate) fn bytes(&self) -> Result<Bytes> {
        let source = self.source()?;
        Ok(source.read(Extent::first(source.len()), "file")?)
    }

    /// Tells whether another one has the same content.
    pub(crate) fn is_same(&self, other: &Self) -> Result<bool> {
        let ((len, a), (other_len, b)) = (self.open()?, other.open()?);
        Ok(len == other_len && sums::digest(a)? == sums::digest(b)?)
    }
}
