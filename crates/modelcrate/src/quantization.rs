//! Whole numbers that stand for real ones.

use tensor_core::{Budget, Chain, DType, Limit, Limits, Shape, TensorBuf};

use crate::{AnyTensor, Error, Result, weights};

/// How the whole numbers of a tensor stand for real ones: `scale * (number - zero_point)`.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct QuantizationSummary {
    /// One for the whole tensor, or one for each index along `axis`. Empty where another scheme has
    /// them elsewhere.
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
    /// Returns what the scales and zero points of a file's tensors may take in memory.
    #[must_use]
    pub const fn memory(limits: &Limits) -> Budget {
        let what = "scales and zero points in bytes";
        Budget::new(what, limits.manifest_bytes, Limit::ManifestBytes)
    }

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
                // Its zero points are not integers.
                ptl_spec::Quantization::PerChannel {
                    axis,
                    scheme: scheme @ ptl_spec::Scheme::PerChannelAffineFloatQParams,
                } => {
                    let scheme = Some(scheme.name().to_owned());
                    Self { axis: Some(axis), scheme, ..Self::default() }
                }
                ptl_spec::Quantization::PerChannel { axis, .. } => {
                    Self { axis: Some(axis), ..Self::default() }
                }
                _ => Self { scheme: Some("unknown".to_owned()), ..Self::default() },
            }),
            #[cfg(feature = "rten")]
            AnyTensor::Rten(tensor) => {
                let axis = tensor.quantization()?.axis;
                Some(Self { axis, ..Self::default() })
            }
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

impl AnyTensor<'_> {
    /// Returns how its whole numbers stand for real ones; `None` where they do not. Scales and zero
    /// points that are tensors themselves are read, which takes what they need of `memory`.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::OverLimit`] where `memory` is used up; where they cannot be read.
    pub fn quantization(self, memory: &Budget) -> Result<Option<QuantizationSummary>> {
        let Some(found) = QuantizationSummary::of(self) else { return Ok(None) };
        match self {
            #[cfg(feature = "ptl")]
            Self::Ptl(tensor) => match tensor.scales().zip(tensor.zero_points()) {
                Some((scales, zeros)) if found.axis.is_some() && found.scheme.is_none() => {
                    Ok(Some(found.read(Self::Ptl(scales), Some(Self::Ptl(zeros)), memory)?))
                }
                _ => Ok(Some(found)),
            },
            #[cfg(feature = "rten")]
            Self::Rten(tensor) => match tensor.quantization() {
                Some(rten_format::Quantization { scales, zero_points, .. }) => {
                    let zero_points = zero_points.map(Self::Rten);
                    Ok(Some(found.read(Self::Rten(scales), zero_points, memory)?))
                }
                None => Ok(Some(found)),
            },
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => Ok(Some(found)),
        }
    }

    /// Reads a quantized tensor as `f32`: blocks of GGUF that
    /// [`ElementType::can_dequantize`](crate::weights::ElementType::can_dequantize) knows, and integers
    /// with scales beside them, one or one for each index of a dimension, as Circle, TFLite, RTen and
    /// PyTorch Live models have them. `scale × (integer − zero point)` is rounded once.
    ///
    /// So are `zt.quant_group/1` and `zt.mx/1` of zTensor 2: see [`ztensor::Tensor::dequantized`].
    /// Group-quantized objects before that do not say how codes are packed;
    /// [`ztensor::QuantizedGroup::dequantize`] is told.
    ///
    /// # Errors
    ///
    /// [`weights::Error::Unsupported`] where it is not one of these; where it cannot be read.
    pub fn dequantize(self) -> Result<TensorBuf> {
        match self {
            Self::Weights(tensor) => Ok(tensor.dequantize()?),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(tensor) if let Some(numbers) = packed(tensor)? => {
                let shape = tensor.object()?.shape;
                let len = shape.byte_len(DType::F32)?;
                Limits::default().check(Limit::DecodedBytes, "dequantized size in bytes", len)?;
                let mut values = weights::reserve(shape.elements()?)?;
                for number in numbers {
                    values.push(number?);
                }
                Ok(TensorBuf::from_vec(shape, values)?)
            }
            #[allow(unreachable_patterns, reason = "without other formats")]
            tensor => Affine::of(tensor)?.all(tensor),
        }
    }

    /// Says why [`dequantize`](Self::dequantize) cannot be, before the codes are read; `None` where it
    /// can.
    pub(crate) fn cannot_dequantize(self) -> Option<String> {
        #[cfg(feature = "ztensor")]
        if let Self::ZTensor(tensor) = self
            && let Some(numbers) = packed(tensor).transpose()
        {
            return numbers.err().map(|error| Chain(&error).to_string());
        }
        Affine::of(self).err().map(|error| Chain(&error).to_string())
    }
}

/// Returns the numbers of a tensor whose layout says how codes are packed; `None` of all others.
#[cfg(feature = "ztensor")]
pub(crate) fn packed(tensor: ztensor::Tensor<'_>) -> Result<Option<ztensor::Dequantized<'_>>> {
    if !is_packed(&tensor.object()?.format) {
        return Ok(None);
    }
    match tensor.dequantized() {
        Ok(numbers) => Ok(Some(numbers)),
        // The file is sound, but its format leaves open what that means.
        Err(error @ ztensor::Error::Given { .. }) => Err(unsupported(Chain(&error).to_string())),
        Err(error) => Err(error.into()),
    }
}

/// Tells whether a layout packs elements in a way that only it defines.
#[cfg(feature = "ztensor")]
pub(crate) const fn is_packed(format: &ztensor::Format) -> bool {
    matches!(format, ztensor::Format::QuantGroup | ztensor::Format::Mx)
}

/// Makes real numbers of the integers of a tensor, in their order.
pub(crate) struct Affine {
    dtype: DType,
    scale: Vec<f64>,
    /// None where all are 0.
    zero_point: Vec<i64>,
    /// Elements from one index along the axis to the next.
    run: u64,
    /// Where the next element is: the index along the axis, and the elements before the one after it.
    line: usize,
    in_line: u64,
    /// Elements still to come.
    left: u64,
}

impl Affine {
    /// Returns what a tensor needs; `None` where it is not quantized in this way.
    pub(crate) fn find(tensor: AnyTensor<'_>) -> Result<Option<Self>> {
        match Self::of(tensor) {
            Err(Error::Weights(weights::Error::Unsupported { .. })) => Ok(None),
            found => found.map(Some),
        }
    }

    fn of(tensor: AnyTensor<'_>) -> Result<Self> {
        let Some(found) = tensor.quantization(&QuantizationSummary::memory(&Limits::default()))?
        else {
            return Err(unsupported(match tensor {
                #[cfg(feature = "ztensor")]
                AnyTensor::ZTensor(_) => "the format does not say how codes are packed",
                _ => "there are no scales beside it",
            }));
        };
        let info = tensor.info()?;
        if found.scheme.is_some() {
            return Err(unsupported("it is quantized by other means than scales"));
        }
        if !info.dtype.is_integer() {
            return Err(unsupported(format!("its codes are {}, expected integers", info.dtype)));
        }
        Self::new(info.dtype, &info.shape, found)
    }

    fn new(dtype: DType, shape: &Shape, found: QuantizationSummary) -> Result<Self> {
        let QuantizationSummary { scale, zero_point, axis, .. } = found;
        let dims = shape.dims();
        let (along, behind) = match axis {
            None => (1, dims),
            Some(axis) => {
                let axis = usize::try_from(axis).unwrap_or(usize::MAX);
                let behind = dims.get(axis.saturating_add(1)..).unwrap_or_default();
                (dims.get(axis).copied().unwrap_or_default(), behind)
            }
        };
        let (scales, zeros) = (scale.len(), zero_point.len());
        if along != scales as u64 || zeros > 0 && zeros != scales {
            return Err(unsupported(format!(
                "it has {scales} scales and {zeros} zero points, expected one or {along} of each"
            )));
        }
        let run = behind.iter().copied().fold(1, u64::saturating_mul);
        let left = shape.elements()?;
        Ok(Self { dtype, scale, zero_point, run, line: 0, in_line: run, left })
    }

    /// Reads the whole tensor.
    fn all(mut self, tensor: AnyTensor<'_>) -> Result<TensorBuf> {
        let shape = tensor.info()?.shape;
        let len = shape.byte_len(DType::F32)?;
        Limits::default().check(Limit::DecodedBytes, "dequantized size in bytes", len)?;
        let mut values = weights::reserve(shape.elements()?)?;
        #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
        self.apply(&tensor.bytes()?, |value| values.push(value as f32));
        Ok(TensorBuf::from_vec(shape, values)?)
    }

    /// Gives out the real numbers that the next integers stand for.
    pub(crate) fn apply(&mut self, bytes: &[u8], put: impl FnMut(f64)) {
        macro_rules! each {
            ($type:ty) => {
                bytes.as_chunks().0.iter().map(|b| <$type>::from_le_bytes(*b).into())
            };
        }
        match self.dtype {
            DType::I4 => {
                let halves = bytes.iter().flat_map(|byte| [byte << 4, *byte]);
                self.put(halves.map(|half| (half.cast_signed() >> 4).into()), put);
            }
            DType::U4 => {
                let halves = bytes.iter().flat_map(|byte| [byte & 0xf, byte >> 4]);
                self.put(halves.map(i128::from), put);
            }
            DType::I8 => self.put(each!(i8), put),
            DType::U8 => self.put(each!(u8), put),
            DType::I16 => self.put(each!(i16), put),
            DType::U16 => self.put(each!(u16), put),
            DType::I32 => self.put(each!(i32), put),
            DType::U32 => self.put(each!(u32), put),
            DType::I64 => self.put(each!(i64), put),
            _ => self.put(each!(u64), put),
        }
    }

    fn put(&mut self, mut integers: impl Iterator<Item = i128>, mut put: impl FnMut(f64)) {
        while self.left > 0 {
            if self.in_line == 0 {
                self.line = self.line.saturating_add(1).checked_rem(self.scale.len()).unwrap_or(0);
                self.in_line = self.run;
            }
            let scale = self.scale.get(self.line).copied().unwrap_or_default();
            let zero = self.zero_point.get(self.line).copied().unwrap_or_default();
            let most = self.in_line.min(self.left);
            let mut done = 0_u64;
            for integer in integers.by_ref().take(usize::try_from(most).unwrap_or(usize::MAX)) {
                #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
                put(scale * integer.saturating_sub(zero.into()) as f64);
                done = done.saturating_add(1);
            }
            self.in_line = self.in_line.saturating_sub(done);
            self.left = self.left.saturating_sub(done);
            if done < most {
                break;
            }
        }
    }
}

#[cfg(any(feature = "ptl", feature = "rten"))]
impl QuantizationSummary {
    /// Reads scales and zero points that are tensors.
    fn read(
        mut self,
        scales: AnyTensor<'_>,
        zero_points: Option<AnyTensor<'_>>,
        memory: &Budget,
    ) -> Result<Self> {
        for part in [Some(scales), zero_points].into_iter().flatten() {
            memory.take(part.info()?.byte_len()?)?;
        }
        let scales = scales.read()?;
        self.scale = match scales.info().dtype {
            DType::F64 => scales.to_vec()?,
            DType::F32 => scales.to_vec::<f32>()?.into_iter().map(f64::from).collect(),
            dtype => {
                return Err(unsupported(format!("its scales are {dtype}, expected f32 or f64")));
            }
        };
        let Some(zero_points) = zero_points else { return Ok(self) };
        let zero_points = zero_points.read()?;
        self.zero_point = match zero_points.info().dtype {
            DType::I64 => zero_points.to_vec()?,
            DType::I32 => zero_points.to_vec::<i32>()?.into_iter().map(i64::from).collect(),
            DType::I8 => zero_points.to_vec::<i8>()?.into_iter().map(i64::from).collect(),
            DType::U8 => zero_points.to_vec::<u8>()?.into_iter().map(i64::from).collect(),
            dtype => {
                return Err(unsupported(format!("its zero points are {dtype}, expected integers")));
            }
        };
        Ok(self)
    }
}

fn unsupported(what: impl Into<String>) -> Error {
    weights::Error::Unsupported { what: what.into() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affine(dtype: DType, dims: &[u64], scale: &[f64], zero_point: &[i64]) -> Result<Affine> {
        let (scale, zero_point) = (scale.to_vec(), zero_point.to_vec());
        let axis = (scale.len() > 1).then_some(1);
        let found = QuantizationSummary { scale, zero_point, axis, scheme: None };
        Affine::new(dtype, &dims.into(), found)
    }

    fn applied(mut affine: Affine, pieces: &[&[u8]]) -> Vec<f64> {
        let mut real = Vec::new();
        pieces.iter().for_each(|piece| affine.apply(piece, |value| real.push(value)));
        real
    }

    #[test]
    fn scales_along_an_axis() {
        let affine = affine(DType::I8, &[2, 2, 2], &[1.0, 0.5], &[0, 2]).unwrap();
        let real = applied(affine, &[&[1, 2, 3], &[4, 5, 6, 7, 0xf8]]);
        assert_eq!(real, [1.0, 2.0, 0.5, 1.0, 5.0, 6.0, 2.5, -5.0]);
    }

    #[test]
    fn halves_of_bytes_from_the_low_one() {
        // The last half is of no element.
        let signed = affine(DType::I4, &[3], &[0.5], &[]).unwrap();
        assert_eq!(applied(signed, &[&[0x1f], &[0x78]]), [-0.5, 0.5, -4.0]);
        let unsigned = affine(DType::U4, &[3], &[0.5], &[1]).unwrap();
        assert_eq!(applied(unsigned, &[&[0x1f], &[0x78]]), [7.0, 0.0, 3.5]);
    }

    #[test]
    fn large_integers() {
        let large = affine(DType::U64, &[1], &[1.0], &[i64::MIN]).unwrap();
        assert_eq!(applied(large, &[&[0xff; 8]]), [1.5 * 2.0_f64.powi(64)]);
    }

    #[test]
    fn as_many_as_there_are_indices() {
        let error = affine(DType::U8, &[2, 3], &[1.0, 2.0], &[0]).err().unwrap();
        let message = "it has 2 scales and 1 zero points, expected one or 3 of each";
        assert_eq!(error.to_string(), message);
        assert!(affine(DType::U8, &[2, 3], &[], &[]).is_err());
    }
}
