//! Where the content of linked files comes from. Format text: "LINKS".

use tensor_core::Source;

use crate::Sha256;

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
    /// Where it may be had, in the order of `LINKS`.
    pub urls: &'a [String],
}

impl<'a> Link<'a> {
    /// Joins a digest and where its content may be had.
    #[must_use]
    pub const fn new(sha256: Sha256, urls: &'a [String]) -> Self {
        Self { sha256, urls }
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

    pub(crate) fn into_parts(self) -> (Source, bool) {
        (self.source, self.is_checked)
    }
}

/// Why the content of a linked file is not to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {}
