//! The native half of the Python package `modelcrate`; the other half, which users import, is in
//! `python/modelcrate`.
//!
//! # Data path
//!
//! ```text
//! 1. Reader          a path, bytes or an object that reads    reader.rs, object.rs, exit.rs
//! 2. Tensor          a place among the tensors of a reader    tensor.rs
//! 3. Memory          its elements, for `NumPy`, `PyTorch` and     memory.rs
//!                    whoever takes buffers or `DLPack`
//! 4. convert, save   files of any format, whole or not at all convert.rs, save.rs
//! ```
//!
//! What is described, not read, crosses the border as JSON: the same that the command prints. Every
//! call that reads a file, or computes, lets other threads of Python run meanwhile.

// Only memory.rs has unsafe code: the C interfaces of buffers and DLPack.
#![deny(unsafe_code)]
#![allow(clippy::needless_pass_by_value, reason = "what Python passes becomes values")]

mod convert;
mod exit;
mod fault;
mod memory;
mod object;
mod reader;
#[cfg(feature = "remote")]
mod remote;
mod save;
mod tensor;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use std::ffi::OsString;

    use modelcrate::rules::Rule;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        convert::convert,
        memory::{Exporter, Memory},
        reader::{Reader, diff},
        save::{dump, save},
        tensor::Tensor,
    };

    /// Runs the command, and returns its exit status.
    #[pyfunction]
    #[pyo3(signature = (arguments, /))]
    fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        py.detach(|| modelcrate_cli::main(arguments))
    }

    /// Returns the rule of an id as JSON; None where there is none.
    #[pyfunction]
    #[pyo3(signature = (rule, /))]
    fn explain(rule: &str) -> Option<String> {
        serde_json::to_string(&Rule::find(rule)?).ok()
    }

    /// Returns how many requests this process has made, how many bytes of files came or went with them,
    /// and how many were made again; None where the build reads no addresses.
    #[pyfunction]
    fn remote_stats() -> Option<(u64, u64, u64)> {
        #[cfg(feature = "remote")]
        {
            let stats = crate::remote::stats();
            Some((stats.requests, stats.bytes, stats.retries))
        }
        #[cfg(not(feature = "remote"))]
        None
    }

    /// The formats that tensors can be saved in, as the names of files end.
    #[pyfunction]
    fn targets() -> Vec<&'static str> {
        let extensions = modelcrate::Target::ALL.iter().map(|target| target.format().extensions());
        extensions.filter_map(|of| of.first().copied()).collect()
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let end = wrap_pyfunction!(crate::exit::end, module)?;
        module.py().import("atexit")?.call_method1("register", (end,))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
