//! Element types and tensors of the crate `safetensors`.

use ::safetensors::{Dtype, tensor::TensorView as Stored};

use crate::{DType, Error, Result, Shape, TensorBuf, TensorView};

impl DType {
    /// Returns the element type of safetensors; `None` where it has none: 4-bit integers, `c128`
    /// and text.
    #[must_use]
    pub const fn to_safetensors(self) -> Option<Dtype> {
        Some(match self {
            Self::Bool => Dtype::BOOL,
            Self::I8 => Dtype::I8,
            Self::I16 => Dtype::I16,
            Self::I32 => Dtype::I32,
            Self::I64 => Dtype::I64,
            Self::U8 => Dtype::U8,
            Self::U16 => Dtype::U16,
            Self::U32 => Dtype::U32,
            Self::U64 => Dtype::U64,
            Self::F8E4M3 => Dtype::F8_E4M3,
            Self::F8E5M2 => Dtype::F8_E5M2,
            Self::F16 => Dtype::F16,
            Self::BF16 => Dtype::BF16,
            Self::F32 => Dtype::F32,
            Self::F64 => Dtype::F64,
            Self::C64 => Dtype::C64,
            Self::I4 | Self::U4 | Self::C128 | Self::Str => return None,
        })
    }

    /// Returns the element type that safetensors names; `None` where this crate has none: floats
    /// of 4 and 6 bits, scales, and the FNUZ floats.
    #[must_use]
    pub fn from_safetensors(dtype: Dtype) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.to_safetensors() == Some(dtype))
    }
}

impl<'a> TensorView<'a> {
    /// Returns the tensor as `safetensors::serialize` takes it; nothing is copied but the shape.
    ///
    /// # Errors
    ///
    /// [`Error::Unrepresentable`] where safetensors has no such element type;
    /// [`Error::DimensionTooLarge`].
    pub fn to_safetensors(&self) -> Result<Stored<'a>> {
        let dtype = self.dtype();
        let unrepresentable = Error::Unrepresentable { dtype, library: "safetensors" };
        let stored = dtype.to_safetensors().ok_or(unrepresentable)?;
        let dims = Vec::<usize>::try_from(self.shape())?;
        let view = Stored::new(stored, dims, self.bytes());
        view.map_err(|_| Error::DimensionTooLarge { shape: self.shape().clone() })
    }

    /// Returns a view of a tensor in a safetensors file; nothing is copied but the shape.
    ///
    /// `None` where this crate has no such element type.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn from_safetensors(stored: &Stored<'a>) -> Result<Option<Self>> {
        let dtype = DType::from_safetensors(stored.dtype());
        dtype.map(|dtype| Self::new(dtype, Shape::from(stored.shape()), stored.data())).transpose()
    }
}

impl TensorBuf {
    /// Returns the tensor as `safetensors::serialize` takes it; nothing is copied but the shape.
    ///
    /// # Errors
    ///
    /// As for [`TensorView::to_safetensors`].
    pub fn to_safetensors(&self) -> Result<Stored<'_>> {
        self.view().to_safetensors()
    }
}

#[cfg(test)]
mod tests {
    use ::safetensors::{SafeTensors, serialize};

    use super::*;

    #[test]
    fn names_are_those_of_safetensors() {
        for dtype in DType::ALL {
            if let Some(stored) = dtype.to_safetensors() {
                assert_eq!(stored.to_string().parse(), Ok(dtype));
                assert_eq!(DType::from_safetensors(stored), Some(dtype));
                assert_eq!(stored.bitsize() as u64, u64::from(dtype.bits().unwrap()));
            }
        }
        assert_eq!(DType::from_safetensors(Dtype::F4), None);
    }

    #[test]
    fn there_and_back() {
        let tensor = TensorBuf::from_slice([2, 2], &[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
        let file = serialize([("w", tensor.to_safetensors().unwrap())], None).unwrap();
        let stored = SafeTensors::deserialize(&file).unwrap();
        let view = TensorView::from_safetensors(&stored.tensor("w").unwrap()).unwrap().unwrap();
        assert_eq!((view.info(), view.bytes()), (tensor.info(), &tensor.bytes()[..]));
    }

    #[test]
    fn what_safetensors_cannot_hold() {
        let tensor = TensorBuf::from_slice([1], &[[1.0_f64, 0.0]]).unwrap();
        let error = tensor.to_safetensors().unwrap_err();
        assert_eq!(error.to_string(), "elements are c128, which safetensors does not have");
    }
}
