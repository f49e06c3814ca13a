//! Which release of RTen reads a model.

use std::collections::BTreeMap;

use crate::{
    AttributesType, Constant, ConstantData, ConstantDataType, Model, NodeKind, Operator, Reader,
    Release, Version, topology,
};

/// What a file asks of the release of RTen that reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requirements {
    /// Everything that not every release reads, newest first; what no release is known to read
    /// comes before all else.
    pub reasons: Vec<Requirement>,
}

/// Something that not every release of RTen reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Requirement {
    /// What it is, such as `operator Gelu`.
    pub what: String,
    /// The first release that reads it; `None` where that is not known.
    pub since: Option<Release>,
    /// How often it is in the file.
    pub count: u64,
    /// Where it is first; `None` for what the file is as a whole.
    pub path: Option<String>,
}

impl Requirements {
    /// Returns the first release that reads everything; `None` where the file has something that
    /// this crate does not know.
    #[must_use]
    pub fn release(&self) -> Option<Release> {
        self.reasons.first().map_or(Some(Release::OLDEST), |reason| reason.since)
    }
}

impl Model {
    /// Returns which release of RTen reads this model from a file of this version, and why.
    ///
    /// Operators count, their attributes where they are not at their defaults, and how constants
    /// are stored. Whether the model is valid is not looked at.
    #[must_use]
    pub fn requirements(&self, version: Version) -> Requirements {
        let mut found: BTreeMap<String, Found> = BTreeMap::new();
        let mut note = |what: String, since: Option<Release>, at| {
            if since != Some(Release::OLDEST) {
                let found = found.entry(what).or_insert(Found { since, count: 0, at });
                found.count = found.count.saturating_add(1);
            }
        };
        let scopes = topology::walk(&self.graph, |scope, id, node| match &node.kind {
            NodeKind::Operator(operator) => {
                of_operator(operator, |what, since| note(what, since, (scope, id)));
            }
            NodeKind::Constant(constant) => {
                of_constant(constant, |what, since| note(what, since, (scope, id)));
            }
            NodeKind::Value(_) => {}
            NodeKind::Unknown(_) | NodeKind::Missing => {
                note("node of an unknown type".to_owned(), None, (scope, id));
            }
        });
        let reasons = found.into_iter().map(|(what, Found { since, count, at: (scope, id) })| {
            let path = scopes.get(scope).map(|scope| scope.node_path(id));
            Requirement { what, since, count, path }
        });
        let mut reasons: Vec<Requirement> = reasons.collect();
        if version == Version::V2 {
            let (what, since) = ("file of version 2".to_owned(), Some(VERSION_2));
            reasons.push(Requirement { what, since, count: 1, path: None });
        }
        reasons.sort_by_key(|reason| (reason.since.is_some(), std::cmp::Reverse(reason.since)));
        Requirements { reasons }
    }
}

/// What is known of one requirement on the way.
struct Found {
    since: Option<Release>,
    count: u64,
    /// Graph and id of the first node.
    at: (usize, u32),
}

fn of_operator(operator: &Operator, mut note: impl FnMut(String, Option<Release>)) {
    let info = operator.operator_type.info();
    note(format!("operator {}", operator.operator_type), info.map(|info| info.since));
    let Some(attributes) = &operator.attributes else { return };
    let table = attributes.attributes_type();
    // Other tables are ignored, by every release.
    if info.is_some_and(|info| info.attributes.attributes_type() != Some(table)) {
        return;
    }
    // The table alone is as old as the operator; what is newer was added to it.
    let (table_since, since) = (table.since(), attributes.since());
    if since != table_since || info.is_some_and(|info| since > Some(info.since)) {
        let name = table.name().map_or_else(|| unknown(table), str::to_owned);
        match since {
            Some(since) => note(format!("{name} with what {since} added"), Some(since)),
            None => note(format!("{name} with an unknown value"), None),
        }
    }
}

fn unknown(table: AttributesType) -> String {
    format!("attributes {}", table.code())
}

fn of_constant(constant: &Constant, mut note: impl FnMut(String, Option<Release>)) {
    if constant.data_offset.is_some() {
        note("constant in the tensor data".to_owned(), Some(VERSION_2));
        if let Some(dtype) = constant.dtype {
            // All types that external constants may have are as old as these, or newer.
            let newer = dtype.since().filter(|since| *since > VERSION_2);
            if newer.is_some() || matches!(dtype, ConstantDataType::Unknown(_)) {
                note(format!("constant of type {dtype}"), newer);
            }
        }
        return;
    }
    match &constant.data {
        Some(ConstantData::Int8(_)) => {
            note("constant of type Int8".to_owned(), ConstantDataType::Int8.since());
        }
        Some(ConstantData::UInt8(_)) => {
            note("constant of type UInt8".to_owned(), ConstantDataType::UInt8.since());
        }
        Some(ConstantData::Unknown(table)) => {
            note(format!("constant data of unknown type {}", table.tag()), None);
        }
        _ => {}
    }
}

/// The first release that reads files of version 2.
const VERSION_2: Release = Release::new(11, 0);

impl Reader {
    /// Returns the first release of RTen that reads the file; `None` where there is something in it
    /// that this crate does not know. [`requirements`](Self::requirements) says why.
    #[must_use]
    pub fn required_release(&self) -> Option<Release> {
        self.requirements().release()
    }

    /// Returns which release of RTen reads the file, and why.
    #[must_use]
    pub fn requirements(&self) -> Requirements {
        let mut found = self.model().requirements(self.version());
        if let Some((count, path)) = self.unknown_fields() {
            let what = "table with fields of a later release".to_owned();
            found.reasons.insert(0, Requirement { what, since: None, count, path: Some(path) });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Graph, Node, OperatorType, PadMode,
        attributes::{GeluAttrs, PadAttrs},
    };

    fn operator(operator_type: OperatorType, attributes: Option<crate::Attributes>) -> Node {
        Node::named("op", Operator { operator_type, attributes, inputs: vec![], outputs: vec![] })
    }

    #[track_caller]
    fn requires(nodes: Vec<Node>, version: Version, release: Option<&str>, reasons: &[&str]) {
        let model = Model { graph: Graph { nodes, ..Graph::default() }, metadata: None };
        let found = model.requirements(version);
        assert_eq!(found.release().map(|release| release.to_string()).as_deref(), release);
        let whats: Vec<&str> = found.reasons.iter().map(|reason| &*reason.what).collect();
        assert_eq!(whats, reasons);
    }

    #[test]
    fn oldest_release_reads_an_empty_model() {
        requires(vec![], Version::V1, Some("0.2.0"), &[]);
        requires(vec![], Version::V2, Some("0.11.0"), &["file of version 2"]);
    }

    #[test]
    fn newest_operator_decides() {
        let nodes = vec![
            operator(OperatorType::Add, None),
            operator(OperatorType::Gelu, Some(GeluAttrs::default().into())),
            operator(OperatorType::IsNaN, None),
        ];
        let reasons = ["operator IsNaN", "operator Gelu", "file of version 2"];
        requires(nodes, Version::V2, Some("0.21.0"), &reasons);
    }

    #[test]
    fn attributes_may_be_newer() {
        let pad = |mode| vec![operator(OperatorType::Pad, Some(PadAttrs { mode }.into()))];
        requires(
            pad(PadMode::Constant),
            Version::V1,
            Some("0.13.1"),
            &["PadAttrs with what 0.13.1 added"],
        );
        requires(
            pad(PadMode::Wrap),
            Version::V1,
            Some("0.22.0"),
            &["PadAttrs with what 0.22.0 added"],
        );
        requires(pad(PadMode::Unknown(9)), Version::V1, None, &["PadAttrs with an unknown value"]);
    }

    #[test]
    fn unknown_operator_is_read_by_no_known_release() {
        let nodes =
            vec![operator(OperatorType::Unknown(200), None), operator(OperatorType::If, None)];
        requires(nodes, Version::V1, None, &["operator unknown 200", "operator If"]);
    }

    #[test]
    fn constants_of_8_bits_and_outside() {
        let constant = |data, data_offset, dtype| {
            Node::named("w", Constant { shape: vec![0], dtype, data, data_offset })
        };
        let int8 = Some(ConstantData::Int8(bytes::Bytes::new()));
        requires(
            vec![constant(int8, None, None)],
            Version::V1,
            Some("0.14.0"),
            &["constant of type Int8"],
        );
        requires(
            vec![constant(None, Some(0), Some(ConstantDataType::Float32))],
            Version::V2,
            Some("0.11.0"),
            &["constant in the tensor data", "file of version 2"],
        );
        requires(
            vec![constant(None, Some(0), Some(ConstantDataType::Unknown(7)))],
            Version::V2,
            None,
            &["constant of type unknown 7", "constant in the tensor data", "file of version 2"],
        );
    }
}
