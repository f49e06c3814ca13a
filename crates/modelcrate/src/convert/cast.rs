//! Elements of one type as those of another that has room for them.

use half::f16;
use tensor_core::{DType, F8E4M3, F8E5M2};

/// Turns elements of a type into those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cast {
    pub(super) from: DType,
    pub(super) to: DType,
}

impl Cast {
    /// Finds the nearest type that a target has; `None` where nothing comes near.
    pub(super) fn nearest(from: DType, has: impl Fn(DType) -> bool) -> Option<Self> {
        let near: &[DType] = match from {
            DType::Bool => &[DType::U8, DType::I8],
            DType::I4 => &[DType::I8],
            DType::U4 => &[DType::U8, DType::I8],
            DType::U8 => &[DType::I16],
            DType::U16 => &[DType::I32],
            DType::U32 | DType::U64 => &[DType::I64],
            DType::F8E4M3 | DType::F8E5M2 => &[DType::F16],
            DType::F16 | DType::BF16 | DType::F64 => &[DType::F32],
            DType::I64 => &[DType::I32],
            DType::C128 => &[DType::C64],
            _ => &[],
        };
        near.iter().find(|to| has(**to)).map(|to| Self { from, to: *to })
    }

    /// Says what that does.
    pub(super) fn effect(self) -> String {
        let Self { from, to } = self;
        let loss = match from {
            DType::I64 | DType::U64 => "values that do not fit are refused",
            DType::F64 | DType::C128 => "loses precision; values that do not fit are refused",
            _ => "values stay",
        };
        format!("{from} as {to}, {loss}")
    }

    /// Returns how many elements some bytes hold.
    pub(super) fn elements_of(self, bytes: u64) -> u64 {
        let bits = u64::from(self.from.bits().unwrap_or(8));
        bytes.saturating_mul(8).checked_div(bits).unwrap_or_default()
    }

    /// Returns so many elements as bytes of the other type.
    pub(super) fn apply(self, bytes: &[u8], elements: u64) -> Result<Vec<u8>, OutOfRange> {
        let to = usize::try_from(self.to.width().unwrap_or(1)).unwrap_or(1);
        Ok(match self.from {
            DType::I4 | DType::U4 => self.nibbles(bytes, elements),
            DType::U8 => widened::<1>(bytes, to),
            DType::U16 => widened::<2>(bytes, to),
            DType::U32 => widened::<4>(bytes, to),
            DType::U64 => match bytes.as_chunks::<8>().0.iter().position(|e| e[7] > 127) {
                Some(index) => return Err(OutOfRange { index: index as u64 }),
                None => bytes.to_vec(),
            },
            DType::I64 => {
                let (elements, _) = bytes.as_chunks::<8>();
                let whole = elements.iter().map(|e| i32::try_from(i64::from_le_bytes(*e)));
                let whole: Vec<_> = whole.collect();
                if let Some(index) = whole.iter().position(Result::is_err) {
                    return Err(OutOfRange { index: index as u64 });
                }
                whole.into_iter().flatten().flat_map(i32::to_le_bytes).collect()
            }
            DType::F16 => {
                let (elements, _) = bytes.as_chunks::<2>();
                elements
                    .iter()
                    .flat_map(|e| f16::from_le_bytes(*e).to_f32().to_le_bytes())
                    .collect()
            }
            DType::F8E4M3 => halves(bytes, |bits| F8E4M3::from_bits(bits).to_f32()),
            DType::F8E5M2 => halves(bytes, |bits| F8E5M2::from_bits(bits).to_f32()),
            DType::BF16 => bytes
                .as_chunks::<2>()
                .0
                .iter()
                .flat_map(|[low, high]| [0, 0, *low, *high])
                .collect(),
            DType::F64 => singles(bytes)?,
            DType::C128 => {
                singles(bytes).map_err(|OutOfRange { index }| OutOfRange { index: index / 2 })?
            }
            DType::Bool => {
                only_bools(bytes)?;
                bytes.to_vec()
            }
            _ => bytes.to_vec(),
        })
    }

    /// Gives each element a byte.
    fn nibbles(self, bytes: &[u8], elements: u64) -> Vec<u8> {
        let extended = |code: u8| match self.from {
            DType::I4 if code > 7 => code | 0xf0,
            _ => code,
        };
        let all = bytes.iter().flat_map(|byte| [extended(byte & 15), extended(byte >> 4)]);
        all.take(usize::try_from(elements).unwrap_or(usize::MAX)).collect()
    }
}

/// An element that the other type does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfRange {
    /// Its position among those that were given.
    pub(super) index: u64,
}

/// Looks for a truth value that is neither 0 nor 1.
pub(super) fn only_bools(bytes: &[u8]) -> Result<(), OutOfRange> {
    match bytes.iter().position(|byte| *byte > 1) {
        Some(index) => Err(OutOfRange { index: index as u64 }),
        None => Ok(()),
    }
}

/// Rounds numbers; those that are not finite stay so.
fn singles(bytes: &[u8]) -> Result<Vec<u8>, OutOfRange> {
    let mut singles = Vec::with_capacity(bytes.len() / 2);
    for (number, index) in bytes.as_chunks().0.iter().zip(0..) {
        let number = f64::from_le_bytes(*number);
        #[expect(clippy::cast_possible_truncation, reason = "rounded, as is said before")]
        let single = number as f32;
        if single.is_infinite() && number.is_finite() {
            return Err(OutOfRange { index });
        }
        singles.extend_from_slice(&single.to_le_bytes());
    }
    Ok(singles)
}

/// Fills whole numbers without a sign up with zeros.
fn widened<const N: usize>(bytes: &[u8], width: usize) -> Vec<u8> {
    let zeros = std::iter::repeat_n(0, width.saturating_sub(N));
    bytes.as_chunks::<N>().0.iter().flat_map(|e| e.iter().copied().chain(zeros.clone())).collect()
}

fn halves(bytes: &[u8], value: impl Fn(u8) -> f32) -> Vec<u8> {
    bytes.iter().flat_map(|bits| f16::from_f32(value(*bits)).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use tensor_core::{TensorBuf, TensorView};

    use super::*;

    fn cast(from: DType, to: DType, elements: u64, bytes: &[u8]) -> TensorBuf {
        let cast = Cast::nearest(from, |dtype| dtype == to).unwrap();
        TensorBuf::new(to, [elements], cast.apply(bytes, elements).unwrap()).unwrap()
    }

    #[test]
    fn values_stay() {
        let whole = cast(DType::U8, DType::I16, 2, &[1, 255]);
        assert_eq!(whole.as_slice::<i16>().unwrap(), [1, 255]);
        let whole = cast(DType::U16, DType::I32, 1, &[0xff, 0xff]);
        assert_eq!(whole.as_slice::<i32>().unwrap(), [65535]);
        let whole = cast(DType::U32, DType::I64, 1, &[0xff; 4]);
        assert_eq!(whole.as_slice::<i64>().unwrap(), [i64::from(u32::MAX)]);
        let codes = cast(DType::I4, DType::I8, 3, &[0x8f, 0x07]);
        assert_eq!(codes.as_slice::<i8>().unwrap(), [-1, -8, 7]);
        let codes = cast(DType::U4, DType::I8, 3, &[0x8f, 0x07]);
        assert_eq!(codes.as_slice::<i8>().unwrap(), [15, 8, 7]);
        let all: Vec<u8> = (0..=255).collect();
        for dtype in [DType::F8E4M3, DType::F8E5M2] {
            let halves = cast(dtype, DType::F16, 256, &all).to_f32().unwrap();
            let expected = TensorView::new(dtype, [256], &all).unwrap().to_f32().unwrap();
            let same = |(half, single): (&f32, &f32)| {
                half.to_bits() == single.to_bits() || half.is_nan() && single.is_nan()
            };
            assert!(halves.iter().zip(&expected).all(same), "{dtype}");
        }
        let single = cast(DType::BF16, DType::F32, 1, &[0x80, 0x3f]);
        assert_eq!(single.as_slice::<f32>().unwrap(), [1.0]);
        let complex = [0.1_f64, -2.0].map(f64::to_le_bytes);
        let complex = cast(DType::C128, DType::C64, 1, complex.as_flattened());
        assert_eq!(complex.as_slice::<[f32; 2]>().unwrap(), [[0.1, -2.0]]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let cast = Cast::nearest(DType::U64, |_| true).unwrap();
        let bytes = [i64::MAX as u64, 1 << 63].map(u64::to_le_bytes);
        assert_eq!(cast.apply(bytes.as_flattened(), 2), Err(OutOfRange { index: 1 }));
        assert_eq!(cast.apply(&bytes[0], 1).unwrap(), bytes[0]);
        let cast = Cast::nearest(DType::Bool, |_| true).unwrap();
        assert_eq!(cast.apply(&[1, 0, 2], 3), Err(OutOfRange { index: 2 }));
        // The last number that is rounded down to the largest, and the first that is not.
        let most = f64::from(f32::MAX).to_bits() + (1 << 28);
        let [fits, over] = [most - 1, most].map(f64::from_bits);
        let cast = Cast::nearest(DType::F64, |_| true).unwrap();
        let rounded = [fits, f64::INFINITY].map(f64::to_le_bytes);
        let expected = [f32::MAX, f32::INFINITY].map(f32::to_le_bytes);
        assert_eq!(cast.apply(rounded.as_flattened(), 2).unwrap(), expected.as_flattened());
        let bytes = [f64::NAN, 0.0, 1.0, -over].map(f64::to_le_bytes);
        assert_eq!(cast.apply(bytes.as_flattened(), 4), Err(OutOfRange { index: 3 }));
        let cast = Cast::nearest(DType::C128, |_| true).unwrap();
        assert_eq!(cast.apply(bytes.as_flattened(), 2), Err(OutOfRange { index: 1 }));
    }
}
