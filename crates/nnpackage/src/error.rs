use std::{borrow::Cow, io};

use model_archive::name::NameFault;
use tensor_core::{At, Chain, Report, Severity, Shape};

use crate::{BuildFault, Content, EditFault, ModelFault, Position, storage::MANIFEST};

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
    /// A model has the identifier of neither schema.
    #[error(
        "identifier at byte 4 is \"{}\", expected \"CIR0\" or \"TFL3\"", .found.escape_ascii()
    )]
    NotAModel {
        /// The bytes.
        found: [u8; 4],
    },
    /// A model is no FlatBuffer that fits its schema.
    #[error("model is malformed: {reason}")]
    Malformed {
        /// What the verifier found, with the fields that lead there.
        reason: String,
    },
    /// Training information is no FlatBuffer of its schema.
    #[error("training information is malformed: {reason}")]
    TrainingInfo {
        /// What is wrong with it.
        reason: String,
    },
    /// Tables of a model are nested too deeply.
    #[error("model has tables nested deeper than the limit of {limit} (Limits::depth)")]
    TooDeep {
        /// The limit, in tables.
        limit: usize,
    },
    /// A model refers to more tables than its length has room for, or than are allowed.
    #[error("model has more than {limit} tables, expected one in 8 bytes, at most 10000000")]
    TooManyTables {
        /// The limit, in tables.
        limit: usize,
    },
    /// A table of a kind that this crate does not know is not in the model.
    #[error(
        "{what} of unknown type {tag} at byte {offset} of the model does not lie within its {len} \
         bytes"
    )]
    UnknownTable {
        /// What the table is for.
        what: &'static str,
        /// Its number in the union.
        tag: u8,
        /// Where it should be, in bytes from the start of the model.
        offset: u64,
        /// Bytes of the model.
        len: u64,
    },
    /// The elements of a constant cannot be read.
    #[error("{path} {fault}")]
    Constant {
        /// Where the tensor is, such as `subgraph 0/tensor 3 "w"`.
        path: String,
        /// What is wrong with it.
        fault: ConstantFault,
    },
    /// A model cannot be written, or not in a schema.
    #[error("{path} {fault}")]
    Unwritable {
        /// What cannot be written, such as `subgraph 0/tensor 3`; `model` for all of it.
        path: String,
        /// Why.
        fault: ModelFault,
    },
    /// The custom options of an operator are no FlexBuffer.
    #[error("custom options at byte {offset} {reason}")]
    CustomOptions {
        /// Where, in bytes from their start.
        offset: u64,
        /// What is wrong there.
        reason: &'static str,
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
            Self::NotAModel { .. } => "model/identifier",
            Self::Malformed { .. } => "model/malformed",
            Self::TrainingInfo { .. } => "model/training-info",
            Self::TooDeep { .. } | Self::TooManyTables { .. } => "model/limit",
            Self::UnknownTable { .. } => "model/unknown-table",
            Self::Constant { fault, .. } => fault.rule(),
            Self::Unwritable { fault, .. } => fault.rule(),
            Self::CustomOptions { .. } => "model/custom-options",
            Self::Hdf5 { .. } => "nnp/golden-data",
            Self::Library { .. } => "nnp/library",
            Self::Build { fault: BuildFault::Model(error), .. } => error.rule(),
            Self::Build { .. } => "nnp/build",
            Self::Edit(_) => "nnp/edit",
            Self::Write { .. } | Self::Output { .. } => "nnp/write",
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
            Self::NotAModel { .. } => Some(4),
            Self::UnknownTable { offset, .. } | Self::Hdf5 { offset, .. } => Some(*offset),
            Self::Constant { fault, .. } => fault.offset(),
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

/// What is wrong with a constant. It reads on from its path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConstantFault {
    /// Its buffer is none of the model.
    #[error("has buffer {index}, but the model has {count}")]
    NoBuffer {
        /// The position.
        index: u32,
        /// How many buffers there are.
        count: usize,
    },
    /// Its bytes are in another file.
    #[error("has its elements in another file, as external buffer {id}")]
    OtherFile {
        /// The id of the external buffer.
        id: u32,
    },
    /// Its bytes end behind the end of the file.
    #[error("needs {len} bytes at byte {offset} of a file of {file_len} bytes")]
    OutOfBounds {
        /// Where its bytes start, from the start of the file.
        offset: u64,
        /// Their length in bytes.
        len: u64,
        /// Bytes of the file.
        file_len: u64,
    },
    /// A dimension is negative.
    #[error("has the shape {shape:?}, which has a negative dimension")]
    Shape {
        /// The shape.
        shape: Vec<i32>,
    },
    /// Its element type is none that elements can be given out as.
    #[error("has elements of {tensor_type}, which cannot be given out as numbers")]
    ElementType {
        /// The element type.
        tensor_type: crate::model::TensorType,
    },
    /// It has other bytes than its shape needs.
    #[error("has {found} bytes, but its shape {shape} of {tensor_type} needs {expected}")]
    WrongLength {
        /// The element type.
        tensor_type: crate::model::TensorType,
        /// The shape.
        shape: Shape,
        /// Bytes that the shape needs.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// Its zeros are left out, so that bytes and shape have nothing to do with each other.
    #[error("is sparse: its elements are not stored in the order of its shape")]
    Sparse,
    /// Its shape is over a limit or has no size, or its bytes cannot be read.
    #[error("cannot be read: {}", Chain(.0))]
    Core(#[from] tensor_core::Error),
}

impl ConstantFault {
    pub(crate) const fn rule(&self) -> &'static str {
        match self {
            Self::NoBuffer { .. } => "model/buffer-index",
            Self::OtherFile { .. } => "model/other-file",
            Self::OutOfBounds { .. } => "model/buffer-out-of-bounds",
            Self::Shape { .. } => "model/shape",
            Self::ElementType { .. } => "model/element-type",
            Self::WrongLength { .. } => "model/buffer-length",
            Self::Sparse => "model/sparse",
            Self::Core(tensor_core::Error::OverLimit { .. }) => "model/limit",
            Self::Core(_) => "model/shape",
        }
    }

    const fn offset(&self) -> Option<u64> {
        match self {
            Self::OutOfBounds { offset, .. } => Some(*offset),
            _ => None,
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

/// Returns a text from a file as far as it is worth showing.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => Cow::Owned(format!("{}…", text.get(..at).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// Characters of a text that messages show.
const SHOWN: usize = 120;

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
