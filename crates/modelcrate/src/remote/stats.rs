use std::sync::atomic::{AtomicU64, Ordering};

/// What was asked of servers so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Requests, those that were made again and those for credentials included; a request that is
    /// redirected counts once.
    pub requests: u64,
    /// Bytes of files that came or went.
    pub bytes: u64,
    /// Requests that were made again.
    pub retries: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    requests: AtomicU64,
    bytes: AtomicU64,
    retries: AtomicU64,
}

impl Counters {
    pub(super) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> Stats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            requests: load(&self.requests),
            bytes: load(&self.bytes),
            retries: load(&self.retries),
        }
    }
}
