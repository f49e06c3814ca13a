//! Handles on the files of a package.

use std::path::PathBuf;

use bytes::Bytes;
use model_archive::{Stored, StoredReader};
use tensor_core::{Extent, Limit, Source, Verified, Verify, digest::Digest};

use crate::{Content, Error, FileFault, Reader, Result, Sums};

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
        Ok(self.compared()?.bytes()?)
    }

    /// Returns its content as a stream, in memory that does not grow with it. It is compared with
    /// the checksum of the archive: the stream ends well only where that is right.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn reader(self) -> Result<StoredReader> {
        Ok(self.compared()?.reader()?)
    }

    /// Returns its content as a source: where it lies in the archive or the folder, or else decoded
    /// in memory.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn source(self) -> Result<Source> {
        Ok(self.compared()?.source()?)
    }

    /// Returns where its bytes are in the archive; `None` where they are compressed, or in a
    /// folder.
    ///
    /// # Errors
    ///
    /// As for [`len`](Self::len).
    pub fn extent(self) -> Result<Option<Extent>> {
        Ok(self.stored()?.extent()?)
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
        Ok(Content::of(&self.stored()?.start(Content::START)?))
    }

    /// Reads all of it, and compares it with the checksum of the archive, and with
    /// `metadata/SHA256SUMS` where that lists it.
    ///
    /// # Errors
    ///
    /// [`Error::Digest`]; as for [`bytes`](Self::bytes), and where the checksum differs.
    pub fn verify(self) -> Result<Verified> {
        let Some(expected) = self.reader.sums()?.and_then(|sums| sums.get(self.path)) else {
            self.stored()?.verify()?;
            return Ok(Verified::NoDigest);
        };
        let found = crate::sums::digest(self.stored()?.reader()?)?;
        if found != *expected {
            let [found, expected] = [found, *expected].map(Digest::Sha256);
            return Err(Error::Digest { path: self.path.to_owned(), found, expected });
        }
        Ok(Verified::Digest)
    }

    /// Returns all of a document, which is bounded.
    pub(crate) fn document(self, what: &'static str) -> Result<Bytes> {
        self.reader.limits().check(Limit::DocumentBytes, what, self.len()?)?;
        Ok(self.compared()?.checked_bytes()?)
    }

    /// Returns it as it is stored, compared with its digest where reading does that.
    fn compared(self) -> Result<Stored<'a>> {
        let reader = self.reader;
        let is_wanted = match reader.read_options().verify {
            // The list does not list itself.
            _ if self.path == Sums::PATH => false,
            Verify::Once => !reader.compared().contains(self.path),
            Verify::Always => true,
            Verify::Never => false,
        };
        if is_wanted && self.verify()? == Verified::Digest {
            reader.compared().insert(self.path.to_owned());
        }
        self.stored()
    }

    pub(crate) fn stored(self) -> Result<Stored<'a>> {
        let stored = self.reader.storage().file(self.path)?;
        let (path, fault) = (self.path, FileFault::Missing);
        stored.ok_or_else(|| Error::File { path: path.to_owned(), fault })
    }
}

impl Reader {
    /// Returns handles on all files, sorted by path.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where a folder cannot be listed.
    pub fn files(&self) -> Result<impl Iterator<Item = File<'_>>> {
        Ok(self.paths()?.iter().map(|path| File::new(self, path)))
    }

    /// Returns a handle on the file of a path; `None` where there is none that may be read.
    #[must_use]
    pub fn file<'a>(&'a self, path: &'a str) -> Option<File<'a>> {
        let file = File::new(self, path);
        file.len().is_ok().then_some(file)
    }

    /// Returns the list of digests, which is read the first time; `None` where there is none.
    ///
    /// # Errors
    ///
    /// As for [`Sums::parse`]; [`Error::Core`] where it is over the limit.
    pub fn sums(&self) -> Result<Option<&Sums>> {
        let cell = self.sums_cell();
        if let Some(sums) = cell.get() {
            return Ok(sums.as_ref());
        }
        let text = self.file(Sums::PATH).map(|file| file.document("SHA256SUMS in bytes"));
        let sums = text.map(|text| Sums::parse(&text?)).transpose()?;
        Ok(cell.get_or_init(|| sums).as_ref())
    }
}
