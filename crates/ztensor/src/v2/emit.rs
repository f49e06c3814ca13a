//! Encoding a manifest in the only way that is allowed.

use std::borrow::Cow;

use crate::{
    Attributes, Component, Encoding, Object, Value,
    error::{Error, Result},
    manifest::{Encoded, Key, emit::Emitter},
};

/// The fields of a map: each key, encoded, with its encoded value.
#[derive(Default)]
pub(crate) struct Fields<'a>(Vec<(Vec<u8>, Cow<'a, [u8]>)>);

impl<'a> Fields<'a> {
    /// Adds a field whose value is encoded.
    pub(crate) fn raw(&mut self, key: &str, value: &'a [u8]) -> &mut Self {
        self.0.push((encoded_text(key), Cow::Borrowed(value)));
        self
    }

    /// Adds a field that the format does not name.
    pub(crate) fn other(&mut self, key: &Key, value: &'a [u8]) {
        let encoded = key.encoded().map(|encoded| encoded.to_vec());
        let text = || encoded_text(key.as_str());
        self.0.push((encoded.unwrap_or_else(text), Cow::Borrowed(value)));
    }

    /// Adds a field whose value `emit` encodes.
    pub(crate) fn with(&mut self, key: &str, emit: impl FnOnce(&mut Emitter<'_>)) -> &mut Self {
        self.0.push((encoded_text(key), Cow::Owned(encoded(emit))));
        self
    }

    fn text(&mut self, key: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.with(key, |out| drop_unit(out.text(value))),
            None => self,
        }
    }

    /// Appends the map, its keys in order.
    pub(crate) fn emit(mut self, out: &mut Emitter<'_>) {
        self.0.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        out.map(self.0.len());
        for (key, value) in &self.0 {
            out.raw(key).raw(value);
        }
    }
}

fn encoded_text(text: &str) -> Vec<u8> {
    encoded(|out| drop_unit(out.text(text)))
}

fn encoded(emit: impl FnOnce(&mut Emitter<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    emit(&mut Emitter::new(&mut bytes));
    bytes
}

const fn drop_unit(_: &mut Emitter<'_>) {}

impl Object {
    /// Encodes the object as generation 2 has it.
    pub(crate) fn encode_v2(&self, out: &mut Emitter<'_>) {
        let mut fields = Fields::default();
        fields
            .with("parts", |out| {
                let mut parts = Fields::default();
                for (role, part) in &self.components {
                    parts.with(role.as_str(), |out| part.encode_v2(out));
                }
                parts.emit(out);
            })
            .with("shape", |out| {
                out.array(self.shape.rank());
                for &dim in self.shape.dims() {
                    out.unsigned(dim);
                }
            })
            .text("layout", Some(self.format.text_v2()));
        if let Some(attributes) = &self.attributes {
            fields.raw("attributes", &attributes.bytes);
        }
        for (key, item) in &self.other {
            fields.other(key, item);
        }
        fields.emit(out);
    }
}

impl Component {
    fn encode_v2(&self, out: &mut Emitter<'_>) {
        let mut fields = Fields::default();
        fields
            .with("blob", |out| drop_unit(out.array(2).unsigned(self.offset).unsigned(self.length)))
            .text("dtype", Some(self.dtype.name()))
            .text("type", self.logical_type.as_deref())
            .text("shard", self.shard.as_deref())
            .text("digest", self.digest.as_deref());
        if self.encoding != Encoding::Raw {
            fields.text("encoding", Some(self.encoding.as_str()));
            let decoded = self.uncompressed_length.unwrap_or_default();
            fields.with("decoded_length", |out| drop_unit(out.unsigned(decoded)));
        }
        for (key, item) in &self.other {
            fields.other(key, item);
        }
        fields.emit(out);
    }
}

impl Attributes {
    /// Encodes the map as generation 2 has it.
    ///
    /// # Errors
    ///
    /// [`Error::Given`] where a value is one that generation 2 cannot hold: a tag, a whole number of
    /// more than 64 bits, or a map that has a key twice; where a key is not a name.
    pub(crate) fn encode_v2(&self) -> Result<Encoded> {
        let mut fields = Fields::default();
        for (key, value) in self.iter() {
            super::document::check_name(0, key.as_bytes())
                .map_err(|broken| broken.inside("attributes").into_error(0).given())?;
            let value = value_v2(value).map_err(|problem| {
                let reason = format!("attribute {key:?} {problem}, which generation 2 cannot hold");
                Error::Given { reason }
            })?;
            fields.with(key, |out| drop_unit(out.raw(&value)));
        }
        let mut bytes = Vec::new();
        fields.emit(&mut Emitter::new(&mut bytes));
        Ok(Encoded { bytes: bytes.into(), at: 0 })
    }
}

/// Encodes a value, or says why that cannot be.
pub(crate) fn value_v2(value: &Value) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Vec::new();
    let mut out = Emitter::new(&mut bytes);
    match value {
        Value::Tag(..) => return Err("has a tag"),
        Value::Integer(number) if !(-(1 << 64)..1 << 64).contains(number) => {
            return Err("is a whole number of more than 64 bits");
        }
        Value::Array(items) => {
            out.array(items.len());
            for item in items {
                out.raw(&value_v2(item)?);
            }
        }
        Value::Map(pairs) => {
            let mut encoded = Vec::with_capacity(pairs.len());
            for (key, value) in pairs {
                encoded.push((value_v2(key)?, value_v2(value)?));
            }
            encoded.sort_unstable();
            if encoded.array_windows().any(|[(a, _), (b, _)]| a == b) {
                return Err("is a map that has a key twice");
            }
            out.map(encoded.len());
            for (key, value) in &encoded {
                out.raw(key).raw(value);
            }
        }
        Value::Float(number) if number.is_nan() => {
            out.raw(&[0xf9, 0x7e, 0x00]);
        }
        other => {
            out.value(other);
        }
    }
    Ok(bytes)
}
