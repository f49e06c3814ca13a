//! The entries of a manifest: objects and their components, checked, decoded and encoded. Format
//! text: Part II, sections 2 to 4, and Part III.

use std::borrow::Cow;

use bytes::Bytes;
use tensor_core::{DType, Limits, Shape, text::Quoted};

use super::{
    attributes::{Encoded, attributes_range},
    cbor::{self, Decoder},
    dtype::{self, ElementType, StoredType},
    emit::Emitter,
    fields::{Keys, Seen, skipped, text_of, text_or_null},
    key::Key,
    vocabulary::{ByteOrder, Encoding, Format, Role},
};
use crate::{Problem, error::Result};

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
    pub(crate) other: Vec<(Key, Bytes)>,
}

/// Sets a field of what is built, where anything is.
macro_rules! set {
    ($into:ident, $field:ident, $value:expr) => {
        if let Some(into) = $into.as_deref_mut() {
            into.$field = $value;
        }
    };
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

    /// Returns how many elements its shape has.
    ///
    /// In generation 2 dimensions are multiplied from the outermost in, so that behind a 0 none
    /// overflows; before, [`Shape::elements`] counts, which no 0 keeps from overflowing.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::ShapeOverflow`].
    pub fn elements(&self) -> tensor_core::Result<u64> {
        if !self.is_v2() {
            return self.shape.elements();
        }
        let overflow = || tensor_core::Error::ShapeOverflow { shape: self.shape.clone() };
        product(&self.shape).ok_or_else(overflow)
    }

    /// Returns how many bytes as many elements as its shape has take.
    pub(crate) fn byte_len(&self, elements: ElementType) -> tensor_core::Result<u64> {
        let len = elements.byte_len(self.elements()?);
        len.ok_or_else(|| match elements {
            ElementType::Plain(dtype) => {
                tensor_core::Error::SizeOverflow { shape: self.shape.clone(), dtype }
            }
            ElementType::Packed { .. } => {
                tensor_core::Error::ShapeOverflow { shape: self.shape.clone() }
            }
        })
    }

    fn is_v2(&self) -> bool {
        self.components.iter().any(|(_, component)| component.is_v2)
    }

    /// Returns the keys of the object that the format does not name, in the order of the file; of one
    /// that is not text, as generation 2 lets pass, its first bytes, such as `h'01'`.
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

    /// Decodes an object of an earlier generation that stands alone.
    pub(crate) fn from_encoded(bytes: &Bytes, limits: &Limits) -> Result<Self> {
        let parsed = Self::parse(&mut Decoder::new(bytes, 0, limits.depth), bytes, limits);
        parsed.map_err(|error| error.into_error(0))
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
                    set!(into, shape, shape);
                }
                b"format" => {
                    seen.once(1, at, &key)?;
                    let text = decoder.text_bytes("text").map_err(|e| e.inside("format"))?;
                    set!(into, format, Format::parse_v1(text_of(&text)));
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
                    set!(into, attributes, range.map(|range| Encoded::slice(manifest, range)));
                }
                _ => {
                    seen.unknown(at, &key)?;
                    let range = skipped(decoder)?;
                    if let Some(object) = into.as_deref_mut() {
                        object.other.push((text_of(&key).into(), manifest.slice(range)));
                    }
                }
            }
        }
        seen.require(&["shape", "format", "components"], start)
    }

    /// Encodes the object as [`walk`](Self::walk) reads it, keys in the order of the reference
    /// writer and roles sorted by their bytes.
    pub(crate) fn encode(&self, emitter: &mut Emitter<'_>) {
        if self.is_v2() {
            return self.encode_v2(emitter);
        }
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
            emitter.text(key.as_str()).raw(item);
        }
    }
}

/// Multiplies dimensions from the outermost in; `None` where that overflows, as it does not behind a 0.
pub(crate) fn product(shape: &Shape) -> Option<u64> {
    shape.dims().iter().copied().try_fold(1_u64, u64::checked_mul)
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
            .map_err(|e| e.inside(Quoted(text_of(&role))))?;
    }
    Ok(())
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
        let role = decoder.text_bytes("a role, as text")?;
        roles.insert(at, &role)?;
        let role = text_of(&role);
        let component = parse(decoder).map_err(|e| e.inside(Quoted(role)))?;
        components.push((Role::parse(role), component));
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
    /// What the elements mean beyond their storage type; from generation 1.2 on.
    pub logical_type: Option<String>,
    /// Where the blob starts, in bytes from the start of the file.
    pub offset: u64,
    /// The length of the stored blob in bytes, before decoding.
    pub length: u64,
    /// The length in bytes after decoding; from generation 1.2 on, and only where it is encoded.
    pub uncompressed_length: Option<u64>,
    /// The name of the shard that the blob lies in; generation 2 only. `None` is this file.
    pub shard: Option<String>,
    /// How the bytes are stored.
    pub encoding: Encoding,
    /// The text of the digest: over the stored bytes, in generation 2 over the decoded ones.
    pub digest: Option<String>,
    /// The order of the bytes of an element; only generation 0.1 has another than little-endian.
    pub byte_order: ByteOrder,
    pub(crate) is_v2: bool,
    pub(crate) other: Vec<(Key, Bytes)>,
}

impl Component {
    pub(crate) const fn new(dtype: StoredType, offset: u64, length: u64) -> Self {
        Self {
            dtype,
            logical_type: None,
            offset,
            length,
            uncompressed_length: None,
            shard: None,
            encoding: Encoding::Raw,
            digest: None,
            byte_order: ByteOrder::Little,
            is_v2: false,
            other: Vec::new(),
        }
    }

    /// Returns the type of an element: what `dtype` and, from generation 1.2 on, `type` mean together.
    ///
    /// In 1.2, a `type` that is not known, or does not go with its `dtype`, leaves the stored elements.
    /// `None` where the `dtype` is unknown or, in 2, the `type`, and where elements are of a type that
    /// is not a [`DType`]: see [`elements`](Self::elements).
    #[must_use]
    pub fn element_type(&self) -> Option<DType> {
        match self.elements()? {
            ElementType::Plain(dtype) => Some(dtype),
            ElementType::Packed { .. } => None,
        }
    }

    /// Returns what the elements are, also where that is not a [`DType`]; `None` where it is unknown.
    #[must_use]
    pub fn elements(&self) -> Option<ElementType> {
        let StoredType::Known(stored) = &self.dtype else {
            return None;
        };
        if self.is_v2 {
            return dtype::element_type_v2(*stored, self.logical_type.as_deref());
        }
        let meant = self.logical_type.as_ref().and_then(|name| dtype::logical(*stored, name));
        Some(ElementType::Plain(meant.unwrap_or(*stored)))
    }

    /// Tells whether there is a `type` that does not say what the elements mean.
    pub(crate) fn logical_type_is_unknown(&self) -> bool {
        match (&self.dtype, &self.logical_type) {
            (StoredType::Known(_), Some(_)) if self.is_v2 => self.elements().is_none(),
            (StoredType::Known(stored), Some(name)) => dtype::logical(*stored, name).is_none(),
            _ => false,
        }
    }

    /// Returns the keys of the component that the format does not name, in the order of the file; of
    /// one that is not text, as generation 2 lets pass, its first bytes, such as `h'01'`.
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
                    set!(into, dtype, StoredType::parse(text_of(&text)));
                }
                b"offset" => {
                    seen.once(1, at, &key)?;
                    let offset = decoder.unsigned().map_err(|e| e.inside("offset"))?;
                    set!(into, offset, offset);
                }
                b"length" => {
                    seen.once(2, at, &key)?;
                    let length = decoder.unsigned().map_err(|e| e.inside("length"))?;
                    set!(into, length, length);
                }
                b"encoding" => {
                    seen.once(3, at, &key)?;
                    let encoding = Encoding::at(decoder)?;
                    set!(into, encoding, encoding);
                }
                b"digest" => {
                    seen.once(4, at, &key)?;
                    let digest = text_or_null(decoder, "digest")?;
                    set!(into, digest, digest.map(Cow::into_owned));
                }
                // Generation 1.1 does not know these two, so there they may hold anything.
                b"type" if decoder.text_is_next() => {
                    seen.once(5, at, &key)?;
                    let logical = text_or_null(decoder, "type")?;
                    set!(into, logical_type, logical.map(Cow::into_owned));
                }
                b"uncompressed_length" if decoder.unsigned_is_next() => {
                    seen.once(6, at, &key)?;
                    let length = decoder.unsigned()?;
                    set!(into, uncompressed_length, Some(length));
                }
                _ => {
                    seen.unknown(at, &key)?;
                    let range = skipped(decoder)?;
                    if let Some(component) = into.as_deref_mut() {
                        component.other.push((text_of(&key).into(), manifest.slice(range)));
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
            emitter.text(key.as_str()).raw(item);
        }
    }
}

impl Encoding {
    pub(crate) fn at(decoder: &mut Decoder<'_>) -> cbor::Result<Self> {
        let text = text_or_null(decoder, "encoding")?;
        Ok(text.map_or(Self::Raw, |text| Self::parse_v1(&text)))
    }
}

/// Components that are made room for at once; the formats of the text have no more.
const ROLES: usize = 3;
