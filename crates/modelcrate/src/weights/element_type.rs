use std::fmt;

use tensor_core::{DType, Error as Core, Shape};

use super::Result;

/// What the elements of a tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElementType {
    /// Elements of their own.
    Plain(DType),
    /// Elements that no other format has, without a gap between them.
    Packed {
        /// The name that the format has for them, in lower case.
        name: &'static str,
        /// Bits of an element.
        bits: u64,
    },
    /// Blocks of several elements of a row each.
    Blocks {
        /// The name that the format has for them, in lower case.
        name: &'static str,
        /// Elements of a block.
        elements: u64,
        /// Bytes of a block.
        bytes: u64,
    },
}

impl ElementType {
    /// Returns how many bytes a tensor of a shape takes; `None` where they are no whole bytes, or its
    /// rows, which are its innermost dimension, no whole blocks.
    ///
    /// # Errors
    ///
    /// Where the number does not fit into 64 bits.
    pub fn byte_len(self, shape: &Shape) -> Result<Option<u64>> {
        match self {
            Self::Plain(dtype) => Ok(Some(shape.byte_len(dtype)?)),
            Self::Packed { bits, .. } => {
                let overflow = || Core::ShapeOverflow { shape: shape.clone() };
                let bits = shape.elements()?.checked_mul(bits).ok_or_else(overflow)?;
                Ok(bits.is_multiple_of(8).then_some(bits / 8))
            }
            Self::Blocks { elements, bytes, .. } => {
                let total = shape.elements()?;
                let row = shape.dims().last().copied().unwrap_or(1);
                let Some(0) = row.checked_rem(elements) else { return Ok(None) };
                let overflow = || Core::ShapeOverflow { shape: shape.clone() };
                let blocks = total.checked_div(elements).ok_or_else(overflow)?;
                Ok(Some(blocks.checked_mul(bytes).ok_or_else(overflow)?))
            }
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(dtype) => dtype.fmt(f),
            Self::Packed { name, .. } | Self::Blocks { name, .. } => f.pad(name),
        }
    }
}
