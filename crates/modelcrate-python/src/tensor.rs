//! Tensors that are read when they are asked for.

use std::sync::Arc;

use modelcrate::{
    AnyTensor, Content, QuantizationSummary, carton_format,
    tensor_core::{DType, Limits, Shape, TensorBuf},
    weights::ElementType,
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyTuple},
};

use crate::{
    fault::{Fault, Result},
    memory::{Exporter, Memory, Owner},
    reader::{Opened, Reader, State},
};

/// A tensor of an open file.
#[pyclass(frozen, subclass, extends = Exporter, module = "modelcrate._native")]
pub(crate) struct Tensor {
    state: Arc<State>,
    place: usize,
}

#[pymethods]
impl Tensor {
    #[new]
    fn new(reader: &Reader, place: usize) -> PyClassInitializer<Self> {
        let tensor = Self { state: Arc::clone(&reader.state), place };
        PyClassInitializer::from(Exporter).add_subclass(tensor)
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        let opened = self.state.get()?;
        let entry = opened.entries()?.get(self.place);
        Ok(entry.map(|entry| entry.name.clone()).unwrap_or_default())
    }

    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<String> {
        Ok(py.detach(|| self.with_content(|content, _| Ok(content.to_string())))?)
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let shape = py.detach(|| self.with_content(|_, shape| Ok(shape.dims().to_vec())))?;
        PyTuple::new(py, shape)
    }

    /// The bytes of its elements, as they are stored in a file that does not compress them; None
    /// where they are not all of one length.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(py.detach(|| {
            self.with_content(|content, shape| match content {
                Content::Elements(ElementType::Plain(DType::Str)) => Ok(None),
                Content::Elements(element_type) => {
                    Ok(element_type.byte_len(shape).map_err(modelcrate::Error::from)?)
                }
                _ => Ok(None),
            })
        })?)
    }

    /// Reads its elements: into memory of its own where `owned` asks for that, or where they have to
    /// be decoded, dequantized or moved; with `bits` as whole numbers of the same width.
    fn read(&self, py: Python<'_>, owned: bool, dequantize: bool, bits: bool) -> PyResult<Memory> {
        Ok(py.detach(|| {
            let opened = self.state.get()?;
            let tensor = opened.tensor(self.place)?;
            let (dtype, shape, owner) = match dequantize && is_quantized(tensor)? {
                true => {
                    let found = tensor.dequantize()?;
                    (found.dtype(), found.shape().clone(), Owner::Shared(found.into_bytes()))
                }
                false => self.elements(&opened, tensor)?,
            };
            Memory::new(dtype, &shape, owner, owned, bits)
        })?)
    }

    /// Reads its elements as bytes; of blocks those that are stored.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| {
            let opened = self.state.get()?;
            Ok::<_, Fault>(match opened.tensor(self.place)? {
                AnyTensor::Weights(tensor)
                    if !matches!(tensor.element_type(), ElementType::Plain(_)) =>
                {
                    tensor.stored_bytes().map_err(modelcrate::Error::from)?
                }
                tensor => tensor.bytes()?,
            })
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the texts of a tensor of texts.
    fn strings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(py.detach(|| match self.state.get()?.tensor(self.place)? {
            AnyTensor::Carton(tensor) if tensor.kind() == carton_format::TensorKind::Strings => {
                Ok(tensor.strings().map_err(modelcrate::Error::from)?)
            }
            _ => Err(Fault::usage("elements are not texts")),
        })?)
    }

    /// Compares its bytes with the digest that the file holds for them; tells whether there is one.
    fn verify(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.detach(|| {
            let verified = self.state.get()?.tensor(self.place)?.verify()?;
            Ok::<_, Fault>(verified == modelcrate::tensor_core::Verified::Digest)
        })?)
    }
}

impl Tensor {
    fn with_content<T>(&self, get: impl Fn(&Content, &Shape) -> Result<T>) -> Result<T> {
        let opened = self.state.get()?;
        match opened.entries()?.get(self.place).and_then(|entry| entry.content.as_ref()) {
            Some((content, shape)) => get(content, shape),
            // It says why.
            None => {
                let (content, shape) = opened.tensor(self.place)?.content()?;
                get(&content, &shape)
            }
        }
    }

    /// Reads plain elements: into memory of their own where they stand in a file as they are.
    fn elements(&self, opened: &Opened, tensor: AnyTensor<'_>) -> Result<(DType, Shape, Owner)> {
        let known = opened.entries()?.get(self.place).and_then(|entry| entry.content.as_ref());
        let (dtype, shape) = match known {
            Some((Content::Elements(ElementType::Plain(dtype)), shape)) => (*dtype, shape.clone()),
            _ => {
                // Errors say what it is instead.
                let info = tensor.info()?;
                (info.dtype, info.shape)
            }
        };
        if let Some(owned) = tensor.read_owned()? {
            return Ok((dtype, shape, Owner::Owned(owned)));
        }
        let bytes = TensorBuf::new(dtype, shape.clone(), tensor.bytes()?)?.into_bytes();
        Ok((dtype, shape, Owner::Shared(bytes)))
    }
}

/// Tells whether numbers stand for others.
fn is_quantized(tensor: AnyTensor<'_>) -> Result<bool> {
    Ok(match tensor {
        AnyTensor::Weights(tensor) => !matches!(tensor.element_type(), ElementType::Plain(_)),
        AnyTensor::ZTensor(tensor) => {
            let object = tensor.object().map_err(modelcrate::Error::from)?;
            object.format == modelcrate::ztensor::Format::QuantizedGroup
        }
        tensor => tensor.quantization(&QuantizationSummary::memory(&Limits::default()))?.is_some(),
    })
}
