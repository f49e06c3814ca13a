//! GGUF, versions 2 and 3: little-endian header of typed keys and of tensors, then aligned data.
//!
//! The crate `gguf` of the registry reads names and sizes, and believes what they say.

use std::{
    collections::{BTreeMap, HashSet},
    io::Read as _,
};

use serde_json::Value;
use tensor_core::{
    DType, Error as Core, Extent, Finding, Limit, Limits, Report, Shape, Source, SourceReader,
};

use super::{
    ElementType, Error, Layout, Metadata, Planned, Result,
    contents::{Contents, Entry, Plain},
};

/// What a file starts with.
pub(super) const MAGIC: &[u8; 4] = b"GGUF";

/// Reads the header, which ends where the data begin.
pub(super) fn parse(source: &Source, limits: &Limits) -> Result<Contents> {
    let mut input = Input::new(source, limits)?;
    input.magic()?;
    let version = input.version()?;
    let tensors = input.count("number of tensors", MIN_TENSOR)?;
    limits.check(Limit::Tensors, "number of tensors", tensors)?;
    let keys = input.count("number of keys", MIN_KEY)?;
    limits.check(Limit::Entries, "number of keys", keys)?;
    let mut contents = Contents { version: version.to_string(), ..Contents::default() };
    for _ in 0..keys {
        let at = input.at;
        let (key, value) = input.key_value()?;
        if contents.metadata.contains_key(&key) {
            let reason = format!("key {key:?} at byte {at} stands twice, expected once");
            return Err(Error::malformed("gguf/duplicate-key", at, reason));
        }
        let start = at.saturating_add(8).saturating_add(key.len() as u64);
        contents.stored.insert(key.clone(), Extent::between(start, input.at));
        contents.metadata.insert(key, value);
    }
    let alignment = alignment(contents.metadata.get(KEY_OF_ALIGNMENT))?;
    let tensors = (0..tensors).map(|_| input.tensor(limits));
    let mut tensors = tensors.collect::<Result<Vec<Plain>>>()?;
    place(&mut tensors, input.at, alignment, source.len(), &mut contents.findings)?;
    contents.entries = tensors.into_iter().map(Entry::from).collect();
    Ok(contents)
}

/// Makes the extents of the tensors, which count from the start of the data, those of the file.
fn place(
    tensors: &mut [Plain],
    header: u64,
    alignment: u64,
    len: u64,
    findings: &mut Report,
) -> Result<()> {
    let start = header.checked_next_multiple_of(alignment).unwrap_or(u64::MAX);
    for entry in tensors.iter_mut() {
        let (name, offset) = (&entry.name, entry.extent.offset());
        if !offset.is_multiple_of(alignment) {
            let reason =
                format!("tensor {name:?}: offset {offset} is not a multiple of {alignment}");
            return Err(Error::malformed("gguf/tensor-misaligned", header, reason));
        }
        // One without elements may stand behind the end of a file that is not padded.
        let offset = start.saturating_add(offset);
        let offset = if entry.extent.is_empty() { offset.min(len) } else { offset };
        entry.extent = Extent::new(offset, entry.extent.len())?.within(len, "tensor data")?;
    }
    let mut order: Vec<&Plain> = tensors.iter().filter(|one| !one.extent.is_empty()).collect();
    order.sort_by_key(|entry| entry.extent.offset());
    let mut end = start.min(len);
    for entry in order {
        let (name, offset) = (&entry.name, entry.extent.offset());
        if offset < end {
            let reason =
                format!("tensor {name:?} at byte {offset} overlaps another, which ends at {end}");
            return Err(Error::malformed("gguf/tensor-overlap", offset, reason));
        }
        if offset.saturating_sub(end) >= alignment {
            let gap = offset.saturating_sub(end);
            unread(findings, end, gap);
        }
        end = entry.extent.end();
    }
    // Writers pad the last tensor too.
    if len.saturating_sub(end) >= alignment {
        unread(findings, end, len.saturating_sub(end));
    }
    Ok(())
}

fn unread(findings: &mut Report, at: u64, len: u64) {
    let message = format!("{len} bytes at byte {at} belong to no tensor");
    findings.add(Finding::note("gguf/gap", message).offset(at));
}

fn alignment(value: Option<&Value>) -> Result<u64> {
    let Some(value) = value else { return Ok(ALIGNMENT) };
    let power = value.as_u64().filter(|alignment| alignment.is_power_of_two());
    power.filter(|alignment| *alignment <= u64::from(u32::MAX)).ok_or_else(|| {
        let reason = format!("general.alignment is {value}, expected a power of two");
        Error::malformed("gguf/alignment", 0, reason)
    })
}

impl Layout {
    /// Lays out a GGUF file of version 3, with the tensors in the order in which they are given.
    ///
    /// Values of metadata are texts, truth values, numbers, and lists of one of these: whole numbers as
    /// `u32`, or as `u64` or `i64` where they do not fit, others as `f64`; those that stand in another
    /// file are copied. `general.alignment` is left out, as data are at multiples of 32.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] where it has no such element type, name, rank or value.
    pub fn gguf(metadata: &BTreeMap<String, Metadata>, tensors: &[Planned<'_>]) -> Result<Self> {
        let mut header = [&MAGIC[..], &3_u32.to_le_bytes()].concat();
        header.extend((tensors.len() as u64).to_le_bytes());
        // Data are aligned as they are where nothing says so.
        let metadata: Vec<_> =
            metadata.iter().filter(|(key, _)| *key != KEY_OF_ALIGNMENT).collect();
        header.extend((metadata.len() as u64).to_le_bytes());
        for (key, value) in metadata {
            put_text(&mut header, key);
            match value {
                Metadata::Value(value) => put_value(&mut header, key, value)?,
                Metadata::Stored(value) => {
                    header.extend_from_slice(&value.read(Extent::first(value.len()), "value")?);
                }
            }
        }
        let (mut places, mut end, mut names) = (Vec::new(), 0_u64, HashSet::new());
        for tensor in tensors {
            if let Some(reason) = refuses(tensor) {
                return Err(tensor.unwritable(reason));
            }
            if !names.insert(tensor.name) {
                return Err(tensor.unwritable("stands twice, expected once"));
            }
            let of = tensor.element_type.to_ggml().unwrap_or(u32::MAX);
            let dims = tensor.shape.dims();
            put_text(&mut header, tensor.name);
            header.extend(u32::try_from(dims.len()).unwrap_or(u32::MAX).to_le_bytes());
            header.extend(dims.iter().rev().flat_map(|dim| dim.to_le_bytes()));
            header.extend(of.to_le_bytes());
            header.extend(end.to_le_bytes());
            let extent = Extent::new(end, tensor.byte_len()?)?;
            places.push(extent);
            end = extent.end().checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
        }
        header.resize(header.len().next_multiple_of(32), 0);
        Ok(Layout { header, order: (0..tensors.len()).collect(), places, end })
    }
}

/// Says what of a tensor GGUF does not have.
pub(crate) fn refuses(tensor: &Planned<'_>) -> Option<String> {
    let (len, rank) = (tensor.name.len(), tensor.shape.rank());
    if tensor.element_type.to_ggml().is_none() {
        return Some(format!("gguf has no element type {}", tensor.element_type));
    }
    if len > MAX_NAME {
        return Some(format!("its name is {len} bytes long, and gguf has at most {MAX_NAME}"));
    }
    // Its clients do not read tensors without dimensions.
    let is_there = (1..=MAX_RANK).contains(&rank);
    (!is_there).then(|| format!("it has {rank} dimensions, and gguf has 1 to {MAX_RANK}"))
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// Tells whether GGUF has a value such as this one.
pub(crate) fn has_value(value: &Value) -> bool {
    put_value(&mut Vec::new(), "", value).is_ok()
}

/// Writes a value with its type.
fn put_value(bytes: &mut Vec<u8>, key: &str, value: &Value) -> Result<()> {
    let no_such =
        || Error::Unwritable { what: format!("GGUF has no value as {key:?} has: {value}") };
    match value {
        Value::Array(list) => {
            let types: Option<Vec<u32>> = list.iter().map(type_of).collect();
            let types = types.ok_or_else(no_such)?;
            let of = match (types.iter().min(), types.iter().max()) {
                (None, None) => STRING,
                (Some(min), Some(max)) if min == max => *min,
                // Whole numbers of several sizes.
                (Some(4), Some(10)) => 10,
                (Some(4), Some(11)) => 11,
                _ => return Err(no_such()),
            };
            bytes.extend(ARRAY.to_le_bytes());
            bytes.extend(of.to_le_bytes());
            bytes.extend((list.len() as u64).to_le_bytes());
            list.iter().try_for_each(|value| put_scalar(bytes, of, value)).ok_or_else(no_such)
        }
        value => {
            let of = type_of(value).ok_or_else(no_such)?;
            bytes.extend(of.to_le_bytes());
            put_scalar(bytes, of, value).ok_or_else(no_such)
        }
    }
}

fn type_of(value: &Value) -> Option<u32> {
    match value {
        Value::Bool(_) => Some(7),
        Value::String(_) => Some(STRING),
        Value::Number(number) => Some(match (number.as_u64(), number.as_i64()) {
            (Some(number), _) if u32::try_from(number).is_ok() => 4,
            (Some(_), _) => 10,
            (None, Some(_)) => 11,
            (None, None) => 12,
        }),
        _ => None,
    }
}

/// Writes a value as one of a type; `None` where it is not.
fn put_scalar(bytes: &mut Vec<u8>, of: u32, value: &Value) -> Option<()> {
    match of {
        4 => bytes.extend(u32::try_from(value.as_u64()?).ok()?.to_le_bytes()),
        7 => bytes.push(value.as_bool()?.into()),
        STRING => put_text(bytes, value.as_str()?),
        10 => bytes.extend(value.as_u64()?.to_le_bytes()),
        11 => bytes.extend(value.as_i64()?.to_le_bytes()),
        _ => bytes.extend(value.as_f64()?.to_le_bytes()),
    }
    Some(())
}

/// The header, read from the front.
struct Input<'s> {
    source: &'s Source,
    stream: SourceReader,
    at: u64,
    limits: &'s Limits,
    /// Bytes of names and values that were kept.
    kept: u64,
}

impl<'s> Input<'s> {
    fn new(source: &'s Source, limits: &'s Limits) -> Result<Self> {
        let stream = source.stream(Extent::first(source.len()), "header")?;
        Ok(Self { source, stream, at: 0, limits, kept: 0 })
    }

    fn magic(&mut self) -> Result<()> {
        let found: [u8; 4] = self.take("magic")?;
        if &found == MAGIC {
            return Ok(());
        }
        let reason =
            format!("magic at byte 0 is {:?}, expected \"GGUF\"", found.escape_ascii().to_string());
        Err(Error::malformed("gguf/magic", 0, reason))
    }

    fn version(&mut self) -> Result<u32> {
        let version = self.u32("version")?;
        match version {
            2 | 3 => Ok(version),
            _ if matches!(version.swap_bytes(), 1..=3) => Err(Error::Unsupported {
                what: "GGUF is big-endian, expected little-endian".to_owned(),
            }),
            _ => Err(Error::Unsupported {
                what: format!("GGUF version at byte 4 is {version}, expected 2 or 3"),
            }),
        }
    }

    /// Reads how many of something follow, each of which takes so many bytes at least.
    fn count(&mut self, what: &'static str, least: u64) -> Result<u64> {
        let offset = self.at;
        let count = self.u64(what)?;
        let (needed, remaining) = (count.saturating_mul(least), self.remaining());
        if needed > remaining {
            return Err(Core::OutOfBounds { what, offset, needed, remaining }.into());
        }
        Ok(count)
    }

    fn key_value(&mut self) -> Result<(String, Value)> {
        let key = self.string("key")?;
        let at = self.at;
        let of = self.u32("type of a value")?;
        if key == KEY_OF_ALIGNMENT && of != 4 {
            let reason = format!("{KEY_OF_ALIGNMENT} at byte {at} is of type {of}, expected u32");
            return Err(Error::malformed("gguf/alignment", at, reason));
        }
        Ok((key, self.value(of, at, 0)?))
    }

    fn value(&mut self, of: u32, at: u64, depth: u32) -> Result<Value> {
        if of == ARRAY { self.array(depth) } else { self.scalar(of, at) }
    }

    fn scalar(&mut self, of: u32, at: u64) -> Result<Value> {
        self.keep(VALUE)?;
        Ok(match of {
            0 => u8::from_le_bytes(self.take("value")?).into(),
            1 => i8::from_le_bytes(self.take("value")?).into(),
            2 => u16::from_le_bytes(self.take("value")?).into(),
            3 => i16::from_le_bytes(self.take("value")?).into(),
            4 => self.u32("value")?.into(),
            5 => i32::from_le_bytes(self.take("value")?).into(),
            6 => float(f32::from_le_bytes(self.take("value")?).into()),
            7 => match self.take("value")? {
                [byte @ (0 | 1)] => (byte == 1).into(),
                [byte] => {
                    let at = self.at.saturating_sub(1);
                    let reason = format!("truth value at byte {at} is {byte}, expected 0 or 1");
                    return Err(Error::malformed("gguf/bool", at, reason));
                }
            },
            8 => self.string("value")?.into(),
            10 => self.u64("value")?.into(),
            11 => i64::from_le_bytes(self.take("value")?).into(),
            12 => float(f64::from_le_bytes(self.take("value")?)),
            _ => {
                let reason = format!("type of a value at byte {at} is {of}, expected 0 to 12");
                return Err(Error::malformed("gguf/value-type", at, reason));
            }
        })
    }

    /// Reads a list; of a long one, such as a vocabulary, only how many of what it holds.
    fn array(&mut self, depth: u32) -> Result<Value> {
        self.limits.check(Limit::Depth, "depth of lists", depth.into())?;
        let at = self.at;
        let of = self.u32("type of elements")?;
        let Some((name, width)) = TYPES.get(of as usize).copied() else {
            let reason = format!("type of elements at byte {at} is {of}, expected 0 to 12");
            return Err(Error::malformed("gguf/value-type", at, reason));
        };
        let count = self.count("number of elements", width)?;
        let deeper = depth.saturating_add(1);
        if count <= LISTED {
            return (0..count).map(|_| self.value(of, at, deeper)).collect();
        }
        match of {
            STRING => {
                for _ in 0..count {
                    let len = self.u64("length of a text")?;
                    self.skip(len, "text")?;
                }
            }
            ARRAY => {
                let reason =
                    format!("list at byte {at} holds {count} lists, expected at most {LISTED}");
                return Err(Error::Unsupported { what: reason });
            }
            _ => self.skip(count.saturating_mul(width), "elements")?,
        }
        Ok(serde_json::json!({ "elements": count, "type": name }))
    }

    /// Counts what is kept of names and values.
    fn keep(&mut self, bytes: u64) -> Result<()> {
        self.kept = self.kept.saturating_add(bytes);
        Ok(self.limits.check(Limit::MetadataBytes, "names and values in bytes", self.kept)?)
    }

    fn tensor(&mut self, limits: &Limits) -> Result<Plain> {
        let name = self.string("name of a tensor")?;
        let rank = self.u32("rank")?;
        limits.check(Limit::Rank, "rank", rank.into())?;
        let mut dims = (0..rank).map(|_| self.u64("dimension")).collect::<Result<Vec<u64>>>()?;
        // The innermost comes first.
        dims.reverse();
        let at = self.at;
        let of = self.u32("element type")?;
        let Some(element_type) = ElementType::from_ggml(of) else {
            let reason = format!(
                "element type of tensor {name:?} at byte {at} is {of}, which GGML does not have"
            );
            return Err(Error::malformed("gguf/element-type", at, reason));
        };
        let shape = Shape::from(dims);
        let len = element_type.byte_len(&shape)?.ok_or_else(|| {
            let reason = format!("tensor {name:?} has shape {shape}, whose rows are no whole blocks of {element_type}");
            Error::malformed("gguf/partial-block", at, reason)
        })?;
        let offset = self.u64("offset")?;
        Ok(Plain { name, element_type, shape, extent: Extent::new(offset, len)? })
    }

    fn string(&mut self, what: &'static str) -> Result<String> {
        let at = self.at;
        let len = self.u64(what)?;
        self.keep(len.saturating_add(VALUE))?;
        let place = Extent::new(self.at, len)?.within(self.source.len(), what)?;
        // Bounded by the limit above and by what the file holds.
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        let read = self.stream.read_exact(&mut bytes);
        read.map_err(|source| Core::Read { what, offset: place.offset(), source })?;
        self.at = place.end();
        String::from_utf8(bytes).map_err(|_| {
            Error::malformed("gguf/text", at, format!("{what} at byte {at} is not UTF-8"))
        })
    }

    fn u32(&mut self, what: &'static str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take(what)?))
    }

    fn u64(&mut self, what: &'static str) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take(what)?))
    }

    fn take<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let (offset, needed, remaining) = (self.at, N as u64, self.remaining());
        if remaining < needed {
            return Err(Core::OutOfBounds { what, offset, needed, remaining }.into());
        }
        let mut bytes = [0; N];
        let read = self.stream.read_exact(&mut bytes);
        read.map_err(|source| Core::Read { what, offset, source })?;
        self.at = offset.saturating_add(needed);
        Ok(bytes)
    }

    fn skip(&mut self, len: u64, what: &'static str) -> Result<()> {
        let place = Extent::new(self.at, len)?.within(self.source.len(), what)?;
        self.at = place.end();
        // Reading on is cheaper than to start again.
        if len < 1 << 20 {
            let skipped = std::io::copy(&mut (&mut self.stream).take(len), &mut std::io::sink());
            skipped.map_err(|source| Core::Read { what, offset: place.offset(), source })?;
        } else {
            self.stream =
                self.source.stream(Extent::between(self.at, self.source.len()), "header")?;
        }
        Ok(())
    }

    fn remaining(&self) -> u64 {
        self.source.len().saturating_sub(self.at)
    }
}

/// Returns a number, or where JSON has none such its name.
fn float(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(|| value.to_string().into(), Value::Number)
}

impl ElementType {
    fn from_ggml(id: u32) -> Option<Self> {
        let (_, element_type) = GGML.iter().find(|(known, _)| *known == id)?;
        Some(*element_type)
    }

    /// Returns the number that GGML has for it.
    pub(crate) fn to_ggml(self) -> Option<u32> {
        GGML.iter().find(|(_, known)| *known == self).map(|(id, _)| *id)
    }
}

const fn blocks(name: &'static str, elements: u64, bytes: u64) -> ElementType {
    ElementType::Blocks { name, elements, bytes }
}

/// Element types by their numbers, as the package `gguf` 0.19.0 of Python has them.
const GGML: [(u32, ElementType); 34] = [
    (0, ElementType::Plain(DType::F32)),
    (1, ElementType::Plain(DType::F16)),
    (2, blocks("q4_0", 32, 18)),
    (3, blocks("q4_1", 32, 20)),
    (6, blocks("q5_0", 32, 22)),
    (7, blocks("q5_1", 32, 24)),
    (8, blocks("q8_0", 32, 34)),
    (9, blocks("q8_1", 32, 40)),
    (10, blocks("q2_k", 256, 84)),
    (11, blocks("q3_k", 256, 110)),
    (12, blocks("q4_k", 256, 144)),
    (13, blocks("q5_k", 256, 176)),
    (14, blocks("q6_k", 256, 210)),
    (15, blocks("q8_k", 256, 292)),
    (16, blocks("iq2_xxs", 256, 66)),
    (17, blocks("iq2_xs", 256, 74)),
    (18, blocks("iq3_xxs", 256, 98)),
    (19, blocks("iq1_s", 256, 50)),
    (20, blocks("iq4_nl", 32, 18)),
    (21, blocks("iq3_s", 256, 110)),
    (22, blocks("iq2_s", 256, 82)),
    (23, blocks("iq4_xs", 256, 136)),
    (24, ElementType::Plain(DType::I8)),
    (25, ElementType::Plain(DType::I16)),
    (26, ElementType::Plain(DType::I32)),
    (27, ElementType::Plain(DType::I64)),
    (28, ElementType::Plain(DType::F64)),
    (29, blocks("iq1_m", 256, 56)),
    (30, ElementType::Plain(DType::BF16)),
    (34, blocks("tq1_0", 256, 54)),
    (35, blocks("tq2_0", 256, 66)),
    (39, blocks("mxfp4", 32, 17)),
    (40, blocks("nvfp4", 64, 36)),
    (41, blocks("q1_0", 128, 18)),
];

/// Names and least widths in bytes of the types of values, by their numbers.
const TYPES: [(&str, u64); 13] = [
    ("u8", 1),
    ("i8", 1),
    ("u16", 2),
    ("i16", 2),
    ("u32", 4),
    ("i32", 4),
    ("f32", 4),
    ("bool", 1),
    ("text", 8),
    ("list", 12),
    ("u64", 8),
    ("i64", 8),
    ("f64", 8),
];

const KEY_OF_ALIGNMENT: &str = "general.alignment";

/// About what a value takes in memory besides its text, in bytes.
const VALUE: u64 = 32;

const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// Where data are aligned unless `general.alignment` says otherwise.
const ALIGNMENT: u64 = 32;

/// Bytes of a name and dimensions of a tensor that GGML has room for.
const MAX_NAME: usize = 63;
const MAX_RANK: usize = 4;

/// How many elements of a list are kept.
const LISTED: u64 = 64;

/// Length of a name, rank, element type, offset.
const MIN_TENSOR: u64 = 24;

/// Length of a key, type, one byte.
const MIN_KEY: u64 = 13;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::Reader;

    fn text(text: &str) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
    }

    fn header(version: u32, keys: &[Vec<u8>], tensors: &[Vec<u8>]) -> Vec<u8> {
        let counts = [tensors.len() as u64, keys.len() as u64].map(u64::to_le_bytes).concat();
        let mut bytes = [MAGIC, &version.to_le_bytes()[..], &counts].concat();
        bytes.extend([keys.concat(), tensors.concat()].concat());
        bytes
    }

    fn key(name: &str, of: u32, value: &[u8]) -> Vec<u8> {
        [&text(name)[..], &of.to_le_bytes(), value].concat()
    }

    /// A tensor, its dimensions innermost first.
    fn tensor(name: &str, dims: &[u64], of: u32, offset: u64) -> Vec<u8> {
        let rank = u32::try_from(dims.len()).unwrap().to_le_bytes();
        let dims: Vec<u8> = dims.iter().flat_map(|dim| dim.to_le_bytes()).collect();
        [&text(name)[..], &rank, &dims, &of.to_le_bytes(), &offset.to_le_bytes()].concat()
    }

    fn file(header: Vec<u8>, data: &[u8]) -> Vec<u8> {
        let mut bytes = header;
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes.extend(data);
        bytes
    }

    fn sample() -> Vec<u8> {
        let list = [
            &4_u32.to_le_bytes()[..],
            &2_u64.to_le_bytes(),
            &7_u32.to_le_bytes(),
            &8_u32.to_le_bytes(),
        ];
        let keys = [
            key("general.name", STRING, &text("tiny")),
            key("list", ARRAY, &list.concat()),
            key("yes", 7, &[1]),
        ];
        let tensors = [tensor("w", &[3, 2], 0, 0), tensor("q", &[64], 8, 32)];
        let data: Vec<u8> = (0..32 + 68).collect();
        file(header(3, &keys, &tensors), &data)
    }

    #[test]
    fn names_types_and_places() {
        let reader = Reader::from_bytes(sample()).unwrap();
        assert_eq!(
            (reader.version(), reader.metadata()["general.name"].as_str()),
            ("3", Some("tiny"))
        );
        assert_eq!(reader.metadata()["list"], serde_json::json!([7, 8]));
        let w = reader.tensor("w").unwrap();
        assert_eq!((w.info().unwrap().dtype, w.shape().dims()), (DType::F32, &[2, 3][..]));
        assert_eq!(w.bytes().unwrap()[..], (0..24).collect::<Vec<u8>>());
        let q = reader.tensor("q").unwrap();
        assert_eq!(q.element_type().to_string(), "q8_0");
        let error = q.bytes().unwrap_err().to_string();
        assert_eq!(error, "tensor \"q\" is of q8_0, expected plain elements");
        assert_eq!(q.stored_bytes().unwrap()[..], (32..100).collect::<Vec<u8>>());
        assert!(reader.validate().is_empty());
    }

    #[test]
    fn lists_in_lists_and_long_ones() {
        let inner = [&0_u32.to_le_bytes()[..], &2_u64.to_le_bytes(), &[1, 2]].concat();
        let nested = [&ARRAY.to_le_bytes()[..], &1_u64.to_le_bytes(), &inner].concat();
        let words: Vec<u8> = (0..70).flat_map(|_| text("word")).collect();
        let words = [&STRING.to_le_bytes()[..], &70_u64.to_le_bytes(), &words].concat();
        let keys = [key("nested", ARRAY, &nested), key("words", ARRAY, &words), key("n", 0, &[7])];
        let reader = Reader::from_bytes(file(header(3, &keys, &[]), &[])).unwrap();
        let found = serde_json::to_value(reader.metadata()).unwrap();
        let words = serde_json::json!({"elements": 70, "type": "text"});
        assert_eq!(found, serde_json::json!({"nested": [[1, 2]], "words": words, "n": 7}));
        let deep = (0..70).fold(inner, |inner, _| {
            [&ARRAY.to_le_bytes()[..], &1_u64.to_le_bytes(), &inner].concat()
        });
        let error =
            Reader::from_bytes(file(header(3, &[key("a", ARRAY, &deep)], &[]), &[])).unwrap_err();
        assert_eq!(error.kind(), tensor_core::ErrorKind::OverLimit);
    }

    #[test]
    fn metadata_take_memory_in_proportion() {
        let list = [&0_u32.to_le_bytes()[..], &64_u64.to_le_bytes(), &[0; 64]].concat();
        let keys: Vec<_> = (0..100).map(|n| key(&format!("{n}"), ARRAY, &list)).collect();
        let bytes = file(header(3, &keys, &[]), &[]);
        let limits = Limits::default().with_metadata_bytes(100_000);
        let error = Reader::options().limits(limits).from_bytes(bytes).unwrap_err();
        assert_eq!(error.kind(), tensor_core::ErrorKind::OverLimit);
    }

    #[test]
    fn every_truncation() {
        let bytes = sample();
        for len in 0..bytes.len() {
            Reader::from_bytes(bytes[..len].to_vec()).expect_err("a truncated file must not open");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let shapes = [[2_u64, 64].into(), Shape::from([3_u64]), [1_u64].into()];
        let types = [
            blocks("q8_0", 32, 34),
            ElementType::Plain(DType::F16),
            ElementType::Plain(DType::I64),
        ];
        let planned = |index: usize| Planned {
            name: ["q", "b/half", "one"][index],
            element_type: types[index],
            shape: &shapes[index],
        };
        let planned: Vec<_> = (0..3).map(planned).collect();
        let keys = serde_json::json!({"n": 7, "text": "b", "half": 0.5, "yes": true, "long": 1_u64 << 40, "minus": -3,
            "texts": ["a", "b"], "numbers": [1, -2], "none": []});
        let metadata: BTreeMap<String, Value> = serde_json::from_value(keys).unwrap();
        let values = |metadata: BTreeMap<String, Value>| -> BTreeMap<_, _> {
            metadata.into_iter().map(|(key, value)| (key, Metadata::Value(value))).collect()
        };
        // An alignment that another file had says nothing of this one.
        let aligned = values([("general.alignment".to_owned(), 64.into())].into());
        assert_eq!(
            Layout::gguf(&aligned, &planned).unwrap().header,
            Layout::gguf(&BTreeMap::new(), &planned).unwrap().header,
        );
        for value in [serde_json::json!(null), serde_json::json!({}), serde_json::json!([1, "a"])] {
            Layout::gguf(&values([("key".to_owned(), value)].into()), &planned).unwrap_err();
        }
        let layout = Layout::gguf(&values(metadata.clone()), &planned).unwrap();
        let data =
            |index: usize| vec![index as u8 + 1; planned[index].byte_len().unwrap() as usize];
        let mut bytes = Vec::new();
        layout
            .write(&mut bytes, |index, sink| Ok::<_, Error>(sink.write_all(&data(index))?))
            .unwrap();
        let short = layout.write(&mut Vec::new(), |_, sink| Ok::<_, Error>(sink.write_all(&[0])?));
        let message = "tensor 0 was written as 1 bytes, expected 136";
        assert_eq!(short.unwrap_err().to_string(), message);
        assert_eq!(layout.file_len(), bytes.len() as u64);
        let reader = Reader::from_bytes(bytes).unwrap();
        assert_eq!(*reader.metadata(), metadata);
        for (index, tensor) in reader.tensors().enumerate() {
            assert_eq!((tensor.name(), tensor.shape()), (planned[index].name, &shapes[index]));
            assert_eq!(tensor.element_type(), types[index]);
            assert_eq!(tensor.stored_bytes().unwrap(), data(index));
        }
        assert!(reader.validate().is_empty());
        let scalar = Planned { name: "one", element_type: types[1], shape: &Shape::scalar() };
        let message = "it has 0 dimensions, and gguf has 1 to 4";
        assert_eq!(refuses(&scalar).as_deref(), Some(message));
        // As they stand, also those that JSON has not.
        let stored = |key: &String| Metadata::Stored(reader.stored_metadata(key).unwrap());
        let stored = metadata.keys().map(|key| (key.clone(), stored(key))).collect();
        assert_eq!(Layout::gguf(&stored, &planned).unwrap().header, layout.header);
    }

    #[track_caller]
    fn rejects(bytes: Vec<u8>, rule: &str, message: &str) {
        let error = Reader::from_bytes(bytes).unwrap_err();
        assert_eq!((error.rule(), &*error.to_string()), (rule, message));
    }

    #[test]
    fn broken_headers() {
        let one = |keys: &[Vec<u8>], tensors: &[Vec<u8>]| file(header(3, keys, tensors), &[0; 64]);
        rejects(
            header(1, &[], &[]),
            "weights/unsupported",
            "GGUF version at byte 4 is 1, expected 2 or 3",
        );
        rejects(
            header(3_u32.swap_bytes(), &[], &[]),
            "weights/unsupported",
            "GGUF is big-endian, expected little-endian",
        );
        let twice = [key("a", 0, &[1]), key("a", 0, &[2])];
        rejects(
            one(&twice, &[]),
            "gguf/duplicate-key",
            "key \"a\" at byte 38 stands twice, expected once",
        );
        rejects(
            one(&[key("a", 13, &[1])], &[]),
            "gguf/value-type",
            "type of a value at byte 33 is 13, expected 0 to 12",
        );
        rejects(
            one(&[key("a", 7, &[2])], &[]),
            "gguf/bool",
            "truth value at byte 37 is 2, expected 0 or 1",
        );
        rejects(
            one(&[], &[tensor("a", &[4], 99, 0)]),
            "gguf/element-type",
            "element type of tensor \"a\" at byte 45 is 99, which GGML does not have",
        );
        rejects(
            one(&[], &[tensor("a", &[33], 8, 0)]),
            "gguf/partial-block",
            "tensor \"a\" has shape [33], whose rows are no whole blocks of q8_0",
        );
        rejects(
            one(&[], &[tensor("a", &[4], 0, 0), tensor("b", &[4], 0, 0)]),
            "gguf/tensor-overlap",
            "tensor \"b\" at byte 96 overlaps another, which ends at 112",
        );
        rejects(
            one(&[], &[tensor("a", &[4], 0, 0), tensor("a", &[4], 0, 32)]),
            "weights/duplicate-name",
            "tensor \"a\" stands twice, expected once",
        );
        rejects(
            one(&[], &[tensor("a", &[4], 0, 8)]),
            "gguf/tensor-misaligned",
            "tensor \"a\": offset 8 is not a multiple of 32",
        );
    }
}
