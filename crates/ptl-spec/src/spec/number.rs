//! What a JSON value is worth as a number, a truth value or a text: strictly, or as Android's getters
//! have it.

use crate::{Dialect, Json};

/// What a value was read as, and whether it was a text that looks like it; `None` where it is not one.
pub(crate) type Read<T> = Option<(T, bool)>;

impl Dialect {
    pub(crate) fn double(self, value: &Json) -> Read<f64> {
        Some(match value {
            Json::Int(value) => (*value as f64, false),
            Json::String(text) => (self.text_as_double(text)?, true),
            other => (other.as_float()?, false),
        })
    }

    pub(crate) fn long(self, value: &Json) -> Read<i64> {
        Some(match value {
            Json::Int(value) => (*value, false),
            Json::String(text) => match text.trim().parse() {
                Ok(value) => (value, true),
                Err(_) => (self.whole(self.text_as_double(text)?)?, true),
            },
            other => (self.whole(other.as_float()?)?, false),
        })
    }

    /// Reads a truth value; on Android a text in any case is accepted.
    pub(crate) fn bool(self, value: &Json) -> Read<bool> {
        match (self, value) {
            (_, Json::Bool(value)) => Some((*value, false)),
            (Self::Android, Json::String(text)) => {
                text.to_ascii_lowercase().parse().ok().map(|value| (value, true))
            }
            _ => None,
        }
    }

    /// Reads a text; on Android everything has one.
    pub(crate) fn text(self, value: &Json) -> Option<String> {
        match (self, value) {
            (_, Json::String(text)) => Some(text.clone()),
            (Self::Android, Json::Null) => None,
            (Self::Android, other) => Some(other.to_string()),
            (Self::Documented, _) => None,
        }
    }

    fn text_as_double(self, text: &str) -> Option<f64> {
        match self {
            Self::Documented => decimal(text).filter(|value| value.is_finite()),
            Self::Android => java_double(text),
        }
    }

    /// Turns a number into a whole one: on Android by dropping the fraction, else only where there
    /// is none.
    #[expect(clippy::cast_possible_truncation, reason = "casts saturate, as Java's do")]
    fn whole(self, value: f64) -> Option<i64> {
        let is_whole = value.fract() == 0.0 && (-TWO_63..TWO_63).contains(&value);
        (self == Self::Android || is_whole).then_some(value as i64)
    }
}

/// Reads a number as JSON writes it, with a plus sign at most in the exponent.
fn decimal(text: &str) -> Option<f64> {
    let rest = text.strip_prefix('-').unwrap_or(text);
    let starts = rest.starts_with(|character: char| character.is_ascii_digit());
    let plain =
        text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    if starts && plain { text.parse().ok() } else { None }
}

/// Reads a number as `Double.parseDouble` of Java does, but for hexadecimal ones.
fn java_double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|character| character <= ' ');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_negative = text.starts_with('-');
    match unsigned {
        "NaN" => return Some(f64::NAN),
        "Infinity" if is_negative => return Some(f64::NEG_INFINITY),
        "Infinity" => return Some(f64::INFINITY),
        _ => {}
    }
    let digits = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    let starts =
        unsigned.starts_with(|character: char| character.is_ascii_digit() || character == '.');
    if starts { digits.parse().ok() } else { None }
}

/// 2^63, the first whole number that 64 bits with a sign do not hold.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn long(dialect: Dialect, value: impl Into<Json>) -> Option<i64> {
        dialect.long(&value.into()).map(|(value, _)| value)
    }

    #[test]
    fn whole_numbers() {
        for (value, documented, android) in [
            (Json::Int(7), Some(7), Some(7)),
            (Json::Float(7.0), Some(7), Some(7)),
            (Json::Float(5.9), None, Some(5)),
            (Json::Float(-5.9), None, Some(-5)),
            (Json::Float(1e300), None, Some(i64::MAX)),
            ("7".into(), Some(7), Some(7)),
            ("9223372036854775807".into(), Some(i64::MAX), Some(i64::MAX)),
            ("5.9".into(), None, Some(5)),
            ("1e3".into(), Some(1000), Some(1000)),
            ("x".into(), None, None),
            (Json::Bool(true), None, None),
            (Json::Null, None, None),
        ] {
            assert_eq!(long(Dialect::Documented, value.clone()), documented, "{value}");
            assert_eq!(long(Dialect::Android, value.clone()), android, "{value}");
        }
    }

    #[test]
    fn texts_as_numbers() {
        for (text, documented, android) in [
            ("0.5", true, true),
            ("-1e3", true, true),
            ("0x10", false, false),
            ("NaN", false, true),
            ("nan", false, false),
            ("inf", false, false),
            ("-Infinity", false, true),
            (" 1", false, true),
            ("1f", false, true),
            ("", false, false),
            (".5", false, true),
        ] {
            let value = Json::from(text);
            assert_eq!(Dialect::Documented.double(&value).is_some(), documented, "{text}");
            assert_eq!(Dialect::Android.double(&value).is_some(), android, "{text}");
        }
    }

    #[test]
    fn truth_values() {
        let bool = |dialect: Dialect, value: Json| dialect.bool(&value).map(|(value, _)| value);
        assert_eq!(bool(Dialect::Documented, true.into()), Some(true));
        assert_eq!(bool(Dialect::Documented, "true".into()), None);
        assert_eq!(bool(Dialect::Android, "TRUE".into()), Some(true));
        assert_eq!(bool(Dialect::Android, "yes".into()), None);
        assert_eq!(bool(Dialect::Android, 1.into()), None);
    }
}
