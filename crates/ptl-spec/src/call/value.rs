//! What goes into a model and comes out of it, and what a call gives.

use std::fmt;

use tensor_core::{Element, TensorBuf};

#[cfg(feature = "image")]
use crate::image::Image;
use crate::{Fault, Json, call::named::Named, spec::emit::object};

/// A value of `TorchScript`: what a model takes and gives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// A tensor, row-major.
    Tensor(TensorBuf),
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Double(f64),
    /// A text.
    String(String),
    /// Values of any kinds.
    Tuple(Vec<Self>),
    /// Values of one kind.
    List(Vec<Self>),
    /// Values by name, in the model's order.
    Dict(Vec<(String, Self)>),
    /// Nothing.
    None,
}

impl Value {
    /// Returns what it is, in one word.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Tensor(_) => "a tensor",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Double(_) => "a double",
            Self::String(_) => "a string",
            Self::Tuple(_) => "a tuple",
            Self::List(_) => "a list",
            Self::Dict(_) => "a dictionary",
            Self::None => "nothing",
        }
    }

    /// Describes the value for a message.
    pub(crate) fn described(&self) -> String {
        match self {
            Self::Tensor(tensor) => format!("a tensor {}", tensor.info()),
            other => other.kind().to_owned(),
        }
    }

    /// Says that the model should have given something else.
    pub(crate) fn fault(&self, expected: &'static str) -> Fault {
        Fault::ModelOutput { found: self.described(), expected }
    }

    /// Returns the elements of a tensor of one type.
    pub(crate) fn elements<T: Element>(&self, expected: &'static str) -> Result<Vec<T>, Fault> {
        match self {
            Self::Tensor(tensor) if tensor.info().dtype == T::DTYPE => {
                Ok(tensor.view().to_vec::<T>()?)
            }
            other => Err(other.fault(expected)),
        }
    }

    pub(crate) fn floats(&self) -> Result<Vec<f32>, Fault> {
        self.elements("a tensor of f32")
    }
}

/// What a call gives, by name, in the order of the spec.
#[derive(Clone, Debug, Default)]
pub struct Results(Named<ResultValue>);

impl Results {
    /// Returns the result of a name; `None` where there is none, such as an answer that the model
    /// did not find.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&ResultValue> {
        self.0.get(key).map(|(_, value)| value)
    }

    /// Returns all results.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &ResultValue)> {
        self.0.iter()
    }

    /// Returns an object with all results but pictures, which have no JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let members = self.iter().map(|(key, value)| (key.to_owned(), value.to_json()));
        Json::Object(members.collect())
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Adds a result, in the place of one of the same name.
    pub(crate) fn put(&mut self, key: &str, value: ResultValue) {
        self.0.put(key.to_owned(), value);
    }
}

impl fmt::Display for Results {
    /// Writes [`to_json`](Self::to_json).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}

/// One result of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ResultValue {
    /// The elements of a tensor, row-major.
    Floats(Vec<f32>),
    /// The elements of a tensor, row-major.
    Longs(Vec<i64>),
    /// A whole number.
    Int(i64),
    /// A number.
    Double(f64),
    /// True or false.
    Bool(bool),
    /// A text.
    String(String),
    /// What a detector has found.
    Boxes(Vec<BoundingBox>),
    /// A picture.
    #[cfg(feature = "image")]
    Image(Image),
}

/// Something that a detector has found.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundingBox {
    /// The name of its class.
    pub class: String,
    /// Where it is, as the model says.
    pub bounds: [f32; 4],
}

impl ResultValue {
    /// Returns the value as JSON: numbers that JSON does not have become `null`, a picture its
    /// width and height.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let double = |&value: &f32| Json::Float(value.into());
        match self {
            Self::Floats(values) => Json::Array(values.iter().map(double).collect()),
            Self::Longs(values) => values.clone().into(),
            Self::Int(value) => (*value).into(),
            Self::Double(value) => (*value).into(),
            Self::Bool(value) => (*value).into(),
            Self::String(text) => text.as_str().into(),
            Self::Boxes(boxes) => Json::Array(
                boxes
                    .iter()
                    .map(|found| {
                        object([
                            ("objectClass", found.class.as_str().into()),
                            ("bounds", Json::Array(found.bounds.iter().map(double).collect())),
                        ])
                    })
                    .collect(),
            ),
            #[cfg(feature = "image")]
            Self::Image(image) => object([
                ("width", i64::from(image.width()).into()),
                ("height", i64::from(image.height()).into()),
            ]),
        }
    }
}
