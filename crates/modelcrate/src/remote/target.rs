//! A file at an address, and how its store is asked for parts of it.

use std::{ops::Range, sync::Arc};

use object_store::path::Path;
use url::Url;

use super::{
    Error, RemoteOptions, Result,
    answer::{Answer, Pin},
    bucket::Bucket,
    runtime::{retried, wait},
    stats::Counters,
    web::Web,
};

/// One file at an address.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) store: Store,
    pub(super) options: Arc<RemoteOptions>,
    pub(super) counters: Arc<Counters>,
}

#[derive(Clone, Debug)]
pub(super) enum Store {
    Bucket(Bucket, Path),
    Web(Web, Url),
}

impl Target {
    /// Returns a part of the file, and waits for it.
    pub(super) fn read(&self, range: Range<u64>, pin: Option<&Pin>) -> Result<Answer> {
        let (target, pin) = (self.clone(), pin.cloned());
        wait(async move { target.get(range, pin.as_ref()).await })
    }

    /// Returns a part of the file, of the pinned version where there is one.
    pub(super) async fn get(&self, range: Range<u64>, pin: Option<&Pin>) -> Result<Answer> {
        // Stores see to it that answers come on.
        let attempts = (self.options.retries, self.options.pause);
        retried(attempts, &self.counters, || async {
            match &self.store {
                Store::Bucket(bucket, key) => {
                    bucket.get(key, range.clone(), pin, &self.counters).await
                }
                Store::Web(web, url) => web.get(url, range.clone(), pin, &self.counters).await,
            }
        })
        .await
    }

    /// Makes attempts at something that moves so many bytes, none of which may take too long.
    pub(super) async fn retried<T, F: Future<Output = Result<T>>>(
        &self,
        bytes: u64,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T> {
        let (retries, patience) =
            ((self.options.retries, self.options.pause), self.options.patience(bytes));
        retried(retries, &self.counters, || {
            let attempt = tokio::time::timeout(patience, attempt());
            async move {
                let late = |_| Error::Timeout { seconds: patience.as_secs() };
                attempt.await.map_err(late)?
            }
        })
        .await
    }
}
