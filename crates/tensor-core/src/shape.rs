use std::fmt;

use smallvec::SmallVec;

use crate::{DType, Error, Result};

/// The dimensions of a tensor, outermost first; an empty shape is a scalar of one element.
///
/// Up to four dimensions are held without an allocation.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Shape(SmallVec<[u64; 4]>);

impl Shape {
    /// The shape of a scalar: no dimensions, one element.
    #[must_use]
    pub fn scalar() -> Self {
        Self::default()
    }

    /// Returns the dimensions, outermost first, in elements.
    #[must_use]
    pub fn dims(&self) -> &[u64] {
        &self.0
    }

    /// Returns the number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Adds an innermost dimension.
    pub fn push(&mut self, dim: u64) {
        self.0.push(dim);
    }

    /// Returns the product of the dimensions.
    ///
    /// A dimension of 0 makes 0 elements, but does not hide the others: their product must fit as
    /// well, so that no stride computed from this shape can overflow.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeOverflow`] where the product of the dimensions other than 0 needs more than
    /// 64 bits.
    pub fn elements(&self) -> Result<u64> {
        let overflow = || Error::ShapeOverflow { shape: self.clone() };
        let mut product = 1_u64;
        let mut empty = false;
        for &dim in self.dims() {
            match dim {
                0 => empty = true,
                _ => product = product.checked_mul(dim).ok_or_else(overflow)?,
            }
        }
        Ok(if empty { 0 } else { product })
    }

    /// Returns the bytes that elements of `dtype` in this shape take, without padding.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeOverflow`] and [`Error::SizeOverflow`] where 64 bits do not suffice;
    /// [`Error::Unsized`] for text.
    pub fn byte_len(&self, dtype: DType) -> Result<u64> {
        let elements = self.elements()?;
        if dtype.bits().is_none() {
            return Err(Error::Unsized { dtype });
        }
        dtype.byte_len(elements).ok_or_else(|| Error::SizeOverflow { shape: self.clone(), dtype })
    }

    /// Returns the row-major strides, in elements: how far apart neighbours along each dimension
    /// lie.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeOverflow`] as for [`elements`](Self::elements).
    pub fn strides(&self) -> Result<Vec<u64>> {
        self.elements()?;
        let mut stride = 1_u64;
        let mut strides: Vec<u64> = Vec::with_capacity(self.rank());
        for &dim in self.dims().iter().rev() {
            strides.push(stride);
            stride = stride.saturating_mul(dim.max(1));
        }
        strides.reverse();
        Ok(strides)
    }
}

impl fmt::Display for Shape {
    /// Writes `[2, 3]`; a long shape is cut after 16 dimensions and its rank is named.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.dims(), f)
    }
}

pub(crate) fn show(dims: &[impl fmt::Display], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("[")?;
    for (index, dim) in dims.iter().take(SHOWN).enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(f, "{separator}{dim}")?;
    }
    if dims.len() > SHOWN {
        write!(f, ", … of rank {}", dims.len())?;
    }
    f.write_str("]")
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> From<[u64; N]> for Shape {
    fn from(dims: [u64; N]) -> Self {
        Self(SmallVec::from_slice(&dims))
    }
}

impl From<&[u64]> for Shape {
    fn from(dims: &[u64]) -> Self {
        Self(SmallVec::from_slice(dims))
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Self {
        dims.iter().map(|&dim| dim as u64).collect()
    }
}

impl TryFrom<&Shape> for Vec<usize> {
    type Error = Error;

    /// Returns the dimensions as libraries of arrays take them.
    ///
    /// # Errors
    ///
    /// [`Error::DimensionTooLarge`].
    fn try_from(shape: &Shape) -> Result<Self> {
        let dims = shape.dims().iter().map(|&dim| usize::try_from(dim));
        let dims = dims.collect::<Result<_, _>>();
        dims.map_err(|_| Error::DimensionTooLarge { shape: shape.clone() })
    }
}

impl From<Vec<u64>> for Shape {
    fn from(dims: Vec<u64>) -> Self {
        Self(SmallVec::from_vec(dims))
    }
}

impl FromIterator<u64> for Shape {
    fn from_iter<I: IntoIterator<Item = u64>>(dims: I) -> Self {
        Self(dims.into_iter().collect())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Shape {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.dims().serialize(serializer)
    }
}

const SHOWN: usize = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scalar_has_one_element() {
        assert_eq!(Shape::scalar().elements().unwrap(), 1);
        assert_eq!(Shape::scalar().to_string(), "[]");
    }

    #[test]
    fn zero_does_not_hide_an_overflow() {
        let error = Shape::from([1 << 63, 0, 2]).elements().unwrap_err();
        assert_eq!(
            error.to_string(),
            "shape [9223372036854775808, 0, 2] has more elements than 64 bits can count"
        );
        assert_eq!(Shape::from([1 << 40, 0, 1 << 20]).elements().unwrap(), 0);
    }

    #[test]
    fn wrapping_products_are_refused() {
        Shape::from([1 << 32, 1 << 32]).elements().unwrap_err();
        Shape::from([(1 << 63) + 2, 2]).elements().unwrap_err();
        let error = Shape::from([(1 << 62) + 4]).byte_len(DType::F32).unwrap_err();
        assert_eq!(
            error.to_string(),
            "shape [4611686018427387908] of f32 has more bytes than 64 bits can count"
        );
    }

    #[test]
    fn strides_are_row_major() {
        assert_eq!(Shape::from([2, 3, 4]).strides().unwrap(), [12, 4, 1]);
        assert_eq!(Shape::from([2, 0, 4]).strides().unwrap(), [4, 4, 1]);
    }

    #[test]
    fn long_shapes_are_cut_when_shown() {
        let shape: Shape = std::iter::repeat_n(1, 5000).collect();
        assert!(shape.to_string().ends_with("1, … of rank 5000]"), "{shape}");
    }

    #[test]
    fn shapes_of_arrays() {
        let shape = Shape::from(&[2_usize, 0, 4][..]);
        assert_eq!(shape, Shape::from([2, 0, 4]));
        assert_eq!(Vec::try_from(&shape).unwrap(), [2_usize, 0, 4]);
    }

    fn dimension() -> impl Strategy<Value = u64> {
        prop_oneof![0..5_u64, any::<u64>(), (0..64_u32).prop_map(|bit| 1 << bit)]
    }

    proptest! {
        #[test]
        fn elements_agree_with_u128(dims in prop::collection::vec(dimension(), 0..6)) {
            let mut product = 1_u128;
            for &dim in dims.iter().filter(|&&dim| dim != 0) {
                product = product.saturating_mul(u128::from(dim));
            }
            let empty = dims.contains(&0);
            let found = Shape::from(dims).elements().ok();
            let expected = u64::try_from(product).ok().map(|product| if empty { 0 } else { product });
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn bytes_agree_with_u128(dims in prop::collection::vec(dimension(), 0..4), which in 0..19_usize) {
            let dtype = DType::ALL[which];
            let shape = Shape::from(dims);
            let expected = shape.elements().ok().and_then(|elements| {
                let bits = u128::from(elements) * u128::from(dtype.bits().unwrap());
                u64::try_from(bits.div_ceil(8)).ok()
            });
            prop_assert_eq!(shape.byte_len(dtype).ok(), expected);
        }

        #[test]
        fn strides_are_products_of_inner_dimensions(dims in prop::collection::vec(1..9_u64, 0..6)) {
            let strides = Shape::from(dims.as_slice()).strides().unwrap();
            for (index, stride) in strides.into_iter().enumerate() {
                prop_assert_eq!(stride, dims[index + 1..].iter().product::<u64>());
            }
        }
    }
}
