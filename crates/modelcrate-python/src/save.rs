//! Tensors of Python as files.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use modelcrate::{
    AnyReader, ConvertOptions, Target, TensorSet,
    tensor_core::{
        DType, TensorInfo,
        output::{Durability, Existing, Output},
    },
    weights,
};
use pyo3::{prelude::*, types::PyBytes};

use crate::{
    convert::{conversion, product, write_tensors},
    fault::{Fault, Result},
    object::{Calls, Object},
    reader::json,
};

/// A tensor of Python: name, element type, shape, length in bytes, and the object that reads it.
type Given = (String, String, Vec<u64>, u64, Py<PyAny>);

/// Writes tensors as a file, whole or not at all, in place of one that is there.
#[pyfunction]
#[pyo3(signature = (tensors, path, metadata, *, to, sync))]
pub(crate) fn save(
    py: Python<'_>,
    tensors: Vec<Given>,
    path: PathBuf,
    metadata: BTreeMap<String, String>,
    to: Option<&str>,
    sync: bool,
) -> PyResult<String> {
    with_set(py, tensors, metadata, |set| {
        let target = match (to, path.extension()) {
            (None, None) => Target::Safetensors,
            _ => product(to, &path)?.tensors().ok_or_else(|| {
                Fault::usage("that holds models, expected a format of tensors, such as safetensors")
            })?,
        };
        let durability = if sync { Durability::Synced } else { Durability::Cached };
        let how = Output { existing: Existing::Replace, durability, ..Output::default() };
        json(&write_tensors(set, target, &path, &ConvertOptions::default(), how)?)
    })
}

/// Returns the bytes of a safetensors file.
#[pyfunction]
pub(crate) fn dump<'py>(
    py: Python<'py>,
    tensors: Vec<Given>,
    metadata: BTreeMap<String, String>,
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = with_set(py, tensors, metadata, |set| {
        let conversion = conversion(set, Target::Safetensors, &ConvertOptions::default())?;
        let mut bytes = Vec::new();
        for file in conversion.files() {
            bytes = file.write(bytes, |_| ())?;
        }
        Ok(bytes)
    })?;
    Ok(PyBytes::new(py, &bytes))
}

/// Does with a set of tensors what may take long.
fn with_set<T: Send>(
    py: Python<'_>,
    tensors: Vec<Given>,
    metadata: BTreeMap<String, String>,
    work: impl FnOnce(&TensorSet<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let calls = Arc::<Calls>::default();
    calls.run(py, || {
        let tensors = tensors.into_iter().map(|(name, dtype, shape, len, object)| {
            let dtype: DType = dtype.parse().map_err(|error| Fault::usage(format!("{error}")))?;
            let source = Object::new(object, len, Arc::clone(&calls)).source();
            Ok((name, TensorInfo { dtype, shape: shape.into() }, source))
        });
        let tensors = tensors.collect::<Result<Vec<_>>>()?;
        let reader = weights::Reader::of_tensors(tensors).map_err(modelcrate::Error::from)?;
        let reader = AnyReader::Weights(reader);
        let mut set = reader.tensor_set()?;
        let metadata = metadata.into_iter().map(|(key, value)| (key, value.into()));
        set.metadata_mut().extend(metadata);
        work(&set)
    })
}
