//! Group-quantized tensors. Format text: Part III, section 4.

use tensor_core::{AlignedBuf, DType, Error as Core, Limit, Limits, Shape, TensorBuf};

use super::{LayoutError, layout::ensure};
use crate::{Attributes, Value, error::Result};

/// Packed codes with a scale and a zero point for each group of them, sizes checked.
///
/// ```text
/// packed_weight   integers that hold elements × bits / 8 bytes of codes
/// scales          one float for each group of group_size elements
/// zeros           one number for each group, or codes packed as the weights are
/// ```
///
/// The format's text defines neither the order of codes in a word nor along which axis they are
/// packed and grouped, so [`dequantize`](Self::dequantize) asks the caller.
#[derive(Clone, Debug)]
pub struct QuantizedGroup {
    shape: Shape,
    bits: u32,
    group_size: u64,
    packing: Option<String>,
    packed_weight: TensorBuf,
    scales: TensorBuf,
    zeros: TensorBuf,
}

/// How codes are laid out, as the program that packed them did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convention {
    /// Along which axis codes are packed into words and elements form groups.
    pub axis: Axis,
    /// Where in a word the first code is.
    pub order: CodeOrder,
    /// What the zero point is added to before it is subtracted from a code: 0, or 1 where the
    /// stored zero points are one too small, as those of GPTQ are.
    pub zero_offset: u32,
}

/// Along which axis of a matrix codes are packed and grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Along the last: a word holds neighbours of a row, and so does a group. Rows are whole words
    /// and whole groups, unless there is only one.
    Last,
    /// Along the first: a word holds neighbours of a column, and so does a group. Rank 2 only.
    First,
}

/// Where in a word the first code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeOrder {
    /// In the least significant bits.
    LowFirst,
    /// In the most significant bits.
    HighFirst,
}

impl QuantizedGroup {
    pub(crate) fn new(
        shape: Shape,
        attributes: &Attributes,
        packed_weight: TensorBuf,
        scales: TensorBuf,
        zeros: TensorBuf,
    ) -> Result<Self, LayoutError> {
        let layout = GroupLayout::parse(&shape, attributes)?;
        layout.check(Part::of(&packed_weight), Part::of(&scales), Part::of(&zeros))?;
        let GroupLayout { bits, group_size, .. } = layout;
        let packing = match attributes.get("packing") {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        };
        Ok(Self { shape, bits, group_size, packing, packed_weight, scales, zeros })
    }

    /// Returns the shape of the tensor that was quantized.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the width of a code in bits.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns how many elements share a scale.
    #[must_use]
    pub const fn group_size(&self) -> u64 {
        self.group_size
    }

    /// Returns the text of the attribute `packing`, such as `8_per_i32`.
    #[must_use]
    pub fn packing(&self) -> Option<&str> {
        self.packing.as_deref()
    }

    /// Returns the packed codes, shape `[words]`.
    #[must_use]
    pub const fn packed_weight(&self) -> &TensorBuf {
        &self.packed_weight
    }

    /// Returns the scales, shape `[groups]`.
    #[must_use]
    pub const fn scales(&self) -> &TensorBuf {
        &self.scales
    }

    /// Returns the zero points, shape `[groups]`, or `[words]` where they are packed.
    #[must_use]
    pub const fn zeros(&self) -> &TensorBuf {
        &self.zeros
    }

    /// Returns `scale × (code − (zero + zero_offset))` for each element, as `f32`, row-major.
    ///
    /// # Errors
    ///
    /// [`Error::Given`](crate::Error::Given) where the convention does not fit the shape, where
    /// codes are packed across the borders of words, or where scales are not floats;
    /// [`Error::Core`](crate::Error::Core) where the result is longer than the default of
    /// [`Limits::decoded_bytes`].
    pub fn dequantize(&self, convention: Convention) -> Result<TensorBuf> {
        self.elements(convention, &Limits::default()).map_err(LayoutError::given)
    }

    fn elements(&self, convention: Convention, limits: &Limits) -> Result<TensorBuf, LayoutError> {
        let elements = self.shape.elements()?;
        let len = self.shape.byte_len(DType::F32)?;
        limits.check(Limit::DecodedBytes, "dequantized size in bytes", len)?;
        let lanes = self.lanes(&self.packed_weight)?;
        let columns = self.columns(convention.axis, lanes)?;
        let scales = floats(&self.scales)?;
        let zeros = self.zero_points(convention)?;
        let capacity = usize::try_from(len).unwrap_or(usize::MAX);
        let mut out = AlignedBuf::with_capacity(capacity)?;
        for element in 0..elements {
            // Position along the packed axis, and which line of them.
            let (along, line) = (
                element.checked_div(columns).unwrap_or_default(),
                element.checked_rem(columns).unwrap_or_default(),
            );
            let place = |size: u64| {
                let block = along.checked_div(size).unwrap_or_default();
                block.saturating_mul(columns).saturating_add(line)
            };
            let lane = along.checked_rem(lanes).unwrap_or_default();
            let code = self.code(&self.packed_weight, place(lanes), lane, convention.order);
            let group = usize::try_from(place(self.group_size)).unwrap_or(usize::MAX);
            let (Some(scale), Some(zero)) = (scales.get(group), zeros.get(group)) else {
                return Err(format!("group {group} has no scale or zero point").into());
            };
            out.extend_from_slice(&(scale * (f32::from(code) - zero)).to_le_bytes())?;
        }
        Ok(TensorBuf::new(DType::F32, self.shape.clone(), out.into_bytes())?)
    }

    /// Returns how many codes a word of a part holds, at least one.
    fn lanes(&self, words: &TensorBuf) -> Result<u64, LayoutError> {
        let word_bits = words.dtype().bits().unwrap_or_default();
        match (word_bits.checked_div(self.bits), word_bits.checked_rem(self.bits)) {
            (Some(lanes @ 1..), Some(0)) => Ok(lanes.into()),
            _ => Err(format!(
                "codes of {} bits cross the borders of words of {word_bits} bits, which no \
                 convention here covers",
                self.bits
            )
            .into()),
        }
    }

    /// Returns how many lines of words and groups lie side by side along an axis, once it is proved
    /// that no word and no group is in two of them.
    fn columns(&self, axis: Axis, lanes: u64) -> Result<u64, LayoutError> {
        let fits = |len: u64| {
            len.checked_rem(lanes) == Some(0) && len.checked_rem(self.group_size) == Some(0)
        };
        match (axis, self.shape.dims()) {
            (Axis::Last, [rows @ .., row])
                if fits(*row) || rows.iter().all(|&dimension| dimension == 1) =>
            {
                Ok(1)
            }
            (Axis::Last, []) => Ok(1),
            (Axis::First, &[rows, columns]) if fits(rows) => Ok(columns),
            _ => {
                let axis = if axis == Axis::Last { "last" } else { "first" };
                Err(format!(
                    "shape {} cannot be packed {lanes} and grouped {} along its {axis} axis",
                    self.shape, self.group_size
                )
                .into())
            }
        }
    }

    /// Returns the zero point of each group with the offset of the convention.
    fn zero_points(&self, convention: Convention) -> Result<Vec<f32>, LayoutError> {
        let offset = u16::try_from(convention.zero_offset).map(f32::from).unwrap_or(f32::NAN);
        let groups = self.groups(self.shape.elements()?);
        let mut zeros = if Part::of(&self.zeros).count() == groups {
            floats(&self.zeros)?
        } else {
            let lanes = self.lanes(&self.zeros)?;
            let split = |group: u64| group.checked_div(lanes).zip(group.checked_rem(lanes));
            let code = |group| {
                let (word, lane) = split(group).unwrap_or_default();
                f32::from(self.code(&self.zeros, word, lane, convention.order))
            };
            collect(groups, (0..groups).map(code))?
        };
        zeros.iter_mut().for_each(|zero| *zero += offset);
        Ok(zeros)
    }

    fn code(&self, words: &TensorBuf, word: u64, lane: u64, order: CodeOrder) -> u16 {
        let dtype = words.dtype();
        let width = dtype.width().unwrap_or(1);
        let start = usize::try_from(word.saturating_mul(width)).unwrap_or(usize::MAX);
        let bytes = words.bytes().get(start..).unwrap_or_default();
        let value = bytes
            .iter()
            .take(usize::try_from(width).unwrap_or_default())
            .rev()
            .fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
        let lanes = u64::from(dtype.bits().unwrap_or_default().checked_div(self.bits).unwrap_or(1));
        let lane = match order {
            CodeOrder::LowFirst => lane,
            CodeOrder::HighFirst => lanes.saturating_sub(lane).saturating_sub(1),
        };
        let shift = u32::try_from(lane.saturating_mul(self.bits.into())).unwrap_or(u32::MAX);
        let mask = (1_u64 << self.bits).saturating_sub(1);
        // A code has at most 16 bits.
        u16::try_from(value.checked_shr(shift).unwrap_or_default() & mask).unwrap_or_default()
    }

    fn groups(&self, elements: u64) -> u64 {
        elements.checked_div(self.group_size).unwrap_or_default()
    }
}

/// What shape and attributes say about the sizes of the parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupLayout {
    elements: u64,
    bits: u32,
    group_size: u64,
}

/// The element type of a part, and its length in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) dtype: DType,
    pub(crate) len: u64,
}

impl Part {
    fn of(tensor: &TensorBuf) -> Self {
        Self { dtype: tensor.dtype(), len: tensor.bytes().len() as u64 }
    }

    fn count(self) -> u64 {
        self.len.checked_div(self.dtype.width().unwrap_or(1)).unwrap_or_default()
    }
}

impl GroupLayout {
    pub(crate) fn parse(shape: &Shape, attributes: &Attributes) -> Result<Self, LayoutError> {
        let elements = shape.elements()?;
        let bits = integer(attributes, "bits")?;
        let in_range = u32::try_from(bits).ok().filter(|bits| (1..=16).contains(bits));
        let bits =
            in_range.ok_or_else(|| format!("attribute \"bits\" is {bits}, expected 1 to 16"))?;
        let group_size = integer(attributes, "group_size")?;
        ensure!(
            elements.checked_rem(group_size) == Some(0),
            "attribute \"group_size\" is {group_size}, expected a divisor of {elements} elements"
        );
        Ok(Self { elements, bits, group_size })
    }

    /// Proves that the parts have the sizes that they should.
    pub(crate) fn check(
        self,
        packed_weight: Part,
        scales: Part,
        zeros: Part,
    ) -> Result<(), LayoutError> {
        let Self { elements, bits, group_size } = self;
        let found = packed_weight.dtype;
        ensure!(found.is_integer(), "packed_weight is {found}, expected integers");
        let expected = packed_bytes(elements, bits, packed_weight.dtype).unwrap_or(u64::MAX);
        let found = packed_weight.len;
        ensure!(
            found == expected,
            "packed_weight has {found} bytes, expected {expected} for {elements} codes of {bits} bits"
        );
        let groups = elements.checked_div(group_size).unwrap_or_default();
        let found = scales.count();
        let expected = format!("expected one for each of {groups} groups");
        ensure!(found == groups, "scales has {found} elements, {expected}");
        let found = zeros.count();
        let packed = packed_bytes(groups, bits, zeros.dtype).filter(|_| zeros.dtype.is_integer());
        ensure!(
            found == groups || packed == Some(zeros.len),
            "zeros has {found} elements, {expected}, or packed codes"
        );
        Ok(())
    }
}

fn integer(attributes: &Attributes, key: &str) -> Result<u64, LayoutError> {
    match attributes.get(key) {
        Some(Value::Integer(value)) => u64::try_from(*value).ok(),
        _ => None,
    }
    .ok_or_else(|| format!("attribute {key:?} is missing or not a whole number").into())
}

/// Returns the bytes that packed codes take, filled up to a whole word.
fn packed_bytes(codes: u64, bits: u32, word: DType) -> Option<u64> {
    let bytes = codes.checked_mul(bits.into())?.div_ceil(8);
    bytes.checked_next_multiple_of(word.width()?)
}

/// Returns the elements of a float tensor, or of small integers, as `f32`.
fn floats(tensor: &TensorBuf) -> Result<Vec<f32>, LayoutError> {
    match tensor.dtype() {
        DType::F8E4M3 | DType::F8E5M2 => {}
        _ => match tensor.to_f32() {
            Err(tensor_core::Error::WrongType { .. }) => {}
            floats => return Ok(floats?),
        },
    }
    Err(format!("scales or zeros are {}, expected f32, f16 or bf16", tensor.dtype()).into())
}

/// Collects so many numbers, with an error where there is no memory for them.
fn collect(count: u64, numbers: impl Iterator<Item = f32>) -> Result<Vec<f32>, LayoutError> {
    let mut collected = Vec::new();
    let capacity = usize::try_from(count).unwrap_or(usize::MAX);
    let out_of_memory = |_| Core::OutOfMemory { bytes: count.saturating_mul(4) };
    collected.try_reserve_exact(capacity).map_err(out_of_memory)?;
    collected.extend(numbers);
    Ok(collected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_a_limit() {
        let attributes = [("bits", 4_i64), ("group_size", 8)].into_iter().collect();
        let floats = || TensorBuf::from_slice([1], &[1.0_f32]).unwrap();
        let words = TensorBuf::from_slice([1], &[0_u32]).unwrap();
        let shape = Shape::from([8]);
        let group = QuantizedGroup::new(shape, &attributes, words, floats(), floats()).unwrap();
        let convention =
            Convention { axis: Axis::Last, order: CodeOrder::LowFirst, zero_offset: 0 };
        let refused = |bytes| {
            let elements = group.elements(convention, &Limits::default().with_decoded_bytes(bytes));
            elements.err().map(|error| error.of("q").to_string())
        };
        let message =
            "dequantized size in bytes is 32, over the limit of 31 (Limits::decoded_bytes)";
        assert_eq!(refused(31).as_deref(), Some(message));
        assert_eq!(refused(32), None);
    }
}
