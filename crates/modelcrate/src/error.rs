use tensor_core::{At, ErrorKind};

use crate::{Format, Product, convert::becomes, each::each, weights};

/// Why a file of any format could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The content is of no format that this build knows.
    #[error("file is {found}, expected a format that this build reads: {}", Format::read_here())]
    UnknownFormat {
        /// What it looks like, in words.
        found: String,
    },
    /// A ZIP archive is too broken to tell which format it is of.
    #[cfg(feature = "archive")]
    #[error(transparent)]
    Archive(#[from] model_archive::Error),
    /// A carton cannot be read.
    #[cfg(feature = "carton")]
    #[error(transparent)]
    Carton(#[from] carton_format::Error),
    /// A Circle model cannot be read, or a TFLite model that is open already.
    #[cfg(feature = "circle")]
    #[error(transparent)]
    Circle(#[from] circle_format::Error),
    /// An nnpackage cannot be read.
    #[cfg(feature = "nnpackage")]
    #[error(transparent)]
    NnPackage(#[from] nnpackage::Error),
    /// A PyTorch Live model or spec cannot be read.
    #[cfg(feature = "ptl")]
    #[error(transparent)]
    Ptl(#[from] ptl_spec::Error),
    /// An `RTen` model cannot be read.
    #[cfg(feature = "rten")]
    #[error(transparent)]
    Rten(#[from] rten_format::Error),
    /// A TFLite model cannot be opened.
    #[cfg(feature = "circle")]
    #[error(transparent)]
    TfLite(circle_format::Error),
    /// A safetensors or GGUF file cannot be read.
    #[error(transparent)]
    Weights(#[from] weights::Error),
    /// A zTensor file cannot be read.
    #[cfg(feature = "ztensor")]
    #[error(transparent)]
    ZTensor(#[from] ztensor::Error),
    /// A file cannot become what is asked for.
    #[error("is {}, which cannot become {to}: it can become {}", format.title(), becomes(*format))]
    Impossible {
        /// The format of the file.
        format: Format,
        /// What it was to become.
        to: Product,
    },
    /// A file at an address cannot be opened.
    #[cfg(feature = "remote")]
    #[error(transparent)]
    Remote(#[from] crate::remote::Error),
    /// Bytes could not be read.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    /// Returns the stable id of the rule that is broken.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        each!(Error: self, error => error.rule(),
            #[cfg(feature = "archive")]
            Self::Archive(error) => error.rule(),
            Self::UnknownFormat { .. } => "file/unknown-format",
            Self::Impossible { .. } => "file/usage",
            #[cfg(feature = "remote")]
            Self::Remote(_) => "file/read",
            Self::Core(_) => "file/read",
        )
    }

    /// Returns what the error is about: the file, what was asked for, or the system.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        each!(Error: self, error => error.kind(),
            #[cfg(feature = "archive")]
            Self::Archive(error) => error.kind(),
            Self::UnknownFormat { .. } => ErrorKind::Unsupported,
            Self::Impossible { .. } => ErrorKind::Usage,
            #[cfg(feature = "remote")]
            Self::Remote(error) => error.kind(),
            Self::Core(error) => error.kind(),
        )
    }

    /// Returns where in the file the error is, as far as that is known.
    #[must_use]
    pub fn at(&self) -> At {
        each!(Error: self, error => error.at(),
            #[cfg(feature = "archive")]
            Self::Archive(error) => error.at(),
            Self::UnknownFormat { .. } => At::file().offset(0),
            Self::Impossible { .. } => At::file(),
            #[cfg(feature = "remote")]
            Self::Remote(_) => At::file(),
            Self::Core(error) => error.at(),
        )
    }

    /// Returns the format that the file is of, where that was made out.
    #[must_use]
    pub const fn format(&self) -> Option<Format> {
        match self {
            #[cfg(feature = "carton")]
            Self::Carton(_) => Some(Format::Carton),
            #[cfg(feature = "circle")]
            Self::Circle(_) => Some(Format::Circle),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(_) => Some(Format::NnPackage),
            #[cfg(feature = "ptl")]
            Self::Ptl(_) => Some(Format::Ptl),
            #[cfg(feature = "rten")]
            Self::Rten(_) => Some(Format::Rten),
            #[cfg(feature = "circle")]
            Self::TfLite(_) => Some(Format::TfLite),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(_) => Some(Format::ZTensor),
            #[cfg(feature = "archive")]
            Self::Archive(_) => None,
            #[cfg(feature = "remote")]
            Self::Remote(_) => None,
            Self::UnknownFormat { .. }
            | Self::Impossible { .. }
            | Self::Weights(_)
            | Self::Core(_) => None,
        }
    }
}

/// Returns the kind of an error of any crate that this build reads a format with, or of one that they
/// stand on; `None` for all others.
#[must_use]
pub fn kind_of(error: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    macro_rules! first_of {
        ($($(#[$on:meta])? $Error:ty),* $(,)?) => {$(
            $(#[$on])?
            if let Some(error) = error.downcast_ref::<$Error>() {
                return Some(error.kind());
            }
        )*};
    }
    first_of!(
        Error,
        tensor_core::Error,
        weights::Error,
        crate::catalog::Error,
        #[cfg(feature = "archive")]
        model_archive::Error,
        #[cfg(feature = "carton")]
        carton_format::Error,
        #[cfg(feature = "circle")]
        circle_format::Error,
        #[cfg(feature = "nnpackage")]
        nnpackage::Error,
        #[cfg(feature = "ptl")]
        ptl_spec::Error,
        #[cfg(feature = "remote")]
        crate::remote::Error,
        #[cfg(feature = "wav")]
        crate::wav::Error,
        #[cfg(feature = "rten")]
        rten_format::Error,
        #[cfg(feature = "rten-onnx")]
        rten_format::onnx::Error,
        #[cfg(feature = "ztensor")]
        ztensor::Error,
    );
    None
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
