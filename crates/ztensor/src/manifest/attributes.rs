//! Free-form values of a file or an object, by key. Format text: Part II, sections 1 and 2.

use std::{collections::BTreeMap, ops::Range};

use bytes::Bytes;
use tensor_core::Limits;

use super::{
    Value,
    cbor::{self, Decoder},
    emit::Emitter,
};
use crate::Problem;

/// The free-form values of a file or an object, by key; sorted by the UTF-8 bytes of the key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes(BTreeMap<String, Value>);

impl Attributes {
    /// Returns the value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Sets the value of a key and returns the one that it had.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        self.0.insert(key.into(), value.into())
    }

    /// Removes a key and returns the value that it had.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key)
    }

    /// Returns keys and values, sorted by key.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Encodes the map, sorted by key.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        let mut emitter = Emitter::new(&mut out);
        emitter.map(self.len());
        for (key, value) in self.iter() {
            emitter.text(key).value(value);
        }
        out.into()
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

/// An item of a manifest that was checked to be well formed and is not decoded yet.
#[derive(Clone, Debug)]
pub(crate) struct Encoded {
    pub(crate) bytes: Bytes,
    /// Where it starts in the manifest.
    pub(crate) at: usize,
}

impl Encoded {
    pub(crate) fn slice(manifest: &Bytes, range: Range<usize>) -> Self {
        Self { at: range.start, bytes: manifest.slice(range) }
    }

    /// Wraps a map that we have encoded.
    pub(crate) fn from_attributes(attributes: &Attributes) -> Self {
        Self { bytes: attributes.encode(), at: 0 }
    }

    pub(crate) fn attributes(&self, limits: &Limits) -> cbor::Result<Attributes> {
        let (found, limit) = (self.bytes.len() as u64, limits.metadata_bytes);
        if found > limit {
            let problem = Problem::OverLimit { found, limit, field: "metadata_bytes" };
            return Err(Decoder::problem(self.at, problem));
        }
        let mut decoder = Decoder::new(&self.bytes, 0, limits.depth).with_memory(limit);
        attributes_map(&mut decoder).map_err(|error| error.moved(self.at))
    }
}

fn attributes_map(decoder: &mut Decoder<'_>) -> cbor::Result<Attributes> {
    let mut items = decoder.map("a map of attributes")?;
    let mut attributes = BTreeMap::new();
    while decoder.more(&mut items)? {
        let at = decoder.at();
        let key = decoder.text("a key, as text")?.into_owned();
        if attributes.contains_key(&key) {
            return Err(Decoder::problem(at, Problem::DuplicateKey { key }));
        }
        let value = decoder.value(1).map_err(|e| e.inside(format_args!("{key:?}")))?;
        attributes.insert(key, value);
    }
    Ok(Attributes(attributes))
}

/// Skips an attribute map, or null, and returns where it is.
pub(crate) fn attributes_range(decoder: &mut Decoder<'_>) -> cbor::Result<Option<Range<usize>>> {
    if decoder.null() {
        return Ok(None);
    }
    let start = decoder.at();
    // A look at the head is enough: `skip` checks what is inside, and decoding checks the keys.
    decoder.clone().map("a map of attributes, or null")?;
    decoder.skip()?;
    Ok(Some(start..decoder.at()))
}
