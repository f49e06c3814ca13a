//! safetensors: a length, a JSON object, then the elements of the tensors without a gap.
//!
//! The crate `safetensors` reads them too, but wants the whole file in memory or mapped, takes the
//! last of two tensors of a name without a word, and names no place in the header.

use std::{
    collections::{BTreeMap, HashSet, btree_map::Entry as Place},
    fmt,
    marker::PhantomData,
};

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use tensor_core::{DType, Extent, Limit, Limits, Shape, Source};

use super::{
    ElementType, Error, Layout, Planned, Result,
    contents::{Contents, Entry, Plain},
};

/// Tells whether some bytes start as a file does: with a length and a brace.
pub(super) fn sniff(start: &[u8]) -> bool {
    let len = start.first_chunk().map(|len| u64::from_le_bytes(*len));
    let is_object = match start.get(8..10) {
        Some(&[b'{', next]) => matches!(next, b'"' | b'}') || next.is_ascii_whitespace(),
        _ => false,
    };
    is_object && len.is_some_and(|len| len <= MAX_HEADER)
}

/// Reads the header, which must describe every byte behind it.
pub(super) fn parse(source: &Source, limits: &Limits) -> Result<Contents> {
    let (metadata, tensors) = read(source, limits)?;
    let entries = tensors.into_iter().map(Entry::from).collect();
    Ok(Contents { metadata, entries, ..Contents::default() })
}

/// Reads the header: metadata, and the tensors in the order of their data.
pub(super) fn read(
    source: &Source,
    limits: &Limits,
) -> Result<(BTreeMap<String, Value>, Vec<Plain>)> {
    let len = source.read(Extent::first(8), "length of the header")?;
    let len = len.first_chunk().map_or(0, |len| u64::from_le_bytes(*len));
    limits.check(Limit::ManifestBytes, "length of the header in bytes", len)?;
    let place = Extent::new(8, len)?.within(source.len(), "header")?;
    let text = source.read(place, "header")?;
    if len > MAX_HEADER {
        let reason = format!("header at byte 8 is {len} bytes long, expected at most {MAX_HEADER}");
        return Err(Error::malformed("safetensors/header", 0, reason));
    }
    let text = str::from_utf8(&text).map_err(|error| {
        let at = 8_u64.saturating_add(error.valid_up_to() as u64);
        Error::malformed("safetensors/header", at, format!("header at byte {at} is not UTF-8"))
    })?;
    let header: Header = serde_json::from_str(text).map_err(|error| not_json(&error))?;
    let kept = header
        .metadata
        .iter()
        .map(|(key, value)| key.len().saturating_add(value.as_str().map_or(0, str::len)));
    limits.check(Limit::MetadataBytes, "metadata in bytes", kept.sum::<usize>() as u64)?;
    let data = Extent::between(place.end(), source.len());
    limits.check(Limit::Tensors, "number of tensors", header.tensors.len() as u64)?;
    let tensors = header.tensors.into_iter().map(|(name, stored)| stored.read(name, data, limits));
    let mut tensors = tensors.collect::<Result<Vec<Plain>>>()?;
    // Empty tensors stand before the one that starts where they do.
    tensors.sort_by_key(|tensor| (tensor.extent.offset(), tensor.extent.end()));
    covers(&tensors, data)?;
    Ok((header.metadata, tensors))
}

/// Checks that the tensors follow each other without a gap, up to the end of the file.
fn covers(entries: &[Plain], data: Extent) -> Result<()> {
    let mut end = data.offset();
    for entry in entries {
        let (name, offset) = (&entry.name, entry.extent.offset());
        if offset != end {
            let reason = format!(
                "tensor {name:?} starts at byte {offset}, expected {end}, where the one before ends"
            );
            return Err(Error::malformed("safetensors/offsets", offset, reason));
        }
        end = entry.extent.end();
    }
    if end != data.end() {
        let reason = format!("tensors end at byte {end}, but the file at {}", data.end());
        return Err(Error::malformed("safetensors/length", end, reason));
    }
    Ok(())
}

fn not_json(error: &serde_json::Error) -> Error {
    // Lines behind the first are rare: writers put the whole header into one.
    let at = if error.line() == 1 {
        8_u64.saturating_add(error.column() as u64).saturating_sub(1)
    } else {
        8
    };
    Error::malformed("safetensors/header", at, format!("header at byte 8: {error}"))
}

impl Layout {
    /// Lays out a safetensors file, byte for byte as the crate `safetensors` does: the widest elements
    /// first, then by name, so that each starts at a multiple of its width.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] where it has no such element type or name.
    pub fn safetensors(
        metadata: &BTreeMap<String, String>,
        tensors: &[Planned<'_>],
    ) -> Result<Self> {
        let mut order = Vec::with_capacity(tensors.len());
        for (index, tensor) in tensors.iter().enumerate() {
            if let Some(reason) = refuses(tensor) {
                return Err(tensor.unwritable(reason));
            }
            let rank = DTYPES.iter().position(|(_, known)| *known == tensor.element_type);
            order.push((std::cmp::Reverse(rank), tensor.name, index));
        }
        order.sort_unstable();
        let (mut header, mut places, mut end) = (serde_json::Map::new(), Vec::new(), 0_u64);
        if !metadata.is_empty() {
            header.insert(METADATA.to_owned(), serde_json::json!(metadata));
        }
        let order: Vec<usize> = order.into_iter().map(|(_, _, index)| index).collect();
        for tensor in order.iter().filter_map(|index| tensors.get(*index)) {
            let extent = Extent::new(end, tensor.byte_len()?)?;
            let dtype = tensor.element_type.to_safetensors();
            let place = [extent.offset(), extent.end()];
            let stored = serde_json::json!({
                "dtype": dtype, "shape": tensor.shape.dims(), "data_offsets": place,
            });
            if header.insert(tensor.name.to_owned(), stored).is_some() {
                return Err(tensor.unwritable("stands twice, expected once"));
            }
            places.push(extent);
            end = extent.end();
        }
        let mut text = Value::Object(header).to_string().into_bytes();
        text.resize(text.len().next_multiple_of(8), b' ');
        if text.len() as u64 > MAX_HEADER {
            let len = text.len();
            let what = format!("header of {len} bytes is longer than safetensors has room for");
            return Err(Error::Unwritable { what });
        }
        let header = [&(text.len() as u64).to_le_bytes()[..], &text].concat();
        Ok(Layout { header, order, places, end })
    }
}

/// Says what of a tensor safetensors does not have.
pub(crate) fn refuses(tensor: &Planned<'_>) -> Option<String> {
    if tensor.element_type.to_safetensors().is_none() {
        return Some(format!("safetensors has no element type {}", tensor.element_type));
    }
    let is_taken = tensor.name == METADATA;
    is_taken.then(|| "safetensors has no tensor of this name".to_owned())
}

/// The JSON object, in its order.
#[derive(Default)]
struct Header {
    metadata: BTreeMap<String, Value>,
    tensors: Vec<(String, Stored)>,
}

/// A tensor as the header has it.
#[derive(serde::Deserialize)]
struct Stored {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl Stored {
    fn read(self, name: String, data: Extent, limits: &Limits) -> Result<Plain> {
        limits.check(Limit::Rank, "rank", self.shape.len() as u64)?;
        let broken =
            |rule, reason: String| Error::malformed(rule, 8, format!("tensor {name:?}: {reason}"));
        let element_type = ElementType::from_safetensors(&self.dtype).ok_or_else(|| {
            broken(
                "safetensors/dtype",
                format!("dtype is {:?}, which safetensors does not have", self.dtype),
            )
        })?;
        let shape = Shape::from(self.shape);
        let (start, end) = self.data_offsets;
        let needed = element_type.byte_len(&shape)?;
        if start > end || needed != Some(end.saturating_sub(start)) {
            let needed =
                needed.map_or("whole bytes".to_owned(), |needed| format!("{needed} bytes"));
            let reason = format!(
                "data_offsets are [{start}, {end}], but shape {shape} of {element_type} needs {needed}"
            );
            return Err(broken("safetensors/size", reason));
        }
        let extent = Extent::new(data.offset().saturating_add(start), end.saturating_sub(start))?;
        let extent = extent.within(data.end(), "tensor data")?;
        Ok(Plain { name, element_type, shape, extent })
    }
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = Header;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
        let (mut header, mut names) = (Header::default(), HashSet::new());
        while let Some(name) = map.next_key::<String>()? {
            if !names.insert(name.clone()) {
                return Err(de::Error::custom(format!("{name:?} stands twice, expected once")));
            }
            if name == METADATA {
                let metadata = map.next_value::<Option<Unique<String>>>()?;
                let metadata = metadata.unwrap_or_default().0.into_iter();
                header.metadata = metadata.map(|(key, text)| (key, text.into())).collect();
            } else {
                header.tensors.push((name, map.next_value()?));
            }
        }
        Ok(header)
    }
}

/// An object in which no key stands twice, and which has no more than a million.
pub(super) struct Unique<V>(pub(super) BTreeMap<String, V>);

impl<V> Default for Unique<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Unique<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueVisitor(PhantomData))
    }
}

struct UniqueVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for UniqueVisitor<V> {
    type Value = Unique<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique<V>, A::Error> {
        let mut unique = BTreeMap::new();
        while let Some((key, value)) = map.next_entry::<String, V>()? {
            if unique.len() >= MAX_KEYS {
                return Err(de::Error::custom("more than 1,000,000 keys"));
            }
            match unique.entry(key) {
                Place::Vacant(place) => _ = place.insert(value),
                Place::Occupied(place) => {
                    let key = place.key();
                    return Err(de::Error::custom(format!("{key:?} stands twice, expected once")));
                }
            }
        }
        Ok(Unique(unique))
    }
}

impl ElementType {
    fn from_safetensors(name: &str) -> Option<Self> {
        DTYPES.iter().find(|(known, _)| *known == name).map(|(_, element_type)| *element_type)
    }

    /// Returns the name that safetensors has for it.
    pub(crate) fn to_safetensors(self) -> Option<&'static str> {
        DTYPES.iter().find(|(_, known)| *known == self).map(|(name, _)| *name)
    }
}

const fn packed(name: &'static str, bits: u64) -> ElementType {
    ElementType::Packed { name, bits }
}

/// Element types by their names, as the crate `safetensors` 0.8.0 has them, in its order: what stands
/// further down has its data first.
const DTYPES: [(&str, ElementType); 22] = [
    ("BOOL", ElementType::Plain(DType::Bool)),
    ("F4", packed("f4", 4)),
    ("F6_E2M3", packed("f6_e2m3", 6)),
    ("F6_E3M2", packed("f6_e3m2", 6)),
    ("U8", ElementType::Plain(DType::U8)),
    ("I8", ElementType::Plain(DType::I8)),
    ("F8_E5M2", ElementType::Plain(DType::F8E5M2)),
    ("F8_E4M3", ElementType::Plain(DType::F8E4M3)),
    ("F8_E8M0", packed("f8_e8m0", 8)),
    ("F8_E4M3FNUZ", packed("f8_e4m3fnuz", 8)),
    ("F8_E5M2FNUZ", packed("f8_e5m2fnuz", 8)),
    ("I16", ElementType::Plain(DType::I16)),
    ("U16", ElementType::Plain(DType::U16)),
    ("F16", ElementType::Plain(DType::F16)),
    ("BF16", ElementType::Plain(DType::BF16)),
    ("I32", ElementType::Plain(DType::I32)),
    ("U32", ElementType::Plain(DType::U32)),
    ("F32", ElementType::Plain(DType::F32)),
    ("C64", ElementType::Plain(DType::C64)),
    ("F64", ElementType::Plain(DType::F64)),
    ("I64", ElementType::Plain(DType::I64)),
    ("U64", ElementType::Plain(DType::U64)),
];

/// How many keys an object of metadata or an index may have.
const MAX_KEYS: usize = 1_000_000;

/// The key that is no tensor.
const METADATA: &str = "__metadata__";

/// The longest header that other readers take.
const MAX_HEADER: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use ::safetensors::{Dtype, SafeTensors, serialize, tensor::TensorView};

    use super::*;
    use crate::weights::Reader;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    #[test]
    fn what_the_crate_writes_is_read() {
        let bytes: Vec<u8> = (0..24).collect();
        let tensors = [
            ("w", TensorView::new(Dtype::F32, vec![2, 2], &bytes[..16]).unwrap()),
            ("none", TensorView::new(Dtype::F16, vec![0, 7], &[]).unwrap()),
            ("scalar", TensorView::new(Dtype::I64, vec![], &bytes[16..]).unwrap()),
        ];
        let metadata = Some([("format".to_owned(), "pt".to_owned())].into());
        let reader = Reader::from_bytes(serialize(tensors.clone(), metadata).unwrap()).unwrap();
        assert_eq!(reader.metadata()["format"], "pt");
        assert_eq!(reader.tensors().count(), 3);
        for (name, tensor) in tensors {
            let read = reader.tensor(name).unwrap().read().unwrap();
            assert_eq!(
                read.shape().dims().iter().map(|dim| *dim as usize).collect::<Vec<_>>(),
                tensor.shape()
            );
            assert_eq!(read.bytes()[..], *tensor.data());
            let element_type = reader.tensor(name).unwrap().element_type();
            assert_eq!(element_type.to_safetensors(), Some(&*format!("{:?}", tensor.dtype())));
        }
        assert!(reader.validate().is_empty());
    }

    #[test]
    fn layouts_are_those_of_the_crate() {
        let bytes: Vec<u8> = (0..40).collect();
        let tensors = [
            ("b", TensorView::new(Dtype::U8, vec![3], &bytes[..3]).unwrap()),
            ("z", TensorView::new(Dtype::F32, vec![2, 2], &bytes[4..20]).unwrap()),
            ("a", TensorView::new(Dtype::F32, vec![1], &bytes[20..24]).unwrap()),
            ("i", TensorView::new(Dtype::I64, vec![], &bytes[24..32]).unwrap()),
            ("none", TensorView::new(Dtype::F16, vec![0, 7], &[]).unwrap()),
        ];
        let shapes: Vec<Shape> = tensors.iter().map(|(_, tensor)| tensor.shape().into()).collect();
        let planned = |((name, tensor), shape): (&(&'static str, TensorView<'_>), _)| Planned {
            name,
            element_type: ElementType::from_safetensors(&format!("{:?}", tensor.dtype())).unwrap(),
            shape,
        };
        let planned: Vec<_> = tensors.iter().zip(&shapes).map(planned).collect();
        for metadata in [BTreeMap::new(), [("format".to_owned(), "pt".to_owned())].into()] {
            let layout = Layout::safetensors(&metadata, &planned).unwrap();
            let mut written = Vec::new();
            let put = |index: usize, sink: &mut dyn Write| {
                Ok::<_, Error>(sink.write_all(tensors[index].1.data())?)
            };
            layout.write(&mut written, put).unwrap();
            assert_eq!(layout.file_len(), written.len() as u64);
            let metadata = (!metadata.is_empty()).then(|| metadata.into_iter().collect());
            assert_eq!(written, serialize(tensors.clone(), metadata).unwrap());
        }
    }

    #[test]
    fn names_of_element_types_are_those_of_the_crate() {
        for (name, element_type) in DTYPES {
            let dtype: Dtype = serde_json::from_str(&format!("{name:?}")).unwrap();
            let bits = element_type.byte_len(&[64_u64].into()).unwrap().unwrap() / 8;
            assert_eq!(bits, dtype.bitsize() as u64, "{name}");
        }
    }

    #[track_caller]
    fn rejects(bytes: Vec<u8>, rule: &str, message: &str) {
        let error = Reader::from_bytes(bytes).unwrap_err();
        assert_eq!((error.rule(), &*error.to_string()), (rule, message));
    }

    #[test]
    fn broken_headers() {
        let one = r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#;
        assert!(Reader::from_bytes(file(one, &[1, 2])).is_ok());
        rejects(
            file(one, &[1, 2, 3]),
            "safetensors/length",
            "tensors end at byte 63, but the file at 64",
        );
        rejects(
            file(one, &[1]),
            "file/truncated",
            "tensor data at byte 61 needs 2 bytes, but 1 remain",
        );
        rejects(
            file(&one.replace("U8", "U9"), &[1, 2]),
            "safetensors/dtype",
            "tensor \"a\": dtype is \"U9\", which safetensors does not have",
        );
        rejects(
            file(&one.replace("[2]", "[3]"), &[1, 2]),
            "safetensors/size",
            "tensor \"a\": data_offsets are [0, 2], but shape [3] of u8 needs 3 bytes",
        );
        rejects(
            file(&one.replace("[0,2]", "[1,3]"), &[0, 1, 2]),
            "safetensors/offsets",
            "tensor \"a\" starts at byte 62, expected 61, where the one before ends",
        );
        let twice = r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}"#;
        rejects(
            file(twice, &[1, 2, 3, 4]),
            "safetensors/header",
            "header at byte 8: \"a\" stands twice, expected once at line 1 column 56",
        );
        assert!(SafeTensors::deserialize(&file(twice, &[1, 2, 3, 4])).is_err());
    }

    #[test]
    fn headers_that_the_crate_takes_and_those_that_it_does_not() {
        let tensor = r#""a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}"#;
        for (header, is_sound) in [
            (format!(r#"{{"__metadata__":null,{tensor}}}"#), true),
            (format!("{{\t{tensor}}}"), true),
            (format!(r#"{{"__metadata__":{{"a":1}},{tensor}}}"#), false),
            (
                format!(
                    r#"{{"a":{{"dtype":"U8","shape":[2],"data_offsets":[0,2],"x":"{}"}}}}"#,
                    '\u{1}'
                ),
                false,
            ),
        ] {
            let bytes = file(&header, &[1, 2]);
            assert_eq!(SafeTensors::deserialize(&bytes).is_ok(), is_sound, "{header}");
            assert_eq!(Reader::from_bytes(bytes).is_ok(), is_sound, "{header}");
        }
        let mut bytes =
            file(r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"x":"@"}}"#, &[1, 2]);
        let at = bytes.iter().position(|byte| *byte == b'@').unwrap();
        bytes[at] = 0xff;
        assert!(SafeTensors::deserialize(&bytes).is_err() && Reader::from_bytes(bytes).is_err());
    }

    #[test]
    fn every_truncation() {
        let bytes = file(r#"{"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}}"#, &[1, 0]);
        for len in 0..bytes.len() {
            Reader::from_bytes(bytes[..len].to_vec()).expect_err("a truncated file must not open");
        }
    }

    #[test]
    fn truth_values_are_looked_at() {
        let bytes = file(r#"{"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}}"#, &[1, 7]);
        let report = Reader::from_bytes(bytes).unwrap().validate();
        assert_eq!(
            report.findings()[0].message,
            "tensor \"a\": bool at element 1 is 7, expected 0 or 1"
        );
    }
}
