//! The manifest: an index of names over the encoded document, and the typed entries that are
//! decoded from it when they are asked for. Format text: Part II.

mod attributes;
pub(crate) mod cbor;
pub(crate) mod dtype;
pub(crate) mod emit;
mod fields;
mod key;
mod legacy;
mod object;
pub(crate) mod plain;
mod value;
mod vocabulary;

pub use attributes::Attributes;
pub(crate) use attributes::Encoded;
pub use dtype::{ElementType, StoredType};
pub(crate) use key::Key;
pub(crate) use object::product;
pub use object::{Component, Object};
pub use value::Value;
pub use vocabulary::{ByteOrder, Encoding, Format, Role, Shard};

use std::{
    borrow::Cow,
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    ops::Range,
    sync::OnceLock,
};

use bytes::Bytes;
use hashbrown::HashTable;
use tensor_core::{Extent, Limits, text::Quoted};

use self::{
    attributes::attributes_range,
    cbor::{Decoder, Unusual},
    fields::{Fields, require, text_of},
    plain::Plain,
};
use crate::{
    Generation, Problem,
    error::Result,
    v2::{
        self,
        container::Footer,
        document::{Document, Entry as EntryV2},
        walk::Walk,
    },
};

/// The document of a file: version, attributes, and the objects by name.
///
/// Opening walks the encoded document once, checks it and indexes the names; an [`Object`] is
/// built when it is asked for, in time that does not depend on how many others there are.
#[derive(Debug)]
pub struct Manifest {
    generation: Generation,
    bytes: Bytes,
    /// Where the manifest starts, in bytes from the start of the file.
    offset: u64,
    limits: Limits,
    version: String,
    generator: Option<String>,
    attributes: Option<Encoded>,
    other: Vec<(Key, Bytes)>,
    unusual: Unusual,
    entries: Vec<Entry>,
    apart: Vec<Apart>,
    shards: BTreeMap<String, Shard>,
    hasher: RandomState,
    by_name: OnceLock<HashTable<Slot>>,
}

/// Where the name of an object is in the manifest, in bytes; its encoded body follows. Manifests are
/// at most 1 GiB long.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u32,
    /// The length of the name, or [`APART`]: then `at` is a place in `Manifest::apart`.
    len: u32,
}

/// A name that its body does not follow: it is written in chunks, or stands inside the body.
#[derive(Clone, Debug)]
struct Apart {
    name: String,
    body: usize,
}

const APART: u32 = u32::MAX;

/// A place in the table of names: the entry stands in it, so that one look finds the name.
#[derive(Clone, Copy, Debug)]
struct Slot {
    entry: Entry,
    index: u32,
}

impl Manifest {
    /// Walks an encoded manifest that starts `offset` bytes into its file.
    pub(crate) fn parse(
        generation: Generation,
        bytes: &Bytes,
        offset: u64,
        limits: &Limits,
    ) -> Result<Self> {
        let mut manifest = Self::empty(generation, bytes.clone(), offset, limits);
        let mut decoder = Decoder::new(bytes, 0, limits.depth);
        let root = match generation {
            Generation::V0_1 => manifest.root_v0_1(&mut decoder, limits),
            _ => manifest.root(&mut decoder, limits),
        };
        root.and_then(|()| decoder.end()).map_err(|error| error.into_error(offset))?;
        manifest.unusual = decoder.unusual();
        if generation == Generation::V1_1
            && (manifest.version == "1.2" || manifest.version.starts_with("1.2."))
        {
            manifest.generation = Generation::V1_2;
        }
        if !manifest.is_sorted() {
            manifest.by_name = OnceLock::from(manifest.index(RefuseDuplicates::Yes)?);
        }
        Ok(manifest)
    }

    /// Checks a manifest of generation 2, in a file of `len` bytes, and indexes the names.
    pub(crate) fn parse_v2(
        bytes: Bytes,
        footer: Footer,
        len: u64,
        limits: &Limits,
    ) -> Result<Self> {
        let place = footer.manifest;
        let mut manifest = Self::empty(Generation::V2, bytes, place.offset(), limits);
        "2".clone_into(&mut manifest.version);
        if place.is_empty() {
            // A shard of nothing but blobs.
            return Ok(manifest);
        }
        footer.check(&manifest.bytes)?;
        v2::cbor::check(&manifest.bytes).map_err(|broken| broken.into_error(place.offset()))?;
        let Document { attributes, shards, other, objects } =
            Document::check(&manifest.bytes, place, len, limits)?;
        manifest.attributes = attributes.map(|range| manifest.encoded(range));
        manifest.shards = shards;
        for (key, value) in other {
            let key = v2::document::key(&manifest.bytes, key);
            manifest.other.push((key, manifest.bytes.slice(value)));
        }
        // Manifests are at most 1 GiB long.
        let entries = objects.into_iter().filter_map(|(at, len)| Self::entry(at, len));
        manifest.entries = entries.collect();
        Ok(manifest)
    }

    fn empty(generation: Generation, bytes: Bytes, offset: u64, limits: &Limits) -> Self {
        Self {
            generation,
            bytes,
            offset,
            limits: *limits,
            version: String::new(),
            generator: None,
            attributes: None,
            other: Vec::new(),
            unusual: Unusual::default(),
            entries: Vec::new(),
            apart: Vec::new(),
            shards: BTreeMap::new(),
            hasher: RandomState::new(),
            by_name: OnceLock::new(),
        }
    }

    /// Reads the root map of generations 1.0 and later. Format text: Part II, section 1.
    fn root(&mut self, decoder: &mut Decoder<'_>, limits: &Limits) -> cbor::Result<()> {
        let start = decoder.at();
        let objects = if self.generation == Generation::V1_0 { "tensors" } else { "objects" };
        let mut fields = Fields::new(decoder, "the map of a manifest")?;
        let (mut version, mut found_objects) = (None, false);
        while let Some(key) = fields.next(decoder)? {
            match &*key {
                "version" => version = Some(decoder.text("text").map_err(|e| e.inside("version"))?),
                "attributes" => {
                    let range = self.attributes_at(decoder)?;
                    self.attributes = range.map(|range| self.encoded(range));
                }
                "generator" if self.generation == Generation::V1_0 => {
                    let text = decoder.text("text").map_err(|e| e.inside("generator"))?;
                    self.generator = Some(text.into_owned());
                }
                key if key == objects => {
                    found_objects = true;
                    self.objects_at(decoder, limits).map_err(|e| e.inside(objects))?;
                }
                _ => {
                    let at = decoder.at();
                    decoder.skip().map_err(|e| e.inside(&key))?;
                    self.other.push(((&*key).into(), self.bytes.slice(at..decoder.at())));
                }
            }
        }
        self.version = require(version, start, "version")?.into_owned();
        require(found_objects.then_some(()), start, objects)
    }

    fn objects_at(&mut self, decoder: &mut Decoder<'_>, limits: &Limits) -> cbor::Result<()> {
        let mut items = decoder.map("a map of objects")?;
        // An entry takes more bytes than its place in the index.
        let room = self.bytes.len().checked_div(size_of::<Entry>()).unwrap_or_default();
        self.entries.reserve(items.at_most(room.min(RESERVED)));
        while decoder.more(&mut items)? {
            let at = decoder.at();
            let name = decoder.text("the name of an object, as text")?;
            let body = decoder.at();
            let object = match self.generation {
                Generation::V1_0 => legacy::object_v1_0(decoder, &self.bytes, limits).map(drop),
                _ => match Plain::parse(decoder.rest(), limits) {
                    Some((_, rest)) => {
                        decoder.pass(rest);
                        Ok(())
                    }
                    None => Object::walk(decoder, &self.bytes, limits, None),
                },
            };
            object.map_err(|e| e.inside(Quoted(&name)))?;
            let entry = match name {
                Cow::Borrowed(name) => Self::entry(body.saturating_sub(name.len()), name.len()),
                Cow::Owned(name) => self.entry_apart(name, body),
            };
            self.push(at, entry, limits)?;
        }
        Ok(())
    }

    /// Reads the array that is the document of generation 0.1.
    fn root_v0_1(&mut self, decoder: &mut Decoder<'_>, limits: &Limits) -> cbor::Result<()> {
        "0.1".clone_into(&mut self.version);
        let mut items = decoder.array("an array of tensors")?;
        while decoder.more(&mut items)? {
            let body = decoder.at();
            let part = self.entries.len();
            let (name, _) = legacy::tensor_v0_1(decoder, &self.bytes, limits)
                .map_err(|e| e.inside(format_args!("[{part}]")))?;
            let entry = self.entry_apart(name, body);
            self.push(body, entry, limits)?;
        }
        Ok(())
    }

    fn entry(at: usize, len: usize) -> Option<Entry> {
        let (at, len) = (u32::try_from(at).ok()?, u32::try_from(len).ok()?);
        (len != APART).then_some(Entry { at, len })
    }

    fn entry_apart(&mut self, name: String, body: usize) -> Option<Entry> {
        let at = u32::try_from(self.apart.len()).ok()?;
        self.apart.push(Apart { name, body });
        Some(Entry { at, len: APART })
    }

    fn push(&mut self, at: usize, entry: Option<Entry>, limits: &Limits) -> cbor::Result<()> {
        let (found, limit) = (self.entries.len() as u64, limits.tensors);
        let over = |field, found, limit| {
            Err(Decoder::problem(at, Problem::OverLimit { found, limit, field }))
        };
        if found >= limit {
            return over("tensors", found.saturating_add(1), limit);
        }
        let Some(entry) = entry else {
            return over("manifest_bytes", self.bytes.len() as u64, u32::MAX.into());
        };
        self.entries.push(entry);
        Ok(())
    }

    /// Skips an attribute map; `None` where it is null.
    fn attributes_at(&self, decoder: &mut Decoder<'_>) -> cbor::Result<Option<Range<usize>>> {
        attributes_range(decoder).map_err(|e| e.inside("attributes"))
    }

    fn encoded(&self, range: Range<usize>) -> Encoded {
        Encoded::slice(&self.bytes, range)
    }

    fn is_sorted(&self) -> bool {
        let mut last = None;
        (0..self.entries.len()).all(|index| {
            let name = self.name_bytes(index);
            last.replace(name) < Some(name)
        })
    }

    /// Makes the table of names.
    fn index(&self, duplicates: RefuseDuplicates) -> Result<HashTable<Slot>> {
        let mut table = HashTable::with_capacity(self.entries.len());
        let hash = |slot: &Slot| self.hasher.hash_one(self.name_of(slot.entry));
        for (index, &entry) in (0..).zip(&self.entries) {
            let name = self.name_of(entry);
            let hashed = self.hasher.hash_one(name);
            let same = |other: &Slot| self.name_of(other.entry) == name;
            if duplicates == RefuseDuplicates::Yes && table.find(hashed, same).is_some() {
                let problem = Problem::DuplicateKey { key: text_of(name).to_owned() };
                let error = Decoder::problem(self.body(index as usize), problem).inside("objects");
                return Err(error.into_error(self.offset));
            }
            table.insert_unique(hashed, Slot { entry, index }, hash);
        }
        Ok(table)
    }

    /// Returns which generation of the format the file is.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// Returns the text of `version`, as it stands; `"0.1"` where a file has none.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns what made the file; only generation 1.0 says.
    #[must_use]
    pub fn generator(&self) -> Option<&str> {
        self.generator.as_deref()
    }

    /// Decodes the attributes of the file; `None` where there are none.
    ///
    /// # Errors
    ///
    /// [`Error::Manifest`](crate::Error::Manifest) where a key is there twice, and where the
    /// attributes are longer than [`Limits::metadata_bytes`].
    pub fn attributes(&self) -> Result<Option<Attributes>> {
        self.attributes.as_ref().map(|item| self.decode(item, "attributes")).transpose()
    }

    /// Decodes the attributes of an object of this manifest; `None` where it has none.
    ///
    /// # Errors
    ///
    /// As for [`attributes`](Self::attributes).
    pub fn attributes_of(&self, name: &str, object: &Object) -> Result<Option<Attributes>> {
        let path = || format!("objects.{name:?}.attributes");
        object.attributes.as_ref().map(|item| self.decode(item, &path())).transpose()
    }

    fn decode(&self, item: &Encoded, path: &str) -> Result<Attributes> {
        let attributes = item.attributes(&self.limits);
        attributes.map_err(|error| error.inside(path).into_error(self.offset))
    }

    /// Returns the keys of the root map that the format does not name, in the order of the file; of one
    /// that is not text, as generation 2 lets pass, its first bytes, such as `h'01'`.
    pub fn unknown_keys(&self) -> impl Iterator<Item = &str> {
        self.other.iter().map(|(key, _)| key.as_str())
    }

    /// Returns the other files that hold blobs of this one, by name; only generation 2 has any.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = (&str, &Shard)> {
        self.shards.iter().map(|(name, shard)| (name.as_str(), shard))
    }

    /// Tells whether the file is a shard of nothing but blobs, without a manifest of its own.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Tells whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the names of the objects in the order of the file.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|index| self.name(index))
    }

    /// Decodes the object of a name; `None` where there is none.
    ///
    /// # Errors
    ///
    /// None that opening has not met already.
    #[must_use]
    pub fn object(&self, name: &str) -> Option<Result<Object>> {
        self.position(name).map(|index| self.object_at(index))
    }

    /// Returns where among the objects a name is.
    ///
    /// The table of names is made when this is first called, unless opening needed it.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        let table = self.by_name.get_or_init(|| {
            // Opening has proved that names differ, so nothing is refused.
            self.index(RefuseDuplicates::No).unwrap_or_default()
        });
        let name = name.as_bytes();
        let same = |slot: &Slot| self.name_of(slot.entry) == name;
        table.find(self.hasher.hash_one(name), same).map(|slot| slot.index as usize)
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        // Opening has proved that names are UTF-8.
        std::str::from_utf8(self.name_bytes(index)).unwrap_or_default()
    }

    fn name_bytes(&self, index: usize) -> &[u8] {
        self.entries.get(index).map_or(&[], |&entry| self.name_of(entry))
    }

    fn name_of(&self, entry: Entry) -> &[u8] {
        let at = entry.at as usize;
        match entry.len {
            APART => self.apart.get(at).map_or(&[], |apart| apart.name.as_bytes()),
            len => self.bytes.get(at..at.saturating_add(len as usize)).unwrap_or_default(),
        }
    }

    /// Returns where the encoded body of an object starts in the manifest.
    pub(crate) fn body(&self, index: usize) -> usize {
        match self.entries.get(index) {
            Some(&Entry { at, len: APART }) => {
                self.apart.get(at as usize).map_or(0, |apart| apart.body)
            }
            Some(&Entry { at, len }) => (at as usize).saturating_add(len as usize),
            None => 0,
        }
    }

    /// Reads an object that is dense and plainly encoded; `None` for any other.
    pub(crate) fn plain_at(&self, index: usize) -> Option<Plain<'_>> {
        match self.generation {
            Generation::V0_1 | Generation::V1_0 | Generation::V2 => None,
            Generation::V1_1 | Generation::V1_2 => {
                let body = self.bytes.get(self.body(index)..)?;
                Plain::parse(body, &self.limits).map(|(plain, _)| plain)
            }
        }
    }

    pub(crate) fn object_at(&self, index: usize) -> Result<Object> {
        if let Some(plain) = self.plain_at(index) {
            return Ok(plain.into_object());
        }
        let body = self.body(index);
        if self.generation == Generation::V2 {
            let entry = EntryV2::read(&mut Walk::new(&self.bytes, body));
            let object = entry.map(|entry| entry.into_object(&self.bytes));
            return object.map_err(|broken| broken.into_error(self.offset));
        }
        let limits = &self.limits;
        let mut decoder = Decoder::new(&self.bytes, body, limits.depth);
        match self.generation {
            Generation::V0_1 => {
                legacy::tensor_v0_1(&mut decoder, &self.bytes, limits).map(|(_, object)| object)
            }
            Generation::V1_0 => legacy::object_v1_0(&mut decoder, &self.bytes, limits),
            _ => Object::parse(&mut decoder, &self.bytes, limits),
        }
        .map_err(|e| e.inside(format_args!("objects.{:?}", self.name(index))))
        .map_err(|error| error.into_error(self.offset))
    }

    /// Returns an object as it is encoded, for copying it unchanged.
    pub(crate) fn encoded_object(&self, index: usize) -> Bytes {
        let body = self.body(index);
        let mut decoder = Decoder::new(&self.bytes, body, self.limits.depth);
        // Opening has walked it, so it is well formed.
        decoder.skip().map_or_else(|_| Bytes::new(), |()| self.bytes.slice(body..decoder.at()))
    }

    /// Returns the root's fields other than the version and the objects, as they are encoded.
    pub(crate) fn encoded_root(&self) -> (Option<Encoded>, Vec<(Key, Bytes)>) {
        (self.attributes.clone(), self.other.clone())
    }

    pub(crate) const fn unusual(&self) -> Unusual {
        self.unusual
    }

    /// Returns where the manifest starts, in bytes from the start of the file.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns where the encoded manifest is.
    pub(crate) fn extent(&self) -> Extent {
        Extent::new(self.offset, self.byte_len()).unwrap_or(Extent::first(0))
    }

    /// Returns the length of the encoded manifest in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RefuseDuplicates {
    Yes,
    No,
}

/// Objects that are made room for at once, whatever a map claims to hold.
const RESERVED: usize = 1 << 20;
