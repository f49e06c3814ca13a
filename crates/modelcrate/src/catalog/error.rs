use std::{io, path::PathBuf};

use tensor_core::ErrorKind;

/// Why a catalogue could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name of a catalogue does not say what it is.
    #[error("{path:?} ends in {found:?}, expected {EXPECTED}")]
    Extension {
        /// The path.
        path: PathBuf,
        /// What it ends in.
        found: String,
    },
    /// An old catalogue is malformed.
    #[error("{path:?}: row {row} of the old catalogue {reason}")]
    Old {
        /// The old catalogue.
        path: PathBuf,
        /// The row, counted from 1.
        row: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A row could not be written.
    #[error("writing a row failed")]
    Write(#[from] io::Error),
    /// A file could not be made, read or replaced.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    /// Returns what the error is about.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Extension { .. } => ErrorKind::Usage,
            // It is not one of the files that are looked at.
            Self::Old { .. } | Self::Write(_) => ErrorKind::Io,
            Self::Core(error) => error.kind(),
        }
    }
}

/// The result of what is done with catalogues.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(feature = "parquet")]
const EXPECTED: &str = "\"jsonl\" or \"parquet\"";
#[cfg(not(feature = "parquet"))]
const EXPECTED: &str = "\"jsonl\" (\"parquet\" takes the feature of that name)";
