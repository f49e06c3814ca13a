use std::num::NonZeroUsize;

use tensor_core::{Limits, Profile, parallel};

use crate::{Fault, Kind, Method};

/// Whether entries may be symbolic links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// An archive that has one is refused.
    #[default]
    Refused,
    /// They are entries of their own kind; whoever reads one follows it by
    /// [`Entry::resolve`](crate::Entry::resolve).
    Kept,
}

/// What an archive may hold and how it is read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    methods: &'static [Method],
    symlinks: Symlinks,
    pub(crate) profile: Profile,
    pub(crate) limits: Limits,
    pub(crate) threads: Option<NonZeroUsize>,
}

impl ReadOptions {
    /// Sets which methods entries may have; all three by default.
    #[must_use]
    pub const fn methods(mut self, methods: &'static [Method]) -> Self {
        self.methods = methods;
        self
    }

    /// Sets whether entries may be symbolic links; refused by default.
    #[must_use]
    pub const fn symlinks(mut self, symlinks: Symlinks) -> Self {
        self.symlinks = symlinks;
        self
    }

    /// Sets how much the reader tolerates; strict by default.
    ///
    /// The strict profile refuses what readers may disagree about: opening looks at the directory,
    /// and reading an entry at its local header. What stands between entries, and data descriptors,
    /// are left to [`Archive::lint`](crate::Archive::lint).
    #[must_use]
    pub const fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets the ceilings on what an archive may make the reader do.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how many threads validate content; by default as many as the system offers.
    #[must_use]
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    pub(crate) fn thread_count(&self) -> NonZeroUsize {
        self.threads.unwrap_or_else(parallel::available)
    }

    /// Returns the method of a number, if entries may have it.
    pub(crate) fn method(&self, code: u16) -> Result<Method, Fault> {
        let method = Method::from_code(code).filter(|method| self.methods.contains(method));
        method.ok_or_else(|| {
            let expected = self.methods.iter().map(|method| method.code().to_string());
            Fault::Method { found: code, expected: expected.collect::<Vec<_>>().join(" or ") }
        })
    }

    pub(crate) fn check_kind(&self, kind: Kind) -> Result<(), Fault> {
        match (kind, self.symlinks) {
            (Kind::Symlink, Symlinks::Refused) => Err(Fault::Symlink),
            _ => Ok(()),
        }
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            methods: &[Method::Stored, Method::Deflate, Method::Zstd],
            symlinks: Symlinks::default(),
            profile: Profile::default(),
            limits: Limits::default(),
            threads: None,
        }
    }
}
