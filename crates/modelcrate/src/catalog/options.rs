use std::num::NonZeroUsize;

/// What a catalogue says of each file.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct CatalogOptions {
    pub(super) tensors: bool,
    pub(super) hash: bool,
    pub(super) stats: bool,
    pub(super) verify: bool,
    pub(super) threads: Option<NonZeroUsize>,
}

impl CatalogOptions {
    /// Sets whether there is a row for each tensor, in a second file.
    #[must_use]
    pub const fn tensors(mut self, tensors: bool) -> Self {
        self.tensors = tensors;
        self
    }

    /// Sets whether the content of files is hashed, and of each tensor that has a row.
    #[must_use]
    pub const fn hash(mut self, hash: bool) -> Self {
        self.hash = hash;
        self
    }

    /// Sets whether rows of tensors have statistics.
    #[must_use]
    pub const fn stats(mut self, stats: bool) -> Self {
        self.stats = stats;
        self
    }

    /// Sets whether every byte of a file is checked; else only what needs no tensor data.
    #[must_use]
    pub const fn verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Sets how many files are read at once; as many as the system has processors by default.
    #[must_use]
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }
}
