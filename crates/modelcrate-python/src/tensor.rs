//! Tensors that are read when they are asked for.

use modelcrate::{
    AnyTensor, Content, QuantizationSummary, carton_format,
    tensor_core::{DType, Limits, Shape, Source, TensorBuf, Verified},
    weights::ElementType,
};
use pyo3::{
    PyTraverseError, PyVisit,
    prelude::*,
    types::{PyBytes, PyCapsule, PyTuple},
};

use crate::{
    fault::{Fault, Result},
    memory::{Asked, Exporter, Memory, Owner, refuse},
    reader::Reader,
};

/// A tensor of an open file.
#[pyclass(frozen, subclass, extends = Exporter, module = "modelcrate._native")]
pub(crate) struct Tensor {
    /// What the other half of the package knows of the model.
    opened: Py<PyAny>,
    reader: Py<Reader>,
    place: usize,
}

#[pymethods]
impl Tensor {
    #[new]
    fn new(opened: Py<PyAny>, reader: Py<Reader>, place: usize) -> PyClassInitializer<Self> {
        PyClassInitializer::from(Exporter).add_subclass(Self { opened, reader, place })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.opened)?;
        visit.call(&self.reader)
    }

    #[getter]
    fn _opened(&self, py: Python<'_>) -> Py<PyAny> {
        self.opened.clone_ref(py)
    }

    #[getter]
    const fn _place(&self) -> usize {
        self.place
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        let opened = self.reader.get().get()?;
        let entry = opened.entries()?.get(self.place);
        Ok(entry.map(|entry| entry.name.clone()).unwrap_or_default())
    }

    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<String> {
        self.content(py, |content, _| Ok(content.to_string()))
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let shape = self.content(py, |_, shape| Ok(shape.dims().to_vec()))?;
        PyTuple::new(py, shape)
    }

    /// The bytes of its elements, as they are stored in a file that does not compress them; None
    /// where they are not all of one length.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.content(py, |content, shape| match content {
            Content::Elements(ElementType::Plain(DType::Str)) => Ok(None),
            Content::Elements(element_type) => {
                Ok(element_type.byte_len(shape).map_err(modelcrate::Error::from)?)
            }
            _ => Ok(None),
        })
    }

    /// Reads its elements: into memory of its own where `owned` asks for that, or where they have to
    /// be decoded, dequantized or moved; with `bits` as whole numbers of the same width.
    fn read(&self, py: Python<'_>, owned: bool, dequantize: bool, bits: bool) -> PyResult<Memory> {
        self.reader.get().call(py, |opened| {
            let memory = memory(opened.tensor(self.place)?, owned, dequantize, bits)?;
            Ok(memory.seen_in(opened.reader.source().and_then(Source::as_slice)))
        })
    }

    /// Hands out its elements as `DLPack`.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let asked = Asked::new(stream, max_version, dl_device)?;
        let memory = self.read(py, copy.unwrap_or(!asked.has_flags()), false, false)?;
        if copy == Some(false) && !memory.is_view() {
            return refuse("elements have to be read or decoded, expected copy=None or True");
        }
        asked.export(Bound::new(py, memory)?, true)
    }

    /// Reads its elements as bytes; of blocks those that are stored.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.call(py, |tensor| {
            Ok(match tensor {
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
        self.call(py, |tensor| match tensor {
            AnyTensor::Carton(tensor) if tensor.kind() == carton_format::TensorKind::Strings => {
                Ok(tensor.strings().map_err(modelcrate::Error::from)?)
            }
            _ => Err(Fault::usage("elements are not texts")),
        })
    }

    /// Compares its bytes with the digest that the file holds for them; tells whether there is one.
    fn verify(&self, py: Python<'_>) -> PyResult<bool> {
        self.call(py, |tensor| Ok(tensor.verify()? == Verified::Digest))
    }
}

impl Tensor {
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(AnyTensor<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.reader.get().call(py, |opened| work(opened.tensor(self.place)?))
    }

    fn content<T: Send>(
        &self,
        py: Python<'_>,
        get: impl FnOnce(&Content, &Shape) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.call(py, |tensor| {
            let (content, shape) = tensor.content()?;
            get(&content, &shape)
        })
    }
}

/// Reads the elements of a tensor: see [`Tensor::read`].
pub(crate) fn memory(
    tensor: AnyTensor<'_>,
    owned: bool,
    dequantize: bool,
    bits: bool,
) -> Result<Memory> {
    let (dtype, shape, owner) = match dequantize && is_quantized(tensor)? {
        true => {
            let found = tensor.dequantize()?;
            (found.dtype(), found.shape().clone(), Owner::Shared(found.into_bytes()))
        }
        false => elements(tensor)?,
    };
    Memory::new(dtype, &shape, owner, owned, bits)
}

/// Reads plain elements: into memory of their own where they stand in a file as they are.
fn elements(tensor: AnyTensor<'_>) -> Result<(DType, Shape, Owner)> {
    let (dtype, shape) = match tensor.content()? {
        (Content::Elements(ElementType::Plain(dtype)), shape) => (dtype, shape),
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
