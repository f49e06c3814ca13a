use bytes::Bytes;
use tensor_core::{AlignedBuf, Extent, Limit, Limits, Source, TensorBuf, TensorInfo, Verified};

use crate::{each::each, error::Result, weights};

/// A handle on a tensor of a file of any format; nothing is read before it is asked for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum AnyTensor<'a> {
    /// One of a carton.
    #[cfg(feature = "carton")]
    Carton(carton_format::Tensor<'a>),
    /// A constant of a Circle or TFLite model, which may be in an nnpackage.
    #[cfg(feature = "circle")]
    Circle(circle_format::Tensor<'a>),
    /// One of a PyTorch Live model.
    #[cfg(feature = "ptl")]
    Ptl(ptl_spec::Tensor<'a>),
    /// A constant of an RTen model.
    #[cfg(feature = "rten")]
    Rten(rten_format::Tensor<'a>),
    /// One of a safetensors or GGUF file.
    Weights(weights::Tensor<'a>),
    /// One of a zTensor file.
    #[cfg(feature = "ztensor")]
    ZTensor(ztensor::Tensor<'a>),
}

impl<'a> AnyTensor<'a> {
    /// Returns its name; `None` where it has none.
    #[must_use]
    #[allow(clippy::useless_conversion, reason = "some formats have an option already")]
    pub fn name(self) -> Option<&'a str> {
        each!(AnyTensor: self, tensor => Option::from(tensor.name()))
    }

    /// Returns its element type and shape.
    ///
    /// # Errors
    ///
    /// Where they cannot be told, or its elements are not those of one tensor.
    pub fn info(self) -> Result<TensorInfo> {
        each!(AnyTensor: self, tensor => Ok(tensor.info()?))
    }

    /// Returns where its elements are in the file, where they stand there as they are.
    ///
    /// # Errors
    ///
    /// Where their place cannot be told, or is not in the file.
    pub fn extent(self) -> Result<Option<Extent>> {
        each!(AnyTensor: self, tensor => Ok(tensor.extent()?))
    }

    /// Returns where its bytes stand as [`NamedTensor::bytes`](crate::NamedTensor::bytes) gives them
    /// out; `None` also where reading compares them with a digest.
    pub(crate) fn place(self) -> Option<(&'a Source, Extent)> {
        let (source, extent): (&Source, Option<Extent>) = match self {
            Self::Weights(tensor) => return tensor.place(),
            #[cfg(feature = "circle")]
            Self::Circle(tensor) => (tensor.source(), tensor.extent().ok()?),
            #[cfg(feature = "rten")]
            Self::Rten(tensor) => (tensor.source(), tensor.extent().ok()?),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(tensor) if !has_digest(tensor) => {
                (tensor.source(), tensor.extent().ok()?)
            }
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => return None,
        };
        Some((source, extent?))
    }

    /// Returns its elements as bytes, little-endian and in order; without a copy where they stand in
    /// memory as they are.
    ///
    /// # Errors
    ///
    /// Where they cannot be read or decoded.
    pub fn bytes(self) -> Result<Bytes> {
        each!(AnyTensor: self, tensor => Ok(tensor.bytes()?))
    }

    /// Reads its elements, decoded and in order, into a buffer of exactly their length in bytes.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes); where the buffer has another length.
    pub fn read_into(self, buffer: &mut [u8]) -> Result<()> {
        each!(AnyTensor: self, tensor => Ok(tensor.read_into(buffer)?))
    }

    /// Reads its elements, decoded and in order.
    ///
    /// # Errors
    ///
    /// As for [`info`](Self::info) and [`bytes`](Self::bytes).
    pub fn read(self) -> Result<TensorBuf> {
        each!(AnyTensor: self, tensor => Ok(tensor.read()?))
    }

    /// Reads its elements into memory that nobody else has, on several threads where they are many:
    /// [`bytes`](Self::bytes), for who is going to change them. `None` where they do not stand in a file
    /// as they are: in memory already, encoded, or with a digest that is compared when they are read.
    ///
    /// # Errors
    ///
    /// Where they cannot be read.
    pub fn read_owned(self) -> Result<Option<AlignedBuf>> {
        let Some((source, extent)) = self.place().filter(|(source, _)| source.as_slice().is_none())
        else {
            return Ok(None);
        };
        let limits = match self {
            Self::Weights(tensor) => *tensor.reader().limits(),
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => Limits::default(),
        };
        limits.check(Limit::DecodedBytes, "bytes of a tensor", extent.len())?;
        Ok(Some(source.read_owned(extent, "tensor data")?))
    }

    /// Compares its bytes with the digest that the file holds for them, and tells what that proved.
    ///
    /// # Errors
    ///
    /// Where they cannot be read, or have another digest.
    pub fn verify(self) -> Result<Verified> {
        each!(AnyTensor: self, tensor => Ok(tensor.verify()?))
    }
}

#[cfg(feature = "ztensor")]
fn has_digest(tensor: ztensor::Tensor<'_>) -> bool {
    tensor
        .object()
        .is_ok_and(|object| object.components.iter().any(|(_, one)| one.digest.is_some()))
}
