//! The `unpack` object: what becomes of the model's output. Format text: "Unpack".

use crate::{Json, Slot};

/// One object of `unpack`: what becomes of one value of the model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Unpack {
    /// `tuple`: each item by an object of its own.
    Tuple(Vec<Self>),
    /// `list`: each item by an object of its own.
    List(Vec<Self>),
    /// `dict_string_key`: the key in the model's dictionary, and the object for its value.
    Dict(Vec<(Slot<String>, Self)>),
    /// `tensor`: its elements as one flat array, row-major.
    Tensor {
        /// The name of the result.
        key: Slot<String>,
        /// The element type that the model must give.
        dtype: ElementType,
    },
    /// `scalar_long`.
    Long {
        /// The name of the result.
        key: Slot<String>,
    },
    /// `scalar_float`.
    Float {
        /// The name of the result.
        key: Slot<String>,
    },
    /// `scalar_bool`.
    Bool {
        /// The name of the result.
        key: Slot<String>,
    },
    /// `string`.
    String {
        /// The name of the result.
        key: Slot<String>,
    },
    /// `tensor_to_string` with the decoder `gpt2`: the text of token ids.
    TensorToString {
        /// The name of the result.
        key: Slot<String>,
    },
    /// `bert_decode_qa_answer`: the part of the packed text that the model points at.
    BertAnswer {
        /// The name of the result; nothing is written where there is no answer.
        key: Slot<String>,
    },
    /// `argmax`, which the format's text does not have: the index of the largest element.
    Argmax {
        /// The name of the result.
        key: Slot<String>,
        /// The element type that the model must give.
        dtype: ElementType,
        /// The name of the result that gets the softmax there.
        value_key: Option<Slot<String>>,
    },
    /// `bounding_boxes`, which the format's text does not have: what a detector has found.
    BoundingBoxes(BoundingBoxes),
    /// `tensor_to_image`, which the format's text does not have: a picture made of a tensor
    /// `[1, 3, height, width]`.
    TensorToImage {
        /// The name of the result.
        key: Slot<String>,
    },
    /// An object whose type, or something else that decides what it is, is a stub: known when the
    /// call gives it.
    Deferred(Json),
}

/// What is kept of a detector's boxes.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundingBoxes {
    /// The name of the result.
    pub key: Slot<String>,
    /// Boxes are kept whose probability is above.
    pub threshold: Slot<f64>,
    /// The names of the classes, in the order of the model.
    pub classes: Slot<Vec<Slot<String>>>,
}

/// An element type that specs name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// `float`: 32-bit floats.
    Float,
    /// `long`: 64-bit integers with a sign.
    Long,
}

impl ElementType {
    /// Returns the name that stands in specs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Long => "long",
        }
    }
}
