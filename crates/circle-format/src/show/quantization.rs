//! Quantization and sparsity as JSON.

use serde::Serialize;

use crate::model::{self, QuantizationDetails, SparseIndices, SparseLevel};

use super::values::Floats;

#[derive(Serialize)]
pub(super) struct Quantization<'a> {
    scale: Floats<'a>,
    zero_point: &'a [i64],
    #[serde(skip_serializing_if = "Floats::is_empty")]
    min: Floats<'a>,
    #[serde(skip_serializing_if = "Floats::is_empty")]
    max: Floats<'a>,
    quantized_dimension: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Details<'a> {
    Custom { bytes: usize },
    Mx { axis: i32 },
    Blockwise { scales: i32, zero_points: i32, block_size: i32, block_shape: &'a [i32] },
    MultiAxis { scales: i32, zero_points: i32, block_size: i32, quantized_dimensions: &'a [i32] },
    Unknown { tag: u8 },
}

#[derive(Serialize)]
pub(super) struct Sparsity<'a> {
    traversal_order: &'a [i32],
    block_map: &'a [i32],
    levels: Vec<Level>,
}

#[derive(Serialize)]
struct Level {
    format: String,
    dense_size: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<Vec<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    indices: Option<Vec<i64>>,
}

impl<'a> Quantization<'a> {
    pub(super) fn of(quantization: &'a model::Quantization) -> Self {
        Self {
            scale: Floats(&quantization.scale),
            zero_point: &quantization.zero_point,
            min: Floats(&quantization.min),
            max: Floats(&quantization.max),
            quantized_dimension: quantization.quantized_dimension,
            details: quantization.details.as_ref().map(Details::of),
        }
    }
}

impl<'a> Details<'a> {
    fn of(details: &'a QuantizationDetails) -> Self {
        match details {
            QuantizationDetails::Custom(bytes) => Self::Custom { bytes: bytes.len() },
            QuantizationDetails::Mx { axis } => Self::Mx { axis: *axis },
            &QuantizationDetails::Blockwise {
                scales,
                zero_points,
                block_size,
                ref block_shape,
            } => Self::Blockwise { scales, zero_points, block_size, block_shape },
            &QuantizationDetails::MultiAxis {
                scales,
                zero_points,
                block_size,
                ref quantized_dimensions,
            } => Self::MultiAxis { scales, zero_points, block_size, quantized_dimensions },
            QuantizationDetails::Unknown(table) => Self::Unknown { tag: table.tag() },
        }
    }
}

impl<'a> Sparsity<'a> {
    pub(super) fn of(sparsity: &'a model::Sparsity) -> Self {
        Self {
            traversal_order: &sparsity.traversal_order,
            block_map: &sparsity.block_map,
            levels: sparsity.levels.iter().map(Level::of).collect(),
        }
    }
}

impl Level {
    fn of(level: &SparseLevel) -> Self {
        let numbers = |of: &SparseIndices| -> Option<Vec<i64>> {
            (0..of.len()?).map(|index| of.get(index)).collect()
        };
        Self {
            format: level.format.to_string(),
            dense_size: level.dense_size,
            segments: level.segments.as_ref().and_then(numbers),
            indices: level.indices.as_ref().and_then(numbers),
        }
    }
}
