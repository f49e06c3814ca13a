//! Tensors of Python as files.

use std::{collections::BTreeMap, path::PathBuf};

use modelcrate::{
    AnyReader, ConvertOptions, Target,
    tensor_core::{DType, Source, TensorInfo, output::Existing},
    weights,
};
use pyo3::prelude::*;

use crate::{
    convert::{Done, target, write_tensors},
    fault::{Fault, Result},
    object::Object,
    reader::json,
};

/// A tensor of Python: name, element type, shape, length in bytes, and the object that reads it.
type Given = (String, String, Vec<u64>, u64, Py<PyAny>);

/// Writes tensors as a file, whole or not at all, in place of one that is there.
#[pyfunction]
#[pyo3(signature = (tensors, path, metadata, *, to))]
pub(crate) fn save(
    py: Python<'_>,
    tensors: Vec<Given>,
    path: PathBuf,
    metadata: BTreeMap<String, String>,
    to: Option<&str>,
) -> PyResult<String> {
    Ok(py.detach(|| {
        let target: Target = target(to, &path)?;
        let tensors = tensors.into_iter().map(|(name, dtype, shape, len, object)| {
            let dtype: DType = dtype.parse().map_err(|error| Fault::usage(format!("{error}")))?;
            let source = Source::from_read_at(Object::new(object, len));
            Ok((name, TensorInfo { dtype, shape: shape.into() }, source))
        });
        let tensors = tensors.collect::<Result<Vec<_>>>()?;
        let reader = weights::Reader::of_tensors(tensors).map_err(modelcrate::Error::from)?;
        let reader = AnyReader::Weights(reader);
        let mut set = reader.tensor_set()?;
        let metadata = metadata.into_iter().map(|(key, value)| (key, value.into()));
        set.metadata_mut().extend(metadata);
        let done: Done =
            write_tensors(&set, target, &path, &ConvertOptions::default(), Existing::Replace)?;
        json(&done)
    })?)
}
