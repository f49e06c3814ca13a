//! Work on several threads, whose results are wanted one after the other.

use std::{
    collections::BTreeMap,
    io,
    num::NonZeroUsize,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// Does `work` on every item, and gives the results to `take` in the order of the items, on this
/// thread, as soon as they are there. While it waits for one, it gives `None` now and then.
///
/// No thread is further ahead of the result that is wanted next than [`AHEAD`]. With one item, nothing
/// is spawned.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    threads: NonZeroUsize,
    work: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(Option<R>) -> io::Result<()>,
) -> io::Result<()> {
    let one_by_one = |take: &mut dyn FnMut(Option<R>) -> io::Result<()>| {
        items.iter().try_for_each(|item| take(Some(work(item))))
    };
    if items.len() < 2 {
        return one_by_one(&mut take);
    }
    let queue = Queue::default();
    let run = || {
        let _stop = StopOnPanic(&queue);
        while let Some((index, item)) = queue.next(items) {
            let result = work(item);
            queue.put(index, result);
        }
    };
    thread::scope(|scope| {
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, run).ok();
        // Where the system gives no more threads, those that there are do the work.
        if (0..threads.get().min(items.len())).map_while(spawn).count() == 0 {
            return one_by_one(&mut take);
        }
        let _stop = StopOnPanic(&queue);
        let taken = (0..items.len()).try_for_each(|index| {
            while queue.wait(index) {
                match queue.ready(index) {
                    Some(result) => return take(Some(result)),
                    None => take(None)?,
                }
            }
            // A thread panics, and then so does this one.
            Ok(())
        });
        queue.stop();
        taken
    })
}

struct Queue<R> {
    state: Mutex<State<R>>,
    changed: Condvar,
}

struct State<R> {
    /// The first item that nobody has begun.
    next: usize,
    /// The first item whose result nobody has taken.
    wanted: usize,
    done: BTreeMap<usize, R>,
    is_over: bool,
}

impl<R> Default for Queue<R> {
    fn default() -> Self {
        let state = State { next: 0, wanted: 0, done: BTreeMap::new(), is_over: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<R> Queue<R> {
    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an item that nobody has begun, once it is not too far ahead.
    fn next<'a, T>(&self, items: &'a [T]) -> Option<(usize, &'a T)> {
        let is_ahead = |state: &mut State<R>| {
            !state.is_over && state.next >= state.wanted.saturating_add(AHEAD)
        };
        let waited = self.changed.wait_while(self.state(), is_ahead);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return None;
        }
        let index = state.next;
        let item = items.get(index)?;
        state.next = index.saturating_add(1);
        Some((index, item))
    }

    fn put(&self, index: usize, result: R) {
        let mut state = self.state();
        state.done.insert(index, result);
        if index == state.wanted {
            self.changed.notify_all();
        }
    }

    fn ready(&self, index: usize) -> Option<R> {
        let mut state = self.state();
        let result = state.done.remove(&index)?;
        let was_full = state.next >= state.wanted.saturating_add(AHEAD);
        state.wanted = index.saturating_add(1);
        if was_full {
            self.changed.notify_all();
        }
        Some(result)
    }

    /// Waits for a result for a while; tells whether it is or will be there.
    fn wait(&self, index: usize) -> bool {
        let is_missing = |state: &mut State<R>| !state.is_over && !state.done.contains_key(&index);
        let waited = self.changed.wait_timeout_while(self.state(), PATIENCE, is_missing);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.is_over || state.done.contains_key(&index)
    }

    /// Lets no thread begin anything more.
    fn stop(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }
}

/// Lets nobody wait for what a thread that panics will never do.
struct StopOnPanic<'a, R>(&'a Queue<R>);

impl<R> Drop for StopOnPanic<'_, R> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

/// How many items are begun before the one whose result is wanted next is done.
const AHEAD: usize = 256;

/// How long is waited for a result at once.
const PATIENCE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const TWO: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

    #[test]
    fn results_come_in_order() {
        let items: Vec<usize> = (0..2000).collect();
        for threads in [NonZeroUsize::MIN, TWO] {
            let (furthest, mut taken) = (AtomicUsize::new(0), Vec::new());
            let work = |item: &usize| {
                furthest.fetch_max(*item, Ordering::Relaxed);
                if item.is_multiple_of(500) {
                    thread::sleep(Duration::from_millis(5));
                }
                *item
            };
            each(&items, threads, work, |result| {
                if let Some(result) = result {
                    assert!(furthest.load(Ordering::Relaxed) <= result + AHEAD);
                    taken.push(result);
                }
                Ok(())
            })
            .unwrap();
            assert!(taken == items);
        }
    }

    #[test]
    fn an_error_ends_the_work() {
        let items: Vec<usize> = (0..2000).collect();
        let begun = AtomicUsize::new(0);
        let work = |_: &usize| begun.fetch_add(1, Ordering::Relaxed);
        let taken = each(&items, TWO, work, |_| Err(io::Error::other("no more")));
        assert_eq!(taken.unwrap_err().to_string(), "no more");
        assert!(begun.into_inner() <= AHEAD + 2);
    }

    #[test]
    fn a_panic_is_passed_on() {
        let items: Vec<usize> = (0..2000).collect();
        let work = |item: &usize| assert!(*item != 700);
        let all = || each(&items, TWO, work, |_| Ok(()));
        assert!(std::panic::catch_unwind(all).is_err());
    }
}
