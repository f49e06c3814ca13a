//! What a model file says of its tensors, before any of their bytes is read.

use std::fmt;

use tensor_core::Shape;

use crate::{ScalarType, pickle::Scheme};

/// A tensor as it is stored: a view of a storage that others may share.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// Where it is in the model.
    pub(crate) place: Place,
    pub(crate) path: String,
    pub(crate) scalar: ScalarType,
    pub(crate) shape: Shape,
    /// In elements.
    pub(crate) strides: Vec<u64>,
    /// In elements.
    pub(crate) offset: u64,
    pub(crate) storage: StorageId,
    pub(crate) requires_grad: bool,
    pub(crate) quantization: Option<Quantization>,
}

/// Which part of a model a tensor is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Place {
    /// The parameters and buffers: `data.pkl`, or the state of a FlatBuffer file.
    State,
    /// The constants of the code: `constants.pkl`, or those of the functions of a FlatBuffer file.
    Constants,
}

/// Where the elements of a tensor are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StorageId {
    /// A record, by its name without the root folder, and the number of its elements.
    Record { name: String, elements: u64 },
    /// A storage of a FlatBuffer file.
    Index(u32),
}

impl fmt::Display for StorageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record { name, .. } => write!(f, "record {:?}", crate::json::short(name)),
            Self::Index(index) => write!(f, "storage {index}"),
        }
    }
}

/// How the integers of a quantized tensor stand for numbers: `(integer - zero point) * scale`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Quantization {
    /// One scale and zero point.
    PerTensor {
        /// The name of the scheme is that of PyTorch.
        scheme: Scheme,
        /// What integers are multiplied by.
        scale: f64,
        /// The integer that stands for 0.
        zero_point: i64,
    },
    /// One scale and zero point for each slice.
    PerChannel {
        /// The name of the scheme is that of PyTorch.
        scheme: Scheme,
        /// The dimension along which slices lie, counted from 0.
        axis: i64,
    },
}
