//! Independent work over a few threads, results in order.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{
        Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
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

/// Applies `work` to items on up to `threads` threads ahead of `consume`, which takes the results in
/// the order of the items, one for each call of what it is given.
///
/// What `cost` says of the items whose results are not consumed, that which is being consumed among
/// them, adds up to no more than `room`, unless one costs more alone. With one thread, or where
/// nothing costs anything, nothing is spawned.
pub fn ahead<T, R, O>(
    items: &[T],
    threads: NonZeroUsize,
    room: u64,
    cost: impl Fn(&T) -> u64 + Sync,
    work: impl Fn(&T) -> R + Sync,
    consume: impl FnOnce(&mut dyn FnMut() -> Option<R>) -> O,
) -> O
where
    T: Sync,
    R: Send,
{
    let mut rest = items.iter();
    if threads.get() == 1 || items.len() <= 1 || items.iter().all(|item| cost(item) == 0) {
        return consume(&mut || rest.next().map(&work));
    }
    let shared = Shared { queue: Mutex::new(Queue::default()), changed: Condvar::new(), room };
    let run = || {
        let _stop = Stop { shared: &shared, always: false };
        while let Some((index, item)) = shared.begin(items, &cost) {
            let result = work(item);
            shared.finish(index, cost(item), result);
        }
    };
    thread::scope(|scope| {
        let _stop = Stop { shared: &shared, always: true };
        let spawn = |_: &usize| thread::Builder::new().spawn_scoped(scope, run).is_ok();
        let spawned = (0..threads.get().min(MOST).min(items.len())).take_while(spawn).count();
        if spawned == 0 {
            return consume(&mut || rest.next().map(&work));
        }
        let mut index = 0..items.len();
        consume(&mut || shared.take(index.next()?))
    })
}

/// Results on their way from those who work to the one who consumes.
struct Shared<R> {
    queue: Mutex<Queue<R>>,
    changed: Condvar,
    room: u64,
}

struct Queue<R> {
    /// The item that is begun next.
    next: usize,
    /// The item whose result is consumed now, or next.
    consumed: usize,
    /// What results cost that were begun and not consumed.
    costs: u64,
    /// What the one costs that is being consumed.
    held: u64,
    done: HashMap<usize, (u64, R)>,
    stopped: bool,
}

impl<R> Default for Queue<R> {
    fn default() -> Self {
        let done = HashMap::new();
        Self { next: 0, consumed: 0, costs: 0, held: 0, done, stopped: false }
    }
}

impl<R> Shared<R> {
    fn lock(&self) -> MutexGuard<'_, Queue<R>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, queue: MutexGuard<'g, Queue<R>>) -> MutexGuard<'g, Queue<R>> {
        self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for the next item.
    fn begin<'i, T>(&self, items: &'i [T], cost: impl Fn(&T) -> u64) -> Option<(usize, &'i T)> {
        let mut queue = self.lock();
        loop {
            let index = queue.next;
            let item = items.get(index).filter(|_| !queue.stopped)?;
            let costs = queue.costs.saturating_add(cost(item));
            let is_near = index.saturating_sub(queue.consumed) < MOST_AHEAD;
            if is_near && (queue.costs == 0 || costs <= self.room) {
                queue.next = index.saturating_add(1);
                queue.costs = costs;
                return Some((index, item));
            }
            queue = self.wait(queue);
        }
    }

    fn finish(&self, index: usize, cost: u64, result: R) {
        self.lock().done.insert(index, (cost, result));
        self.changed.notify_all();
    }

    /// Waits for the result of an item, once the one before is consumed.
    fn take(&self, index: usize) -> Option<R> {
        let mut queue = self.lock();
        queue.costs = queue.costs.saturating_sub(queue.held);
        queue.held = 0;
        queue.consumed = index;
        self.changed.notify_all();
        loop {
            if let Some((cost, result)) = queue.done.remove(&index) {
                queue.held = cost;
                return Some(result);
            }
            if queue.stopped {
                return None;
            }
            queue = self.wait(queue);
        }
    }
}

/// Lets nobody wait for a thread that is gone.
struct Stop<'s, R> {
    shared: &'s Shared<R>,
    /// Not only where it panicked.
    always: bool,
}

impl<R> Drop for Stop<'_, R> {
    fn drop(&mut self) {
        if self.always || thread::panicking() {
            self.shared.lock().stopped = true;
            self.shared.changed.notify_all();
        }
    }
}

/// How many items may be begun ahead, whatever they cost.
const MOST_AHEAD: usize = 1024;

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
    fn results_come_in_order_and_no_more_than_there_is_room_for() {
        let items: Vec<u64> = (0..3000).collect();
        for threads in 1..4 {
            let (alive, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let work = |item: &u64| {
                most.fetch_max(alive.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                item * item
            };
            let threads = NonZeroUsize::new(threads).unwrap();
            let sum = ahead(
                &items,
                threads,
                50,
                |_| 10,
                work,
                |next| {
                    for item in &items {
                        assert_eq!(next(), Some(item * item));
                        alive.fetch_sub(1, Ordering::Relaxed);
                    }
                    assert_eq!(next(), None);
                    7
                },
            );
            assert!(sum == 7 && most.into_inner() <= 6);
            // One who stops early does not wait for the others.
            assert_eq!(ahead(&items, threads, 0, |_| 1, |item| *item, |next| next()), Some(0));
        }
    }

    #[test]
    fn nothing_to_do() {
        assert!(map(&[], available(), |item: &u8| *item).is_empty());
    }
}
