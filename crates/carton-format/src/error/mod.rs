use std::fmt;

use model_archive::FileFault;
use tensor_core::{At, Chain, ErrorKind, Finding};

use crate::{
    Sha256,
    links::fetch::{FetchError, redact},
};

mod fault;

#[cfg(feature = "edit")]
pub use fault::EditFault;
pub use fault::{
    DocumentError, DocumentFault, InvalidText, ManifestFault, PackFault, TensorFault, WriteFault,
};

/// What can go wrong with a carton.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that every carton has is not there.
    #[error("carton has no {path}")]
    MissingDocument {
        /// Its path.
        path: &'static str,
    },
    /// A line of `MANIFEST` is refused. Format text: "MANIFEST".
    #[error("MANIFEST line {line}: {fault}")]
    Manifest {
        /// Counted from 1.
        line: u64,
        /// What is wrong.
        fault: ManifestFault,
    },
    /// A TOML document (`carton.toml`, `index.toml`, `LINKS`, a file of strings) is broken, or
    /// breaks the format's text.
    #[error(transparent)]
    Document(Box<DocumentError>),
    /// A change of a document cannot be made.
    #[cfg(feature = "edit")]
    #[error("{path:?} cannot be edited: {fault}")]
    Edit {
        /// The path of the change.
        path: String,
        /// Why not.
        fault: EditFault,
    },
    /// Bytes could not be read, a range lies, or a limit is exceeded.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
    /// The archive is broken.
    #[error(transparent)]
    Archive(model_archive::Error),
    /// A file is listed in `MANIFEST` and neither in the carton nor in `LINKS`. Format text: "LINKS".
    #[error("{path:?} is listed in MANIFEST, but is neither in the carton nor in LINKS")]
    MissingFile {
        /// Its path.
        path: String,
    },
    /// A file is only linked, and the reader was given nothing that fetches.
    #[error("{path:?} is not in the carton, but linked to {}", Urls(urls))]
    NotFetched {
        /// Its path.
        path: String,
        /// Where it can be fetched.
        urls: Vec<String>,
    },
    /// The content of a file is not what `MANIFEST` says. Format text: "MANIFEST".
    #[error("{path:?} has digest {expected} in MANIFEST, but its content hashes to {found}")]
    Digest {
        /// Its path.
        path: String,
        /// The digest of the content.
        found: Sha256,
        /// What `MANIFEST` says.
        expected: Sha256,
    },
    /// A file of a folder could not be read, or may not be.
    #[error("{path:?} {fault}")]
    File {
        /// Its path in the carton.
        path: String,
        /// What is wrong.
        fault: FileFault,
    },
    /// A tensor is broken. Format text: "`tensor_data`".
    #[error("tensor {name:?} {fault}")]
    Tensor {
        /// Its name in `index.toml`.
        name: String,
        /// What is wrong.
        fault: TensorFault,
    },
    /// A reference names a tensor that the index does not have. Format text: "`tensor_data`".
    #[error("tensor {name:?} is referred to, but is not in tensor_data/index.toml")]
    UnknownTensor {
        /// Its name.
        name: String,
    },
    /// A carton cannot be written as it was asked for.
    #[error("{path:?} cannot be written: {fault}")]
    Write {
        /// The path in the carton.
        path: String,
        /// Why.
        fault: WriteFault,
    },
    /// A tensor cannot be written. Format text: "`tensor_data`".
    #[error("tensor {name:?} cannot be written: {fault}")]
    WriteTensor {
        /// Its name.
        name: String,
        /// Why.
        fault: WriteFault,
    },
    /// A file or folder of the system cannot be packed.
    #[error("{path:?} cannot be packed: {fault}")]
    Pack {
        /// The path on the system.
        path: std::path::PathBuf,
        /// Why.
        fault: PackFault,
    },
    /// A linked file could not be fetched.
    #[error("{path:?} could not be fetched")]
    Fetch {
        /// The path in the carton.
        path: String,
        /// Why.
        source: Box<FetchError>,
    },
}

impl Error {
    /// Returns the stable id of the rule that is broken.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::MissingDocument { .. } => "carton/missing-document",
            Self::Manifest { fault, .. } => fault.rule(),
            Self::Document(error) => error.rule(),
            #[cfg(feature = "edit")]
            Self::Edit { .. } => "carton/edit",
            Self::MissingFile { .. } => "carton/missing-file",
            Self::NotFetched { .. } => "carton/not-fetched",
            Self::Digest { .. } => "carton/digest",
            Self::File { .. } => "carton/file",
            Self::Tensor { fault, .. } => fault.rule(),
            Self::Write { .. } | Self::WriteTensor { .. } | Self::Pack { .. } => "carton/write",
            Self::UnknownTensor { .. } => "carton/unknown-tensor",
            Self::Fetch { .. } => "carton/fetch",
            Self::Core(error) => match error {
                tensor_core::Error::OverLimit { .. } => "carton/limit",
                tensor_core::Error::ShapeOverflow { .. }
                | tensor_core::Error::SizeOverflow { .. } => "carton/tensor-shape",
                _ => "carton/read",
            },
            Self::Archive(error) => error.rule(),
        }
    }

    /// Returns what the error means for whoever meets it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::MissingDocument { .. }
            | Self::Manifest { .. }
            | Self::MissingFile { .. }
            | Self::Digest { .. }
            | Self::UnknownTensor { .. } => ErrorKind::Malformed,
            Self::Document(error) => error.kind(),
            #[cfg(feature = "edit")]
            Self::Edit { .. } => ErrorKind::Usage,
            Self::NotFetched { .. } => ErrorKind::NotFound,
            Self::File { fault, .. } => fault.kind(),
            Self::Tensor { fault, .. } => fault.kind(),
            Self::Write { fault, .. } | Self::WriteTensor { fault, .. } => fault.kind(),
            Self::Pack { fault, .. } => fault.kind(),
            Self::Fetch { source, .. } => source.kind(),
            Self::Core(error) => error.kind(),
            Self::Archive(error) => error.kind(),
        }
    }

    /// Returns where the error is, as far as that is known.
    #[must_use]
    pub fn at(&self) -> At {
        match self {
            Self::Manifest { line, .. } => At::file().entry(crate::paths::MANIFEST).line(*line),
            Self::Document(error) => {
                let at = At::file().entry(&*error.file).line(error.line);
                if error.at.is_empty() { at } else { at.path(&error.at) }
            }
            #[cfg(feature = "edit")]
            Self::Edit { path, .. } => At::file().entry(crate::paths::CARTON_TOML).path(path),
            Self::MissingDocument { path } => At::file().entry(*path),
            Self::MissingFile { path }
            | Self::NotFetched { path, .. }
            | Self::Digest { path, .. }
            | Self::File { path, .. }
            | Self::Write { path, .. }
            | Self::Fetch { path, .. } => At::file().entry(path),
            Self::Tensor { name, .. } => At::file().entry(crate::paths::INDEX).tensor(name),
            Self::WriteTensor { name, .. } | Self::UnknownTensor { name } => {
                At::file().tensor(name)
            }
            Self::Pack { .. } => At::file(),
            Self::Core(error) => error.at(),
            Self::Archive(error) => error.at(),
        }
    }

    /// Returns the error as a finding.
    pub(crate) fn finding(&self) -> Finding {
        Finding::error(self.rule(), Chain(self).to_string()).at(self.at())
    }
}

impl From<model_archive::Error> for Error {
    fn from(error: model_archive::Error) -> Self {
        match error {
            model_archive::Error::File { path, fault } => Self::File { path, fault },
            error => Self::Archive(error),
        }
    }
}

/// The URLs of a link, as a message shows them.
struct Urls<'a>(&'a [String]);

impl fmt::Display for Urls<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no URL");
        }
        for (at, url) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{:?}", redact(url))?;
        }
        Ok(())
    }
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
