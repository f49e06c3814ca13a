//! Tensors as arrays of the crate `ndarray`, and back.

use ::ndarray::{ArrayBase, ArrayD, ArrayViewD, Data, Dimension};

use crate::{Element, Error, Result, TensorBuf, TensorView};

impl TensorBuf {
    /// Returns the elements in place, as an array.
    ///
    /// # Errors
    ///
    /// As for [`as_slice`](Self::as_slice); [`Error::DimensionTooLarge`].
    ///
    /// # Examples
    ///
    /// ```
    /// let tensor = tensor_core::TensorBuf::from_vec([2, 2], vec![1_i32, 2, 3, 4])?;
    /// assert_eq!(tensor.as_array::<i32>()?[[1, 0]], 3);
    /// # Ok::<(), tensor_core::Error>(())
    /// ```
    pub fn as_array<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        let dims = Vec::<usize>::try_from(self.shape())?;
        ArrayViewD::from_shape(dims, self.as_slice()?).map_err(|_| self.too_large())
    }

    /// Returns a copy of the elements as an array.
    ///
    /// # Errors
    ///
    /// As for [`to_vec`](Self::to_vec); [`Error::DimensionTooLarge`].
    pub fn to_array<T: Element>(&self) -> Result<ArrayD<T>> {
        let dims = Vec::<usize>::try_from(self.shape())?;
        ArrayD::from_shape_vec(dims, self.to_vec()?).map_err(|_| self.too_large())
    }

    /// Makes a tensor from an array, which is copied, in its logical order.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn from_array<T, S, D>(array: &ArrayBase<S, D>) -> Result<Self>
    where
        T: Element,
        S: Data<Elem = T>,
        D: Dimension,
    {
        match array.as_slice() {
            Some(elements) => Self::from_slice(array.shape(), elements),
            None => Self::from_vec(array.shape(), array.iter().copied().collect()),
        }
    }

    /// The elements are as many as the shape says: only the product of its dimensions other than 0
    /// can be more than an array may have.
    fn too_large(&self) -> Error {
        Error::DimensionTooLarge { shape: self.shape().clone() }
    }
}

impl<'a> TensorView<'a> {
    /// Returns the elements in place, as an array.
    ///
    /// # Errors
    ///
    /// As for [`as_slice`](Self::as_slice); [`Error::DimensionTooLarge`].
    pub fn as_array<T: Element>(&self) -> Result<ArrayViewD<'a, T>> {
        let dims = Vec::<usize>::try_from(self.shape())?;
        let array = ArrayViewD::from_shape(dims, self.as_slice()?);
        array.map_err(|_| Error::DimensionTooLarge { shape: self.shape().clone() })
    }
}

#[cfg(test)]
mod tests {
    use ::ndarray::{Array2, array};

    use super::*;

    #[test]
    fn there_and_back() {
        let array = array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let tensor = TensorBuf::from_array(&array).unwrap();
        assert_eq!(tensor.to_string(), "f32 [2, 3]");
        assert_eq!(tensor.as_array::<f32>().unwrap(), array.clone().into_dyn());
        assert_eq!(tensor.to_array::<f32>().unwrap(), array.into_dyn());
    }

    #[test]
    fn transposed_arrays_are_stored_in_their_logical_order() {
        let array = array![[1_u8, 2, 3], [4, 5, 6]];
        let tensor = TensorBuf::from_array(&array.t()).unwrap();
        assert_eq!(tensor.to_vec::<u8>().unwrap(), [1, 4, 2, 5, 3, 6]);
    }

    #[test]
    fn empty_arrays() {
        let tensor = TensorBuf::from_array(&Array2::<i64>::zeros([0, 7])).unwrap();
        assert_eq!(tensor.to_array::<i64>().unwrap().shape(), [0, 7]);
    }

    #[test]
    fn shapes_that_no_array_has() {
        let tensor = TensorBuf::from_slice::<u8>([1 << 40, 1 << 23, 0], &[]).unwrap();
        assert!(matches!(tensor.to_array::<u8>(), Err(Error::DimensionTooLarge { .. })));
    }
}
