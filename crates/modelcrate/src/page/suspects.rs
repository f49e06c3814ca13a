//! Tensors that someone should look at.

use std::collections::HashMap;

use tensor_core::{DType, digest::Digest};

use crate::{AnyReader, AnyTensor, Result, Stats, Summary, TensorSummary, hash::digest};

/// A tensor that someone should look at, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suspect {
    /// Which it is, among the tensors of the summary.
    pub tensor: usize,
    /// Why, the gravest first.
    pub suspicions: Vec<Suspicion>,
}

/// What is unusual about a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Suspicion {
    /// So many elements are NaN.
    Nan(u64),
    /// So many elements are infinite.
    Infinite(u64),
    /// All elements are zero, of several.
    Zero,
    /// All elements are one number that is not zero, of several.
    Constant,
    /// At least one of a hundred elements stands at an end of what its type can hold, as where values
    /// were cut off.
    Saturated,
    /// It has the same type, shape and elements as the one at this place, the first of that kind.
    Equal(usize),
}

impl Suspicion {
    /// Returns one word for it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Nan(_) => "NaN",
            Self::Infinite(_) => "infinite",
            Self::Zero => "zero",
            Self::Constant => "constant",
            Self::Saturated => "saturated",
            Self::Equal(_) => "equal",
        }
    }
}

/// Finds the tensors whose statistics are unusual, and those that are equal: none where there are no
/// statistics.
pub(super) fn find(reader: &AnyReader, summary: &Summary) -> Vec<Suspect> {
    let equal = equals(reader, &summary.tensors);
    let tensors = summary.tensors.iter().enumerate();
    tensors
        .filter_map(|(at, tensor)| {
            let mut suspicions = tensor.stats.as_ref().map_or_else(Vec::new, |stats| {
                let mut found = of_stats(stats);
                found.extend(is_saturated(tensor, stats).then_some(Suspicion::Saturated));
                found
            });
            suspicions.extend(equal.get(&at).copied().map(Suspicion::Equal));
            (!suspicions.is_empty()).then_some(Suspect { tensor: at, suspicions })
        })
        .collect()
}

fn of_stats(stats: &Stats) -> Vec<Suspicion> {
    let mut found = Vec::new();
    if stats.nan > 0 {
        found.push(Suspicion::Nan(stats.nan));
    }
    if stats.infinite > 0 {
        found.push(Suspicion::Infinite(stats.infinite));
    }
    if is_one_value(stats) {
        let is_zero = stats.zeros == stats.count;
        found.push(if is_zero { Suspicion::Zero } else { Suspicion::Constant });
    }
    found
}

fn is_one_value(stats: &Stats) -> bool {
    let all_finite = stats.nan == 0 && stats.infinite == 0;
    stats.count > 1 && all_finite && stats.min.is_some() && stats.min == stats.max
}

/// Tells whether a hundredth of the elements is at an end of the range of their type.
fn is_saturated(tensor: &TensorSummary, stats: &Stats) -> bool {
    let Some((low, high)) = range(tensor).filter(|_| !is_one_value(stats)) else { return false };
    let [Some(first), Some(last)] = [stats.percentiles.first(), stats.percentiles.last()] else {
        return false;
    };
    // Percentiles of what is dequantized are within 0.4 %, others are exact.
    let off = if tensor.stats_of.is_some() { 0.005 } else { 0.0 };
    let near = |value: &f64, end: f64| (value - end).abs() <= end.abs() * off;
    near(first, low) || near(last, high)
}

/// Returns the ends of what the elements of a tensor can be, where many that stand there are a sign that
/// some would be beyond.
fn range(tensor: &TensorSummary) -> Option<(f64, f64)> {
    let (low, high): (f64, f64) = match tensor.dtype? {
        DType::I4 => (-8.0, 7.0),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        // Of whole numbers without a scale from 0 on, zeros are nothing special.
        DType::U4 if tensor.quantization.is_some() => (0.0, 15.0),
        DType::U8 if tensor.quantization.is_some() => (0.0, u8::MAX.into()),
        DType::F8E4M3 => (-448.0, 448.0),
        DType::F8E5M2 => (-57344.0, 57344.0),
        DType::F16 => (-65504.0, 65504.0),
        _ => return None,
    };
    if tensor.stats_of.is_none() {
        return Some((low, high));
    }
    // Statistics are of what the numbers stand for.
    let quantization = tensor.quantization.as_ref()?;
    let [scale] = quantization.scale.as_slice() else { return None };
    #[expect(clippy::cast_precision_loss, reason = "a zero point is small")]
    let zero = quantization.zero_point.first().copied().unwrap_or_default() as f64;
    Some(((low - zero) * scale, (high - zero) * scale))
}

/// Returns for each tensor that equals one before it which that is. Tensors of the same statistics are
/// read again, for a digest.
fn equals(reader: &AnyReader, tensors: &[TensorSummary]) -> HashMap<usize, usize> {
    let mut alike: HashMap<_, Vec<usize>> = HashMap::new();
    for (at, tensor) in tensors.iter().enumerate() {
        let stats = tensor.stats.as_ref().filter(|stats| !is_one_value(stats));
        let stats = stats.filter(|_| tensor.bytes >= WORTH).map(serde_json::to_string);
        if let Some(Ok(stats)) = stats {
            alike.entry((stats, tensor.dtype, &tensor.shape)).or_default().push(at);
        }
    }
    alike.retain(|_, places| places.len() > 1);
    let mut equal = HashMap::new();
    if alike.is_empty() {
        return equal;
    }
    let Ok(handles) = reader.tensors().map(Iterator::collect::<Vec<_>>) else { return equal };
    for places in alike.into_values() {
        let mut firsts: Vec<(Digest, usize)> = Vec::new();
        for at in places {
            let Some(Ok(found)) = handles.get(at).map(|tensor| sha256(*tensor)) else { continue };
            match firsts.iter().find(|(digest, _)| *digest == found) {
                Some((_, first)) => _ = equal.insert(at, *first),
                None => firsts.push((found, at)),
            }
        }
    }
    equal
}

fn sha256(tensor: AnyTensor<'_>) -> Result<Digest> {
    let mut parts = tensor.parts()?;
    let [(_, stream)] = parts.as_mut_slice() else {
        let what = "is made of several parts, expected one".to_owned();
        return Err(crate::weights::Error::Unsupported { what }.into());
    };
    digest(stream, &|_| ())
}

/// Bytes from which on two tensors are not equal by chance.
const WORTH: u64 = 64;

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::SummaryOptions;

    /// Makes a file of tensors of one dimension.
    fn file(tensors: &[(&str, &str, Vec<u8>, usize)]) -> AnyReader {
        let (mut header, mut data) = (String::new(), Vec::new());
        for (name, dtype, bytes, elements) in tensors {
            let (start, end) = (data.len(), data.len() + bytes.len());
            let joint = if header.is_empty() { "" } else { "," };
            let _ = write!(
                header,
                "{joint}\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":[{elements}],\
                 \"data_offsets\":[{start},{end}]}}"
            );
            data.extend_from_slice(bytes);
        }
        let header = format!("{{{header}}}");
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.bytes().chain(data));
        AnyReader::from_bytes(file).unwrap()
    }

    fn floats(name: &str, values: &[f32]) -> (String, Vec<u8>, usize) {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        (name.to_owned(), bytes, values.len())
    }

    fn suspicions(tensors: &[(&str, &str, Vec<u8>, usize)]) -> Vec<Suspect> {
        let reader = file(tensors);
        let options = SummaryOptions::default().stats(true);
        find(&reader, &reader.summary(options))
    }

    #[test]
    fn unusual_elements() {
        let ramp: Vec<f32> = (0..64_u8).map(f32::from).collect();
        let tensors = [
            floats("nan", &[1.0, f32::NAN, f32::INFINITY]),
            floats("zero", &[0.0, -0.0]),
            floats("constant", &[2.0, 2.0]),
            floats("one", &[2.0]),
            floats("ramp", &ramp),
            floats("again", &ramp),
            floats("other", &ramp.iter().map(|value| value + 1.0).collect::<Vec<_>>()),
        ];
        let tensors: Vec<_> = tensors
            .iter()
            .map(|(name, bytes, elements)| (name.as_str(), "F32", bytes.clone(), *elements))
            .collect();
        let found: Vec<_> =
            suspicions(&tensors).into_iter().map(|one| (one.tensor, one.suspicions)).collect();
        assert_eq!(
            found,
            [
                (0, vec![Suspicion::Nan(1), Suspicion::Infinite(1)]),
                (1, vec![Suspicion::Zero]),
                (2, vec![Suspicion::Constant]),
                (5, vec![Suspicion::Equal(4)]),
            ]
        );
    }

    #[test]
    fn ends_of_the_type() {
        let bytes = |ends: u8| -> Vec<u8> {
            (0..200_u8).map(|at| if at < ends { 0x7f } else { at % 100 }).collect()
        };
        let tensors = [
            ("few", "I8", bytes(1), 200),
            ("many", "I8", bytes(3), 200),
            ("any", "U8", bytes(3), 200),
        ];
        let found = suspicions(&tensors);
        assert_eq!(found, [Suspect { tensor: 1, suspicions: vec![Suspicion::Saturated] }]);
    }
}
