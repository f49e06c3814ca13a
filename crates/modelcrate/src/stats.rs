use std::io::{self, Read};

use tensor_core::{
    DType, F8E4M3, F8E5M2,
    float16::{bf16_to_f32, f16_to_f32},
};

/// What the elements of a tensor are like. Of complex elements it is what their magnitudes are like.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// How many elements there are.
    pub count: u64,
    /// The smallest finite element; `None` where there is none.
    pub min: Option<Number>,
    /// The largest finite element; `None` where there is none.
    pub max: Option<Number>,
    /// The mean of the finite elements; `None` where there is none.
    pub mean: Option<f64>,
    /// How far the finite elements are from their mean: the square root of the mean of the squares.
    /// `None` where there is none.
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
    /// number; `None` for texts. `elements` says how many there are, as half of the last byte of those
    /// of 4 bits may be none.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub fn read(dtype: DType, elements: u64, mut stream: impl Read) -> io::Result<Option<Self>> {
        let mut tables = Tables::default();
        let Some(mut running) = Running::new(dtype, elements, &mut tables) else {
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

/// What elements are counted in, for one tensor after the other.
#[derive(Default)]
pub(crate) struct Tables {
    /// How many elements have each of the patterns of 16 bits: all of their own, or of finite ones the
    /// upper half of the `f32` that is nearest to them; of finite `f64` the upper 19 bits.
    counts: Vec<u64>,
    /// The same of `f32` that came last, apart for those at even and at odd places, so that equal
    /// neighbours do not wait for each other.
    recent: Vec<[u32; PATTERNS]>,
    /// Whether counts are there that were not taken.
    is_used: bool,
}

impl Tables {
    fn prepare(&mut self, dtype: DType) {
        if std::mem::replace(&mut self.is_used, true) {
            self.counts.fill(0);
            self.recent.iter_mut().for_each(|counts| counts.fill(0));
        }
        let patterns = patterns(dtype).max(self.counts.len());
        self.counts.resize(patterns, 0);
        if dtype == DType::F32 && self.recent.is_empty() {
            self.recent = vec![[0; PATTERNS]; 2];
        }
    }

    /// Adds the counts of small tables, which are in the cache, to those that do not overflow.
    fn settle(&mut self) {
        for recent in &mut self.recent {
            let groups = self.counts.chunks_mut(GROUP).zip(recent.chunks_mut(GROUP));
            for (counts, recent) in groups.filter(|(_, recent)| is_counted(recent)) {
                for (count, recent) in counts.iter_mut().zip(recent) {
                    *count = count.wrapping_add(std::mem::take(recent).into());
                }
            }
        }
    }

    /// Returns which patterns there were, and how often; all are zero again.
    fn take(&mut self, dtype: DType) -> Vec<(u32, u64)> {
        self.settle();
        self.is_used = false;
        let mut found = Vec::new();
        let groups = self.counts.chunks_mut(GROUP).take(patterns(dtype).div_ceil(GROUP));
        for (group, first) in groups.zip((0_u32..).step_by(GROUP)) {
            if !is_counted(group) {
                continue;
            }
            let counts = (first..).zip(group).filter(|(_, count)| **count > 0);
            found.extend(counts.map(|(pattern, count)| (pattern, std::mem::take(count))));
        }
        found
    }
}

/// Tells whether a count is not zero; looks at many at once.
fn is_counted<T: Copy + Into<u64>>(group: &[T]) -> bool {
    group.iter().fold(0_u64, |all, count| all | (*count).into()) != 0
}

/// What is known of the elements so far.
pub(crate) struct Running<'t> {
    dtype: DType,
    /// Elements of 4 bits that are still to come.
    left: u64,
    count: u64,
    tables: &'t mut Tables,
    /// How many elements are counted in [`Tables::recent`].
    unsettled: usize,
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

impl<'t> Running<'t> {
    pub(crate) fn new(dtype: DType, elements: u64, tables: &'t mut Tables) -> Option<Self> {
        dtype.bits()?;
        tables.prepare(dtype);
        Some(Self {
            dtype,
            left: elements,
            count: 0,
            tables,
            unsettled: 0,
            nan: 0,
            infinite: 0,
            zeros: 0,
            min: None,
            max: None,
            moments: Moments::default(),
            sum: 0,
        })
    }

    /// Adds a chunk of whole elements.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let width = self.dtype.width().unwrap_or(1);
        let elements = (bytes.len() as u64).checked_div(width).unwrap_or_default();
        self.count = self.count.saturating_add(elements);
        match self.dtype {
            DType::I4 | DType::U4 => self.halves(bytes),
            DType::F32 => self.floats(bytes),
            DType::F64 => self.doubles(bytes.as_chunks::<8>().0, |b| f64::from_le_bytes(*b)),
            // As f64: the magnitude of the largest elements is beyond f32.
            DType::C64 => self.doubles(bytes.as_chunks::<8>().0, |&[a, b, c, d, e, f, g, h]| {
                let (real, imaginary) = ([a, b, c, d], [e, f, g, h]);
                f64::from(f32::from_le_bytes(real)).hypot(f32::from_le_bytes(imaginary).into())
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

    fn count(&mut self, pattern: u16) {
        tally(&mut self.tables.counts, pattern.into());
    }

    /// Adds elements of 4 bits, as far as there are some left.
    fn halves(&mut self, bytes: &[u8]) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let halves = bytes.iter().flat_map(|byte| [byte & 0xf, byte >> 4]).take(left);
        let mut taken = 0_u64;
        for half in halves {
            let is_negative = self.dtype == DType::I4 && half > 7;
            tally(
                &mut self.tables.counts,
                usize::from(if is_negative { half | 0xf0 } else { half }),
            );
            taken = taken.saturating_add(1);
        }
        self.left = self.left.saturating_sub(taken);
        self.count = self.count.saturating_sub(bytes.len() as u64).saturating_add(taken);
    }

    /// Adds elements of 32 bits, a block at a time that stays in the cache.
    fn floats(&mut self, bytes: &[u8]) {
        let as_they_are = bytemuck::try_cast_slice(bytes).ok();
        if let Some(elements) = as_they_are.filter(|_| cfg!(target_endian = "little")) {
            elements.chunks(BLOCK).for_each(|block| self.block(block));
            return;
        }
        let mut block = Vec::with_capacity(BLOCK);
        for now in bytes.as_chunks::<4>().0.chunks(BLOCK) {
            block.clear();
            block.extend(now.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            self.block(&block);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean is not exact")]
    fn block(&mut self, block: &[f32]) {
        let finite: Vec<f32>;
        let block = if self.has_range_of(block) {
            block
        } else {
            let found = block.iter().copied();
            finite = found.filter(|value| self.is_finite(f64::from(*value))).collect();
            self.widen(&finite);
            &finite
        };
        if block.is_empty() {
            return;
        }
        let count = block.len() as f64;
        // Neither sums nor squares of `f32` are beyond `f64`.
        let [sum, squares] = self.tally_floats(block);
        let mean = sum / count;
        let around = squares - sum * mean;
        let is_near = around < squares * NEAR;
        let sum = if is_near { lanes(block, |x| (x - mean) * (x - mean)) } else { around };
        let squares = Squares { sum, unit: 1.0 };
        self.moments.merge(Moments { count: block.len() as u64, mean, squares });
    }

    /// Tells whether all elements are in the range of those before; none that is not finite is.
    #[expect(clippy::cast_possible_truncation, reason = "both were `f32`")]
    fn has_range_of(&self, block: &[f32]) -> bool {
        let Some((min, max)) = self.min.zip(self.max) else {
            return false;
        };
        let (min, max) = (min.to_f64() as f32, max.to_f64() as f32);
        // The processor looks at many at once where there is no way out before the last.
        let are_inside = |few: &[f32]| {
            few.iter().fold(true, |others, value| others & (*value >= min) & (*value <= max))
        };
        let (chunks, rest) = block.as_chunks::<32>();
        chunks.iter().all(|chunk| are_inside(chunk)) && are_inside(rest)
    }

    /// Widens the range to that of finite elements.
    #[inline(never)]
    fn widen(&mut self, block: &[f32]) {
        let Some(first) = block.first() else { return };
        let (mut low, mut high) = ([*first; 16], [*first; 16]);
        let (chunks, rest) = block.as_chunks::<16>();
        for chunk in chunks {
            for ((low, high), value) in low.iter_mut().zip(&mut high).zip(chunk) {
                // As the processor compares many at once, where none is NaN.
                *low = if *low < *value { *low } else { *value };
                *high = if *high > *value { *high } else { *value };
            }
        }
        for value in low.into_iter().chain(high).chain(rest.iter().copied()) {
            self.range(Number::Float(value.into()), Number::Float(value.into()));
        }
    }

    /// Counts elements, and returns their sum and that of their squares: while the processor waits for
    /// the tables, it adds.
    fn tally_floats(&mut self, block: &[f32]) -> [f64; 2] {
        let [even, odd] = self.tables.recent.as_mut_slice() else { return [0.0; 2] };
        let before = [smallest(even), smallest(odd)];
        let (mut sums, mut squares) = ([0.0; 8], [0.0; 8]);
        let mut add = |few: &[f32]| {
            for ((sum, square), value) in sums.iter_mut().zip(&mut squares).zip(few) {
                let value = f64::from(*value);
                *sum += value;
                *square += value * value;
            }
        };
        // Both halves are loaded as such: what the processor adds with is not what it counts with.
        let halves: &[[u16; 2]] = bytemuck::must_cast_slice(block);
        let (chunks, rest) = block.as_chunks::<8>();
        let (counted, last) = halves.as_chunks::<8>();
        for (chunk, halves) in chunks.iter().zip(counted) {
            for [one, other] in halves.as_chunks::<2>().0 {
                tally_upper(even, *one);
                tally_upper(odd, *other);
            }
            add(chunk);
        }
        last.iter().for_each(|halves| tally_upper(even, *halves));
        add(rest);
        if before != [smallest(even), smallest(odd)] {
            let zeros = block.iter().filter(|value| **value == 0.0).count();
            self.zeros = self.zeros.wrapping_add(zeros as u64);
        }
        self.unsettled = self.unsettled.saturating_add(block.len());
        if self.unsettled > MANY {
            self.tables.settle();
            self.unsettled = 0;
        }
        [sums.iter().sum(), squares.iter().sum()]
    }

    fn doubles<const N: usize>(&mut self, elements: &[[u8; N]], number: impl Fn(&[u8; N]) -> f64) {
        let mut block = Vec::with_capacity(BLOCK);
        for now in elements.chunks(BLOCK) {
            block.clear();
            block.extend(now.iter().map(&number).filter(|value| self.is_finite(*value)));
            for value in block.iter().copied() {
                self.zeros = self.zeros.wrapping_add(u64::from(value == 0.0));
                tally(&mut self.tables.counts, upper_bits(value));
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
        let (low, high) = (low.without_sign_of_zero(), high.without_sign_of_zero());
        if self.min.is_none_or(|min| low.is_less(min)) {
            self.min = Some(low);
        }
        if self.max.is_none_or(|max| max.is_less(high)) {
            self.max = Some(high);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean is not exact")]
    pub(crate) fn finish(mut self) -> Stats {
        let (mut finite, pattern) = (Vec::new(), pattern_of(self.dtype));
        for (bits, count) in self.tables.take(self.dtype) {
            match pattern.zip(u16::try_from(bits).ok()) {
                // All that is known of smaller elements are these counts.
                Some((number, bits)) => self.repeated(number(bits), count, &mut finite),
                None if is_wide(self.dtype) => finite.push((middle_of_wide(bits), count)),
                None => finite.push((middle(bits), count)),
            }
        }
        finite.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        if pattern.is_some() {
            self.moments = Moments::of(&finite);
        }
        let (Some(min), Some(max)) = (self.min, self.max) else {
            let Self { count, nan, infinite, .. } = self;
            return Stats { count, nan, infinite, ..Stats::default() };
        };
        for (value, _) in &mut finite {
            // A zero has no sign.
            *value = value.clamp(min.to_f64(), max.to_f64()) + 0.0;
        }
        let of_integers = matches!(min, Number::Integer(_));
        let mean = if of_integers {
            self.sum as f64 / self.moments.count as f64
        } else {
            self.moments.mean
        };
        let std = self.moments.deviation();
        Stats {
            count: self.count,
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
    fn without_sign_of_zero(self) -> Self {
        match self {
            Self::Float(value) => Self::Float(value + 0.0),
            integer => integer,
        }
    }

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
    squares: Squares,
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
        Self { count, mean, squares: Squares { sum: squares.sum(), unit: 1.0 } }
    }

    #[expect(clippy::cast_precision_loss, reason = "a block is small")]
    fn add<T: Copy + Into<f64>>(&mut self, block: &[T]) {
        let count = block.len() as f64;
        // In lanes, as the processor adds.
        let mean = lanes(block, |x| x) / count;
        // The sum of a few large numbers is beyond f64, each divided it is not.
        let mean = if mean.is_finite() { mean } else { lanes(block, |x| x / count) };
        if !block.is_empty() {
            self.merge(Self { count: block.len() as u64, mean, squares: Squares::of(block, mean) });
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "weights are not exact")]
    fn merge(&mut self, other: Self) {
        let count = self.count.saturating_add(other.count);
        let (own, others) = (self.count as f64 / count as f64, other.count as f64 / count as f64);
        let mut between = Squares::of(&[other.mean], self.mean);
        between.sum *= own * other.count as f64;
        self.squares = self.squares.and(other.squares).and(between);
        self.mean =
            if self.mean == other.mean { self.mean } else { self.mean * own + other.mean * others };
        self.count = count;
    }

    #[expect(clippy::cast_precision_loss, reason = "a deviation is not exact")]
    fn deviation(&self) -> f64 {
        (self.squares.sum / self.count as f64).sqrt() * self.squares.unit
    }
}

/// A sum of squares, in units in which it is neither too large for `f64` nor too small.
#[derive(Clone, Copy)]
struct Squares {
    sum: f64,
    /// A power of two; the sum is counted in squares of it.
    unit: f64,
}

impl Squares {
    /// Sums the squares of the distances from a number.
    fn of<T: Copy + Into<f64>>(block: &[T], from: f64) -> Self {
        let square = |distance: f64| distance * distance;
        match lanes(block, |x| square(x - from)) {
            sum if sum < LEAST => {
                Self { sum: lanes(block, |x| square((x - from) / SMALL)), unit: SMALL }
            }
            sum if sum.is_finite() => Self { sum, unit: 1.0 },
            // Divided first, as a distance may be beyond f64 too.
            _ => Self { sum: lanes(block, |x| square(x / LARGE - from / LARGE)), unit: LARGE },
        }
    }

    fn and(self, other: Self) -> Self {
        let (large, small) = if self.unit < other.unit { (other, self) } else { (self, other) };
        let ratio = small.unit / large.unit;
        Self { sum: large.sum + small.sum * ratio * ratio, unit: large.unit }
    }
}

impl Default for Squares {
    fn default() -> Self {
        Self { sum: 0.0, unit: SMALL }
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

/// Counts the upper of the halves of an element.
fn tally_upper(counts: &mut [u32; PATTERNS], [first, second]: [u16; 2]) {
    let upper = if cfg!(target_endian = "little") { second } else { first };
    if let Some(count) = counts.get_mut(usize::from(upper)) {
        *count = count.wrapping_add(1);
    }
}

/// Returns how many elements are zeros of either sign, or so small that they look alike.
const fn smallest(counts: &[u32; PATTERNS]) -> [u32; 2] {
    [counts[0], counts[0x8000]]
}

/// Counts one more in a table that has every pattern.
fn tally(counts: &mut [u64], pattern: usize) {
    if let Some(count) = counts.get_mut(pattern) {
        *count = count.wrapping_add(1);
    }
}

/// Returns the elements below which so many of a hundred are.
fn percentiles(sorted: &[(f64, u64)]) -> Vec<f64> {
    let total: u64 = sorted.iter().map(|(_, count)| count).sum();
    // Rounded up, in whole numbers, as a rank must not be one too high.
    let rank = |percent: u64| {
        let hundredths = u128::from(percent).saturating_mul(total.into());
        u64::try_from(hundredths.div_ceil(100)).unwrap_or(total).max(1)
    };
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
        DType::Bool | DType::U4 | DType::U8 | DType::U16 => |bits| Number::Integer(bits.into()),
        DType::I4 | DType::I8 => |bits| Number::Integer(low(bits).cast_signed().into()),
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
fn middle(upper: u32) -> f64 {
    let lower = if upper & 0x7fff == 0 { 0 } else { 0x8000 };
    f32::from_bits(upper << 16 | lower).into()
}

/// Tells whether elements are counted by the upper bits of `f64`.
const fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::C64 | DType::C128)
}

/// Returns the sign, the exponent and 7 bits of the mantissa.
fn upper_bits(value: f64) -> usize {
    usize::try_from(value.to_bits() >> 45).unwrap_or_default()
}

/// Returns the middle of the numbers that have such [`upper_bits`]; of the least, zero.
fn middle_of_wide(upper: u32) -> f64 {
    let lower = if upper & 0x3_ffff == 0 { 0 } else { 1 << 44 };
    f64::from_bits(u64::from(upper) << 45 | lower)
}

const PERCENTS: [u64; 7] = [1, 5, 25, 50, 75, 95, 99];

const BINS: usize = 32;

const CHUNK: usize = 64 << 10;

/// How many patterns of 16 bits there are.
const PATTERNS: usize = 1 << 16;

/// Returns how many patterns a type has, of those that are counted.
const fn patterns(dtype: DType) -> usize {
    match dtype.bits() {
        Some(0..=8) => 1 << 8,
        _ if is_wide(dtype) => 1 << 19,
        _ => PATTERNS,
    }
}

/// Counts that are looked at at once.
const GROUP: usize = 64;

/// So many elements a `u32` counts without doubt.
const MANY: usize = 1 << 31;

/// Where squares around a mean are a smaller part of those around zero, too few digits are left of
/// them: 2<sup>-20</sup>.
const NEAR: f64 = f64::from_bits(1003 << 52);

/// 2<sup>-900</sup>: a sum of squares that is less may have lost some.
const LEAST: f64 = f64::from_bits(123 << 52);

/// 2<sup>-600</sup>.
const SMALL: f64 = f64::from_bits(423 << 52);

/// 2<sup>600</sup>.
const LARGE: f64 = f64::from_bits(1623 << 52);

/// Elements that are looked at several times while they are in the cache.
const BLOCK: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    fn stats<const N: usize>(dtype: DType, elements: &[[u8; N]]) -> Stats {
        Stats::read(dtype, elements.len() as u64, elements.as_flattened()).unwrap().unwrap()
    }

    fn floats(values: &[f32]) -> Stats {
        stats(DType::F32, &values.iter().map(|value| value.to_le_bytes()).collect::<Vec<_>>())
    }

    #[test]
    fn zeros_have_no_sign() {
        let found = floats(&[-1e-45, -0.0, 1.0]);
        assert!(found.percentiles.iter().take(2).all(|value| value.to_bits() == 0));
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
        assert_eq!(Stats::read(DType::Str, 0, &[][..]).unwrap(), None);
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
    fn deviations_of_every_size() {
        for size in [5e-324, 1e-300, 1e-160, 1.0, 1e160, 1e300, f64::MAX / 2.0] {
            // The distances are 2, 0, 1 and 1, of many blocks.
            let values = [-2.0, 0.0, -1.0, -1.0].map(|value: f64| (value * size).to_le_bytes());
            let found = stats(DType::F64, &values.repeat(BLOCK));
            let std = found.std.unwrap() / size;
            let exact = if size < 1e-320 { 1.0 } else { 0.5_f64.sqrt() };
            assert!((std - exact).abs() < 1e-12, "{size}: {std}");
        }
        // The means of the blocks are apart, too.
        let values = [[0.0_f64; BLOCK], [2e-200_f64; BLOCK]].concat();
        let found = stats(DType::F64, &values.iter().map(|x| x.to_le_bytes()).collect::<Vec<_>>());
        assert!((found.std.unwrap() / 1e-200 - 1.0).abs() < 1e-12, "{found:?}");
        assert_eq!(stats(DType::F64, &[1e300_f64.to_le_bytes(); 3]).std, Some(0.0));
    }

    #[test]
    fn deviations_far_from_zero() {
        for far in [1.0_f32, 1e3, 1e6, -8e6] {
            let values = [[far, far + 1.0]; 3 * BLOCK / 2];
            let found = floats(values.as_flattened());
            assert!((found.std.unwrap() - 0.5).abs() < 1e-10, "{far}: {found:?}");
        }
        let values: Vec<f32> = (0..BLOCK * 2).map(|at| 1e-40 * (at % 3) as f32).collect();
        assert!((floats(&values).std.unwrap() / 8.165e-41 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn tables_are_empty_for_the_next_tensor() {
        fn running<'t>(dtype: DType, bytes: &[u8], tables: &'t mut Tables) -> Running<'t> {
            let mut running = Running::new(dtype, 2, tables).unwrap();
            running.add(bytes);
            running
        }
        let mut tables = Tables::default();
        let elements =
            |values: [f32; 2]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
        // Of a tensor that could not be read to its end.
        running(DType::F32, &elements([5.0, 7.0]), &mut tables);
        running(DType::F64, &[1; 16], &mut tables);
        for _ in 0..2 {
            let found = running(DType::F32, &elements([1.0, 2.0]), &mut tables).finish();
            assert_eq!(found.histogram.iter().sum::<u64>(), 2, "{found:?}");
            let found = running(DType::U8, &[3, 3], &mut tables).finish();
            assert_eq!(found.percentiles, [3.0; 7]);
        }
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
            let exact = *percent as f64 * 100.0 - 5001.0;
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
            let found = Stats::read(dtype, 3, &vec![0; (bits * 3).div_ceil(8)][..]).unwrap();
            assert_eq!(found.is_some(), dtype != DType::Str, "{dtype}");
            let zeros = found
                .is_none_or(|found| (found.count, found.zeros, found.mean) == (3, 3, Some(0.0)));
            assert!(zeros, "{dtype}");
        }
    }

    #[test]
    fn halves_of_bytes() {
        // -1, 1, -8 and a half that is none.
        let found = Stats::read(DType::I4, 3, &[0x1f, 0x78][..]).unwrap().unwrap();
        assert_eq!((found.min, found.max), (Some(Number::Integer(-8)), Some(Number::Integer(1))));
        assert_eq!((found.count, found.histogram.iter().sum::<u64>()), (3, 3));
        let found = Stats::read(DType::U4, 2, &[0x1f][..]).unwrap().unwrap();
        assert_eq!((found.min, found.max), (Some(Number::Integer(1)), Some(Number::Integer(15))));
    }

    #[test]
    fn percentiles_beyond_single_precision() {
        let values: Vec<[u8; 8]> =
            (1..=1000_u16).map(|value| (f64::from(value) * 1e200).to_le_bytes()).collect();
        let found = stats(DType::F64, &values);
        assert!((found.percentiles[3] / 5e202 - 1.0).abs() < 0.004, "{found:?}");
        let small: Vec<[u8; 8]> =
            (1..=1000_u16).map(|value| (f64::from(value) * -1e-200).to_le_bytes()).collect();
        let found = stats(DType::F64, &small);
        assert!((found.percentiles[3] / -5.01e-198 - 1.0).abs() < 0.004, "{found:?}");
        let complex = [[f32::MAX, f32::MAX]].map(|pair| {
            let [[a, b, c, d], [e, f, g, h]] = pair.map(f32::to_le_bytes);
            [a, b, c, d, e, f, g, h]
        });
        let found = stats(DType::C64, &complex);
        assert_eq!((found.infinite, found.mean.is_some()), (0, true));
    }

    #[test]
    fn zero_has_no_sign() {
        let text = serde_json::to_string(&floats(&[-0.0, 0.0])).unwrap();
        assert!(text.contains("\"min\":0.0,\"max\":0.0"), "{text}");
    }

    #[test]
    fn ranks_are_not_one_too_high() {
        let values: Vec<[u8; 2]> = (1..=300_u16).map(u16::to_le_bytes).collect();
        let found = stats(DType::U16, &values);
        assert_eq!(found.percentiles, [3.0, 15.0, 75.0, 150.0, 225.0, 285.0, 297.0]);
    }
}
