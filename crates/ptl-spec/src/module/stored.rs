//! What a model file says of its tensors, before any of their bytes is read.

use std::{collections::HashSet, fmt, sync::OnceLock};

use tensor_core::{Budget, Limit, Limits, Shape, text::short};

use crate::{ScalarType, pickle::Scheme};

/// A tensor as it is stored: a view of a storage that others may share.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// Where it is in the model.
    pub(crate) place: Place,
    /// Its path, behind the prefix of its place.
    pub(crate) name: String,
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

/// Which elements a tensor has: its storage, offset, sizes and strides.
pub(crate) type View = (StorageId, u64, Shape, Vec<u64>);

impl Stored {
    pub(crate) fn view(&self) -> View {
        let Self { storage, offset, shape, strides, .. } = self;
        (storage.clone(), *offset, shape.clone(), strides.clone())
    }
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
    /// Its path, behind the prefix of its place.
    pub(crate) name: String,
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
    limits: Limits,
    /// What names and shapes may take.
    memory: Budget,
    /// Positions of the tensors, sorted by name; those of one name by position.
    by_name: OnceLock<Vec<usize>>,
}

impl Listing {
    pub(crate) fn new(limits: &Limits) -> Self {
        let what = "list of tensors in bytes";
        Self {
            tensors: Vec::new(),
            sparse: Vec::new(),
            limits: *limits,
            memory: Budget::new(what, limits.manifest_bytes, Limit::ManifestBytes),
            by_name: OnceLock::new(),
        }
    }

    /// Adds a tensor. One that is shared is listed once for each of its names, and all of them may
    /// be long.
    pub(crate) fn push(&mut self, tensor: Stored) -> tensor_core::Result<()> {
        let found = (self.tensors.len() as u64).saturating_add(1);
        self.limits.check(Limit::Tensors, "number of tensors", found)?;
        let numbers = tensor.strides.len().saturating_mul(size_of::<[u64; 2]>());
        self.memory.take(tensor.name.len().saturating_add(numbers).saturating_add(64) as u64)?;
        self.tensors.push(tensor);
        Ok(())
    }

    pub(crate) fn views(&self) -> HashSet<View> {
        self.tensors.iter().map(Stored::view).collect()
    }

    /// Returns the first tensor of a name.
    pub(crate) fn find(&self, name: &str) -> Option<&Stored> {
        let order = self.order();
        let at = |index: &usize| self.tensors.get(*index).map_or("", |tensor| &tensor.name);
        let first = order.partition_point(|index| at(index) < name);
        self.tensors.get(*order.get(first)?).filter(|tensor| tensor.name == name)
    }

    /// Returns the tensors whose names others have that are listed before.
    pub(crate) fn repeated(&self) -> impl Iterator<Item = &Stored> {
        let tensor = |index: &usize| self.tensors.get(*index);
        self.order().windows(2).filter_map(move |pair| match pair {
            [one, other] => {
                let (one, other) = (tensor(one)?, tensor(other)?);
                (one.name == other.name).then_some(other)
            }
            _ => None,
        })
    }

    fn order(&self) -> &[usize] {
        self.by_name.get_or_init(|| {
            let mut order: Vec<usize> = (0..self.tensors.len()).collect();
            order.sort_by_key(|index| self.tensors.get(*index).map(|tensor| &tensor.name));
            order
        })
    }
}

/// Which part of a model a tensor is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Place {
    /// The parameters and buffers: `data.pkl`, or the state of a FlatBuffer file.
    State,
    /// The constants of the code for the full runtime: `constants.pkl`, or those that a FlatBuffer
    /// file lists with its source.
    Constants,
    /// The constants of the lite interpreter's code, `bytecode.pkl` or the functions of a FlatBuffer
    /// file, as far as they are not the others: files of old bytecode versions hold them twice.
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

    pub(crate) fn name_of(self, path: &str) -> String {
        format!("{}{path}", self.prefix())
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
            Self::Record { name, .. } => write!(f, "record {:?}", short(name)),
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
