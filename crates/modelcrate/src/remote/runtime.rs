//! The blocking face of what is asynchronous.

use std::{
    future::Future,
    sync::{OnceLock, mpsc},
    time::Duration,
};

use tokio::runtime::{Builder, Runtime};

use super::{Error, Result, stats::Counters};

/// Does some work on the threads of the runtime, which start when they are first needed, and waits
/// for it: from any thread, be it one of another runtime.
pub(super) fn wait<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let (done, result) = mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // Nobody waits any more where the receiver is gone.
        let _ = done.send(work.await);
    });
    let lost = |_| Error::Connection { reason: "the work was given up".to_owned() };
    result.recv().map_err(lost)?
}

fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let start = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("remote").enable_all().build().ok()
    };
    let reason = || "the system gives no threads for it".to_owned();
    RUNTIME.get_or_init(start).as_ref().ok_or_else(|| Error::Connection { reason: reason() })
}

/// Makes a request again, after longer and longer pauses, as long as that may help.
pub(super) async fn retried<T, F: Future<Output = Result<T>>>(
    (retries, pause): (u32, Duration),
    counters: &Counters,
    mut attempt: impl FnMut() -> F,
) -> Result<T> {
    let mut pauses = (0..retries).map(|retry| pause.saturating_mul(1 << retry.min(10)));
    loop {
        match attempt().await {
            Err(error) if error.is_transient() => {
                let Some(pause) = pauses.next() else { return Err(error) };
                tokio::time::sleep(pause.min(LONGEST).mul_f64(spread())).await;
                counters.retry();
            }
            result => return result,
        }
    }
}

/// Returns a factor from 0.5 to 1, so that those who failed together do not come back together.
fn spread() -> f64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = now.map_or(0, |now| now.subsec_nanos());
    0.5 + f64::from(nanos % 1024) / 2048.0
}

/// They wait for answers most of the time.
const THREADS: usize = 2;

const LONGEST: Duration = Duration::from_secs(20);
