//! How much memory and time something takes: an allocator that counts.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: test_support::memory::Counting = test_support::memory::Counting;
//!
//! let taken = test_support::memory::measure(|| vec![0_u8; 1 << 20]);
//! assert!(taken.bytes >= 1 << 20);
//! ```
#![expect(unsafe_code, reason = "an allocator cannot be written without it")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::{Duration, Instant},
};

/// The allocator of the system; notes the bytes that each thread holds, and the most that it held.
///
/// What C libraries take for themselves is not seen.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends frees what it held after its counters are gone.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: every call is handed on to the allocator of the system as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's promises are those that the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}

/// What something took.
#[derive(Debug)]
pub struct Taken<T> {
    /// What it returned.
    pub result: T,
    /// The most memory that this thread held meanwhile, in bytes, beside what it held before. 0
    /// where [`Counting`] is not the allocator of the program.
    pub bytes: u64,
    /// How much of it this thread still holds, in bytes.
    pub kept: u64,
    /// How long it took.
    pub time: Duration,
}

/// Runs something on this thread and measures what it takes.
pub fn measure<T>(run: impl FnOnce() -> T) -> Taken<T> {
    let before = HELD.get();
    MOST.set(before);
    let started = Instant::now();
    let result = run();
    let bytes = MOST.get().saturating_sub(before).try_into().unwrap_or_default();
    let kept = HELD.get().saturating_sub(before).try_into().unwrap_or_default();
    Taken { result, bytes, kept, time: started.elapsed() }
}
