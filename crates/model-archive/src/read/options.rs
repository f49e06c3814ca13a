use tensor_core::Limits;

use crate::Method;

/// How much a reader puts up with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// What readers may disagree about is refused: for verifying and unpacking. Opening looks at the
    /// directory and reading an entry at its local header; what stands between entries, and data
    /// descriptors, are left to [`Archive::check`](crate::Archive::check).
    #[default]
    Strict,
    /// Whatever is not unsafe is read, and can be asked for with [`Archive::check`](crate::Archive::check): for looking at
    /// broken archives.
    Lenient,
}

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
#[non_exhaustive]
pub struct Options {
    pub(crate) methods: &'static [Method],
    pub(crate) symlinks: Symlinks,
    pub(crate) profile: Profile,
    pub(crate) limits: Limits,
}

impl Options {
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

    /// Sets how much the reader puts up with; strict by default.
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
}

impl Default for Options {
    fn default() -> Self {
        Self {
            methods: &[Method::Stored, Method::Deflate, Method::Zstd],
            symlinks: Symlinks::default(),
            profile: Profile::default(),
            limits: Limits::default(),
        }
    }
}
