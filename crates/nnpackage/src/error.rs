use std::io;

use model_archive::name::NameFault;
use tensor_core::{At, Chain, Report, Severity};

use crate::{BuildFault, Content, EditFault, Position, read::storage::MANIFEST};

/// What can be wrong with a package or a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is no package. Format text: "Packaging Format".
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
    /// A document is no JSON, not even such as onert reads. Format text: "Manifest".
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
    /// Golden data are no HDF5 file, or one of a form that is not read.
    #[error("golden data: what is at byte {offset} {reason}")]
    Hdf5 {
        /// Where, in bytes from the start of the file.
        offset: u64,
        /// What is wrong there.
        reason: &'static str,
    },
    /// A kernel is in no object format that is known, or broken.
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
    /// A file could not be written to its end.
    #[error("writing at byte {offset} failed")]
    Output {
        /// How far it was written, in bytes.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A model is broken, or cannot be written.
    #[error(transparent)]
    Model(#[from] circle_format::Error),
    /// The archive is broken or refused.
    #[error(transparent)]
    Archive(#[from] model_archive::Error),
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
            Self::Hdf5 { .. } => "nnp/golden-data",
            Self::Library { .. } => "nnp/library",
            Self::Build { fault: BuildFault::Model(error), .. } => error.rule(),
            Self::Build { .. } => "nnp/build",
            Self::Edit(_) => "nnp/edit",
            Self::Write { .. } | Self::Output { .. } => "nnp/write",
            Self::Model(error) => error.rule(),
            Self::Archive(error) => error.rule(),
            Self::Core(tensor_core::Error::OverLimit { .. }) => "nnp/limit",
            Self::Core(tensor_core::Error::OutOfBounds { .. }) => "nnp/truncated",
            Self::Core(_) => "nnp/read",
        }
    }

    /// Returns the offset that the error is about, in bytes from the start of the file, where it is
    /// about one.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self {
            Self::Hdf5 { offset, .. } => Some(*offset),
            Self::Model(error) => error.offset(),
            Self::Archive(error) => error.offset(),
            Self::Core(error) => error.offset(),
            _ => None,
        }
    }

    /// Returns where the error is, as far as that is known.
    #[must_use]
    pub fn at(&self) -> At {
        let at = At::file().offset(self.offset());
        match self {
            Self::Json { what, at: position, .. } => of_text(what, at).line(position.line),
            Self::Document { what, at: position, path, .. } => {
                of_text(what, at).line(position.line).path(path)
            }
            Self::File { path, .. } | Self::Build { path, .. } | Self::Write { path, .. } => {
                at.entry(path)
            }
            Self::Model(error) => error.at(),
            Self::Archive(error) => match error.entry() {
                Some(entry) => at.entry(entry),
                None => at,
            },
            _ => at,
        }
    }

    /// Returns where in its line the error is, in characters from 1, where it is about a text.
    #[must_use]
    pub const fn column(&self) -> Option<u64> {
        match self {
            Self::Json { at, .. } | Self::Document { at, .. } => Some(at.column),
            _ => None,
        }
    }

    /// Returns what is wrong and its causes, without the place in a text, which [`at`](Self::at) and
    /// [`column`](Self::column) have.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Json { reason, .. } => reason.clone(),
            Self::Document { found, expected, .. } => format!("is {found}, expected {expected}"),
            _ => Chain(self).to_string(),
        }
    }

    /// Adds the error to a report.
    pub fn report_to(&self, severity: Severity, report: &mut Report) {
        report.push(severity, self.rule(), self.at(), self.message());
    }
}

/// What is wrong with a file of a package. It reads on from its path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// Its path is not one that stays in the package. Format text: "models".
    #[error("is no path in the package: it {0}")]
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
    #[error("is no regular file")]
    Irregular,
    /// The system could not say what it is.
    #[error("cannot be looked up: {0}")]
    Io(io::Error),
}

impl FileFault {
    const fn rule(&self) -> &'static str {
        match self {
            Self::Path(_) | Self::Outside => "nnp/outside",
            Self::Missing | Self::Folder => "nnp/missing-file",
            Self::Irregular | Self::Io(_) => "nnp/file",
        }
    }
}

/// Adds the file of a package that a text always is.
fn of_text(what: &str, at: At) -> At {
    if what == "MANIFEST" { at.entry(MANIFEST) } else { at }
}

/// Says which file may have been meant to be the manifest.
fn misplaced(found: Option<&str>) -> String {
    found.map_or_else(String::new, |found| format!("; {found:?} is not where it has to be"))
}

/// Refuses what is larger than a limit.
pub(crate) fn check_bytes(
    what: &'static str,
    found: u64,
    limit: u64,
    field: &'static str,
) -> Result<()> {
    if found > limit {
        return Err(tensor_core::Error::OverLimit { what, found, limit, field }.into());
    }
    Ok(())
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
