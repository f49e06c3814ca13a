//! The lazy handle on one object.

mod blob;
mod dense_reader;
pub(crate) mod digest;
mod layout;
mod quantized;
mod real;
#[cfg(feature = "zstd")]
pub(crate) mod seekable;
pub(crate) mod sparse;
mod stream;

pub use blob::Blob;
pub use dense_reader::DenseReader;
pub(crate) use layout::LayoutError;
pub use quantized::{Axis, CodeOrder, Convention, QuantizedGroup};
pub(crate) use quantized::{GroupLayout, Part};
pub use real::Dequantized;
pub use sparse::{Coo, Csr};
pub use stream::BlobReader;
pub(crate) use stream::Len;

use bytes::Bytes;
use tensor_core::{Extent, Source, TensorBuf, TensorInfo, Verified};

use crate::{Attributes, Component, Encoding, Error, Format, Object, Reader, Role, error::Result};

impl Reader {
    /// Returns handles on the objects in the order of the manifest.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> {
        (0..self.manifest().len()).map(|index| Tensor::new(self, index))
    }

    /// Returns a handle on the object of a name; `None` where there is none.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        self.manifest().position(name).map(|index| Tensor::new(self, index))
    }
}

/// A handle on an object; nothing is decoded or read before it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    reader: &'a Reader,
    index: usize,
}

impl<'a> Tensor<'a> {
    pub(crate) const fn new(reader: &'a Reader, index: usize) -> Self {
        Self { reader, index }
    }

    /// Returns the name of the object.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.reader.manifest().name(self.index)
    }

    /// Decodes the definition of the object.
    ///
    /// # Errors
    ///
    /// None that opening has not met already.
    pub fn object(self) -> Result<Object> {
        self.reader.manifest().object_at(self.index)
    }

    /// Decodes the attributes of the object; `None` where it has none.
    ///
    /// # Errors
    ///
    /// [`Error::Manifest`] where a key is there twice, and where they are over a limit.
    pub fn attributes(self) -> Result<Option<Attributes>> {
        self.reader.manifest().attributes_of(self.name(), &self.object()?)
    }

    /// Returns the shape of the tensor and the type of its elements: those of `data` in a dense
    /// tensor, of `values` in a sparse one, of `packed_weight` in a quantized one.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] where the element type is unknown; [`Error::MissingComponent`];
    /// [`Error::WrongFormat`] where the format is unknown.
    pub fn info(self) -> Result<TensorInfo> {
        if let Some(plain) = self.reader.manifest().plain_at(self.index) {
            return Ok(TensorInfo { dtype: plain.dtype, shape: plain.shape });
        }
        let object = self.object()?;
        let role = self.main_role(&object)?;
        let dtype = match object.component(&role).and_then(Component::element_type) {
            Some(dtype) => dtype,
            // Says what is missing or unknown.
            None => self.required(&object, &role)?.element_type()?,
        };
        Ok(TensorInfo { dtype, shape: object.shape })
    }

    /// Returns where in the file the bytes of the tensor are; `None` where they are not stored as
    /// they are: compressed, big-endian, sparse or quantized.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes), but for reading.
    pub fn extent(self) -> Result<Option<Extent>> {
        let object = self.object()?;
        match object.format {
            Format::Dense => self.required(&object, &Role::Data)?.plain_extent(),
            _ => Ok(None),
        }
    }

    /// Returns the bytes of all elements, row-major, little-endian: without a copy where they are
    /// stored so and the source is in memory. Those of a sparse tensor are filled up with zeros.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub fn bytes(self) -> Result<Bytes> {
        let object = self.object()?;
        match object.format {
            Format::Dense => self.required(&object, &Role::Data)?.bytes(),
            _ => self.read().map(TensorBuf::into_bytes),
        }
    }

    /// Fills the caller's buffer with what [`bytes`](Self::bytes) returns. Of a dense tensor nothing
    /// is held in memory besides.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read), and where the buffer has another length.
    pub fn read_into(self, buffer: &mut [u8]) -> Result<()> {
        let object = self.object()?;
        match object.format {
            Format::Dense => return self.required(&object, &Role::Data)?.read_into(buffer),
            Format::SparseCsr | Format::InlineCsr => self.csr()?.fill(buffer),
            Format::SparseCoo | Format::InlineCoo => self.coo()?.fill(buffer),
            found => return Err(self.wrong_format(found, DENSE_OR_SPARSE)),
        }
        .map_err(|error| self.layout(error))
    }

    /// Reads the tensor with all its elements: a dense one as it is, a sparse one filled up with
    /// zeros.
    ///
    /// # Errors
    ///
    /// [`Error::WrongFormat`] for other formats; [`Error::Layout`] where an element is stored twice;
    /// where a sparse tensor is longer than [`Limits::decoded_bytes`](tensor_core::Limits) with its
    /// zeros; else as for [`Blob::bytes`] and [`csr`](Self::csr).
    pub fn read(self) -> Result<TensorBuf> {
        let limits = self.reader.limits();
        let object = self.object()?;
        match object.format {
            Format::Dense => {
                let data = self.required(&object, &Role::Data)?;
                return Ok(TensorBuf::new(data.element_type()?, object.shape, data.bytes()?)?);
            }
            Format::SparseCsr | Format::InlineCsr => self.csr()?.to_dense(limits),
            Format::SparseCoo | Format::InlineCoo => self.coo()?.to_dense(limits),
            found => return Err(self.wrong_format(found, DENSE_OR_SPARSE)),
        }
        .map_err(|error| self.layout(error))
    }

    /// Compares the digests of all components with their stored bytes, and returns the least that
    /// was proved.
    ///
    /// # Errors
    ///
    /// As for [`Blob::verify`].
    pub fn verify(self) -> Result<Verified> {
        let object = self.object()?;
        let mut least = None;
        for (role, component) in &object.components {
            let proved = self.unsized_blob(role, component).verify()?;
            least = Some(least.map_or(proved, |least: Verified| least.min(proved)));
        }
        Ok(least.unwrap_or(Verified::NoDigest))
    }

    /// Reads a sparse matrix in compressed rows, and proves that its parts fit together. Format
    /// text: Part III, section 2.
    ///
    /// # Errors
    ///
    /// [`Error::WrongFormat`] where the object is not one; [`Error::Layout`] where an index is out of
    /// range or counts contradict each other; else as for [`Blob::bytes`].
    pub fn csr(self) -> Result<Csr> {
        let object = self.object()?;
        match object.format {
            Format::SparseCsr => {
                let [values, indices, indptr] = self.parts(&object, &sparse::CSR_ROLES)?;
                Csr::new(object.shape, values, indices, indptr)
            }
            Format::InlineCsr => {
                let data = self.required(&object, &Role::Data)?;
                sparse::inline_csr(object.shape, &data)
            }
            found => return Err(self.wrong_format(found, "sparse_csr")),
        }
        .map_err(|error| self.layout(error))
    }

    /// Reads a sparse tensor as a list of coordinates, and proves that its parts fit together.
    /// Format text: Part III, section 3.
    ///
    /// # Errors
    ///
    /// As for [`csr`](Self::csr).
    pub fn coo(self) -> Result<Coo> {
        let object = self.object()?;
        match object.format {
            Format::SparseCoo => {
                let [values, coords] = self.parts(&object, &sparse::COO_ROLES)?;
                Coo::new(object.shape, values, coords)
            }
            Format::InlineCoo => {
                let data = self.required(&object, &Role::Data)?;
                sparse::inline_coo(object.shape, &data)
            }
            found => return Err(self.wrong_format(found, "sparse_coo")),
        }
        .map_err(|error| self.layout(error))
    }

    /// Reads a group-quantized tensor, and proves that its parts have the sizes that its attributes
    /// name. Format text: Part III, section 4.
    ///
    /// # Errors
    ///
    /// As for [`csr`](Self::csr).
    pub fn quantized(self) -> Result<QuantizedGroup> {
        let object = self.object()?;
        if object.format != Format::QuantizedGroup {
            return Err(self.wrong_format(object.format, "quantized_group"));
        }
        let attributes = self.attributes()?.unwrap_or_default();
        let roles = [Role::PackedWeight, Role::Scales, Role::Zeros];
        let [packed_weight, scales, zeros] = self.parts(&object, &roles)?;
        QuantizedGroup::new(object.shape, &attributes, packed_weight, scales, zeros)
            .map_err(|error| self.layout(error))
    }

    /// Returns handles on all components, in the order of the manifest.
    ///
    /// # Errors
    ///
    /// Where the sizes that the components must have contradict each other or cannot be told.
    pub fn blobs(self) -> Result<Vec<Blob<'a>>> {
        let object = self.object()?;
        let blob = |(role, component): &(Role, Component)| self.blob_of(&object, role, component);
        object.components.iter().map(blob).collect()
    }

    /// Returns a handle on the component of a role; `None` where there is none.
    ///
    /// # Errors
    ///
    /// As for [`blobs`](Self::blobs).
    pub fn blob(self, role: &Role) -> Result<Option<Blob<'a>>> {
        let object = self.object()?;
        object.component(role).map(|component| self.blob_of(&object, role, component)).transpose()
    }

    pub(crate) const fn reader(self) -> &'a Reader {
        self.reader
    }

    /// Returns the file, in which its [extent](Self::extent) counts: of a dense tensor in a shard, that
    /// shard, where it was found.
    #[must_use]
    pub fn source(self) -> &'a Source {
        let object = self.object().ok().filter(|object| object.format == Format::Dense);
        let data = object.and_then(|object| object.component(&Role::Data)?.shard.clone());
        let shard = data.and_then(|shard| self.reader.shard(&shard));
        shard.unwrap_or_else(|| self.reader.source())
    }

    /// Returns a handle on a component without asking how long its object needs it to be.
    pub(crate) fn unsized_blob(self, role: &Role, component: &Component) -> Blob<'a> {
        let len = self.unconstrained(component);
        Blob::new(self.reader, self.name(), role.clone(), component.clone(), len)
    }

    pub(crate) fn blob_of(
        self,
        object: &Object,
        role: &Role,
        component: &Component,
    ) -> Result<Blob<'a>> {
        let len = self.len_of(object, role, component)?;
        Ok(Blob::new(self.reader, self.name(), role.clone(), component.clone(), len))
    }

    /// Returns a handle on a component that the format requires.
    pub(crate) fn required(self, object: &Object, role: &Role) -> Result<Blob<'a>> {
        let component = object.component(role).ok_or_else(|| Error::MissingComponent {
            object: self.name().to_owned(),
            format: object.format.clone(),
            role: role.clone(),
        })?;
        self.blob_of(object, role, component)
    }

    /// Returns how many elements of a sparse object are stored, or `None` where only decoding would
    /// tell: then the parts are compared once they are decoded.
    fn stored_elements(self, object: &Object) -> Option<u64> {
        [Role::Values, Role::Indices, Role::Coords].into_iter().find_map(|role| {
            let component = object.component(&role)?;
            let Len::Exactly(len) = self.unconstrained(component) else { return None };
            let width = component.element_type()?.width()?;
            let numbers = if role == Role::Coords { object.shape.rank() as u64 } else { 1 };
            // A scalar has no coordinates, so these say nothing.
            len.checked_div(width.checked_mul(numbers)?)
        })
    }

    fn len_of(self, object: &Object, role: &Role, component: &Component) -> Result<Len> {
        let needed = match (&object.format, role) {
            (Format::Dense, Role::Data) => {
                component.elements().map(|elements| object.byte_len(elements)).transpose()?
            }
            (Format::SparseCsr, Role::Indptr) => {
                let rows = object.shape.dims().first().copied().unwrap_or_default();
                bytes_of(component, rows.checked_add(1))
            }
            (Format::SparseCsr, Role::Indices | Role::Values)
            | (Format::SparseCoo, Role::Values) => {
                bytes_of(component, self.stored_elements(object))
            }
            (Format::SparseCoo, Role::Coords) => {
                let rank = object.shape.rank() as u64;
                let elements = self.stored_elements(object);
                bytes_of(component, elements.and_then(|elements| elements.checked_mul(rank)))
            }
            _ => None,
        };
        Ok(match (needed, self.unconstrained(component)) {
            (Some(needed), _) => Len::Exactly(needed),
            (None, Len::AtMost(limit)) => {
                let useful = useful_bytes(object, role, component);
                useful.filter(|useful| *useful < limit).map_or(Len::AtMost(limit), Len::Within)
            }
            (None, len) => len,
        })
    }

    /// Returns what a component alone says about its length after decoding.
    fn unconstrained(self, component: &Component) -> Len {
        match (&component.encoding, component.uncompressed_length) {
            (Encoding::Raw, _) => Len::Exactly(component.length),
            (_, Some(length)) => Len::Exactly(length),
            (_, None) => Len::AtMost(self.reader.limits().decoded_bytes),
        }
    }

    /// Reads the components of some roles, each as a tensor of one dimension.
    fn parts<const N: usize>(self, object: &Object, roles: &[Role; N]) -> Result<[TensorBuf; N]> {
        // All are there before the first is decoded.
        let blobs = self.required_all(object, roles)?;
        let parts: Vec<TensorBuf> = blobs.iter().map(one_dimension).collect::<Result<_>>()?;
        parts.try_into().map_err(|_| self.missing())
    }

    /// Returns handles on the components of some roles, which the format requires.
    pub(crate) fn required_all<const N: usize>(
        self,
        object: &Object,
        roles: &[Role; N],
    ) -> Result<[Blob<'a>; N]> {
        let blobs = roles.iter().map(|role| self.required(object, role));
        blobs.collect::<Result<Vec<_>>>()?.try_into().map_err(|_| self.missing())
    }

    /// Never met: one part comes out for each role.
    fn missing(self) -> Error {
        self.layout("parts are missing".to_owned().into())
    }

    fn main_role(self, object: &Object) -> Result<Role> {
        match &object.format {
            Format::Dense | Format::InlineCsr | Format::InlineCoo => Ok(Role::Data),
            Format::SparseCsr | Format::SparseCoo => Ok(Role::Values),
            Format::QuantizedGroup => Ok(Role::PackedWeight),
            Format::QuantGroup | Format::Mx => Ok(Role::Data),
            Format::Other(_) => Err(self.wrong_format(object.format.clone(), "a known one")),
        }
    }

    fn wrong_format(self, found: Format, expected: &'static str) -> Error {
        Error::WrongFormat { object: self.name().to_owned(), found, expected }
    }

    fn layout(self, error: LayoutError) -> Error {
        error.of(self.name())
    }
}

fn bytes_of(component: &Component, elements: Option<u64>) -> Option<u64> {
    let dtype = component.element_type()?;
    dtype.byte_len(elements?)
}

/// Returns how many bytes a part of a sparse tensor can have use for, where its shape tells.
fn useful_bytes(object: &Object, role: &Role, component: &Component) -> Option<u64> {
    let numbers = match (&object.format, role) {
        (Format::SparseCsr, Role::Values | Role::Indices) | (Format::SparseCoo, Role::Values) => 1,
        (Format::SparseCoo, Role::Coords) => object.shape.rank() as u64,
        _ => return None,
    };
    let elements = object.elements().ok()?.max(REPEATED);
    bytes_of(component, elements.checked_mul(numbers))
}

/// Reads a component as a tensor of one dimension.
pub(crate) fn one_dimension(blob: &Blob<'_>) -> Result<TensorBuf> {
    let dtype = blob.element_type()?;
    let bytes = blob.bytes()?;
    let width = dtype.width().unwrap_or(1);
    let elements = (bytes.len() as u64).checked_div(width).unwrap_or_default();
    Ok(TensorBuf::new(dtype, [elements], bytes)?)
}

/// How many elements may be stored where the shape has fewer: a sparse tensor may list one several
/// times.
const REPEATED: u64 = 1 << 20;

const DENSE_OR_SPARSE: &str = "dense, sparse_csr or sparse_coo";
