//! A handle on a tensor of a model file.

use std::io::{self, Read as _};

use bytes::Bytes;
use tensor_core::{
    AlignedBuf, Error as Core, Extent, Limit, Shape, SourceReader, TensorBuf, TensorInfo, Verified,
};

use crate::{
    Error, File, Place, Quantization, Reader, Result, ScalarType, TensorFault,
    file::FileReader,
    module::stored::{StorageId, Stored},
};

/// A handle on a tensor: nothing of its data was read.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    reader: &'a Reader,
    stored: &'a Stored,
}

impl Reader {
    /// Returns handles on all tensors: those of the state, then those of the constants. Of a sparse
    /// tensor there are its parts, such as `name.indices` and `name.values`.
    ///
    /// # Errors
    ///
    /// [`Error::Pickle`], [`Error::FlatBuffer`] and [`Error::Module`] where what lists them is
    /// malformed.
    pub fn tensors(&self) -> Result<impl ExactSizeIterator<Item = Tensor<'_>>> {
        let stored = &self.listing()?.tensors;
        Ok(stored.iter().map(|stored| Tensor::new(self, stored)))
    }

    /// Returns a handle on a tensor by its [name](Tensor::name), the first one where several have
    /// it; `None` where there is none.
    ///
    /// # Errors
    ///
    /// As for [`tensors`](Self::tensors).
    pub fn tensor(&self, name: &str) -> Result<Option<Tensor<'_>>> {
        Ok(self.listing()?.find(name).map(|stored| Tensor::new(self, stored)))
    }
}

impl<'a> Tensor<'a> {
    pub(crate) const fn new(reader: &'a Reader, stored: &'a Stored) -> Self {
        Self { reader, stored }
    }

    /// Returns the name that [`Reader::tensor`] finds it by: its path, behind `constants/` or
    /// `bytecode/` where it is a constant of the code.
    #[must_use]
    pub fn name(self) -> &'a str {
        &self.stored.name
    }

    /// Returns where it is in its part of the model: attributes by name, items by number, such as
    /// `features.0.weight`.
    #[must_use]
    pub fn path(self) -> &'a str {
        let name = self.name();
        name.strip_prefix(self.place().prefix()).unwrap_or(name)
    }

    /// Returns which part of the model it is in.
    #[must_use]
    pub const fn place(self) -> Place {
        self.stored.place
    }

    /// Returns the element type as the file has it.
    #[must_use]
    pub const fn scalar_type(self) -> ScalarType {
        self.stored.scalar
    }

    /// Returns the dimensions, outermost first.
    #[must_use]
    pub const fn shape(self) -> &'a Shape {
        &self.stored.shape
    }

    /// Returns how far apart neighbours along each dimension lie in the storage, in elements.
    #[must_use]
    pub fn strides(self) -> &'a [u64] {
        &self.stored.strides
    }

    /// Returns where the first element is in the storage, in elements.
    #[must_use]
    pub const fn storage_offset(self) -> u64 {
        self.stored.offset
    }

    /// Returns whether training would have changed it.
    #[must_use]
    pub const fn requires_grad(self) -> bool {
        self.stored.requires_grad
    }

    /// Returns how its integers stand for numbers; `None` where it is not quantized.
    #[must_use]
    pub const fn quantization(self) -> Option<&'a Quantization> {
        self.stored.quantization.as_ref()
    }

    /// Returns the scales of its slices along the axis of [`Quantization::PerChannel`], one number
    /// for each; `None` for any other tensor.
    ///
    /// It is not one of [`Reader::tensors`].
    #[must_use]
    pub fn scales(self) -> Option<Self> {
        let channels = self.stored.channels.as_deref()?;
        Some(Self::new(self.reader, &channels.scales))
    }

    /// Returns the zero points of its slices, as [`scales`](Self::scales) does.
    #[must_use]
    pub fn zero_points(self) -> Option<Self> {
        let channels = self.stored.channels.as_deref()?;
        Some(Self::new(self.reader, &channels.zero_points))
    }

    /// Returns the name of the record that holds its storage, without the root folder; `None` in a
    /// FlatBuffer file.
    #[must_use]
    pub fn record(self) -> Option<&'a str> {
        match &self.stored.storage {
            StorageId::Record { name, .. } => Some(name),
            StorageId::Index(_) => None,
        }
    }

    /// Returns the number of its storage in a FlatBuffer file; `None` in a ZIP file.
    #[must_use]
    pub const fn storage_index(self) -> Option<u32> {
        match self.stored.storage {
            StorageId::Index(index) => Some(index),
            StorageId::Record { .. } => None,
        }
    }

    /// Returns the element type and the shape.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] for complex halves, which `tensor_core` does not have.
    pub fn info(self) -> Result<TensorInfo> {
        let scalar = self.stored.scalar;
        let dtype = scalar.dtype();
        let dtype = dtype.ok_or_else(|| self.fault(TensorFault::Scalar { found: scalar }))?;
        Ok(TensorInfo { dtype, shape: self.stored.shape.clone() })
    }

    /// Returns where its elements are in the file; `None` where they do not lie there as
    /// [`bytes`](Self::bytes) gives them: compressed, with strides, or in another order of bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] where it does not lie in its storage, which PyTorch itself does not look
    /// at.
    pub fn extent(self) -> Result<Option<Extent>> {
        let storage = self.check()?;
        if storage.is_compressed() || !self.is_as_stored() {
            return Ok(None);
        }
        let width = self.stored.scalar.width();
        let len = self.stored.shape.elements()?.saturating_mul(width);
        let offset = if len == 0 { 0 } else { self.stored.offset.saturating_mul(width) };
        let start = storage.stored_extent()?.offset().saturating_add(offset);
        Ok(Some(Extent::new(start, len)?))
    }

    /// Returns a stream of what [`bytes`](Self::bytes) returns, in memory that does not grow with its
    /// length; `None` where it has no [extent](Self::extent). Where checksums are compared, that of its
    /// storage is before.
    ///
    /// # Errors
    ///
    /// As for [`extent`](Self::extent) and [`verify`](Self::verify).
    pub fn stream(self) -> Result<Option<SourceReader>> {
        let Some(extent) = self.extent()? else { return Ok(None) };
        let storage = self.check()?;
        if storage.is_checked() {
            storage.verify()?;
        }
        Ok(Some(self.reader.source().stream(extent, "tensor")?))
    }

    /// Returns where its whole storage is in the file, which other tensors may share; `None` where
    /// that is compressed.
    ///
    /// # Errors
    ///
    /// As for [`storage_bytes`](Self::storage_bytes).
    pub fn storage_extent(self) -> Result<Option<Extent>> {
        let storage = self.storage()?;
        if storage.is_compressed() {
            return Ok(None);
        }
        storage.stored_extent().map(Some)
    }

    /// Returns the bytes of its whole storage, which other tensors may share: a slice of the file
    /// where it is stored as it is and in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] where the storage is absent; [`Error::Archive`] where it cannot be read.
    pub fn storage_bytes(self) -> Result<Bytes> {
        self.storage()?.bytes()
    }

    /// Returns its elements, row-major, little-endian and without padding: a slice of the file where
    /// they lie so there and are in memory.
    ///
    /// # Errors
    ///
    /// As for [`storage_bytes`](Self::storage_bytes); [`Error::Tensor`] where it reaches out of its
    /// storage; [`Error::Core`] where it is over [`Limits::decoded_bytes`], or has elements that are
    /// stored once and named again and again, and is so over [`Limits::expansion`].
    ///
    /// [`Limits::decoded_bytes`]: tensor_core::Limits::decoded_bytes
    /// [`Limits::expansion`]: tensor_core::Limits::expansion
    pub fn bytes(self) -> Result<Bytes> {
        let (storage, len) = self.checked()?;
        if len == 0 {
            return Ok(Bytes::new());
        }
        if let Some(extent) = self.direct(storage)? {
            return Ok(self.reader.source().read(extent, "tensor")?);
        }
        if self.is_as_stored() {
            let start = self.stored.offset.saturating_mul(self.stored.scalar.width());
            let bytes = storage.bytes()?;
            return Ok(Extent::new(start, len as u64)?.within(bytes.len() as u64, "tensor").map(
                |extent| {
                    let start = usize::try_from(extent.offset()).unwrap_or(usize::MAX);
                    bytes.slice(start..start.saturating_add(len))
                },
            )?);
        }
        let mut buffer = AlignedBuf::zeroed(len)?;
        self.gather(&storage.bytes()?, &mut buffer);
        Ok(buffer.into_bytes())
    }

    /// Fills the caller's buffer with its elements; of a tensor with strides, the storage is in
    /// memory meanwhile.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes); [`tensor_core::Error::WrongBuffer`].
    pub fn read_into(self, buffer: &mut [u8]) -> Result<()> {
        let (storage, len) = self.checked()?;
        if len != buffer.len() {
            let (what, expected, found) = ("tensor", len as u64, buffer.len() as u64);
            return Err(Core::WrongBuffer { what, expected, found }.into());
        }
        if len == 0 {
            return Ok(());
        }
        if let Some(extent) = self.direct(storage)? {
            return Ok(self.reader.source().read_into(extent, buffer, "tensor")?);
        }
        if !self.is_as_stored() {
            self.gather(&storage.bytes()?, buffer);
            return Ok(());
        }
        let before = self.stored.offset.saturating_mul(self.stored.scalar.width());
        let mut stream = storage.reader()?;
        let mut read = || {
            io::copy(&mut (&mut stream).take(before), &mut io::sink())?;
            stream.read_exact(buffer)?;
            // The end is where the checksum is compared.
            io::copy(&mut stream, &mut io::sink())
        };
        read().map(drop).map_err(FileReader::error)
    }

    /// Reads its elements.
    ///
    /// # Errors
    ///
    /// As for [`info`](Self::info) and [`bytes`](Self::bytes).
    pub fn read(self) -> Result<TensorBuf> {
        let info = self.info()?;
        Ok(TensorBuf::new(info.dtype, info.shape, self.bytes()?)?)
    }

    /// Proves that it lies in its storage, and that the storage has its checksum; a FlatBuffer has
    /// none.
    ///
    /// # Errors
    ///
    /// As for [`extent`](Self::extent) and [`File::verify`].
    pub fn verify(self) -> Result<Verified> {
        self.check()?.verify()
    }

    /// Tells whether elements lie in the storage one after another, row-major.
    #[must_use]
    pub fn is_contiguous(self) -> bool {
        let mut expected = 1_u64;
        let dims = self.stored.shape.dims().iter().zip(&self.stored.strides).rev();
        for (&size, &stride) in dims {
            if size != 1 && stride != expected {
                return false;
            }
            expected = expected.saturating_mul(size);
        }
        true
    }

    /// Proves that it lies in its storage, without reading that, and returns the storage.
    pub(crate) fn check(self) -> Result<File<'a>> {
        let storage = self.storage()?;
        let len = storage.size();
        let width = self.stored.scalar.width();
        let elements = match self.stored.storage {
            StorageId::Record { elements, .. } => elements,
            StorageId::Index(_) => len.checked_div(width).unwrap_or_default(),
        };
        if elements.checked_mul(width) != Some(len) {
            return Err(self.fault(TensorFault::Storage { found: len, elements, width }));
        }
        let rank = self.stored.shape.rank() as u64;
        self.reader.limits().check(Limit::Rank, "rank of a tensor", rank)?;
        if self.stored.shape.elements()? == 0 {
            return Ok(storage);
        }
        let reach = |reach: Option<u64>, (size, stride): (&u64, &u64)| {
            reach?.checked_add(size.saturating_sub(1).checked_mul(*stride)?)
        };
        let dims = self.stored.shape.dims().iter().zip(&self.stored.strides);
        match dims.fold(Some(self.stored.offset), reach) {
            Some(last) if last < elements => Ok(storage),
            last => Err(self.fault(TensorFault::OutOfBounds { last, elements })),
        }
    }

    /// Proves that it lies in its storage and may be read, and returns the storage and its bytes.
    fn checked(self) -> Result<(File<'a>, usize)> {
        let storage = self.check()?;
        let len = self.stored.shape.elements()?.saturating_mul(self.stored.scalar.width());
        let limits = self.reader.limits();
        limits.check(Limit::DecodedBytes, "tensor in bytes", len)?;
        let allowed = self.reader.source().len().saturating_mul(limits.expansion).max(FREE);
        if len > storage.size() && len > allowed {
            let (what, field) = ("tensor in bytes", Limit::Expansion.name());
            return Err(Core::OverLimit { what, found: len, limit: allowed, field }.into());
        }
        Ok((storage, usize::try_from(len).map_err(|_| Core::OutOfMemory { bytes: len })?))
    }

    /// Returns where its elements can be read without the rest of the storage.
    fn direct(self, storage: File<'_>) -> Result<Option<Extent>> {
        if storage.is_checked() { Ok(None) } else { self.extent() }
    }

    /// Tells whether its elements lie in the storage as they are read.
    fn is_as_stored(self) -> bool {
        self.is_contiguous() && !self.is_swapped()
    }

    fn is_swapped(self) -> bool {
        self.stored.scalar.word() > 1 && self.reader.body().is_big_endian()
    }

    /// Copies elements out of a storage, in which every index was proved to be.
    fn gather(self, storage: &[u8], buffer: &mut [u8]) {
        let width = usize::try_from(self.stored.scalar.width()).unwrap_or(1).max(1);
        let swapped = self.is_swapped();
        let mut index = vec![0_u64; self.stored.shape.rank()];
        let mut at = self.stored.offset;
        for target in buffer.chunks_exact_mut(width) {
            let start = usize::try_from(at).unwrap_or(usize::MAX).saturating_mul(width);
            let element = storage.get(start..start.saturating_add(width)).unwrap_or_default();
            // Of a storage that shrank meanwhile nothing is left.
            if element.len() == width {
                target.copy_from_slice(element);
            }
            if swapped {
                target.chunks_mut(self.stored.scalar.word()).for_each(<[u8]>::reverse);
            }
            at = self.advance(&mut index, at);
        }
    }

    /// Goes on to the next element, row-major; returns where it is in the storage.
    fn advance(self, index: &mut [u64], mut at: u64) -> u64 {
        let dims = self.stored.shape.dims().iter().zip(&self.stored.strides);
        for (index, (size, stride)) in index.iter_mut().zip(dims).rev() {
            *index = index.saturating_add(1);
            at = at.saturating_add(*stride);
            if *index < *size {
                break;
            }
            at = at.saturating_sub(index.saturating_mul(*stride));
            *index = 0;
        }
        at
    }

    fn storage(self) -> Result<File<'a>> {
        let storage = self.reader.body().storage(&self.stored.storage)?;
        storage.ok_or_else(|| {
            self.fault(TensorFault::NoStorage { storage: self.stored.storage.to_string() })
        })
    }

    fn fault(self, fault: TensorFault) -> Error {
        Error::Tensor { name: self.name().to_owned(), fault }
    }
}

/// What elements that are stored once may fill whatever the length of the file, in bytes.
const FREE: u64 = 16 << 20;
