//! Handles on the files in a model: records, and what its author put beside it.

use std::{
    io::{self, Read},
    sync::atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use model_archive::{Entry, EntryReader, Method};
use tensor_core::{Extent, Source, SourceReader, Verified, Verify};

use crate::Result;

/// A handle on a file in a model: a record of a ZIP file, or an extra file.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    path: &'a str,
    source: &'a Source,
    content: Content<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Content<'a> {
    Record {
        entry: Entry<'a>,
        verify: Verify,
        /// Whether its checksum was compared before.
        is_verified: &'a AtomicBool,
    },
    Extent(Extent),
}

impl<'a> File<'a> {
    pub(crate) const fn record(
        path: &'a str,
        source: &'a Source,
        entry: Entry<'a>,
        verify: Verify,
        is_verified: &'a AtomicBool,
    ) -> Self {
        Self { path, source, content: Content::Record { entry, verify, is_verified } }
    }

    pub(crate) const fn extent_of(path: &'a str, source: &'a Source, extent: Extent) -> Self {
        Self { path, source, content: Content::Extent(extent) }
    }

    /// Returns the same file by another name, with its checksum compared at every read.
    pub(crate) const fn as_extra(mut self, path: &'a str) -> Self {
        self.path = path;
        if let Content::Record { verify, .. } = &mut self.content {
            *verify = Verify::Always;
        }
        self
    }

    /// Returns its name: of a record without the root folder, of an extra file without the folder
    /// `extra/`, such as `model/live.spec.json`.
    #[must_use]
    pub const fn path(self) -> &'a str {
        self.path
    }

    /// Returns the bytes of its content.
    ///
    /// # Errors
    ///
    /// None in a model; the files of other formats have to be looked at.
    #[expect(clippy::len_without_is_empty, reason = "as the files of all formats")]
    pub fn len(self) -> Result<u64> {
        Ok(self.size())
    }

    pub(crate) fn size(self) -> u64 {
        match self.content {
            Content::Record { entry, .. } => entry.info().size,
            Content::Extent(extent) => extent.len(),
        }
    }

    /// Returns the bytes that it takes in the model file, headers not counted.
    #[must_use]
    pub fn stored_len(self) -> u64 {
        match self.content {
            Content::Record { entry, .. } => entry.info().stored_size,
            Content::Extent(extent) => extent.len(),
        }
    }

    /// Returns whether it is stored by DEFLATE.
    #[must_use]
    pub fn is_compressed(self) -> bool {
        match self.content {
            Content::Record { entry, .. } => entry.info().method != Method::Stored,
            Content::Extent(_) => false,
        }
    }

    /// Returns where its stored bytes are in the model file.
    ///
    /// # Errors
    ///
    /// [`Error::Archive`](crate::Error::Archive) where its local header is malformed.
    pub fn stored_extent(self) -> Result<Extent> {
        match self.content {
            Content::Record { entry, .. } => Ok(entry.extent()?),
            Content::Extent(extent) => Ok(extent),
        }
    }

    /// Returns its content: a slice of the model file without a copy where it is stored as it is and
    /// in memory.
    ///
    /// The checksum of an extra file is compared, and that of any compressed record; of others, where
    /// [`ReadOptions::verify`](crate::ReadOptions::verify) asks for it.
    ///
    /// # Errors
    ///
    /// [`Error::Archive`](crate::Error::Archive) where it cannot be read or decoded.
    pub fn bytes(self) -> Result<Bytes> {
        match self.content {
            Content::Record { entry, .. } if !self.is_checked() => Ok(entry.bytes()?),
            Content::Record { .. } => self.checked_bytes(),
            Content::Extent(extent) => Ok(self.source.read(extent, "file")?),
        }
    }

    /// Returns its content, whose checksum was compared.
    pub(crate) fn checked_bytes(self) -> Result<Bytes> {
        let Content::Record { entry, is_verified, .. } = self.content else { return self.bytes() };
        let bytes = if self.source.as_slice().is_some() && !self.is_compressed() {
            entry.verify()?;
            entry.bytes()?
        } else {
            entry.checked_bytes()?
        };
        is_verified.store(true, Ordering::Relaxed);
        Ok(bytes)
    }

    /// Returns its content as a stream, which ends well only where the checksum is right.
    ///
    /// # Errors
    ///
    /// As for [`stored_extent`](Self::stored_extent).
    pub fn reader(self) -> Result<FileReader> {
        Ok(FileReader(match self.content {
            Content::Record { entry, .. } => Stream::Record(Box::new(entry.reader()?)),
            Content::Extent(extent) => Stream::Extent(self.source.stream(extent, "file")?),
        }))
    }

    /// Reads all of it and compares its checksum; a FlatBuffer has none.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes), and where the checksum differs.
    pub fn verify(self) -> Result<Verified> {
        match self.content {
            Content::Record { entry, is_verified, .. } => {
                entry.verify()?;
                is_verified.store(true, Ordering::Relaxed);
                Ok(Verified::Digest)
            }
            Content::Extent(_) => Ok(Verified::NoDigest),
        }
    }

    /// Tells whether its checksum is to be compared when it is read.
    pub(crate) fn is_checked(self) -> bool {
        match self.content {
            Content::Record { verify: Verify::Once, is_verified, .. } => {
                !is_verified.load(Ordering::Relaxed)
            }
            Content::Record { verify, .. } => verify == Verify::Always,
            Content::Extent(_) => false,
        }
    }
}

/// The content of a [`File`] as a stream.
#[derive(Debug)]
pub struct FileReader(Stream);

#[derive(Debug)]
enum Stream {
    Record(Box<EntryReader>),
    Extent(SourceReader),
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Stream::Record(reader) => reader.read(buffer),
            Stream::Extent(reader) => reader.read(buffer),
        }
    }
}

impl FileReader {
    /// Returns the error that a failed read stands for.
    pub(crate) fn error(error: io::Error) -> crate::Error {
        EntryReader::fault(error).into()
    }
}
