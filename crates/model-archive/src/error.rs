use std::io;

use tensor_core::{At, Chain, ErrorKind, Finding, Profile, text::Quoted};

use crate::{FaultAt, FileFault, Kind, WriteFault};

/// What can go wrong with an archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The end record or the directory cannot be made out. Application note, section 4.3.
    #[error("directory of the archive cannot be read")]
    Directory {
        /// What the parser said.
        source: Box<dyn std::error::Error + Send + Sync>,
        /// Whether there is an end record, without which a file is hardly an archive.
        has_end: bool,
    },
    /// The archive, or an entry of it, is refused.
    #[error(transparent)]
    Fault(#[from] Box<FaultAt>),
    /// An entry is not what the call needs, such as a folder whose bytes are asked for.
    #[error("entry {entry:?} is {found}, expected {expected}")]
    Kind {
        /// The name of the entry.
        entry: String,
        /// What it is.
        found: Kind,
        /// What the call needs.
        expected: Kind,
    },
    /// An entry cannot be written as it was asked for.
    #[error("entry {entry:?} cannot be written: {fault}")]
    Write {
        /// The name of the entry.
        entry: String,
        /// Why.
        fault: WriteFault,
    },
    /// An entry was begun and not finished, so that the archive cannot go on.
    #[error("entry {entry:?} was begun and not finished")]
    Unfinished {
        /// The name of the entry.
        entry: String,
    },
    /// The sink, or the stream that an entry is read from, failed.
    #[error("{what} failed")]
    Io {
        /// The step that failed.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// There is no whole archive in a file that was cut off.
    #[error("{reason}")]
    NotWhole {
        /// Why none is found.
        reason: &'static str,
    },
    /// A file or folder could not be made while unpacking.
    #[error("{path:?} cannot be unpacked")]
    Unpack {
        /// The path that was to be made.
        path: std::path::PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of a folder, or of an archive that is read like one, is refused.
    #[error("{} {fault}", Quoted(path))]
    File {
        /// The path that was asked for.
        path: String,
        /// Why.
        fault: FileFault,
    },
    /// Bytes could not be read, a range lies, or a limit is exceeded.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    pub(crate) fn write(entry: &str, fault: WriteFault) -> Self {
        Self::Write { entry: entry.to_owned(), fault }
    }

    pub(crate) fn writing(source: io::Error) -> Self {
        Self::Io { what: "writing the archive", source }
    }

    pub(crate) fn reading(source: io::Error) -> Self {
        Self::Io { what: "reading the content of an entry", source }
    }

    pub(crate) fn compressing(source: io::Error) -> Self {
        Self::Io { what: "compressing", source }
    }

    /// Returns the stable id of the rule that is broken.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Directory { .. } | Self::NotWhole { .. } => "zip/directory",
            Self::Fault(found) => found.fault.rule(),
            Self::Kind { .. } => "zip/kind",
            Self::File { fault, .. } => fault.rule(),
            Self::Write { .. }
            | Self::Unfinished { .. }
            | Self::Io { .. }
            | Self::Unpack { .. } => "zip/write",
            Self::Core(tensor_core::Error::OverLimit { .. }) => "zip/limit",
            Self::Core(_) => "zip/read",
        }
    }

    /// Returns what the error means for whoever meets it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Directory { .. } | Self::NotWhole { .. } | Self::Kind { .. } => {
                ErrorKind::Malformed
            }
            Self::Fault(found) => found.fault.kind(),
            Self::Write { .. } | Self::Unfinished { .. } => ErrorKind::Usage,
            Self::Io { source, .. } => {
                let cause = source.get_ref();
                let own = cause.and_then(|cause| cause.downcast_ref()).map(Self::kind);
                let core = cause.and_then(|cause| cause.downcast_ref());
                own.or(core.map(tensor_core::Error::kind)).unwrap_or(ErrorKind::Io)
            }
            Self::Unpack { .. } => ErrorKind::Io,
            Self::File { fault, .. } => fault.kind(),
            Self::Core(error) => error.kind(),
        }
    }

    /// Returns the place that the error is about: a byte, an entry or both.
    #[must_use]
    pub fn at(&self) -> At {
        match self {
            Self::Fault(found) => found.at(),
            Self::Kind { entry, .. }
            | Self::Write { entry, .. }
            | Self::Unfinished { entry }
            | Self::File { path: entry, .. } => At::file().entry(entry),
            Self::Core(error) => error.at(),
            Self::Directory { .. }
            | Self::NotWhole { .. }
            | Self::Io { .. }
            | Self::Unpack { .. } => At::file(),
        }
    }

    /// Returns the error as a finding, graded as [`Class::severity`](crate::Class::severity) says.
    #[must_use]
    pub fn finding(&self, profile: Profile) -> Finding {
        match self {
            Self::Fault(found) => found.finding(profile),
            _ => Finding::error(self.rule(), Chain(self).to_string()).at(self.at()),
        }
    }
}

impl From<FaultAt> for Error {
    fn from(found: FaultAt) -> Self {
        Self::Fault(Box::new(found))
    }
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
