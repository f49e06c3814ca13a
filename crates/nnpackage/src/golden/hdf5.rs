//! HDF5, as far as golden data need it: groups of the first format, and datasets that lie in one
//! piece. That is what the library writes unless it is told otherwise. HDF5 file format
//! specification, version 3.0, sections II to IV.

use std::collections::HashSet;

use bytes::Bytes;
use tensor_core::{DType, Shape, TensorBuf};

use crate::{Error, Result};

/// An HDF5 file in memory.
pub(crate) struct Hdf5 {
    bytes: Bytes,
}

/// A group: names and where the objects are.
type Links = Vec<(String, u64)>;

impl Hdf5 {
    /// Looks at the first block of a file, and finds the root group.
    pub(crate) fn open(bytes: Bytes) -> Result<(Self, Links)> {
        let file = Self { bytes };
        if file.at(0, 8)? != SIGNATURE {
            return Err(fault(0, "has no signature"));
        }
        let version = file.byte(8)?;
        let sizes = (file.byte(13)?, file.byte(14)?);
        if version > 1 || sizes != (8, 8) {
            return Err(fault(
                8,
                "has a first block of another version, expected 0 or 1 with 8 bytes",
            ));
        }
        // Version 1 has four bytes more.
        let root = if version == 0 { 56 } else { 60 };
        let header = file.u64(plus(root, 8))?;
        let links = file.group(header)?;
        Ok((file, links))
    }

    /// Reads the links of a group from its object header.
    pub(crate) fn group(&self, header: u64) -> Result<Links> {
        let table = self.message(header, SYMBOL_TABLE)?;
        let table = table.ok_or_else(|| fault(header, "is not a group of the first format"))?;
        let (tree, heap) = (self.u64(table.0)?, self.u64(plus(table.0, 8))?);
        if self.at(heap, 4)? != b"HEAP" {
            return Err(fault(heap, "is not a heap of names"));
        }
        let names = self.u64(plus(heap, 24))?;
        let mut links = Vec::new();
        let mut seen = HashSet::new();
        let mut nodes = vec![tree];
        while let Some(node) = nodes.pop() {
            if !seen.insert(node) || seen.len() > MAX_NODES {
                return Err(fault(node, "is a node of a group for the second time"));
            }
            if self.at(node, 4)? == b"SNOD" {
                self.symbols(node, names, &mut links)?;
                continue;
            }
            if self.at(node, 4)? != b"TREE" {
                return Err(fault(node, "is not a node of a group"));
            }
            for child in 0..u64::from(self.u16(plus(node, 6))?) {
                nodes.push(self.u64(plus(node, 32_u64.saturating_add(child.saturating_mul(16))))?);
            }
        }
        links.sort();
        Ok(links)
    }

    fn symbols(&self, node: u64, names: u64, links: &mut Links) -> Result<()> {
        for index in 0..u64::from(self.u16(plus(node, 6))?) {
            let entry = plus(node, 8_u64.saturating_add(index.saturating_mul(40)));
            let name = plus(names, self.u64(entry)?);
            let rest = usize::try_from(name).ok().and_then(|at| self.bytes.get(at..));
            let rest = rest.ok_or_else(|| fault(name, "is behind the end"))?;
            let end = rest.iter().take(MAX_NAME).position(|byte| *byte == 0);
            let end = end.ok_or_else(|| fault(name, "is a name without an end"))?;
            let text = String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned();
            links.push((text, self.u64(plus(entry, 8))?));
        }
        Ok(())
    }

    /// Reads a dataset; elements become little-endian.
    pub(crate) fn dataset(&self, header: u64) -> Result<TensorBuf> {
        let need = |kind, what: &'static str| {
            let found = self.message(header, kind)?;
            found.ok_or_else(|| fault(header, what))
        };
        let shape = self.shape(need(DATASPACE, "is a dataset without a shape")?.0)?;
        let (dtype, is_big) = self.dtype(need(DATATYPE, "is a dataset without a type")?.0)?;
        let (layout, _) = need(LAYOUT, "is a dataset without a layout")?;
        let len = shape.byte_len(dtype)?;
        let data = match (self.byte(layout)?, self.byte(plus(layout, 1))?) {
            (3, 0) => self.at(plus(layout, 4), len)?,
            (3, 1) if len == 0 => &[],
            (3, 1) => self.at(self.u64(plus(layout, 2))?, len)?,
            _ => return Err(fault(layout, "is a layout of several pieces, expected one")),
        };
        let width = dtype.width().and_then(|width| usize::try_from(width).ok()).unwrap_or(1);
        let data = match is_big {
            true => {
                let elements = data.chunks(width);
                elements
                    .flat_map(|element| element.iter().rev().copied())
                    .collect::<Vec<u8>>()
                    .into()
            }
            false => self.bytes.slice_ref(data),
        };
        Ok(TensorBuf::new(dtype, shape, data)?)
    }

    fn shape(&self, at: u64) -> Result<Shape> {
        let (version, rank) = (self.byte(at)?, self.byte(plus(at, 1))?);
        let dims = match version {
            1 => plus(at, 8),
            2 => plus(at, 4),
            _ => return Err(fault(at, "is a shape of another version, expected 1 or 2")),
        };
        let dims = (0..u64::from(rank)).map(|dim| self.u64(plus(dims, dim.saturating_mul(8))));
        dims.collect()
    }

    /// Returns the element type, and whether its most significant byte comes first.
    fn dtype(&self, at: u64) -> Result<(DType, bool)> {
        let (class, bits) = (self.byte(at)? & 15, self.byte(plus(at, 1))?);
        let size = self.u32(plus(at, 4))?;
        let is_signed = bits & 8 != 0;
        let dtype = match (class, size, is_signed) {
            (0, 1, true) => DType::I8,
            (0, 1, false) => DType::U8,
            (0, 2, true) => DType::I16,
            (0, 2, false) => DType::U16,
            (0, 4, true) => DType::I32,
            (0, 4, false) => DType::U32,
            (0, 8, true) => DType::I64,
            (0, 8, false) => DType::U64,
            (1, 2, _) => DType::F16,
            (1, 4, _) => DType::F32,
            (1, 8, _) => DType::F64,
            _ => return Err(fault(at, "is a type of elements that golden data do not have")),
        };
        Ok((dtype, bits & 1 != 0))
    }

    /// Finds a message of an object header: where it starts, and its length.
    fn message(&self, header: u64, wanted: u16) -> Result<Option<(u64, u64)>> {
        if self.byte(header)? != 1 {
            return Err(fault(header, "is an object header of another version, expected 1"));
        }
        let mut left = u32::from(self.u16(plus(header, 2))?);
        let mut blocks = vec![(plus(header, 16), u64::from(self.u32(plus(header, 8))?))];
        while let Some((mut at, len)) = blocks.pop() {
            let end = at.saturating_add(len);
            while plus(at, 8) <= end && left > 0 {
                left = left.saturating_sub(1);
                let (kind, size) = (self.u16(at)?, u64::from(self.u16(plus(at, 2))?));
                let data = plus(at, 8);
                if kind == wanted {
                    return Ok(Some((data, size)));
                }
                if kind == CONTINUATION {
                    blocks.push((self.u64(data)?, self.u64(plus(data, 8))?));
                }
                at = plus(data, size);
            }
        }
        Ok(None)
    }

    fn at(&self, offset: u64, len: u64) -> Result<&[u8]> {
        let extent = tensor_core::Extent::new(offset, len).ok();
        let found = extent.and_then(|extent| extent.slice(&self.bytes));
        found.ok_or_else(|| fault(offset, "is behind the end"))
    }

    fn byte(&self, offset: u64) -> Result<u8> {
        Ok(self.at(offset, 1)?.first().copied().unwrap_or_default())
    }

    fn number(&self, offset: u64, width: u64) -> Result<u64> {
        let bytes = self.at(offset, width)?.iter().rev();
        Ok(bytes.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn u16(&self, offset: u64) -> Result<u16> {
        Ok(u16::try_from(self.number(offset, 2)?).unwrap_or_default())
    }

    fn u32(&self, offset: u64) -> Result<u32> {
        Ok(u32::try_from(self.number(offset, 4)?).unwrap_or_default())
    }

    fn u64(&self, offset: u64) -> Result<u64> {
        self.number(offset, 8)
    }
}

/// Adds to an offset; what would be beyond 64 bits is behind the end as well.
const fn plus(offset: u64, more: u64) -> u64 {
    offset.saturating_add(more)
}

fn fault(offset: u64, reason: &'static str) -> Error {
    Error::Hdf5 { offset, reason }
}

const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// Types of messages. Section IV.A.2.
const DATASPACE: u16 = 0x01;
const DATATYPE: u16 = 0x03;
const LAYOUT: u16 = 0x08;
const CONTINUATION: u16 = 0x10;
const SYMBOL_TABLE: u16 = 0x11;
/// Nodes of one group.
const MAX_NODES: usize = 10_000;
/// Bytes of a name.
const MAX_NAME: usize = 4096;
