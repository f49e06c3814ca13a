//! What headers say.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;
use tensor_core::{DType, Extent, Report, Shape};

use super::{ElementType, Result};

/// What the header of a file says.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    pub(super) version: String,
    /// The names of the shards, where there is an index of them.
    pub(super) shards: Vec<String>,
    pub(super) metadata: BTreeMap<String, Value>,
    /// Where values stand with their types, in GGUF.
    pub(super) stored: BTreeMap<String, Extent>,
    pub(super) entries: Vec<Entry>,
    /// What was noticed that no reader stumbles over.
    pub(super) findings: Report,
}

/// A tensor, as the header of a file describes it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) element_type: ElementType,
    pub(super) shape: Shape,
    pub(super) place: Place,
    pub(super) order: Order,
}

/// A tensor that stands in the file as it is.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) name: String,
    pub(super) element_type: ElementType,
    pub(super) shape: Shape,
    pub(super) extent: Extent,
}

impl Plain {
    /// Says in which of the sources it is.
    pub(super) fn in_source(self, source: usize) -> Entry {
        let Self { name, element_type, shape, extent } = self;
        let place = Place::File { source, extent };
        Entry { name, element_type, shape, place, order: Order::default() }
    }
}

impl From<Plain> for Entry {
    fn from(plain: Plain) -> Self {
        plain.in_source(0)
    }
}

/// Where the bytes of a tensor are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// In one of the sources, as they are.
    File { source: usize, extent: Extent },
    /// In an entry of the archive, whose checksum is compared: so many bytes, behind others; and
    /// where they are in the file, unless they are compressed.
    #[cfg(feature = "archive")]
    Entry { index: usize, skip: u64, len: u64, stored: Option<Extent> },
}

impl Place {
    /// Returns how many bytes there are.
    pub(super) const fn len(self) -> u64 {
        match self {
            Self::File { extent, .. } => extent.len(),
            #[cfg(feature = "archive")]
            Self::Entry { len, .. } => len,
        }
    }
}

/// How elements are stored other than little-endian and row-major.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) big_endian: bool,
    /// The first index runs fastest.
    pub(super) columns_first: bool,
}

impl Order {
    pub(super) fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// Puts elements into the usual order.
    pub(super) fn apply(self, dtype: DType, shape: &Shape, bytes: Bytes) -> Result<Bytes> {
        let width = usize::try_from(dtype.bits().unwrap_or(8) / 8).unwrap_or(1);
        let bytes = if self.columns_first && shape.rank() > 1 {
            rows_first(shape, width, &bytes)
        } else {
            bytes
        };
        // Of a complex element each half by itself.
        let part = if matches!(dtype, DType::C64 | DType::C128) { width / 2 } else { width };
        if !self.big_endian || part < 2 {
            return Ok(bytes);
        }
        let mut bytes = Vec::from(bytes);
        bytes.chunks_exact_mut(part).for_each(<[u8]>::reverse);
        Ok(bytes.into())
    }
}

/// Sorts elements whose first index runs fastest so that the last one does.
fn rows_first(shape: &Shape, width: usize, bytes: &[u8]) -> Bytes {
    let (mut steps, mut step) = (Vec::new(), width);
    for dim in shape.dims() {
        let dim = usize::try_from(*dim).unwrap_or(usize::MAX);
        steps.push((0_usize, dim, step));
        step = step.saturating_mul(dim);
    }
    let (mut sorted, mut at) = (Vec::with_capacity(bytes.len()), 0_usize);
    while sorted.len() < bytes.len() {
        // Reading in whole elements of a tensor whose length was compared with its shape.
        sorted.extend_from_slice(bytes.get(at..at.saturating_add(width)).unwrap_or_default());
        for (index, dim, step) in steps.iter_mut().rev() {
            *index = index.saturating_add(1);
            at = at.saturating_add(*step);
            if *index < *dim {
                break;
            }
            at = at.saturating_sub(step.saturating_mul(*dim));
            *index = 0;
        }
    }
    sorted.into()
}
