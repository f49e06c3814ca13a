//! The maps of the schema: keys in any order, each once, and those that it does not name.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use bytes::Bytes;
use smallvec::SmallVec;

use super::cbor::{self, Decoder, Items};
use crate::Problem;

/// The fields of a map of the schema: any order, each key once.
pub(crate) struct Fields<'a> {
    items: Items,
    keys: Keys<'a>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(decoder: &mut Decoder<'a>, expected: &'static str) -> cbor::Result<Self> {
        Ok(Self { items: decoder.map(expected)?, keys: Keys::default() })
    }

    /// Reads the next key; its value is what comes next.
    pub(crate) fn next(&mut self, decoder: &mut Decoder<'a>) -> cbor::Result<Option<Cow<'a, str>>> {
        if !decoder.more(&mut self.items)? {
            return Ok(None);
        }
        let at = decoder.at();
        // Read twice, so that what is borrowed is kept without a copy.
        self.keys.insert(at, &decoder.clone().text_bytes("a key, as text")?)?;
        decoder.text("a key, as text").map(Some)
    }
}

/// The keys of one map of the schema, so that none comes twice: a bit for each that is known.
#[derive(Default)]
pub(crate) struct Seen<'a> {
    known: u8,
    unknown: Keys<'a>,
}

impl<'a> Seen<'a> {
    #[inline]
    pub(crate) fn once(&mut self, bit: u32, at: usize, key: &[u8]) -> cbor::Result<()> {
        let mask = 1_u8.wrapping_shl(bit);
        if self.known & mask != 0 {
            return Err(Decoder::problem(
                at,
                Problem::DuplicateKey { key: text_of(key).to_owned() },
            ));
        }
        self.known |= mask;
        Ok(())
    }

    #[expect(clippy::ptr_arg, reason = "a borrowed key is kept without a copy")]
    pub(crate) fn unknown(&mut self, at: usize, key: &Cow<'a, [u8]>) -> cbor::Result<()> {
        self.unknown.insert(at, key)
    }

    /// Proves that the keys of the first bits were there, in a map that starts at `start`.
    #[inline]
    pub(crate) fn require(&self, keys: &[&'static str], start: usize) -> cbor::Result<()> {
        for (bit, &key) in (0..).zip(keys) {
            if self.known & 1_u8.wrapping_shl(bit) == 0 {
                return Err(Decoder::problem(start, Problem::MissingKey { key }));
            }
        }
        Ok(())
    }
}

/// The keys of one map, so that none comes twice.
#[derive(Default)]
pub(crate) struct Keys<'a> {
    few: SmallVec<[Cow<'a, [u8]>; FEW]>,
    many: Option<HashSet<Cow<'a, [u8]>>>,
}

impl<'a> Keys<'a> {
    #[expect(clippy::ptr_arg, reason = "a borrowed key is kept without a copy")]
    pub(crate) fn insert(&mut self, at: usize, key: &Cow<'a, [u8]>) -> cbor::Result<()> {
        let mut new = !self.few.contains(key);
        if self.few.len() < FEW {
            self.few.push(key.clone());
        } else {
            new &= self.many.get_or_insert_default().insert(key.clone());
        }
        if new {
            return Ok(());
        }
        Err(Decoder::problem(at, Problem::DuplicateKey { key: text_of(key).to_owned() }))
    }
}

/// Returns the value of a required key of a map that starts at `start`.
pub(crate) fn require<T>(value: Option<T>, start: usize, key: &'static str) -> cbor::Result<T> {
    value.ok_or_else(|| Decoder::problem(start, Problem::MissingKey { key }))
}

/// Reads optional text; null is as good as no key.
pub(crate) fn text_or_null<'a>(
    decoder: &mut Decoder<'a>,
    key: &'static str,
) -> cbor::Result<Option<Cow<'a, str>>> {
    if decoder.null() {
        return Ok(None);
    }
    decoder.text("text or null").map(Some).map_err(|e| e.inside(key))
}

/// Skips the value of a key that the format does not name.
pub(crate) fn skipped(decoder: &mut Decoder<'_>) -> cbor::Result<Range<usize>> {
    let start = decoder.at();
    decoder.skip()?;
    Ok(start..decoder.at())
}

/// Skips the value of a key that the format does not name, and keeps it.
pub(crate) fn unknown(decoder: &mut Decoder<'_>, manifest: &Bytes) -> cbor::Result<Bytes> {
    skipped(decoder).map(|range| manifest.slice(range))
}

/// Returns bytes that are proved to be UTF-8 as text.
pub(crate) fn text_of(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// How many keys are compared one by one; the maps of the schema have fewer.
const FEW: usize = 8;
