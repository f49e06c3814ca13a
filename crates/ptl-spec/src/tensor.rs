//! A handle on a tensor of a model file.

use bytes::Bytes;
use tensor_core::{AlignedBuf, Extent, Shape, Tensor as Elements, TensorInfo};

use crate::{
    Place, Quantization, Reader, Result, ScalarType, TensorFault,
    error::Error,
    module::stored::{StorageId, Stored},
    read::Holder,
};

/// A handle on a tensor: nothing of its data was read.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    reader: &'a Reader,
    stored: &'a Stored,
}

impl<'a> Tensor<'a> {
    pub(crate) const fn new(reader: &'a Reader, stored: &'a Stored) -> Self {
        Self { reader, stored }
    }

    /// Returns where it is in its part of the model: attributes by name, items by number, such as
    /// `features.0.weight`.
    #[must_use]
    pub fn path(self) -> &'a str {
        &self.stored.path
    }

    /// Returns the name that [`Reader::tensor`] finds it by: its path, behind `constants/` or
    /// `bytecode/` where it is a constant of the code.
    #[must_use]
    pub fn name(self) -> String {
        format!("{}{}", self.stored.place.prefix(), self.stored.path)
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
    /// It is none of [`Reader::tensors`].
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

    /// Returns where its storage is in the file; `None` where that is compressed.
    ///
    /// # Errors
    ///
    /// As for [`storage_bytes`](Self::storage_bytes).
    pub fn storage_extent(self) -> Result<Option<Extent>> {
        match self.holder()? {
            Holder::Record(record) => match record.is_compressed() {
                true => Ok(None),
                false => record.extent().map(Some),
            },
            Holder::Extent(extent) => Ok(Some(extent)),
        }
    }

    /// Returns the bytes of its whole storage, which other tensors may share: a slice of the file
    /// where it is stored as it is and in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] where the storage is absent or has another length than it should;
    /// [`Error::Archive`] where it cannot be read.
    pub fn storage_bytes(self) -> Result<Bytes> {
        match self.holder()? {
            Holder::Record(record) => record.bytes(),
            Holder::Extent(extent) => Ok(self.reader.source().read(extent, "storage")?),
        }
    }

    /// Returns its elements, row-major, little-endian and without padding: a slice of the storage
    /// where they lie so there.
    ///
    /// # Errors
    ///
    /// As for [`storage_bytes`](Self::storage_bytes); [`Error::Tensor`] where it reaches out of its
    /// storage; [`Error::Core`] where it is over [`Limits::decoded_bytes`].
    ///
    /// [`Limits::decoded_bytes`]: tensor_core::Limits::decoded_bytes
    pub fn bytes(self) -> Result<Bytes> {
        self.check()?;
        let width = self.stored.scalar.width();
        let elements = self.stored.shape.elements()?;
        let found = elements.saturating_mul(width);
        let limit = self.reader.limits().decoded_bytes;
        if found > limit {
            let (what, field) = ("tensor in bytes", "decoded_bytes");
            return Err(tensor_core::Error::OverLimit { what, found, limit, field }.into());
        }
        if elements == 0 {
            return Ok(Bytes::new());
        }
        let storage = self.storage_bytes()?;
        let swapped = self.reader.is_big_endian() && self.stored.scalar.word() > 1;
        if !self.is_contiguous() || swapped {
            return Ok(self.gathered(&storage, swapped)?.into_bytes());
        }
        let start = usize::try_from(self.stored.offset.saturating_mul(width));
        let len = usize::try_from(found);
        let range =
            start.ok().zip(len.ok()).and_then(|(start, len)| Some(start..start.checked_add(len)?));
        // The check above proves that it lies inside.
        let range = range.filter(|range| range.end <= storage.len());
        Ok(range.map_or_else(Bytes::new, |range| storage.slice(range)))
    }

    /// Returns an owned tensor of its elements.
    ///
    /// # Errors
    ///
    /// As for [`info`](Self::info) and [`bytes`](Self::bytes).
    pub fn to_tensor(self) -> Result<Elements> {
        let info = self.info()?;
        Ok(Elements::new(info.dtype, info.shape, self.bytes()?)?)
    }

    /// Fills the caller's buffer with its elements.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes); [`tensor_core::Error::WrongBuffer`].
    pub fn read_into(self, buffer: &mut [u8]) -> Result<()> {
        let bytes = self.bytes()?;
        let (expected, found) = (bytes.len() as u64, buffer.len() as u64);
        if expected != found {
            let what = "tensor";
            return Err(tensor_core::Error::WrongBuffer { what, expected, found }.into());
        }
        buffer.copy_from_slice(&bytes);
        Ok(())
    }

    /// Proves that it lies in its storage, without reading that. PyTorch itself does not.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] with what is wrong.
    pub fn check(self) -> Result<()> {
        let len = match self.holder()? {
            Holder::Record(record) => record.size(),
            Holder::Extent(extent) => extent.len(),
        };
        let width = self.stored.scalar.width();
        let elements = match self.stored.storage {
            StorageId::Record { elements, .. } => elements,
            StorageId::Index(_) => len.checked_div(width).unwrap_or_default(),
        };
        if elements.checked_mul(width) != Some(len) {
            return Err(self.fault(TensorFault::Storage { found: len, elements, width }));
        }
        let rank = self.stored.shape.rank() as u64;
        let limit = self.reader.limits().rank;
        if rank > limit {
            let (what, found, field) = ("rank of a tensor", rank, "rank");
            return Err(tensor_core::Error::OverLimit { what, found, limit, field }.into());
        }
        if self.stored.shape.elements()? == 0 {
            return Ok(());
        }
        let reach = |reach: Option<u64>, (size, stride): (&u64, &u64)| {
            reach?.checked_add(size.saturating_sub(1).checked_mul(*stride)?)
        };
        let dims = self.stored.shape.dims().iter().zip(&self.stored.strides);
        match dims.fold(Some(self.stored.offset), reach) {
            Some(last) if last < elements => Ok(()),
            last => Err(self.fault(TensorFault::OutOfBounds { last, elements })),
        }
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

    /// Copies elements out of a storage, in which every index was proved to be.
    fn gathered(self, storage: &[u8], swapped: bool) -> Result<AlignedBuf> {
        let width = usize::try_from(self.stored.scalar.width()).unwrap_or(1);
        let dims = self.stored.shape.dims();
        let elements = usize::try_from(self.stored.shape.elements()?).unwrap_or(usize::MAX);
        let mut buffer = AlignedBuf::with_capacity(elements.saturating_mul(width))?;
        let mut index = vec![0_u64; dims.len()];
        let mut at = self.stored.offset;
        for _ in 0..elements {
            let start = usize::try_from(at).unwrap_or(usize::MAX).saturating_mul(width);
            let element = storage.get(start..start.saturating_add(width)).unwrap_or_default();
            if swapped {
                for word in element.chunks(self.stored.scalar.word()) {
                    for byte in word.iter().rev() {
                        buffer.extend_from_slice(&[*byte])?;
                    }
                }
            } else {
                buffer.extend_from_slice(element)?;
            }
            at = self.advance(&mut index, at);
        }
        Ok(buffer)
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

    fn holder(self) -> Result<Holder<'a>> {
        let holder = self.reader.storage(&self.stored.storage)?;
        holder.ok_or_else(|| {
            self.fault(TensorFault::NoStorage { storage: self.stored.storage.to_string() })
        })
    }

    fn fault(self, fault: TensorFault) -> Error {
        Error::Tensor { name: self.name(), fault }
    }
}
