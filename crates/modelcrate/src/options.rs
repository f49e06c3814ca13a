use std::num::NonZeroUsize;

use tensor_core::{Limits, Profile, Verify};

/// How a file is opened: the same for all formats.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    pub(crate) limits: Option<Limits>,
    pub(crate) profile: Option<Profile>,
    pub(crate) verify: Option<Verify>,
    pub(crate) threads: Option<NonZeroUsize>,
}

impl ReadOptions {
    /// Sets the ceilings on what a file may make the reader do; those of the format by default.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Sets how much the reader tolerates; what the format's own clients do by default: strict, but
    /// lenient for PyTorch Live.
    #[must_use]
    pub const fn profile(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Sets when digests, and checksums of archives, are compared: by default at the first read of a
    /// file of a carton, and else only by [`AnyReader::validate`](crate::AnyReader::validate). No
    /// effect on formats that have none, such as Circle, TFLite, `RTen`, safetensors and GGUF.
    #[must_use]
    pub const fn verify(mut self, verify: Verify) -> Self {
        self.verify = Some(verify);
        self
    }

    /// Sets how many threads validation uses; as many as the system offers by default.
    #[must_use]
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }
}

/// Turns these options into those of a format, which have the same setters.
macro_rules! options_of {
    ($Reader:ty, $options:expr) => {{
        let $crate::ReadOptions { limits, profile, verify, threads } = $options;
        let mut options = <$Reader>::options();
        // Formats have defaults of their own, such as zTensor for rank and nesting.
        if let Some(limits) = limits {
            options = options.limits(limits);
        }
        if let Some(profile) = profile {
            options = options.profile(profile);
        }
        if let Some(verify) = verify {
            options = options.verify(verify);
        }
        if let Some(threads) = threads {
            options = options.threads(threads);
        }
        options
    }};
}
pub(crate) use options_of;
