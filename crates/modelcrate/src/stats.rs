use std::io::{self, Read};

use tensor_core::{
    DType, F8E4M3, F8E5M2,
    float16::{bf16_to_f32, f16_to_f32},
};

/// What the elements of a tensor are like. Of complex elements it is what their magnitudes are like.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// The smallest finite element; `None` where there is none.
    pub min: Option<Number>,
    /// The largest finite element; `None` where there is none.
    pub max: Option<Number>,
    /// The mean of the finite elements; `None` where there is none.
    pub mean: Option<f64>,
    /// How far the finite elements are from their mean: the square root of the mean of the squares.
    /// `None` where there is none, or it is beyond `f64`.
    pub std: Option<f64>,
    /// How many elements are NaN.
    pub nan: u64,
    /// How many elements are infinite.
    pub infinite: u64,
    /// How many elements are zero.
    pub zeros: u64,
    /// The elements below which 1, 5, 25, 50, 75, 95 and 99 of a hundred finite ones are: exact where
    /// elements are of one or two bytes, within 0.4 % else. Empty where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub percentiles: Vec<f64>,
    /// How many finite elements are in each of 32 ranges of the same width, from the smallest to the
    /// largest, as exactly as `percentiles`. Empty where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<u64>,
}

/// An element as a number, integers exactly.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Number {
    /// An integer or a truth value.
    Integer(i128),
    /// Any other.
    Float(f64),
}

impl Number {
    /// Returns the nearest `f64`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the nearest is what is asked for")]
    pub const fn to_f64(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Float(number) => number.fmt(f),
        }
    }
}

impl Stats {
    /// Reads little-endian elements to the end of a stream, in memory that does not grow with their
    /// number; `None` for element types that have no order, and those of less than a byte.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub fn read(dtype: DType, mut stream: impl Read) -> io::Result<Option<Self>> {
        let Some(mut running) = Running::new(dtype) else {
            return Ok(None);
        };
        let mut chunk = vec![0; CHUNK];
        loop {
            // CHUNK is a multiple of every width, so only the end of the stream is a part of it.
            let mut filled = 0_usize;
            while let Some(rest) = chunk.get_mut(filled..).filter(|rest| !rest.is_empty()) {
                match stream.read(rest)? {
                    0 => break,
                    read => filled = filled.saturating_add(read),
                }
            }
            if filled == 0 {
                return Ok(Some(running.finish()));
            }
            running.add(chunk.get(..filled).unwrap_or_default());
        }
    }
}

/// What is known of the elements so far.
struct Running {
    dtype: DType,
    /// How many elements have each of the patterns of 16 bits: all of their own, or of finite ones the
    /// upper half of the `f32` that is nearest to them.
    counts: Box<[u64; 1 << 16]>,
    /// NaN, infinite and zero elements of more than 16 bits.
    nan: u64,
    infinite: u64,
    zeros: u64,
    min: Option<Number>,
    max: Option<Number>,
    moments: Moments,
    /// The sum of integers.
    sum: i128,
}

impl Running {
    fn new(dtype: DType) -> Option<Self> {
        let is_ordered = !matches!(dtype, DType::I4 | DType::U4 | DType::Str);
        let counts = vec![0; 1 << 16].into_boxed_slice().try_into().ok()?;
        let running = Self {
            dtype,
            counts,
            nan: 0,
            infinite: 0,
            zeros: 0,
            min: None,
            max: None,
            moments: Moments::default(),
            sum: 0,
        };
        is_ordered.then_some(running)
    }

    /// Adds a chunk of whole elements.
    fn add(&mut self, bytes: &[u8]) {
        match self.dtype {
            DType::F32 => self.floats(bytes.as_chunks::<4>().0, |b| f32::from_le_bytes(*b)),
            DType::F64 => self.doubles(bytes.as_chunks::<8>().0, |b| f64::from_le_bytes(*b)),
            DType::C64 => self.floats(bytes.as_chunks::<8>().0, |&[a, b, c, d, e, f, g, h]| {
                f32::from_le_bytes([a, b, c, d]).hypot(f32::from_le_bytes([e, f, g, h]))
            }),
            DType::C128 => self.doubles(bytes.as_chunks::<16>().0, |b| {
                let (real, imaginary) = b.split_at(8);
                let [real, imaginary] = [real, imaginary].map(|half| half.first_chunk().copied());
                let [real, imaginary] = [real, imaginary].map(Option::unwrap_or_default);
                f64::from_le_bytes(real).hypot(f64::from_le_bytes(imaginary))
            }),
            DType::I32 => {
                self.integers(bytes.as_chunks::<4>().0, |b| i32::from_le_bytes(*b).into());
            }
            DType::U32 => {
                self.integers(bytes.as_chunks::<4>().0, |b| u32::from_le_bytes(*b).into());
            }
            DType::I64 => {
                self.integers(bytes.as_chunks::<8>().0, |b| i64::from_le_bytes(*b).into());
            }
            DType::U64 => {
                self.integers(bytes.as_chunks::<8>().0, |b| u64::from_le_bytes(*b).into());
            }
            dtype if dtype.bits() == Some(16) => {
                bytes.as_chunks::<2>().0.iter().for_each(|b| self.count(u16::from_le_bytes(*b)));
            }
            _ => bytes.iter().for_each(|byte| self.count((*byte).into())),
        }
    }

    #[expect(clippy::indexing_slicing, reason = "a u16 is a place in a table of 65,536")]
    fn count(&mut self, pattern: u16) {
        let count = &mut self.counts[usize::from(pattern)];
        *count = count.wrapping_add(1);
    }

    /// Adds elements as `f32`, a block at a time that stays in the cache.
    fn floats<const N: usize>(&mut self, elements: &[[u8; N]], number: impl Fn(&[u8; N]) -> f32) {
        let mut block = Vec::with_capacity(BLOCK);
        for now in elements.chunks(BLOCK) {
            block.clear();
            block.extend(now.iter().map(&number));
            if block.iter().any(|value| !value.is_finite()) {
                block.retain(|value| self.is_finite(f64::from(*value)));
            }
            self.zeros =
                self.zeros.wrapping_add(block.iter().filter(|value| **value == 0.0).count() as u64);
            block.iter().for_each(|value| self.count(upper_half(*value)));
            let low =
                block.iter().copied().fold(f32::INFINITY, |low, x| if x < low { x } else { low });
            let high = block
                .iter()
                .copied()
                .fold(f32::NEG_INFINITY, |high, x| if x > high { x } else { high });
            if !block.is_empty() {
                self.range(Number::Float(low.into()), Number::Float(high.into()));
            }
            self.moments.add(&block);
        }
    }

    fn doubles<const N: usize>(&mut self, elements: &[[u8; N]], number: impl Fn(&[u8; N]) -> f64) {
        let mut block = Vec::with_capacity(BLOCK);
        for now in elements.chunks(BLOCK) {
            block.clear();
            block.extend(now.iter().map(&number).filter(|value| self.is_finite(*value)));
            for value in block.iter().copied() {
                self.zeros = self.zeros.wrapping_add(u64::from(value == 0.0));
                self.count(upper_half(nearest(value)));
                self.range(Number::Float(value), Number::Float(value));
            }
            self.moments.add(&block);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "spread and percentiles are not exact")]
    fn integers<const N: usize>(
        &mut self,
        elements: &[[u8; N]],
        number: impl Fn(&[u8; N]) -> i128,
    ) {
        let mut block = Vec::with_capacity(BLOCK);
        for now in elements.chunks(BLOCK) {
            block.clear();
            for value in now.iter().map(&number) {
                self.zeros = self.zeros.wrapping_add(u64::from(value == 0));
                self.count(upper_half(value as f32));
                self.range(Number::Integer(value), Number::Integer(value));
                self.sum = self.sum.saturating_add(value);
                block.push(value as f64);
            }
            self.moments.add(&block);
        }
    }

    /// Tells whether a number is finite, and counts it where it is not.
    fn is_finite(&mut self, value: f64) -> bool {
        self.nan = self.nan.wrapping_add(u64::from(value.is_nan()));
        self.infinite = self.infinite.wrapping_add(u64::from(value.is_infinite()));
        value.is_finite()
    }

    fn range(&mut self, low: Number, high: Number) {
        if self.min.is_none_or(|min| low.is_less(min)) {
            self.min = Some(low);
        }
        if self.max.is_none_or(|max| max.is_less(high)) {
            self.max = Some(high);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean is not exact")]
    fn finish(mut self) -> Stats {
        let (mut finite, pattern) = (Vec::new(), pattern_of(self.dtype));
        let counts = (0..=u16::MAX).zip(self.counts.iter().copied());
        let counts: Vec<(u16, u64)> = counts.filter(|(_, count)| *count > 0).collect();
        for (bits, count) in counts {
            match pattern {
                // All that is known of smaller elements are these counts.
                Some(number) => self.repeated(number(bits), count, &mut finite),
                None => {
                    finite.push((middle(bits), count));
                }
            }
        }
        finite.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        if pattern.is_some() {
            self.moments = Moments::of(&finite);
        }
        let (Some(min), Some(max)) = (self.min, self.max) else {
            return Stats { nan: self.nan, infinite: self.infinite, ..Stats::default() };
        };
        for (value, _) in &mut finite {
            *value = value.clamp(min.to_f64(), max.to_f64());
        }
        let of_integers = matches!(min, Number::Integer(_));
        let mean = if of_integers {
            self.sum as f64 / self.moments.count as f64
        } else {
            self.moments.mean
        };
        let std = (self.moments.squares / self.moments.count as f64).sqrt();
        Stats {
            min: Some(min),
            max: Some(max),
            mean: Some(mean),
            std: Some(std).filter(|std| std.is_finite()),
            nan: self.nan,
            infinite: self.infinite,
            zeros: self.zeros,
            percentiles: percentiles(&finite),
            histogram: histogram(&finite, min.to_f64(), max.to_f64()),
        }
    }

    /// Adds an element that is there so many times.
    fn repeated(&mut self, number: Number, count: u64, finite: &mut Vec<(f64, u64)>) {
        let value = number.to_f64();
        if !value.is_finite() {
            let counter = if value.is_nan() { &mut self.nan } else { &mut self.infinite };
            *counter = counter.wrapping_add(count);
            return;
        }
        if value == 0.0 {
            self.zeros = self.zeros.wrapping_add(count);
        }
        if let Number::Integer(number) = number {
            self.sum = self.sum.saturating_add(number.saturating_mul(count.into()));
        }
        self.range(number, number);
        finite.push((value, count));
    }
}

impl Number {
    fn is_less(self, other: Self) -> bool {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one < other,
            _ => self.to_f64() < other.to_f64(),
        }
    }
}

/// Count, mean, and sum of the squares of the distances from it; blocks are merged, so that neither
/// small elements are lost beside a large sum nor large ones overflow it.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Computes those of elements that are there so many times each.
    #[expect(clippy::cast_precision_loss, reason = "a mean is not exact")]
    fn of(elements: &[(f64, u64)]) -> Self {
        let count = elements.iter().map(|(_, count)| count).sum::<u64>();
        // What each addition loses is summed too.
        let (mut sum, mut lost) = (0.0_f64, 0.0);
        for (value, count) in elements {
            let next = value * *count as f64;
            let total = sum + next;
            lost += if sum.abs() >= next.abs() { sum - total + next } else { next - total + sum };
            sum = total;
        }
        let mean = (sum + lost) / count as f64;
        let squares = elements.iter().map(|(x, count)| (x - mean) * (x - mean) * *count as f64);
        Self { count, mean, squares: squares.sum() }
    }

    #[expect(clippy::cast_precision_loss, reason = "a block is small")]
    fn add<T: Copy + Into<f64>>(&mut self, block: &[T]) {
        let count = block.len() as f64;
        // In lanes, as the processor adds.
        let mean = lanes(block, |x| x) / count;
        // The sum of a few large numbers is beyond f64, each divided it is not.
        let mean = if mean.is_finite() { mean } else { lanes(block, |x| x / count) };
        let squares = lanes(block, |x| (x - mean) * (x - mean));
        if !block.is_empty() {
            self.merge(Self { count: block.len() as u64, mean, squares });
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "weights are not exact")]
    fn merge(&mut self, other: Self) {
        let count = self.count.saturating_add(other.count);
        let (own, others) = (self.count as f64 / count as f64, other.count as f64 / count as f64);
        let between = (other.mean - self.mean) * own * (other.mean - self.mean);
        self.squares += other.squares + between * other.count as f64;
        self.mean =
            if self.mean == other.mean { self.mean } else { self.mean * own + other.mean * others };
        self.count = count;
    }
}

/// Sums what a function makes of the elements.
fn lanes<T: Copy + Into<f64>>(block: &[T], of: impl Fn(f64) -> f64) -> f64 {
    let mut sums = [0.0; 16];
    let (chunks, rest) = block.as_chunks::<16>();
    for chunk in chunks {
        for (sum, element) in sums.iter_mut().zip(chunk) {
            *sum += of((*element).into());
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|element| of((*element).into())).sum::<f64>()
}

/// Returns the elements below which so many of a hundred are.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank is not negative, and as good as exact"
)]
fn percentiles(sorted: &[(f64, u64)]) -> Vec<f64> {
    let total: u64 = sorted.iter().map(|(_, count)| count).sum();
    let rank = |percent: f64| ((percent / 100.0 * total as f64).ceil() as u64).max(1);
    let at = |rank: u64| {
        let mut seen = 0_u64;
        let found = sorted.iter().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= rank
        });
        found.or(sorted.last()).map(|(value, _)| *value)
    };
    PERCENTS.iter().filter_map(|percent| at(rank(*percent))).collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place from 0 to 32")]
fn histogram(sorted: &[(f64, u64)], min: f64, max: f64) -> Vec<u64> {
    let mut bins = vec![0_u64; BINS];
    for (value, count) in sorted {
        // Halved, as the width may be beyond f64.
        let place = (value / 2.0 - min / 2.0) / (max / 2.0 - min / 2.0) * BINS as f64;
        let place = if place.is_finite() { place as usize } else { 0 };
        if let Some(bin) = bins.get_mut(place.min(BINS.saturating_sub(1))) {
            *bin = bin.saturating_add(*count);
        }
    }
    bins
}

/// Returns what the elements of a type of one or two bytes are by their bits; `None` for other types.
fn pattern_of(dtype: DType) -> Option<fn(u16) -> Number> {
    #[expect(clippy::cast_possible_truncation, reason = "elements of one byte")]
    const fn low(bits: u16) -> u8 {
        bits as u8
    }
    Some(match dtype {
        DType::Bool | DType::U8 | DType::U16 => |bits| Number::Integer(bits.into()),
        DType::I8 => |bits| Number::Integer(low(bits).cast_signed().into()),
        DType::I16 => |bits| Number::Integer(bits.cast_signed().into()),
        DType::F8E4M3 => |bits| Number::Float(f32::from(F8E4M3::from_bits(low(bits))).into()),
        DType::F8E5M2 => |bits| Number::Float(f32::from(F8E5M2::from_bits(low(bits))).into()),
        DType::F16 => |bits| Number::Float(f16_to_f32(bits).into()),
        DType::BF16 => |bits| Number::Float(bf16_to_f32(bits).into()),
        _ => return None,
    })
}

const fn upper_half(value: f32) -> u16 {
    (value.to_bits() >> 16) as u16
}

/// Returns the middle of the numbers that have an upper half; of the least, zero.
fn middle(upper: u16) -> f64 {
    let lower = if upper & 0x7fff == 0 { 0 } else { 0x8000 };
    f32::from_bits(u32::from(upper) << 16 | lower).into()
}

/// Returns the nearest `f32` that is finite.
#[expect(clippy::cast_possible_truncation, reason = "the nearest is what is asked for")]
const fn nearest(value: f64) -> f32 {
    (value as f32).clamp(f32::MIN, f32::MAX)
}

const PERCENTS: [f64; 7] = [1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0];

const BINS: usize = 32;

const CHUNK: usize = 64 << 10;

/// Elements that are looked at several times while they are in the cache.
const BLOCK: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    fn stats<const N: usize>(dtype: DType, elements: &[[u8; N]]) -> Stats {
        Stats::read(dtype, elements.as_flattened()).unwrap().unwrap()
    }

    fn floats(values: &[f32]) -> Stats {
        stats(DType::F32, &values.iter().map(|value| value.to_le_bytes()).collect::<Vec<_>>())
    }

    #[test]
    fn finite_elements_make_the_range() {
        let found =
            floats(&[1.0, -3.0, f32::NAN, f32::from_bits(0x7f80_0001), f32::INFINITY, 0.0, -0.0]);
        assert_eq!((found.min, found.max), (Some(Number::Float(-3.0)), Some(Number::Float(1.0))));
        assert_eq!((found.nan, found.infinite, found.zeros), (2, 1, 2));
        assert!((found.mean.unwrap() + 0.5).abs() < 1e-12);
        assert!((found.std.unwrap() - 1.5).abs() < 1e-12);
        assert_eq!(found.histogram.iter().sum::<u64>(), 4);
    }

    #[test]
    fn nothing_has_no_range() {
        assert_eq!(stats::<1>(DType::U8, &[]), Stats::default());
        assert_eq!(Stats::read(DType::Str, &[][..]).unwrap(), None);
        assert_eq!(floats(&[f32::NAN]).min, None);
    }

    #[test]
    fn integers_are_exact() {
        let values = [(1_i64 << 53) + 1, i64::MIN, i64::MAX];
        let found = stats(DType::I64, &values.map(i64::to_le_bytes));
        let [min, max] = [i64::MIN, i64::MAX].map(|value| Some(Number::Integer(value.into())));
        assert_eq!((found.min, found.max), (min, max));
        let text = serde_json::to_string(&found).unwrap();
        assert!(text.contains("-9223372036854775808,\"max\":9223372036854775807"), "{text}");
    }

    #[test]
    fn means_do_not_overflow() {
        let values = [1.7e308_f64, 1.7e308, 1.7e308, -1e300];
        let found = stats(DType::F64, &values.map(f64::to_le_bytes));
        assert!((found.mean.unwrap() / 1.275e308 - 1.0).abs() < 1e-7, "{found:?}");
        let apart = stats(DType::F64, &[f64::MAX, f64::MIN].map(f64::to_le_bytes));
        assert_eq!(apart.histogram.iter().sum::<u64>(), 2);
    }

    #[test]
    fn small_elements_are_not_lost() {
        let values: Vec<f32> =
            std::iter::once(1e8).chain(std::iter::repeat_n(1.0, 1_000_000)).collect();
        let exact = (1e8 + 1e6) / 1_000_001.0;
        assert!((floats(&values).mean.unwrap() / exact - 1.0).abs() < 1e-12);
    }

    #[test]
    fn percentiles_are_near() {
        let values: Vec<f32> = (0..10_000_u16).map(|value| f32::from(value) - 5000.0).collect();
        let found = floats(&values);
        for (percent, value) in PERCENTS.iter().zip(&found.percentiles) {
            let exact = percent * 100.0 - 5001.0;
            assert!(
                (value - exact).abs() <= exact.abs() * 0.004 + 1e-9,
                "{percent}: {value}, {exact}"
            );
        }
        let shorts: Vec<[u8; 2]> = (-50..=50_i16).map(i16::to_le_bytes).collect();
        assert_eq!(
            stats(DType::I16, &shorts).percentiles,
            [-49.0, -45.0, -25.0, 0.0, 25.0, 45.0, 49.0]
        );
    }

    #[test]
    fn every_type_that_has_an_order() {
        for dtype in DType::ALL {
            let bits = dtype.bits().unwrap_or_default() as usize;
            let found = Stats::read(dtype, &vec![0; bits / 8 * 3][..]).unwrap();
            let has_order = !matches!(dtype, DType::I4 | DType::U4 | DType::Str);
            assert_eq!(found.is_some(), has_order, "{dtype}");
            assert!(
                found.is_none_or(|found| found.zeros == 3 && found.mean == Some(0.0)),
                "{dtype}"
            );
        }
    }
}
