//! Whole numbers that stand for real ones.

use tensor_core::{DType, Shape};

use crate::{AnyTensor, Result};

/// How the whole numbers of a tensor stand for real ones: `scale * (number - zero_point)`.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct QuantizationSummary {
    /// One for the whole tensor, or one for each index along `axis`. Empty where they are tensors.
    pub scale: Vec<f64>,
    /// As many as there are scales.
    pub zero_point: Vec<i64>,
    /// The dimension whose indices have a scale each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<i64>,
    /// What the format calls it, where it is another way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
}

impl QuantizationSummary {
    /// Returns how a tensor is quantized, as far as that can be told without reading another.
    pub(crate) fn of(tensor: AnyTensor<'_>) -> Option<Self> {
        match tensor {
            #[cfg(feature = "circle")]
            AnyTensor::Circle(tensor) => circle(tensor.tensor()?),
            #[cfg(feature = "ptl")]
            AnyTensor::Ptl(tensor) => Some(match *tensor.quantization()? {
                ptl_spec::Quantization::PerTensor { scale, zero_point, .. } => {
                    Self { scale: vec![scale], zero_point: vec![zero_point], ..Self::default() }
                }
                ptl_spec::Quantization::PerChannel { axis, .. } => {
                    Self { axis: Some(axis), ..Self::default() }
                }
                _ => Self { scheme: Some("unknown".to_owned()), ..Self::default() },
            }),
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => None,
        }
    }
}

#[cfg(feature = "circle")]
fn circle(tensor: &circle_format::model::Tensor) -> Option<QuantizationSummary> {
    use circle_format::model::QuantizationDetails as Details;
    let found = tensor.quantization.as_deref().filter(|found| found.is_quantized())?;
    let scheme = found.details.as_ref().map(|details| {
        let scheme = match details {
            Details::Custom(_) => "custom",
            Details::Mx { .. } => "mx",
            Details::Blockwise { .. } => "blockwise",
            Details::MultiAxis { .. } => "multi_axis",
            _ => "unknown",
        };
        scheme.to_owned()
    });
    Some(QuantizationSummary {
        scale: found.scale.iter().copied().map(f64::from).collect(),
        zero_point: found.zero_point.clone(),
        axis: found.is_per_axis().then(|| found.quantized_dimension.into()),
        scheme,
    })
}

/// Makes real numbers of the whole numbers of a tensor, in their order.
pub(crate) struct Affine {
    scale: Vec<f64>,
    zero_point: Vec<i64>,
    /// Elements from one index along the axis to the next.
    step: u64,
    /// Elements so far.
    at: u64,
}

impl Affine {
    /// Returns what a tensor needs; `None` where it is not quantized, or its parameters do not fit.
    pub(crate) fn of(tensor: AnyTensor<'_>, shape: &Shape) -> Result<Option<Self>> {
        let Some(found) = QuantizationSummary::of(tensor) else { return Ok(None) };
        let QuantizationSummary { scale, mut zero_point, axis, scheme } = found;
        #[cfg(feature = "ptl")]
        let mut scale = scale;
        #[cfg(feature = "ptl")]
        if let AnyTensor::Ptl(tensor) = tensor
            && let (Some(scales), Some(zero_points)) = (tensor.scales(), tensor.zero_points())
        {
            let (scales, zero_points) = (scales.read()?, zero_points.read()?);
            scale = scales.view().to_vec::<f64>().unwrap_or_default();
            zero_point = zero_points.view().to_vec::<i64>().unwrap_or_default();
        }
        if zero_point.is_empty() {
            zero_point = vec![0; scale.len()];
        }
        let mut step = u64::MAX;
        if let Some(axis) = axis {
            let axis = usize::try_from(axis).unwrap_or(usize::MAX);
            let dims = shape.dims();
            if dims.get(axis).copied() != Some(scale.len() as u64) {
                return Ok(None);
            }
            step = dims.iter().skip(axis).skip(1).fold(1, |step, dim| step.saturating_mul(*dim));
        }
        let fits = !scale.is_empty() && scale.len() == zero_point.len() && scheme.is_none();
        Ok(fits.then_some(Self { scale, zero_point, step, at: 0 }))
    }

    /// Returns the real numbers of the next whole ones, as the bytes of `f64`.
    #[expect(clippy::cast_precision_loss, reason = "what is computed is not exact")]
    pub(crate) fn apply(&mut self, dtype: DType, bytes: &[u8]) -> Vec<u8> {
        let mut real = Vec::with_capacity(bytes.len().saturating_mul(8));
        for number in integers(dtype, bytes) {
            let count = self.scale.len() as u64;
            let index = self.at.checked_div(self.step).unwrap_or(0).checked_rem(count);
            let index = usize::try_from(index.unwrap_or(0)).unwrap_or(0);
            let scale = self.scale.get(index).copied().unwrap_or_default();
            let zero = self.zero_point.get(index).copied().unwrap_or_default();
            let value = scale * (number as f64 - zero as f64);
            real.extend_from_slice(&value.to_le_bytes());
            self.at = self.at.saturating_add(1);
        }
        real
    }
}

fn integers(dtype: DType, bytes: &[u8]) -> Vec<i64> {
    macro_rules! each {
        ($type:ty) => {
            bytes.as_chunks().0.iter().map(|b| <$type>::from_le_bytes(*b).into()).collect()
        };
    }
    match dtype {
        DType::I8 => each!(i8),
        DType::U8 | DType::Bool => each!(u8),
        DType::I16 => each!(i16),
        DType::U16 => each!(u16),
        DType::I32 => each!(i32),
        DType::U32 => each!(u32),
        DType::I64 => each!(i64),
        DType::I4 => {
            let halves = bytes.iter().flat_map(|byte| [byte << 4, byte & 0xf0]);
            halves.map(|half| (half.cast_signed() >> 4).into()).collect()
        }
        DType::U4 => bytes.iter().flat_map(|byte| [byte & 0xf, byte >> 4]).map(i64::from).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_along_an_axis() {
        let mut affine = Affine { scale: vec![1.0, 0.5], zero_point: vec![0, 2], step: 2, at: 0 };
        let bytes = [affine.apply(DType::I8, &[1, 2, 3]), affine.apply(DType::I8, &[4, 5, 6])];
        let bytes = bytes.concat();
        let real: Vec<f64> = bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        assert_eq!(real, [1.0, 2.0, 0.5, 1.0, 5.0, 6.0]);
    }
}
