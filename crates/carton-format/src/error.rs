use std::borrow::Cow;

use crate::fetch::FetchError;

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
    /// A linked file could not be fetched.
    #[error("{path:?} could not be fetched")]
    Fetch {
        /// The path in the carton.
        path: String,
        /// Why.
        source: Box<FetchError>,
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

fn line_text(line: Option<u64>) -> String {
    line.map(|line| format!(" line {line}")).unwrap_or_default()
}

fn path_text(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("{at} ") }
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
