//! The manifest: an index of names over the encoded document, and the typed entries that are
//! decoded from it when they are asked for. Format text: Part II.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    fmt,
    hash::{BuildHasher, RandomState},
    ops::Range,
    sync::OnceLock,
};

use bytes::Bytes;
use hashbrown::HashTable;
use smallvec::SmallVec;
use tensor_core::{DType, Limits, Shape};

use crate::{
    Problem, Value,
    cbor::{self, Decoder, Emitter, Items, Unusual},
    container::Generation,
    dtype::{self, StoredType},
    error::{Result, short},
    legacy,
    plain::Plain,
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
    other: Vec<(String, Encoded)>,
    unusual: Unusual,
    entries: Vec<Entry>,
    apart: Vec<Apart>,
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
        let mut manifest = Self {
            generation,
            bytes: bytes.clone(),
            offset,
            limits: *limits,
            version: String::new(),
            generator: None,
            attributes: None,
            other: Vec::new(),
            unusual: Unusual::default(),
            entries: Vec::new(),
            apart: Vec::new(),
            hasher: RandomState::new(),
            by_name: OnceLock::new(),
        };
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
                    let item = self.encoded(at..decoder.at());
                    self.other.push((key.into_owned(), item));
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
            object.map_err(|e| e.inside(format_args!("{:?}", short(&name))))?;
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

    /// Passes over an attribute map; `None` where it is null.
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
    /// [`Error::Manifest`](crate::Error::Manifest) where a key is there twice, and where the attributes are longer than
    /// [`Limits::metadata_bytes`].
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

    /// Returns the keys of the root map that the format does not name, in the order of the file.
    pub fn unknown_keys(&self) -> impl Iterator<Item = &str> {
        self.other.iter().map(|(key, _)| key.as_str())
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
    fn body(&self, index: usize) -> usize {
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
            Generation::V0_1 | Generation::V1_0 => None,
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
    pub(crate) fn encoded_root(&self) -> (Option<Bytes>, Vec<(String, Bytes)>) {
        let other = self.other.iter().map(|(key, item)| (key.clone(), item.bytes.clone()));
        (self.attributes.as_ref().map(|item| item.bytes.clone()), other.collect())
    }

    pub(crate) const fn unusual(&self) -> Unusual {
        self.unusual
    }

    /// Returns where the manifest starts, in bytes from the start of the file.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
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

    fn attributes(&self, limits: &Limits) -> cbor::Result<Attributes> {
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

/// Passes over an attribute map, or null, and returns where it is.
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

/// A logical tensor. Format text: Part II, section 2.
///
/// ```text
/// {"shape": [u64…], "format": text, "attributes": {…}?, "components": {role: component…}}
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Object {
    /// The dimensions, outermost first.
    pub shape: Shape,
    /// How the components make up the tensor.
    pub format: Format,
    /// The stored parts by role, in the order of the file.
    pub components: Vec<(Role, Component)>,
    pub(crate) attributes: Option<Encoded>,
    pub(crate) other: Vec<(String, Bytes)>,
}

impl Object {
    pub(crate) const fn new(shape: Shape, format: Format) -> Self {
        Self { shape, format, components: Vec::new(), attributes: None, other: Vec::new() }
    }

    /// Returns the component of a role.
    #[must_use]
    pub fn component(&self, role: &Role) -> Option<&Component> {
        self.components.iter().find(|(found, _)| found == role).map(|(_, component)| component)
    }

    /// Returns the keys of the object that the format does not name, in the order of the file.
    pub fn unknown_keys(&self) -> impl Iterator<Item = &str> {
        self.other.iter().map(|(key, _)| key.as_str())
    }

    pub(crate) fn parse(
        decoder: &mut Decoder<'_>,
        manifest: &Bytes,
        limits: &Limits,
    ) -> cbor::Result<Self> {
        let mut object = Self::new(Shape::scalar(), Format::Dense);
        Self::walk(decoder, manifest, limits, Some(&mut object))?;
        Ok(object)
    }

    /// Checks an encoded object and, where it is asked for, builds it: opening checks all and builds
    /// none.
    pub(crate) fn walk(
        decoder: &mut Decoder<'_>,
        manifest: &Bytes,
        limits: &Limits,
        mut into: Option<&mut Self>,
    ) -> cbor::Result<()> {
        let start = decoder.at();
        let mut items = decoder.map("the map of an object")?;
        let mut seen = Seen::default();
        while decoder.more(&mut items)? {
            let at = decoder.at();
            let key = decoder.text_bytes("a key, as text")?;
            match &*key {
                b"shape" => {
                    seen.once(0, at, &key)?;
                    let shape = shape_at(decoder, limits).map_err(|e| e.inside("shape"))?;
                    if let Some(object) = into.as_deref_mut() {
                        object.shape = shape;
                    }
                }
                b"format" => {
                    seen.once(1, at, &key)?;
                    let text = decoder.text_bytes("text").map_err(|e| e.inside("format"))?;
                    if let Some(object) = into.as_deref_mut() {
                        object.format = Format::parse(text_of(&text));
                    }
                }
                b"components" => {
                    seen.once(2, at, &key)?;
                    let components = into.as_deref_mut().map(|object| &mut object.components);
                    walk_components(decoder, manifest, components)
                        .map_err(|e| e.inside("components"))?;
                }
                b"attributes" => {
                    seen.once(3, at, &key)?;
                    let range = attributes_range(decoder).map_err(|e| e.inside("attributes"))?;
                    if let Some(object) = into.as_deref_mut() {
                        object.attributes = range.map(|range| Encoded::slice(manifest, range));
                    }
                }
                _ => {
                    seen.unknown(at, &key)?;
                    let range = skipped(decoder)?;
                    if let Some(object) = into.as_deref_mut() {
                        object.other.push((text_of(&key).to_owned(), manifest.slice(range)));
                    }
                }
            }
        }
        seen.require(&["shape", "format", "components"], start)
    }

    /// Encodes the object as [`walk`](Self::walk) reads it, keys in the order of the reference
    /// writer and roles sorted by their bytes.
    pub(crate) fn encode(&self, emitter: &mut Emitter<'_>) {
        let optional = usize::from(self.attributes.is_some()).saturating_add(self.other.len());
        emitter.map(optional.saturating_add(3));
        emitter.text("shape").array(self.shape.rank());
        for &dim in self.shape.dims() {
            emitter.unsigned(dim);
        }
        emitter.text("format").text(self.format.as_str());
        if let Some(attributes) = &self.attributes {
            emitter.text("attributes").raw(&attributes.bytes);
        }
        let mut components: Vec<_> = self.components.iter().collect();
        components.sort_by_key(|(role, _)| role.as_str());
        emitter.text("components").map(components.len());
        for (role, component) in components {
            emitter.text(role.as_str());
            component.encode(emitter);
        }
        for (key, item) in &self.other {
            emitter.text(key).raw(item);
        }
    }
}

pub(crate) fn shape_at(decoder: &mut Decoder<'_>, limits: &Limits) -> cbor::Result<Shape> {
    let at = decoder.at();
    let mut items = decoder.array("an array of dimensions")?;
    let mut dims = Shape::scalar();
    while decoder.more(&mut items)? {
        let rank = dims.rank();
        let dim = decoder.unsigned().map_err(|e| e.inside(format_args!("[{rank}]")))?;
        dims.push(dim);
        let (found, limit) = (dims.rank() as u64, limits.rank);
        if found > limit {
            return Err(Decoder::problem(at, Problem::OverLimit { found, limit, field: "rank" }));
        }
    }
    Ok(dims)
}

/// Checks a map of components and, where it is asked for, builds them.
fn walk_components(
    decoder: &mut Decoder<'_>,
    manifest: &Bytes,
    mut into: Option<&mut Vec<(Role, Component)>>,
) -> cbor::Result<()> {
    let mut items = decoder.map("a map of components")?;
    let mut roles = Keys::default();
    if let Some(components) = into.as_deref_mut() {
        components.reserve(items.at_most(ROLES));
    }
    while decoder.more(&mut items)? {
        let at = decoder.at();
        let role = decoder.text_bytes("a role, as text")?;
        roles.insert(at, &role)?;
        let component = into.as_deref_mut().and_then(|components| {
            let empty = Component::new(StoredType::Known(DType::U8), 0, 0);
            components.push((Role::parse(text_of(&role)), empty));
            components.last_mut().map(|(_, component)| component)
        });
        Component::walk(decoder, manifest, component)
            .map_err(|e| e.inside(format_args!("{:?}", short(text_of(&role)))))?;
    }
    Ok(())
}

/// Returns bytes that are proved to be UTF-8 as text.
fn text_of(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// Reads a map of components; `parse` reads one.
pub(crate) fn components_at(
    decoder: &mut Decoder<'_>,
    parse: impl Fn(&mut Decoder<'_>) -> cbor::Result<Component>,
) -> cbor::Result<Vec<(Role, Component)>> {
    let mut items = decoder.map("a map of components")?;
    let mut components: Vec<(Role, Component)> = Vec::new();
    let mut roles = Keys::default();
    while decoder.more(&mut items)? {
        let at = decoder.at();
        let role = decoder.text("a role, as text")?;
        roles.insert(at, &Cow::Owned(role.as_bytes().to_vec()))?;
        let component = parse(decoder).map_err(|e| e.inside(format_args!("{role:?}")))?;
        components.push((Role::parse(&role), component));
    }
    Ok(components)
}

/// The definition of a stored blob. Format text: Part II, section 3.
///
/// ```text
/// {"dtype": text, "type": text?, "offset": u64, "length": u64, "uncompressed_length": u64?,
///  "encoding": text?, "digest": text?}
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Component {
    /// The type of the stored elements.
    pub dtype: StoredType,
    /// What the elements mean beyond their storage type; generation 1.2 only.
    pub logical_type: Option<String>,
    /// Where the blob starts, in bytes from the start of the file.
    pub offset: u64,
    /// The length of the stored blob in bytes, before decoding.
    pub length: u64,
    /// The length in bytes after decoding; generation 1.2 only, and only where it is encoded.
    pub uncompressed_length: Option<u64>,
    /// How the bytes are stored.
    pub encoding: Encoding,
    /// The text of the digest over the stored bytes.
    pub digest: Option<String>,
    /// The order of the bytes of an element; only generation 0.1 has another than little-endian.
    pub byte_order: ByteOrder,
    pub(crate) other: Vec<(String, Bytes)>,
}

impl Component {
    pub(crate) const fn new(dtype: StoredType, offset: u64, length: u64) -> Self {
        Self {
            dtype,
            logical_type: None,
            offset,
            length,
            uncompressed_length: None,
            encoding: Encoding::Raw,
            digest: None,
            byte_order: ByteOrder::Little,
            other: Vec::new(),
        }
    }

    /// Returns the type of an element: what `dtype` and, in generation 1.2, `type` mean together.
    ///
    /// A `type` that is not known, or does not go with its `dtype`, leaves the stored elements.
    /// `None` where the `dtype` is unknown.
    #[must_use]
    pub fn element_type(&self) -> Option<DType> {
        let StoredType::Known(stored) = &self.dtype else {
            return None;
        };
        let meant = self.logical_type.as_ref().and_then(|name| dtype::logical(*stored, name));
        Some(meant.unwrap_or(*stored))
    }

    /// Tells whether there is a `type` that does not say what the elements mean.
    pub(crate) fn logical_type_is_unknown(&self) -> bool {
        match (&self.dtype, &self.logical_type) {
            (StoredType::Known(stored), Some(name)) => dtype::logical(*stored, name).is_none(),
            _ => false,
        }
    }

    /// Returns the keys of the component that the format does not name, in the order of the file.
    pub fn unknown_keys(&self) -> impl Iterator<Item = &str> {
        self.other.iter().map(|(key, _)| key.as_str())
    }

    /// Checks an encoded component and, where it is asked for, fills one in.
    fn walk(
        decoder: &mut Decoder<'_>,
        manifest: &Bytes,
        mut into: Option<&mut Self>,
    ) -> cbor::Result<()> {
        let start = decoder.at();
        let mut items = decoder.map("the map of a component")?;
        let mut seen = Seen::default();
        while decoder.more(&mut items)? {
            let at = decoder.at();
            let key = decoder.text_bytes("a key, as text")?;
            match &*key {
                b"dtype" => {
                    seen.once(0, at, &key)?;
                    let text = decoder.text_bytes("text").map_err(|e| e.inside("dtype"))?;
                    if let Some(component) = into.as_deref_mut() {
                        component.dtype = StoredType::parse(text_of(&text));
                    }
                }
                b"offset" => {
                    seen.once(1, at, &key)?;
                    let offset = decoder.unsigned().map_err(|e| e.inside("offset"))?;
                    if let Some(component) = into.as_deref_mut() {
                        component.offset = offset;
                    }
                }
                b"length" => {
                    seen.once(2, at, &key)?;
                    let length = decoder.unsigned().map_err(|e| e.inside("length"))?;
                    if let Some(component) = into.as_deref_mut() {
                        component.length = length;
                    }
                }
                b"encoding" => {
                    seen.once(3, at, &key)?;
                    let encoding = Encoding::at(decoder)?;
                    if let Some(component) = into.as_deref_mut() {
                        component.encoding = encoding;
                    }
                }
                b"digest" => {
                    seen.once(4, at, &key)?;
                    let digest = text_or_null(decoder, "digest")?;
                    if let Some(component) = into.as_deref_mut() {
                        component.digest = digest.map(Cow::into_owned);
                    }
                }
                // Generation 1.1 does not know these two, so there they may hold anything.
                b"type" if decoder.text_is_next() => {
                    seen.once(5, at, &key)?;
                    let logical = text_or_null(decoder, "type")?;
                    if let Some(component) = into.as_deref_mut() {
                        component.logical_type = logical.map(Cow::into_owned);
                    }
                }
                b"uncompressed_length" if decoder.unsigned_is_next() => {
                    seen.once(6, at, &key)?;
                    let length = decoder.unsigned()?;
                    if let Some(component) = into.as_deref_mut() {
                        component.uncompressed_length = Some(length);
                    }
                }
                _ => {
                    seen.unknown(at, &key)?;
                    let range = skipped(decoder)?;
                    if let Some(component) = into.as_deref_mut() {
                        component.other.push((text_of(&key).to_owned(), manifest.slice(range)));
                    }
                }
            }
        }
        seen.require(&["dtype", "offset", "length"], start)
    }

    /// Encodes the component as [`walk`](Self::walk) reads it, keys in the order of the reference
    /// writer.
    fn encode(&self, emitter: &mut Emitter<'_>) {
        let optional = [
            self.logical_type.is_some(),
            self.uncompressed_length.is_some(),
            self.encoding != Encoding::Raw,
            self.digest.is_some(),
        ];
        let optional = optional.into_iter().filter(|there| *there).count();
        emitter.map(self.other.len().saturating_add(optional).saturating_add(3));
        emitter.text("dtype").text(self.dtype.name());
        if let Some(logical) = &self.logical_type {
            emitter.text("type").text(logical);
        }
        emitter.text("offset").unsigned(self.offset).text("length").unsigned(self.length);
        if let Some(length) = self.uncompressed_length {
            emitter.text("uncompressed_length").unsigned(length);
        }
        if self.encoding != Encoding::Raw {
            emitter.text("encoding").text(self.encoding.as_str());
        }
        if let Some(digest) = &self.digest {
            emitter.text("digest").text(digest);
        }
        for (key, item) in &self.other {
            emitter.text(key).raw(item);
        }
    }
}

/// How the bytes of a component are stored. Format text: Part II, section 3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    #[default]
    Raw,
    /// As zstd frames.
    Zstd,
    /// In a way that is not known; only the use of that component fails.
    Unknown(String),
}

impl Encoding {
    /// Returns the text of the manifest.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Raw => "raw",
            Self::Zstd => "zstd",
            Self::Unknown(text) => text,
        }
    }

    pub(crate) fn at(decoder: &mut Decoder<'_>) -> cbor::Result<Self> {
        let text = text_or_null(decoder, "encoding")?;
        Ok(match text.as_deref() {
            None | Some("raw") => Self::Raw,
            Some("zstd") => Self::Zstd,
            Some(other) => Self::Unknown(other.to_owned()),
        })
    }
}

/// The order in which the bytes of an element are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

macro_rules! vocabulary {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }
        $(#[$other_doc:meta])*
        Other
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            $(#[$other_doc])*
            Other(String),
        }

        impl $name {
            pub(crate) fn parse(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }

            /// Returns the variant that the text names, so that `Other` holds no text of another.
            pub(crate) fn normalized(self) -> Self {
                match self {
                    Self::Other(text) => Self::parse(&text),
                    named => named,
                }
            }

            /// Returns the text of the manifest.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::parse(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

vocabulary! {
    /// How the components of an object make up the tensor. Format text: Part III.
    Format {
        /// All elements in row-major order: component `data`.
        Dense = "dense",
        /// Compressed sparse rows: components `values`, `indices`, `indptr`.
        SparseCsr = "sparse_csr",
        /// A list of coordinates: components `values`, `coords`.
        SparseCoo = "sparse_coo",
        /// Packed codes with scales and zero points for groups of them: components
        /// `packed_weight`, `scales`, `zeros`.
        QuantizedGroup = "quantized_group",
        /// Generation 0.1: row pointers, column indices and values in one blob `data`.
        InlineCsr = "sparsecsr",
        /// Generation 0.1: coordinates and value of each element in turn in one blob `data`.
        InlineCoo = "sparsecoo",
    }
    /// A layout that is not known: its components can be read one by one.
    Other
}

vocabulary! {
    /// What a component is to its object. Format text: Part III.
    Role {
        /// The elements of a dense tensor.
        Data = "data",
        /// The elements of a sparse tensor that are stored.
        Values = "values",
        /// Column indices of a CSR matrix.
        Indices = "indices",
        /// Row pointers of a CSR matrix.
        Indptr = "indptr",
        /// Coordinates of a COO tensor, all of dimension 0 first.
        Coords = "coords",
        /// Quantized codes, packed into integers.
        PackedWeight = "packed_weight",
        /// The scaling factor of each group.
        Scales = "scales",
        /// The zero point of each group.
        Zeros = "zeros",
    }
    /// A role that is not known.
    Other
}

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
        let mut text = decoder.clone();
        self.keys.insert(at, &decoder.text_bytes("a key, as text")?)?;
        text.text("a key, as text").map(Some)
    }
}

/// The keys of one map of the schema, so that none comes twice: a bit for each that is known.
#[derive(Default)]
struct Seen<'a> {
    known: u8,
    unknown: Keys<'a>,
}

impl<'a> Seen<'a> {
    #[inline]
    fn once(&mut self, bit: u32, at: usize, key: &[u8]) -> cbor::Result<()> {
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
    fn unknown(&mut self, at: usize, key: &Cow<'a, [u8]>) -> cbor::Result<()> {
        self.unknown.insert(at, key)
    }

    /// Proves that the keys of the first bits were there, in a map that starts at `start`.
    #[inline]
    fn require(&self, keys: &[&'static str], start: usize) -> cbor::Result<()> {
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
struct Keys<'a> {
    few: SmallVec<[Cow<'a, [u8]>; FEW]>,
    many: Option<HashSet<Cow<'a, [u8]>>>,
}

impl<'a> Keys<'a> {
    #[expect(clippy::ptr_arg, reason = "a borrowed key is kept without a copy")]
    fn insert(&mut self, at: usize, key: &Cow<'a, [u8]>) -> cbor::Result<()> {
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

/// Passes over the value of a key that the format does not name.
fn skipped(decoder: &mut Decoder<'_>) -> cbor::Result<Range<usize>> {
    let start = decoder.at();
    decoder.skip()?;
    Ok(start..decoder.at())
}

/// Passes over the value of a key that the format does not name, and keeps it.
pub(crate) fn unknown(decoder: &mut Decoder<'_>, manifest: &Bytes) -> cbor::Result<Bytes> {
    skipped(decoder).map(|range| manifest.slice(range))
}

/// Components that are made room for at once; the formats of the text have no more.
const ROLES: usize = 3;
/// Objects that are made room for at once, whatever a map claims to hold.
const RESERVED: usize = 1 << 20;
/// How many keys are compared one by one; the maps of the schema have fewer.
const FEW: usize = 8;
