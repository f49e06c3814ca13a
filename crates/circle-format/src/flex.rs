//! FlexBuffers, the form of the options of custom operators, as far as it takes to show them.

use std::fmt;

use crate::{Error, Result};

/// A value in a FlexBuffer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number without a sign.
    Uint(u64),
    /// A number.
    Float(f64),
    /// Text; bytes that are not UTF-8 read as U+FFFD.
    Text(String),
    /// Bytes, by their number.
    Blob(usize),
    /// Values one after the other.
    Vector(Vec<Self>),
    /// Values by their keys, in the order in which they are stored, which is sorted.
    Map(Vec<(String, Self)>),
}

impl Value {
    /// Reads a FlexBuffer, from its end.
    ///
    /// # Errors
    ///
    /// [`Error::CustomOptions`] where a part lies outside of it, or it is too large to be options.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut parser = Parser { bytes, left: MAX_VALUES };
        let [.., root, packed, width] = bytes else {
            return Err(fault(0, "are shorter than 3 bytes"));
        };
        let end = bytes.len().saturating_sub(2);
        let _ = root;
        let width = usize::from(*width);
        let at = end.checked_sub(width).filter(|_| matches!(width, 1 | 2 | 4 | 8));
        let at = at.ok_or_else(|| fault(end.saturating_add(1), "have a root of no width"))?;
        parser.value(at, width, *packed, 0)
    }

    /// Returns the value of a key; `None` where there is none, or this is not a map.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(members) = self else { return None };
        members.iter().find(|(found, _)| found == key).map(|(_, value)| value)
    }
}

impl fmt::Display for Value {
    /// Writes it much like JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Uint(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Blob(bytes) => write!(f, "{bytes} bytes"),
            Self::Vector(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Self::Map(members) => {
                f.write_str("{")?;
                for (index, (key, value)) in members.iter().enumerate() {
                    write!(f, "{}{key:?}: {value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
        }
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    /// Values that may still be read: parts can be shared, so that a few bytes stand for many.
    left: usize,
}

impl Parser<'_> {
    /// Reads the value of a slot; the upper bits of `packed` are its type, the lower two the width
    /// of what it points to.
    fn value(&mut self, at: usize, width: usize, packed: u8, depth: u32) -> Result<Value> {
        self.left = self.left.checked_sub(1).ok_or_else(|| fault(at, "hold too many values"))?;
        if depth > MAX_DEPTH {
            return Err(fault(at, "are nested too deeply"));
        }
        let child = 1_usize << (packed & 3);
        Ok(match packed >> 2 {
            0 => Value::Null,
            1 => Value::Int(self.int(at, width)?),
            2 => Value::Uint(self.uint(at, width)?),
            3 => Value::Float(self.float(at, width)?),
            4 => {
                let start = self.follow(at, width)?;
                let rest = self.bytes.get(start..).unwrap_or_default();
                let end = rest.iter().position(|byte| *byte == 0);
                let end = end.ok_or_else(|| fault(start, "have a key without an end"))?;
                Value::Text(text(rest.get(..end).unwrap_or_default()))
            }
            5 => {
                let start = self.follow(at, width)?;
                Value::Text(text(self.sized(start, child)?))
            }
            6 => Value::Int(self.int(self.follow(at, width)?, child)?),
            7 => Value::Uint(self.uint(self.follow(at, width)?, child)?),
            8 => Value::Float(self.float(self.follow(at, width)?, child)?),
            9 => self.map(self.follow(at, width)?, child, depth)?,
            10 => Value::Vector(self.vector(self.follow(at, width)?, child, depth)?),
            kind @ (11..=15 | 36) => {
                let start = self.follow(at, width)?;
                let len = self.len(start, child)?;
                // Of typed lists only the numbers: an element of a list of texts points to one.
                let element = if kind == 36 { 26 } else { kind.saturating_sub(10) };
                let element = if element == 5 { 4 } else { element };
                let values = (0..len).map(|index| {
                    let at = element_at(start, index, child);
                    self.value(at, child, element << 2, depth.saturating_add(1))
                });
                Value::Vector(values.collect::<Result<_>>()?)
            }
            kind @ 16..=24 => {
                let start = self.follow(at, width)?;
                let kind = kind.saturating_sub(16);
                let (len, element) =
                    (usize::from(kind / 3).saturating_add(2), (kind % 3).saturating_add(1));
                let values = (0..len).map(|index| {
                    let at = element_at(start, index, child);
                    self.value(at, child, element << 2, depth.saturating_add(1))
                });
                Value::Vector(values.collect::<Result<_>>()?)
            }
            25 => Value::Blob(self.len(self.follow(at, width)?, child)?),
            26 => Value::Bool(self.uint(at, width)? != 0),
            _ => return Err(fault(at, "have a value of unknown type")),
        })
    }

    /// Reads a list whose elements each have a type, which stand behind them.
    fn vector(&mut self, start: usize, width: usize, depth: u32) -> Result<Vec<Value>> {
        let len = self.len(start, width)?;
        let types = element_at(start, len, width);
        let values = (0..len).map(|index| {
            let at = types.saturating_add(index);
            let packed = self.bytes.get(at).ok_or_else(|| fault(at, "end inside a list"))?;
            self.value(element_at(start, index, width), width, *packed, depth.saturating_add(1))
        });
        values.collect()
    }

    /// Reads a list with keys, which are a list of their own.
    fn map(&mut self, start: usize, width: usize, depth: u32) -> Result<Value> {
        let values = self.vector(start, width, depth)?;
        // Before the length: where the keys are, and the width of what is there.
        let slot = start.checked_sub(width.saturating_mul(3));
        let slot = slot.ok_or_else(|| fault(start, "have a map without keys"))?;
        let keys = self.follow(slot, width)?;
        let key_width = self.uint(slot.saturating_add(width), width)?;
        let key_width = usize::try_from(key_width).ok().filter(|w| matches!(w, 1 | 2 | 4 | 8));
        let key_width = key_width.ok_or_else(|| fault(slot, "have a map without keys"))?;
        let mut members = Vec::with_capacity(values.len());
        for (index, value) in values.into_iter().enumerate() {
            let at = element_at(keys, index, key_width);
            match self.value(at, key_width, 4 << 2, depth.saturating_add(1))? {
                Value::Text(key) => members.push((key, value)),
                _ => return Err(fault(at, "have a key that is not text")),
            }
        }
        Ok(Value::Map(members))
    }

    /// Reads the length of a list, which stands before it; there are bytes for each element.
    fn len(&self, start: usize, width: usize) -> Result<usize> {
        let before = start.checked_sub(width);
        let before = before.ok_or_else(|| fault(start, "have a list without a length"))?;
        let len = usize::try_from(self.uint(before, width)?).unwrap_or(usize::MAX);
        let room = self.bytes.len().saturating_sub(start);
        if len > room {
            return Err(fault(before, "have a list that is longer than they are"));
        }
        Ok(len)
    }

    fn sized(&self, start: usize, width: usize) -> Result<&[u8]> {
        let end = start.saturating_add(self.len(start, width)?);
        self.bytes.get(start..end).ok_or_else(|| fault(start, "end inside a text"))
    }

    /// Goes back as far as a slot says.
    fn follow(&self, at: usize, width: usize) -> Result<usize> {
        let back = usize::try_from(self.uint(at, width)?).unwrap_or(usize::MAX);
        at.checked_sub(back).ok_or_else(|| fault(at, "point before their start"))
    }

    fn uint(&self, at: usize, width: usize) -> Result<u64> {
        let found = at.checked_add(width).and_then(|end| self.bytes.get(at..end));
        let found = found.ok_or_else(|| fault(at, "end inside a number"))?;
        Ok(found.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn int(&self, at: usize, width: usize) -> Result<i64> {
        let unsigned = self.uint(at, width)?;
        let unused = 64_u32.saturating_sub(u32::try_from(width).unwrap_or(8).saturating_mul(8));
        Ok((unsigned << unused).cast_signed() >> unused)
    }

    fn float(&self, at: usize, width: usize) -> Result<f64> {
        let bits = self.uint(at, width)?;
        let narrow = u32::try_from(bits).unwrap_or_default();
        match width {
            8 => Ok(f64::from_bits(bits)),
            4 => Ok(f32::from_bits(narrow).into()),
            _ => Err(fault(at, "have a float of less than 4 bytes")),
        }
    }
}

fn element_at(start: usize, index: usize, width: usize) -> usize {
    start.saturating_add(index.saturating_mul(width))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn fault(offset: usize, reason: &'static str) -> Error {
    Error::CustomOptions { offset: offset as u64, reason }
}

/// Values in one FlexBuffer.
const MAX_VALUES: usize = 100_000;
/// Levels of lists in lists.
const MAX_DEPTH: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    /// `{"idx": 3, "val": 1.5}` as the package `flatbuffers` of Python writes it.
    const MAP: &[u8] = b"idx\0val\0\x02\x09\x06\x02\x01\0\0\0\x02\0\0\0";

    #[test]
    fn every_truncation_and_change_is_an_error_or_a_value() {
        test_support::truncations(MAP, |cut| drop(Value::parse(cut)));
        test_support::mutations(MAP, |changed| drop(Value::parse(changed)));
    }

    #[test]
    fn lists_and_scalars() {
        // A root that is a number in itself, of one byte: value, type and width, width.
        assert_eq!(Value::parse(&[5, 1 << 2, 1]).unwrap(), Value::Int(5));
        assert_eq!(Value::parse(&[0xff, 1 << 2, 1]).unwrap(), Value::Int(-1));
        assert_eq!(Value::parse(&[0xff, 2 << 2, 1]).unwrap(), Value::Uint(255));
        assert_eq!(Value::parse(&[1, 26 << 2, 1]).unwrap(), Value::Bool(true));
        assert_eq!(Value::parse(&[0, 0, 1]).unwrap(), Value::Null);
        // [1, "a"]: a text with its length and end, the list, then its types.
        let list = [1, b'a', 0, 2, 1, 4, 1 << 2, 5 << 2, 4, 10 << 2, 1];
        let expected = Value::Vector(vec![Value::Int(1), Value::Text("a".to_owned())]);
        assert_eq!(Value::parse(&list).unwrap(), expected);
        assert_eq!(expected.to_string(), r#"[1, "a"]"#);
    }

    #[test]
    fn faults_say_where() {
        for (bytes, message) in [
            (&b"\0\0"[..], "custom options at byte 0 are shorter than 3 bytes"),
            (&[0, 0, 3], "custom options at byte 2 have a root of no width"),
            (&[9, 10 << 2, 1], "custom options at byte 0 point before their start"),
            (&[1, 3 << 2, 1], "custom options at byte 0 have a float of less than 4 bytes"),
            (&[1, 63 << 2, 1], "custom options at byte 0 have a value of unknown type"),
        ] {
            assert_eq!(Value::parse(bytes).unwrap_err().to_string(), message);
        }
    }
}
