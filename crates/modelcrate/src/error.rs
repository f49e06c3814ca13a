/// Why a file could not be opened as any format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The content is of no format that this build knows.
    #[error("file is {found}, expected a format that this build reads")]
    UnknownFormat {
        /// What it looks like, in words.
        found: String,
    },
    /// A zTensor file is broken.
    #[cfg(feature = "ztensor")]
    #[error(transparent)]
    ZTensor(#[from] ztensor::Error),
    /// Bytes could not be read.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    /// Returns the stable id of the rule that is broken.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::UnknownFormat { .. } => "file/unknown-format",
            #[cfg(feature = "ztensor")]
            Self::ZTensor(error) => error.rule(),
            Self::Core(_) => "file/read",
        }
    }

    /// Returns the offset that the error is about, in bytes from the start of the file, where it
    /// is about one.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self {
            Self::UnknownFormat { .. } => Some(0),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(error) => error.offset(),
            Self::Core(error) => error.offset(),
        }
    }
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
