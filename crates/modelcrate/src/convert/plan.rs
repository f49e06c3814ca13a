//! What becomes of each tensor.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

use tensor_core::{Chain, DType, Limits, Shape, TensorInfo};

use super::{
    cast::Cast,
    options::ConvertOptions,
    refusal::{Note, Refusal},
    target::Target,
};
use crate::{
    set::{Form, NamedTensor, TensorSet},
    weights::{self, ElementType, Planned},
};

/// A tensor as the file is to have it.
#[derive(Debug)]
pub(super) struct Item<'s, 'a> {
    pub(super) tensor: &'s NamedTensor<'a>,
    pub(super) name: String,
    pub(super) element_type: ElementType,
    pub(super) shape: &'s Shape,
    /// Of its elements as they are to be.
    pub(super) byte_len: u64,
    pub(super) step: Step,
}

/// What is done to elements on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// They are copied, little-endian and in order.
    Copy,
    /// They become those of another type.
    Cast(Cast),
    /// They become `f32` by their scales and zero points.
    Dequantize,
}

impl Target {
    /// Says of elements of a type that widespread readers of the format do not open.
    fn unread(self, element_type: ElementType) -> Option<String> {
        let is_unread = match (self, element_type) {
            #[cfg(feature = "ztensor")]
            (Self::ZTensor, ElementType::Plain(dtype)) => {
                matches!(dtype, DType::C64 | DType::C128 | DType::F8E4M3 | DType::F8E5M2)
            }
            _ => false,
        };
        is_unread
            .then(|| format!("{element_type}, a file with which Python's ztensor 1.1.1 refuses"))
    }
}

/// Says of all tensors what becomes of them, or why they cannot be in the file.
pub(super) fn items<'s, 'a>(
    set: &'s TensorSet<'a>,
    target: Target,
    options: &ConvertOptions,
) -> (Vec<Item<'s, 'a>>, Vec<Note>, Vec<Refusal>) {
    let (mut items, mut notes) = (Vec::with_capacity(set.tensors().len()), Vec::new());
    let mut refused = unknown_names(set, &options.names);
    let mut names = HashSet::new();
    for tensor in set.tensors() {
        match item(tensor, target, options) {
            Ok((item, effect)) => {
                let tensor = || tensor.name().to_owned();
                if !names.insert(item.name.clone()) {
                    let reason = format!("another tensor is called {:?} too", item.name);
                    refused.push(Refusal::of(&tensor(), reason));
                }
                items.push(item);
                notes.extend(effect.map(|effect| Note { tensor: tensor(), effect }));
            }
            Err(refusal) => refused.push(refusal),
        }
    }
    (items, notes, refused)
}

fn unknown_names(set: &TensorSet<'_>, names: &BTreeMap<String, String>) -> Vec<Refusal> {
    let unknown = names.keys().filter(|name| set.tensor(name).is_none());
    unknown.map(|name| Refusal::of(name, "there is no tensor of this name")).collect()
}

/// Says what becomes of a tensor, also in words where it is not written as it is.
fn item<'s, 'a>(
    tensor: &'s NamedTensor<'a>,
    target: Target,
    options: &ConvertOptions,
) -> Result<(Item<'s, 'a>, Option<String>), Refusal> {
    let has = |element_type| target.has(element_type);
    let lacks = |element_type| format!("{target} has no element type {element_type}");
    let fit = Fit { tensor, has: &has, lacks: &lacks, options };
    let Became { element_type, shape, step, effect } = fit.step()?;
    let name = options.names.get(tensor.name()).map_or(tensor.name(), String::as_str);
    let planned = Planned { name, element_type, shape };
    if let Some(reason) = target.refuses(&planned) {
        return Err(fit.refusal(reason));
    }
    let byte_len = planned.byte_len().map_err(|error| fit.refusal(error))?;
    // What can be told without reading is told now.
    if let Ok((ElementType::Plain(_), _)) = tensor.elements() {
        tensor.tensor().extent().map_err(|error| fit.refusal(Chain(&error)))?;
    }
    let effect = effect.or_else(|| target.unread(element_type));
    let item = Item { tensor, name: name.to_owned(), element_type, shape, byte_len, step };
    Ok((item, effect))
}

/// A tensor that is to be of an element type that something has.
pub(super) struct Fit<'f, 's, 'a> {
    pub(super) tensor: &'s NamedTensor<'a>,
    pub(super) has: &'f dyn Fn(ElementType) -> bool,
    /// Says that there is no such element type.
    pub(super) lacks: &'f dyn Fn(ElementType) -> String,
    pub(super) options: &'f ConvertOptions,
}

/// What comes out, and in words what is done, where that is something.
pub(super) struct Became<'s> {
    pub(super) element_type: ElementType,
    pub(super) shape: &'s Shape,
    pub(super) step: Step,
    pub(super) effect: Option<String>,
}

impl<'s> Fit<'_, 's, '_> {
    /// Says what is done to the elements.
    pub(super) fn step(&self) -> Result<Became<'s>, Refusal> {
        match (self.tensor.form(), self.tensor.elements()) {
            (Form::Sparse(TensorInfo { dtype, shape }), _) => self.sparse(*dtype, shape),
            (Form::Group(_), _) => Err(self.group()),
            (Form::Packed(shape), _) => self.packed(shape),
            (_, Err(error)) => Err(self.refusal(Chain(error))),
            (Form::Codes, Ok((codes, shape))) => self.codes(codes, shape),
            (Form::Plain, Ok((blocks @ ElementType::Blocks { .. }, shape))) => {
                self.blocks(blocks, shape)
            }
            (Form::Plain, Ok((ElementType::Plain(dtype), shape))) => self.cast(dtype, shape),
            (Form::Plain, Ok((element_type, shape))) => match self.lacks(element_type) {
                Some(refusal) => Err(refusal),
                None => Ok(Became { element_type, shape, step: Step::Copy, effect: None }),
            },
        }
    }

    fn sparse(&self, dtype: DType, shape: &'s Shape) -> Result<Became<'s>, Refusal> {
        let bytes = shape.byte_len(dtype).unwrap_or(u64::MAX);
        let effect = format!("stored with its zeros, {bytes} bytes");
        if self.options.densify {
            return Ok(self.cast(dtype, shape)?.and(effect));
        }
        Err(self.not_dense().or("densify", effect))
    }

    fn group(&self) -> Refusal {
        let refusal = self.not_dense();
        let reason = format!("{}, and does not say how codes are packed", refusal.reason);
        Refusal { reason, ..refusal }
    }

    fn packed(&self, shape: &'s Shape) -> Result<Became<'s>, Refusal> {
        match self.tensor.tensor().cannot_dequantize() {
            Some(why) if self.options.dequantize => {
                Err(self.refusal(format!("cannot be dequantized: {why}")))
            }
            Some(_) => Err(self.not_dense()),
            None if self.options.dequantize => Ok(Became::singles("its codes", shape)),
            None => Err(self.not_dense().or("dequantize", as_singles("its codes", shape))),
        }
    }

    fn codes(&self, codes: ElementType, shape: &'s Shape) -> Result<Became<'s>, Refusal> {
        if self.options.dequantize {
            return match self.tensor.tensor().cannot_dequantize() {
                None => Ok(Became::singles(codes, shape)),
                Some(why) => Err(self.refusal(format!("cannot be dequantized: {why}"))),
            };
        }
        let ElementType::Plain(dtype) = codes else { return Err(self.not_dense()) };
        Ok(self.cast(dtype, shape)?.and("codes without their scales".to_owned()))
    }

    fn blocks(&self, blocks: ElementType, shape: &'s Shape) -> Result<Became<'s>, Refusal> {
        let can = blocks.can_dequantize();
        match self.lacks(blocks) {
            _ if self.options.dequantize && can => Ok(Became::singles(blocks, shape)),
            None => Ok(Became { element_type: blocks, shape, step: Step::Copy, effect: None }),
            Some(refusal) if can => Err(refusal.or("dequantize", as_singles(blocks, shape))),
            Some(refusal) => Err(refusal),
        }
    }

    fn cast(&self, dtype: DType, shape: &'s Shape) -> Result<Became<'s>, Refusal> {
        let element_type = ElementType::Plain(dtype);
        let Some(refusal) = self.lacks(element_type) else {
            return Ok(Became { element_type, shape, step: Step::Copy, effect: None });
        };
        match Cast::nearest(dtype, |dtype| (self.has)(ElementType::Plain(dtype))) {
            Some(cast) if self.options.lossy => {
                let (element_type, step) = (ElementType::Plain(cast.to), Step::Cast(cast));
                Ok(Became { element_type, shape, step, effect: Some(cast.effect()) })
            }
            Some(cast) => Err(refusal.or("lossy", cast.effect())),
            None => Err(refusal),
        }
    }

    /// Says that there is no such element type; `None` where there is.
    fn lacks(&self, element_type: ElementType) -> Option<Refusal> {
        (!(self.has)(element_type)).then(|| self.refusal((self.lacks)(element_type)))
    }

    fn not_dense(&self) -> Refusal {
        let reason = self.tensor.elements().err().map(|error| Chain(error).to_string());
        self.refusal(reason.unwrap_or_default())
    }

    fn refusal(&self, reason: impl fmt::Display) -> Refusal {
        Refusal::of(self.tensor.name(), reason.to_string())
    }
}

impl<'s> Became<'s> {
    fn singles(what: impl fmt::Display, shape: &'s Shape) -> Self {
        let (element_type, effect) = (ElementType::Plain(DType::F32), as_singles(what, shape));
        Self { element_type, shape, step: Step::Dequantize, effect: Some(effect) }
    }

    /// Says also what was done before.
    fn and(self, before: String) -> Self {
        let effect = match self.effect {
            Some(effect) => format!("{before}; {effect}"),
            None => before,
        };
        Self { effect: Some(effect), ..self }
    }
}

fn as_singles(what: impl fmt::Display, shape: &Shape) -> String {
    let bytes = shape.byte_len(DType::F32).unwrap_or(u64::MAX);
    format!("{what} as f32, {bytes} bytes")
}

impl Target {
    /// Tells whether a file of this format has an element type.
    fn has(self, element_type: ElementType) -> bool {
        match (self, element_type) {
            (Self::Gguf, _) => element_type.to_ggml().is_some(),
            (Self::Safetensors, _) => element_type.to_safetensors().is_some(),
            (Self::Npy, ElementType::Plain(dtype)) => weights::npy::has(dtype),
            #[cfg(feature = "archive")]
            (Self::Npz, ElementType::Plain(dtype)) => weights::npy::has(dtype),
            #[cfg(feature = "ztensor")]
            (Self::ZTensor | Self::ZTensor2, ElementType::Plain(dtype)) => dtype.width().is_some(),
            #[cfg(feature = "ztensor")]
            (Self::ZTensor2, _) => crate::set::ztensor_elements(element_type).is_some(),
            _ => false,
        }
    }

    /// Says what of a tensor a file of this format does not have.
    fn refuses(self, planned: &Planned<'_>) -> Option<String> {
        let (rank, most) = (planned.shape.rank(), Limits::default().rank);
        if rank as u64 > most {
            return Some(format!("it has {rank} dimensions, and readers take at most {most}"));
        }
        match self {
            Self::Gguf => weights::gguf_refuses(planned),
            Self::Safetensors => weights::safetensors_refuses(planned),
            #[cfg(feature = "archive")]
            Self::Npz => weights::npz::refuses(planned),
            Self::Npy => weights::npy::refuses(planned.shape),
            #[cfg(feature = "ztensor")]
            Self::ZTensor => None,
            #[cfg(feature = "ztensor")]
            Self::ZTensor2 => {
                let is_name = ztensor::is_canonical_name(planned.name);
                (!is_name).then(|| {
                    "names are of 1 to 1024 bytes in normal form C, without NUL, there".to_owned()
                })
            }
        }
    }
}
