use std::io;

use tensor_core::{At, ErrorKind};

/// Why a file of named tensors could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file breaks its format.
    #[error("{reason}")]
    Malformed {
        /// The stable id of the rule that is broken.
        rule: &'static str,
        /// What is wrong, with its place.
        reason: String,
        /// The byte that it is at.
        at: u64,
    },
    /// The file is of a kind that this build does not read.
    #[error("{what}")]
    Unsupported {
        /// What was found and what is read.
        what: String,
    },
    /// The format cannot hold what is to be written.
    #[error("{what}")]
    Unwritable {
        /// What it does not have.
        what: String,
    },
    /// A shard that an index leads to cannot be read.
    #[error("shard {file:?}")]
    Shard {
        /// Its name.
        file: String,
        /// What is wrong with it.
        source: Box<Self>,
    },
    /// The data of a tensor could not be read.
    #[error("tensor data could not be read")]
    Read(#[source] io::Error),
    /// An archive is broken, or cannot be written.
    #[cfg(feature = "archive")]
    #[error(transparent)]
    Archive(#[from] model_archive::Error),
    /// A write failed.
    #[error("writing failed")]
    Write(#[from] io::Error),
    /// Bytes could not be read, or a limit is exceeded.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    pub(super) fn malformed(rule: &'static str, at: u64, reason: impl Into<String>) -> Self {
        Self::Malformed { rule, reason: reason.into(), at }
    }

    /// Returns what a failed read of a tensor stands for.
    pub(crate) fn unread(error: io::Error) -> Self {
        #[cfg(feature = "archive")]
        let error = match error.downcast() {
            Ok(broken) => return Self::Archive(broken),
            Err(error) => error,
        };
        Self::Read(error)
    }

    /// Returns the stable id of the rule that is broken.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Malformed { rule, .. } => rule,
            Self::Shard { source, .. } => source.rule(),
            Self::Unsupported { .. } => "weights/unsupported",
            Self::Read(_) => "file/read",
            Self::Unwritable { .. } | Self::Write(_) => "weights/write",
            #[cfg(feature = "archive")]
            Self::Archive(error) => error.rule(),
            Self::Core(error) => error.rule(),
        }
    }

    /// Returns what the error means for whoever meets it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Malformed { .. } => ErrorKind::Malformed,
            Self::Shard { source, .. } => source.kind(),
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::Unwritable { .. } => ErrorKind::Usage,
            Self::Read(_) | Self::Write(_) => ErrorKind::Io,
            #[cfg(feature = "archive")]
            Self::Archive(error) => error.kind(),
            Self::Core(error) => error.kind(),
        }
    }

    /// Returns where in the file the error is.
    #[must_use]
    pub fn at(&self) -> At {
        match self {
            Self::Malformed { at, .. } => At::file().offset(*at),
            Self::Shard { file, source } => source.at().entry(file),
            #[cfg(feature = "archive")]
            Self::Archive(error) => error.at(),
            Self::Core(error) => error.at(),
            Self::Unsupported { .. } | Self::Unwritable { .. } | Self::Read(_) | Self::Write(_) => {
                At::file()
            }
        }
    }
}

/// The result of what reads or writes files of named tensors.
pub type Result<T, E = Error> = std::result::Result<T, E>;
