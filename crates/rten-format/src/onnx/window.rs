//! The window that a convolution or a pooling moves over its input: as many steps and pads as it has
//! dimensions.
//!
//! RTen reads lists of ONNX that are left out by the length of `kernel_shape` alone, so all of them
//! are written. Converters fill in the defaults of two dimensions whatever the rank is; those are cut.

use crate::{Attributes, Operator};

use super::shapes::Dims;

/// What is known of a window.
#[derive(Debug)]
pub(super) struct Window {
    /// How many dimensions it has.
    rank: usize,
    /// Its lengths, where they are certain.
    pub(super) kernel: Option<Vec<u32>>,
}

impl Window {
    /// Finds the window of an operator: `shapes` are those of its inputs, `weights` that of a kernel
    /// that is a constant.
    pub(super) fn of(
        operator: &Operator,
        shapes: &[Option<Dims>],
        weights: Option<&[u32]>,
    ) -> Self {
        let table = match operator.attributes.as_ref() {
            Some(Attributes::AveragePool(table)) => return Self::pool(&table.kernel_size),
            Some(Attributes::MaxPool(table)) => return Self::pool(&table.kernel_size),
            Some(Attributes::Conv(table)) => [&table.strides, &table.dilations, &table.pads],
            Some(Attributes::ConvTranspose(table)) => {
                [&table.strides, &table.dilations, &table.pads]
            }
            _ => [&None, &None, &None],
        };
        let spatial = |at: usize| shapes.get(at)?.as_ref()?.len().checked_sub(2);
        // Pads stand on both sides of each dimension.
        let len =
            |(list, sides): (&Option<Vec<u32>>, usize)| list.as_ref()?.len().checked_div(sides);
        let listed = table.into_iter().zip([1, 1, 2]).find_map(len);
        let rank = spatial(1).or_else(|| spatial(0)).or(listed).unwrap_or(RANK);
        let kernel = weights.and_then(|shape| shape.get(2..)).map(<[u32]>::to_vec);
        Self { rank, kernel }
    }

    fn pool(kernel: &[u32]) -> Self {
        Self { rank: kernel.len(), kernel: Some(kernel.to_vec()) }
    }

    /// Returns a list with `sides` numbers for each dimension: the one that is there, or defaults,
    /// of which there may be too many or too few.
    pub(super) fn list(&self, found: Option<&[u32]>, sides: usize, default: u32) -> Listed {
        let len = self.rank.saturating_mul(sides);
        match found {
            Some(found) if found.len() != len && found.iter().all(|one| *one == default) => {
                Listed { values: vec![default; len], is_cut: true }
            }
            Some(found) => Listed { values: found.to_vec(), is_cut: false },
            None => Listed { values: vec![default; len], is_cut: false },
        }
    }
}

/// A list of numbers for the dimensions of a window.
pub(super) struct Listed {
    pub(super) values: Vec<u32>,
    /// Whether it had defaults for another number of dimensions.
    pub(super) is_cut: bool,
}

/// Dimensions of a window of which nothing else tells, as RTen takes them.
const RANK: usize = 2;
