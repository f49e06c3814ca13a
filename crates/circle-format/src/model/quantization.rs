//! How stored numbers become real ones, and how zeros are left out.

use bytes::Bytes;

use flat_tables::UnknownTable;

use super::DimensionType;

/// How the stored numbers of a tensor become real ones: `scale * (stored - zero_point)`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quantization {
    /// The smallest real values that were seen.
    pub min: Vec<f32>,
    /// The largest real values that were seen.
    pub max: Vec<f32>,
    /// Scales: one for the whole tensor, or one for each index of
    /// [`quantized_dimension`](Self::quantized_dimension).
    pub scale: Vec<f32>,
    /// Zero points, as many as scales.
    pub zero_point: Vec<i64>,
    /// Other means than scales and zero points.
    pub details: Option<QuantizationDetails>,
    /// The dimension that each scale is for an index of, where there are several.
    pub quantized_dimension: i32,
}

impl Quantization {
    /// Tells whether there are parameters, and not only a range of values that was seen.
    #[must_use]
    pub fn is_quantized(&self) -> bool {
        !self.scale.is_empty() || self.details.is_some()
    }

    /// Tells whether each index of a dimension has its own scale.
    #[must_use]
    pub fn is_per_axis(&self) -> bool {
        self.scale.len() > 1
    }
}

/// Quantization by other means than scales and zero points.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum QuantizationDetails {
    /// In a form of its own.
    Custom(Bytes),
    /// Parameters are stored with the elements, in blocks along a dimension; of Circle alone.
    Mx {
        /// The dimension.
        axis: i32,
    },
    /// Parameters are tensors of the graph, with one element a block.
    Blockwise {
        /// The position of the scales.
        scales: i32,
        /// The position of the zero points.
        zero_points: i32,
        /// Elements of a block.
        block_size: i32,
        /// Elements of a block along each dimension; of TFLite alone.
        block_shape: Vec<i32>,
    },
    /// Parameters are tensors of the graph, over several dimensions; of TFLite alone.
    MultiAxis {
        /// The position of the scales.
        scales: i32,
        /// The position of the zero points.
        zero_points: i32,
        /// Elements of a block.
        block_size: i32,
        /// The dimensions.
        quantized_dimensions: Vec<i32>,
    },
    /// A table that this crate does not know, kept as it is.
    Unknown(UnknownTable),
}

/// How a tensor leaves out zeros.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sparsity {
    /// In which order the dimensions of the tensor, and then those inside blocks, are walked.
    pub traversal_order: Vec<i32>,
    /// For each dimension inside blocks, that of the tensor which it divides.
    pub block_map: Vec<i32>,
    /// Each level of the walk.
    pub levels: Vec<SparseLevel>,
}

/// One level of a sparse tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseLevel {
    /// Whether every index is stored, or those that are not zero.
    pub format: DimensionType,
    /// How many indices there are, where every one is stored.
    pub dense_size: i32,
    /// Where the indices of each parent start in the next list, and where the last ones end.
    pub segments: Option<SparseIndices>,
    /// The indices that are stored.
    pub indices: Option<SparseIndices>,
}

/// Numbers of a sparse level.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SparseIndices {
    /// 32 bits each.
    I32(Vec<i32>),
    /// 16 bits each.
    U16(Vec<u16>),
    /// 8 bits each.
    U8(Bytes),
    /// A table that this crate does not know, kept as it is.
    Unknown(UnknownTable),
}

impl SparseIndices {
    /// Returns how many numbers there are; `None` where that cannot be told.
    #[must_use]
    pub fn len(&self) -> Option<usize> {
        match self {
            Self::I32(numbers) => Some(numbers.len()),
            Self::U16(numbers) => Some(numbers.len()),
            Self::U8(numbers) => Some(numbers.len()),
            Self::Unknown(_) => None,
        }
    }

    /// Tells whether there is known to be no number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Returns one of the numbers; `None` where there are not as many.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<i64> {
        match self {
            Self::I32(numbers) => numbers.get(index).map(|&number| number.into()),
            Self::U16(numbers) => numbers.get(index).map(|&number| number.into()),
            Self::U8(numbers) => numbers.get(index).map(|&number| number.into()),
            Self::Unknown(_) => None,
        }
    }
}
