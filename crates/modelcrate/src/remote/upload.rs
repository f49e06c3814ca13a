//! Files written to a bucket: whole, or not at all.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{multipart::PartId, path::Path};
use tensor_core::{Extent, Source, output::Existing};

use super::{Error, Result, answer::Version, bucket::Bucket, runtime::wait, target::Target};

/// Writes an object: in one request, or in parts that become one object when all are there.
pub(super) async fn put(
    target: &Target,
    (bucket, key): (&Bucket, &Path),
    source: &Source,
    existing: Existing,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<()> {
    let may_replace = existing == Existing::Replace;
    let part_size = target.options.part_size.max(source.len().div_ceil(MOST_PARTS));
    if source.len() <= part_size {
        let bytes = source.read(Extent::first(source.len()), "result")?;
        let len = bytes.len();
        let mut attempts = 0_u32;
        let put = target.retried(source.len(), || {
            attempts = attempts.saturating_add(1);
            let (bytes, is_again) = (bytes.clone(), attempts > 1);
            async move {
                match bucket.put(key, bytes.clone(), may_replace).await {
                    // It may be there by an attempt whose answer was lost.
                    Err(Error::Exists)
                        if is_again && has(target, (bucket, key), &bytes).await? =>
                    {
                        Ok(())
                    }
                    put => put,
                }
            }
        });
        put.await?;
        target.counters.bytes(len);
        progress(len as u64);
        return Ok(());
    }
    let before = match target.retried(0, || bucket.head(key)).await {
        Ok(_) if !may_replace => return Err(Error::Exists),
        Ok((_, version)) => Some(version),
        Err(Error::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    let id = target.retried(0, || bucket.begin(key)).await?;
    let unfinished = Unfinished::new(bucket, key, &id);
    let starts = (0..source.len()).step_by(usize::try_from(part_size).unwrap_or(usize::MAX));
    let parts = starts.enumerate().map(|(index, start)| {
        let id = &id;
        async move {
            let len = part_size.min(source.len().saturating_sub(start));
            let bytes = source.read(Extent::new(start, len)?, "result")?;
            let put = target.retried(len, || bucket.put_part(key, id, index, bytes.clone()));
            let part = put.await?;
            target.counters.bytes(bytes.len());
            progress(len);
            Ok::<_, Error>(part)
        }
    });
    let parts = stream::iter(parts).buffered(AT_ONCE).try_collect::<Vec<_>>().await;
    let completed = match parts {
        Ok(parts) => complete(target, (bucket, key), (&id, parts), source.len(), before).await,
        Err(error) => Err(error),
    };
    if completed.is_err() {
        // What cannot be cleaned up is no reason to say less about why.
        let _ = target.retried(0, || bucket.abort(key, &id)).await;
    }
    drop(unfinished);
    completed
}

/// Makes one object of parts.
async fn complete(
    target: &Target,
    (bucket, key): (&Bucket, &Path),
    (id, parts): (&String, Vec<PartId>),
    len: u64,
    before: Option<Version>,
) -> Result<()> {
    let mut attempts = 0_u32;
    let completed = target.retried(0, || {
        attempts = attempts.saturating_add(1);
        let (parts, is_again, before) = (parts.clone(), attempts > 1, &before);
        async move {
            match bucket.complete(key, id, parts).await {
                // There are no parts any more where the answer to an earlier attempt was lost.
                Err(Error::NotFound { .. } | Error::Status { found: 404, .. }) if is_again => {
                    let (found, version) = bucket.head(key).await?;
                    let is_new = before.as_ref() != Some(&version);
                    if found == len && is_new { Ok(()) } else { Err(Error::Changed) }
                }
                completed => completed,
            }
        }
    });
    completed.await
}

/// Tells whether an object has these bytes.
async fn has(target: &Target, (bucket, key): (&Bucket, &Path), bytes: &Bytes) -> Result<bool> {
    let all = 0..(bytes.len() as u64).saturating_add(1);
    Ok(bucket.get(key, all, None, &target.counters).await?.bytes == bytes)
}

/// An upload whose parts are thrown away where the process is ended: listed as long as it lives.
struct Unfinished(u64);

struct Listed {
    number: u64,
    bucket: Bucket,
    key: Path,
    id: String,
}

static UNFINISHED: Mutex<(u64, Vec<Listed>)> = Mutex::new((0, Vec::new()));

impl Unfinished {
    fn new(bucket: &Bucket, key: &Path, id: &str) -> Self {
        let mut uploads = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        uploads.0 = uploads.0.wrapping_add(1);
        let number = uploads.0;
        let (bucket, key, id) = (bucket.clone(), key.clone(), id.to_owned());
        uploads.1.push(Listed { number, bucket, key, id });
        Self(number)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut uploads = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        uploads.1.retain(|upload| upload.number != self.0);
    }
}

/// Throws away the parts of uploads that are not finished, and waits a few seconds at most: what a
/// program does before a signal ends it. Returns how many there were.
pub fn abandon() -> usize {
    let uploads = {
        let mut uploads = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut uploads.1)
    };
    let count = uploads.len();
    if count > 0 {
        // There is nobody left to tell that it failed.
        let _ = wait(async move {
            let abort =
                |upload: Listed| async move { upload.bucket.abort(&upload.key, &upload.id).await };
            let aborts = uploads.into_iter().map(abort);
            let aborts = stream::iter(aborts).buffer_unordered(AT_ONCE).collect::<Vec<_>>();
            let _ = tokio::time::timeout(LAST_WORDS, aborts).await;
            Ok(())
        });
    }
    count
}

/// Stores take 10,000 parts, or more.
const MOST_PARTS: u64 = 9_000;

const AT_ONCE: usize = 4;

const LAST_WORDS: Duration = Duration::from_secs(5);
