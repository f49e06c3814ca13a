//! The end of the interpreter, at which daemon threads still run.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
    time::Duration,
};

use pyo3::prelude::*;

/// Calls of Python from Rust. A thread that waits for the interpreter in one when that ends is unwound
/// by `CPython` before 3.14, which frames of Rust do not survive.
struct Calls {
    /// The thread that ends the interpreter.
    ended_by: Option<ThreadId>,
    running: usize,
}

static CALLS: Mutex<Calls> = Mutex::new(Calls { ended_by: None, running: 0 });
static DONE: Condvar = Condvar::new();

/// Calls Python from any thread; `None` where the interpreter is about to end.
pub(crate) fn attach<T>(call: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    let mut calls = lock();
    if calls.ended_by.is_some_and(|thread| thread != thread::current().id()) {
        return None;
    }
    calls.running = calls.running.saturating_add(1);
    drop(calls);
    let _running = Running;
    Python::try_attach(call)
}

/// Lets no thread but this one call Python any more, and waits for calls that are running.
#[pyfunction]
pub(crate) fn end(py: Python<'_>) {
    let thread = thread::current().id();
    py.detach(|| {
        let mut calls = lock();
        calls.ended_by = Some(thread);
        drop(DONE.wait_timeout_while(calls, PATIENCE, |calls| calls.running > 0));
    });
}

struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        let mut calls = lock();
        calls.running = calls.running.saturating_sub(1);
        DONE.notify_all();
    }
}

fn lock() -> MutexGuard<'static, Calls> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A read that takes longer does not hold up the end.
const PATIENCE: Duration = Duration::from_secs(5);
