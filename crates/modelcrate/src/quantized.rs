//! Numbers that stand for others by scales and zero points.

use bytes::Bytes;
use tensor_core::{DType, Limit, Limits, TensorBuf, TensorInfo};

use crate::{AnyTensor, Result, weights};

impl AnyTensor<'_> {
    /// Says why [`dequantize`](Self::dequantize) cannot be, as far as that can be told without
    /// reading; `None` where it can.
    pub(crate) fn cannot_dequantize(self) -> Option<String> {
        match self {
            Self::Weights(tensor) if tensor.element_type().can_dequantize() => None,
            #[cfg(feature = "circle")]
            Self::Circle(tensor) => match Affine::of(tensor) {
                Ok(_) => None,
                Err(error) => Some(tensor_core::Chain(&error).to_string()),
            },
            #[cfg(feature = "ztensor")]
            Self::ZTensor(_) => Some("the format does not say how codes are packed".to_owned()),
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => Some("there are no scales beside it".to_owned()),
        }
    }

    /// Reads a quantized tensor as `f32`: the blocks of GGUF that
    /// [`ElementType::can_dequantize`](crate::weights::ElementType::can_dequantize) knows, and
    /// constants of Circle and TFLite models that have scales, one or one for each index of a
    /// dimension. Group-quantized zTensor objects do not say
    /// how codes are packed; [`ztensor::QuantizedGroup::dequantize`] is told.
    ///
    /// # Errors
    ///
    /// [`weights::Error::Unsupported`] where it is not one of these; where it cannot be read.
    pub fn dequantize(self) -> Result<TensorBuf> {
        if let Some(what) = self.cannot_dequantize() {
            return Err(weights::Error::Unsupported { what }.into());
        }
        match self {
            Self::Weights(tensor) => Ok(tensor.dequantize()?),
            #[cfg(feature = "circle")]
            Self::Circle(tensor) => {
                let limits = Limits::default();
                Affine::of(tensor)?.apply(&tensor.bytes()?, &limits)
            }
            #[allow(unreachable_patterns, reason = "without other formats")]
            tensor => tensor.read(),
        }
    }
}

/// Scales and zero points along one dimension.
#[cfg(feature = "circle")]
struct Affine<'a> {
    info: TensorInfo,
    scales: &'a [f32],
    zero_points: &'a [i64],
    /// How many elements in a row have one scale.
    run: u64,
}

#[cfg(feature = "circle")]
impl<'a> Affine<'a> {
    fn of(tensor: circle_format::Tensor<'a>) -> Result<Self> {
        let info = tensor.info()?;
        let unsupported = |what: String| crate::Error::from(weights::Error::Unsupported { what });
        let quantization = tensor.tensor().and_then(|found| found.quantization.as_deref());
        let found = quantization.filter(|found| found.is_quantized());
        let found = found.ok_or_else(|| unsupported("there are no scales beside it".to_owned()))?;
        if found.details.is_some() {
            return Err(unsupported("it is quantized by other means than scales".to_owned()));
        }
        if !info.dtype.is_integer() {
            return Err(unsupported(format!("its codes are {}, expected integers", info.dtype)));
        }
        let (scales, zero_points) = (found.scale.as_slice(), found.zero_point.as_slice());
        let dims = info.shape.dims();
        let axis = usize::try_from(found.quantized_dimension).unwrap_or(usize::MAX);
        let (along, behind) = match scales {
            [_] => (1, dims),
            _ => {
                let along = dims.get(axis).copied().unwrap_or_default();
                (along, dims.get(axis.saturating_add(1)..).unwrap_or_default())
            }
        };
        let has_zeros = zero_points.is_empty() || zero_points.len() == scales.len();
        if along != scales.len() as u64 || !has_zeros {
            let (scales, zeros) = (scales.len(), zero_points.len());
            return Err(unsupported(format!(
                "it has {scales} scales and {zeros} zero points, expected one or {along} of each"
            )));
        }
        let run = behind.iter().copied().fold(1, u64::saturating_mul).max(1);
        Ok(Self { info, scales, zero_points, run })
    }

    /// Computes `scale × (code − zero point)`, each rounded once.
    fn apply(&self, bytes: &Bytes, limits: &Limits) -> Result<TensorBuf> {
        let (dtype, shape) = (self.info.dtype, &self.info.shape);
        let len = shape.byte_len(DType::F32)?;
        limits.check(Limit::DecodedBytes, "dequantized size in bytes", len)?;
        let elements = shape.elements()?;
        let mut values = weights::reserve(elements)?;
        let lines = self.scales.iter().enumerate().cycle();
        let mut codes = codes(dtype, bytes).take(usize::try_from(elements).unwrap_or(usize::MAX));
        for (line, scale) in lines {
            let zero = self.zero_points.get(line).copied().unwrap_or_default();
            let before = values.len();
            let run = codes.by_ref().take(usize::try_from(self.run).unwrap_or(usize::MAX));
            #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
            values.extend(run.map(|code| {
                #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
                let distance = code.saturating_sub(zero) as f64;
                (f64::from(*scale) * distance) as f32
            }));
            if values.len() == before {
                break;
            }
        }
        Ok(TensorBuf::from_vec(shape.clone(), values)?)
    }
}

/// Iterates over whole numbers of a type.
#[cfg(feature = "circle")]
fn codes(dtype: DType, bytes: &[u8]) -> Box<dyn Iterator<Item = i64> + '_> {
    macro_rules! whole {
        ($T:ty) => {
            Box::new(
                bytes
                    .as_chunks::<{ size_of::<$T>() }>()
                    .0
                    .iter()
                    .map(|e| i64::try_from(<$T>::from_le_bytes(*e)).unwrap_or(i64::MAX)),
            )
        };
    }
    match dtype {
        DType::I4 => Box::new(bytes.iter().flat_map(|byte| [byte << 4, *byte].map(signed))),
        DType::U4 => Box::new(bytes.iter().flat_map(|byte| [byte & 15, byte >> 4].map(i64::from))),
        DType::I8 => whole!(i8),
        DType::I16 => whole!(i16),
        DType::I32 => whole!(i32),
        DType::I64 => whole!(i64),
        DType::U8 => whole!(u8),
        DType::U16 => whole!(u16),
        DType::U32 => whole!(u32),
        _ => whole!(u64),
    }
}

/// Returns the number in the upper half of a byte.
#[cfg(feature = "circle")]
const fn signed(byte: u8) -> i64 {
    (byte.cast_signed() >> 4) as i64
}
