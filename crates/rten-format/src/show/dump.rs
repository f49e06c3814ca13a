//! Everything in a model, as text to read and, with the feature `serde`, as data.

use std::fmt;

use tensor_core::text::Plain;

use crate::{
    AttributeValue, Constant, ConstantData, Graph, Model, Node, NodeKind, Operator,
    show::types::{constant_type, value_type},
};

impl Model {
    /// Returns everything in the model as text, one line for each node and attribute.
    ///
    /// Names are escaped, so that nothing in a file can pass for a line of its own. Of a constant
    /// the first elements are shown.
    #[must_use]
    pub fn dump(&self) -> impl fmt::Display {
        Dump { model: self }
    }
}

struct Dump<'a> {
    model: &'a Model,
}

impl fmt::Display for Dump<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Model { graph: main, metadata } = self.model;
        if let Some(metadata) = metadata {
            f.write_str("metadata\n")?;
            for (field, text) in metadata.fields() {
                if let Some(text) = text {
                    writeln!(f, "  {field} = {text:?}")?;
                }
            }
        }
        f.write_str("graph\n")?;
        graph(f, main, 1)
    }
}

fn graph(f: &mut fmt::Formatter<'_>, graph: &Graph, level: usize) -> fmt::Result {
    if level > MAX_LEVEL {
        return writeln!(f, "{}…", Indent(level));
    }
    let lists =
        [("inputs", &graph.inputs), ("outputs", &graph.outputs), ("captures", &graph.captures)];
    for (list, ids) in lists {
        writeln!(f, "{}{list} = {ids:?}", Indent(level))?;
    }
    (0..).zip(&graph.nodes).try_for_each(|(id, node)| line(f, id, node, level))
}

fn line(f: &mut fmt::Formatter<'_>, id: u32, node: &Node, level: usize) -> fmt::Result {
    write!(f, "{}{id}", Indent(level))?;
    if let Some(name) = &node.name {
        write!(f, " {name:?}")?;
    }
    match &node.kind {
        NodeKind::Operator(found) => operator(f, found, level),
        NodeKind::Constant(found) => constant(f, found),
        NodeKind::Value(value) => {
            let value = value_type(value);
            writeln!(f, " value{}{}", if value.is_empty() { "" } else { " " }, Plain(&value))
        }
        NodeKind::Unknown(table) => writeln!(f, " of unknown type {}", table.tag()),
        NodeKind::Missing => writeln!(f, " empty"),
    }
}

fn operator(f: &mut fmt::Formatter<'_>, operator: &Operator, level: usize) -> fmt::Result {
    let list = |ids: &[Option<u32>]| {
        let ids = ids.iter().map(|id| id.map_or_else(|| "-".to_owned(), |id| id.to_string()));
        ids.collect::<Vec<_>>().join(", ")
    };
    let (inputs, outputs) = (list(&operator.inputs), list(&operator.outputs));
    write!(f, " {}({inputs}) -> ({outputs})", operator.operator_type)?;
    let Some(attributes) = &operator.attributes else { return writeln!(f) };
    let table = attributes.attributes_type();
    match table.name() {
        Some(name) => writeln!(f, " {name}")?,
        None => writeln!(f, " attributes of unknown type {}", table.code())?,
    }
    let indent = Indent(level.saturating_add(1));
    for (field, value) in attributes.fields() {
        match value {
            AttributeValue::Absent => {}
            AttributeValue::Graph(inner) => {
                writeln!(f, "{indent}{field}")?;
                graph(f, inner, level.saturating_add(2))?;
            }
            value => writeln!(f, "{indent}{field} = {}", Shown(value))?,
        }
    }
    Ok(())
}

fn constant(f: &mut fmt::Formatter<'_>, constant: &Constant) -> fmt::Result {
    write!(f, " constant {}", constant_type(constant))?;
    if let Some(offset) = constant.data_offset {
        write!(f, " at byte {offset} of the tensor data")?;
    }
    if let Some(data) = &constant.data {
        let elements = Elements(data);
        let first: Vec<String> = elements.iter().take(SHOWN).map(|n| n.to_string()).collect();
        let more = if elements.iter().nth(SHOWN).is_some() { ", …" } else { "" };
        write!(f, " = [{}{more}]", first.join(", "))?;
    }
    writeln!(f)
}

/// Inline elements, one by one.
#[derive(Clone, Copy)]
struct Elements<'a>(&'a ConstantData);

/// An element of a constant.
#[derive(Clone, Copy)]
enum Number {
    Int(i32),
    Float(f32),
}

impl<'a> Elements<'a> {
    #[cfg(feature = "serde")]
    fn len(self) -> usize {
        match self.0 {
            ConstantData::Float(bytes) | ConstantData::Int32(bytes) => bytes.len() / 4,
            ConstantData::Int8(bytes) | ConstantData::UInt8(bytes) => bytes.len(),
            ConstantData::Unknown(_) => 0,
        }
    }

    fn iter(self) -> Box<dyn Iterator<Item = Number> + 'a> {
        match self.0 {
            ConstantData::Float(bytes) => {
                Box::new(words(bytes).map(|word| Number::Float(f32::from_le_bytes(word))))
            }
            ConstantData::Int32(bytes) => {
                Box::new(words(bytes).map(|word| Number::Int(i32::from_le_bytes(word))))
            }
            ConstantData::Int8(bytes) => {
                Box::new(bytes.iter().map(|byte| Number::Int(byte.cast_signed().into())))
            }
            ConstantData::UInt8(bytes) => {
                Box::new(bytes.iter().map(|byte| Number::Int((*byte).into())))
            }
            ConstantData::Unknown(_) => Box::new(std::iter::empty()),
        }
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = [u8; 4]> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().copied()
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
        }
    }
}

/// The value of an attribute that is not a graph.
struct Shown<'a>(AttributeValue<'a>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            AttributeValue::Absent => f.write_str("none"),
            AttributeValue::Bool(value) => write!(f, "{value}"),
            AttributeValue::Int(value) => write!(f, "{value}"),
            AttributeValue::Float(value) => write!(f, "{value:?}"),
            AttributeValue::Enum { name: Some(name), .. } => f.write_str(name),
            AttributeValue::Enum { name: None, code, .. } => write!(f, "unknown {code}"),
            AttributeValue::Ints(values) => write!(f, "{values:?}"),
            AttributeValue::Uints(values) => write!(f, "{values:?}"),
            AttributeValue::Text(text) => write!(f, "{text:?}"),
            AttributeValue::Graph(_) => f.write_str("graph"),
            AttributeValue::Unknown(table) => write!(f, "of unknown type {}", table.tag()),
        }
    }
}

#[derive(Clone, Copy)]
struct Indent(usize);

impl fmt::Display for Indent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..self.0).try_for_each(|_| f.write_str("  "))
    }
}

/// Elements of a constant that are shown.
const SHOWN: usize = 8;

/// Levels of indentation: more than a file can have, fewer than a stack can bear.
const MAX_LEVEL: usize = 128;

#[cfg(feature = "serde")]
mod data {
    use serde::{
        Serialize, Serializer,
        ser::{Error as _, SerializeMap},
    };

    use super::{Elements, Number};
    use crate::{
        AttributeValue, Attributes, Constant, ConstantData, Dim, Graph, Metadata, Model, Node,
        NodeKind, Operator, Value,
    };

    impl Serialize for Model {
        /// Writes everything in the model, in the order of the file.
        ///
        /// An id of a node that is left out is -1, as in the file. Numbers that JSON cannot write
        /// are the texts `NaN`, `Infinity` and `-Infinity`. Of what is unknown there is the number.
        /// Of inline elements there is the number, and where they are not more than 64, all of them.
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            map.serialize_entry("metadata", &self.metadata)?;
            map.serialize_entry("graph", &Nested { graph: &self.graph, depth: 0 })?;
            map.end()
        }
    }

    impl Serialize for Metadata {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.fields())
        }
    }

    struct Nested<'a> {
        graph: &'a Graph,
        depth: u32,
    }

    impl Serialize for Nested<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if self.depth > MAX_DEPTH {
                return Err(S::Error::custom("subgraphs are nested deeper than 64 levels"));
            }
            let mut map = serializer.serialize_map(None)?;
            map.serialize_entry("inputs", &self.graph.inputs)?;
            map.serialize_entry("outputs", &self.graph.outputs)?;
            map.serialize_entry("captures", &self.graph.captures)?;
            map.serialize_entry("nodes", &Nodes(self))?;
            map.end()
        }
    }

    struct Nodes<'a>(&'a Nested<'a>);

    impl Serialize for Nodes<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let depth = self.0.depth;
            serializer.collect_seq(self.0.graph.nodes.iter().map(|node| InGraph { node, depth }))
        }
    }

    struct InGraph<'a> {
        node: &'a Node,
        depth: u32,
    }

    impl Serialize for InGraph<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            map.serialize_entry("name", &self.node.name)?;
            match &self.node.kind {
                NodeKind::Operator(operator) => self.operator(&mut map, operator)?,
                NodeKind::Constant(constant) => self::constant(&mut map, constant)?,
                NodeKind::Value(value) => self::value(&mut map, value)?,
                NodeKind::Unknown(table) => {
                    map.serialize_entry("kind", "unknown")?;
                    map.serialize_entry("code", &table.tag())?;
                }
                NodeKind::Missing => map.serialize_entry("kind", "missing")?,
            }
            map.end()
        }
    }

    impl InGraph<'_> {
        fn operator<M: SerializeMap>(
            &self,
            map: &mut M,
            operator: &Operator,
        ) -> Result<(), M::Error> {
            let ids = |ids: &[Option<u32>]| -> Vec<i64> {
                ids.iter().map(|id| id.map_or(-1, i64::from)).collect()
            };
            map.serialize_entry("kind", "operator")?;
            map.serialize_entry("operator", &operator.operator_type.name())?;
            map.serialize_entry("code", &operator.operator_type.code())?;
            map.serialize_entry("inputs", &ids(&operator.inputs))?;
            map.serialize_entry("outputs", &ids(&operator.outputs))?;
            let Some(attributes) = &operator.attributes else { return Ok(()) };
            let table = attributes.attributes_type();
            map.serialize_entry("attributes_type", &table.name())?;
            map.serialize_entry("attributes_code", &table.code())?;
            map.serialize_entry("attributes", &Fields { attributes, depth: self.depth })
        }
    }

    struct Fields<'a> {
        attributes: &'a Attributes,
        depth: u32,
    }

    impl Serialize for Fields<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let depth = self.depth;
            let fields = self.attributes.fields().into_iter();
            serializer.collect_map(fields.map(|(field, value)| (field, Field { value, depth })))
        }
    }

    struct Field<'a> {
        value: AttributeValue<'a>,
        depth: u32,
    }

    impl Serialize for Field<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self.value {
                AttributeValue::Absent => serializer.serialize_none(),
                AttributeValue::Bool(value) => serializer.serialize_bool(value),
                AttributeValue::Int(value) => serializer.serialize_i64(value),
                AttributeValue::Float(value) => Number::Float(value).serialize(serializer),
                AttributeValue::Enum { name: Some(name), .. } => serializer.serialize_str(name),
                AttributeValue::Enum { name: None, code, .. } => serializer.serialize_u16(code),
                AttributeValue::Ints(values) => serializer.collect_seq(values),
                AttributeValue::Uints(values) => serializer.collect_seq(values),
                AttributeValue::Text(text) => serializer.serialize_str(text),
                AttributeValue::Graph(graph) => {
                    let depth = self.depth.saturating_add(1);
                    Nested { graph, depth }.serialize(serializer)
                }
                AttributeValue::Unknown(table) => serializer.serialize_u8(table.tag()),
            }
        }
    }

    fn constant<M: SerializeMap>(map: &mut M, constant: &Constant) -> Result<(), M::Error> {
        map.serialize_entry("kind", "constant")?;
        map.serialize_entry("shape", &constant.shape)?;
        match constant.dtype.map(|dtype| (dtype.name(), dtype.code())) {
            Some((None, code)) => map.serialize_entry("dtype", &code)?,
            known => map.serialize_entry("dtype", &known.map(|(name, _)| name))?,
        }
        map.serialize_entry("data_offset", &constant.data_offset)?;
        let Some(data) = &constant.data else { return Ok(()) };
        match data {
            ConstantData::Unknown(table) => map.serialize_entry("inline_code", &table.tag()),
            data => {
                let dtype = data.dtype().map(|dtype| dtype.to_string());
                map.serialize_entry("inline_dtype", &dtype)?;
                let elements = Elements(data);
                map.serialize_entry("inline_elements", &elements.len())?;
                let few = (elements.len() <= FEW).then_some(elements);
                map.serialize_entry("inline", &few)
            }
        }
    }

    impl Serialize for Elements<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(self.iter())
        }
    }

    impl Serialize for Number {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match *self {
                Self::Int(number) => serializer.serialize_i32(number),
                Self::Float(number) if number.is_finite() => serializer.serialize_f32(number),
                Self::Float(number) if number.is_nan() => serializer.serialize_str("NaN"),
                Self::Float(number) if number < 0.0 => serializer.serialize_str("-Infinity"),
                Self::Float(_) => serializer.serialize_str("Infinity"),
            }
        }
    }

    fn value<M: SerializeMap>(map: &mut M, value: &Value) -> Result<(), M::Error> {
        map.serialize_entry("kind", "value")?;
        match value.dtype.map(|dtype| (dtype.name(), dtype.code())) {
            Some((None, code)) => map.serialize_entry("dtype", &code)?,
            known => map.serialize_entry("dtype", &known.map(|(name, _)| name))?,
        }
        map.serialize_entry("shape", &value.shape)
    }

    impl Serialize for Dim {
        /// Writes a number, or the symbol as text.
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self {
                Self::Fixed(elements) => serializer.serialize_u32(*elements),
                Self::Symbol(symbol) => serializer.serialize_str(symbol),
            }
        }
    }

    /// Inline elements that are few enough to be written.
    const FEW: usize = 64;

    /// Levels of subgraphs that are written: more than a file can have.
    const MAX_DEPTH: u32 = 64;
}
