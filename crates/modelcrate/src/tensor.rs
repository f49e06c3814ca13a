use std::borrow::Cow;

use tensor_core::{TensorBuf, TensorInfo};

use crate::{error::Result, formats::each};

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
    /// One of a zTensor file.
    #[cfg(feature = "ztensor")]
    ZTensor(ztensor::Tensor<'a>),
    /// No tensor: this build reads no format.
    #[cfg(not(any(
        feature = "carton",
        feature = "circle",
        feature = "ptl",
        feature = "rten",
        feature = "ztensor"
    )))]
    #[doc(hidden)]
    None(&'a std::convert::Infallible),
}

impl<'a> AnyTensor<'a> {
    /// Returns its name; `None` where it has none.
    #[must_use]
    pub fn name(self) -> Option<Cow<'a, str>> {
        each!(AnyTensor: self, format, tensor => format::name(tensor))
    }

    /// Returns its element type and shape.
    ///
    /// # Errors
    ///
    /// Where they cannot be told, or its elements are not numbers.
    pub fn info(self) -> Result<TensorInfo> {
        each!(AnyTensor: self, format, tensor => format::info(tensor))
    }

    /// Reads its elements, decoded and in order, into a buffer of exactly their length in bytes.
    ///
    /// # Errors
    ///
    /// As for [`info`](Self::info); where the elements cannot be read.
    pub fn read_into(self, buffer: &mut [u8]) -> Result<()> {
        each!(AnyTensor: self, format, tensor => Ok(tensor.read_into(buffer)?))
    }

    /// Reads its elements, decoded and in order.
    ///
    /// # Errors
    ///
    /// As for [`read_into`](Self::read_into).
    pub fn read(self) -> Result<TensorBuf> {
        each!(AnyTensor: self, format, tensor => format::read(tensor))
    }
}
