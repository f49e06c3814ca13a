use std::io::{self, Read};

use tensor_core::{
    DType, F8E4M3, F8E5M2,
    float16::{bf16_to_f32, f16_to_f32},
};

/// The range and the mean of the elements of a tensor, computed in `f64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// The smallest finite element; `None` where there is none.
    pub min: Option<f64>,
    /// The largest finite element; `None` where there is none.
    pub max: Option<f64>,
    /// The mean of the finite elements; `None` where there is none.
    pub mean: Option<f64>,
    /// How many elements are NaN.
    pub nan: u64,
    /// How many elements are infinite.
    pub infinite: u64,
    /// How many elements are zero.
    pub zeros: u64,
}

impl Stats {
    /// Reads little-endian elements to the end of a stream, in memory that does not grow with their
    /// number; `None` for element types that have no order.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub fn read(dtype: DType, mut stream: impl Read) -> io::Result<Option<Self>> {
        let Some((width, number)) = reader_of(dtype) else { return Ok(None) };
        let mut stats = Running::default();
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
                return Ok(Some(stats.finish()));
            }
            for element in chunk.get(..filled).unwrap_or_default().chunks_exact(width) {
                stats.add(number(element));
            }
        }
    }
}

#[derive(Default)]
struct Running {
    stats: Stats,
    sum: f64,
    finite: u64,
}

impl Running {
    fn add(&mut self, value: f64) {
        let stats = &mut self.stats;
        if value.is_finite() {
            stats.min = Some(stats.min.map_or(value, |min| min.min(value)));
            stats.max = Some(stats.max.map_or(value, |max| max.max(value)));
            self.sum += value;
            self.finite = self.finite.saturating_add(1);
        }
        let count = |is: bool, count: &mut u64| *count = count.saturating_add(u64::from(is));
        count(value.is_nan(), &mut stats.nan);
        count(value.is_infinite(), &mut stats.infinite);
        count(value == 0.0, &mut stats.zeros);
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean is not exact")]
    fn finish(mut self) -> Stats {
        if self.finite > 0 {
            self.stats.mean = Some(self.sum / self.finite as f64);
        }
        self.stats
    }
}

/// Reads one element as a number.
type Number = fn(&[u8]) -> f64;

/// Returns the width of an element in bytes, and what turns its bytes into a number.
#[expect(clippy::cast_precision_loss, reason = "statistics are in f64")]
fn reader_of(dtype: DType) -> Option<(usize, Number)> {
    fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
        // Callers pass exactly as many bytes as the element has.
        bytes.first_chunk().copied().unwrap_or([0; N])
    }
    Some(match dtype {
        DType::Bool | DType::U8 => (1, |b| u8::from_le_bytes(first(b)).into()),
        DType::I8 => (1, |b| i8::from_le_bytes(first(b)).into()),
        DType::U16 => (2, |b| u16::from_le_bytes(first(b)).into()),
        DType::I16 => (2, |b| i16::from_le_bytes(first(b)).into()),
        DType::U32 => (4, |b| u32::from_le_bytes(first(b)).into()),
        DType::I32 => (4, |b| i32::from_le_bytes(first(b)).into()),
        DType::U64 => (8, |b| u64::from_le_bytes(first(b)) as f64),
        DType::I64 => (8, |b| i64::from_le_bytes(first(b)) as f64),
        DType::F8E4M3 => (1, |b| F8E4M3::from_bits(u8::from_le_bytes(first(b))).into()),
        DType::F8E5M2 => (1, |b| F8E5M2::from_bits(u8::from_le_bytes(first(b))).into()),
        DType::F16 => (2, |b| f16_to_f32(u16::from_le_bytes(first(b))).into()),
        DType::BF16 => (2, |b| bf16_to_f32(u16::from_le_bytes(first(b))).into()),
        DType::F32 => (4, |b| f32::from_le_bytes(first(b)).into()),
        DType::F64 => (8, |b| f64::from_le_bytes(first(b))),
        _ => return None,
    })
}

const CHUNK: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finite_elements_make_the_range() {
        let values = [1.0_f32, -3.0, f32::NAN, f32::INFINITY, 0.0];
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let stats = Stats::read(DType::F32, &bytes[..]).unwrap().unwrap();
        assert_eq!((stats.min, stats.max), (Some(-3.0), Some(1.0)));
        assert_eq!((stats.nan, stats.infinite, stats.zeros), (1, 1, 1));
        assert!((stats.mean.unwrap() + 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_has_no_range() {
        let stats = Stats::read(DType::U8, &[][..]).unwrap().unwrap();
        assert_eq!(stats, Stats::default());
        assert_eq!(Stats::read(DType::C64, &[][..]).unwrap(), None);
    }
}
