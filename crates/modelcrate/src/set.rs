//! Named tensors of a file of any format.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use serde_json::Value;
use tensor_core::Shape;

use crate::{
    AnyReader, AnyTensor, Error, Format, Refusal, Result, SummaryOptions,
    weights::{self, ElementType},
};

/// The tensors of a file under names of which each stands once, and the metadata of the file: what is
/// converted, compared and hashed. Nothing is read before it is asked for.
#[derive(Debug)]
pub struct TensorSet<'a> {
    format: Format,
    metadata: BTreeMap<String, Value>,
    tensors: Vec<NamedTensor<'a>>,
    names: HashMap<String, usize>,
}

/// A tensor of a [`TensorSet`].
#[derive(Debug)]
pub struct NamedTensor<'a> {
    name: String,
    tensor: AnyTensor<'a>,
    elements: Result<(ElementType, Shape)>,
}

impl AnyReader {
    /// Returns all tensors with names. Those that have none, as constants of Circle and RTen models
    /// may, are called by their place among all, such as `#3`; of several of one name the later ones
    /// have their place behind it, such as `w#7`.
    ///
    /// # Errors
    ///
    /// As for [`tensors`](Self::tensors).
    pub fn tensor_set(&self) -> Result<TensorSet<'_>> {
        let metadata = self.summary(SummaryOptions::default()).metadata;
        let mut set = TensorSet { format: self.format(), metadata, ..TensorSet::new() };
        for (place, tensor) in self.tensors()?.enumerate() {
            let mut name = tensor.name().unwrap_or_default().to_owned();
            while name.is_empty() || set.names.contains_key(&name) {
                name = format!("{name}#{place}");
            }
            set.push(name, tensor);
        }
        Ok(set)
    }
}

impl<'a> TensorSet<'a> {
    /// Starts a set without tensors, to which those of several files can be added.
    #[must_use]
    pub fn new() -> Self {
        let (metadata, tensors, names) = Default::default();
        Self { format: Format::Npz, metadata, tensors, names }
    }

    /// Adds a tensor of an open file.
    ///
    /// # Errors
    ///
    /// Where the set has one of this name.
    pub fn add(&mut self, name: impl Into<String>, tensor: AnyTensor<'a>) -> Result<(), Refusal> {
        let name = name.into();
        if self.names.contains_key(&name) {
            return Err(Refusal { tensor: name, reason: "stands twice, expected once".to_owned() });
        }
        self.push(name, tensor);
        Ok(())
    }

    /// Returns the metadata, to be changed.
    pub const fn metadata_mut(&mut self) -> &mut BTreeMap<String, Value> {
        &mut self.metadata
    }

    /// Returns the format of the file.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Returns the metadata of the file by key.
    #[must_use]
    pub const fn metadata(&self) -> &BTreeMap<String, Value> {
        &self.metadata
    }

    /// Returns the tensors, in the order of the file.
    #[must_use]
    pub fn tensors(&self) -> &[NamedTensor<'a>] {
        &self.tensors
    }

    /// Returns the tensor of a name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&NamedTensor<'a>> {
        self.tensors.get(*self.names.get(name)?)
    }

    fn push(&mut self, name: String, tensor: AnyTensor<'a>) {
        self.names.insert(name.clone(), self.tensors.len());
        self.tensors.push(NamedTensor { name, tensor, elements: tensor.elements() });
    }

    /// Keeps only the tensors whose names a test lets through.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.tensors.retain(|tensor| keep(&tensor.name));
        let names = self.tensors.iter().enumerate();
        self.names = names.map(|(place, tensor)| (tensor.name.clone(), place)).collect();
    }
}

impl Default for TensorSet<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> NamedTensor<'a> {
    /// Returns its name in the set.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the handle of its format.
    #[must_use]
    pub const fn tensor(&self) -> AnyTensor<'a> {
        self.tensor
    }

    /// Returns what its elements are, and its shape.
    ///
    /// # Errors
    ///
    /// Why they cannot be told, or are not those of one dense tensor.
    pub fn elements(&self) -> Result<(ElementType, &Shape), &Error> {
        self.elements.as_ref().map(|(element_type, shape)| (*element_type, shape))
    }

    /// Returns its bytes: of plain elements little-endian and in order, of others as they are stored.
    ///
    /// # Errors
    ///
    /// Where they cannot be read or decoded.
    pub fn bytes(&self) -> Result<Bytes> {
        match self.tensor {
            AnyTensor::Weights(tensor)
                if !matches!(tensor.element_type(), ElementType::Plain(_)) =>
            {
                Ok(tensor.stored_bytes()?)
            }
            #[allow(unreachable_patterns, reason = "without other formats")]
            tensor => tensor.bytes(),
        }
    }
}

impl AnyTensor<'_> {
    fn elements(self) -> Result<(ElementType, Shape)> {
        match self {
            Self::Weights(tensor) => Ok((tensor.element_type(), tensor.shape().clone())),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(tensor) if tensor.object()?.format != ztensor::Format::Dense => {
                let what = format!("is stored as {}, expected dense", tensor.object()?.format);
                Err(weights::Error::Unsupported { what }.into())
            }
            #[allow(unreachable_patterns, reason = "without other formats")]
            tensor => tensor.info().map(|info| (ElementType::Plain(info.dtype), info.shape)),
        }
    }
}
