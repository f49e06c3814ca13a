use tensor_core::{At, Chain};

use crate::Format;

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
    /// A carton is broken.
    #[cfg(feature = "carton")]
    #[error(transparent)]
    Carton(#[from] carton_format::Error),
    /// An nnpackage, or a Circle or TFLite model, is broken.
    #[cfg(feature = "nnpackage")]
    #[error(transparent)]
    NnPackage(#[from] nnpackage::Error),
    /// A PyTorch Live model or spec is broken.
    #[cfg(feature = "ptl")]
    #[error(transparent)]
    Ptl(#[from] ptl_spec::Error),
    /// An RTen model is broken.
    #[cfg(feature = "rten")]
    #[error(transparent)]
    Rten(#[from] rten_format::Error),
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
            #[cfg(feature = "carton")]
            Self::Carton(error) => error.rule(),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(error) => error.rule(),
            #[cfg(feature = "ptl")]
            Self::Ptl(error) => error.rule(),
            #[cfg(feature = "rten")]
            Self::Rten(error) => error.rule(),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(error) => error.rule(),
            Self::Core(_) => "file/read",
        }
    }

    /// Returns the format that the file is of, where that was made out.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        match self {
            #[cfg(feature = "carton")]
            Self::Carton(_) => Some(Format::Carton),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(_) => Some(Format::NnPackage),
            #[cfg(feature = "ptl")]
            Self::Ptl(_) => Some(Format::Ptl),
            #[cfg(feature = "rten")]
            Self::Rten(_) => Some(Format::Rten),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(_) => Some(Format::ZTensor),
            Self::UnknownFormat { .. } | Self::Core(_) => None,
        }
    }

    /// Returns where in the file the error is, as far as that is known.
    #[must_use]
    pub fn at(&self) -> At {
        match self {
            Self::UnknownFormat { .. } => At::file().offset(0),
            #[cfg(feature = "carton")]
            Self::Carton(error) => error.at(),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(error) => error.at(),
            #[cfg(feature = "ptl")]
            Self::Ptl(_) => At::file(),
            #[cfg(feature = "rten")]
            Self::Rten(error) => At::file().offset(error.offset()),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(error) => At::file().offset(error.offset()),
            Self::Core(error) => At::file().offset(error.offset()),
        }
    }
}

impl Error {
    /// Returns what is wrong and its causes in one line, without the line of a text, which
    /// [`at`](Self::at) has.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(error @ nnpackage::Error::Json { at, .. }) => {
                format!("{} at column {}", error.message(), at.column)
            }
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(error) => error.message(),
            _ => Chain(self).to_string(),
        }
    }
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
