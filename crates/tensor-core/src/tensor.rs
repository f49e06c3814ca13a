use std::{borrow::Cow, fmt};

use bytemuck::{CheckedBitPattern, NoUninit, checked};
use bytes::Bytes;
#[cfg(feature = "half")]
use half::{bf16, f16};

use crate::{
    AlignedBuf, DType, Error, F8E4M3, F8E5M2, Result, Shape,
    float16::{bf16_to_f32, f16_to_f32},
};

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
}

/// Proves that so many bytes are what a shape needs.
fn check(dtype: DType, shape: &Shape, found: usize) -> Result<()> {
    let (expected, found) = (shape.byte_len(dtype)?, found as u64);
    if expected == found {
        return Ok(());
    }
    Err(Error::WrongLength { shape: shape.clone(), dtype, expected, found })
}

impl fmt::Display for TensorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dtype, self.shape)
    }
}

/// A tensor that owns its bytes, or a share of them: row-major, little-endian, without padding.
///
/// Clones share the bytes.
///
/// # Examples
///
/// ```
/// use tensor_core::TensorBuf;
///
/// let tensor = TensorBuf::from_vec([2, 3], vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(tensor.to_string(), "f32 [2, 3]");
/// assert_eq!(tensor.as_slice::<f32>()?[4], 5.0);
/// assert_eq!(tensor.as_slice::<f64>().unwrap_err().to_string(), "elements are f32, not f64");
/// # Ok::<(), tensor_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TensorBuf {
    info: TensorInfo,
    bytes: Bytes,
}

impl TensorBuf {
    /// Joins an element type, a shape and the bytes that they need.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`], and what [`Shape::byte_len`] returns.
    pub fn new(dtype: DType, shape: impl Into<Shape>, bytes: impl Into<Bytes>) -> Result<Self> {
        let (shape, bytes) = (shape.into(), bytes.into());
        check(dtype, &shape, bytes.len())?;
        Ok(Self { info: TensorInfo { dtype, shape }, bytes })
    }

    /// Makes a tensor from elements, which are copied to memory that starts at a multiple of 64.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] where the shape has another number of elements;
    /// [`Error::OutOfMemory`].
    pub fn from_slice<T: Element>(shape: impl Into<Shape>, elements: &[T]) -> Result<Self> {
        let mut bytes = AlignedBuf::with_capacity(size_of_val(elements))?;
        if IN_ORDER {
            bytes.extend_from_slice(bytemuck::cast_slice(elements))?;
        } else {
            for &element in elements {
                bytes.extend_from_slice(bytemuck::bytes_of(&element.to_le()))?;
            }
        }
        Self::new(T::DTYPE, shape, bytes.into_bytes())
    }

    /// Makes a tensor from elements, whose memory it takes over; a host that is not little-endian
    /// turns them in place.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] where the shape has another number of elements.
    pub fn from_vec<T: Element>(shape: impl Into<Shape>, mut elements: Vec<T>) -> Result<Self> {
        if !IN_ORDER {
            elements.iter_mut().for_each(|element| *element = element.to_le());
        }
        Self::new(T::DTYPE, shape, Bytes::from_owner(Elements(elements)))
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
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Takes the bytes out.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Returns a view of the tensor.
    #[must_use]
    pub fn view(&self) -> TensorView<'_> {
        TensorView { info: self.info.clone(), bytes: &self.bytes }
    }

    /// Returns the elements in place; see [`TensorView::as_slice`].
    ///
    /// # Errors
    ///
    /// As for [`TensorView::as_slice`].
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        as_slice(&self.info, &self.bytes)
    }

    /// Returns the elements, in place where that can be; see [`TensorView::as_cow`].
    ///
    /// # Errors
    ///
    /// As for [`to_vec`](Self::to_vec).
    pub fn as_cow<T: Element>(&self) -> Result<Cow<'_, [T]>> {
        as_cow(&self.info, &self.bytes)
    }

    /// Returns a copy of the elements.
    ///
    /// # Errors
    ///
    /// [`Error::WrongType`] where `T` is not the element type; [`Error::NotABool`];
    /// [`Error::OutOfMemory`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        to_vec(&self.info, &self.bytes)
    }

    /// Returns the elements as `f32`, where all that their type can hold fits in it: floats of 8, 16
    /// and 32 bits, integers of 8 and 16.
    ///
    /// # Errors
    ///
    /// [`Error::WrongType`] for any other element type; [`Error::OutOfMemory`].
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        to_f32(&self.info, &self.bytes)
    }
}

impl fmt::Display for TensorBuf {
    /// Writes the element type and the shape.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info.fmt(f)
    }
}

/// Elements whose memory a [`Bytes`] takes over.
struct Elements<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for Elements<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
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
        let shape = shape.into();
        // Before the two are joined: reading both as one right after they were written would wait.
        check(dtype, &shape, bytes.len())?;
        Ok(Self { info: TensorInfo { dtype, shape }, bytes })
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
    /// Sources hand out aligned bytes where they read a file; in memory, and in a mapping, elements
    /// start where the file has them.
    ///
    /// # Errors
    ///
    /// [`Error::WrongType`] where `T` is not the element type; [`Error::Misaligned`] and
    /// [`Error::ByteOrder`], in which [`as_cow`](Self::as_cow) and [`to_vec`](Self::to_vec) copy;
    /// [`Error::NotABool`].
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        as_slice(&self.info, self.bytes)
    }

    /// Returns the elements, in place where alignment and byte order allow it, else as a copy.
    ///
    /// # Errors
    ///
    /// As for [`to_vec`](Self::to_vec).
    pub fn as_cow<T: Element>(&self) -> Result<Cow<'a, [T]>> {
        as_cow(&self.info, self.bytes)
    }

    /// Returns a copy of the elements.
    ///
    /// # Errors
    ///
    /// [`Error::WrongType`] where `T` is not the element type; [`Error::NotABool`];
    /// [`Error::OutOfMemory`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        to_vec(&self.info, self.bytes)
    }

    /// Returns the elements as `f32`, where all that their type can hold fits in it: floats of 8, 16
    /// and 32 bits, integers of 8 and 16.
    ///
    /// # Errors
    ///
    /// [`Error::WrongType`] for any other element type; [`Error::OutOfMemory`].
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        to_f32(&self.info, self.bytes)
    }
}

fn as_slice<'a, T: Element>(info: &TensorInfo, bytes: &'a [u8]) -> Result<&'a [T]> {
    let dtype = info.dtype;
    if T::DTYPE != dtype {
        return Err(Error::WrongType { found: dtype, asked: T::DTYPE });
    }
    if !IN_ORDER && size_of::<T>() > 1 {
        return Err(Error::ByteOrder { dtype });
    }
    checked::try_cast_slice(bytes).map_err(|error| match error {
        checked::CheckedCastError::InvalidBitPattern => not_a_bool(bytes),
        // The length fits, or the tensor would not have been made.
        checked::CheckedCastError::PodCastError(_) => {
            Error::Misaligned { dtype, needed: align_of::<T>() as u64 }
        }
    })
}

fn as_cow<'a, T: Element>(info: &TensorInfo, bytes: &'a [u8]) -> Result<Cow<'a, [T]>> {
    match as_slice(info, bytes) {
        Err(Error::Misaligned { .. } | Error::ByteOrder { .. }) => {
            to_vec(info, bytes).map(Cow::Owned)
        }
        slice => slice.map(Cow::Borrowed),
    }
}

fn to_vec<T: Element>(info: &TensorInfo, bytes: &[u8]) -> Result<Vec<T>> {
    let in_place = match as_slice(info, bytes) {
        Err(Error::Misaligned { .. } | Error::ByteOrder { .. }) => None,
        slice => Some(slice?),
    };
    let mut elements = Vec::new();
    let count = bytes.len().checked_div(size_of::<T>()).unwrap_or_default();
    let out_of_memory = |_| Error::OutOfMemory { bytes: bytes.len() as u64 };
    elements.try_reserve_exact(count).map_err(out_of_memory)?;
    if let Some(slice) = in_place {
        elements.extend_from_slice(slice);
        return Ok(elements);
    }
    for chunk in bytes.chunks_exact(size_of::<T>()) {
        let element = checked::try_pod_read_unaligned::<T>(chunk);
        // Only bools have values that are none, and those are never misaligned.
        elements.push(element.map_err(|_| not_a_bool(bytes))?.from_le());
    }
    Ok(elements)
}

fn to_f32(info: &TensorInfo, bytes: &[u8]) -> Result<Vec<f32>> {
    match info.dtype {
        DType::F32 => to_vec(info, bytes),
        DType::F16 => widen(bytes, |e| f16_to_f32(u16::from_le_bytes(e))),
        DType::BF16 => widen(bytes, |e| bf16_to_f32(u16::from_le_bytes(e))),
        DType::F8E4M3 => widen(bytes, |[e]| F8E4M3::from_bits(e).to_f32()),
        DType::F8E5M2 => widen(bytes, |[e]| F8E5M2::from_bits(e).to_f32()),
        DType::U8 => widen(bytes, |e| u8::from_le_bytes(e).into()),
        DType::I8 => widen(bytes, |e| i8::from_le_bytes(e).into()),
        DType::U16 => widen(bytes, |e| u16::from_le_bytes(e).into()),
        DType::I16 => widen(bytes, |e| i16::from_le_bytes(e).into()),
        found => Err(Error::WrongType { found, asked: DType::F32 }),
    }
}

fn widen<const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> f32) -> Result<Vec<f32>> {
    let (elements, _) = bytes.as_chunks::<N>();
    let mut values = Vec::new();
    let out_of_memory = |_| Error::OutOfMemory { bytes: size_of_val(elements) as u64 };
    values.try_reserve_exact(elements.len()).map_err(out_of_memory)?;
    values.extend(elements.iter().map(|&element| value(element)));
    Ok(values)
}

/// Names the first byte that is neither 0 nor 1.
fn not_a_bool(bytes: &[u8]) -> Error {
    let first = (0..).zip(bytes).find(|&(_, &byte)| byte > 1);
    let (index, found) = first.map_or((0, 0), |(index, &byte)| (index, byte));
    Error::NotABool { index, found }
}

/// Whether this host stores numbers as tensors do.
const IN_ORDER: bool = cfg!(target_endian = "little");

/// A Rust type that is the element type of a tensor.
///
/// Sealed: `bool`, the integers from 8 to 64 bits, [`F8E4M3`], [`F8E5M2`], `f32`, `f64`, `[f32; 2]`
/// and `[f64; 2]` for complex numbers, and with the feature `half` `half::f16` and `half::bf16`.
pub trait Element: sealed::Sealed + CheckedBitPattern + NoUninit + Send + Sync {
    /// The element type.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed: Sized {
        /// Turns a value whose bytes were read as they are stored into the host's order.
        #[expect(clippy::wrong_self_convention, reason = "named as the method of the integers")]
        fn from_le(self) -> Self;

        /// Turns a value so that its bytes are as they are stored: the same turn.
        fn to_le(self) -> Self {
            self.from_le()
        }
    }
}

macro_rules! elements {
    ($($type:ty => $dtype:ident, |$value:ident| $from_le:expr;)*) => {
        $(
            impl Element for $type {
                const DTYPE: DType = DType::$dtype;
            }

            impl sealed::Sealed for $type {
                fn from_le(self) -> Self {
                    let $value = self;
                    $from_le
                }
            }
        )*
    };
}

elements! {
    bool => Bool, |x| x;
    i8 => I8, |x| x;
    i16 => I16, |x| Self::from_le(x);
    i32 => I32, |x| Self::from_le(x);
    i64 => I64, |x| Self::from_le(x);
    u8 => U8, |x| x;
    u16 => U16, |x| Self::from_le(x);
    u32 => U32, |x| Self::from_le(x);
    u64 => U64, |x| Self::from_le(x);
    F8E4M3 => F8E4M3, |x| x;
    F8E5M2 => F8E5M2, |x| x;
    f32 => F32, |x| Self::from_bits(u32::from_le(x.to_bits()));
    f64 => F64, |x| Self::from_bits(u64::from_le(x.to_bits()));
    [f32; 2] => C64, |x| x.map(sealed::Sealed::from_le);
    [f64; 2] => C128, |x| x.map(sealed::Sealed::from_le);
}

#[cfg(feature = "half")]
elements! {
    f16 => F16, |x| Self::from_bits(u16::from_le(x.to_bits()));
    bf16 => BF16, |x| Self::from_bits(u16::from_le(x.to_bits()));
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
            let shape = [elements.len() as u64];
            let copied = TensorBuf::from_slice(shape, elements).unwrap();
            let owned = TensorBuf::from_vec(shape, elements.to_vec()).unwrap();
            assert_eq!(copied.bytes(), owned.bytes());
            for tensor in [copied, owned] {
                assert_eq!(tensor.to_vec::<T>().unwrap(), elements);
                assert_eq!(tensor.as_slice::<T>().unwrap(), elements);
                let mut shifted = vec![0];
                shifted.extend_from_slice(tensor.bytes());
                let view = TensorView::new(T::DTYPE, shape, &shifted[1..]).unwrap();
                assert_eq!(*view.as_cow::<T>().unwrap(), *elements);
            }
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
        #[cfg(feature = "half")]
        check(&[f16::from_f32(1.5), f16::MIN]);
        #[cfg(feature = "half")]
        check(&[bf16::from_f32(1.5), bf16::MIN]);
        check(&[1.5_f32, f32::MIN]);
        check(&[1.5_f64, f64::MIN]);
        check(&[[1.5_f32, -2.0]]);
        check(&[[1.5_f64, -2.0]]);
    }

    #[test]
    fn what_fits_widens_to_f32() {
        let widened = |dtype, bytes: &[u8]| {
            let elements = bytes.len() as u64 / DType::width(dtype).unwrap();
            TensorView::new(dtype, [elements], bytes).unwrap().to_f32()
        };
        assert_eq!(widened(DType::F16, &[0, 0x3c, 0, 0xc0]).unwrap(), [1.0, -2.0]);
        assert_eq!(widened(DType::BF16, &[0x80, 0x3f]).unwrap(), [1.0]);
        assert_eq!(widened(DType::F8E4M3, &[0x38]).unwrap(), [1.0]);
        assert_eq!(widened(DType::F8E5M2, &[0x3c]).unwrap(), [1.0]);
        assert_eq!(widened(DType::F32, &1.5_f32.to_le_bytes()).unwrap(), [1.5]);
        assert_eq!(widened(DType::I8, &[0xff]).unwrap(), [-1.0]);
        assert_eq!(widened(DType::U16, &[1, 1]).unwrap(), [257.0]);
        let error = widened(DType::I32, &[0; 4]).unwrap_err();
        assert_eq!(error.to_string(), "elements are i32, not f32");
    }

    #[test]
    fn misaligned_bytes_are_copied() {
        let buffer = aligned(&[9, 1, 0, 0, 0, 2, 0, 0, 0]);
        let view = TensorView::new(DType::U32, [2], &buffer[1..]).unwrap();
        assert_eq!(
            view.as_slice::<u32>().unwrap_err().to_string(),
            "bytes of u32 are not aligned to 4 bytes in memory; a copy would be"
        );
        assert_eq!(view.to_vec::<u32>().unwrap(), [1, 2]);
        assert!(matches!(view.as_cow::<u32>().unwrap(), Cow::Owned(copy) if copy == [1, 2]));
    }

    #[test]
    fn bools_are_checked() {
        let view = TensorView::new(DType::Bool, [3], &[1, 0, 2]).unwrap();
        let not_a_bool = "bool at element 2 is 2, expected 0 or 1";
        assert_eq!(view.as_slice::<bool>().unwrap_err().to_string(), not_a_bool);
        assert_eq!(view.to_vec::<bool>().unwrap_err().to_string(), not_a_bool);
    }

    #[test]
    fn another_type_is_refused() {
        let view = TensorView::new(DType::F32, [1], &[0; 4]).unwrap();
        view.as_slice::<u32>().unwrap_err();
        let error = view.to_vec::<u32>().unwrap_err();
        assert_eq!(error.to_string(), "elements are f32, not u32");
    }

    #[test]
    fn elements_of_a_vector_stay_where_they_are() {
        let elements = vec![1_u16, 2, 3];
        let place = elements.as_ptr();
        let tensor = TensorBuf::from_vec([3], elements).unwrap();
        assert_eq!(tensor.as_slice::<u16>().unwrap().as_ptr(), place);
    }

    #[test]
    fn huge_shapes_without_elements_need_no_bytes() {
        let view = TensorView::new(DType::F64, [1 << 40, 0, 1 << 20], &[]).unwrap();
        assert_eq!(view.to_vec::<f64>().unwrap(), [0.0; 0]);
    }
}
