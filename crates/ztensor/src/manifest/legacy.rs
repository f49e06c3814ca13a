//! Entries of the generations before 1.1, read into the objects of today.

use std::borrow::Cow;

use bytes::Bytes;
use tensor_core::{DType, Limits};

use super::{
    attributes::{Encoded, attributes_range},
    cbor::{self, Decoder},
    dtype::StoredType,
    emit::Emitter,
    fields::{Fields, require, text_or_null, unknown},
    object::{Component, Object, components_at, shape_at},
    vocabulary::{ByteOrder, Encoding, Format, Role},
};
use crate::Problem;

/// Reads an object of generation 1.0.
///
/// ```text
/// {"dtype": text, "shape": [u64…], "format": text,
///  "components": {role: {"offset": u64, "length": u64, "encoding": text?, "digest": text?}…}}
/// ```
///
/// The element type stands once per object and is that of `data` or `values`; what indexes is
/// `u64`.
pub(crate) fn object_v1_0(
    decoder: &mut Decoder<'_>,
    manifest: &Bytes,
    limits: &Limits,
) -> cbor::Result<Object> {
    let start = decoder.at();
    let mut fields = Fields::new(decoder, "the map of a tensor")?;
    let (mut dtype, mut shape, mut format, mut components) = (None, None, None, None);
    let (mut attributes, mut other) = (None, Vec::new());
    while let Some(key) = fields.next(decoder)? {
        match &*key {
            "dtype" => {
                let text = decoder.text("text").map_err(|e| e.inside("dtype"))?;
                dtype = Some(StoredType::parse_long(&text));
            }
            "shape" => shape = Some(shape_at(decoder, limits).map_err(|e| e.inside("shape"))?),
            "format" => {
                let text = decoder.text("text").map_err(|e| e.inside("format"))?;
                format = Some(Format::parse_v1(&text));
            }
            "components" => {
                let map = components_at(decoder, |decoder| component_v1_0(decoder, manifest));
                components = Some(map.map_err(|e| e.inside("components"))?);
            }
            "attributes" => {
                let range = attributes_range(decoder).map_err(|e| e.inside("attributes"))?;
                attributes = range.map(|range| Encoded::slice(manifest, range));
            }
            _ => other.push(((&*key).into(), unknown(decoder, manifest)?)),
        }
    }
    let dtype = require(dtype, start, "dtype")?;
    let mut object =
        Object::new(require(shape, start, "shape")?, require(format, start, "format")?);
    object.components = require(components, start, "components")?;
    for (role, component) in &mut object.components {
        let indexes = matches!(role, Role::Indices | Role::Indptr | Role::Coords);
        component.dtype = if indexes { StoredType::Known(DType::U64) } else { dtype.clone() };
    }
    object.attributes = attributes;
    object.other = other;
    Ok(object)
}

fn component_v1_0(decoder: &mut Decoder<'_>, manifest: &Bytes) -> cbor::Result<Component> {
    let start = decoder.at();
    let mut fields = Fields::new(decoder, "the map of a component")?;
    let mut component = Component::new(StoredType::Known(DType::U64), 0, 0);
    let (mut offset, mut length) = (None, None);
    while let Some(key) = fields.next(decoder)? {
        match &*key {
            "offset" => offset = Some(decoder.unsigned().map_err(|e| e.inside("offset"))?),
            "length" => length = Some(decoder.unsigned().map_err(|e| e.inside("length"))?),
            "encoding" => component.encoding = Encoding::at(decoder)?,
            "digest" => {
                component.digest = text_or_null(decoder, "digest")?.map(Cow::into_owned);
            }
            _ => component.other.push(((&*key).into(), unknown(decoder, manifest)?)),
        }
    }
    component.offset = require(offset, start, "offset")?;
    component.length = require(length, start, "length")?;
    Ok(component)
}

/// Reads a tensor of generation 0.1, with its name.
///
/// ```text
/// {"name": text, "offset": u64, "size": u64, "dtype": text, "layout": text, "shape": [u64…],
///  "encoding": text, "data_endianness": "little" | "big"?, "checksum": text?, any other keys}
/// ```
///
/// The one blob becomes the component `data`; the other keys become attributes.
pub(crate) fn tensor_v0_1(
    decoder: &mut Decoder<'_>,
    manifest: &Bytes,
    limits: &Limits,
) -> cbor::Result<(String, Object)> {
    let start = decoder.at();
    let mut fields = Fields::new(decoder, "the map of a tensor")?;
    let (mut name, mut offset, mut size, mut dtype) = (None, None, None, None);
    let (mut layout, mut shape, mut custom) = (None, None, Vec::new());
    let mut component = Component::new(StoredType::Known(DType::U8), 0, 0);
    while let Some(key) = fields.next(decoder)? {
        match &*key {
            "name" => {
                let text = decoder.text("the name of a tensor, as text");
                name = Some(text.map_err(|e| e.inside("name"))?.into_owned());
            }
            "offset" => offset = Some(decoder.unsigned().map_err(|e| e.inside("offset"))?),
            "size" => size = Some(decoder.unsigned().map_err(|e| e.inside("size"))?),
            "dtype" => {
                let text = decoder.text("text").map_err(|e| e.inside("dtype"))?;
                dtype = Some(StoredType::parse_long(&text));
            }
            "layout" => {
                let text = decoder.text("text").map_err(|e| e.inside("layout"))?;
                layout = Some(Format::parse_v1(&text));
            }
            "shape" => shape = Some(shape_at(decoder, limits).map_err(|e| e.inside("shape"))?),
            "encoding" => component.encoding = Encoding::at(decoder)?,
            "data_endianness" => component.byte_order = byte_order(decoder)?,
            "checksum" => {
                component.digest = text_or_null(decoder, "checksum")?.map(Cow::into_owned);
            }
            _ => custom.push(((&*key).into(), unknown(decoder, manifest)?)),
        }
    }
    component.offset = require(offset, start, "offset")?;
    component.length = require(size, start, "size")?;
    component.dtype = require(dtype, start, "dtype")?;
    // zstd payloads of this generation are in the order of the machine that wrote them, and all
    // machines that did were little-endian.
    if component.encoding != Encoding::Raw {
        component.byte_order = ByteOrder::Little;
    }
    let mut object =
        Object::new(require(shape, start, "shape")?, require(layout, start, "layout")?);
    object.components.push((Role::Data, component));
    object.attributes = custom_attributes(&custom, start);
    Ok((require(name, start, "name")?, object))
}

fn byte_order(decoder: &mut Decoder<'_>) -> cbor::Result<ByteOrder> {
    let at = decoder.at();
    let text = text_or_null(decoder, "data_endianness")?;
    match text.as_deref() {
        None | Some("little") => Ok(ByteOrder::Little),
        Some("big") => Ok(ByteOrder::Big),
        Some(other) => Err(Decoder::problem(
            at,
            Problem::Unexpected { found: format!("{other:?}"), expected: "\"little\" or \"big\"" },
        )
        .inside("data_endianness")),
    }
}

/// Encodes keys that the format does not name as a map of attributes.
fn custom_attributes(custom: &[(String, Bytes)], at: usize) -> Option<Encoded> {
    if custom.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    let mut emitter = Emitter::new(&mut out);
    emitter.map(custom.len());
    for (key, item) in custom {
        emitter.text(key).raw(item);
    }
    Some(Encoded { bytes: out.into(), at })
}
