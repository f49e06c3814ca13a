use std::io;

use tensor_core::{ErrorKind, text::short};

use super::Location;
use crate::address::{find_address, without_secrets};

/// Why something at an address could not be read or written.
///
/// No message has the query of an address, a credential, or what a server says beyond a status and a
/// short code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address is malformed, or of a kind that is not taken.
    #[error("{shown:?}: {reason}")]
    Address {
        /// The address.
        shown: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A setting is wrong, such as an endpoint that is not a URL.
    #[error("{what} is wrong: {reason}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// There is nothing at the address.
    #[error("is not there{hint}")]
    NotFound {
        /// What may be meant instead; empty where nothing is known.
        hint: &'static str,
    },
    /// There is something at the address, which is not to be replaced.
    #[error("is there already")]
    Exists,
    /// The store does not let us in.
    #[error("access is denied (status {status}): {hint}")]
    Denied {
        /// The status of the answer.
        status: u16,
        /// Where credentials would be taken from.
        hint: &'static str,
    },
    /// The file is another one now than when it was opened.
    #[error("changed while it was read")]
    Changed,
    /// An answer does not say of which version it is, as earlier ones did.
    #[error("answer has no {what}, which earlier ones had")]
    Unproved {
        /// What it lacks.
        what: &'static str,
    },
    /// A document of a server, such as a list of files, is too long, or names what no file is called.
    #[error("{what}: {reason}")]
    Document {
        /// The document.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// An answer leads where it must not.
    #[error("redirect {reason}")]
    Redirect {
        /// Where it leads, and what is wrong with that.
        reason: String,
    },
    /// An answer has another status than it should have.
    #[error("status is {found}{code}")]
    Status {
        /// The status.
        found: u16,
        /// The short code that came with it, in parentheses; empty where none did.
        code: String,
    },
    /// An answer is of another range than was asked for.
    #[error("answer is of {found}, expected {expected}")]
    Range {
        /// The range that the answer says it is.
        found: String,
        /// The range that was asked for.
        expected: String,
    },
    /// The server has no ranges, and the file is too large to be read whole.
    #[error(
        "server sends no ranges, and the file is over the limit of {limit} bytes that are read whole"
    )]
    NoRanges {
        /// What is read whole, in bytes.
        limit: u64,
    },
    /// The body of an answer ends early, or is longer than was said.
    #[error("answer has {found} bytes, expected {expected}")]
    Length {
        /// Bytes that came.
        found: u64,
        /// Bytes that were announced.
        expected: u64,
    },
    /// The answer is encoded, such as by gzip, so that offsets mean nothing.
    #[error("answer has content encoding {found:?}, expected none")]
    Encoded {
        /// The encoding.
        found: String,
    },
    /// No answer came in time, or it came too slowly.
    #[error("no answer within {seconds} s")]
    Timeout {
        /// How long was waited.
        seconds: u64,
    },
    /// There was no connection, or it broke.
    #[error("connection failed: {reason}")]
    Connection {
        /// What was wrong.
        reason: String,
    },
    /// A store answers what is not understood, or cannot be asked for lack of a setting.
    #[error("{reason}")]
    Store {
        /// What is wrong.
        reason: String,
    },
    /// What was asked for cannot be done at such an address.
    #[error("{what}")]
    Unsupported {
        /// What is not possible, and what is.
        what: &'static str,
    },
    /// What went wrong at an address.
    #[error("{shown:?}: {error}")]
    At {
        /// The address, without its query.
        shown: String,
        /// What went wrong; its text is part of this one.
        error: Box<Error>,
    },
    /// Something was read from, or written to, this machine.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    pub(super) fn address(text: &str, reason: impl Into<String>) -> Self {
        Self::Address { shown: short(&without_secrets(text)).into_owned(), reason: reason.into() }
    }

    /// A document that is longer than [`Limits::document_bytes`](tensor_core::Limits) allows.
    pub(super) fn too_long(limit: u64) -> Self {
        let reason = format!("is over the limit of {limit} bytes (Limits::document_bytes)");
        Self::Document { what: "document of the server", reason }
    }

    /// A list of files that has too much, or what no list has.
    pub(super) fn list(reason: impl Into<String>) -> Self {
        Self::Document { what: "list of files", reason: reason.into() }
    }

    /// Returns what the error is about.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Address { .. }
            | Self::Setting { .. }
            | Self::Exists
            | Self::Unsupported { .. } => ErrorKind::Usage,
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Changed => ErrorKind::Busy,
            Self::Denied { .. }
            | Self::Unproved { .. }
            | Self::Document { .. }
            | Self::Redirect { .. }
            | Self::Status { .. }
            | Self::Range { .. }
            | Self::NoRanges { .. }
            | Self::Length { .. }
            | Self::Encoded { .. }
            | Self::Timeout { .. }
            | Self::Connection { .. }
            | Self::Store { .. } => ErrorKind::Io,
            Self::At { error, .. } => error.kind(),
            Self::Core(error) => error.kind(),
        }
    }

    /// Names the address that the error is about.
    pub(super) fn at(self, location: &Location) -> Self {
        match self {
            Self::At { .. } | Self::Address { .. } | Self::Core(_) => self,
            error => Self::At { shown: location.to_string(), error: Box::new(error) },
        }
    }

    /// Tells whether the same request may have another answer a little later.
    pub(super) const fn is_transient(&self) -> bool {
        match self {
            Self::Status { found, .. } => matches!(found, 408 | 429 | 500..),
            Self::Length { .. } | Self::Timeout { .. } | Self::Connection { .. } => true,
            _ => false,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::NotFound { .. } => io::ErrorKind::NotFound,
            Error::Denied { .. } => io::ErrorKind::PermissionDenied,
            Error::Timeout { .. } => io::ErrorKind::TimedOut,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Returns what others say as it may be shown: escaped, cut, and no address in it with what may be a
/// secret.
pub(super) fn foreign(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        let address = find_address(word).and_then(|start| word.split_at_checked(start));
        let (before, address) = address.unwrap_or((word, ""));
        out.extend([before, &without_secrets(address)]);
        // What was cut off may have had the end of the word.
        if word.ends_with(char::is_whitespace) && !out.ends_with(char::is_whitespace) {
            out.push(' ');
        }
    }
    let mut shown = String::new();
    for c in short(out.trim_end()).chars() {
        match c.is_control() || is_invisible(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}

/// Tells whether a character changes the order in which others are shown, or is not shown.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The result of what is done at addresses.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_lose_their_secrets() {
        let text = "cannot reach https://h/x?token=s3cret twice";
        assert_eq!(foreign(text), "cannot reach https://h/x twice");
        assert_eq!(foreign("<https://u:s3cret@h/x>\nso"), "<https://h/x>\\u{a}so");
        assert_eq!(foreign("why? because"), "why? because");
        assert_eq!(foreign("a\u{1b}[2J\u{202e}b"), "a\\u{1b}[2J\\u{202e}b");
        assert_eq!(foreign(&"x".repeat(500)).chars().count(), 121);
    }
}
