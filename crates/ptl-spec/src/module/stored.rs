//! What a model file says of its tensors, before any of their bytes is read.

use std::fmt;

use tensor_core::{Limits, Shape};

use crate::{ScalarType, budget::Budget, pickle::Scheme};

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
    /// What [`Quantization::PerChannel`] has for each slice.
    pub(crate) channels: Option<Box<Channels>>,
}

/// The scales and zero points of the slices of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct Channels {
    pub(crate) scales: Stored,
    pub(crate) zero_points: Stored,
}

/// A tensor of which only some elements are stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredSparse {
    pub(crate) place: Place,
    pub(crate) path: String,
    pub(crate) shape: Shape,
    pub(crate) requires_grad: bool,
    pub(crate) parts: StoredParts,
}

/// The tensors that a sparse one is made of.
#[derive(Clone, Debug)]
pub(crate) enum StoredParts {
    Coo { indices: Stored, values: Stored },
    Csr { crow_indices: Stored, col_indices: Stored, values: Stored },
}

/// All that a file says of its tensors.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) tensors: Vec<Stored>,
    pub(crate) sparse: Vec<StoredSparse>,
    /// What paths and shapes may take.
    memory: Budget,
}

impl Listing {
    pub(crate) const fn new(limits: &Limits) -> Self {
        let (what, field) = ("list of tensors in bytes", "manifest_bytes");
        let memory = Budget::new(what, limits.manifest_bytes, field);
        Self { tensors: Vec::new(), sparse: Vec::new(), memory }
    }

    /// Adds a tensor. One that is shared is listed once for each of its names, and all of them may
    /// be long.
    pub(crate) fn push(&mut self, tensor: Stored, limits: &Limits) -> tensor_core::Result<()> {
        let found = (self.tensors.len() as u64).saturating_add(1);
        let limit = limits.tensors;
        if found > limit {
            let (what, field) = ("number of tensors", "tensors");
            return Err(tensor_core::Error::OverLimit { what, found, limit, field });
        }
        let numbers = tensor.strides.len().saturating_mul(size_of::<[u64; 2]>());
        self.memory.take(tensor.path.len().saturating_add(numbers).saturating_add(64))?;
        self.tensors.push(tensor);
        Ok(())
    }
}

/// Which part of a model a tensor is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Place {
    /// The parameters and buffers: `data.pkl`, or the state of a FlatBuffer file.
    State,
    /// The constants of the code: `constants.pkl`, or those of the functions of a FlatBuffer file.
    Constants,
    /// The constants of the lite interpreter's code, `bytecode.pkl`, as far as they are no others:
    /// files of old bytecode versions hold them twice.
    Bytecode,
}

impl Place {
    /// Returns what stands before paths in names.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::State => "",
            Self::Constants => "constants/",
            Self::Bytecode => "bytecode/",
        }
    }
}

/// Where the elements of a tensor are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StorageId {
    /// A record, by its name without the root folder, and the number of its elements.
    Record { name: String, elements: u64 },
    /// A storage of a FlatBuffer file.
    Index(u32),
}

impl fmt::Display for StorageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record { name, .. } => write!(f, "record {:?}", crate::spec::json::short(name)),
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
    /// One scale and zero point for each slice, which [`Tensor::scales`] and [`Tensor::zero_points`]
    /// give.
    ///
    /// [`Tensor::scales`]: crate::Tensor::scales
    /// [`Tensor::zero_points`]: crate::Tensor::zero_points
    PerChannel {
        /// The name of the scheme is that of PyTorch.
        scheme: Scheme,
        /// The dimension along which slices lie, counted from 0.
        axis: i64,
    },
}
