//! CBOR (RFC 8949) as manifests use it: a decoder over bytes in memory that checks well-formedness
//! as it goes and never trusts a count.
//!
//! The decoder is our own because it decides what opens: it reports where each item lies in the
//! file, refuses duplicate keys, and walks a manifest of a million objects without building any.

use std::{borrow::Cow, collections::HashSet, fmt};

use super::Value;
use crate::{
    Problem,
    error::{Error, WHOLE},
};

/// What a manifest does that a plain encoder would not: legal, but worth knowing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unusual {
    /// A length is left open and ended by a break.
    pub(crate) indefinite: bool,
    /// A number takes more bytes than it needs.
    pub(crate) wide: bool,
    /// A tag stands before an item of the schema.
    pub(crate) tagged: bool,
}

/// Something wrong at a place in the bytes; becomes an [`Error`] once the path is known.
#[derive(Debug)]
pub(crate) struct Malformed {
    at: usize,
    path: String,
    problem: Problem,
}

impl Malformed {
    /// Names the part that the error lies in: called from the inside out.
    pub(crate) fn inside(mut self, part: impl fmt::Display) -> Self {
        let part = part.to_string();
        let joint = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{part}{joint}{}", self.path);
        self
    }

    /// Moves it behind `base` bytes that were left out when it was found.
    pub(crate) fn moved(mut self, base: usize) -> Self {
        self.at = self.at.saturating_add(base);
        self
    }

    /// Turns it into an error about a file in which the bytes start at `base`.
    pub(crate) fn into_error(self, base: u64) -> Error {
        let path = if self.path.is_empty() { WHOLE.to_owned() } else { self.path };
        Error::Manifest { path, offset: base.saturating_add(self.at as u64), problem: self.problem }
    }
}

pub(crate) type Result<T, E = Malformed> = std::result::Result<T, E>;

/// Reads items one after another.
#[derive(Clone, Debug)]
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
    unusual: Unusual,
    /// The tag before the item whose head was read last.
    tag: Option<u64>,
    /// How many bytes of memory values have taken, and may take.
    memory: u64,
    memory_limit: u64,
}

/// The head of an item: its major type and what its argument says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Head {
    Unsigned(u64),
    /// The number is -1 minus this.
    Negative(u64),
    Bytes(Option<u64>),
    Text(Option<u64>),
    Array(Option<u64>),
    Map(Option<u64>),
    Tag(u64),
    Float(f64),
    Simple(u8),
    Break,
}

/// A container that is being skipped.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Keys and values are counted apart.
    items: Items,
    pairs: bool,
    /// A key was read and its value was not.
    odd: bool,
}

impl Open {
    const fn new(items: Option<u64>, pairs: bool) -> Self {
        Self { items: Items(items), pairs, odd: false }
    }
}

/// How many items, or pairs, of a container are left; `None` until a break is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Items(Option<u64>);

impl Items {
    /// Returns how many items are left, or `most` where there are more or nobody knows.
    pub(crate) fn at_most(self, most: usize) -> usize {
        self.0.and_then(|left| usize::try_from(left).ok()).map_or(most, |left| left.min(most))
    }
}

impl<'a> Decoder<'a> {
    /// Starts at byte `at` of `bytes`; containers may nest `depth` levels deep.
    pub(crate) const fn new(bytes: &'a [u8], at: usize, depth: u32) -> Self {
        let unusual = Unusual { indefinite: false, wide: false, tagged: false };
        Self { bytes, at, depth, unusual, tag: None, memory: 0, memory_limit: u64::MAX }
    }

    /// Sets how many bytes of memory values may take, each of them at least [`VALUE`].
    pub(crate) const fn with_memory(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Returns what has not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Skips well-formed items, of which `rest` is what follows.
    pub(crate) fn pass(&mut self, rest: &[u8]) {
        self.at = self.bytes.len().saturating_sub(rest.len());
    }

    pub(crate) const fn unusual(&self) -> Unusual {
        self.unusual
    }

    /// Makes an error about the item at `at`.
    pub(crate) const fn problem(at: usize, problem: Problem) -> Malformed {
        Malformed { at, path: String::new(), problem }
    }

    /// Checks that nothing follows.
    pub(crate) fn end(&self) -> Result<()> {
        match self.bytes.len().saturating_sub(self.at) {
            0 => Ok(()),
            bytes => Err(Self::problem(self.at, Problem::Trailing { bytes: bytes as u64 })),
        }
    }

    /// Enters a map of the schema.
    #[inline]
    pub(crate) fn map(&mut self, expected: &'static str) -> Result<Items> {
        if let Some(items) = self.few(0xa0) {
            return Ok(items);
        }
        match self.untagged()? {
            (_, Head::Map(count)) => Ok(Items(count)),
            (at, other) => Err(unexpected(at, other, expected)),
        }
    }

    /// Enters an array of the schema.
    #[inline]
    pub(crate) fn array(&mut self, expected: &'static str) -> Result<Items> {
        if let Some(items) = self.few(0x80) {
            return Ok(items);
        }
        match self.untagged()? {
            (_, Head::Array(count)) => Ok(Items(count)),
            (at, other) => Err(unexpected(at, other, expected)),
        }
    }

    /// Enters a container whose head is one byte, `empty` where it has no items.
    #[inline]
    fn few(&mut self, empty: u8) -> Option<Items> {
        let items = self.bytes.get(self.at)?.checked_sub(empty).filter(|items| *items < 24)?;
        self.at = self.at.saturating_add(1);
        Some(Items(Some(items.into())))
    }

    /// Tells whether a container has another item, or pair, which then starts here.
    #[inline]
    pub(crate) fn more(&mut self, items: &mut Items) -> Result<bool> {
        match &mut items.0 {
            Some(0) => Ok(false),
            Some(left) => {
                *left = left.saturating_sub(1);
                Ok(true)
            }
            None if self.bytes.get(self.at) == Some(&BREAK) => {
                self.at = self.at.saturating_add(1);
                items.0 = Some(0);
                Ok(false)
            }
            None => Ok(true),
        }
    }

    /// Reads text of the schema.
    #[inline]
    pub(crate) fn text(&mut self, expected: &'static str) -> Result<Cow<'a, str>> {
        match self.text_bytes(expected)? {
            // `text_bytes` has proved that both are UTF-8.
            Cow::Borrowed(bytes) => {
                Ok(Cow::Borrowed(std::str::from_utf8(bytes).unwrap_or_default()))
            }
            Cow::Owned(bytes) => Ok(Cow::Owned(String::from_utf8(bytes).unwrap_or_default())),
        }
    }

    /// Reads text of the schema as bytes that are proved to be UTF-8: for comparing with what is
    /// known, which is nearly all that is done with text.
    #[inline]
    pub(crate) fn text_bytes(&mut self, expected: &'static str) -> Result<Cow<'a, [u8]>> {
        // Nearly all texts of a manifest are short and of known length.
        let len = match self.bytes.get(self.at..) {
            Some(&[initial @ 0x60..=0x77, ..]) => {
                self.at = self.at.saturating_add(1);
                u64::from(initial & 0x1f)
            }
            Some(&[0x78, len, ..]) if len >= 24 => {
                self.at = self.at.saturating_add(2);
                u64::from(len)
            }
            _ => match self.untagged()? {
                (_, Head::Text(Some(len))) => len,
                (_, Head::Text(None)) => {
                    return self.text_chunks().map(|text| Cow::Owned(text.into_bytes()));
                }
                (at, other) => return Err(unexpected(at, other, expected)),
            },
        };
        let at = self.at;
        let bytes = self.take(len)?;
        if bytes.is_ascii() || std::str::from_utf8(bytes).is_ok() {
            return Ok(Cow::Borrowed(bytes));
        }
        Err(Self::problem(at, Problem::NotUtf8))
    }

    /// Reads an unsigned integer of the schema, also as a bignum that fits (tag 2).
    #[inline]
    pub(crate) fn unsigned(&mut self) -> Result<u64> {
        if let Some(&value @ 0..24) = self.bytes.get(self.at) {
            self.at = self.at.saturating_add(1);
            return Ok(value.into());
        }
        self.other_unsigned()
    }

    fn other_unsigned(&mut self) -> Result<u64> {
        let expected = "an unsigned integer below 2^64";
        match self.untagged()? {
            (_, Head::Unsigned(value)) => Ok(value),
            (at, Head::Bytes(Some(len))) if self.tag == Some(BIGNUM) => {
                let bytes = self.take(len)?;
                let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
                let digits = bytes.get(zeros..).unwrap_or_default();
                if digits.len() > 8 {
                    return Err(unexpected(at, Head::Bytes(Some(len)), expected));
                }
                Ok(digits.iter().fold(0, |value: u64, &byte| value << 8 | u64::from(byte)))
            }
            (at, other) => Err(unexpected(at, other, expected)),
        }
    }

    /// Reads `null` or `undefined` where one of them is next.
    pub(crate) fn null(&mut self) -> bool {
        let found = matches!(self.bytes.get(self.at), Some(&(NULL_ITEM | UNDEFINED_ITEM)));
        if found {
            self.at = self.at.saturating_add(1);
        }
        found
    }

    /// Tells whether text is next.
    pub(crate) fn text_is_next(&self) -> bool {
        matches!(self.clone().untagged(), Ok((_, Head::Text(_))))
    }

    /// Tells whether an unsigned integer is next.
    pub(crate) fn unsigned_is_next(&self) -> bool {
        self.clone().unsigned().is_ok()
    }

    /// Checks that a well-formed item is next, and skips it.
    pub(crate) fn skip(&mut self) -> Result<()> {
        // Every open container, innermost last; a tag is a container of one item.
        let mut open: Vec<Open> = Vec::new();
        loop {
            let (at, head) = (self.at, self.head()?);
            match head {
                Head::Bytes(Some(len)) => drop(self.take(len)?),
                Head::Text(Some(len)) => drop(self.utf8(len)?),
                Head::Bytes(None) => drop(self.byte_chunks()?),
                Head::Text(None) => drop(self.text_chunks()?),
                Head::Array(count) => open.push(Open::new(count, false)),
                Head::Map(count) => {
                    open.push(Open::new(count.map(|pairs| pairs.saturating_mul(2)), true));
                }
                Head::Tag(_) => open.push(Open::new(Some(1), false)),
                Head::Unsigned(_) | Head::Negative(_) | Head::Float(_) => {}
                Head::Simple(FALSE..=UNDEFINED) => {}
                Head::Simple(_) | Head::Break => return Err(unexpected(at, head, "a value")),
            }
            self.check_depth(at, open.len())?;
            loop {
                let Some(innermost) = open.last_mut() else {
                    return Ok(());
                };
                if self.another(innermost)? {
                    break;
                }
                open.pop();
            }
        }
    }

    /// Tells whether an open container has another item, which then starts here.
    fn another(&mut self, open: &mut Open) -> Result<bool> {
        let (at, more) = (self.at, self.more(&mut open.items)?);
        // As many as were announced are never odd.
        if !more && open.pairs && open.odd {
            return Err(unexpected(at, Head::Break, "the value of a key"));
        }
        open.odd = !open.odd;
        Ok(more)
    }

    /// Reads any value; `deeper` levels of containers lie around it.
    pub(crate) fn value(&mut self, deeper: usize) -> Result<Value> {
        let (at, head) = (self.at, self.head()?);
        self.check_depth(at, deeper)?;
        self.memory = self.memory.saturating_add(VALUE);
        if self.memory > self.memory_limit {
            let (found, limit, field) = (self.memory, self.memory_limit, "metadata_bytes");
            return Err(Self::problem(at, Problem::OverLimit { found, limit, field }));
        }
        let inner = deeper.saturating_add(1);
        Ok(match head {
            Head::Unsigned(value) => Value::Integer(value.into()),
            Head::Negative(value) => Value::Integer((-1_i128).saturating_sub(value.into())),
            Head::Float(value) => Value::Float(value),
            Head::Bytes(Some(len)) => Value::Bytes(self.take(len)?.to_vec()),
            Head::Bytes(None) => Value::Bytes(self.byte_chunks()?),
            Head::Text(Some(len)) => Value::Text(self.utf8(len)?.to_owned()),
            Head::Text(None) => Value::Text(self.text_chunks()?),
            Head::Tag(tag) => Value::Tag(tag, Box::new(self.value(inner)?)),
            Head::Array(count) => {
                let (mut items, mut values) = (Items(count), Vec::new());
                while self.more(&mut items)? {
                    let part = values.len();
                    values.push(self.value(inner).map_err(|e| e.inside(format_args!("[{part}]")))?);
                }
                Value::Array(values)
            }
            Head::Map(count) => {
                let (mut items, mut pairs) = (Items(count), Vec::new());
                let mut keys = HashSet::new();
                while self.more(&mut items)? {
                    let key_at = self.at;
                    let key = self.value(inner)?;
                    // Notation is one to one with values, so it tells equal keys of any type; a
                    // container as a key is told by its bytes, or each level would be rewritten.
                    let text = match &key {
                        Value::Array(_) | Value::Map(_) | Value::Tag(..) => {
                            let bytes = self.bytes.get(key_at..self.at).unwrap_or_default();
                            bytes.escape_ascii().to_string()
                        }
                        scalar => scalar.to_string(),
                    };
                    if !keys.insert(text.clone()) {
                        let key = if let Value::Text(key) = key { key } else { key.to_string() };
                        return Err(Self::problem(key_at, Problem::DuplicateKey { key }));
                    }
                    let value = self.value(inner).map_err(|e| e.inside(&text))?;
                    pairs.push((key, value));
                }
                Value::Map(pairs)
            }
            Head::Simple(FALSE) => Value::Bool(false),
            Head::Simple(TRUE) => Value::Bool(true),
            Head::Simple(SIMPLE_NULL | UNDEFINED) => Value::Null,
            Head::Simple(_) | Head::Break => return Err(unexpected(at, head, "a value")),
        })
    }

    /// Reads the next head that is not a tag, and says where it starts; the tag just before it is
    /// kept.
    #[inline]
    fn untagged(&mut self) -> Result<(usize, Head)> {
        self.tag = None;
        loop {
            let at = self.at;
            match self.head()? {
                Head::Tag(tag) => {
                    self.tag = Some(tag);
                    self.unusual.tagged = true;
                }
                head => return Ok((at, head)),
            }
        }
    }

    #[inline]
    fn head(&mut self) -> Result<Head> {
        let at = self.at;
        let Some(&initial) = self.bytes.get(at) else {
            return Err(Self::problem(at, Problem::Truncated { needed: 1, remaining: 0 }));
        };
        self.at = at.saturating_add(1);
        let (major, info) = (initial >> 5, initial & 0x1f);
        if major == 7 {
            return self.simple(at, info);
        }
        let argument = match info {
            0..=23 => Some(u64::from(info)),
            24..=27 => Some(self.argument(info)?),
            31 if (2..=5).contains(&major) => {
                self.unusual.indefinite = true;
                None
            }
            _ => return Err(Self::problem(at, not_well_formed(initial))),
        };
        Ok(match (major, argument) {
            (0, Some(value)) => Head::Unsigned(value),
            (1, Some(value)) => Head::Negative(value),
            (2, len) => Head::Bytes(len),
            (3, len) => Head::Text(len),
            (4, count) => Head::Array(count),
            (5, count) => Head::Map(count),
            (_, Some(tag)) => Head::Tag(tag),
            (_, None) => return Err(Self::problem(at, not_well_formed(initial))),
        })
    }

    /// Reads the argument that follows an initial byte: 1, 2, 4 or 8 bytes, big-endian.
    fn argument(&mut self, info: u8) -> Result<u64> {
        let (value, least) = match info {
            24 => (u64::from(u8::from_be_bytes(self.array_of()?)), 24),
            25 => (u64::from(u16::from_be_bytes(self.array_of()?)), 1 << 8),
            26 => (u64::from(u32::from_be_bytes(self.array_of()?)), 1 << 16),
            _ => (u64::from_be_bytes(self.array_of()?), 1 << 32),
        };
        self.unusual.wide |= value < least;
        Ok(value)
    }

    /// Reads what follows the initial byte of major type 7.
    fn simple(&mut self, at: usize, info: u8) -> Result<Head> {
        Ok(match info {
            0..=23 => Head::Simple(info),
            24 => Head::Simple(u8::from_be_bytes(self.array_of()?)),
            25 => Head::Float(half_to_f64(u16::from_be_bytes(self.array_of()?))),
            26 => Head::Float(f32::from_be_bytes(self.array_of()?).into()),
            27 => Head::Float(f64::from_be_bytes(self.array_of()?)),
            31 => Head::Break,
            _ => return Err(Self::problem(at, not_well_formed(0xe0 | info))),
        })
    }

    fn array_of<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.take(N as u64)?;
        // `take` returns exactly N bytes.
        Ok(bytes.first_chunk().copied().unwrap_or([0; N]))
    }

    #[inline]
    fn take(&mut self, len: u64) -> Result<&'a [u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let Some(taken) = taken else {
            let problem = Problem::Truncated { needed: len, remaining: rest.len() as u64 };
            return Err(Self::problem(self.at, problem));
        };
        self.at = self.at.saturating_add(taken.len());
        Ok(taken)
    }

    #[inline]
    fn utf8(&mut self, len: u64) -> Result<&'a str> {
        let at = self.at;
        std::str::from_utf8(self.take(len)?).map_err(|_| Self::problem(at, Problem::NotUtf8))
    }

    /// Reads the chunks of text of open length; each is UTF-8 by itself.
    fn text_chunks(&mut self) -> Result<String> {
        let mut text = String::new();
        loop {
            match (self.at, self.head()?) {
                (_, Head::Break) => return Ok(text),
                (_, Head::Text(Some(len))) => text.push_str(self.utf8(len)?),
                (at, other) => return Err(unexpected(at, other, "a chunk of text or a break")),
            }
        }
    }

    fn byte_chunks(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            match (self.at, self.head()?) {
                (_, Head::Break) => return Ok(bytes),
                (_, Head::Bytes(Some(len))) => bytes.extend_from_slice(self.take(len)?),
                (at, other) => return Err(unexpected(at, other, "a chunk of bytes or a break")),
            }
        }
    }

    fn check_depth(&self, at: usize, depth: usize) -> Result<()> {
        if depth as u64 <= u64::from(self.depth) {
            return Ok(());
        }
        Err(Self::problem(at, Problem::TooDeep { limit: self.depth }))
    }
}

fn unexpected(at: usize, found: Head, expected: &'static str) -> Malformed {
    let found = match found {
        Head::Unsigned(value) => format!("the number {value}"),
        Head::Negative(value) => format!("the number {}", (-1_i128).saturating_sub(value.into())),
        Head::Float(value) => format!("the float {value:?}"),
        Head::Bytes(_) => "a byte string".to_owned(),
        Head::Text(_) => "text".to_owned(),
        Head::Array(_) => "an array".to_owned(),
        Head::Map(_) => "a map".to_owned(),
        Head::Tag(tag) => format!("the tag {tag}"),
        Head::Simple(FALSE) => "false".to_owned(),
        Head::Simple(TRUE) => "true".to_owned(),
        Head::Simple(SIMPLE_NULL) => "null".to_owned(),
        Head::Simple(UNDEFINED) => "undefined".to_owned(),
        Head::Simple(value) => format!("the simple value {value}"),
        Head::Break => "a break".to_owned(),
    };
    Decoder::problem(at, Problem::Unexpected { found, expected })
}

fn not_well_formed(initial: u8) -> Problem {
    Problem::Unexpected { found: format!("the byte {initial:#04x}"), expected: "a data item" }
}

/// Widens an IEEE 754 binary16.
fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    match exponent {
        0 => sign * mantissa * 2_f64.powi(-24),
        31 if mantissa == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1.0 + mantissa / 1024.0) * 2_f64.powi(exponent.saturating_sub(15)),
    }
}

pub(crate) const FALSE: u8 = 20;
pub(crate) const TRUE: u8 = 21;
pub(crate) const SIMPLE_NULL: u8 = 22;
const UNDEFINED: u8 = 23;
const NULL_ITEM: u8 = 0xf6;
const UNDEFINED_ITEM: u8 = 0xf7;
const BREAK: u8 = 0xff;
/// The tag before bytes that are an unsigned integer, big-endian.
const BIGNUM: u64 = 2;
/// What a value takes in memory at the least, in bytes.
const VALUE: u64 = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::manifest::emit::Emitter;

    fn decode(bytes: &[u8]) -> Result<Value> {
        let mut decoder = Decoder::new(bytes, 0, 16);
        let value = decoder.value(0)?;
        decoder.end()?;
        Ok(value)
    }

    fn skip(bytes: &[u8]) -> Result<()> {
        let mut decoder = Decoder::new(bytes, 0, 16);
        decoder.skip()?;
        decoder.end()
    }

    #[track_caller]
    fn refuses(bytes: &[u8], message: &str) {
        let error = decode(bytes).expect_err("accepted").into_error(100);
        assert_eq!(error.to_string(), message);
        skip(bytes).expect_err("skipped");
    }

    /// RFC 8949, appendix A.
    #[test]
    fn examples_of_the_standard() {
        for (bytes, notation) in [
            (&b"\x00"[..], "0"),
            (b"\x18\x64", "100"),
            (b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615"),
            (b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff", "-18446744073709551616"),
            (b"\x20", "-1"),
            (b"\xf9\x00\x00", "0.0"),
            (b"\xf9\x3c\x00", "1.0"),
            (b"\xf9\x7b\xff", "65504.0"),
            (b"\xf9\x00\x01", "5.960464477539063e-8"),
            (b"\xf9\x04\x00", "6.103515625e-5"),
            (b"\xf9\xc4\x00", "-4.0"),
            (b"\xfa\x47\xc3\x50\x00", "100000.0"),
            (b"\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a", "1.1"),
            (b"\xf9\x7c\x00", "inf"),
            (b"\xf9\x7e\x00", "NaN"),
            (b"\xf4", "false"),
            (b"\xf6", "null"),
            (b"\xf7", "null"),
            (b"\xc1\x1a\x51\x4b\x67\xb0", "1(1363896240)"),
            (b"\x44\x01\x02\x03\x04", "h'01020304'"),
            (b"\x62\xc3\xbc", "\"ü\""),
            (b"\x83\x01\x82\x02\x03\x82\x04\x05", "[1, [2, 3], [4, 5]]"),
            (b"\xa2\x61a\x01\x61b\x82\x02\x03", "{\"a\": 1, \"b\": [2, 3]}"),
            (b"\x5f\x42\x01\x02\x43\x03\x04\x05\xff", "h'0102030405'"),
            (b"\x7f\x65strea\x64ming\xff", "\"streaming\""),
            (b"\x9f\x01\x82\x02\x03\x9f\x04\x05\xff\xff", "[1, [2, 3], [4, 5]]"),
            (b"\xbf\x61a\x01\x61b\x9f\x02\x03\xff\xff", "{\"a\": 1, \"b\": [2, 3]}"),
        ] {
            assert_eq!(decode(bytes).map(|value| value.to_string()).unwrap(), notation);
            skip(bytes).unwrap();
        }
    }

    #[test]
    fn claims_cost_nothing() {
        for major in [0x5b, 0x7b, 0x9b, 0xbb] {
            let bytes = [&[major][..], &(1_u64 << 62).to_be_bytes()].concat();
            decode(&bytes).expect_err("accepted");
            skip(&bytes).expect_err("skipped");
        }
        refuses(b"\x63ab", "manifest at byte 101 ends after 2 of 3 bytes");
    }

    #[test]
    fn nesting_has_a_limit() {
        for open in [0x81, 0xc1] {
            let bytes = [vec![open; 100_000], vec![0]].concat();
            let error = decode(&bytes).expect_err("accepted");
            assert_eq!((error.at, error.problem), (17, Problem::TooDeep { limit: 16 }));
            skip(&bytes).expect_err("skipped");
        }
        let sixteen = [vec![0x81; 16], vec![0]].concat();
        decode(&sixteen).unwrap();
        skip(&sixteen).unwrap();
    }

    #[test]
    fn what_is_not_well_formed() {
        refuses(b"", "manifest at byte 100 ends after 0 of 1 bytes");
        refuses(b"\xff", "manifest at byte 100 is a break, expected a value");
        refuses(b"\x1c", "manifest at byte 100 is the byte 0x1c, expected a data item");
        refuses(b"\xe0", "manifest at byte 100 is the simple value 0, expected a value");
        refuses(b"\x61\xff", "manifest at byte 101 is text that is not UTF-8");
        refuses(
            b"\x7f\x01\xff",
            "manifest at byte 101 is the number 1, expected a chunk of text or a break",
        );
        refuses(
            b"\x00\x00",
            "manifest at byte 101 is followed by 1 more bytes, expected the end of the manifest",
        );
        skip(b"\xbf\x01\xff").expect_err("a key without its value");
    }

    #[test]
    fn keys_come_once() {
        let error = decode(b"\xa2\x61a\x01\x61a\x02").expect_err("accepted").into_error(0);
        assert_eq!(error.to_string(), "manifest at byte 4 has the key \"a\" twice, expected one");
        // 1 and 1.0 are different keys.
        decode(b"\xa2\x01\x01\xf9\x3c\x00\x02").unwrap();
    }

    #[test]
    fn bignums_of_64_bits_are_numbers() {
        let mut decoder = Decoder::new(b"\xc2\x49\x00\xff\xff\xff\xff\xff\xff\xff\xff", 0, 16);
        assert_eq!(decoder.unsigned().unwrap(), u64::MAX);
        Decoder::new(b"\xc2\x49\x01\x00\x00\x00\x00\x00\x00\x00\x00", 0, 16)
            .unsigned()
            .expect_err("2^64");
        Decoder::new(b"\x41\x01", 0, 16).unsigned().expect_err("bytes are not a number");
        // A byte 0xc2 that is the end of the item before is not a tag.
        let mut decoder = Decoder::new(b"\x18\xc2\x41\x05", 0, 16);
        assert_eq!(decoder.unsigned().unwrap(), 0xc2);
        decoder.unsigned().expect_err("bytes are not a number");
    }

    fn encoded(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        Emitter::new(&mut out).value(value);
        out
    }

    #[test]
    fn numbers_beyond_64_bits_become_bignums() {
        assert_eq!(encoded(&Value::Integer(1 << 64))[..2], [0xc2, 0x50]);
        assert_eq!(encoded(&Value::Integer(-(1 << 64) - 1))[..2], [0xc3, 0x50]);
    }

    /// Turns what another decoder has read into our values.
    fn from_ciborium(value: ciborium::Value) -> Option<Value> {
        use ciborium::Value as Other;
        Some(match value {
            Other::Null => Value::Null,
            Other::Bool(value) => Value::Bool(value),
            Other::Integer(value) => Value::Integer(value.into()),
            Other::Float(value) => Value::Float(value),
            Other::Text(text) => Value::Text(text),
            Other::Bytes(bytes) => Value::Bytes(bytes),
            Other::Array(items) => {
                Value::Array(items.into_iter().map(from_ciborium).collect::<Option<_>>()?)
            }
            Other::Map(pairs) => {
                let pair = |(key, value)| Some((from_ciborium(key)?, from_ciborium(value)?));
                Value::Map(pairs.into_iter().map(pair).collect::<Option<_>>()?)
            }
            Other::Tag(tag, value) => Value::Tag(tag, Box::new(from_ciborium(*value)?)),
            _ => return None,
        })
    }

    /// Bytes that are often well formed.
    fn likely() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            4 => prop::sample::select(&b"\x00\x17\x18\x20\x40\x41\x60\x61a\x80\x81\x82\xa0\xa1\xa2\xc1\xf4\xf6\xf9\xfa\x9f\xbf\x5f\x7f\xff"[..]),
            1 => any::<u8>(),
        ];
        prop::collection::vec(byte, 0..24)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn another_decoder_agrees(bytes in likely()) {
            let mut rest = &bytes[..];
            let other = ciborium::de::from_reader_with_recursion_limit::<ciborium::Value, _>(&mut rest, 17);
            let other = other.ok().filter(|_| rest.is_empty()).and_then(from_ciborium);
            match (decode(&bytes), other) {
                // NaN differs from itself.
                (Ok(ours), Some(other)) => prop_assert_eq!(ours.to_string(), other.to_string()),
                (Ok(_), None) => {
                    // It reads neither `undefined` nor bignums of more than 128 bits.
                }
                (Err(error), Some(other)) => {
                    // It keeps both of two equal keys.
                    let twice = matches!(error.problem, Problem::DuplicateKey { .. });
                    prop_assert!(twice, "{:?} refused: {:?}, {}", bytes, error, other);
                }
                (Err(_), None) => {}
            }
        }

        #[test]
        fn passing_over_and_reading_agree(bytes in likely()) {
            let read = decode(&bytes);
            match (&read, skip(&bytes)) {
                (Ok(_), Ok(())) | (Err(_), Err(_)) => {}
                // Only decoding looks at keys.
                (Err(Malformed { problem: Problem::DuplicateKey { .. }, .. }), Ok(())) => {}
                (_, skipped) => prop_assert!(false, "{bytes:?}: {read:?}, {skipped:?}"),
            }
        }

        #[test]
        fn numbers_take_the_shortest_form(value in any::<u64>(), shift in 0..64_u32) {
            let (value, mut expected) = (value >> shift, Vec::new());
            ciborium::into_writer(&value, &mut expected).unwrap();
            prop_assert_eq!(encoded(&Value::Integer(value.into())), expected);
        }
    }
}
