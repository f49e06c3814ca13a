//! Bytes that a Python object reads.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
};

use modelcrate::tensor_core::{ReadAt, Source};
use pyo3::{PyTraverseError, PyVisit, exceptions::PyRuntimeError, prelude::*, types::PyBytes};

use crate::{
    exit,
    fault::{Fault, Result},
};

/// An object with a method `read_at(offset, length) -> bytes`.
///
/// Whoever reads from it must not hold the interpreter: other threads may be waiting for it.
#[derive(Clone)]
pub(crate) struct Object(Arc<Inner>);

struct Inner {
    object: Py<PyAny>,
    len: u64,
    calls: Arc<Calls>,
}

impl Object {
    pub(crate) fn new(object: Py<PyAny>, len: u64, calls: Arc<Calls>) -> Self {
        Self(Arc::new(Inner { object, len, calls }))
    }

    pub(crate) fn source(&self) -> Source {
        Source::from_read_at(self.clone())
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0.object)
    }

    fn read(&self, py: Python<'_>, offset: u64, buffer: &mut [u8]) -> PyResult<()> {
        let read = self.0.object.call_method1(py, "read_at", (offset, buffer.len()))?;
        let bytes = read.bind(py).cast::<PyBytes>()?.as_bytes();
        if bytes.len() != buffer.len() {
            let (found, expected) = (bytes.len(), buffer.len());
            let message =
                format!("the file at byte {offset} gave {found} bytes, expected {expected}");
            return Err(Fault::io(message).into());
        }
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

impl ReadAt for Object {
    fn len(&self) -> u64 {
        self.0.len
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let calls = &self.0.calls;
        if !calls.have_failed() {
            let raised = exit::attach(|py| {
                calls.lock().reading.push(thread::current().id());
                self.read(py, offset, buffer).err()
            });
            let ends = || Some(PyRuntimeError::new_err("the interpreter is shutting down"));
            if calls.read(raised.unwrap_or_else(ends)) {
                return Ok(());
            }
        }
        Err(io::Error::other("an exception was raised"))
    }
}

/// The calls that read objects of one model: what reading raises comes out of them as it is, whatever
/// a reader makes of bytes that it did not get.
#[derive(Default)]
pub(crate) struct Calls(Mutex<Running>);

#[derive(Default)]
struct Running {
    /// How many calls there are now.
    calls: usize,
    /// How many exceptions were raised so far.
    raised: u64,
    /// How many that were when the last call began.
    before: u64,
    /// The last, as long as there are calls; shared, as to clone it may let the interpreter go, which
    /// must not happen while this is locked.
    exception: Option<Arc<PyErr>>,
    /// The threads that read now.
    reading: Vec<ThreadId>,
}

impl Calls {
    /// Begins a call; refused inside a read, as its turn would never come.
    pub(crate) fn begin(&self) -> Result<Call<'_>> {
        let mut running = self.lock();
        if running.reading.contains(&thread::current().id()) {
            let message = "a read of the model's own file uses the model, expected another";
            return Err(Fault::usage(message));
        }
        running.calls = running.calls.saturating_add(1);
        running.before = running.raised;
        Ok(Call { calls: self, before: running.raised })
    }

    /// Does what may take long; others have the interpreter meanwhile.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> PyResult<T> {
        let call = self.begin()?;
        let done = py.detach(work);
        call.end(py)?;
        Ok(done?)
    }

    /// Tells whether something was raised since the last call began: the others need no more bytes.
    fn have_failed(&self) -> bool {
        let running = self.lock();
        running.raised != running.before
    }

    /// Ends a read of this thread; tells whether nothing was raised.
    fn read(&self, raised: Option<PyErr>) -> bool {
        let mut running = self.lock();
        let this = thread::current().id();
        running.reading.retain(|thread| *thread != this);
        if raised.is_none() {
            return true;
        }
        running.raised = running.raised.saturating_add(1);
        let earlier = std::mem::replace(&mut running.exception, raised.map(Arc::new));
        drop(running);
        // Whatever that does, it finds this unlocked.
        drop(earlier);
        false
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that reads objects.
pub(crate) struct Call<'c> {
    calls: &'c Calls,
    before: u64,
}

impl Call<'_> {
    /// Ends it with what was raised meanwhile.
    pub(crate) fn end(self, py: Python<'_>) -> PyResult<()> {
        let running = self.calls.lock();
        let raised = running.exception.clone().filter(|_| running.raised != self.before);
        drop(running);
        raised.map_or(Ok(()), |exception| Err(exception.clone_ref(py)))
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut running = self.calls.lock();
        running.calls = running.calls.saturating_sub(1);
        // It holds frames, and those the model.
        let last = if running.calls == 0 { running.exception.take() } else { None };
        drop(running);
        drop(last);
    }
}
