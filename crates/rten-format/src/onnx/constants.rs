//! Constants as initialisers: in the model, or in a data file beside it.

use std::{
    io::{self, Read as _, Write},
    path::Path,
};

use bytes::Bytes;
use tensor_core::{Extent, Source, TensorInfo};

use crate::Tensor;

use super::{
    element::{Element, Kind},
    error::{Error, Result},
    proto::{EXTERNAL, StringStringEntryProto, TensorProto},
};

/// Where the constants of a model go.
#[derive(Debug)]
pub(super) struct Store<'a> {
    /// Constants of at least so many bytes go into the data file; `None` if there is none.
    threshold: Option<u64>,
    /// The name of the data file.
    location: String,
    pieces: Vec<Piece<'a>>,
}

/// A constant in the data file.
#[derive(Debug)]
struct Piece<'a> {
    tensor: Tensor<'a>,
    element: Element,
    /// Bytes from the start of the data file.
    offset: u64,
    /// Bytes in the data file.
    len: u64,
}

impl<'a> Store<'a> {
    /// Puts every constant into the model.
    pub(super) const fn inline() -> Self {
        Self { threshold: None, location: String::new(), pieces: Vec::new() }
    }

    /// Puts constants of at least so many bytes into a data file of this name.
    pub(super) const fn beside(location: String, threshold: u64) -> Self {
        Self { threshold: Some(threshold), location, pieces: Vec::new() }
    }

    /// Makes an initialiser of a constant.
    pub(super) fn add(
        &mut self,
        tensor: Tensor<'a>,
        element: Element,
        name: String,
    ) -> Result<TensorProto> {
        let info = tensor.info()?;
        // A constant that does not lie in the file is refused here, wherever it goes.
        tensor.place()?;
        let mut proto = TensorProto {
            dims: tensor.constant().shape.iter().map(|dim| i64::from(*dim)).collect(),
            data_type: Some(element.code()),
            name: Some(name),
            ..Default::default()
        };
        let len = byte_len(&info, element)?;
        match self.threshold {
            Some(threshold) if len >= threshold && len > 0 => {
                proto.external_data = self.place(tensor, element, len);
                proto.data_location = Some(EXTERNAL);
            }
            _ => {
                let kind = Kind::of_constant(info.dtype);
                proto.raw_data = Some(converted(tensor.bytes()?, kind, element));
            }
        }
        Ok(proto)
    }

    /// Reserves room in the data file and returns what names it.
    fn place(
        &mut self,
        tensor: Tensor<'a>,
        element: Element,
        len: u64,
    ) -> Vec<StringStringEntryProto> {
        let end = self.pieces.last().map_or(0, |piece| piece.offset.saturating_add(piece.len));
        let alignment = if len < LARGE { ALIGNMENT } else { PAGE };
        let offset = end.next_multiple_of(alignment);
        self.pieces.push(Piece { tensor, element, offset, len });
        let entry = |key: &str, value: String| StringStringEntryProto {
            key: Some(key.to_owned()),
            value: Some(value),
        };
        vec![
            entry("location", self.location.clone()),
            entry("offset", offset.to_string()),
            entry("length", len.to_string()),
        ]
    }

    /// Tells whether nothing goes into the data file.
    pub(super) const fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Writes the data file, a buffer of elements at a time.
    pub(super) fn write(&self, source: &Source, sink: &mut impl Write, path: &Path) -> Result<()> {
        let mut at = 0_u64;
        for piece in &self.pieces {
            let gap = piece.offset.saturating_sub(at);
            let padded = io::copy(&mut io::repeat(0).take(gap), sink);
            padded.map_err(|source| Error::writing(path, source))?;
            piece.write(source, sink, path)?;
            at = piece.offset.saturating_add(piece.len);
        }
        Ok(())
    }
}

impl Piece<'_> {
    fn write(&self, source: &Source, sink: &mut impl Write, path: &Path) -> Result<()> {
        let extent = self.tensor.place()?;
        let kind = Kind::of_constant(self.tensor.info()?.dtype);
        let (mut offset, end) = (extent.offset(), extent.end());
        while offset < end {
            let part = Extent::between(offset, end.min(offset.saturating_add(BUFFER)));
            let elements = converted(source.read(part, "tensor data")?, kind, self.element);
            sink.write_all(&elements).map_err(|source| Error::writing(path, source))?;
            offset = part.end();
        }
        Ok(())
    }
}

/// Returns the bytes that a constant takes as an initialiser.
pub(super) fn byte_len(info: &TensorInfo, element: Element) -> Result<u64> {
    let elements = info.shape.elements()?;
    let overflow =
        || tensor_core::Error::SizeOverflow { shape: info.shape.clone(), dtype: info.dtype };
    Ok(elements.checked_mul(element.width()).ok_or_else(overflow)?)
}

/// Tells whether the bytes of a constant are those of an initialiser.
const fn is_stored_as(kind: Kind, element: Element) -> bool {
    !matches!((kind, element), (Kind::Int, Element::Int64 | Element::Bool))
}

fn converted(bytes: Bytes, kind: Kind, element: Element) -> Bytes {
    if is_stored_as(kind, element) { bytes } else { widened(&bytes, element).into() }
}

/// Turns 32-bit integers into those of 64 bits, or into truth values.
fn widened(bytes: &[u8], element: Element) -> Vec<u8> {
    let (words, _) = bytes.as_chunks::<4>();
    let words = words.iter().map(|word| i32::from_le_bytes(*word));
    match element {
        Element::Bool => words.map(|word| u8::from(word != 0)).collect(),
        _ => words.flat_map(|word| i64::from(word).to_le_bytes()).collect(),
    }
}

/// Elements of small constants start on a multiple of this many bytes of the data file.
const ALIGNMENT: u64 = 64;

/// Elements of large ones start on a page, as whoever maps them needs it.
const PAGE: u64 = 4096;

/// How many bytes make a constant large.
const LARGE: u64 = 1 << 20;

/// A whole number of elements of every type.
const BUFFER: u64 = 256 << 10;
