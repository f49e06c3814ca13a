//! What the errors of this crate carry.

use std::{borrow::Cow, io};

use model_archive::name::NameFault;
use tensor_core::{DType, ErrorKind, text::Quoted};

use crate::tensor::dtype::Name;

/// Why a carton cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteFault {
    /// The path is unsafe, or is never listed.
    #[error("{0}")]
    Path(ManifestFault),
    /// The path was written before.
    #[error("it was written before")]
    Duplicate,
    /// There is no file of the path that could be removed.
    #[error("it is not in the carton")]
    Absent,
    /// A symbolic link leads nowhere, or out of the carton.
    #[error("it links to {target:?}, which {fault}")]
    Target {
        /// The text of the link.
        target: String,
        /// What is wrong with it.
        fault: model_archive::TargetFault,
    },
    /// A symbolic link leads to a file that is only linked: it has no entry to lead to.
    #[error("it links to {target:?}, whose content is not in the carton")]
    TargetLinked {
        /// The text of the link.
        target: String,
    },
    /// A document is a symbolic link, so that nobody can look at it before it is kept.
    #[error("it is a document, expected a file and not a symbolic link")]
    LinkedDocument,
    /// Nothing can be fetched from a URL.
    #[error("{url:?} is not an http or https URL without credentials")]
    Url {
        /// The URL, without what may be secret.
        url: String,
    },
    /// A file is only linked, and there is no URL for it.
    #[error("its content is not in the carton, and there is no URL for it")]
    NoUrl,
    /// [`Reader::lint`](crate::Reader::lint) would find an error in a document, which is told.
    #[error("{0}")]
    Invalid(String),
    /// Another tensor has the name.
    #[error("another tensor has the name")]
    DuplicateTensor,
    /// The element type is none that the format stores.
    #[error("element type {found} is none of the format's")]
    DType {
        /// The element type.
        found: DType,
    },
    /// The shape has more dimensions, or larger ones, than readers take.
    #[error("shape is {shape}, expected up to 64 dimensions below 2^63")]
    Shape {
        /// The shape.
        shape: tensor_core::Shape,
    },
    /// A nested tensor lies in another.
    #[error("a nested tensor lies in another")]
    NestedInNested,
    /// The strings of a tensor are not as many as its shape has elements.
    #[error("there are {found} strings, but shape {shape} needs {expected}")]
    Strings {
        /// Strings that are there.
        found: u64,
        /// Strings that the shape needs.
        expected: u64,
        /// The shape.
        shape: tensor_core::Shape,
    },
    /// What was written is not what `MANIFEST` lists.
    #[error("it lists other files than were written")]
    OtherFiles,
}

/// Why a file or folder of the system cannot be packed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackFault {
    /// The system says no.
    #[error("{0}")]
    Io(io::Error),
    /// It has changed since it was added.
    #[error("it is {found} bytes long, but was {expected} when it was added")]
    Changed {
        /// Its length now.
        found: u64,
        /// Its length then.
        expected: u64,
    },
    /// It is a pipe, a device or a socket.
    #[error("it is neither a file nor a folder")]
    Irregular,
    /// Its name is not UTF-8.
    #[error("its name is not UTF-8")]
    NotUtf8,
    /// Its path is unsafe in a carton.
    #[error("{0}")]
    Path(ManifestFault),
    /// A link leads to a folder that it lies in.
    #[error("it leads back to a folder that it lies in")]
    Loop,
    /// Folders are nested too deep.
    #[error("folders are nested deeper than {0} levels")]
    Deep(u64),
}

/// What is wrong with a tensor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TensorFault {
    /// The bytes of its file are not those of its shape and element type.
    #[error(
        "is stored in {file:?} with {found} bytes, but shape {shape} of {} needs {expected}",
        Name(*.dtype)
    )]
    Length {
        /// The file in `tensor_data/`.
        file: String,
        /// Its shape.
        shape: tensor_core::Shape,
        /// Its element type.
        dtype: DType,
        /// Bytes that are there.
        found: u64,
        /// Bytes that the shape needs.
        expected: u64,
    },
    /// The strings of its file are not as many as its shape has elements.
    #[error("is stored in {file:?} with {found} strings, but shape {shape} needs {expected}")]
    Strings {
        /// The file in `tensor_data/`.
        file: String,
        /// Its shape.
        shape: tensor_core::Shape,
        /// Strings that are there.
        found: u64,
        /// Strings that the shape needs.
        expected: u64,
    },
    /// Its file is not listed in `MANIFEST`.
    #[error("is stored in {file:?}, which MANIFEST does not list")]
    NoFile {
        /// The file in `tensor_data/`.
        file: String,
    },
    /// The name of its file is unsafe.
    #[error("is stored in {file:?}, whose name {fault}")]
    FileName {
        /// The name.
        file: String,
        /// What is wrong with it.
        fault: NameFault,
    },
    /// A nested tensor names one that is not there.
    #[error("holds {inner:?}, which index.toml does not have")]
    NoInner {
        /// The name.
        inner: String,
    },
    /// A nested tensor names another.
    #[error("holds {inner:?}, which is nested itself")]
    NestedInNested {
        /// The name.
        inner: String,
    },
    /// It is not of the kind that the call needs.
    #[error("is {found}, expected {expected}")]
    Kind {
        /// What it is.
        found: &'static str,
        /// What the call needs.
        expected: &'static str,
    },
}

/// A fault of a TOML document and where it is.
#[derive(Debug, thiserror::Error)]
#[error("{file}{}: {}{fault}", line_text(*.line), path_text(.at))]
#[non_exhaustive]
pub struct DocumentError {
    /// The path of the document in the carton.
    pub file: Cow<'static, str>,
    /// The line, counted from 1, where it is known.
    pub line: Option<u64>,
    /// The path of the key, such as `input[1].shape[0]`; empty where the document as a whole is
    /// meant.
    pub at: String,
    /// What is wrong. It reads on from the path of the key.
    pub fault: DocumentFault,
}

/// What is wrong with a part of a TOML document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentFault {
    /// The text is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// The text is not UTF-8.
    #[error("text is not UTF-8 from byte {offset} on")]
    NotUtf8 {
        /// Bytes from the start of the document.
        offset: u64,
    },
    /// The document has a version that this crate does not know. Format text: "`carton.toml`" and
    /// "`LINKS`".
    #[error("is {found}, expected {expected}")]
    UnsupportedVersion {
        /// What was found.
        found: u64,
        /// What this crate knows.
        expected: u64,
    },
    /// A key that has to be there is not.
    #[error("is missing")]
    Missing,
    /// A list is longer than a limit allows.
    #[error("has {found} {what}, over the limit of {limit} (Limits::{field})")]
    OverLimit {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        limit: u64,
        /// The field of [`Limits`](tensor_core::Limits) to raise.
        field: &'static str,
    },
    /// A value is none that may stand here.
    #[error("is {found}, expected {expected}")]
    Value {
        /// What was found.
        found: String,
        /// What is expected.
        expected: Cow<'static, str>,
    },
}

/// A text stands for no value of the type that was to be read from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not {expected}")]
#[non_exhaustive]
pub struct InvalidText {
    /// The text.
    pub found: String,
    /// What is expected.
    pub expected: Cow<'static, str>,
}

impl InvalidText {
    pub(crate) fn new(found: &str, expected: impl Into<Cow<'static, str>>) -> Self {
        Self { found: found.to_owned(), expected: expected.into() }
    }
}

/// What is wrong with a line of `MANIFEST`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestFault {
    /// The text is not UTF-8.
    #[error("text is not UTF-8")]
    NotUtf8,
    /// There is no equals sign.
    #[error("{} has no digest, expected a path, \"=\" and 64 hex digits", cut(found))]
    NoDigest {
        /// The line.
        found: String,
    },
    /// What follows the last equals sign is not a digest.
    #[error("digest is {}, expected 64 lower-case hex digits", cut(found))]
    Digest {
        /// The text there.
        found: String,
    },
    /// The path is not a normal relative path.
    #[error("path {} {fault}", cut(path))]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        fault: NameFault,
    },
    /// The path ends in a slash.
    #[error("path {path:?} is a folder, expected a file")]
    Folder {
        /// The path.
        path: String,
    },
    /// The path stands on an earlier line too.
    #[error("path {path:?} stands twice")]
    Duplicate {
        /// The path.
        path: String,
    },
    /// The path lies in another, which would have to be a folder.
    #[error("path {path:?} lies in {file:?}, which is a file")]
    FileAndFolder {
        /// The path.
        path: String,
        /// The path that it lies in.
        file: String,
    },
    /// `MANIFEST` and `LINKS` are never listed.
    #[error("{path:?} is listed, which it never is")]
    Itself {
        /// The path.
        path: String,
    },
    /// The lines are not sorted by the bytes of their paths.
    #[error("{path:?} is out of order, expected lines sorted by the bytes of their paths")]
    Unsorted {
        /// The first path that is.
        path: String,
    },
    /// The line ends in a carriage return.
    #[error("line ends in a carriage return, expected a line feed alone")]
    CarriageReturn,
    /// The last line has no line feed.
    #[error("line has no line feed at its end")]
    NoNewline,
    /// The digest has capital letters.
    #[error("digest of {path:?} has capital letters, expected lower-case hex digits")]
    UpperCase {
        /// The path.
        path: String,
    },
}

impl ManifestFault {
    /// Returns the stable id of the rule.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::NotUtf8 | Self::NoDigest { .. } => "carton/manifest-syntax",
            Self::Digest { .. } | Self::UpperCase { .. } => "carton/manifest-digest",
            Self::Path { .. } | Self::Folder { .. } | Self::FileAndFolder { .. } => {
                "carton/manifest-path"
            }
            Self::Duplicate { .. } => "carton/manifest-duplicate",
            Self::Itself { .. } => "carton/manifest-itself",
            Self::Unsorted { .. } => "carton/manifest-order",
            Self::CarriageReturn | Self::NoNewline => "carton/manifest-line-end",
        }
    }
}

/// Why a change cannot be made.
#[cfg(feature = "edit")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditFault {
    /// The path is written in a way that has no meaning.
    #[error("path at byte {offset} is not {expected}")]
    Path {
        /// Bytes from the start of the path.
        offset: usize,
        /// What is expected.
        expected: &'static str,
    },
    /// Nothing is there.
    #[error("{at} is missing")]
    Missing {
        /// The part of the path that leads nowhere.
        at: String,
    },
    /// The path goes on as if something were a table or an array that is not.
    #[error("{at} is not {expected}")]
    WrongType {
        /// The part of the path that leads there.
        at: String,
        /// What is expected.
        expected: &'static str,
    },
    /// The new value is not one of TOML 1.0, or may not stand there.
    #[error("value is refused: {reason}")]
    Value {
        /// Why not.
        reason: String,
    },
}

impl WriteFault {
    /// What is wrong with a carton that is written may be wrong with the one that it is made from.
    pub(crate) const fn kind(&self) -> ErrorKind {
        match self {
            Self::Target { .. } | Self::OtherFiles => ErrorKind::Malformed,
            Self::Absent => ErrorKind::NotFound,
            Self::Path(_)
            | Self::Duplicate
            | Self::TargetLinked { .. }
            | Self::LinkedDocument
            | Self::Url { .. }
            | Self::NoUrl
            | Self::Invalid(_)
            | Self::DuplicateTensor
            | Self::DType { .. }
            | Self::Shape { .. }
            | Self::NestedInNested
            | Self::Strings { .. } => ErrorKind::Usage,
        }
    }
}

impl PackFault {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Io(error) => io_kind(error),
            Self::Changed { .. } => ErrorKind::Busy,
            Self::Irregular | Self::NotUtf8 | Self::Path(_) | Self::Loop | Self::Deep(_) => {
                ErrorKind::Usage
            }
        }
    }
}

impl TensorFault {
    /// Returns the stable id of the rule.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Length { .. } | Self::Strings { .. } => "carton/tensor-length",
            Self::NoFile { .. } | Self::FileName { .. } => "carton/tensor-file",
            Self::NoInner { .. } | Self::NestedInNested { .. } => "carton/tensor-inner",
            Self::Kind { .. } => "carton/tensor-kind",
        }
    }

    pub(crate) const fn kind(&self) -> ErrorKind {
        match self {
            Self::Length { .. }
            | Self::Strings { .. }
            | Self::NoFile { .. }
            | Self::FileName { .. }
            | Self::NoInner { .. }
            | Self::NestedInNested { .. } => ErrorKind::Malformed,
            Self::Kind { .. } => ErrorKind::Usage,
        }
    }
}

impl DocumentError {
    /// Returns the stable id of the rule.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self.fault {
            DocumentFault::Syntax(_) | DocumentFault::NotUtf8 { .. } => "carton/toml-syntax",
            DocumentFault::OverLimit { .. } => "carton/limit",
            DocumentFault::UnsupportedVersion { .. }
            | DocumentFault::Missing
            | DocumentFault::Value { .. } => "carton/toml-value",
        }
    }

    pub(crate) const fn kind(&self) -> ErrorKind {
        match self.fault {
            DocumentFault::UnsupportedVersion { .. } => ErrorKind::Unsupported,
            DocumentFault::OverLimit { .. } => ErrorKind::OverLimit,
            DocumentFault::Syntax(_)
            | DocumentFault::NotUtf8 { .. }
            | DocumentFault::Missing
            | DocumentFault::Value { .. } => ErrorKind::Malformed,
        }
    }
}

pub(crate) fn io_kind(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ErrorKind::NotFound,
        _ => ErrorKind::Io,
    }
}

fn line_text(line: Option<u64>) -> String {
    line.map(|line| format!(" line {line}")).unwrap_or_default()
}

fn path_text(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("{at} ") }
}

/// Returns a part of a line as a message shows it: whole, unless it is longer than any may be.
fn cut(text: &str) -> String {
    if text.len() > SHOWN { Quoted(text).to_string() } else { format!("{text:?}") }
}

/// Bytes of a part of a line that a message shows: those of the longest path.
const SHOWN: usize = 4096;
