//! JSON values in the order of the text, with whole numbers kept apart from others.

use std::{cell::Cell, collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
    ser::{Error as _, SerializeMap, SerializeSeq},
};
use serde_json::value::RawValue;
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
    /// Any other number that 64 bits hold.
    Float(f64),
    /// A number with more digits than they hold, as it is written.
    Number(String),
    /// A text.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// The members of an object.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text: strict JSON in which no object has a key twice. A byte order mark in front of
    /// it is skipped.
    ///
    /// # Errors
    ///
    /// [`Error::Json`] with line and column; the limits are `manifest_bytes` and `depth`.
    pub fn parse(text: &[u8], limits: &Limits) -> Result<Self> {
        limits.check(Limit::ManifestBytes, "spec in bytes", text.len() as u64)?;
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let mut reader = serde_json::Deserializer::from_slice(text);
        let has_floats = Cell::new(false);
        let seed = Seed { depth: limits.depth, limit: limits.depth, has_floats: &has_floats };
        let mut value = seed.deserialize(&mut reader).map_err(|error| Error::json(&error))?;
        reader.end().map_err(|error| Error::json(&error))?;
        if has_floats.get() {
            value.keep_digits(&mut Numbers(text));
        }
        Ok(value)
    }

    /// Puts numbers of the text in the place of those that lost digits.
    fn keep_digits(&mut self, numbers: &mut Numbers<'_>) {
        match self {
            Self::Int(_) => _ = numbers.next(),
            Self::Float(value) => {
                let text = numbers.next().unwrap_or_default();
                if digits(text) != digits(&format!("{value:e}")) {
                    *self = Self::Number(text.to_owned());
                }
            }
            Self::Array(items) => items.iter_mut().for_each(|item| item.keep_digits(numbers)),
            Self::Object(members) => {
                members.iter_mut().for_each(|(_, value)| value.keep_digits(numbers));
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => {}
        }
    }

    /// Returns a number that is not an [`Int`](Self::Int); `None` for any other value.
    pub(crate) fn as_float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            Self::Number(text) => text.parse().ok(),
            _ => None,
        }
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

macro_rules! from {
    ($($from:ty: $value:ident => $json:expr;)*) => {
        $(impl From<$from> for Json {
            fn from($value: $from) -> Self {
                $json
            }
        })*
    };
}

from! {
    bool: value => Self::Bool(value);
    i32: value => Self::Int(value.into());
    i64: value => Self::Int(value);
    f64: value => Self::Float(value);
    &str: text => Self::String(text.to_owned());
    String: text => Self::String(text);
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
            Self::Number(text) => {
                let raw = RawValue::from_string(text.clone()).map_err(S::Error::custom)?;
                raw.serialize(serializer)
            }
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
        let (limit, has_floats) = (Limits::default().depth, &Cell::new(false));
        Seed { depth: limit, limit, has_floats }.deserialize(deserializer)
    }
}

/// Reads one value, at most `depth` levels deep.
#[derive(Clone, Copy)]
struct Seed<'f> {
    depth: u32,
    limit: u32,
    has_floats: &'f Cell<bool>,
}

impl Seed<'_> {
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        let Self { depth, limit, has_floats } = self;
        let over = || {
            E::custom(format_args!("nesting is over the limit of {limit} levels (Limits::depth)"))
        };
        Ok(Self { depth: depth.checked_sub(1).ok_or_else(over)?, limit, has_floats })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
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

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Json, E> {
        // What does not fit is a double, as in every JSON reader without integers.
        i64::try_from(value).map_or_else(|_| self.visit_f64(value as f64), |int| Ok(Json::Int(int)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        self.has_floats.set(true);
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

/// The numbers of a well-formed text, in its order.
struct Numbers<'t>(&'t [u8]);

impl<'t> Iterator for Numbers<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let mut in_text = false;
        while let [byte, rest @ ..] = self.0 {
            match byte {
                b'"' => in_text = !in_text,
                b'\\' => self.0 = rest,
                b'-' | b'0'..=b'9' if !in_text => break,
                _ => {}
            }
            self.0 = self.0.get(1..).unwrap_or_default();
        }
        let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let len = self.0.iter().position(|byte| !is_part(byte)).unwrap_or(self.0.len());
        let (number, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        std::str::from_utf8(number).ok()
    }
}

/// Returns the digits of a number without zeros at either end, and the power of ten behind the last.
fn digits(number: &str) -> Option<(bool, String, i64)> {
    let (mantissa, power) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (is_negative, all) = (whole.starts_with('-'), format!("{whole}{fraction}"));
    let digits = all.trim_start_matches(['-', '0']);
    let kept = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len().saturating_sub(kept.len())).ok()?;
    let power = power.parse::<i64>().ok()?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let power = if kept.is_empty() { 0 } else { power.checked_add(zeros)? };
    Some((is_negative, kept.to_owned(), power))
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
    fn digits_are_kept() {
        let text =
            r#"{"a":[12345678901234567890,-3.141592653589793238462643383279],"\"1":-1e-999}"#;
        let value = parse(text).unwrap();
        assert_eq!(value.to_string(), text);
        assert_eq!(serde_json::to_string(&[&value]).unwrap(), format!("[{text}]"));
        assert!(
            matches!(value.get("a"), Some(Json::Array(items)) if items[0].as_float() == Some(12345678901234567890.0))
        );
        // Of these the number is what counts.
        let value = parse(r#"["1\\",1e3,0.10,-0.0,1.5E+2,100,0e7]"#).unwrap();
        assert_eq!(value.to_string(), r#"["1\\",1000.0,0.1,-0.0,150.0,100,0.0]"#);
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
