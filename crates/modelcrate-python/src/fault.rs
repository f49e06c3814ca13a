//! Errors as exceptions of the package.

use std::{error::Error as StdError, ffi::OsString, io, path::Path};

use modelcrate::{
    Error, Refusal, kind_of,
    tensor_core::{At, Chain, Error as Core, ErrorKind, Finding},
};
use pyo3::{prelude::*, sync::PyOnceLock};

/// What is said of an error, without Python.
#[derive(Debug)]
pub(crate) struct Fault(Box<Said>);

/// All that an exception needs.
#[derive(Debug)]
struct Said {
    message: String,
    rule: String,
    kind: &'static str,
    at: At,
    errno: Option<i32>,
    path: Option<OsString>,
    refused: Vec<Refusal>,
}

pub(crate) type Result<T, E = Fault> = std::result::Result<T, E>;

impl Fault {
    /// Says of any error of the libraries what it is.
    pub(crate) fn of(error: &(dyn StdError + 'static)) -> Self {
        let kind = kind_of(error).unwrap_or(ErrorKind::Io);
        let (rule, at) = match error.downcast_ref::<Error>() {
            Some(error) => (error.rule(), error.at()),
            None => (kind.file_rule(), At::file()),
        };
        let system = Chain(error).errors().find_map(|cause| cause.downcast_ref::<io::Error>());
        let path = Chain(error).errors().find_map(|cause| match cause.downcast_ref::<Core>()? {
            Core::File { path, .. } => Some(path.clone().into_os_string()),
            _ => None,
        });
        Self(Box::new(Said {
            message: Chain(error).to_string(),
            rule: rule.to_owned(),
            kind: name(kind),
            at,
            errno: system.and_then(io::Error::raw_os_error),
            path,
            refused: Vec::new(),
        }))
    }

    /// Names the file that the system would not read.
    pub(crate) fn about(mut self, path: &Path) -> Self {
        if self.0.errno.is_some() && self.0.path.is_none() {
            self.0.path = Some(path.as_os_str().to_owned());
        }
        self
    }

    /// Names the address that could not be opened.
    #[cfg(feature = "remote")]
    pub(crate) fn at_address(mut self, address: &str) -> Self {
        self.0.path = Some(address.into());
        self
    }

    /// Says what a format cannot hold.
    pub(crate) fn refused(message: impl Into<String>, refused: Vec<Refusal>) -> Self {
        let mut fault = Self::usage(message);
        fault.0.refused = refused;
        fault
    }

    /// Says that a file is there already.
    pub(crate) fn exists(path: &Path) -> Self {
        let message = format!("{path:?} is there already, expected overwrite=True to replace it");
        let mut fault = Self::new(ErrorKind::Io, message);
        (fault.0.errno, fault.0.path) = (Some(EEXIST), Some(path.as_os_str().to_owned()));
        fault
    }

    /// Says that the caller asked for what cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Says that the system failed.
    pub(crate) fn io(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Io, message)
    }

    /// Says that a file has what this build does not read.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let (rule, message) = (kind.file_rule().to_owned(), message.into());
        Self(Box::new(Said {
            message,
            rule,
            kind: name(kind),
            at: At::file(),
            errno: None,
            path: None,
            refused: Vec::new(),
        }))
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::of(&error)
    }
}

impl From<Core> for Fault {
    fn from(error: Core) -> Self {
        Self::of(&Error::from(error))
    }
}

impl From<Finding> for Fault {
    /// Says why a file is not written that would be invalid.
    fn from(finding: Finding) -> Self {
        let message = format!("the result would be invalid: {}", finding.message);
        let mut fault = Self::new(ErrorKind::Malformed, message);
        (fault.0.rule, fault.0.at) = (finding.rule.into_owned(), finding.at);
        fault
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        Python::attach(|py| {
            let Said { message, rule, kind, at, errno, path, refused } = *fault.0;
            let at = serde_json::to_string(&at).unwrap_or_default();
            let refused = serde_json::to_string(&refused).unwrap_or_default();
            let made = MAKE
                .import(py, "modelcrate.errors", "_make")
                .and_then(|make| make.call1((kind, message, rule, at, errno, path, refused)));
            made.map_or_else(|error| error, PyErr::from_value)
        })
    }
}

const fn name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Malformed => "malformed",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::OverLimit => "over_limit",
        ErrorKind::NotFound => "not_found",
        ErrorKind::Io => "io",
        ErrorKind::Busy => "busy",
        ErrorKind::Usage => "usage",
    }
}

/// What the system says of a file that is there already, on every system that Python runs on.
const EEXIST: i32 = 17;
