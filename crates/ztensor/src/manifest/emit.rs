//! Writing CBOR: definite lengths, shortest integers and floats.

use ciborium_ll::{Encoder, Header};

use super::{
    Value,
    cbor::{FALSE, SIMPLE_NULL, TRUE},
};

/// Appends items one after another: definite lengths, shortest integers and floats.
pub(crate) struct Emitter<'a>(&'a mut Vec<u8>);

impl<'a> Emitter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self(out)
    }

    #[inline]
    pub(crate) fn map(&mut self, pairs: usize) -> &mut Self {
        self.head(5, pairs as u64)
    }

    #[inline]
    pub(crate) fn array(&mut self, items: usize) -> &mut Self {
        self.head(4, items as u64)
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.head(3, text.len() as u64).raw(text.as_bytes())
    }

    #[inline]
    pub(crate) fn unsigned(&mut self, value: u64) -> &mut Self {
        self.head(0, value)
    }

    /// Appends the head of an item in its shortest form.
    #[inline]
    fn head(&mut self, major: u8, argument: u64) -> &mut Self {
        match u8::try_from(argument) {
            Ok(small @ 0..24) => self.0.push(major << 5 | small),
            Ok(byte) => self.0.extend_from_slice(&[major << 5 | 24, byte]),
            Err(_) => self.wide_head(major << 5, argument),
        }
        self
    }

    fn wide_head(&mut self, major: u8, argument: u64) {
        match (u16::try_from(argument), u32::try_from(argument)) {
            (Ok(argument), _) => self.raw(&[major | 25]).raw(&argument.to_be_bytes()),
            (_, Ok(argument)) => self.raw(&[major | 26]).raw(&argument.to_be_bytes()),
            _ => self.raw(&[major | 27]).raw(&argument.to_be_bytes()),
        };
    }

    /// Appends an item that is encoded already.
    pub(crate) fn raw(&mut self, item: &[u8]) -> &mut Self {
        self.0.extend_from_slice(item);
        self
    }

    pub(crate) fn value(&mut self, value: &Value) -> &mut Self {
        match value {
            Value::Null => self.head(SIMPLE, SIMPLE_NULL.into()),
            Value::Bool(value) => self.head(SIMPLE, if *value { TRUE } else { FALSE }.into()),
            Value::Integer(value) => self.integer(*value),
            Value::Float(value) => {
                // Writing to a vector cannot fail.
                let _ = Encoder::from(&mut *self.0).push(Header::Float(*value));
                self
            }
            Value::Text(text) => self.text(text),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Array(items) => {
                self.array(items.len());
                items.iter().fold(self, Self::value)
            }
            Value::Map(pairs) => {
                self.map(pairs.len());
                pairs.iter().fold(self, |out, (key, value)| out.value(key).value(value))
            }
            Value::Tag(tag, value) => self.head(6, *tag).value(value),
        }
    }

    /// Appends a whole number; one of more than 64 bits as a bignum (tag 2, or 3 below zero).
    fn integer(&mut self, value: i128) -> &mut Self {
        let (negative, magnitude) = match value {
            0.. => (false, value.unsigned_abs()),
            _ => (true, value.unsigned_abs().saturating_sub(1)),
        };
        match u64::try_from(magnitude) {
            Ok(magnitude) => self.head(negative.into(), magnitude),
            Err(_) => self.head(6, if negative { 3 } else { 2 }).bytes(&magnitude.to_be_bytes()),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.head(2, bytes.len() as u64).raw(bytes)
    }
}

/// What is neither a number nor a text nor a container.
const SIMPLE: u8 = 7;
