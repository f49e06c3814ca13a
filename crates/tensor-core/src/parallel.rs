//! Independent work over a few threads, results in order.

use std::{
    num::NonZeroUsize,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Returns how many threads the system offers this process; 1 where it does not say.
///
/// The system is asked once: to find out, it may have to read files.
#[must_use]
pub fn available() -> NonZeroUsize {
    static AVAILABLE: OnceLock<NonZeroUsize> = OnceLock::new();
    *AVAILABLE.get_or_init(|| thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
}

/// Applies `work` to every item on up to `threads` threads and returns the results in the order of
/// the items.
///
/// Items are handed out one at a time, so that a long one does not hold up the others. With one
/// thread, or one item, nothing is spawned.
pub fn map<T, R, F>(items: &[T], threads: NonZeroUsize, work: F) -> Vec<R>
where
    T: Sync,
    R: Send,
    F: Fn(&T) -> R + Sync,
{
    let threads = threads.get().min(items.len());
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let run = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(MOST) {
            // Where the system gives no more threads, those that there are do the work.
            if thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// More threads than this cost more than they bring, whatever a caller asks for.
const MOST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order() {
        let items: Vec<u64> = (0..1000).collect();
        for threads in 1..5 {
            let squares = map(&items, NonZeroUsize::new(threads).unwrap(), |item| item * item);
            assert!(squares.iter().zip(&items).all(|(square, item)| *square == item * item));
        }
    }

    #[test]
    fn nothing_to_do() {
        assert!(map(&[], available(), |item: &u8| *item).is_empty());
    }
}
