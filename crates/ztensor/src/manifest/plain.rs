//! Entries as nearly every file has them: dense tensors, encoded as the reference writer does it.
//!
//! [`Plain::parse`] accepts a part of what `Object::parse` accepts, and means the same by it: fixed
//! keys in their usual order, compared as bytes. Whatever it does not know takes the long way.

use tensor_core::{DType, Limits, Shape};

use super::{
    dtype::{self, StoredType},
    emit::Emitter,
    object::{Component, Object},
    vocabulary::{Encoding, Format, Role},
};

/// A dense object with one component.
#[derive(Debug)]
pub(crate) struct Plain<'a> {
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    encoding: Encoding,
    digest: Option<&'a str>,
}

impl<'a> Plain<'a> {
    /// Reads an entry from the start of `bytes`; returns what follows as well.
    pub(crate) fn parse(bytes: &'a [u8], limits: &Limits) -> Option<(Self, &'a [u8])> {
        let rest = bytes.strip_prefix(b"\xa3\x65shape")?;
        let (&head, mut rest) = rest.split_first()?;
        let rank = head.checked_sub(0x80).filter(|&rank| rank <= DIRECT)?;
        if u64::from(rank) > limits.rank {
            return None;
        }
        let mut shape = Shape::scalar();
        for _ in 0..rank {
            let (dim, after) = unsigned(rest)?;
            shape.push(dim);
            rest = after;
        }
        let rest = rest.strip_prefix(b"\x66format\x65dense\x6acomponents\xa1\x64data")?;
        let (&head, rest) = rest.split_first()?;
        let mut optional = head.checked_sub(0xa3).filter(|&optional| optional <= 2)?;
        let (name, rest) = text(rest.strip_prefix(b"\x65dtype")?)?;
        let dtype = dtype::of_name(name)?;
        let (offset, rest) = unsigned(rest.strip_prefix(b"\x66offset")?)?;
        let (length, mut rest) = unsigned(rest.strip_prefix(b"\x66length")?)?;
        let (mut encoding, mut digest) = (Encoding::Raw, None);
        if optional > 0 {
            if let Some(after) = rest.strip_prefix(b"\x68encoding\x64zstd") {
                (encoding, rest, optional) = (Encoding::Zstd, after, optional.checked_sub(1)?);
            }
            if let Some(after) = rest.strip_prefix(b"\x66digest") {
                let (value, after) = text(after)?;
                digest = Some(std::str::from_utf8(value).ok()?);
                (rest, optional) = (after, optional.checked_sub(1)?);
            }
        }
        let plain = Self { shape, dtype, offset, length, encoding, digest };
        (optional == 0).then_some((plain, rest))
    }

    /// Writes the entry of a raw tensor without digest as [`parse`](Self::parse) reads it.
    pub(crate) fn write(out: &mut Vec<u8>, shape: &Shape, dtype: &str, offset: u64, length: u64) {
        out.reserve(shape.rank().saturating_mul(9).saturating_add(96));
        out.extend_from_slice(b"\xa3\x65shape");
        let mut emitter = Emitter::new(out);
        emitter.array(shape.rank());
        for &dim in shape.dims() {
            emitter.unsigned(dim);
        }
        emitter.raw(b"\x66format\x65dense\x6acomponents\xa1\x64data\xa3\x65dtype");
        emitter.text(dtype).raw(b"\x66offset").unsigned(offset);
        emitter.raw(b"\x66length").unsigned(length);
    }

    /// Builds what `Object::parse` makes of the same bytes.
    pub(crate) fn into_object(self) -> Object {
        let mut component = Component::new(StoredType::Known(self.dtype), self.offset, self.length);
        component.encoding = self.encoding;
        component.digest = self.digest.map(str::to_owned);
        let mut object = Object::new(self.shape, Format::Dense);
        object.components.push((Role::Data, component));
        object
    }
}

/// Reads text of definite and shortest length, unchecked; returns what follows as well.
#[inline]
pub(crate) fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&head, rest) = bytes.split_first()?;
    let len = head.checked_sub(0x60)?;
    match len {
        0..=DIRECT => rest.split_at_checked(len.into()),
        24 => {
            let (&len, rest) = rest.split_first()?;
            if len <= DIRECT { None } else { rest.split_at_checked(len.into()) }
        }
        _ => None,
    }
}

/// Reads an unsigned integer in its shortest form; returns what follows as well.
#[inline]
fn unsigned(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&head, rest) = bytes.split_first()?;
    match head {
        0..=DIRECT => Some((head.into(), rest)),
        24 => rest.split_first().map(|(&byte, rest)| (byte.into(), rest)).filter(|(v, _)| *v > 23),
        25 => {
            let (bytes, rest) = rest.split_first_chunk()?;
            Some((u16::from_be_bytes(*bytes).into(), rest)).filter(|(v, _)| *v >= 1 << 8)
        }
        26 => {
            let (bytes, rest) = rest.split_first_chunk()?;
            Some((u32::from_be_bytes(*bytes).into(), rest)).filter(|(v, _)| *v >= 1 << 16)
        }
        27 => {
            let (bytes, rest) = rest.split_first_chunk()?;
            Some((u64::from_be_bytes(*bytes), rest)).filter(|(v, _)| *v >= 1 << 32)
        }
        _ => None,
    }
}

/// The largest argument that fits the initial byte of an item.
const DIRECT: u8 = 23;

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::manifest::cbor::Decoder;

    /// Asserts that what is read the short way is read the same the long way.
    fn agrees(entry: &[u8]) -> bool {
        let limits = Limits::default();
        let Some((plain, rest)) = Plain::parse(entry, &limits) else { return false };
        let bytes = Bytes::copy_from_slice(entry);
        let mut decoder = Decoder::new(&bytes, 0, 64);
        let object = Object::parse(&mut decoder, &bytes, &limits).expect("refused the long way");
        assert_eq!(decoder.rest(), rest);
        assert_eq!(format!("{:?}", plain.into_object()), format!("{object:?}"));
        true
    }

    fn entries() -> [Vec<u8>; 3] {
        let mut raw = Vec::new();
        Plain::write(&mut raw, &Shape::from([3, 300, 1 << 20]), "bf16", 1 << 33, 70_000);
        let with = |optional: &[u8], head: u8| {
            let mut entry = raw.clone();
            let at = entry.windows(5).position(|word| word == b"dtype").expect("there") - 2;
            entry[at] = head;
            [&entry[..], optional].concat()
        };
        let encoded = b"\x68encoding\x64zstd\x66digest\x71crc32c:0x8A9136AA";
        [with(encoded, 0xa5), with(b"\x68encoding\x64zstd", 0xa4), raw.clone()]
    }

    #[test]
    fn plain_entries_mean_the_same() {
        for entry in entries() {
            assert!(agrees(&entry), "{}", entry.escape_ascii());
        }
    }

    #[test]
    fn changed_entries_mean_the_same() {
        let mut read = 0_u32;
        for entry in entries() {
            for at in 0..entry.len() {
                assert!(!agrees(&entry[..at]));
                let mut changed = entry.clone();
                for byte in 0..=255 {
                    changed[at] = byte;
                    read += u32::from(byte != entry[at] && agrees(&changed));
                }
            }
        }
        assert!(read > 50, "{read}");
    }
}
