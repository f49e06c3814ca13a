//! What tensors are made of, read piece by piece.

use std::{
    fmt,
    io::{self, BufRead, Cursor, Read},
};

use bytes::Bytes;
use tensor_core::{DType, Shape, SourceReader};

use crate::{AnyTensor, Error, NamedTensor, Result, weights::ElementType};

/// What a tensor is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// The elements of one dense tensor, be it stored sparse.
    Elements(ElementType),
    /// Something else, which has the name of its format for it, such as `quantized_group`.
    Layout(String),
}

impl Content {
    /// Returns the element type, where there is one that other formats have.
    pub(crate) const fn dtype(&self) -> Option<DType> {
        match self {
            Self::Elements(ElementType::Plain(dtype)) => Some(*dtype),
            _ => None,
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elements(element_type) => element_type.fmt(f),
            Self::Layout(layout) => f.pad(layout),
        }
    }
}

impl serde::Serialize for Content {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'a> NamedTensor<'a> {
    /// Returns what it is made of, and its shape.
    ///
    /// # Errors
    ///
    /// Where that cannot be told.
    pub fn content(&self) -> Result<(Content, Shape)> {
        self.tensor().content()
    }

    /// Returns its parts with their names: one without a name for elements, several for other
    /// layouts.
    pub(crate) fn parts(&self) -> Result<Vec<(String, Stream<'a>)>> {
        self.tensor().parts()
    }
}

impl<'a> AnyTensor<'a> {
    /// Returns what it is made of, and its shape.
    ///
    /// # Errors
    ///
    /// Where that cannot be told.
    pub fn content(self) -> Result<(Content, Shape)> {
        match self {
            Self::Weights(tensor) => {
                return Ok((Content::Elements(tensor.element_type()), tensor.shape().clone()));
            }
            #[cfg(feature = "carton")]
            Self::Carton(tensor) if tensor.kind() == carton_format::TensorKind::Nested => {
                return Ok((Content::Layout("nested".to_owned()), Shape::scalar()));
            }
            #[cfg(feature = "circle")]
            Self::Circle(tensor) => {
                if let Some((layout, shape)) = circle_layout(tensor) {
                    return Ok((Content::Layout(layout), shape));
                }
            }
            #[cfg(feature = "ptl")]
            Self::Ptl(tensor) if tensor.scalar_type().dtype().is_none() => {
                let layout = tensor.scalar_type().to_string();
                return Ok((Content::Layout(layout), tensor.shape().clone()));
            }
            #[cfg(feature = "ztensor")]
            Self::ZTensor(tensor) if let Some(elements) = crate::set::packed_elements(tensor) => {
                return Ok((Content::Elements(elements), tensor.object()?.shape));
            }
            #[cfg(feature = "ztensor")]
            Self::ZTensor(tensor) if let Some(name) = unknown_elements(tensor)? => {
                return Ok((Content::Layout(name), tensor.object()?.shape));
            }
            #[cfg(feature = "ztensor")]
            Self::ZTensor(tensor) if !has_elements(&tensor.object()?.format) => {
                let object = tensor.object()?;
                return Ok((Content::Layout(object.format.to_string()), object.shape));
            }
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => {}
        }
        let info = self.info()?;
        Ok((Content::Elements(ElementType::Plain(info.dtype)), info.shape))
    }

    pub(crate) fn parts(self) -> Result<Vec<(String, Stream<'a>)>> {
        let bytes = match self {
            Self::Weights(tensor) => {
                return Ok(vec![(String::new(), Stream::Weights(tensor.stream()?))]);
            }
            #[cfg(feature = "carton")]
            Self::Carton(tensor) => match tensor.kind() {
                carton_format::TensorKind::Strings => json(&tensor.strings()?),
                carton_format::TensorKind::Nested => {
                    let names: Vec<&str> =
                        tensor.inner().map(carton_format::Tensor::name).collect();
                    json(&names)
                }
                _ => match tensor.file()? {
                    Some(file) if file.len()? == tensor.info()?.byte_len()? => {
                        let stream = Stream::Carton(Box::new(file.reader()?));
                        return Ok(vec![(String::new(), stream)]);
                    }
                    _ => tensor.bytes()?,
                },
            },
            #[cfg(feature = "circle")]
            Self::Circle(tensor) if circle_layout(tensor).is_some() => {
                let mut parts = vec![("data".to_owned(), Stream::memory(tensor.stored_bytes()?))];
                if let Some(described) = tensor.tensor().filter(|of| of.sparsity.is_some()) {
                    let sparsity = json(&sparsity(described));
                    parts.push(("sparsity".to_owned(), Stream::memory(sparsity)));
                }
                return Ok(parts);
            }
            #[cfg(feature = "ptl")]
            Self::Ptl(tensor) if tensor.scalar_type().dtype().is_none() => {
                tensor.storage_bytes()?
            }
            #[cfg(feature = "ptl")]
            Self::Ptl(tensor) if let Some(stream) = tensor.stream()? => {
                return Ok(vec![(String::new(), Stream::Source(stream))]);
            }
            #[cfg(feature = "rten")]
            Self::Rten(tensor) => {
                return Ok(vec![(String::new(), Stream::Source(tensor.stream()?))]);
            }
            #[cfg(feature = "ztensor")]
            Self::ZTensor(tensor) => {
                let format = tensor.object()?.format;
                if format == ztensor::Format::Dense {
                    // Of other components nothing is said.
                    let parts = blobs(tensor)?.into_iter();
                    return Ok(parts.filter(|(name, _)| name.is_empty()).collect());
                }
                if !has_elements(&format) {
                    return blobs(tensor);
                }
                return match tensor.dense_reader() {
                    Ok(dense) => Ok(vec![(String::new(), Stream::Sparse(Box::new(dense)))]),
                    Err(error) if is_over_limit(&error) => blobs(tensor),
                    Err(_) => sparse(tensor).or_else(|_| blobs(tensor)),
                };
            }
            #[allow(unreachable_patterns, reason = "with all formats")]
            tensor => tensor.bytes()?,
        };
        Ok(vec![(String::new(), Stream::memory(bytes))])
    }
}

impl<'a> AnyTensor<'a> {
    /// Returns the parts as they are stored, of tensors that are made of several.
    pub(crate) fn stored_parts(self) -> Result<Vec<(String, Stream<'a>)>> {
        match self {
            #[cfg(feature = "ztensor")]
            Self::ZTensor(tensor) => blobs(tensor),
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => self.parts(),
        }
    }
}

#[cfg(feature = "ztensor")]
fn is_over_limit(error: &ztensor::Error) -> bool {
    error.kind() == tensor_core::ErrorKind::OverLimit
}

/// Returns the parts of a sparse tensor, alike for all versions of the format: one that has an element
/// twice is not dense in any one way.
#[cfg(feature = "ztensor")]
fn sparse(tensor: ztensor::Tensor<'_>) -> Result<Vec<(String, Stream<'_>)>> {
    use ztensor::{Format, Role};
    let parts = match tensor.object()?.format {
        Format::SparseCsr | Format::InlineCsr => {
            let csr = tensor.csr()?;
            let [indices, indptr] = [csr.indices(), csr.indptr()].map(Clone::clone);
            vec![
                (Role::Indices, indices),
                (Role::Indptr, indptr),
                (Role::Values, csr.values().clone()),
            ]
        }
        _ => {
            let coo = tensor.coo()?;
            vec![(Role::Coords, coo.coords().clone()), (Role::Values, coo.values().clone())]
        }
    };
    let parts = parts.into_iter();
    Ok(parts.map(|(role, part)| (role.to_string(), Stream::memory(part.into_bytes()))).collect())
}

#[cfg(feature = "ztensor")]
fn blobs(tensor: ztensor::Tensor<'_>) -> Result<Vec<(String, Stream<'_>)>> {
    let blobs = tensor.blobs()?.into_iter();
    let parts = blobs.map(|blob| {
        let is_all = *blob.role() == ztensor::Role::Data;
        let name = if is_all { String::new() } else { blob.role().to_string() };
        let stream = blob.stream()?;
        Ok((name, Stream::ZTensor(Box::new((blob, Some(stream))))))
    });
    parts.collect()
}

/// Writes texts and numbers, which can always be written.
#[cfg(any(feature = "carton", feature = "circle"))]
fn json(values: &impl serde::Serialize) -> Bytes {
    serde_json::to_vec(values).unwrap_or_default().into()
}

/// Returns how a constant leaves out zeros.
#[cfg(feature = "circle")]
fn sparsity(tensor: &circle_format::model::Tensor) -> serde_json::Value {
    let numbers = |of: &Option<circle_format::model::SparseIndices>| -> Option<Vec<i64>> {
        let of = of.as_ref()?;
        (0..of.len()?).map(|index| of.get(index)).collect()
    };
    let Some(sparsity) = &tensor.sparsity else { return serde_json::Value::Null };
    let level = |level: &circle_format::model::SparseLevel| {
        let (segments, indices) = (numbers(&level.segments), numbers(&level.indices));
        serde_json::json!([level.format.to_string(), level.dense_size, segments, indices])
    };
    let levels: Vec<serde_json::Value> = sparsity.levels.iter().map(level).collect();
    serde_json::json!([sparsity.traversal_order, sparsity.block_map, levels])
}

/// Returns what a constant is called that has no elements in order, and its shape.
#[cfg(feature = "circle")]
fn circle_layout(tensor: circle_format::Tensor<'_>) -> Option<(String, Shape)> {
    let described = tensor.tensor()?;
    let (sparse, shape) = (described.sparsity.is_some(), described.shape()?);
    let name = described.tensor_type.to_string().to_ascii_lowercase();
    match described.dtype() {
        Some(_) if !sparse => None,
        _ => Some((if sparse { format!("sparse {name}") } else { name }, shape)),
    }
}

/// Returns what a tensor of generation 2 is made of whose elements are of a type that is not known: of a
/// dense one that type, of others the layout.
#[cfg(feature = "ztensor")]
fn unknown_elements(tensor: ztensor::Tensor<'_>) -> Result<Option<String>> {
    use ztensor::{Format, Role, StoredType};
    let object = tensor.object()?;
    let part = [Role::Data, Role::Values].into_iter().find_map(|role| object.component(&role));
    // Before generation 2, elements of an unknown type are those that are stored.
    let is_unknown = |part: &&ztensor::Component| {
        matches!(part.dtype, StoredType::Known(_)) && part.elements().is_none()
    };
    let name = part.filter(is_unknown).and_then(|part| part.logical_type.clone());
    Ok(name.filter(|_| has_elements(&object.format)).map(|name| match object.format {
        Format::Dense => name,
        layout => layout.to_string(),
    }))
}

#[cfg(feature = "ztensor")]
fn has_elements(format: &ztensor::Format) -> bool {
    use ztensor::Format::{Dense, InlineCoo, InlineCsr, SparseCoo, SparseCsr};
    matches!(format, Dense | SparseCsr | SparseCoo | InlineCsr | InlineCoo)
}

/// A part of a tensor, decoded from its first byte to its last.
pub(crate) enum Stream<'a> {
    Memory(Cursor<Bytes>),
    #[cfg_attr(
        not(any(feature = "ptl", feature = "rten")),
        expect(dead_code, reason = "read by place else")
    )]
    Source(SourceReader),
    Weights(Box<dyn BufRead + 'a>),
    #[cfg(feature = "carton")]
    Carton(Box<carton_format::FileReader>),
    #[cfg(feature = "ztensor")]
    Sparse(Box<ztensor::DenseReader>),
    #[cfg(feature = "ztensor")]
    /// No stream is left once its end was seen.
    ZTensor(Box<(ztensor::Blob<'a>, Option<ztensor::BlobReader>)>),
}

impl Stream<'_> {
    const fn memory(bytes: Bytes) -> Self {
        Self::Memory(Cursor::new(bytes))
    }

    /// Fills a buffer as far as there are bytes, and returns how many there were.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Self::Memory(stream) => fill(stream, buffer).map_err(unread),
            Self::Source(stream) => fill(stream, buffer).map_err(unread),
            Self::Weights(stream) => fill(stream, buffer).map_err(unread),
            #[cfg(feature = "ztensor")]
            Self::Sparse(stream) => fill(stream, buffer).map_err(unread),
            #[cfg(feature = "carton")]
            Self::Carton(stream) => {
                let filled = fill(stream, buffer).map_err(carton_format::FileReader::fault)?;
                // Its end is where the digest is compared.
                stream.fill_buf().map_err(carton_format::FileReader::fault)?;
                Ok(filled)
            }
            #[cfg(feature = "ztensor")]
            Self::ZTensor(parts) => {
                let (blob, stream) = &mut **parts;
                let Some(rest) = stream else { return Ok(0) };
                let filled = fill(rest, buffer).map_err(|error| blob.stream_fault(error))?;
                if filled < buffer.len() {
                    stream.take().map(|stream| blob.finish(stream)).transpose()?;
                }
                Ok(filled)
            }
        }
    }
}

fn unread(error: io::Error) -> Error {
    crate::weights::Error::unread(error).into()
}

fn fill(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0_usize;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match stream.read(rest) {
            Ok(0) => break,
            Ok(read) => filled = filled.saturating_add(read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
