use std::borrow::Cow;

use tensor_core::{At, Report, Severity};

use crate::{ManifestFault, Sha256, fetch::FetchError, links::bare, text::UnknownKey};

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
        fault: crate::edit::EditFault,
    },
    /// Bytes could not be read, a range lies, or a limit is exceeded.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
    /// The archive is broken.
    #[error(transparent)]
    Archive(#[from] model_archive::Error),
    /// A file is listed in `MANIFEST` and neither in the carton nor in `LINKS`. Format text: "LINKS".
    #[error("{path:?} is listed in MANIFEST, but is neither in the carton nor in LINKS")]
    MissingFile {
        /// Its path.
        path: String,
    },
    /// A file is only linked, and the reader was given nothing that fetches.
    #[error("{path:?} is not in the carton, but linked to {}", urls_text(urls))]
    NotFetched {
        /// Its path.
        path: String,
        /// Where it may be had.
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

/// What is wrong with a file of a folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// Its path is unsafe.
    #[error("{0}")]
    Name(model_archive::name::NameFault),
    /// It leads out of the folder, over a symbolic link.
    #[error("leads out of the folder")]
    Outside,
    /// It is no regular file.
    #[error("is no regular file")]
    Irregular,
    /// The system says no.
    #[error("cannot be read: {0}")]
    Io(std::io::Error),
}

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
    /// A symbolic link leads nowhere, or out of the carton.
    #[error("it links to {target:?}, which {fault}")]
    Target {
        /// The text of the link.
        target: String,
        /// What is wrong with it.
        fault: model_archive::TargetFault,
    },
    /// Another tensor has the name.
    #[error("another tensor has the name")]
    DuplicateTensor,
    /// The element type is none that the format stores.
    #[error("element type {found} is none of the format's")]
    DType {
        /// The element type.
        found: tensor_core::DType,
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
    Io(std::io::Error),
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
        "is stored in {file:?} with {found} bytes, but shape {shape} of {dtype} needs {expected}"
    )]
    Length {
        /// The file in `tensor_data/`.
        file: String,
        /// Its shape.
        shape: tensor_core::Shape,
        /// Its element type.
        dtype: crate::DType,
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
        fault: model_archive::name::NameFault,
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
    /// The text is no TOML.
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
        /// What would do.
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
    /// What would do.
    pub expected: Cow<'static, str>,
}

impl InvalidText {
    pub(crate) fn new(found: &str, expected: impl Into<Cow<'static, str>>) -> Self {
        Self { found: found.to_owned(), expected: expected.into() }
    }
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
            Self::Core(tensor_core::Error::OverLimit { .. }) => "carton/limit",
            Self::Core(
                tensor_core::Error::ShapeOverflow { .. } | tensor_core::Error::SizeOverflow { .. },
            ) => "carton/tensor-shape",
            Self::Core(_) => "carton/read",
            Self::Archive(error) => error.rule(),
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
            Self::Core(error) => At::file().offset(error.offset()),
            Self::Archive(error) => {
                let mut at = At::file().offset(error.offset());
                at.entry = error.entry().map(str::to_owned);
                at
            }
        }
    }

    /// Adds the error to a report.
    pub(crate) fn report_to(&self, severity: Severity, report: &mut Report) {
        report.push(severity, self.rule(), self.at(), tensor_core::Chain(self).to_string());
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
}

impl DocumentError {
    /// Returns the stable id of the rule.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self.fault {
            DocumentFault::Syntax(_) | DocumentFault::NotUtf8 { .. } => "carton/toml-syntax",
            DocumentFault::OverLimit { .. } => "carton/limit",
            _ => "carton/toml-value",
        }
    }
}

/// Refuses what is larger than a limit allows.
pub(crate) fn check_bytes(
    what: &'static str,
    found: u64,
    limit: u64,
    field: &'static str,
) -> Result<()> {
    if found <= limit {
        return Ok(());
    }
    Err(tensor_core::Error::OverLimit { what, found, limit, field }.into())
}

/// Warns of a line of a document that readers of TOML 1.0 refuse.
pub(crate) fn report_toml_1_1(line: Option<u64>, file: &str, report: &mut Report) {
    if let Some(line) = line {
        let at = At::file().entry(file).line(line);
        let message = "document needs TOML 1.1, expected TOML 1.0";
        report.push(Severity::Warning, "carton/toml-1-1", at, message);
    }
}

/// Notes the keys of a document that the format's text does not name.
pub(crate) fn report_unknown(keys: &[UnknownKey], file: &str, report: &mut Report) {
    for key in keys {
        let at = At::file().entry(file).path(&*key.path).line(key.line);
        let message = "is a key that the format does not name";
        report.push(Severity::Note, "carton/unknown-key", at, message);
    }
}

fn urls_text(urls: &[String]) -> String {
    let shown: Vec<String> = urls.iter().map(|url| format!("{:?}", bare(url))).collect();
    if shown.is_empty() { "no URL".to_owned() } else { shown.join(", ") }
}

fn line_text(line: Option<u64>) -> String {
    line.map(|line| format!(" line {line}")).unwrap_or_default()
}

fn path_text(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("{at} ") }
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
