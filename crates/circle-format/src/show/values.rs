//! Values of a model as JSON.

use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::{
    flex::Value,
    model::{
        BuiltinOptions, BuiltinOptions2, Operator, TensorType,
        options::{OptionValue, OptionValue::Number as Named},
    },
};

/// A number that may be none: JSON has no other.
#[derive(Clone, Copy)]
pub(super) struct Float(pub(super) f64);

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            number if number.is_finite() => serializer.serialize_f64(number),
            number if number.is_nan() => serializer.serialize_str("NaN"),
            number if number < 0.0 => serializer.serialize_str("-Infinity"),
            _ => serializer.serialize_str("Infinity"),
        }
    }
}

/// Numbers of 32 bits.
pub(super) struct Floats<'a>(pub(super) &'a [f32]);

impl Floats<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Floats<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|&number| Single(number)))
    }
}

/// A number of 32 bits, with no more digits than it has.
#[derive(Clone, Copy)]
pub(super) struct Single(pub(super) f32);

impl Serialize for Single {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            return serializer.serialize_f32(self.0);
        }
        Float(self.0.into()).serialize(serializer)
    }
}

/// Writes an element type as its name, or what is stored.
pub(super) fn tensor_type<S: Serializer>(
    of: &TensorType,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(of)
}

/// The options of an operator, of either union.
#[derive(Serialize)]
pub(super) struct Options<'a> {
    /// None where the table is unknown.
    table: Option<&'static str>,
    tag: u8,
    fields: Fields<'a>,
}

impl<'a> Options<'a> {
    pub(super) fn of(operator: &'a Operator) -> Option<Self> {
        let of_first = |options: &'a BuiltinOptions| Self {
            table: options.name(),
            tag: options.tag(),
            fields: Fields(options.fields()),
        };
        operator.options.as_ref().map(of_first)
    }

    pub(super) fn of_second(operator: &'a Operator) -> Option<Self> {
        let of_second = |options: &'a BuiltinOptions2| Self {
            table: options.name(),
            tag: options.tag(),
            fields: Fields(options.fields()),
        };
        operator.options_2.as_deref().map(of_second)
    }
}

struct Fields<'a>(Vec<(&'static str, OptionValue<'a>)>);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, Field(value))))
    }
}

struct Field<'a>(&'a OptionValue<'a>);

impl Serialize for Field<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            OptionValue::Bool(value) => serializer.serialize_bool(*value),
            OptionValue::Int(number) => serializer.serialize_i64(*number),
            OptionValue::Float(number) => Single(*number).serialize(serializer),
            Named { name, code } => Name(*name, *code).serialize(serializer),
            OptionValue::Bools(values) => values.serialize(serializer),
            OptionValue::Ints(numbers) => numbers.serialize(serializer),
            OptionValue::Floats(numbers) => Floats(numbers).serialize(serializer),
            OptionValue::Numbers(numbers) => {
                serializer.collect_seq(numbers.iter().map(|(name, code)| Name(*name, *code)))
            }
            OptionValue::Text(text) => text.serialize(serializer),
            OptionValue::Bytes(bytes) => blob(bytes.len(), serializer),
        }
    }
}

/// A number that stands for something: its name, or else itself.
struct Name(Option<&'static str>, i64);

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self(Some(name), _) => serializer.serialize_str(name),
            Self(None, code) => serializer.serialize_i64(*code),
        }
    }
}

/// What is in the options of a custom operator.
pub(super) struct Flex(pub(super) Value);

impl Serialize for Flex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Part(&self.0).serialize(serializer)
    }
}

struct Part<'a>(&'a Value);

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::Uint(number) => serializer.serialize_u64(*number),
            Value::Float(number) => Float(*number).serialize(serializer),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Blob(bytes) => blob(*bytes, serializer),
            Value::Vector(values) => serializer.collect_seq(values.iter().map(Part)),
            Value::Map(members) => {
                serializer.collect_map(members.iter().map(|(key, value)| (key, Part(value))))
            }
            Value::Null => serializer.serialize_none(),
        }
    }
}

/// Writes how many bytes there are, which are not shown.
fn blob<S: Serializer>(bytes: usize, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry("bytes", &bytes)?;
    map.end()
}
