//! Where the content of linked files comes from. Format text: "LINKS".

use std::{borrow::Cow, fmt, io, net::IpAddr, path::PathBuf, time::Duration};

use tensor_core::{Chain, ErrorKind, Source, digest::Digest};

use crate::Sha256;

pub use super::url::{redact, scheme};

/// Fetches the content of a linked file: what a caller implements for a store of their own.
pub trait Fetch: Send + Sync {
    /// Returns the content that a link stands for.
    ///
    /// # Errors
    ///
    /// Where no URL gives that content.
    fn fetch(&self, link: &Link<'_>) -> Result<Fetched, FetchError>;
}

/// What is to be fetched.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Link<'a> {
    /// The SHA-256 of the content.
    pub sha256: Sha256,
    /// Where it can be fetched, in the order of `LINKS`.
    pub urls: &'a [String],
    /// Its length in bytes, where that is known from elsewhere: `LINKS` does not say.
    pub len: Option<u64>,
}

impl<'a> Link<'a> {
    /// A link to content of unknown length.
    #[must_use]
    pub const fn new(sha256: Sha256, urls: &'a [String]) -> Self {
        Self { sha256, urls, len: None }
    }

    /// Sets the length of the content in bytes, beyond which nothing is fetched.
    #[must_use]
    pub const fn with_len(mut self, len: u64) -> Self {
        self.len = Some(len);
        self
    }
}

/// Content that was fetched.
#[derive(Clone, Debug)]
pub struct Fetched {
    source: Source,
    is_checked: bool,
}

impl Fetched {
    /// Content whose digest has not been compared: the reader does that before it hands it out.
    #[must_use]
    pub const fn new(source: Source) -> Self {
        Self { source, is_checked: false }
    }

    /// Content whose digest was compared with that of the link.
    #[must_use]
    pub const fn checked(source: Source) -> Self {
        Self { source, is_checked: true }
    }

    /// Returns the content.
    #[must_use]
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Tells whether the digest of the content was compared with that of the link.
    #[must_use]
    pub const fn is_checked(&self) -> bool {
        self.is_checked
    }
}

/// Why the content of a linked file cannot be fetched.
///
/// URLs stand here, and in all messages, without credentials and without their query: either may
/// hold a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The link has no URL. Format text: "LINKS".
    #[error("{} has no URL", Digest::Sha256(.sha256.0))]
    NoUrl {
        /// The SHA-256 of the content.
        sha256: Sha256,
    },
    /// Every URL that was tried failed.
    #[error("{} cannot be fetched{}", Digest::Sha256(.sha256.0), Failures(.failures, *.untried))]
    NoneWorks {
        /// The SHA-256 of the content.
        sha256: Sha256,
        /// What went wrong, in the order of the URLs.
        failures: Vec<UrlError>,
        /// How many more URLs the link has than are tried.
        untried: usize,
    },
    /// The content is not in the cache, and nothing else may be asked.
    #[error("{} is not in the cache, and fetching is offline", Digest::Sha256(.sha256.0))]
    Offline {
        /// The SHA-256 of the content.
        sha256: Sha256,
    },
    /// The content in the cache is larger than allowed.
    #[error("{} has {found} bytes, over the limit of {limit}", Digest::Sha256(.sha256.0))]
    TooLarge {
        /// The SHA-256 of the content.
        sha256: Sha256,
        /// Its length in bytes.
        found: u64,
        /// What is allowed, in bytes.
        limit: u64,
    },
    /// A file of the cache could not be read or written.
    #[error("{path:?}: {what} failed")]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// The step that failed.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Content in the cache could not be read, or not be recorded.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
    /// A setting cannot be used.
    #[error("{what} is {found}, expected {expected}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// What was given.
        found: Cow<'static, str>,
        /// What is expected.
        expected: &'static str,
    },
    /// What a fetcher of a caller's own says.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl FetchError {
    /// Returns what the error means for whoever meets it: nothing is wrong with the carton.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NoUrl { .. } | Self::Offline { .. } => ErrorKind::NotFound,
            Self::NoneWorks { .. } | Self::Cache { .. } | Self::Core(_) | Self::Other(_) => {
                ErrorKind::Io
            }
            Self::TooLarge { .. } | Self::Setting { .. } => ErrorKind::Usage,
        }
    }
}

/// What is wrong with one URL of a link.
#[derive(Debug, thiserror::Error)]
#[error("{url:?}: {fault}")]
#[non_exhaustive]
pub struct UrlError {
    /// The URL, without credentials and query.
    pub url: String,
    /// What is wrong.
    pub fault: UrlFault,
}

impl UrlError {
    /// Says what is wrong with a URL, of which only that is kept which may be shown.
    #[must_use]
    pub fn new(url: &str, fault: UrlFault) -> Self {
        Self { url: redact(url), fault }
    }
}

/// What is wrong with a URL, or with what its server answers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UrlFault {
    /// The URL has another scheme than those that are allowed.
    #[error("scheme is {found:?}, expected {expected}")]
    Scheme {
        /// The scheme, in lower case.
        found: String,
        /// Those that are allowed.
        expected: &'static str,
    },
    /// The text is not a URL that can be fetched.
    #[error("URL {0}")]
    Malformed(&'static str),
    /// A redirect leads from https to http.
    #[error("redirect leads from https to http")]
    Downgrade,
    /// A host has no address that may be connected to.
    #[error("host {host:?} has the address {address}, expected {expected}")]
    Address {
        /// The host.
        host: String,
        /// One of its addresses.
        address: IpAddr,
        /// What is expected.
        expected: &'static str,
    },
    /// There are too many redirects, perhaps in a circle.
    #[error("more than {limit} redirects")]
    Redirects {
        /// How many are followed.
        limit: usize,
    },
    /// What is wrong after redirects.
    #[error("redirected to {to:?}: {fault}")]
    Redirected {
        /// Where they led, without credentials and query.
        to: String,
        /// What is wrong there.
        fault: Box<UrlFault>,
    },
    /// The status is none that gives content.
    #[error("status is {found}, expected {expected}")]
    Status {
        /// The status.
        found: u16,
        /// What is expected.
        expected: &'static str,
    },
    /// The server did not answer in time.
    #[error("no answer within {after:?} ({step})")]
    Timeout {
        /// How long was waited.
        after: Duration,
        /// What was waited for.
        step: String,
    },
    /// The body stopped.
    #[error("body at byte {offset} sent nothing for {after:?}")]
    Stalled {
        /// How many bytes there were.
        offset: u64,
        /// How long was waited.
        after: Duration,
    },
    /// The body comes too slowly, so that it may never end.
    #[error("body at byte {offset} brings {found} bytes a second, expected {expected} at least")]
    Slow {
        /// How many bytes there were.
        offset: u64,
        /// Bytes a second that came last.
        found: u64,
        /// What is expected.
        expected: u64,
    },
    /// The body ends before its end.
    #[error("body ends at byte {found}{}", expected_text(*.expected))]
    Truncated {
        /// How many bytes there were.
        found: u64,
        /// How many there should be, where the server says.
        expected: Option<u64>,
    },
    /// The body, or what is decoded from it, is larger than allowed.
    #[error("{what} has more than {limit} bytes, which is the limit")]
    OverLimit {
        /// The body, or the decoded content.
        what: &'static str,
        /// What is allowed, in bytes.
        limit: u64,
    },
    /// The body has a content coding that is not of the format's, or several. Format text:
    /// "LINKS".
    #[error("content coding is {found:?}, expected one of zstd, gzip, br and deflate, or none")]
    Coding {
        /// What the server says.
        found: String,
    },
    /// The body is not what its content coding says.
    #[error("body could not be decoded as {coding}")]
    Decoding {
        /// The content coding.
        coding: &'static str,
        /// What the decoder says.
        source: io::Error,
    },
    /// The rest of the content was asked for, and another part came.
    #[error("content range is {found:?}, expected the bytes from {expected} on")]
    Range {
        /// What the server says.
        found: String,
        /// The offset in bytes that was asked for.
        expected: u64,
    },
    /// The rest of the content cannot be fetched any more, because it changed or because the server
    /// says so.
    #[error("content changed while it was fetched")]
    Changed,
    /// The content is another.
    #[error("content hashes to {}", Digest::Sha256(.found.0))]
    Digest {
        /// The SHA-256 of what came.
        found: Sha256,
    },
    /// The answer breaks HTTP, or the connection could not be secured.
    #[error("{0}")]
    Protocol(String),
    /// The connection failed.
    #[error("connection failed")]
    Connection(#[source] io::Error),
}

struct Failures<'a>(&'a [UrlError], usize);

impl fmt::Display for Failures<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(failures, untried) = self;
        for (at, failure) in failures.iter().enumerate() {
            let separator = if at == 0 { ": " } else { "; " };
            // The causes are shown here, because an error can have only one of them as its source.
            write!(f, "{separator}{:?}: {}", failure.url, Chain(&failure.fault))?;
        }
        match untried {
            0 => Ok(()),
            _ => write!(f, "; {untried} more were not tried"),
        }
    }
}

fn expected_text(expected: Option<u64>) -> String {
    expected.map(|expected| format!(", expected {expected} bytes")).unwrap_or_default()
}
