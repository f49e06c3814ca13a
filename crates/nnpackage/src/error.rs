use std::io;

use model_archive::name::NameFault;
use tensor_core::{At, Chain, ErrorKind, Finding, digest::Digest};

use crate::{BuildFault, Content, EditFault, Position};

/// What can be wrong with a package or a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is not a package. Format text: "Packaging Format".
    #[error("file is {found}, expected a ZIP archive or a folder with \"metadata/MANIFEST\"")]
    NotAPackage {
        /// What it is.
        found: Content,
    },
    /// Several folders of an archive could be the package.
    #[error("archive has packages in {first:?} and in {second:?}, expected one")]
    SeveralPackages {
        /// One of the folders.
        first: String,
        /// Another one.
        second: String,
    },
    /// There is no manifest where it has to be. Format text: "Packaging Structure".
    #[error("\"metadata/MANIFEST\" is missing{}", misplaced(found.as_deref()))]
    ManifestMissing {
        /// A file that may have been meant to be it.
        found: Option<String>,
    },
    /// A document is not JSON, not even such as onert reads. Format text: "Manifest".
    #[error("{what} {at}: {reason}")]
    Json {
        /// The document.
        what: &'static str,
        /// Where.
        at: Position,
        /// What the parser said.
        reason: String,
    },
    /// A document does not hold what it has to. Format text: "Attributes".
    #[error("{what} {at}: {path} is {found}, expected {expected}")]
    Document {
        /// The document.
        what: &'static str,
        /// Where.
        at: Position,
        /// The value, such as `models[1]`.
        path: String,
        /// What is there.
        found: String,
        /// What should be there.
        expected: &'static str,
    },
    /// The manifest names no model. Format text: "models".
    #[error("MANIFEST names no model, expected an array \"models\" of at least one path")]
    ModelsMissing,
    /// A file of the package cannot be read.
    #[error("{path:?} {fault}")]
    File {
        /// Its path in the package.
        path: String,
        /// What is wrong.
        fault: FileFault,
    },
    /// A file does not hash to what the list of digests has for it.
    #[error("{path:?} hashes to {found}, but \"metadata/SHA256SUMS\" has {expected}")]
    Digest {
        /// Its path in the package.
        path: String,
        /// That of its content.
        found: Digest,
        /// That in the list.
        expected: Digest,
    },
    /// Golden data are not an HDF5 file, or one of a form that is not read.
    #[error("golden data: what is at byte {offset} {reason}")]
    Hdf5 {
        /// Where, in bytes from the start of the file.
        offset: u64,
        /// What is wrong there.
        reason: &'static str,
    },
    /// A kernel is not in a known object format, or broken.
    #[error("library cannot be read: {reason}")]
    Library {
        /// What the parser said.
        reason: String,
    },
    /// A file cannot be put into a package, or taken out of one.
    #[error("{path:?} {fault}")]
    Build {
        /// Its path in the package.
        path: String,
        /// What is wrong.
        fault: BuildFault,
    },
    /// An edit of a package cannot be made.
    #[error(transparent)]
    Edit(#[from] EditFault),
    /// Something could not be written while a package was unpacked, or edited.
    #[error("{path:?} cannot be written")]
    Write {
        /// The path in the package.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A model is broken, or cannot be written.
    #[error(transparent)]
    Model(#[from] circle_format::Error),
    /// The archive is broken or refused.
    #[error(transparent)]
    Archive(model_archive::Error),
    /// Bytes could not be read, a range in the file lies, or a limit is exceeded.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    /// Returns the stable id of the rule that is broken, such as `nnp/manifest-missing`.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::NotAPackage { .. } => "nnp/not-a-package",
            Self::SeveralPackages { .. } => "nnp/several-packages",
            Self::ManifestMissing { .. } => "nnp/manifest-missing",
            Self::Json { .. } => "nnp/json",
            Self::Document { .. } => "nnp/document",
            Self::ModelsMissing => "nnp/models-missing",
            Self::File { fault, .. } => fault.rule(),
            Self::Digest { .. } => "nnp/digest",
            Self::Hdf5 { .. } => "nnp/golden-data",
            Self::Library { .. } => "nnp/library",
            Self::Build { fault, .. } => fault.rule(),
            Self::Edit(_) => "nnp/edit",
            Self::Write { .. } => "nnp/write",
            Self::Model(error) => error.rule(),
            Self::Archive(error) => error.rule(),
            Self::Core(error) => match error.kind() {
                ErrorKind::OverLimit => "nnp/limit",
                ErrorKind::Malformed if matches!(error, tensor_core::Error::OutOfBounds { .. }) => {
                    "nnp/truncated"
                }
                ErrorKind::Malformed
                | ErrorKind::Unsupported
                | ErrorKind::NotFound
                | ErrorKind::Io
                | ErrorKind::Busy
                | ErrorKind::Usage => "nnp/read",
            },
        }
    }

    /// Returns what the error means for whoever meets it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotAPackage { .. }
            | Self::SeveralPackages { .. }
            | Self::ManifestMissing { .. }
            | Self::Json { .. }
            | Self::Document { .. }
            | Self::ModelsMissing
            | Self::Digest { .. }
            | Self::Hdf5 { .. }
            | Self::Library { .. } => ErrorKind::Malformed,
            Self::File { fault, .. } => fault.kind(),
            Self::Build { fault, .. } => fault.kind(),
            Self::Edit(fault) => fault.kind(),
            Self::Write { .. } => ErrorKind::Io,
            Self::Model(error) => error.kind(),
            Self::Archive(error) => error.kind(),
            Self::Core(error) => error.kind(),
        }
    }

    /// Returns where the error is, as far as that is known.
    #[must_use]
    pub fn at(&self) -> At {
        let at = At::file();
        match self {
            Self::Json { what, at: found, .. } => in_text(what, *found),
            Self::Document { what, at: found, path, .. } => in_text(what, *found).path(path),
            Self::File { path, .. }
            | Self::Digest { path, .. }
            | Self::Build { path, .. }
            | Self::Write { path, .. } => at.entry(path),
            Self::Hdf5 { offset, .. } => at.offset(*offset),
            Self::Model(error) => error.at(),
            Self::Archive(error) => error.at(),
            Self::Core(error) => error.at(),
            Self::NotAPackage { .. }
            | Self::SeveralPackages { .. }
            | Self::ManifestMissing { .. }
            | Self::ModelsMissing
            | Self::Library { .. }
            | Self::Edit(_) => at,
        }
    }

    /// Returns the error as something that a check found.
    pub(crate) fn finding(&self) -> Finding {
        Finding::error(self.rule(), Chain(self).to_string()).at(self.at())
    }
}

impl From<model_archive::Error> for Error {
    fn from(error: model_archive::Error) -> Self {
        match error {
            model_archive::Error::File { path, fault } => match fault.try_into() {
                Ok(fault) => Self::File { path, fault },
                Err(fault) => Self::Archive(model_archive::Error::File { path, fault }),
            },
            error => Self::Archive(error),
        }
    }
}

/// Returns a place in a text; a manifest is always the same file.
fn in_text(what: &str, Position { line, column }: Position) -> At {
    let at = At::file().line(line).column(column);
    if what == "MANIFEST" { at.entry("metadata/MANIFEST") } else { at }
}

/// What is wrong with a file of a package. It reads on from its path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// Its path is not one that stays in the package. Format text: "models".
    #[error("is not a path in the package: it {0}")]
    Path(NameFault),
    /// It is not there.
    #[error("is not in the package")]
    Missing,
    /// It is a folder.
    #[error("is a folder, expected a file")]
    Folder,
    /// A symbolic link leads out of the folder.
    #[error("leads out of the folder")]
    Outside,
    /// It is a device, a pipe or the like.
    #[error("is not a regular file")]
    Irregular,
    /// Something else was put in its place while it was opened.
    #[error("was replaced while it was opened")]
    Replaced,
    /// The system could not say what it is.
    #[error("cannot be looked up: {0}")]
    Io(io::Error),
}

impl FileFault {
    const fn rule(&self) -> &'static str {
        match self {
            Self::Path(_) | Self::Outside => "nnp/outside",
            Self::Missing | Self::Folder => "nnp/missing-file",
            Self::Irregular | Self::Replaced | Self::Io(_) => "nnp/file",
        }
    }

    const fn kind(&self) -> ErrorKind {
        match self {
            Self::Path(_) | Self::Missing | Self::Folder | Self::Outside | Self::Irregular => {
                ErrorKind::Malformed
            }
            Self::Replaced => ErrorKind::Busy,
            Self::Io(_) => ErrorKind::Io,
        }
    }
}

impl TryFrom<model_archive::FileFault> for FileFault {
    /// One of another kind.
    type Error = model_archive::FileFault;

    fn try_from(fault: model_archive::FileFault) -> Result<Self, Self::Error> {
        use model_archive::FileFault as Theirs;
        Ok(match fault {
            Theirs::Name(fault) => Self::Path(fault),
            Theirs::Outside => Self::Outside,
            Theirs::Folder => Self::Folder,
            Theirs::Irregular => Self::Irregular,
            Theirs::Replaced => Self::Replaced,
            Theirs::Io(error) => Self::Io(error),
            other => return Err(other),
        })
    }
}

/// Says which file may have been meant to be the manifest.
fn misplaced(found: Option<&str>) -> String {
    found.map_or_else(String::new, |found| format!("; {found:?} is not where it has to be"))
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
