//! JSON values in the order of the text, with whole numbers kept apart from others.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
    ser::{SerializeMap, SerializeSeq},
};
use tensor_core::{Limit, Limits, text::short};

use crate::{Error, Result};

/// A JSON value. Objects keep the order of their members.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Json {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number that is written without fraction and exponent, and fits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// The members of an object.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text: strict JSON in which no object has a key twice. A byte order mark in front of
    /// it is passed over.
    ///
    /// # Errors
    ///
    /// [`Error::Json`] with line and column; the limits are `manifest_bytes` and `depth`.
    pub fn parse(text: &[u8], limits: &Limits) -> Result<Self> {
        limits.check(Limit::ManifestBytes, "spec in bytes", text.len() as u64)?;
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let mut reader = serde_json::Deserializer::from_slice(text);
        let seed = Seed { depth: limits.depth, limit: limits.depth };
        let value = seed.deserialize(&mut reader).map_err(|error| Error::json(&error))?;
        reader.end().map_err(|error| Error::json(&error))?;
        Ok(value)
    }

    /// Returns the member of an object; `None` for any other value.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Returns a text; `None` for any other value.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// Returns the text of the value with one member or item a line, indented by one blank.
    #[must_use]
    pub fn to_pretty(&self) -> String {
        let mut text = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
        let written =
            self.serialize(&mut serde_json::Serializer::with_formatter(&mut text, formatter));
        // Writing to memory does not fail, and all keys are texts.
        written.map(|()| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
    }

    /// Describes the value for a message, in a few words.
    pub(crate) fn described(&self) -> String {
        match self {
            Self::String(text) => format!("{:?}", short(text)),
            Self::Array(items) => format!("an array of {}", items.len()),
            Self::Object(_) => "an object".to_owned(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Json {
    /// Writes the text of the value without blanks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for Json {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Json {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl<T: Into<Self>> From<Vec<T>> for Json {
    fn from(items: Vec<T>) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(items) => {
                let mut array = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| array.serialize_element(item))?;
                array.end()
            }
            Self::Object(members) => {
                let mut object = serializer.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(key, value)| object.serialize_entry(key, value))?;
                object.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let limit = Limits::default().depth;
        Seed { depth: limit, limit }.deserialize(deserializer)
    }
}

/// Reads one value, at most `depth` levels deep.
#[derive(Clone, Copy)]
struct Seed {
    depth: u32,
    limit: u32,
}

impl Seed {
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        let Self { depth, limit } = self;
        let over = || {
            E::custom(format_args!("nesting is over the limit of {limit} levels (Limits::depth)"))
        };
        Ok(Self { depth: depth.checked_sub(1).ok_or_else(over)?, limit })
    }
}

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        // What does not fit is a double, as in every JSON reader without integers.
        Ok(i64::try_from(value).map_or(Json::Float(value as f64), Json::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Json, E> {
        Ok(Json::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Json, A::Error> {
        let (inner, mut items) = (self.inner()?, Vec::new());
        while let Some(item) = array.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Json, A::Error> {
        let (inner, mut members) = (self.inner()?, Vec::new());
        let mut keys = HashSet::new();
        while let Some(key) = object.next_key::<String>()? {
            if !keys.insert(key.clone()) {
                return Err(A::Error::custom(format_args!("key {:?} stands twice", short(&key))));
            }
            members.push((key, object.next_value_seed(inner)?));
        }
        Ok(Json::Object(members))
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Json> {
        Json::parse(text.as_bytes(), &Limits::default())
    }

    #[test]
    fn order_and_numbers_are_kept() {
        let text = r#"{"z":1,"a":[1.0,-0.5,1e+300,9223372036854775807,"ü\n"],"m":{"null":null}}"#;
        let value = parse(text).unwrap();
        assert_eq!(value.to_string(), text);
        assert_eq!(value.get("z"), Some(&Json::Int(1)));
    }

    #[test]
    fn byte_order_mark_is_passed_over() {
        assert_eq!(parse("\u{feff}[]").unwrap(), Json::Array(vec![]));
    }

    #[test]
    fn refused_texts() {
        for (text, message) in [
            (
                "{\"a\": 1, \"a\": 2}",
                "spec is malformed: key \"a\" stands twice at line 1 column 12",
            ),
            ("[1] x", "spec is malformed: trailing characters at line 1 column 5"),
            ("", "spec is malformed: EOF while parsing a value at line 1 column 0"),
            ("[1,]", "spec is malformed: trailing comma at line 1 column 4"),
            ("{'a': 1}", "spec is malformed: key must be a string at line 1 column 2"),
            ("[NaN]", "spec is malformed: expected value at line 1 column 2"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        parse(&nested(64)).unwrap();
        let error = parse(&nested(65)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "spec is malformed: nesting is over the limit of 64 levels (Limits::depth) at line 1 column 66"
        );
        parse(&nested(100_000)).unwrap_err();
    }
}
