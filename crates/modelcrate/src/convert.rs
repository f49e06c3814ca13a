//! Tensors of a file of any format as a file of another.

use std::{collections::BTreeMap, io::Write, path::Path};

use bytes::Bytes;
use serde_json::Value;
use tensor_core::{DType, Shape, TensorBuf};

use crate::{
    Error, Format, NamedTensor, Result, TensorSet,
    weights::{self, ElementType, Layout, Planned},
};

/// What tensors can be converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// GGUF, version 3.
    Gguf,
    /// An archive of `NumPy`.
    #[cfg(feature = "archive")]
    Npz,
    /// One safetensors file.
    Safetensors,
    /// zTensor 1.1.
    #[cfg(feature = "ztensor")]
    ZTensor,
}

impl Target {
    /// All that this build writes.
    pub const ALL: &[Self] = &[
        Self::Gguf,
        #[cfg(feature = "archive")]
        Self::Npz,
        Self::Safetensors,
        #[cfg(feature = "ztensor")]
        Self::ZTensor,
    ];

    /// Returns the one word for it, which is the usual end of its files too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gguf => "gguf",
            #[cfg(feature = "archive")]
            Self::Npz => "npz",
            Self::Safetensors => "safetensors",
            #[cfg(feature = "ztensor")]
            Self::ZTensor => "zt",
        }
    }

    /// Returns what the name of a file ends in, in letters of either case.
    #[must_use]
    pub fn from_path(path: impl AsRef<Path>) -> Option<Self> {
        let extension = path.as_ref().extension()?.to_str()?.to_ascii_lowercase();
        Self::ALL.iter().copied().find(|target| target.name() == extension)
    }
}

/// A conversion that was found to be possible, before anything is written.
#[derive(Debug)]
pub struct Conversion<'s, 'a> {
    set: &'s TensorSet<'a>,
    target: Target,
    tensors: Vec<Planned<'s>>,
    metadata: BTreeMap<String, Value>,
    left_out: Vec<String>,
    layout: Option<Layout>,
}

/// Why a tensor cannot be in a file of the target.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Refusal {
    /// The name of the tensor.
    pub tensor: String,
    /// What the target does not have.
    pub reason: String,
}

impl<'a> TensorSet<'a> {
    /// Finds out whether all tensors can be in one file of another format.
    ///
    /// # Errors
    ///
    /// Every tensor that cannot.
    pub fn convert_to(&self, target: Target) -> Result<Conversion<'_, 'a>, Vec<Refusal>> {
        let (mut tensors, mut refused) = (Vec::new(), Vec::new());
        for tensor in self.tensors() {
            let (name, elements) = (tensor.name(), tensor.elements());
            let reason = match elements {
                Err(error) => Some(tensor_core::Chain(error).to_string()),
                Ok((element_type, shape)) => {
                    tensors.push(Planned { name, element_type, shape });
                    target.refuses(name, element_type, shape)
                }
            };
            refused.extend(reason.map(|reason| Refusal { tensor: name.to_owned(), reason }));
        }
        let (mut metadata, mut left_out) = (BTreeMap::new(), Vec::new());
        for (key, value) in self.metadata() {
            match target.carried(self.format(), value) {
                Some(value) => _ = metadata.insert(key.clone(), value),
                None => left_out.push(key.clone()),
            }
        }
        let layout = match target {
            _ if !refused.is_empty() => return Err(refused),
            Target::Gguf => Some(Layout::gguf(&metadata, &tensors)),
            Target::Safetensors => {
                let texts = metadata.iter().map(|(key, value)| (key.clone(), text(value)));
                Some(Layout::safetensors(&texts.collect(), &tensors))
            }
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => None,
        };
        let layout = layout
            .transpose()
            .map_err(|error| vec![Refusal { tensor: String::new(), reason: error.to_string() }])?;
        Ok(Conversion { set: self, target, tensors, metadata, left_out, layout })
    }
}

impl Target {
    /// Returns a value of metadata as a file of this format has it: GGUF has texts, truth values,
    /// numbers and lists of one of these, the others have texts, and what is more is JSON in a text;
    /// `None` where it has no metadata, or the value was not read whole.
    fn carried(self, from: Format, value: &Value) -> Option<Value> {
        let is_shortened = from == Format::Gguf && value.is_object();
        match self {
            _ if is_shortened => None,
            #[cfg(feature = "archive")]
            Self::Npz => None,
            Self::Gguf if weights::has_value(value) => Some(value.clone()),
            _ => Some(text(value).into()),
        }
    }

    /// Says what of a tensor a file of this format does not have.
    fn refuses(self, name: &str, element_type: ElementType, shape: &Shape) -> Option<String> {
        let has_type = match (self, element_type) {
            (Self::Gguf, _) => element_type.to_ggml().is_some(),
            (Self::Safetensors, _) => element_type.to_safetensors().is_some(),
            #[cfg(feature = "archive")]
            (Self::Npz, ElementType::Plain(dtype)) => weights::npy::has(dtype),
            #[cfg(feature = "ztensor")]
            (Self::ZTensor, ElementType::Plain(dtype)) => {
                dtype.bits().is_some_and(|bits| bits >= 8)
            }
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => false,
        };
        if !has_type {
            return Some(format!("{self} has no element type {element_type}"));
        }
        match self {
            Self::Gguf if name.len() > 63 => Some("its name is longer than 63 bytes".to_owned()),
            Self::Gguf if shape.rank() > 4 => Some("it has more than 4 dimensions".to_owned()),
            Self::Safetensors if name == "__metadata__" => {
                Some("safetensors has no tensor of this name".to_owned())
            }
            _ => None,
        }
    }
}

impl Conversion<'_, '_> {
    /// Returns how long the file will be in bytes, where that is known before it is written.
    #[must_use]
    pub fn file_len(&self) -> Option<u64> {
        self.layout.as_ref().map(Layout::file_len)
    }

    /// Returns the keys of the metadata that the file will not have.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Writes the file, with one tensor in memory at a time, and tells `progress` how many bytes of
    /// tensors were done each time some are.
    ///
    /// # Errors
    ///
    /// Where a tensor cannot be read; where the sink fails.
    pub fn write<W: Write>(&self, mut sink: W, progress: impl Fn(u64)) -> Result<W> {
        let read = |index: usize| {
            let bytes = self
                .set
                .tensors()
                .get(index)
                .map_or_else(|| Ok(Bytes::new()), NamedTensor::bytes)?;
            progress(bytes.len() as u64);
            Ok::<Bytes, Error>(bytes)
        };
        match self.target {
            #[cfg(feature = "archive")]
            Target::Npz => self.npz(sink, read),
            #[cfg(feature = "ztensor")]
            Target::ZTensor => self.ztensor(sink, read),
            Target::Gguf | Target::Safetensors => {
                if let Some(layout) = &self.layout {
                    layout.write(&mut sink, |index, sink| {
                        let written = sink.write_all(&read(index)?);
                        Ok::<(), Error>(written.map_err(weights::Error::Write)?)
                    })?;
                }
                Ok(sink)
            }
        }
    }

    #[cfg(feature = "archive")]
    fn npz<W: Write>(&self, sink: W, read: impl Fn(usize) -> Result<Bytes>) -> Result<W> {
        let mut writer = weights::npz::Writer::new(sink);
        for (index, Planned { name, shape, .. }) in self.tensors.iter().enumerate() {
            let Some(dtype) = self.plain(index) else { continue };
            writer.add(name, &TensorBuf::new(dtype, (*shape).clone(), read(index)?)?)?;
        }
        Ok(writer.finish()?)
    }

    #[cfg(feature = "ztensor")]
    fn ztensor<W: Write>(&self, sink: W, read: impl Fn(usize) -> Result<Bytes>) -> Result<W> {
        let mut writer = ztensor::Writer::new(sink);
        let mut attributes = ztensor::Attributes::default();
        for (key, value) in &self.metadata {
            attributes.insert(key, text(value));
        }
        writer.set_attributes(&attributes);
        for (index, Planned { name, shape, .. }) in self.tensors.iter().enumerate() {
            let Some(dtype) = self.plain(index) else { continue };
            writer.add(name, &TensorBuf::new(dtype, (*shape).clone(), read(index)?)?)?;
        }
        Ok(writer.finish()?)
    }

    fn plain(&self, index: usize) -> Option<DType> {
        match self.tensors.get(index)?.element_type {
            ElementType::Plain(dtype) => Some(dtype),
            _ => None,
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
