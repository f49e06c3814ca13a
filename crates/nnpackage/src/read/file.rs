//! Handles on the files of a package.

use std::path::PathBuf;

use bytes::Bytes;
use tensor_core::{Extent, Source};

use crate::{
    Content, Error, FileFault, Reader, Result,
    read::storage::{Storage, Stored, StoredReader},
};

/// A handle on a file of a package, which may not be there: whatever the manifest names has one.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    reader: &'a Reader,
    path: &'a str,
}

impl<'a> File<'a> {
    pub(crate) const fn new(reader: &'a Reader, path: &'a str) -> Self {
        Self { reader, path }
    }

    /// Returns its path from the root of the package.
    #[must_use]
    pub const fn path(self) -> &'a str {
        self.path
    }

    /// Returns its length in bytes.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where it is not in the package, or would be read from outside of it.
    pub fn len(self) -> Result<u64> {
        Ok(self.stored()?.len())
    }

    /// Tells whether it has no bytes.
    ///
    /// # Errors
    ///
    /// As for [`len`](Self::len).
    pub fn is_empty(self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Returns its content: without a copy where it is stored as it is, and in memory. What is
    /// decoded is compared with the checksum of the archive.
    ///
    /// # Errors
    ///
    /// As for [`len`](Self::len), and where it cannot be read.
    pub fn bytes(self) -> Result<Bytes> {
        let source = self.source()?;
        Ok(source.read(Extent::first(source.len()), "file")?)
    }

    /// Returns its content as a source: where it lies in the archive or the folder, or else decoded
    /// in memory.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn source(self) -> Result<Source> {
        self.stored()?.source()
    }

    /// Returns where its bytes are in the archive; `None` where they are compressed, or in a
    /// folder.
    ///
    /// # Errors
    ///
    /// As for [`len`](Self::len).
    pub fn extent(self) -> Result<Option<Extent>> {
        self.stored()?.extent()
    }

    /// Returns where it is in the file system, links resolved; `None` in an archive.
    ///
    /// Whoever wants a file of a folder mapped opens this path with `Source::map`.
    ///
    /// # Errors
    ///
    /// As for [`len`](Self::len).
    pub fn disk_path(self) -> Result<Option<PathBuf>> {
        self.stored()?;
        self.reader.storage().disk_path(self.path)
    }

    /// Returns what it is by its first bytes.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn content(self) -> Result<Content> {
        self.stored()?.content()
    }

    /// Reads all of it and compares it with the checksum of the archive; a folder has none.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes), and where the checksum differs.
    pub fn verify(self) -> Result<()> {
        match self.stored()? {
            Stored::Entry(_, entry) => Ok(entry.verify()?),
            Stored::Source(source) => {
                let mut stream = source.stream(Extent::first(source.len()), "file")?;
                let copied = std::io::copy(&mut stream, &mut std::io::sink());
                let (what, offset) = ("file", 0);
                copied.map_err(|source| tensor_core::Error::Read { what, offset, source })?;
                Ok(())
            }
        }
    }

    pub(crate) fn document(self, what: &'static str) -> Result<Bytes> {
        self.stored()?.document(what, self.reader.limits().document_bytes)
    }

    pub(crate) fn stream(self) -> Result<StoredReader> {
        self.stored()?.reader()
    }

    fn stored(self) -> Result<Stored<'a>> {
        let storage: &'a Storage = self.reader.storage();
        if let Some(stored) = storage.file(self.path, self.reader.limits())? {
            return Ok(stored);
        }
        let is_folder = storage.is_folder(self.path);
        let fault = if is_folder { FileFault::Folder } else { FileFault::Missing };
        Err(Error::File { path: self.path.to_owned(), fault })
    }
}
