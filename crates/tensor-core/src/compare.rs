//! Numeric comparison of two tensors: how many elements differ, by how much at most, and where.
//!
//! Elements are compared as values, whatever their types: whole numbers exactly, floats and whole
//! numbers beside floats as `f64`, complex numbers by the modulus of their difference. A bool is
//! its byte. The tensors are read once, side by side, in blocks that stay in the processor's cache.

use crate::{
    DType, Error, F8E4M3, F8E5M2, Shape, TensorView,
    float16::{bf16_to_f32, f16_to_f32},
};

/// Compares every element of `actual` with the one of `expected` at the same place.
///
/// # Errors
///
/// [`CompareError::Shapes`] where the shapes differ; [`Error::Unsized`] where a tensor holds text.
///
/// # Examples
///
/// ```
/// use tensor_core::compare::{Tolerance, compare};
/// use tensor_core::{DType, Shape, TensorView};
///
/// let actual = TensorView::new(DType::U8, Shape::from([2, 2]), &[1, 2, 3, 4])?;
/// let expected = TensorView::new(DType::I8, Shape::from([2, 2]), &[1, 2, 3, 251])?;
/// let comparison = compare(&actual, &expected, Tolerance::default())?;
/// assert!(!comparison.is_close());
/// assert_eq!(comparison.first_mismatch, Some(3));
/// assert_eq!(comparison.max_abs.map(|difference| difference.value), Some(9.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compare(
    actual: &TensorView<'_>,
    expected: &TensorView<'_>,
    tolerance: Tolerance,
) -> Result<Comparison, CompareError> {
    compare_until(actual, expected, tolerance, Until::End)
}

/// Tells whether every element is within the tolerance; reads no further than the first block that
/// holds one that is not.
///
/// # Errors
///
/// As for [`compare`].
pub fn allclose(
    actual: &TensorView<'_>,
    expected: &TensorView<'_>,
    tolerance: Tolerance,
) -> Result<bool, CompareError> {
    Ok(compare_until(actual, expected, tolerance, Until::Mismatch)?.is_close())
}

/// By how much elements may differ: `|actual - expected| <= atol + rtol * |expected|`.
///
/// Equal values always pass, an infinity only beside itself. A tolerance that is negative or NaN
/// lets nothing else pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// How much of the expected magnitude they may differ by.
    pub rtol: f64,
    /// How much they may differ by whatever the magnitude.
    pub atol: f64,
    /// Whether NaN passes where NaN is expected.
    pub equal_nan: bool,
}

impl Tolerance {
    /// Only equal values pass, and NaN beside NaN.
    pub const EXACT: Self = Self { rtol: 0.0, atol: 0.0, equal_nan: true };
}

impl Default for Tolerance {
    /// The defaults of `numpy.allclose`: `rtol` 1e-5, `atol` 1e-8, NaN passes nowhere.
    fn default() -> Self {
        Self { rtol: 1e-5, atol: 1e-8, equal_nan: false }
    }
}

/// What a comparison found. Indices count elements in row-major order.
///
/// Of several places with the greatest difference the first is named. No difference is taken where
/// either value is NaN, so that the greatest is `None` where that leaves no elements.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// How many elements each tensor has.
    pub elements: u64,
    /// How many of them are not within the tolerance.
    pub mismatches: u64,
    /// How many of the mismatches have NaN on either side.
    pub nan_mismatches: u64,
    /// The first element that is not within the tolerance.
    pub first_mismatch: Option<u64>,
    /// The greatest `|actual - expected|`, infinite where one is infinite and the other is not the
    /// same.
    pub max_abs: Option<Difference>,
    /// The greatest `|actual - expected| / |expected|` where the expected value is not 0.
    pub max_rel: Option<Difference>,
    /// The greatest number of steps from one representable value to the next, -0 and 0 being one
    /// value and infinity the one after the largest.
    ///
    /// Known where both tensors are of the same real float type.
    pub max_ulp: Option<Difference<u64>>,
}

impl Comparison {
    /// Tells whether every element is within the tolerance.
    #[must_use]
    pub const fn is_close(&self) -> bool {
        self.mismatches == 0
    }

    /// Adds what was found in the elements that come behind these.
    pub fn append(&mut self, behind: &Self) {
        let first = self.elements;
        let place = |index: u64| index.saturating_add(first);
        self.elements = place(behind.elements);
        self.mismatches = self.mismatches.saturating_add(behind.mismatches);
        self.nan_mismatches = self.nan_mismatches.saturating_add(behind.nan_mismatches);
        self.first_mismatch = self.first_mismatch.or(behind.first_mismatch.map(place));
        for (greatest, found) in
            [(&mut self.max_abs, behind.max_abs), (&mut self.max_rel, behind.max_rel)]
        {
            found.into_iter().for_each(|found| raise(greatest, found.value, place(found.index)));
        }
        if let Some(found) = behind.max_ulp {
            raise(&mut self.max_ulp, found.value, place(found.index));
        }
    }

    /// Returns where an element lies, outermost coordinate first.
    ///
    /// `index` counts elements in row-major order and is below their number.
    #[must_use]
    pub fn coordinates(index: u64, shape: &Shape) -> Vec<u64> {
        let mut rest = index;
        let mut coordinates: Vec<u64> = Vec::with_capacity(shape.rank());
        for &dim in shape.dims().iter().rev() {
            coordinates.push(rest.checked_rem(dim).unwrap_or(0));
            rest = rest.checked_div(dim).unwrap_or(0);
        }
        coordinates.reverse();
        coordinates
    }
}

/// A difference and the element that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Difference<T = f64> {
    /// How great it is.
    pub value: T,
    /// Which element, counted in row-major order.
    pub index: u64,
}

/// Why two tensors cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The tensors have different shapes.
    #[error("shape is {actual}, expected {expected}")]
    Shapes {
        /// The shape of the first tensor.
        actual: Shape,
        /// The shape of the second tensor.
        expected: Shape,
    },
    /// The elements of a tensor are not numbers.
    #[error(transparent)]
    Core(#[from] Error),
}

/// How far a comparison reads.
#[derive(Clone, Copy, PartialEq)]
enum Until {
    End,
    Mismatch,
}

fn compare_until(
    actual: &TensorView<'_>,
    expected: &TensorView<'_>,
    tolerance: Tolerance,
    until: Until,
) -> Result<Comparison, CompareError> {
    if actual.shape() != expected.shape() {
        let (actual, expected) = (actual.shape().clone(), expected.shape().clone());
        return Err(CompareError::Shapes { actual, expected });
    }
    let scan = Scan { actual, expected, tolerance, until };
    let (left, right) = (actual.dtype(), expected.dtype());
    if let (Some(actual), Some(expected)) = (integers(left), integers(right)) {
        scan.run::<i64>(actual, expected, None)
    } else if let (Some(actual), Some(expected)) = (wide_integers(left), wide_integers(right)) {
        scan.run::<i128>(actual, expected, None)
    } else if let (Some(actual), Some(expected)) = (reals(left), reals(right)) {
        scan.run::<f64>(actual, expected, ranks(left).filter(|_| left == right))
    } else {
        let numbers = |dtype| numbers(dtype).ok_or(Error::Unsized { dtype });
        scan.run::<Complex>(numbers(left)?, numbers(right)?, None)
    }
}

/// Two tensors of one shape, and what is asked about them.
struct Scan<'a> {
    actual: &'a TensorView<'a>,
    expected: &'a TensorView<'a>,
    tolerance: Tolerance,
    until: Until,
}

impl Scan<'_> {
    /// Walks over the blocks of both tensors; `ranks` is given where steps are to be counted.
    fn run<T: Value>(
        &self,
        decode_actual: Decode<T>,
        decode_expected: Decode<T>,
        ranks: Option<Decode<i64>>,
    ) -> Result<Comparison, CompareError> {
        let elements = self.actual.shape().elements()?;
        let same_type = self.actual.dtype() == self.expected.dtype();
        let mut found = Comparison { elements, ..Comparison::default() };
        let mut actual = [T::default(); BLOCK];
        let mut expected = [T::default(); BLOCK];
        let firsts = (0..elements).step_by(BLOCK);
        for (first, (left, right)) in firsts.zip(blocks(self.actual)?.zip(blocks(self.expected)?)) {
            decode_actual(left, &mut actual);
            // An odd number of 4-bit elements leaves half a byte that is none.
            let count = usize::try_from(elements.saturating_sub(first)).unwrap_or(BLOCK);
            let actual = actual.get(..count).unwrap_or(&actual);
            // With a first difference on record, one of 0 says nothing new. NaN is for `add` to judge.
            let same = same_type && left == right && found.max_rel.is_some();
            if same && !actual.iter().any(|value| value.is_nan()) {
                continue;
            }
            decode_expected(right, &mut expected);
            if let Some(mismatches) = self.tally(&found, actual, &expected) {
                found.mismatches = found.mismatches.saturating_add(mismatches);
            } else {
                for ((index, &actual), &expected) in (first..).zip(actual).zip(&expected) {
                    self.add(&mut found, index, actual, expected);
                }
            }
            if let Some(ranks) = ranks {
                let (mut low, mut high) = ([0; BLOCK], [0; BLOCK]);
                ranks(left, &mut low);
                ranks(right, &mut high);
                let numbers = actual.iter().zip(&expected).map(|(a, e)| !a.is_nan() && !e.is_nan());
                add_steps(&mut found.max_ulp, first, [&low, &high], numbers);
            }
            if self.until == Until::Mismatch && !found.is_close() {
                break;
            }
        }
        Ok(found)
    }

    /// Counts the mismatches of a block without a branch per element.
    ///
    /// `None` where there is more to note than their number, or might be: a greater difference than
    /// before, the first mismatch, NaN, an infinity.
    fn tally<T: Value>(&self, found: &Comparison, actual: &[T], expected: &[T]) -> Option<u64> {
        let Tolerance { rtol, atol, .. } = self.tolerance;
        let (max_abs, max_rel) = (found.max_abs?.value.min(f64::MAX), found.max_rel?.value);
        let (mut known, mut greater, mut close) = (true, false, 0_u64);
        for (actual, expected) in actual.iter().zip(expected) {
            let (distance, magnitude) = (actual.distance(*expected), expected.magnitude());
            known &= distance <= max_abs;
            greater |= (magnitude > 0.0) & (distance / magnitude > max_rel);
            let within = (distance == 0.0) | (distance <= atol + rtol * magnitude);
            close = close.wrapping_add(u64::from(within));
        }
        let mismatches = (actual.len() as u64).saturating_sub(close);
        let plain = known && !greater && (mismatches == 0 || found.first_mismatch.is_some());
        plain.then_some(mismatches)
    }

    /// Adds one pair of elements to what was found.
    fn add<T: Value>(&self, found: &mut Comparison, index: u64, actual: T, expected: T) {
        let Tolerance { rtol, atol, equal_nan } = self.tolerance;
        let nan = actual.is_nan() || expected.is_nan();
        let is_close = if nan {
            equal_nan && actual.is_nan() && expected.is_nan()
        } else {
            let magnitude = expected.magnitude();
            let finite = actual.is_finite() && expected.is_finite();
            let distance = if actual == expected {
                0.0
            } else if finite {
                actual.distance(expected)
            } else {
                f64::INFINITY
            };
            raise(&mut found.max_abs, distance, index);
            if magnitude > 0.0 {
                let relative = if distance.is_finite() { distance / magnitude } else { distance };
                raise(&mut found.max_rel, relative, index);
            }
            actual == expected || finite && distance <= atol + rtol * magnitude
        };
        if !is_close {
            found.mismatches = found.mismatches.saturating_add(1);
            found.nan_mismatches = found.nan_mismatches.saturating_add(u64::from(nan));
            found.first_mismatch.get_or_insert(index);
        }
    }
}

/// Adds the steps between the ranks of a block's elements, of those that are `numbers`, not NaN.
fn add_steps(
    greatest: &mut Option<Difference<u64>>,
    first: u64,
    [low, high]: [&[i64; BLOCK]; 2],
    numbers: impl Iterator<Item = bool>,
) {
    let steps = low.iter().zip(high).map(|(low, high)| low.abs_diff(*high));
    if let Some(known) = *greatest
        && !steps.clone().fold(false, |greater, steps| greater | (steps > known.value))
    {
        return;
    }
    for ((index, steps), _) in (first..).zip(steps).zip(numbers).filter(|(_, number)| *number) {
        raise(greatest, steps, index);
    }
}

/// Keeps the greater difference, and of two that are equal the one that was found first.
fn raise<T: PartialOrd>(greatest: &mut Option<Difference<T>>, value: T, index: u64) {
    if greatest.as_ref().is_none_or(|greatest| value > greatest.value) {
        *greatest = Some(Difference { value, index });
    }
}

fn blocks<'a>(view: &TensorView<'a>) -> Result<std::slice::Chunks<'a, u8>, Error> {
    let dtype = view.dtype();
    let len = dtype.byte_len(BLOCK as u64).and_then(|len| usize::try_from(len).ok());
    Ok(view.bytes().chunks(len.ok_or(Error::Unsized { dtype })?))
}

/// A number as it is compared.
trait Value: Copy + Default + PartialEq {
    fn from_i64(value: i64) -> Self;
    fn is_nan(self) -> bool {
        false
    }
    fn is_finite(self) -> bool {
        true
    }
    fn distance(self, other: Self) -> f64;
    fn magnitude(self) -> f64;
}

/// A number that comes from every integer.
trait FromU64: Value {
    fn from_u64(value: u64) -> Self;
}

/// A number that comes from every integer and every float.
trait FromFloat: FromU64 {
    fn from_float(value: f64) -> Self;
}

impl Value for i64 {
    fn from_i64(value: i64) -> Self {
        value
    }

    fn distance(self, other: Self) -> f64 {
        nearest(self.abs_diff(other).into())
    }

    fn magnitude(self) -> f64 {
        nearest(self.unsigned_abs().into())
    }
}

impl Value for i128 {
    fn from_i64(value: i64) -> Self {
        value.into()
    }

    fn distance(self, other: Self) -> f64 {
        nearest(self.abs_diff(other))
    }

    fn magnitude(self) -> f64 {
        nearest(self.unsigned_abs())
    }
}

impl FromU64 for i128 {
    fn from_u64(value: u64) -> Self {
        value.into()
    }
}

impl Value for f64 {
    fn from_i64(value: i64) -> Self {
        value as Self
    }

    fn is_nan(self) -> bool {
        self.is_nan()
    }

    fn is_finite(self) -> bool {
        self.is_finite()
    }

    fn distance(self, other: Self) -> f64 {
        (self - other).abs()
    }

    fn magnitude(self) -> f64 {
        self.abs()
    }
}

impl FromU64 for f64 {
    fn from_u64(value: u64) -> Self {
        value as Self
    }
}

impl FromFloat for f64 {
    fn from_float(value: f64) -> Self {
        value
    }
}

#[derive(Clone, Copy, Default, PartialEq)]
struct Complex {
    re: f64,
    im: f64,
}

impl Value for Complex {
    fn from_i64(value: i64) -> Self {
        Self::from_float(value as f64)
    }

    fn is_nan(self) -> bool {
        self.re.is_nan() || self.im.is_nan()
    }

    fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }

    fn distance(self, other: Self) -> f64 {
        (self.re - other.re).hypot(self.im - other.im)
    }

    fn magnitude(self) -> f64 {
        self.re.hypot(self.im)
    }
}

impl FromU64 for Complex {
    fn from_u64(value: u64) -> Self {
        Self::from_float(value as f64)
    }
}

impl FromFloat for Complex {
    fn from_float(value: f64) -> Self {
        Self { re: value, im: 0.0 }
    }
}

/// Returns the nearest `f64`; by way of `i64` where it suffices, which processors convert.
fn nearest(value: u128) -> f64 {
    i64::try_from(value).map_or(value as f64, |value| value as f64)
}

/// Turns stored elements into numbers, as many as both slices have room for.
type Decode<T> = fn(&[u8], &mut [T]);

fn integers<T: Value>(dtype: DType) -> Option<Decode<T>> {
    Some(match dtype {
        DType::Bool | DType::U8 => |b, out| each(b, out, |[byte]| integer(byte)),
        DType::U4 => |b, out| each_half(b, out, |half| integer(half >> 4)),
        DType::I4 => |b, out| each_half(b, out, |half| integer(i8::from_le_bytes([half]) >> 4)),
        DType::I8 => |b, out| each(b, out, |e| integer(i8::from_le_bytes(e))),
        DType::I16 => |b, out| each(b, out, |e| integer(i16::from_le_bytes(e))),
        DType::I32 => |b, out| each(b, out, |e| integer(i32::from_le_bytes(e))),
        DType::I64 => |b, out| each(b, out, |e| integer(i64::from_le_bytes(e))),
        DType::U16 => |b, out| each(b, out, |e| integer(u16::from_le_bytes(e))),
        DType::U32 => |b, out| each(b, out, |e| integer(u32::from_le_bytes(e))),
        _ => return None,
    })
}

fn wide_integers<T: FromU64>(dtype: DType) -> Option<Decode<T>> {
    match dtype {
        DType::U64 => Some(|b, out| each(b, out, |e| T::from_u64(u64::from_le_bytes(e)))),
        _ => integers(dtype),
    }
}

fn reals<T: FromFloat>(dtype: DType) -> Option<Decode<T>> {
    Some(match dtype {
        DType::F8E4M3 => |b, out| each(b, out, |[byte]| float(F8E4M3::from_bits(byte))),
        DType::F8E5M2 => |b, out| each(b, out, |[byte]| float(F8E5M2::from_bits(byte))),
        DType::F16 => |b, out| each(b, out, |e| float(f16_to_f32(u16::from_le_bytes(e)))),
        DType::BF16 => |b, out| each(b, out, |e| float(bf16_to_f32(u16::from_le_bytes(e)))),
        DType::F32 => |b, out| each(b, out, |e| float(f32::from_le_bytes(e))),
        DType::F64 => |b, out| each(b, out, |e| float(f64::from_le_bytes(e))),
        _ => return wide_integers(dtype),
    })
}

fn numbers(dtype: DType) -> Option<Decode<Complex>> {
    Some(match dtype {
        DType::C64 => |b, out| {
            each(b, out, |[a, b, c, d, e, f, g, h]: [u8; 8]| Complex {
                re: f32::from_le_bytes([a, b, c, d]).into(),
                im: f32::from_le_bytes([e, f, g, h]).into(),
            });
        },
        DType::C128 => |b, out| {
            each(b, out, |e| {
                let [re, im] = bytemuck::must_cast::<[u8; 16], [[u8; 8]; 2]>(e);
                Complex { re: f64::from_le_bytes(re), im: f64::from_le_bytes(im) }
            });
        },
        _ => return reals(dtype),
    })
}

/// Numbers the values of a float type through from the least to the greatest, -0 and 0 as one.
fn ranks(dtype: DType) -> Option<Decode<i64>> {
    macro_rules! rank {
        ($bits:ty) => {
            // A negative float has the sign bit, which makes the integer negative, and then a
            // magnitude that must count downwards: the difference is what that bit alone is.
            |b, out| {
                each(b, out, |e| {
                    let bits = <$bits>::from_le_bytes(e);
                    (if bits < 0 { <$bits>::MIN.wrapping_sub(bits) } else { bits }).into()
                })
            }
        };
    }
    Some(match dtype {
        DType::F8E4M3 | DType::F8E5M2 => rank!(i8),
        DType::F16 | DType::BF16 => rank!(i16),
        DType::F32 => rank!(i32),
        DType::F64 => rank!(i64),
        _ => return None,
    })
}

fn integer<T: Value>(value: impl Into<i64>) -> T {
    T::from_i64(value.into())
}

fn float<T: FromFloat>(value: impl Into<f64>) -> T {
    T::from_float(value.into())
}

/// Decodes elements of `WIDTH` bytes.
fn each<const WIDTH: usize, T>(bytes: &[u8], out: &mut [T], decode: impl Fn([u8; WIDTH]) -> T) {
    let (elements, _) = bytes.as_chunks::<WIDTH>();
    for (element, out) in elements.iter().zip(out) {
        *out = decode(*element);
    }
}

/// Decodes elements of 4 bits, each handed over in the upper half of a byte.
fn each_half<T>(bytes: &[u8], out: &mut [T], decode: impl Fn(u8) -> T) {
    let (pairs, _) = out.as_chunks_mut::<2>();
    for (byte, [first, second]) in bytes.iter().zip(pairs) {
        *first = decode(byte << 4);
        *second = decode(byte & 0xf0);
    }
}

/// Elements in a block: what is decoded of both tensors fits the first-level cache.
const BLOCK: usize = 512;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Element, TensorBuf};

    const EXACT: Tolerance = Tolerance::EXACT;

    fn view(dtype: DType, elements: usize, bytes: &[u8]) -> TensorView<'_> {
        TensorView::new(dtype, Shape::from([elements as u64]), bytes).unwrap()
    }

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn f64s(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn compared<T: Element>(actual: &[T], expected: &[T], tolerance: Tolerance) -> Comparison {
        let [actual, expected] = [actual, expected]
            .map(|values| TensorBuf::from_slice([values.len() as u64], values).unwrap());
        compare(&actual.view(), &expected.view(), tolerance).unwrap()
    }

    /// Compares two single elements, exactly.
    #[track_caller]
    fn one(actual: (DType, &[u8]), expected: (DType, &[u8])) -> Comparison {
        let [actual, expected] = [actual, expected].map(|(dtype, bytes)| view(dtype, 1, bytes));
        compare(&actual, &expected, EXACT).unwrap()
    }

    fn at<T>(value: T, index: u64) -> Option<Difference<T>> {
        Some(Difference { value, index })
    }

    #[test]
    fn equal_tensors() {
        let found = compared(&[1.0_f32, -2.0, 0.0], &[1.0, -2.0, -0.0], Tolerance::default());
        let expected = Comparison {
            elements: 3,
            max_abs: at(0.0, 0),
            max_rel: at(0.0, 0),
            max_ulp: at(0, 0),
            ..Comparison::default()
        };
        assert_eq!(found, expected);
        assert!(found.is_close());
    }

    #[test]
    fn greatest_differences_are_located() {
        let found = compared(&[1.0_f32, 100.5, 2.0, 0.25], &[1.0, 100.0, 3.0, 0.125], EXACT);
        assert_eq!((found.mismatches, found.first_mismatch), (3, Some(1)));
        assert_eq!(found.max_abs, at(1.0, 2));
        assert_eq!(found.max_rel, at(1.0, 3));
        // From one power of two to the next there are 2^23 steps.
        assert_eq!(found.max_ulp, at(1 << 23, 3));
    }

    #[test]
    fn parts_make_the_whole() {
        let (actual, expected) =
            ([1.0_f32, 2.0, f32::NAN, 4.5, -7.0, 0.0], [1.0, 2.5, 1.0, 4.5, -7.0, 3.0]);
        let whole = compared(&actual, &expected, EXACT);
        for at in 0..=actual.len() {
            let mut found = compared(&actual[..at], &expected[..at], EXACT);
            found.append(&compared(&actual[at..], &expected[at..], EXACT));
            assert_eq!(found, whole, "{at}");
        }
    }

    #[test]
    fn first_of_equal_differences_is_named() {
        let found = compared(&[1.0, 2.0, 0.0], &[2.0, 3.0, 1.0], EXACT);
        assert_eq!(found.max_abs, at(1.0, 0));
    }

    #[test]
    fn tolerance_is_relative_to_expected() {
        let tolerance = Tolerance { rtol: 0.5, atol: 1.0, equal_nan: false };
        assert!(compared(&[7.0], &[4.0], tolerance).is_close(), "3 <= 1 + 0.5 * 4");
        assert!(!compared(&[4.0], &[7.5], Tolerance { atol: -0.5, ..tolerance }).is_close());
        assert!(!compared(&[7.5], &[4.0], tolerance).is_close(), "3.5 > 1 + 0.5 * 4");
    }

    #[test]
    fn no_tolerance_refuses_equal_values() {
        for atol in [-1.0, f64::NAN] {
            let tolerance = Tolerance { atol, ..EXACT };
            let same = [1.0, f64::INFINITY];
            assert!(compared(&same, &same, tolerance).is_close(), "atol {atol}");
            assert_eq!(compared(&[1.0; 2], &[1.0, 2.0], tolerance).mismatches, 1, "atol {atol}");
        }
    }

    #[test]
    fn nan_passes_beside_nan_when_asked() {
        let (actual, expected) = ([f32::NAN, 1.0, f32::NAN], [f32::NAN, f32::NAN, 1.0]);
        let found = compared(&actual, &expected, EXACT);
        assert_eq!((found.mismatches, found.nan_mismatches), (2, 2));
        assert_eq!(found.first_mismatch, Some(1));
        assert_eq!((found.max_abs, found.max_rel, found.max_ulp), (None, None, None));
        let found = compared(&actual, &expected, Tolerance::default());
        assert_eq!((found.mismatches, found.first_mismatch), (3, Some(0)));
    }

    #[test]
    fn infinities_equal_only_themselves() {
        let (inf, max) = (f64::INFINITY, f64::MAX);
        let loose = Tolerance { rtol: 1.0, atol: inf, equal_nan: true };
        for (actual, expected, close, distance) in [
            (inf, inf, true, 0.0),
            (-inf, -inf, true, 0.0),
            (inf, -inf, false, inf),
            (inf, max, false, inf),
            (max, inf, false, inf),
            (max, 0.0, true, max),
        ] {
            let found = compared(&[actual], &[expected], loose);
            assert_eq!(found.is_close(), close, "{actual} beside {expected}");
            assert_eq!(found.max_abs, at(distance, 0), "{actual} beside {expected}");
        }
        let steps = compared(&[inf], &[max], loose).max_ulp;
        assert_eq!(steps, at(1, 0), "infinity follows the largest value");
    }

    #[test]
    fn zero_expected_has_no_relative_difference() {
        let found = compared(&[1.0, 3.0], &[0.0, 2.0], EXACT);
        assert_eq!((found.max_abs, found.max_rel), (at(1.0, 0), at(0.5, 1)));
    }

    #[test]
    fn integers_are_compared_exactly() {
        // As f64 these would be equal.
        let (a, b) = ((1_i64 << 60) + 1, 1_u64 << 60);
        let found = one((DType::I64, &a.to_le_bytes()), (DType::U64, &b.to_le_bytes()));
        assert_eq!((found.mismatches, found.max_abs), (1, at(1.0, 0)));
        let found =
            one((DType::I64, &i64::MIN.to_le_bytes()), (DType::U64, &u64::MAX.to_le_bytes()));
        // 2^63 + 2^64 - 1, to the nearest f64.
        assert_eq!(found.max_abs, at(27_670_116_110_564_327_424.0, 0));
        let found =
            one((DType::I64, &i64::MIN.to_le_bytes()), (DType::I64, &i64::MAX.to_le_bytes()));
        assert_eq!(found.max_abs, at(18_446_744_073_709_551_616.0, 0));
        assert_eq!(found.max_ulp, None);
    }

    /// -1 (or 1 where there is no sign) in every element type that has one.
    fn ones() -> Vec<(DType, Vec<u8>, f64)> {
        let c128 = f64s(&[-1.0, 0.0]);
        vec![
            (DType::Bool, vec![1], 1.0),
            (DType::U4, vec![0xf1], 1.0),
            (DType::I4, vec![0x1f], -1.0),
            (DType::U8, vec![1], 1.0),
            (DType::U16, vec![1, 0], 1.0),
            (DType::U32, vec![1, 0, 0, 0], 1.0),
            (DType::U64, vec![1, 0, 0, 0, 0, 0, 0, 0], 1.0),
            (DType::I8, vec![0xff], -1.0),
            (DType::I16, vec![0xff; 2], -1.0),
            (DType::I32, vec![0xff; 4], -1.0),
            (DType::I64, vec![0xff; 8], -1.0),
            (DType::F8E4M3, vec![0xb8], -1.0),
            (DType::F8E5M2, vec![0xbc], -1.0),
            (DType::F16, vec![0x00, 0xbc], -1.0),
            (DType::BF16, vec![0x80, 0xbf], -1.0),
            (DType::F32, f32s(&[-1.0]), -1.0),
            (DType::F64, f64s(&[-1.0]), -1.0),
            (DType::C64, f32s(&[-1.0, 0.0]), -1.0),
            (DType::C128, c128, -1.0),
        ]
    }

    #[test]
    fn every_pair_of_element_types() {
        let ones = ones();
        assert_eq!(ones.len() + 1, DType::ALL.len(), "all element types but text");
        for (left, a, value) in &ones {
            for (right, b, other) in &ones {
                let found = one((*left, a), (*right, b));
                let distance = (value - other).abs();
                assert_eq!(found.max_abs, at(distance, 0), "{left} beside {right}");
                assert_eq!(found.max_rel, at(distance, 0), "{left} beside {right}");
                assert_eq!(found.is_close(), distance == 0.0, "{left} beside {right}");
                let steps = left == right && format!("{left}").contains('f');
                assert_eq!(found.max_ulp.is_some(), steps, "{left} beside {right}");
            }
        }
    }

    #[test]
    fn odd_half_byte_is_no_element() {
        let (a, e) = ([0x21, 0xf3], [0x21, 0x03]);
        let found = compare(&view(DType::U4, 3, &a), &view(DType::U4, 3, &e), EXACT).unwrap();
        assert_eq!((found.elements, found.mismatches), (3, 0));
        let a = [1, 2, 3];
        let found = compare(&view(DType::U8, 3, &a), &view(DType::U4, 3, &e), EXACT).unwrap();
        assert_eq!(found.mismatches, 0, "the low half of a byte comes first");
    }

    #[test]
    fn complex_difference_is_a_modulus() {
        let (a, e) = (f32s(&[4.0, 5.0]), f64s(&[1.0, 1.0]));
        let found = one((DType::C64, &a), (DType::C128, &e));
        assert_eq!(found.max_abs, at(5.0, 0));
        let (a, e) = (f64s(&[f64::INFINITY, 1.0]), f64s(&[f64::INFINITY, 2.0]));
        assert_eq!(one((DType::C128, &a), (DType::C128, &e)).max_abs, at(f64::INFINITY, 0));
        assert!(one((DType::C128, &a), (DType::C128, &a)).is_close());
        let nan = f64s(&[f64::NAN, 1.0]);
        assert_eq!(one((DType::C128, &nan), (DType::C128, &e)).nan_mismatches, 1);
    }

    #[test]
    fn steps_cross_zero() {
        let tiny = f32::from_bits(1);
        assert_eq!(compared(&[-tiny], &[tiny], EXACT).max_ulp, at(2, 0));
        let found = compared(&[-f64::INFINITY], &[f64::INFINITY], EXACT);
        assert_eq!(found.max_ulp, at(2 * 0x7ff0_0000_0000_0000, 0));
        // 448 is code 0x7e.
        assert_eq!(one((DType::F8E4M3, &[0xfe]), (DType::F8E4M3, &[0x7e])).max_ulp, at(252, 0));
        assert_eq!(one((DType::BF16, &[0, 0x80]), (DType::BF16, &[0, 0])).max_ulp, at(0, 0));
        assert_eq!(one((DType::F16, &[0xff, 0xfb]), (DType::F16, &[0, 0xfc])).max_ulp, at(1, 0));
    }

    #[test]
    fn no_elements() {
        let found = compared::<f32>(&[], &[], Tolerance::default());
        assert_eq!(found, Comparison::default());
        assert!(found.is_close());
    }

    #[test]
    fn scalar_is_one_element() {
        let bytes = f32s(&[1.0]);
        let scalar = TensorView::new(DType::F32, Shape::scalar(), &bytes).unwrap();
        assert_eq!(compare(&scalar, &scalar, EXACT).unwrap().elements, 1);
    }

    #[test]
    fn shapes_differ() {
        let actual = TensorView::new(DType::U8, Shape::from([2, 1]), &[1, 2]).unwrap();
        let error = compare(&actual, &view(DType::U8, 2, &[1, 2]), EXACT).unwrap_err();
        assert_eq!(error.to_string(), "shape is [2, 1], expected [2]");
        let error = allclose(&actual, &view(DType::U8, 2, &[1, 2]), EXACT).unwrap_err();
        assert!(matches!(error, CompareError::Shapes { .. }), "{error}");
    }

    #[test]
    fn text_has_no_numbers() {
        assert!(numbers(DType::Str).is_none());
        for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::Str) {
            assert!(numbers(dtype).is_some(), "{dtype}");
        }
    }

    #[test]
    fn coordinates_are_row_major() {
        let shape = Shape::from([2, 3, 4]);
        let strides = shape.strides().unwrap();
        for index in 0..24 {
            let found = Comparison::coordinates(index, &shape);
            let back: u64 = found.iter().zip(&strides).map(|(at, stride)| at * stride).sum();
            assert_eq!(back, index, "{found:?}");
            assert!(found.iter().zip(shape.dims()).all(|(at, dim)| at < dim), "{found:?}");
        }
        assert_eq!(Comparison::coordinates(0, &Shape::scalar()), [0; 0]);
        assert_eq!(Comparison::coordinates(7, &Shape::from([0, 2])), [0, 1]);
    }

    /// The definition, one element after another.
    fn by_definition(actual: &[f64], expected: &[f64], tolerance: Tolerance) -> Comparison {
        let mut found = Comparison { elements: actual.len() as u64, ..Comparison::default() };
        for ((index, &a), &e) in (0..).zip(actual).zip(expected) {
            let nan = a.is_nan() || e.is_nan();
            let both_nan = a.is_nan() && e.is_nan();
            let near = (a - e).abs() <= tolerance.atol + tolerance.rtol * e.abs();
            let close =
                a == e || both_nan && tolerance.equal_nan || near && a.is_finite() && e.is_finite();
            if !close {
                found.mismatches += 1;
                found.nan_mismatches += u64::from(nan);
                found.first_mismatch = found.first_mismatch.or(Some(index));
            }
            if nan {
                continue;
            }
            let distance = if a == e { 0.0 } else { (a - e).abs() };
            raise(&mut found.max_abs, distance, index);
            if e != 0.0 {
                let infinite = distance.is_infinite();
                raise(
                    &mut found.max_rel,
                    if infinite { distance } else { distance / e.abs() },
                    index,
                );
            }
            let rank = |value: f64| {
                let magnitude = i128::from(value.abs().to_bits());
                if value.is_sign_negative() { -magnitude } else { magnitude }
            };
            let steps = u64::try_from(rank(a).abs_diff(rank(e))).unwrap();
            raise(&mut found.max_ulp, steps, index);
        }
        found
    }

    fn tolerance() -> impl Strategy<Value = Tolerance> {
        let part =
            || prop_oneof![Just(0.0), Just(1e-8), Just(1e-3), Just(1.0), Just(f64::INFINITY)];
        (part(), part(), any::<bool>()).prop_map(|(rtol, atol, equal_nan)| Tolerance {
            rtol,
            atol,
            equal_nan,
        })
    }

    /// Lengths around one, two and three blocks; values mostly near each other.
    fn pairs() -> impl Strategy<Value = Vec<(f64, f64)>> {
        let rare = prop_oneof![
            Just(0.0),
            Just(-0.0),
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            Just(f64::MAX),
            Just(f64::MIN),
            Just(f64::from_bits(1)),
            any::<f64>(),
        ];
        let value = || prop_oneof![8 => -2.0..2.0_f64, 1 => Just(0.0)];
        let pair = prop_oneof![
            40 => value().prop_map(|value| (value, value)),
            20 => value().prop_map(|value| (value, value * (1.0 + 1e-9))),
            2 => (value(), value()),
            1 => (rare.clone(), rare),
        ];
        let len = prop_oneof![0..4_usize, BLOCK - 1..BLOCK + 2, 2 * BLOCK..3 * BLOCK + 2];
        len.prop_flat_map(move |len| prop::collection::vec(pair.clone(), len))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn blocks_change_nothing(pairs in pairs(), tolerance in tolerance()) {
            let (actual, expected): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let found = compared(&actual, &expected, tolerance);
            prop_assert_eq!(&found, &by_definition(&actual, &expected, tolerance));
            let (a, e) = (f64s(&actual), f64s(&expected));
            let [a, e] = [&a, &e].map(|bytes| view(DType::F64, actual.len(), bytes));
            prop_assert_eq!(allclose(&a, &e, tolerance).unwrap(), found.is_close());
            let same = compare(&a, &a, tolerance).unwrap();
            prop_assert_eq!(&same, &by_definition(&actual, &actual, tolerance));
        }

        #[test]
        fn integers_agree_with_f64(
            pairs in prop::collection::vec((any::<i8>(), any::<i8>()), 0..2000),
            tolerance in tolerance(),
        ) {
            let (actual, expected): (Vec<i8>, Vec<i8>) = pairs.into_iter().unzip();
            let bytes = |values: &[i8]| values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let floats = |values: &[i8]| values.iter().copied().map(f64::from).collect::<Vec<_>>();
            let (a, e): (Vec<u8>, Vec<u8>) = (bytes(&actual), bytes(&expected));
            let [a, e] = [&a, &e].map(|bytes| view(DType::I8, actual.len(), bytes));
            let definition = by_definition(&floats(&actual), &floats(&expected), tolerance);
            let found = compare(&a, &e, tolerance).unwrap();
            prop_assert_eq!(found, Comparison { max_ulp: None, ..definition });
        }
    }
}
