//! What attributes may be written: such as a reader takes with its default limits.

use tensor_core::{Error as Core, Limits};

use crate::{
    Attributes, Value,
    error::{Error, Result},
    manifest::{Encoded, cbor::Decoder},
};

/// Encodes attributes, once they are proved to be such as a reader takes with its default limits.
pub(super) fn encode_attributes(object: &str, attributes: &Attributes) -> Result<Encoded> {
    let found = attributes.iter().map(|(_, value)| levels(value)).max().unwrap_or_default();
    if found > MAX_LEVELS {
        let (what, expected) = ("nesting of attributes in levels", "at most 126");
        return Err(Error::Setting { what, found: found.into(), expected });
    }
    let encoded = Encoded::from_attributes(attributes);
    let (found, limit) = (encoded.bytes.len() as u64, Limits::default().metadata_bytes);
    if found > limit {
        let (what, field) = ("length of attributes in bytes", "metadata_bytes");
        return Err(Core::OverLimit { what, found, limit, field }.into());
    }
    // Encoded keys are what must differ, so it takes the decoder to tell.
    let Err(error) = Decoder::new(&encoded.bytes, 0, u32::MAX).value(0) else {
        return Ok(encoded);
    };
    Err(match error.inside("attributes").into_error(0) {
        Error::Manifest { path, problem, .. } => {
            Error::Layout { object: object.to_owned(), problem: format!("{path} {problem}") }
        }
        error => error,
    })
}

/// Returns how many arrays, maps and tags of a value lie inside one another.
fn levels(value: &Value) -> u32 {
    let mut deepest = 0_u32;
    let mut open = vec![(value, 1_u32)];
    while let Some((value, level)) = open.pop() {
        let inner = level.saturating_add(1);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, inner))),
            Value::Map(pairs) => {
                open.extend(pairs.iter().flat_map(|(key, value)| [(key, inner), (value, inner)]));
            }
            Value::Tag(_, value) => open.push((value, inner)),
            _ => continue,
        }
        deepest = deepest.max(level);
    }
    deepest
}

/// Two levels below the default limit of readers: one for the map of attributes, one for an integer
/// that is written as a bignum.
const MAX_LEVELS: u32 = 126;
