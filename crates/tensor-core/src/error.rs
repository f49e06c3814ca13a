use std::{fmt, io, path::PathBuf};

use crate::{At, DType, Shape};

/// What an error means for whoever meets it, the same over all formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The file breaks its format's text, contradicts itself, or is of no known format.
    Malformed,
    /// The file may be sound, but says something that this build does not know, such as a later
    /// version.
    Unsupported,
    /// A value in the file is legal but more than the caller's [`Limits`](crate::Limits) allow.
    OverLimit,
    /// What was asked for is not there: a path, a name.
    NotFound,
    /// The system failed: reading, writing, permissions, memory.
    Io,
    /// Another process has the file, or replaced it meanwhile.
    Busy,
    /// The caller asked for what cannot be done, whatever the file.
    Usage,
}

impl ErrorKind {
    /// Returns the stable id of the rule that is broken by a file of which an error has no rule of
    /// its own.
    #[must_use]
    pub const fn file_rule(self) -> &'static str {
        match self {
            Self::Malformed | Self::Unsupported => "file/malformed",
            Self::OverLimit => "file/limit",
            Self::NotFound => "file/not-found",
            Self::Io => "file/read",
            Self::Busy => "file/busy",
            Self::Usage => "file/usage",
        }
    }

    /// Tells whether the content of the file is the cause, not its surroundings or the caller.
    #[must_use]
    pub const fn is_file_fault(self) -> bool {
        match self {
            Self::Malformed | Self::Unsupported | Self::OverLimit => true,
            Self::NotFound | Self::Io | Self::Busy | Self::Usage => false,
        }
    }
}

/// What can go wrong with bytes, ranges, shapes and element types, whatever the format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A part lies outside the bytes that hold it.
    #[error("{what} at byte {offset} needs {needed} bytes, but {remaining} remain")]
    OutOfBounds {
        /// The part that was to be read.
        what: &'static str,
        /// Where it starts, in bytes from the start of the source.
        offset: u64,
        /// Its length in bytes.
        needed: u64,
        /// Bytes that there are from `offset` on.
        remaining: u64,
    },
    /// An offset and a length add up to more than 64 bits can hold.
    #[error("extent of {len} bytes at byte {offset} ends beyond 2^64")]
    ExtentOverflow {
        /// Start, in bytes.
        offset: u64,
        /// Length, in bytes.
        len: u64,
    },
    /// A read failed.
    #[error("{what} at byte {offset} could not be read")]
    Read {
        /// The part that was to be read.
        what: &'static str,
        /// Where it starts, in bytes from the start of the source.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be opened, created or replaced.
    #[error("{path:?}: {what} failed")]
    File {
        /// The file.
        path: PathBuf,
        /// The step that failed.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Something other than a regular file was given where a file is read at random positions.
    #[error("{path:?} is {found}, expected a regular file")]
    NotAFile {
        /// What was to be opened.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The file at a path is no longer the one that was opened there.
    #[error("{path:?} was replaced or changed while it was open, expected the same file")]
    Replaced {
        /// The path.
        path: PathBuf,
    },
    /// Another process is editing the file.
    #[error("{path:?} is locked, expected no other writer")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A disk has no room for what is to be written, and some to spare.
    #[error("{path:?} needs {needed} bytes of room, but {free} are free")]
    DiskFull {
        /// What is to be written.
        path: PathBuf,
        /// What it needs, in bytes.
        needed: u64,
        /// What is free, in bytes.
        free: u64,
    },
    /// A value is legal but larger than the caller allows.
    #[error("{what} is {found}, over the limit of {limit} (Limits::{field})")]
    OverLimit {
        /// The value.
        what: &'static str,
        /// What was found.
        found: u64,
        /// What is allowed.
        limit: u64,
        /// The field of [`Limits`](crate::Limits) that allows more.
        field: &'static str,
    },
    /// Memory could not be had.
    #[error("{bytes} bytes of memory could not be allocated")]
    OutOfMemory {
        /// How many bytes were asked for.
        bytes: u64,
    },
    /// The number of elements of a shape is more than 64 bits can hold.
    #[error("shape {shape} has more elements than 64 bits can count")]
    ShapeOverflow {
        /// The shape.
        shape: Shape,
    },
    /// The bytes of a tensor are more than 64 bits can count.
    #[error("shape {shape} of {dtype} has more bytes than 64 bits can count")]
    SizeOverflow {
        /// The shape.
        shape: Shape,
        /// The element type.
        dtype: DType,
    },
    /// An element type has no fixed size, or is not stored in whole bytes as this call needs.
    #[error("elements of {dtype} have no fixed size in bytes, expected a numeric element type")]
    Unsized {
        /// The element type.
        dtype: DType,
    },
    /// Bytes do not match the shape and element type that they are said to have.
    #[error("shape {shape} of {dtype} needs {expected} bytes, but {found} are there")]
    WrongLength {
        /// The shape.
        shape: Shape,
        /// The element type.
        dtype: DType,
        /// What the shape needs, in bytes.
        expected: u64,
        /// What is there, in bytes.
        found: u64,
    },
    /// The caller's buffer is not as long as what is read into it.
    #[error("{what} is {expected} bytes long, but the buffer holds {found}")]
    WrongBuffer {
        /// The part that was to be read.
        what: &'static str,
        /// Its length in bytes.
        expected: u64,
        /// The length of the buffer in bytes.
        found: u64,
    },
    /// A Rust type was asked for that is not the tensor's element type.
    #[error("elements are {found}, not {asked}")]
    WrongType {
        /// The tensor's element type.
        found: DType,
        /// The element type that was asked for.
        asked: DType,
    },
    /// Elements were asked for in place, and do not start where their type must.
    #[error("bytes of {dtype} are not aligned to {needed} bytes in memory; a copy would be")]
    Misaligned {
        /// The element type.
        dtype: DType,
        /// The alignment that its elements need, in bytes.
        needed: u64,
    },
    /// Elements were asked for in place on a host that stores numbers the other way round.
    #[error("elements of {dtype} are little-endian, and this host is not; a copy would be turned")]
    ByteOrder {
        /// The element type.
        dtype: DType,
    },
    /// Another library was asked to hold elements that it does not have.
    #[error("elements are {dtype}, which {library} does not have")]
    Unrepresentable {
        /// The element type.
        dtype: DType,
        /// The library.
        library: &'static str,
    },
    /// A dimension is more than this host's `usize` can hold.
    #[error("shape {shape} has a dimension that does not fit this host's usize")]
    DimensionTooLarge {
        /// The shape.
        shape: Shape,
    },
    /// A bool is stored as something other than 0 or 1.
    #[error("bool at element {index} is {found}, expected 0 or 1")]
    NotABool {
        /// Which element, counted from 0.
        index: u64,
        /// The byte.
        found: u8,
    },
}

impl Error {
    /// Returns the stable id of the rule that is broken.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::OutOfBounds { .. } => "file/truncated",
            error => error.kind().file_rule(),
        }
    }

    /// Returns what the error means for whoever meets it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::OutOfBounds { .. }
            | Self::ExtentOverflow { .. }
            | Self::ShapeOverflow { .. }
            | Self::SizeOverflow { .. }
            | Self::WrongLength { .. }
            | Self::NotABool { .. } => ErrorKind::Malformed,
            Self::OverLimit { .. } => ErrorKind::OverLimit,
            Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                ErrorKind::NotFound
            }
            Self::Read { .. }
            | Self::File { .. }
            | Self::DiskFull { .. }
            | Self::OutOfMemory { .. } => ErrorKind::Io,
            Self::Replaced { .. } | Self::Locked { .. } => ErrorKind::Busy,
            Self::NotAFile { .. }
            | Self::Unsized { .. }
            | Self::WrongBuffer { .. }
            | Self::WrongType { .. }
            | Self::Misaligned { .. }
            | Self::ByteOrder { .. }
            | Self::Unrepresentable { .. }
            | Self::DimensionTooLarge { .. } => ErrorKind::Usage,
        }
    }

    /// Returns the place that the error is about: the byte, where it is about one.
    #[must_use]
    pub fn at(&self) -> At {
        match self {
            Self::OutOfBounds { offset, .. }
            | Self::ExtentOverflow { offset, .. }
            | Self::Read { offset, .. } => At::file().offset(*offset),
            _ => At::file(),
        }
    }
}

/// Shows an error and its causes in one line, each behind a colon.
///
/// # Examples
///
/// ```
/// let error = tensor_core::Source::open("none").unwrap_err();
/// assert!(tensor_core::Chain(&error).to_string().starts_with("\"none\": opening failed: "));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a>(pub &'a (dyn std::error::Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        self.errors().skip(1).try_for_each(|error| write!(f, ": {error}"))
    }
}

impl<'a> Chain<'a> {
    /// Returns the error and its causes, the first cause last.
    pub fn errors(&self) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> + use<'a> {
        std::iter::successors(Some(self.0), |error| error.source())
    }
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn a_missing_file_is_told_from_one_that_cannot_be_read() {
        let missing = Source::open("no/such/file").unwrap_err();
        assert_eq!((missing.kind(), missing.rule()), (ErrorKind::NotFound, "file/not-found"));
        let denied = io::ErrorKind::PermissionDenied.into();
        let denied = Error::File { path: "a".into(), what: "opening", source: denied };
        assert_eq!((denied.kind(), denied.rule()), (ErrorKind::Io, "file/read"));
    }
}
