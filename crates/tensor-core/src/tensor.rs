use std::fmt;

use bytemuck::{CheckedBitPattern, checked};
use bytes::Bytes;
use half::{bf16, f16};

use crate::{DType, Error, F8E4M3, F8E5M2, Result, Shape};

/// What a tensor is, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorInfo {
    /// The type of its elements.
    pub dtype: DType,
    /// Its dimensions, outermost first.
    pub shape: Shape,
}

impl TensorInfo {
    /// Returns the bytes that the tensor takes, row-major and without padding.
    ///
    /// # Errors
    ///
    /// As for [`Shape::byte_len`].
    pub fn byte_len(&self) -> Result<u64> {
        self.shape.byte_len(self.dtype)
    }

    fn check(&self, found: usize) -> Result<()> {
        let (expected, found) = (self.byte_len()?, found as u64);
        if expected == found {
            return Ok(());
        }
        let Self { shape, dtype } = self.clone();
        Err(Error::WrongLength { shape, dtype, expected, found })
    }
}

impl fmt::Display for TensorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dtype, self.shape)
    }
}

/// A tensor that owns its bytes, or a share of them: row-major, little-endian, without padding.
#[derive(Clone, Debug)]
pub struct Tensor {
    info: TensorInfo,
    bytes: Bytes,
}

impl Tensor {
    /// Joins an element type, a shape and the bytes that they need.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`], and what [`Shape::byte_len`] returns.
    pub fn new(dtype: DType, shape: impl Into<Shape>, bytes: impl Into<Bytes>) -> Result<Self> {
        let (info, bytes) = (TensorInfo { dtype, shape: shape.into() }, bytes.into());
        info.check(bytes.len())?;
        Ok(Self { info, bytes })
    }

    /// Makes a tensor from elements, which are copied.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] where the shape has another number of elements.
    pub fn from_slice<T: Element>(shape: impl Into<Shape>, elements: &[T]) -> Result<Self> {
        Self::new(T::DTYPE, shape, to_le_bytes(elements))
    }

    /// Returns the element type and the shape.
    #[must_use]
    pub const fn info(&self) -> &TensorInfo {
        &self.info
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns a view of the tensor.
    #[must_use]
    pub fn view(&self) -> TensorView<'_> {
        TensorView { info: self.info.clone(), bytes: &self.bytes }
    }
}

/// A tensor over borrowed bytes: row-major, little-endian, without padding.
#[derive(Clone, Debug)]
pub struct TensorView<'a> {
    info: TensorInfo,
    bytes: &'a [u8],
}

impl<'a> TensorView<'a> {
    /// Joins an element type, a shape and the bytes that they need.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`], and what [`Shape::byte_len`] returns.
    pub fn new(dtype: DType, shape: impl Into<Shape>, bytes: &'a [u8]) -> Result<Self> {
        let info = TensorInfo { dtype, shape: shape.into() };
        info.check(bytes.len())?;
        Ok(Self { info, bytes })
    }

    /// Returns the element type and the shape.
    #[must_use]
    pub const fn info(&self) -> &TensorInfo {
        &self.info
    }

    /// Returns the element type.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.info.dtype
    }

    /// Returns the shape.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.info.shape
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the elements in place.
    ///
    /// `None` where `T` is not the element type, where the bytes are not aligned for it, where the
    /// host is not little-endian and elements are wider than a byte, and where a bool is neither 0
    /// nor 1. [`to_vec`](Self::to_vec) works in all of these but the first and the last.
    #[must_use]
    pub fn as_slice<T: Element>(&self) -> Option<&'a [T]> {
        let in_order = cfg!(target_endian = "little") || size_of::<T>() == 1;
        if T::DTYPE != self.dtype() || !in_order {
            return None;
        }
        checked::try_cast_slice(self.bytes).ok()
    }

    /// Returns a copy of the elements.
    ///
    /// # Errors
    ///
    /// [`Error::WrongType`] where `T` is not the element type; [`Error::NotABool`];
    /// [`Error::OutOfMemory`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let found = self.dtype();
        if T::DTYPE != found {
            return Err(Error::WrongType { found, asked: T::DTYPE });
        }
        let mut elements = Vec::new();
        let count = self.bytes.len().checked_div(size_of::<T>()).unwrap_or_default();
        let out_of_memory = |_| Error::OutOfMemory { bytes: self.bytes.len() as u64 };
        elements.try_reserve_exact(count).map_err(out_of_memory)?;
        if let Some(slice) = self.as_slice::<T>() {
            elements.extend_from_slice(slice);
            return Ok(elements);
        }
        for (index, bytes) in (0..).zip(self.bytes.chunks_exact(size_of::<T>())) {
            let element = checked::try_pod_read_unaligned::<T>(bytes).ok();
            let not_a_bool =
                || Error::NotABool { index, found: bytes.first().copied().unwrap_or(0) };
            elements.push(element.ok_or_else(not_a_bool)?.from_le());
        }
        Ok(elements)
    }
}

/// A Rust type that is the element type of a tensor.
///
/// Sealed: `bool`, the integers from 8 to 64 bits, [`F8E4M3`], [`F8E5M2`], `half::f16`,
/// `half::bf16`, `f32`, `f64`, and `[f32; 2]` and `[f64; 2]` for complex numbers.
pub trait Element: sealed::Sealed + CheckedBitPattern + Send + Sync {
    /// The element type.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed: Sized {
        /// Turns a value whose bytes were read as they are stored into the host's order.
        #[expect(clippy::wrong_self_convention, reason = "named as the method of the integers")]
        fn from_le(self) -> Self;
        fn put_le(self, out: &mut Vec<u8>);
    }
}

macro_rules! elements {
    ($($type:ty => $dtype:ident, |$value:ident| $from_le:expr, $to_le:expr;)*) => {
        $(
            impl Element for $type {
                const DTYPE: DType = DType::$dtype;
            }

            impl sealed::Sealed for $type {
                fn from_le(self) -> Self {
                    let $value = self;
                    $from_le
                }

                fn put_le(self, out: &mut Vec<u8>) {
                    let $value = self;
                    out.extend_from_slice(&$to_le);
                }
            }
        )*
    };
}

elements! {
    bool => Bool, |x| x, [u8::from(x)];
    i8 => I8, |x| x, x.to_le_bytes();
    i16 => I16, |x| Self::from_le(x), x.to_le_bytes();
    i32 => I32, |x| Self::from_le(x), x.to_le_bytes();
    i64 => I64, |x| Self::from_le(x), x.to_le_bytes();
    u8 => U8, |x| x, x.to_le_bytes();
    u16 => U16, |x| Self::from_le(x), x.to_le_bytes();
    u32 => U32, |x| Self::from_le(x), x.to_le_bytes();
    u64 => U64, |x| Self::from_le(x), x.to_le_bytes();
    F8E4M3 => F8E4M3, |x| x, [x.to_bits()];
    F8E5M2 => F8E5M2, |x| x, [x.to_bits()];
    f16 => F16, |x| Self::from_bits(u16::from_le(x.to_bits())), x.to_le_bytes();
    bf16 => BF16, |x| Self::from_bits(u16::from_le(x.to_bits())), x.to_le_bytes();
    f32 => F32, |x| Self::from_bits(u32::from_le(x.to_bits())), x.to_le_bytes();
    f64 => F64, |x| Self::from_bits(u64::from_le(x.to_bits())), x.to_le_bytes();
    [f32; 2] => C64, |x| x.map(sealed::Sealed::from_le), x.map(f32::to_le_bytes).concat();
    [f64; 2] => C128, |x| x.map(sealed::Sealed::from_le), x.map(f64::to_le_bytes).concat();
}

/// Returns the bytes of elements as tensors store them: little-endian, one after another.
fn to_le_bytes<T: Element>(elements: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(elements));
    for &element in elements {
        element.put_le(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AlignedBuf;

    fn aligned(bytes: &[u8]) -> AlignedBuf {
        let mut buffer = AlignedBuf::new();
        buffer.extend_from_slice(bytes).unwrap();
        buffer
    }

    #[test]
    fn length_must_fit_the_shape() {
        let error = TensorView::new(DType::F32, [2, 3], &[0; 23]).unwrap_err();
        assert_eq!(error.to_string(), "shape [2, 3] of f32 needs 24 bytes, but 23 are there");
    }

    #[test]
    fn every_type_reads_back() {
        fn check<T: Element + PartialEq + fmt::Debug>(elements: &[T]) {
            let tensor = Tensor::from_slice([elements.len() as u64], elements).unwrap();
            assert_eq!(tensor.view().to_vec::<T>().unwrap(), elements);
            let buffer = aligned(tensor.bytes());
            let view = TensorView::new(T::DTYPE, tensor.info().shape.clone(), &buffer).unwrap();
            assert_eq!(view.as_slice::<T>().unwrap(), elements);
        }
        check(&[true, false]);
        check(&[i8::MIN, 3]);
        check(&[i16::MIN, 3]);
        check(&[i32::MIN, 3]);
        check(&[i64::MIN, 3]);
        check(&[u8::MAX, 3]);
        check(&[u16::MAX, 3]);
        check(&[u32::MAX, 3]);
        check(&[u64::MAX, 3]);
        check(&[F8E4M3::from_f32(1.5), F8E4M3::from_f32(-448.0)]);
        check(&[F8E5M2::from_f32(1.5), F8E5M2::from_f32(-2.0)]);
        check(&[f16::from_f32(1.5), f16::MIN]);
        check(&[bf16::from_f32(1.5), bf16::MIN]);
        check(&[1.5_f32, f32::MIN]);
        check(&[1.5_f64, f64::MIN]);
        check(&[[1.5_f32, -2.0]]);
        check(&[[1.5_f64, -2.0]]);
    }

    #[test]
    fn misaligned_bytes_are_copied() {
        let buffer = aligned(&[9, 1, 0, 0, 0, 2, 0, 0, 0]);
        let view = TensorView::new(DType::U32, [2], &buffer[1..]).unwrap();
        assert_eq!(view.as_slice::<u32>(), None);
        assert_eq!(view.to_vec::<u32>().unwrap(), [1, 2]);
    }

    #[test]
    fn bools_are_checked() {
        let view = TensorView::new(DType::Bool, [3], &[1, 0, 2]).unwrap();
        assert_eq!(view.as_slice::<bool>(), None);
        let error = view.to_vec::<bool>().unwrap_err();
        assert_eq!(error.to_string(), "bool at element 2 is 2, expected 0 or 1");
    }

    #[test]
    fn another_type_is_refused() {
        let view = TensorView::new(DType::F32, [1], &[0; 4]).unwrap();
        assert_eq!(view.as_slice::<u32>(), None);
        let error = view.to_vec::<u32>().unwrap_err();
        assert_eq!(error.to_string(), "elements are f32, not u32");
    }

    #[test]
    fn huge_shapes_without_elements_need_no_bytes() {
        let view = TensorView::new(DType::F64, [1 << 40, 0, 1 << 20], &[]).unwrap();
        assert_eq!(view.to_vec::<f64>().unwrap(), [0.0; 0]);
    }
}
