//! Constants as initialisers: in the model, or in a data file beside it.

use std::{
    io::{self, BufWriter, Read as _, Write},
    path::Path,
};

use bytes::Bytes;
use tensor_core::{Extent, Source, TensorInfo};

use crate::{
    Tensor,
    types::{Element, Kind},
};

use super::{
    error::{Error, Result},
    proto::{EXTERNAL, Gaps, Initializer, Later, ModelProto, StringStringEntryProto, TensorProto},
};

/// Where the constants of a model go.
#[derive(Debug)]
pub(super) struct Store<'a> {
    /// Constants of at least so many bytes go into the data file; `None` if there is none.
    threshold: Option<u64>,
    /// The name of the data file.
    location: String,
    /// Constants in the data file.
    beside: Vec<Placed<'a>>,
    /// Constants in the model that are written when all around them is encoded.
    inside: Vec<Piece<'a>>,
    gaps: Gaps,
}

/// The elements of a constant.
#[derive(Debug)]
struct Piece<'a> {
    tensor: Tensor<'a>,
    element: Element,
}

/// A constant in the data file.
#[derive(Debug)]
struct Placed<'a> {
    piece: Piece<'a>,
    /// Bytes from the start of the data file.
    offset: u64,
    /// Bytes in the data file.
    len: u64,
}

impl<'a> Store<'a> {
    /// Puts every constant into the model.
    pub(super) fn inline() -> Self {
        Self::new(None, String::new())
    }

    /// Puts constants of at least so many bytes into a data file of this name.
    pub(super) fn beside(location: String, threshold: u64) -> Self {
        Self::new(Some(threshold), location)
    }

    fn new(threshold: Option<u64>, location: String) -> Self {
        let (beside, inside) = (Vec::new(), Vec::new());
        Self { threshold, location, beside, inside, gaps: Gaps::default() }
    }

    /// Makes an initialiser of a constant.
    pub(super) fn add(
        &mut self,
        tensor: Tensor<'a>,
        element: Element,
        name: String,
    ) -> Result<Initializer> {
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
            _ if len >= IN_MEMORY => {
                let later = Later { len, piece: self.inside.len(), gaps: self.gaps.clone() };
                self.inside.push(Piece { tensor, element });
                return Ok(Initializer { tensor: proto, later: Some(later) });
            }
            _ => {
                let kind = Kind::of_constant(info.dtype);
                proto.raw_data = Some(converted(tensor.bytes()?, kind, element));
            }
        }
        Ok(proto.into())
    }

    /// Reserves room in the data file and returns what names it.
    fn place(
        &mut self,
        tensor: Tensor<'a>,
        element: Element,
        len: u64,
    ) -> Vec<StringStringEntryProto> {
        let end = self.beside.last().map_or(0, |piece| piece.offset.saturating_add(piece.len));
        let alignment = if len < LARGE { ALIGNMENT } else { PAGE };
        let offset = end.next_multiple_of(alignment);
        self.beside.push(Placed { piece: Piece { tensor, element }, offset, len });
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
        self.beside.is_empty()
    }

    /// Writes the data file, a buffer of elements at a time.
    pub(super) fn write_data(&self, source: &Source, sink: impl Write, path: &Path) -> Result<()> {
        let mut sink = BufWriter::with_capacity(BUFFERED, sink);
        let mut at = 0_u64;
        for Placed { piece, offset, len } in &self.beside {
            let gap = offset.saturating_sub(at);
            let padded = io::copy(&mut io::repeat(0).take(gap), &mut sink);
            padded.map_err(|source| Error::writing(path, source))?;
            piece.write(source, &mut sink, path)?;
            at = offset.saturating_add(*len);
        }
        sink.flush().map_err(|source| Error::writing(path, source))
    }

    /// Writes a model with the constants that are in it, a buffer of elements at a time.
    pub(super) fn write_model(
        &self,
        model: &ModelProto,
        source: &Source,
        sink: impl Write,
        path: &Path,
    ) -> Result<()> {
        let mut sink = BufWriter::with_capacity(BUFFERED, sink);
        let (encoded, gaps) = self.gaps.encode(model);
        let mut at = 0;
        for gap in gaps {
            let before = encoded.get(at..gap.at).unwrap_or_default();
            sink.write_all(before).map_err(|source| Error::writing(path, source))?;
            if let Some(piece) = self.inside.get(gap.piece) {
                piece.write(source, &mut sink, path)?;
            }
            at = gap.at;
        }
        let rest = encoded.get(at..).unwrap_or_default();
        let written = sink.write_all(rest).and_then(|()| sink.flush());
        written.map_err(|source| Error::writing(path, source))
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

/// From how many bytes on elements are not in memory before they are written.
const IN_MEMORY: u64 = 256;

/// A whole number of elements of every type.
const BUFFER: u64 = 256 << 10;

/// Bytes that are gathered before they are written.
const BUFFERED: usize = 256 << 10;
