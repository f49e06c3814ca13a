//! Files inside a file of any format.

use std::io::{self, BufRead, Read, Write};

use crate::{AnyReader, Error, Result, weights};

/// A handle on a file inside a container of any format; nothing is read before it is asked for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum AnyFile<'a> {
    /// One that the manifest of a carton lists.
    #[cfg(feature = "carton")]
    Carton(carton_format::File<'a>),
    /// One of an nnpackage.
    #[cfg(feature = "nnpackage")]
    NnPackage(nnpackage::File<'a>),
    /// A file of a PyTorch Live model: of one that is a FlatBuffer by the name that its record in an
    /// archive would have.
    #[cfg(feature = "ptl")]
    Ptl(ptl_spec::File<'a>),
    /// None: a build may have no format that has files.
    #[doc(hidden)]
    Never(&'a std::convert::Infallible),
}

impl AnyReader {
    /// Returns handles on the files inside, in the order of the container; none of a format that is no
    /// container.
    ///
    /// # Errors
    ///
    /// Where the list of them cannot be read.
    pub fn files(&self) -> Result<Vec<AnyFile<'_>>> {
        Ok(match self {
            #[cfg(feature = "carton")]
            Self::Carton(reader) => reader.files().map(AnyFile::Carton).collect(),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(reader) => reader.files()?.map(AnyFile::NnPackage).collect(),
            #[cfg(feature = "ptl")]
            Self::Ptl(reader) => reader.files()?.map(AnyFile::Ptl).collect(),
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => Vec::new(),
        })
    }

    /// Returns a handle on the file of a path; of a PyTorch Live model also on the extra file of a name.
    ///
    /// # Errors
    ///
    /// As for [`files`](Self::files).
    pub fn file(&self, path: &str) -> Result<Option<AnyFile<'_>>> {
        let found = self.files()?.into_iter().find(|file| file.path() == path);
        Ok(match self {
            #[cfg(feature = "ptl")]
            Self::Ptl(reader) => found.or_else(|| reader.extra_file(path).map(AnyFile::Ptl)),
            #[allow(unreachable_patterns, reason = "without PyTorch Live")]
            _ => found,
        })
    }
}

impl<'a> AnyFile<'a> {
    /// Returns its path inside the container, as [`summary`](AnyReader::summary) has it.
    #[must_use]
    pub fn path(self) -> &'a str {
        match self {
            #[cfg(feature = "carton")]
            Self::Carton(file) => file.path(),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(file) => file.path(),
            #[cfg(feature = "ptl")]
            Self::Ptl(file) => file.path(),
            Self::Never(never) => match *never {},
        }
    }

    /// Returns its length in bytes, decoded.
    ///
    /// # Errors
    ///
    /// Where it is not there.
    pub fn byte_len(self) -> Result<u64> {
        match self {
            #[cfg(feature = "carton")]
            Self::Carton(file) => Ok(file.len()?),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(file) => Ok(file.len()?),
            #[cfg(feature = "ptl")]
            Self::Ptl(file) => Ok(file.len()?),
            Self::Never(never) => match *never {},
        }
    }

    /// Tells whether its content is elsewhere: a carton only links to it.
    #[must_use]
    pub fn is_elsewhere(self) -> bool {
        match self {
            #[cfg(feature = "carton")]
            Self::Carton(file) => file.place() == carton_format::Place::Linked,
            #[allow(unreachable_patterns, reason = "without cartons")]
            _ => false,
        }
    }

    /// Returns its content as a stream, in memory that does not grow with it.
    ///
    /// # Errors
    ///
    /// Where it cannot be read.
    pub fn reader(self) -> Result<Box<dyn Read + 'a>> {
        match self {
            #[cfg(feature = "carton")]
            Self::Carton(file) => Ok(Box::new(file.reader()?)),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(file) => Ok(Box::new(file.reader()?)),
            #[cfg(feature = "ptl")]
            Self::Ptl(file) => Ok(Box::new(file.reader()?)),
            Self::Never(never) => match *never {},
        }
    }

    /// Writes its content, in memory that does not grow with it, and returns how many bytes there
    /// were. Checksums are compared on the way.
    ///
    /// # Errors
    ///
    /// Where it cannot be read or has another checksum; [`weights::Error::Write`] where the sink fails.
    pub fn copy_to(self, sink: &mut dyn Write) -> Result<u64> {
        match self {
            #[cfg(feature = "carton")]
            Self::Carton(file) => {
                copy(file.reader()?, sink, |error| carton_format::FileReader::fault(error).into())
            }
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(file) => {
                copy(file.reader()?, sink, |error| model_archive::StoredReader::fault(error).into())
            }
            #[cfg(feature = "ptl")]
            Self::Ptl(file) => copy(io::BufReader::new(file.reader()?), sink, |error| {
                model_archive::EntryReader::fault(error).into()
            }),
            Self::Never(never) => match *never {},
        }
    }
}

fn copy(
    mut content: impl BufRead,
    sink: &mut dyn Write,
    fault: impl Fn(io::Error) -> Error,
) -> Result<u64> {
    let mut copied = 0_u64;
    loop {
        let ready = content.fill_buf().map_err(&fault)?;
        if ready.is_empty() {
            return Ok(copied);
        }
        sink.write_all(ready).map_err(weights::Error::Write)?;
        let len = ready.len();
        content.consume(len);
        copied = copied.saturating_add(len as u64);
    }
}
