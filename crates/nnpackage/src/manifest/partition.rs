//! Import of what circle-partitioner writes about the parts of a model.

use std::collections::{BTreeMap, BTreeSet};

use tensor_core::{Limits, text::short};

use crate::{
    Connection, Error, IoRef, Position, Result,
    json::{Document, Member, Node, Value},
};

/// How a model was divided: the document `NAME.conn.json` of circle-partitioner.
///
/// It names inputs and outputs by their tensors; [`wiring`](Self::wiring) turns names into
/// references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// The model that was divided.
    pub source: PartitionModel,
    /// The models that it became, in order.
    pub parts: Vec<PartitionModel>,
}

/// A model of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionModel {
    /// The file.
    pub file: String,
    /// The names of its inputs, in order.
    pub inputs: Vec<String>,
    /// The names of its outputs, in order.
    pub outputs: Vec<String>,
}

/// The attributes of a manifest that connect the parts of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wiring {
    /// The inputs of the package, in the order of the source.
    pub pkg_inputs: Vec<IoRef>,
    /// The outputs of the package, in the order of the source.
    pub pkg_outputs: Vec<IoRef>,
    /// The edges between parts, by the output that they start at.
    pub connections: Vec<Connection>,
    /// Names that are read or put out, and that no part makes and the source does not take.
    pub missing: Vec<String>,
}

impl Partition {
    /// Reads a `*.conn.json`.
    ///
    /// # Errors
    ///
    /// [`Error::Json`] and [`Error::Document`] where it is none.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Self> {
        let document = Document::parse(WHAT, bytes, limits)?;
        let root = object(&document.root, "root")?;
        let source = member(root, "source", document.root.at)?;
        let parts = member(root, "parts", document.root.at)?;
        let parts = array(parts, "parts")?.iter().enumerate();
        Ok(Self {
            source: model(source, "source")?,
            parts: parts
                .map(|(index, part)| model(part, &format!("parts[{index}]")))
                .collect::<Result<_>>()?,
        })
    }

    /// Matches names: an edge leads from the part that makes a tensor to each one that reads it.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where there are more parts than a package can have models.
    pub fn wiring(&self) -> Result<Wiring> {
        let mut makers: BTreeMap<&str, IoRef> = BTreeMap::new();
        for (part, model) in self.parts.iter().enumerate() {
            let part = position(part)?;
            for (io, name) in (0_u32..).zip(&model.outputs) {
                makers.entry(name).or_insert(IoRef::new(part, 0, io));
            }
        }
        let taken: BTreeSet<&String> = self.source.inputs.iter().collect();
        let mut wiring = Wiring::default();
        let mut edges: BTreeMap<IoRef, Vec<IoRef>> = BTreeMap::new();
        let mut inputs: BTreeMap<&str, Vec<IoRef>> = BTreeMap::new();
        for (part, model) in self.parts.iter().enumerate() {
            let part = position(part)?;
            for (io, name) in (0_u32..).zip(&model.inputs) {
                let to = IoRef::new(part, 0, io);
                if let Some(from) = makers.get(name.as_str()) {
                    edges.entry(*from).or_default().push(to);
                } else if taken.contains(name) {
                    inputs.entry(name).or_default().push(to);
                } else {
                    wiring.missing.push(name.clone());
                }
            }
        }
        for name in &self.source.inputs {
            wiring.pkg_inputs.extend(inputs.remove(name.as_str()).unwrap_or_default());
        }
        for name in &self.source.outputs {
            match makers.get(name.as_str()) {
                Some(from) => wiring.pkg_outputs.push(*from),
                None => wiring.missing.push(name.clone()),
            }
        }
        let edges = edges.into_iter();
        wiring.connections = edges.map(|(from, to)| Connection { from, to }).collect();
        Ok(wiring)
    }
}

fn position(part: usize) -> Result<u16> {
    let over = |_| {
        let (what, found, limit) = ("parts of a partition", part as u64, u16::MAX.into());
        tensor_core::Error::OverLimit { what, found, limit, field: "entries" }
    };
    Ok(u16::try_from(part).map_err(over)?)
}

fn model(node: &Node, path: &str) -> Result<PartitionModel> {
    let members = object(node, path)?;
    let texts = |name: &str| -> Result<Vec<String>> {
        let path = format!("{path}.{name}");
        let items = array(member(members, name, node.at)?, &path)?.iter().enumerate();
        items.map(|(index, item)| text(item, &format!("{path}[{index}]"))).collect()
    };
    Ok(PartitionModel {
        file: text(member(members, "file", node.at)?, &format!("{path}.file"))?,
        inputs: texts("inputs")?,
        outputs: texts("outputs")?,
    })
}

fn member<'n>(members: &'n [Member], name: &str, at: Position) -> Result<&'n Node> {
    let found = members.iter().rev().find(|member| member.key == name);
    found.map(|member| &member.value).ok_or_else(|| Error::Document {
        what: WHAT,
        at,
        path: short(name).into_owned(),
        found: "missing".to_owned(),
        expected: "source and parts, each with file, inputs and outputs",
    })
}

fn object<'n>(node: &'n Node, path: &str) -> Result<&'n [Member]> {
    match &node.value {
        Value::Object(members) => Ok(members),
        _ => Err(fault(node, path, "an object")),
    }
}

fn array<'n>(node: &'n Node, path: &str) -> Result<&'n [Node]> {
    match &node.value {
        Value::Array(items) => Ok(items),
        _ => Err(fault(node, path, "an array")),
    }
}

fn text(node: &Node, path: &str) -> Result<String> {
    match &node.value {
        Value::Text(text) => Ok(text.clone()),
        _ => Err(fault(node, path, "a text")),
    }
}

fn fault(node: &Node, path: &str, expected: &'static str) -> Error {
    let (what, at, found) = (WHAT, node.at, node.value.describe().into_owned());
    Error::Document { what, at, path: path.to_owned(), found, expected }
}

const WHAT: &str = "conn.json";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Partition> {
        Partition::parse(text.as_bytes(), &Limits::default())
    }

    /// Two parts, of which the second reads what the first makes and an input of the whole.
    const TWO: &str = r#"{
      "source": {"file": "net.circle", "inputs": ["a", "b"], "outputs": ["z", "m"]},
      "parts": [
        {"file": "net.00000_cpu.circle", "inputs": ["a"], "outputs": ["m"]},
        {"file": "net.00001_acl.circle", "inputs": ["b", "m"], "outputs": ["z"]}
      ]
    }"#;

    #[test]
    fn names_become_references() {
        let wiring = parse(TWO).unwrap().wiring().unwrap();
        assert_eq!(wiring.pkg_inputs, [IoRef::new(0, 0, 0), IoRef::new(1, 0, 0)]);
        assert_eq!(wiring.pkg_outputs, [IoRef::new(1, 0, 0), IoRef::new(0, 0, 0)]);
        let expected = Connection { from: IoRef::new(0, 0, 0), to: vec![IoRef::new(1, 0, 1)] };
        assert_eq!(wiring.connections, [expected]);
        assert_eq!(wiring.missing, [""; 0]);
    }

    #[test]
    fn names_that_nothing_makes() {
        let text = TWO.replace("\"inputs\": [\"a\", \"b\"]", "\"inputs\": [\"a\"]");
        assert_eq!(parse(&text).unwrap().wiring().unwrap().missing, ["b"]);
    }

    #[test]
    fn other_documents() {
        for (text, message) in [
            ("[]", "conn.json line 1 column 1: root is an array, expected an object"),
            (
                "{\"parts\": []}",
                "conn.json line 1 column 1: source is missing, expected source and parts, each with \
                 file, inputs and outputs",
            ),
            (
                "{\"source\": {\"file\": 1}, \"parts\": []}",
                "conn.json line 1 column 21: source.file is 1, expected a text",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message);
        }
    }
}
