//! What attributes may be written: such as a reader takes with its default limits.

use std::io::Write;

use bytes::Bytes;
use tensor_core::{Limit, Limits};

use super::{Version, Writer};
use crate::{
    Attributes, Object, Reader, Value,
    error::{Error, Result},
    manifest::{Encoded, cbor::Decoder},
};

impl<W: Write> Writer<W> {
    /// Returns the attributes of an object, or those of the file.
    pub(crate) fn attributes_of(&self, object: Option<&str>) -> Result<Attributes> {
        let Some(name) = object else { return decoded(self.root.attributes.as_ref()) };
        decoded(self.object_of(name)?.attributes.as_ref())
    }

    fn object_of(&self, name: &str) -> Result<Object> {
        let missing = || Error::MissingObject { name: name.to_owned() };
        let body = Bytes::copy_from_slice(self.index.body(name).ok_or_else(missing)?);
        if self.version() == Version::V2 {
            return Object::from_encoded_v2(&body);
        }
        Object::from_encoded(&body, &limits())
    }

    /// Changes the attributes of the file that is written.
    pub(crate) fn change_attributes(&mut self, change: impl FnOnce(&mut Attributes)) -> Result<()> {
        let version = self.version();
        if let Some(attributes) = changed("", self.root.attributes.as_ref(), version, change)? {
            self.root.attributes = attributes;
        }
        Ok(())
    }

    /// Changes the attributes of an object that was added, or that stood in the file before.
    pub(crate) fn change_attributes_of(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Attributes),
    ) -> Result<()> {
        let mut object = self.object_of(name)?;
        let version = self.version();
        if let Some(attributes) = changed(name, object.attributes.as_ref(), version, change)? {
            object.attributes = attributes;
            self.index.remove(name)?;
            self.index.push_object(name, &object)?;
        }
        Ok(())
    }
}

/// Returns attributes after a change, where it changed any: `None` of them where none are left.
fn changed(
    object: &str,
    encoded: Option<&Encoded>,
    version: Version,
    change: impl FnOnce(&mut Attributes),
) -> Result<Option<Option<Encoded>>> {
    let before = decoded(encoded)?;
    let mut after = before.clone();
    change(&mut after);
    Ok(match after {
        after if after == before => None,
        after if after.is_empty() => Some(None),
        after => Some(Some(encode_attributes(object, &after, version)?)),
    })
}

fn decoded(encoded: Option<&Encoded>) -> Result<Attributes> {
    let attributes = encoded.map(|encoded| encoded.attributes(&limits())).transpose();
    let attributes = attributes.map_err(|error| error.inside("attributes").into_error(0))?;
    Ok(attributes.unwrap_or_default())
}

/// Returns the limits under which what is edited was opened.
fn limits() -> Limits {
    Reader::options().into_limits()
}

/// Encodes attributes, once they are proved to be such as a reader takes with its default limits.
pub(super) fn encode_attributes(
    object: &str,
    attributes: &Attributes,
    version: Version,
) -> Result<Encoded> {
    let found = attributes.iter().map(|(_, value)| levels(value)).max().unwrap_or_default();
    let (most, expected) = match version {
        Version::V2 => (MAX_LEVELS_V2, "at most 28"),
        Version::V1_1 | Version::V1_2 => (MAX_LEVELS, "at most 126"),
    };
    if found > most {
        let what = "nesting of attributes in levels";
        return Err(Error::Setting { what, found: found.into(), expected });
    }
    if version == Version::V2 {
        let encoded = attributes.encode_v2()?;
        let len = encoded.bytes.len() as u64;
        Limits::default().check(Limit::MetadataBytes, "length of attributes in bytes", len)?;
        return Ok(encoded);
    }
    let encoded = Encoded::from_attributes(attributes);
    let len = encoded.bytes.len() as u64;
    Limits::default().check(Limit::MetadataBytes, "length of attributes in bytes", len)?;
    // Encoded keys are what must differ, so it takes the decoder to tell.
    let Err(error) = Decoder::new(&encoded.bytes, 0, u32::MAX).value(0) else {
        return Ok(encoded);
    };
    Err(match error.inside("attributes").into_error(0) {
        Error::Manifest { path, problem, .. } => {
            let (object, problem) = (object.to_owned(), format!("{path} {problem}"));
            Error::Layout { object, problem }.given()
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
/// What may nest in the attributes of an object of generation 2, which lies on level 4 of 32: an item in
/// the innermost container is on the last.
const MAX_LEVELS_V2: u32 = 28;
