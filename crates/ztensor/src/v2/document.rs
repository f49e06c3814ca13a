//! The schema of a manifest: what opening proves of every object, and what one of them decodes to.
//!
//! ```text
//! {"objects": {name: object…}, "shards": {name: {"size": u64, "digest": text}…}?, "attributes": {…}?}
//! object  {"shape": [u64…], "layout": text, "parts": {role: part…}, "attributes": {…}?}
//! part    {"dtype": text, "type": text?, "blob": [offset, length], "shard": text?,
//!          "encoding": text?, "decoded_length": u64?, "digest": text?}
//! ```

use std::{collections::BTreeMap, ops::Range};

use bytes::Bytes;
use smallvec::SmallVec;
use tensor_core::{DType, Extent, Limits, Shape, text::Quoted};
use unicode_normalization::is_nfc;

use super::{Broken, FLOOR, FOOTER, Rule, SMALLEST, layout, walk::Walk};
use crate::{
    Component, Encoding, Format, Object, Problem, Role, Shard, StoredType,
    error::{Error, Result as FileResult},
    manifest::{
        Encoded, Key,
        dtype::{self, ElementType},
        product,
    },
};

/// Where the fields of a manifest are.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) attributes: Option<Range<usize>>,
    pub(crate) shards: BTreeMap<String, Shard>,
    /// Fields that the format does not name: key and value.
    pub(crate) other: Vec<(Range<usize>, Range<usize>)>,
    /// Where the names of the objects start, and how long they are; bodies follow.
    pub(crate) objects: Vec<(usize, usize)>,
}

impl Document {
    /// Proves that a manifest whose encoding was proved fits the schema, and that all of its objects
    /// keep the rules of the text, in a file whose manifest is at `place` and that is `len` bytes long.
    pub(crate) fn check(
        bytes: &[u8],
        place: Extent,
        len: u64,
        limits: &Limits,
    ) -> FileResult<Self> {
        let mut document = Self::default();
        let offset = place.offset();
        document.root(bytes).map_err(|broken| broken.into_error(offset))?;
        let (found, limit) = (document.objects.len() as u64, limits.tensors);
        if found > limit {
            let problem = Problem::OverLimit { found, limit, field: "tensors" };
            return Err(Error::Manifest { path: "objects".to_owned(), offset, problem });
        }
        let data_end = len.saturating_sub(FOOTER);
        document.rules(bytes, place, data_end).map_err(|broken| broken.into_error(offset))?;
        Ok(document)
    }

    fn root(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let mut walk = Walk::new(bytes, 0);
        let mut found = false;
        let fields = walk.map().ok_or_else(|| schema(0, walk.instead_of("a map")))?;
        for _ in 0..fields {
            let start = walk.at();
            let key = walk.key();
            let at = walk.at();
            match key {
                Some(b"attributes") => self.attributes = Some(attributes(&mut walk)?),
                Some(b"shards") => {
                    self.shards =
                        shards(&mut walk, bytes).map_err(|broken| broken.inside("shards"))?;
                }
                Some(b"objects") => {
                    found = true;
                    self.objects(&mut walk).map_err(|broken| broken.inside("objects"))?;
                }
                _ => self.other.push((start..at, walk.skip())),
            }
        }
        if found {
            return Ok(());
        }
        Err(schema(0, "has no key \"objects\", which is required"))
    }

    fn objects(&mut self, walk: &mut Walk<'_>) -> Result<(), Broken> {
        let objects = walk.map().ok_or_else(|| schema(walk.at(), walk.instead_of("a map")))?;
        // An object takes 20 bytes and more, and the encoding was proved.
        self.objects.reserve(usize::try_from(objects).unwrap_or_default().min(RESERVED));
        for _ in 0..objects {
            let at = walk.at();
            let name = walk.text_bytes().ok_or_else(|| schema(at, not_text("name", walk)))?;
            self.objects.push((walk.at().saturating_sub(name.len()), name.len()));
            check_name(at, name)?;
            let entry = Entry::read(walk);
            entry.map_err(|broken| broken.inside(Quoted(text(name))))?;
        }
        Ok(())
    }

    /// Checks the rules that look beyond a field.
    fn rules(&self, bytes: &[u8], place: Extent, data_end: u64) -> Result<(), Broken> {
        for (name, shard) in &self.shards {
            if shard.size < SMALLEST {
                let problem = format!("is {} bytes, expected {SMALLEST} or more", shard.size);
                return Err(schema(0, problem).inside("size").inside(name).inside("shards"));
            }
        }
        let mut blobs = Vec::with_capacity(self.objects.len().saturating_add(1));
        blobs.push(("", place, 0));
        let mut faulty = false;
        let rules = |&(at, len): &(usize, usize), blobs: &mut Vec<_>| {
            let mut walk = Walk::new(bytes, at.saturating_add(len));
            let body = walk.at();
            let entry = Entry::read(&mut walk)?;
            entry.check(body, self, data_end, blobs)
        };
        for object in &self.objects {
            faulty |= rules(object, &mut blobs).is_err();
        }
        if faulty {
            // The first in the order of names is what every reader says.
            let mut objects = self.objects.clone();
            let name = |(at, len): (usize, usize)| {
                bytes.get(at..at.saturating_add(len)).unwrap_or_default()
            };
            objects.sort_by_key(|&object| name(object));
            for object in &objects {
                rules(object, &mut blobs).map_err(|broken| {
                    broken.inside(Quoted(text(name(*object)))).inside("objects")
                })?;
            }
        }
        disjoint(blobs).map_err(|(at, problem)| {
            let broken = Broken::new(Rule::BlobOverlap, at, problem);
            match self.objects.iter().rfind(|(name, _)| *name < at) {
                Some(&(name, len)) => {
                    let name = bytes.get(name..name.saturating_add(len)).unwrap_or_default();
                    broken.inside(Quoted(text(name))).inside("objects")
                }
                None => broken,
            }
        })
    }
}

/// Proves that blobs of a file, each with the place of its definition, are the same or share no byte.
fn disjoint(mut blobs: Vec<(&str, Extent, usize)>) -> Result<(), (usize, String)> {
    let key = |&(shard, extent, _): &(_, Extent, _)| (shard, extent.offset(), extent.len());
    if !blobs.is_sorted_by_key(key) {
        blobs.sort_by_key(key);
    }
    for pair in blobs.windows(2) {
        let [(shard, before, _), (other, extent, at)] = pair else { continue };
        if shard == other && before != extent && before.overlaps(*extent) {
            let problem = format!(
                "covers {} bytes at byte {}, which overlap {} bytes at byte {}, expected the same or \
                 others",
                extent.len(),
                extent.offset(),
                before.len(),
                before.offset()
            );
            return Err((*at, problem));
        }
    }
    Ok(())
}

fn shards(walk: &mut Walk<'_>, bytes: &[u8]) -> Result<BTreeMap<String, Shard>, Broken> {
    let mut shards = BTreeMap::new();
    let count = walk.map().ok_or_else(|| schema(walk.at(), walk.instead_of("a map")))?;
    for _ in 0..count {
        let at = walk.at();
        let name = walk.text().ok_or_else(|| schema(at, not_text("name", walk)))?;
        check_shard_name(at, name)?;
        let start = walk.at();
        let (mut size, mut digest, mut other) = (None, None, Vec::new());
        let fields =
            walk.map().ok_or_else(|| schema(start, walk.instead_of("a map")).inside(name))?;
        for _ in 0..fields {
            let start = walk.at();
            match walk.key() {
                Some(b"size") => {
                    let at = walk.at();
                    size = Some(walk.unsigned().ok_or_else(|| {
                        schema(at, walk.instead_of(UNSIGNED)).inside("size").inside(name)
                    })?);
                }
                Some(b"digest") => {
                    let found = digest_text(walk).map_err(|broken| broken.inside(name))?;
                    digest = Some(found.to_owned());
                }
                _ => {
                    let field = Bytes::copy_from_slice(
                        bytes.get(start..walk.skip().end).unwrap_or_default(),
                    );
                    let mut key = Walk::new(&field, 0);
                    let key = key.skip();
                    other.push((self::key(&field, key.clone()), field.slice(key.end..)));
                }
            }
        }
        let missing = |key| move || schema(start, format!("has no key {key:?}, which is required"));
        let size = size.ok_or_else(missing("size")).map_err(|broken| broken.inside(name))?;
        let digest = digest.ok_or_else(missing("digest")).map_err(|broken| broken.inside(name))?;
        shards.insert(name.to_owned(), Shard { size, digest, other });
    }
    Ok(shards)
}

/// An object as it is encoded.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) shape: Shape,
    pub(crate) layout: &'a [u8],
    pub(crate) attributes: Option<Range<usize>>,
    pub(crate) parts: SmallVec<[Part<'a>; 1]>,
    other: Vec<(Range<usize>, Range<usize>)>,
}

impl<'a> Entry<'a> {
    /// Reads an object, and proves that it fits the schema.
    pub(crate) fn read(walk: &mut Walk<'a>) -> Result<Self, Broken> {
        let start = walk.at();
        let fields = walk.map().ok_or_else(|| schema(start, walk.instead_of("a map")))?;
        let (mut shape, mut layout, mut found) = (None, None, None);
        let (mut attributes_at, mut other) = (None, Vec::new());
        for _ in 0..fields {
            let start = walk.at();
            match walk.key() {
                Some(b"parts") => {
                    found = Some(parts(walk).map_err(|broken| broken.inside("parts"))?);
                }
                Some(b"shape") => {
                    let dims = unsigneds(walk).map_err(|broken| broken.inside("shape"))?;
                    shape = Some(dims);
                }
                Some(b"layout") => layout = Some(field(walk, "layout")?),
                Some(b"attributes") => attributes_at = Some(attributes(walk)?),
                _ => other.push((start..walk.at(), walk.skip())),
            }
        }
        let missing = |key| move || schema(start, format!("has no key {key:?}, which is required"));
        let parts = found.ok_or_else(missing("parts"))?;
        if parts.is_empty() {
            return Err(schema(start, "is empty, expected a part").inside("parts"));
        }
        Ok(Self {
            shape: shape.ok_or_else(missing("shape"))?,
            layout: layout.ok_or_else(missing("layout"))?,
            attributes: attributes_at,
            parts,
            other,
        })
    }

    /// Proves that the parts of an encoded object are those of its layout.
    pub(crate) fn check_layout(body: &'a [u8]) -> Result<(), Broken> {
        let entry = Self::read(&mut Walk::new(body, 0))?;
        let elements = entry.check_shape(0)?;
        layout::check(&entry, elements).map_err(|(rule, problem)| Broken::new(rule, 0, problem))
    }

    pub(crate) fn part(&self, role: &[u8]) -> Option<&Part<'a>> {
        self.parts.iter().find(|part| part.role == role)
    }

    /// Checks the rules that look beyond a field, and notes where blobs are.
    fn check(
        &self,
        at: usize,
        document: &Document,
        data_end: u64,
        blobs: &mut Vec<(&'a str, Extent, usize)>,
    ) -> Result<(), Broken> {
        let elements = self.check_shape(at)?;
        for part in &self.parts {
            part.check(document, data_end, blobs)
                .map_err(|broken| broken.inside(Quoted(text(part.role))).inside("parts"))?;
        }
        layout::check(self, elements).map_err(|(rule, problem)| Broken::new(rule, at, problem))
    }

    /// Checks the shape; returns how many elements it has.
    fn check_shape(&self, at: usize) -> Result<u64, Broken> {
        let rank = self.shape.rank();
        if rank > MAX_RANK {
            let problem = format!("has {rank} dimensions, expected at most {MAX_RANK}");
            return Err(Broken::new(Rule::Shape, at, problem).inside("shape"));
        }
        let Some(elements) = product(&self.shape) else {
            let problem = format!("is {}, expected a product of at most 64 bits", self.shape);
            return Err(Broken::new(Rule::Shape, at, problem).inside("shape"));
        };
        Ok(elements)
    }

    /// Returns what it says as the object of today.
    pub(crate) fn into_object(self, manifest: &Bytes) -> Object {
        let mut object = Object::new(self.shape, Format::parse_v2(text(self.layout)));
        object.attributes = self.attributes.map(|range| Encoded::slice(manifest, range));
        let others = |other: Vec<(Range<usize>, Range<usize>)>| {
            let owned = |(key, value)| (self::key(manifest, key), manifest.slice(value));
            other.into_iter().map(owned).collect::<Vec<_>>()
        };
        object.other = others(self.other);
        object.components = Vec::with_capacity(self.parts.len());
        for part in self.parts {
            let mut component =
                Component::new(StoredType::Known(part.dtype), part.offset, part.length);
            component.is_v2 = true;
            component.logical_type = part.logical.map(str::to_owned);
            component.shard = part.shard.map(str::to_owned);
            component.uncompressed_length = part.decoded_length;
            component.encoding = part.encoding.map_or(Encoding::Raw, Encoding::parse_v2);
            component.digest = part.digest.map(str::to_owned);
            component.other = others(part.other);
            object.components.push((Role::from(text(part.role)), component));
        }
        object
    }
}

impl Object {
    /// Decodes an object of generation 2 that stands alone.
    pub(crate) fn from_encoded_v2(bytes: &Bytes) -> FileResult<Self> {
        let entry = Entry::read(&mut Walk::new(bytes, 0));
        entry.map(|entry| entry.into_object(bytes)).map_err(|broken| broken.into_error(0))
    }
}

/// A part as it is encoded.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub(crate) role: &'a [u8],
    at: usize,
    pub(crate) dtype: DType,
    pub(crate) logical: Option<&'a str>,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    shard: Option<&'a str>,
    encoding: Option<&'a str>,
    decoded_length: Option<u64>,
    digest: Option<&'a str>,
    other: Vec<(Range<usize>, Range<usize>)>,
}

fn parts<'a>(walk: &mut Walk<'a>) -> Result<SmallVec<[Part<'a>; 1]>, Broken> {
    let count = walk.map().ok_or_else(|| schema(walk.at(), walk.instead_of("a map")))?;
    let mut parts = SmallVec::new();
    for _ in 0..count {
        let at = walk.at();
        let role = walk.text_bytes().ok_or_else(|| schema(at, not_text("name", walk)))?;
        check_name(at, role)?;
        let part = Part::read(role, walk).map_err(|broken| broken.inside(Quoted(text(role))))?;
        parts.push(part);
    }
    Ok(parts)
}

impl<'a> Part<'a> {
    fn read(role: &'a [u8], walk: &mut Walk<'a>) -> Result<Self, Broken> {
        let at = walk.at();
        let fields = walk.map().ok_or_else(|| schema(at, walk.instead_of("a map")))?;
        let (mut found_dtype, mut blob) = (None, None);
        let mut part = Self {
            role,
            at,
            dtype: DType::U8,
            logical: None,
            offset: 0,
            length: 0,
            shard: None,
            encoding: None,
            decoded_length: None,
            digest: None,
            other: Vec::new(),
        };
        for _ in 0..fields {
            let start = walk.at();
            match walk.key() {
                Some(b"blob") => blob = Some(pair(walk).map_err(|broken| broken.inside("blob"))?),
                Some(b"type") => part.logical = Some(text(field(walk, "type")?)),
                Some(b"dtype") => {
                    let at = walk.at();
                    let name = field(walk, "dtype")?;
                    let known = dtype::of_name(name).filter(|dtype| dtype::is_storage(*dtype));
                    found_dtype = Some(known.ok_or_else(|| {
                        let problem =
                            format!("is {}, expected one of {STORAGE_TYPES}", Quoted(text(name)));
                        schema(at, problem).inside("dtype")
                    })?);
                }
                Some(b"shard") => {
                    let at = walk.at();
                    let name = text(field(walk, "shard")?);
                    check_shard_name(at, name).map_err(|broken| broken.inside("shard"))?;
                    part.shard = Some(name);
                }
                Some(b"digest") => part.digest = Some(digest_text(walk)?),
                Some(b"encoding") => part.encoding = Some(text(field(walk, "encoding")?)),
                Some(b"decoded_length") => {
                    let at = walk.at();
                    let length = walk.unsigned();
                    let length = length.ok_or_else(|| {
                        schema(at, walk.instead_of(UNSIGNED)).inside("decoded_length")
                    });
                    part.decoded_length = Some(length?);
                }
                _ => part.other.push((start..walk.at(), walk.skip())),
            }
        }
        let missing = |key| move || schema(at, format!("has no key {key:?}, which is required"));
        part.dtype = found_dtype.ok_or_else(missing("dtype"))?;
        (part.offset, part.length) = blob.ok_or_else(missing("blob"))?;
        match (part.encoding, part.decoded_length) {
            (None, None) | (Some(_), Some(_)) => Ok(part),
            (Some(_), None) => Err(missing("decoded_length")()),
            (None, Some(_)) => {
                Err(schema(at, "has the key \"decoded_length\", expected none without an encoding"))
            }
        }
    }

    /// Returns its length in bytes after decoding.
    pub(crate) fn decoded(&self) -> u64 {
        self.decoded_length.unwrap_or(self.length)
    }

    /// Returns what its elements are; `None` where they are of a type that is not known.
    pub(crate) fn elements(&self) -> Option<ElementType> {
        dtype::element_type_v2(self.dtype, self.logical)
    }

    fn check(
        &self,
        document: &Document,
        data_end: u64,
        blobs: &mut Vec<(&'a str, Extent, usize)>,
    ) -> Result<(), Broken> {
        let broken = |rule, problem| Err(Broken::new(rule, self.at, problem));
        if self.offset < FLOOR || !self.offset.is_multiple_of(FLOOR) {
            let problem = format!("starts at byte {}, expected a multiple of {FLOOR}", self.offset);
            return broken(Rule::BlobAlignment, problem);
        }
        let end = match self.shard {
            None => data_end,
            Some(name) => match document.shards.get(name) {
                Some(shard) => shard.size.saturating_sub(FOOTER),
                None => {
                    let problem =
                        format!("is in shard {name:?}, expected one that \"shards\" names");
                    return broken(Rule::ShardRef, problem);
                }
            },
        };
        let extent =
            Extent::new(self.offset, self.length).ok().filter(|extent| extent.end() <= end);
        let Some(extent) = extent else {
            let (length, offset) = (self.length, self.offset);
            let problem =
                format!("covers {length} bytes at byte {offset}, expected them before byte {end}");
            return broken(Rule::BlobBounds, problem);
        };
        if !extent.is_empty() {
            blobs.push((self.shard.unwrap_or_default(), extent, self.at));
        }
        if let Some(logical) = self.logical
            && let Some(stored) = dtype::storage_v2(logical)
            && stored != self.dtype
        {
            let problem = format!(
                "has type {logical:?} and dtype {:?}, expected dtype {:?}",
                self.dtype.name(),
                stored.name()
            );
            return broken(Rule::Schema, problem);
        }
        Ok(())
    }
}

/// Reads text of a field.
fn field<'a>(walk: &mut Walk<'a>, key: &'static str) -> Result<&'a [u8], Broken> {
    let at = walk.at();
    walk.text_bytes().ok_or_else(|| schema(at, walk.instead_of("text")).inside(key))
}

fn unsigneds(walk: &mut Walk<'_>) -> Result<Shape, Broken> {
    let at = walk.at();
    let items = walk.array().ok_or_else(|| schema(at, walk.instead_of("an array")))?;
    let mut numbers = Shape::scalar();
    for index in 0..items {
        let at = walk.at();
        let number = walk.unsigned();
        numbers.push(number.ok_or_else(|| {
            schema(at, walk.instead_of(UNSIGNED)).inside(format_args!("[{index}]"))
        })?);
    }
    Ok(numbers)
}

fn pair(walk: &mut Walk<'_>) -> Result<(u64, u64), Broken> {
    let at = walk.at();
    match *unsigneds(walk)?.dims() {
        [offset, length] => Ok((offset, length)),
        ref found => {
            let found = found.len();
            Err(schema(at, format!("has {found} numbers, expected 2, offset and length")))
        }
    }
}

fn digest_text<'a>(walk: &mut Walk<'a>) -> Result<&'a str, Broken> {
    let at = walk.at();
    let digest = text(field(walk, "digest")?);
    let is_digest = digest.split_once(':').is_some_and(|(algorithm, digits)| {
        let is = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        !algorithm.is_empty()
            && !digits.is_empty()
            && algorithm.bytes().all(is)
            && digits.bytes().all(is_digit)
    });
    if is_digest {
        return Ok(digest);
    }
    let problem =
        format!("is {}, expected an algorithm, a colon and lower-case hex digits", Quoted(digest));
    Err(schema(at, problem).inside("digest"))
}

/// Returns a key of a manifest that the format does not name.
pub(crate) fn key(manifest: &Bytes, range: Range<usize>) -> Key {
    match Walk::new(manifest, range.start).text() {
        Some(text) => text.into(),
        None => Key::not_text(manifest.slice(range)),
    }
}

/// Skips a map of attributes, whose keys are names.
fn attributes(walk: &mut Walk<'_>) -> Result<Range<usize>, Broken> {
    let start = walk.at();
    let mut keys = *walk;
    let pairs =
        keys.map().ok_or_else(|| schema(start, keys.instead_of("a map")).inside("attributes"))?;
    for _ in 0..pairs {
        let at = keys.at();
        let key = keys.text_bytes();
        let key = key.ok_or_else(|| schema(at, not_text("key", &keys)).inside("attributes"))?;
        check_name(at, key).map_err(|broken| broken.inside("attributes"))?;
        keys.skip();
    }
    *walk = keys;
    Ok(start..walk.at())
}

pub(crate) fn check_name(at: usize, name: &[u8]) -> Result<(), Broken> {
    if (1..=MAX_NAME).contains(&name.len()) && !name.contains(&0) {
        return Ok(());
    }
    let problem = format!(
        "has the name {} of {} bytes, expected 1 to {MAX_NAME} without NUL",
        Quoted(&tensor_core::text::short(text(name))),
        name.len()
    );
    Err(Broken::new(Rule::Name, at, problem))
}

/// Tells whether a name may stand in a canonical file of generation 2: 1 to 1024 bytes of text in normal
/// form C, without NUL.
#[must_use]
pub fn is_canonical_name(name: &str) -> bool {
    check_new_name(name, true).is_ok()
}

/// Proves that a name may be written, and be in a canonical file where it is to be one.
pub(crate) fn check_new_name(name: &str, is_canonical: bool) -> FileResult<()> {
    check_name(0, name.as_bytes()).map_err(|broken| broken.into_error(0).given())?;
    if is_canonical && !is_nfc(name) {
        let reason = format!("name {name:?} is not in normal form C, as the canonical form asks");
        return Err(Error::Given { reason });
    }
    Ok(())
}

pub(crate) fn check_shard_name(at: usize, name: &str) -> Result<(), Broken> {
    let is = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=64).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is) {
        return Ok(());
    }
    let problem = format!(
        "has the name {}, expected 1 to 64 of A-Z a-z 0-9 . _ -, the first not a dot",
        Quoted(&tensor_core::text::short(name))
    );
    Err(Broken::new(Rule::ShardName, at, problem))
}

/// Says that a name or a key is no text.
fn not_text(what: &str, walk: &Walk<'_>) -> String {
    format!("has a {what} that is {}, expected text", walk.kind())
}

fn schema(at: usize, problem: impl Into<String>) -> Broken {
    Broken::new(Rule::Schema, at, problem)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

const UNSIGNED: &str = "an unsigned integer";
const STORAGE_TYPES: &str = "f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8";
pub(crate) const MAX_NAME: usize = 1024;
pub(crate) const MAX_RANK: usize = 64;
/// Objects that are made room for at once.
const RESERVED: usize = 1 << 20;
