//! The `pack` object: what becomes of a call's parameters. Format text: "Pack".

use crate::{Colour, Json, Slot, spec::unpack::ElementType};

/// One object of `pack`: something that becomes a value for the model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Pack {
    /// `tuple`: the values of its items.
    Tuple(Vec<Self>),
    /// `scalar_bool`.
    Bool(Slot<bool>),
    /// `scalar_long`.
    Long(Slot<i64>),
    /// `scalar_double`.
    Double(Slot<f64>),
    /// `tensor`: sizes and items as they stand there.
    Tensor(PackTensor),
    /// `tensor_from_image`.
    Image(PackImage),
    /// `tensor_from_string`.
    String(PackString),
    /// `tensor_from_audio`, which the format's text does not have: a tensor `[1, samples]` of f32.
    Audio {
        /// The name of the parameter.
        audio: Slot<String>,
    },
    /// An object whose type, or something else that decides what it is, is a stub: known when the
    /// call gives it.
    Deferred(Json),
}

/// A tensor whose items stand in the spec. Sizes are elements, outermost first.
#[derive(Clone, Debug, PartialEq)]
pub struct PackTensor {
    /// The dimensions.
    pub sizes: Slot<Vec<Slot<u64>>>,
    /// The elements, row-major.
    pub items: Items,
}

/// The elements of a [`PackTensor`].
#[derive(Clone, Debug, PartialEq)]
pub enum Items {
    /// dtype `float`: f32 in the tensor.
    Float(Slot<Vec<Slot<f64>>>),
    /// dtype `long`: i64.
    Long(Slot<Vec<Slot<i64>>>),
}

impl Items {
    pub(crate) const fn element_type(&self) -> ElementType {
        match self {
            Self::Float(_) => ElementType::Float,
            Self::Long(_) => ElementType::Long,
        }
    }
}

/// A picture that becomes a tensor: any number of steps on the picture, then one that makes the
/// tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct PackImage {
    /// The name of the parameter.
    pub image: Slot<String>,
    /// The transforms of type `image_to_image`, in their order.
    pub steps: Vec<ImageStep>,
    /// The transform of type `image_to_tensor` at the end.
    pub tensor: TensorStep,
}

/// A transform of type `image_to_image`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ImageStep {
    /// `center_crop`: a part of that size in the middle, in pixels; on Android the largest part of
    /// that aspect ratio. Without a size, the largest square.
    CenterCrop {
        /// The width.
        width: Option<Slot<i64>>,
        /// The height.
        height: Option<Slot<i64>>,
    },
    /// `scale`: the whole picture in that size, in pixels.
    Scale {
        /// The width.
        width: Slot<i64>,
        /// The height.
        height: Slot<i64>,
    },
}

/// A transform of type `image_to_tensor`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TensorStep {
    /// `rgb_norm`: `(channel / 255 - mean) / std`, a tensor `[1, 3, height, width]`.
    RgbNorm {
        /// One value for each of red, green, blue.
        mean: Slot<[Slot<f64>; 3]>,
        /// One value for each of red, green, blue.
        std: Slot<[Slot<f64>; 3]>,
    },
    /// `greyscale_norm`, which the format's text does not have: how near a pixel is to one of two
    /// colours, a tensor `[1, 1, height, width]`.
    GreyscaleNorm {
        /// The colour that becomes 0.
        background: Slot<Colour>,
        /// The colour that becomes 1.
        foreground: Slot<Colour>,
        /// What is subtracted.
        mean: Slot<f64>,
        /// What is divided by.
        std: Slot<f64>,
    },
}

/// A text that becomes a tensor of token ids.
#[derive(Clone, Debug, PartialEq)]
pub struct PackString {
    /// The text.
    pub string: Slot<String>,
    /// How it is cut into tokens.
    pub tokenizer: Tokenizer,
}

/// How texts become token ids. Format text: type `tensor_from_string`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Tokenizer {
    /// `bert`, with the vocabulary of the root key `vocabulary_bert`.
    Bert {
        /// How many ids the tensor has: more are cut off, fewer filled up.
        length: Slot<i64>,
    },
    /// `gpt2`, with the vocabulary of the root key `vocabulary_gpt2`.
    Gpt2,
}
