//! Graphs of ONNX models, such as exports of `RTen` models.
//!
//! A model is read field by field, as protobuf has them: what its constants hold is passed over, whatever
//! its size. Field numbers are those of `onnx.proto3`, which all versions of the format share.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::{Value as Json, json};
use tensor_core::{
    DType, Extent, Source,
    symbolic::{Dim, SymbolicShape},
};

use super::{Constant, Graph, Node, Outer, Subgraph, Value, float, group_of};

/// Why an ONNX model has no graph to be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It is not made as ONNX has it.
    #[error("byte {offset}: found {found}, expected {expected}")]
    Malformed {
        /// Bytes from the start of the file.
        offset: u64,
        /// What is there, in words.
        found: String,
        /// What should be there, in words.
        expected: &'static str,
    },
    /// It cannot be read.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

type Result<T> = std::result::Result<T, Error>;

impl Graph {
    /// Returns what computes what in an ONNX model. What operators of the model stand for that are
    /// functions of its own is not shown.
    ///
    /// # Errors
    ///
    /// Where the file is no ONNX model, cannot be read, or has a million parts or more.
    pub fn of_onnx(source: &Source) -> Result<Self> {
        let wire = Wire { source, block: Bytes::new(), start: 0 };
        let mut model = Model { wire, subgraphs: Vec::new(), scopes: Vec::new(), parts: 0 };
        let (mut rest, mut is_found) = (Extent::first(source.len()), false);
        while let Some(field) = model.wire.next(&mut rest)? {
            if let (7, Payload::Bytes(graph)) = (field.number, field.payload)
                && !is_found
            {
                is_found = true;
                model.graph(graph, None, 0)?;
            }
        }
        if !is_found {
            let found = "the end of the file".to_owned();
            let expected = "the graph of an ONNX model";
            return Err(Error::Malformed { offset: source.len(), found, expected });
        }
        model.lead_captures();
        Ok(Self { subgraphs: model.subgraphs })
    }
}

/// A field of a message.
struct Field {
    /// Bytes from the start of the file.
    offset: u64,
    number: u64,
    payload: Payload,
}

/// What stands in a field.
#[derive(Clone, Copy)]
enum Payload {
    Varint(u64),
    Fixed32([u8; 4]),
    Fixed64,
    /// A text, a message, or numbers one behind the other.
    Bytes(Extent),
}

/// Protobuf in a file, of which a block is in memory.
struct Wire<'s> {
    source: &'s Source,
    block: Bytes,
    start: u64,
}

impl Wire<'_> {
    /// Returns bytes of the file, with those behind them where there are some.
    fn bytes(&mut self, extent: Extent) -> Result<Bytes> {
        let held = Extent::new(self.start, self.block.len() as u64)?;
        if extent.offset() < held.offset() || extent.end() > held.end() {
            let left = self.source.len().saturating_sub(extent.offset());
            let len = extent.len().max(BLOCK.min(left));
            self.block = self.source.read(Extent::new(extent.offset(), len)?, WHAT)?;
            self.start = extent.offset();
        }
        let skipped = extent.offset().saturating_sub(self.start);
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX).min(self.block.len());
        Ok(self.block.slice(skipped..))
    }

    /// Takes a number off the front of what is left.
    fn varint(&mut self, rest: &mut Extent) -> Result<u64> {
        let bytes = self.bytes(Extent::new(rest.offset(), rest.len().min(10))?)?;
        let mut value = 0_u64;
        for (count, (byte, shift)) in (1_u64..).zip(bytes.iter().zip((0..64).step_by(7))) {
            if count > rest.len() {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                *rest = Extent::between(rest.offset().saturating_add(count), rest.end());
                return Ok(value);
            }
        }
        Err(malformed(rest, "a number that does not end", "a number of ten bytes at most"))
    }

    /// Takes so many bytes off the front of what is left.
    fn take(&mut self, rest: &mut Extent, len: u64) -> Result<Extent> {
        if len > rest.len() {
            let found = format!("{len} bytes");
            return Err(malformed(rest, &found, "no more than the message has left"));
        }
        let taken = Extent::new(rest.offset(), len)?;
        *rest = Extent::between(taken.end(), rest.end());
        Ok(taken)
    }

    /// Takes the next field off the front of a message; `None` at its end.
    fn next(&mut self, rest: &mut Extent) -> Result<Option<Field>> {
        if rest.is_empty() {
            return Ok(None);
        }
        let (offset, key) = (rest.offset(), self.varint(rest)?);
        let payload = match key & 7 {
            0 => Payload::Varint(self.varint(rest)?),
            1 => {
                self.take(rest, 8)?;
                Payload::Fixed64
            }
            2 => {
                let len = self.varint(rest)?;
                Payload::Bytes(self.take(rest, len)?)
            }
            5 => {
                let taken = self.take(rest, 4)?;
                let bytes = self.bytes(taken)?;
                Payload::Fixed32(bytes.first_chunk().copied().unwrap_or_default())
            }
            other => {
                let found = format!("a field of wire type {other}");
                let at = Extent::between(offset, rest.end());
                return Err(malformed(&at, &found, "one of type 0, 1, 2 or 5"));
            }
        };
        Ok(Some(Field { offset, number: key >> 3, payload }))
    }

    fn text(&mut self, extent: Extent) -> Result<String> {
        if extent.len() > MAX_TEXT {
            let found = format!("a text of {} bytes", extent.len());
            return Err(malformed(&extent, &found, "one of 1 MiB at most"));
        }
        let bytes = self.bytes(extent)?;
        let len = usize::try_from(extent.len()).unwrap_or(usize::MAX).min(bytes.len());
        Ok(String::from_utf8_lossy(bytes.get(..len).unwrap_or_default()).into_owned())
    }
}

fn malformed(at: &Extent, found: &str, expected: &'static str) -> Error {
    Error::Malformed { offset: at.offset(), found: found.to_owned(), expected }
}

/// What is known of a model so far.
struct Model<'s> {
    wire: Wire<'s>,
    subgraphs: Vec<Subgraph>,
    /// Of each graph the one that holds it, and its values by their names.
    scopes: Vec<(Option<usize>, HashMap<String, usize>)>,
    /// How many nodes, values, attributes and numbers were met.
    parts: u64,
}

impl Model<'_> {
    fn count(&mut self, at: u64) -> Result<()> {
        self.parts = self.parts.saturating_add(1);
        if self.parts > MAX_PARTS {
            let found = format!("more than {MAX_PARTS} nodes, values and attributes");
            return Err(Error::Malformed { offset: at, found, expected: "fewer" });
        }
        Ok(())
    }

    /// Reads a `GraphProto`; returns its place.
    fn graph(&mut self, mut rest: Extent, parent: Option<usize>, depth: usize) -> Result<usize> {
        if depth > MAX_DEPTH {
            return Err(malformed(&rest, "graphs within graphs", "64 levels of them at most"));
        }
        let index = self.subgraphs.len();
        self.subgraphs.push(Subgraph::default());
        self.scopes.push((parent, HashMap::new()));
        while let Some(field) = self.wire.next(&mut rest)? {
            let Payload::Bytes(extent) = field.payload else { continue };
            match field.number {
                1 => {
                    let node = self.node(index, extent, depth)?;
                    self.change(index, |graph| graph.nodes.push(node));
                }
                2 => {
                    let name = self.wire.text(extent)?;
                    self.change(index, |graph| graph.name = name);
                }
                5 => self.initializer(index, extent)?,
                11 => {
                    let value = self.value_info(index, extent)?;
                    self.change(index, |graph| graph.inputs.extend(value));
                }
                12 => {
                    let value = self.value_info(index, extent)?;
                    self.change(index, |graph| graph.outputs.extend(value));
                }
                13 => _ = self.value_info(index, extent)?,
                // Of a sparse constant the values have its name, and another shape.
                15 => self.sparse(index, extent)?,
                _ => {}
            }
        }
        Ok(index)
    }

    fn change(&mut self, index: usize, change: impl FnOnce(&mut Subgraph)) {
        if let Some(graph) = self.subgraphs.get_mut(index) {
            change(graph);
        }
    }

    /// Returns where a value of a name is; `None` for an empty name, which says that there is none.
    fn value(&mut self, index: usize, name: &str, at: u64) -> Result<Option<usize>> {
        let known = self.scopes.get(index).and_then(|(_, names)| names.get(name).copied());
        if known.is_some() || name.is_empty() {
            return Ok(known);
        }
        self.count(at)?;
        let Some(graph) = self.subgraphs.get_mut(index) else { return Ok(None) };
        let id = graph.values.len();
        let mut value = Value::new(Some(name), None, None);
        value.id = id;
        graph.values.push(value);
        if let Some((_, names)) = self.scopes.get_mut(index) {
            names.insert(name.to_owned(), id);
        }
        Ok(Some(id))
    }

    /// Reads a `NodeProto`.
    fn node(&mut self, index: usize, mut rest: Extent, depth: usize) -> Result<Node> {
        self.count(rest.offset())?;
        let id = self.subgraphs.get(index).map_or(0, |graph| graph.nodes.len());
        let [mut name, mut operator, mut domain] = [const { String::new() }; 3];
        let mut node = Node::default();
        while let Some(field) = self.wire.next(&mut rest)? {
            let Payload::Bytes(extent) = field.payload else { continue };
            match field.number {
                1 | 2 => {
                    let name = self.wire.text(extent)?;
                    self.count(field.offset)?;
                    let value = self.value(index, &name, field.offset)?;
                    let list = if field.number == 1 { &mut node.inputs } else { &mut node.outputs };
                    list.push(value);
                }
                3 => name = self.wire.text(extent)?,
                4 => operator = self.wire.text(extent)?,
                5 => self.attribute(index, extent, depth, &mut node)?,
                7 => domain = self.wire.text(extent)?,
                _ => {}
            }
        }
        let Node { inputs, outputs, mut attributes, bodies, .. } = node;
        if !matches!(&*domain, "" | "ai.onnx") {
            attributes.entry("domain".to_owned()).or_insert(domain.into());
        }
        let mut node = Node {
            id,
            inputs,
            outputs,
            attributes,
            bodies,
            ..Node::new(operator).named(Some(&name))
        };
        if node.name.is_none() {
            let values = self.subgraphs.get(index).map_or(&[][..], |graph| &graph.values);
            let made = node.outputs.iter().flatten().next().and_then(|at| values.get(*at));
            node.group =
                made.and_then(|made| made.name.as_deref()).map(group_of).unwrap_or_default();
        }
        Ok(node)
    }

    /// Reads an `AttributeProto`.
    fn attribute(
        &mut self,
        index: usize,
        mut rest: Extent,
        depth: usize,
        node: &mut Node,
    ) -> Result<()> {
        self.count(rest.offset())?;
        let (mut name, mut single, mut list) = (String::new(), None, Vec::new());
        let mut kind = 0;
        while let Some(Field { offset, number, payload }) = self.wire.next(&mut rest)? {
            match (number, payload) {
                (1, Payload::Bytes(extent)) => name = self.wire.text(extent)?,
                (2, Payload::Fixed32(bytes)) => single = Some(float(f32::from_le_bytes(bytes))),
                (3, Payload::Varint(bits)) => single = Some(json!(bits.cast_signed())),
                (4, Payload::Bytes(extent)) => single = Some(self.wire.text(extent)?.into()),
                (5, Payload::Bytes(extent)) => {
                    let (_, tensor) = self.tensor(extent)?;
                    single = Some(tensor.type_text().into());
                }
                (6 | 11, Payload::Bytes(extent)) => {
                    node.bodies.push(self.graph(extent, Some(index), depth.saturating_add(1))?);
                    // It is a graph of its own.
                    single = Some("graph".into());
                }
                (7, payload) => self.floats(offset, payload, &mut list)?,
                (8, payload) => {
                    let mut numbers = Vec::new();
                    self.numbers(offset, payload, &mut numbers)?;
                    list.extend(numbers.into_iter().map(|bits| json!(bits.cast_signed())));
                }
                (9, Payload::Bytes(extent)) => {
                    self.count(offset)?;
                    list.push(self.wire.text(extent)?.into());
                }
                (10, Payload::Bytes(extent)) => {
                    let (_, tensor) = self.tensor(extent)?;
                    list.push(tensor.type_text().into());
                }
                (20, Payload::Varint(code)) => kind = code,
                (22, Payload::Bytes(_)) => single = Some("sparse tensor".into()),
                _ => {}
            }
        }
        // Writers may leave out what is zero or empty.
        let absent = match kind {
            1 => float(0.0),
            2 => json!(0),
            3 => "".into(),
            _ => Json::Array(list),
        };
        node.attributes.insert(name, single.unwrap_or(absent));
        Ok(())
    }

    /// Reads numbers, be they packed or not.
    fn numbers(&mut self, at: u64, payload: Payload, numbers: &mut Vec<u64>) -> Result<()> {
        match payload {
            Payload::Varint(number) => {
                self.count(at)?;
                numbers.push(number);
            }
            Payload::Bytes(mut packed) => {
                while !packed.is_empty() {
                    self.count(packed.offset())?;
                    numbers.push(self.wire.varint(&mut packed)?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn floats(&mut self, at: u64, payload: Payload, list: &mut Vec<Json>) -> Result<()> {
        match payload {
            Payload::Fixed32(bytes) => {
                self.count(at)?;
                list.push(float(f32::from_le_bytes(bytes)));
            }
            Payload::Bytes(mut packed) => {
                while !packed.is_empty() {
                    self.count(packed.offset())?;
                    let taken = self.wire.take(&mut packed, 4)?;
                    let bytes = self.wire.bytes(taken)?;
                    let bytes = bytes.first_chunk().copied().unwrap_or_default();
                    list.push(float(f32::from_le_bytes(bytes)));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads a `TensorProto` but for its elements; returns its name, too.
    fn tensor(&mut self, mut rest: Extent) -> Result<(String, Value)> {
        let (mut name, mut dims, mut dtype, mut stored) = (String::new(), Vec::new(), 0, None);
        while let Some(Field { offset, number, payload }) = self.wire.next(&mut rest)? {
            match (number, payload) {
                (1, payload) => self.numbers(offset, payload, &mut dims)?,
                (2, Payload::Varint(code)) => dtype = code,
                (8, Payload::Bytes(extent)) => name = self.wire.text(extent)?,
                (9, Payload::Bytes(extent)) => stored = Some(extent.len()),
                _ => {}
            }
        }
        let elements = dims.iter().try_fold(1_u64, |product, dim| product.checked_mul(*dim));
        let len = elements.zip(element_type(dtype)).and_then(|(of, dtype)| dtype.byte_len(of));
        let shape = SymbolicShape::Dims(dims.into_iter().map(Dim::Fixed).collect());
        let mut value = Value::new(None, Some(type_name(dtype)), Some(shape));
        value.constant = Some(Constant { bytes: len.or(stored), text: None });
        Ok((name, value))
    }

    fn initializer(&mut self, index: usize, extent: Extent) -> Result<()> {
        let (name, Value { dtype, shape, constant, .. }) = self.tensor(extent)?;
        let at = self.value(index, &name, extent.offset())?;
        self.change(index, |graph| {
            if let Some(value) = at.and_then(|at| graph.values.get_mut(at)) {
                (value.dtype, value.shape, value.constant) = (dtype, shape, constant);
            }
        });
        Ok(())
    }

    /// Reads a `SparseTensorProto`.
    fn sparse(&mut self, index: usize, mut rest: Extent) -> Result<()> {
        let (mut values, mut dims) = (None, Vec::new());
        while let Some(Field { offset, number, payload }) = self.wire.next(&mut rest)? {
            match (number, payload) {
                (1, Payload::Bytes(extent)) => values = Some((offset, self.tensor(extent)?)),
                (3, payload) => self.numbers(offset, payload, &mut dims)?,
                _ => {}
            }
        }
        let Some((offset, (name, found))) = values else { return Ok(()) };
        let at = self.value(index, &name, offset)?;
        self.change(index, |graph| {
            if let Some(value) = at.and_then(|at| graph.values.get_mut(at)) {
                let shape = SymbolicShape::Dims(dims.into_iter().map(Dim::Fixed).collect());
                (value.dtype, value.shape) = (found.dtype, Some(shape));
                value.constant = found.constant;
            }
        });
        Ok(())
    }

    /// Reads a `ValueInfoProto`; returns which value it is about.
    fn value_info(&mut self, index: usize, mut rest: Extent) -> Result<Option<usize>> {
        let (offset, mut name, mut known) = (rest.offset(), String::new(), None);
        while let Some(field) = self.wire.next(&mut rest)? {
            match (field.number, field.payload) {
                (1, Payload::Bytes(extent)) => name = self.wire.text(extent)?,
                (2, Payload::Bytes(extent)) => known = self.type_of(extent)?,
                _ => {}
            }
        }
        let at = self.value(index, &name, offset)?;
        self.change(index, |graph| {
            if let (Some(value), Some((dtype, shape))) =
                (at.and_then(|at| graph.values.get_mut(at)), known)
                && value.constant.is_none()
            {
                (value.dtype, value.shape) = (Some(dtype), shape);
            }
        });
        Ok(at)
    }

    /// Reads a `TypeProto`.
    fn type_of(&mut self, mut rest: Extent) -> Result<Option<(String, Option<SymbolicShape>)>> {
        let Some(field) = self.wire.next(&mut rest)? else { return Ok(None) };
        let Payload::Bytes(mut rest) = field.payload else { return Ok(None) };
        let name = match field.number {
            1 | 8 => None,
            4 => Some("sequence"),
            5 => Some("map"),
            9 => Some("optional"),
            _ => return Ok(None),
        };
        if let Some(name) = name {
            return Ok(Some((name.to_owned(), None)));
        }
        let (mut dtype, mut shape) = (0, None);
        while let Some(field) = self.wire.next(&mut rest)? {
            match (field.number, field.payload) {
                (1, Payload::Varint(code)) => dtype = code,
                (2, Payload::Bytes(extent)) => shape = Some(self.shape(extent)?),
                _ => {}
            }
        }
        Ok(Some((type_name(dtype), shape)))
    }

    /// Reads a `TensorShapeProto`.
    fn shape(&mut self, mut rest: Extent) -> Result<SymbolicShape> {
        let mut dims = Vec::new();
        while let Some(field) = self.wire.next(&mut rest)? {
            let (1, Payload::Bytes(mut rest)) = (field.number, field.payload) else { continue };
            self.count(field.offset)?;
            let mut dim = Dim::Any;
            while let Some(field) = self.wire.next(&mut rest)? {
                match (field.number, field.payload) {
                    (1, Payload::Varint(bits)) => {
                        dim = u64::try_from(bits.cast_signed()).map_or(Dim::Any, Dim::Fixed);
                    }
                    (2, Payload::Bytes(extent)) if !extent.is_empty() => {
                        dim = Dim::Symbol(self.wire.text(extent)?);
                    }
                    _ => {}
                }
            }
            dims.push(dim);
        }
        Ok(SymbolicShape::Dims(dims))
    }

    /// Leads what bodies read and do not make to the graphs around them.
    fn lead_captures(&mut self) {
        for index in 0..self.subgraphs.len() {
            let Some(graph) = self.subgraphs.get(index) else { continue };
            let mut is_here: Vec<bool> = graph.producers().iter().map(Option::is_some).collect();
            for at in &graph.inputs {
                is_here.get_mut(*at).into_iter().for_each(|is_here| *is_here = true);
            }
            let values = graph.values.iter().zip(is_here);
            let missing = values.filter(|(value, is_here)| !is_here && value.constant.is_none());
            let found: Vec<(usize, Outer)> = missing
                .filter_map(|(value, _)| {
                    Some((value.id, self.outer(index, value.name.as_deref()?)?))
                })
                .collect();
            for (at, outer) in found {
                let known = self.subgraphs.get(outer.subgraph);
                let known = known.and_then(|graph| graph.values.get(outer.value)).cloned();
                let Some(Value { dtype, shape, constant, .. }) = known else { continue };
                self.change(index, |graph| {
                    if let Some(value) = graph.values.get_mut(at) {
                        (value.dtype, value.shape, value.constant) = (dtype, shape, constant);
                        value.outer = Some(outer);
                    }
                });
            }
        }
    }

    /// Returns the value of a name in the nearest graph around one; those were led before.
    fn outer(&self, index: usize, name: &str) -> Option<Outer> {
        let mut around = self.scopes.get(index)?.0;
        loop {
            let subgraph = around?;
            let (parent, names) = self.scopes.get(subgraph)?;
            if let Some(value) = names.get(name) {
                let further = self.subgraphs.get(subgraph)?.values.get(*value)?.outer;
                return Some(further.unwrap_or(Outer { subgraph, value: *value }));
            }
            around = *parent;
        }
    }
}

/// Returns the element type of a number of `TensorProto.DataType`.
const fn element_type(code: u64) -> Option<DType> {
    Some(match code {
        1 => DType::F32,
        2 => DType::U8,
        3 => DType::I8,
        4 => DType::U16,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        8 => DType::Str,
        9 => DType::Bool,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::U32,
        13 => DType::U64,
        14 => DType::C64,
        15 => DType::C128,
        16 => DType::BF16,
        17 => DType::F8E4M3,
        19 => DType::F8E5M2,
        21 => DType::U4,
        22 => DType::I4,
        _ => return None,
    })
}

fn type_name(code: u64) -> String {
    element_type(code).map_or_else(|| format!("type {code}"), |dtype| dtype.to_string())
}

/// What errors of reading are about.
const WHAT: &str = "ONNX model";

/// Bytes that are read at once.
const BLOCK: u64 = 64 << 10;

/// Bytes of a name or another text.
const MAX_TEXT: u64 = 1 << 20;

/// Nodes, values, attributes and numbers of a model.
const MAX_PARTS: u64 = 1_000_000;

/// Graphs inside of each other.
const MAX_DEPTH: usize = 64;
