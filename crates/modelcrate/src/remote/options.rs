use std::time::Duration;

use tensor_core::Limits;

/// How files at addresses are read and written.
///
/// Credentials are no option: they come from the environment, from profiles, and from what a machine
/// of a cloud offers its programs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoteOptions {
    pub(super) retries: u32,
    pub(super) pause: Duration,
    pub(super) timeout: Duration,
    pub(super) block_size: u64,
    pub(super) cache_size: u64,
    pub(super) part_size: u64,
    pub(super) endpoint: Option<String>,
    pub(super) allow_http: bool,
    pub(super) env_proxy: bool,
    pub(super) limits: Limits,
}

impl RemoteOptions {
    /// Sets how often a request is made again that was answered with 408, 429 or 5xx, got no answer in
    /// time, or whose answer broke off; 4 times by default.
    #[must_use]
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets how long is waited before the first of them; each later one waits about twice as long.
    /// 200 milliseconds by default.
    #[must_use]
    pub const fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Sets how long an answer may bring nothing; 30 seconds by default. After that time it has to
    /// bring 16 KiB a second, counted from its start; what is written may take as long.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how many bytes are asked for at least, and kept together; 256 KiB by default, and at
    /// least 4 KiB.
    #[must_use]
    pub const fn block_size(mut self, bytes: u64) -> Self {
        self.block_size = if bytes < 4 << 10 { 4 << 10 } else { bytes };
        self
    }

    /// Sets how many bytes of each open file are kept in memory; 64 MiB by default, and never less than
    /// eight blocks. A file of a server that sends no ranges may have as many.
    #[must_use]
    pub const fn cache_size(mut self, bytes: u64) -> Self {
        self.cache_size = bytes;
        self
    }

    /// Sets how many bytes a part of an upload has; 8 MiB by default, and more where a store would not
    /// take so many parts. Most stores want at least 5 MiB.
    #[must_use]
    pub const fn part_size(mut self, bytes: u64) -> Self {
        self.part_size = if bytes == 0 { 1 } else { bytes };
        self
    }

    /// Sets the URL of what serves buckets, such as `http://127.0.0.1:9000`, or a hub; by default what the
    /// environment says (`AWS_ENDPOINT_URL`, `GOOGLE_BASE_URL`, `AZURE_STORAGE_ENDPOINT`,
    /// `HF_ENDPOINT`), and else that of the cloud or hub itself.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// Allows `http` to other hosts than this machine, whose answers anybody between can read and
    /// change; not allowed by default.
    #[must_use]
    pub const fn allow_http(mut self, allow: bool) -> Self {
        self.allow_http = allow;
        self
    }

    /// Sets whether the proxy that the environment names (`ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY`;
    /// `NO_PROXY`) stands between; none does by default. It resolves names itself, and so decides where
    /// redirects lead.
    #[must_use]
    pub const fn env_proxy(mut self, uses: bool) -> Self {
        self.env_proxy = uses;
        self
    }

    /// Sets limits for listings: of their files ([`Limits::entries`]), and of the bytes of each of their
    /// pages ([`Limits::document_bytes`]).
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the bytes of each file that are kept.
    pub(super) fn kept(&self) -> u64 {
        self.cache_size.max(self.block_size.saturating_mul(8))
    }

    /// Returns how long an answer of so many bytes may take.
    pub(super) fn patience(&self, bytes: u64) -> Duration {
        self.timeout.saturating_add(Duration::from_secs(bytes / RATE))
    }
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            retries: 4,
            pause: Duration::from_millis(200),
            timeout: Duration::from_secs(30),
            block_size: 256 << 10,
            cache_size: 64 << 20,
            part_size: 8 << 20,
            endpoint: None,
            allow_http: false,
            env_proxy: false,
            limits: Limits::default(),
        }
    }
}

/// How many bytes a second an answer has to bring, where it takes long.
pub(super) const RATE: u64 = 16 << 10;
