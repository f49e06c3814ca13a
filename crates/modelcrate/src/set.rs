//! Named tensors of a file of any format.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use serde_json::Value;
use tensor_core::{Shape, TensorInfo};

use crate::{
    AnyReader, AnyTensor, Error, Format, Result,
    convert::Refusal,
    quantization,
    weights::{self, ElementType},
};

/// The tensors of a file, or of several, under names of which each stands once, and metadata: what is
/// converted, compared and hashed. Nothing is read before it is asked for.
#[derive(Debug, Default)]
pub struct TensorSet<'a> {
    /// Where the metadata are from.
    pub(crate) reader: Option<&'a AnyReader>,
    metadata: BTreeMap<String, Value>,
    tensors: Vec<NamedTensor<'a>>,
    names: HashMap<String, usize>,
}

/// A tensor of a [`TensorSet`].
#[derive(Debug)]
pub struct NamedTensor<'a> {
    name: String,
    tensor: AnyTensor<'a>,
    form: Form,
    elements: Result<(ElementType, Shape)>,
}

/// How a tensor stands for its elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    /// By what [`NamedTensor::elements`] says, one after another.
    Plain,
    /// By those that are not zero, of such a tensor.
    Sparse(TensorInfo),
    /// By whole numbers, with scales and zero points beside them.
    Codes,
    /// By packed codes with scales and zero points, of a tensor of such a shape.
    Group(Shape),
    /// The same, and the layout says how codes are packed.
    Packed(Shape),
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
        let mut set =
            TensorSet { reader: Some(self), metadata: self.metadata(), ..TensorSet::default() };
        for (place, tensor) in self.tensors()?.enumerate() {
            let mut name = tensor.key().map_or_else(|| format!("#{place}"), str::to_owned);
            while set.names.contains_key(&name) {
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
        Self::default()
    }

    /// Adds a tensor of an open file.
    ///
    /// # Errors
    ///
    /// Where the set has one of this name.
    pub fn add(&mut self, name: impl Into<String>, tensor: AnyTensor<'a>) -> Result<(), Refusal> {
        let name = name.into();
        if self.names.contains_key(&name) {
            return Err(Refusal::of(&name, "stands twice, expected once"));
        }
        self.push(name, tensor);
        Ok(())
    }

    /// Returns the format of the file that the metadata are from; `None` of a set that was made of
    /// several.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        self.reader.map(AnyReader::format)
    }

    /// Returns the metadata of the file by key.
    #[must_use]
    pub const fn metadata(&self) -> &BTreeMap<String, Value> {
        &self.metadata
    }

    /// Returns the metadata to be changed.
    pub const fn metadata_mut(&mut self) -> &mut BTreeMap<String, Value> {
        &mut self.metadata
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

    /// Keeps only the tensors whose names a test lets through.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.tensors.retain(|tensor| keep(&tensor.name));
        let names = self.tensors.iter().enumerate();
        self.names = names.map(|(place, tensor)| (tensor.name.clone(), place)).collect();
    }

    fn push(&mut self, name: String, tensor: AnyTensor<'a>) {
        self.names.insert(name.clone(), self.tensors.len());
        let form = tensor.form();
        let elements = tensor.elements(&form);
        self.tensors.push(NamedTensor { name, tensor, form, elements });
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

    pub(crate) const fn form(&self) -> &Form {
        &self.form
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

impl<'a> AnyTensor<'a> {
    /// Returns its name; `None` where it has none, or an empty one that other tensors may have too.
    fn key(self) -> Option<&'a str> {
        let is_key = match self {
            #[cfg(feature = "circle")]
            Self::Circle(_) => false,
            #[cfg(feature = "rten")]
            Self::Rten(_) => false,
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => true,
        };
        self.name().filter(|name| is_key || !name.is_empty())
    }
}

impl AnyTensor<'_> {
    fn form(self) -> Form {
        match self {
            #[cfg(feature = "ztensor")]
            Self::ZTensor(tensor) => match tensor.object() {
                Ok(object) if object.format == ztensor::Format::QuantizedGroup => {
                    Form::Group(object.shape)
                }
                Ok(object) if quantization::is_packed(&object.format) => Form::Packed(object.shape),
                Ok(object) if object.format != ztensor::Format::Dense => {
                    tensor.info().map_or(Form::Plain, Form::Sparse)
                }
                _ => Form::Plain,
            },
            #[cfg(feature = "circle")]
            Self::Circle(tensor) => {
                let quantization = tensor.tensor().and_then(|one| one.quantization.as_ref());
                let has_codes = quantization.is_some_and(|found| found.is_quantized());
                if has_codes { Form::Codes } else { Form::Plain }
            }
            #[cfg(feature = "ptl")]
            Self::Ptl(tensor) if tensor.quantization().is_some() => Form::Codes,
            #[cfg(feature = "rten")]
            Self::Rten(tensor) if tensor.quantization().is_some() => Form::Codes,
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => Form::Plain,
        }
    }

    fn elements(self, form: &Form) -> Result<(ElementType, Shape)> {
        match self {
            Self::Weights(tensor) => Ok((tensor.element_type(), tensor.shape().clone())),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(tensor) if let Some(elements) = packed_elements(tensor) => {
                Ok((elements, tensor.object()?.shape))
            }
            #[cfg(feature = "ztensor")]
            Self::ZTensor(tensor) if *form != Form::Plain => {
                let what = format!("is stored as {}, expected dense", tensor.object()?.format);
                Err(weights::Error::Unsupported { what }.into())
            }
            #[cfg(feature = "circle")]
            Self::Circle(tensor) if tensor.tensor().is_some_and(|one| one.sparsity.is_some()) => {
                let what = "is stored as sparse, expected dense".to_owned();
                Err(weights::Error::Unsupported { what }.into())
            }
            #[allow(unreachable_patterns, reason = "without other formats")]
            tensor => tensor.info().map(|info| (ElementType::Plain(info.dtype), info.shape)),
        }
    }
}

/// Returns what the elements of a dense tensor of generation 2 are, where other formats have them but
/// not the workspace's tensors.
#[cfg(feature = "ztensor")]
pub(crate) fn packed_elements(tensor: ztensor::Tensor<'_>) -> Option<ElementType> {
    let object = tensor.object().ok()?;
    let data = object.component(&ztensor::Role::Data)?;
    let is_dense = object.format == ztensor::Format::Dense;
    match data.elements().filter(|_| is_dense)? {
        ztensor::ElementType::Packed { name, bits } => {
            // safetensors calls it so.
            let name = if name == "f4_e2m1" { "f4" } else { name };
            Some(ElementType::Packed { name, bits: bits.into() })
        }
        _ => None,
    }
}

/// Returns an element type as zTensor has it; `None` of one that it lacks.
#[cfg(feature = "ztensor")]
pub(crate) fn ztensor_elements(element_type: ElementType) -> Option<ztensor::ElementType> {
    match element_type {
        ElementType::Plain(dtype) => Some(dtype.into()),
        ElementType::Packed { name, bits } => {
            // safetensors calls it so.
            let name = if name == "f4" { "f4_e2m1" } else { name };
            let known = ["f4_e2m1", "f8_e8m0", "f8_e4m3fnuz", "f8_e5m2fnuz"].contains(&name);
            let bits = u32::try_from(bits).ok()?;
            known.then_some(ztensor::ElementType::Packed { name, bits })
        }
        ElementType::Blocks { .. } => None,
    }
}
