//! Bytes that a Python object reads.

use std::io;

use modelcrate::tensor_core::ReadAt;
use pyo3::{prelude::*, types::PyBytes};

/// An object with a method `read_at(offset, length) -> bytes`.
///
/// Whoever reads from it must not hold the interpreter: other threads may be waiting for it.
pub(crate) struct Object {
    object: Py<PyAny>,
    len: u64,
}

impl Object {
    pub(crate) const fn new(object: Py<PyAny>, len: u64) -> Self {
        Self { object, len }
    }
}

impl ReadAt for Object {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        Python::attach(|py| {
            let read = self.object.call_method1(py, "read_at", (offset, buffer.len()))?;
            let bytes = read.bind(py).cast::<PyBytes>().map_err(PyErr::from)?.as_bytes();
            if bytes.len() != buffer.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buffer.copy_from_slice(bytes);
            Ok(())
        })
    }
}
