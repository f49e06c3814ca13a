//! Files of RTen's own converters hold what its own bindings find in them.
//!
//! Each `NAME.rten` has a `NAME.facts.json` that was printed by the converter's generated reader.

use std::{fs, path::Path};

use rten_format::{
    AttributeValue, Attributes, Constant, ConstantData, ConstantDataType, DataType, Dim, Graph,
    Metadata, Model, Node, NodeKind, Operator, OperatorType, Reader, Release, Value,
    tensor_core::Limits,
};
use serde_json::{Map, Value as Json, json};
use tensor_core::digest::Algorithm;

/// Returns the model data of a file: what the header of version 2 points to, or the whole file.
fn model_data(file: &[u8]) -> &[u8] {
    if !file.starts_with(b"RTEN") {
        return file;
    }
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let (offset, len) = (number(8), number(16));
    &file[offset..offset + len]
}

fn for_each_file(mut check: impl FnMut(&str, &[u8], &Json)) {
    let files = test_support::files("rten/valid", "rten");
    assert_eq!(files.len(), 22);
    for path in files {
        let facts = read_json(&path.with_extension("facts.json"));
        check(path.file_name().unwrap().to_str().unwrap(), &fs::read(&path).unwrap(), &facts);
    }
}

fn read_json(path: &Path) -> Json {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn models_are_as_their_facts_say() {
    for_each_file(|name, file, facts| {
        let model = Model::parse(model_data(file).to_vec(), &Limits::default()).unwrap();
        assert_eq!(metadata(model.metadata.as_ref()), facts["metadata"], "{name}");
        assert_graph(&model.graph, &facts["graph"], name);
    });
}

#[test]
fn models_read_back() {
    for_each_file(|name, file, _| {
        let model = Model::parse(model_data(file).to_vec(), &Limits::default()).unwrap();
        let written = model.to_bytes().unwrap();
        assert_eq!(Model::parse(written, &Limits::default()).unwrap(), model, "{name}");
    });
}

/// Attributes stand only where the operator has some, and no input is above the maximum.
#[test]
fn operators_are_as_the_format_says() {
    for_each_file(|name, file, _| {
        let model = Model::parse(model_data(file).to_vec(), &Limits::default()).unwrap();
        for_each_operator(&model.graph, &mut |operator| {
            let info = operator.operator_type.info().unwrap();
            let stored = operator.attributes.as_ref().map(Attributes::attributes_type);
            if stored.is_some() || info.attributes.is_required() {
                assert_eq!(stored, info.attributes.attributes_type(), "{name}: {}", info.name);
            }
            let inputs = operator.inputs.len() as u32;
            assert!(inputs <= info.max_inputs.unwrap_or(inputs), "{name}: {}", info.name);
        });
    });
}

#[test]
fn corpus_has_every_operator_and_table() {
    let mut operators = Vec::new();
    let mut tables = Vec::new();
    for_each_file(|_, file, _| {
        let model = Model::parse(model_data(file).to_vec(), &Limits::default()).unwrap();
        for_each_operator(&model.graph, &mut |operator| {
            operators.push(operator.operator_type.code());
            tables.extend(operator.attributes.iter().map(|table| table.attributes_type().code()));
        });
    });
    operators.sort_unstable();
    operators.dedup();
    tables.sort_unstable();
    tables.dedup();
    assert_eq!(operators, (0..145).collect::<Vec<u8>>());
    assert_eq!(tables, (1..=62).collect::<Vec<u8>>());
}

fn for_each_operator(graph: &Graph, check: &mut impl FnMut(&Operator)) {
    for node in &graph.nodes {
        let NodeKind::Operator(operator) = &node.kind else {
            continue;
        };
        check(operator);
        for (_, value) in operator.attributes.iter().flat_map(Attributes::fields) {
            if let AttributeValue::Graph(graph) = value {
                for_each_operator(graph, check);
            }
        }
    }
}

fn metadata(metadata: Option<&Metadata>) -> Json {
    metadata.map_or(Json::Null, |metadata| {
        metadata.fields().into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect()
    })
}

#[track_caller]
fn assert_graph(graph: &Graph, facts: &Json, name: &str) {
    assert_eq!(json!(graph.inputs), facts["inputs"], "{name}");
    assert_eq!(json!(graph.outputs), facts["outputs"], "{name}");
    let captures = facts["captures"].as_array().cloned().unwrap_or_default();
    assert_eq!(json!(graph.captures), Json::Array(captures), "{name}");
    let nodes = facts["nodes"].as_array().unwrap();
    assert_eq!(graph.nodes.len(), nodes.len(), "{name}");
    for (node, facts) in graph.nodes.iter().zip(nodes) {
        assert_node(node, facts, &format!("{name}: node {}", facts["index"]));
    }
}

#[track_caller]
fn assert_node(node: &Node, facts: &Json, at: &str) {
    assert_eq!(json!(node.name), facts["name"], "{at}");
    match (&node.kind, facts["kind"].as_str().unwrap()) {
        (NodeKind::Operator(operator), "OperatorNode") => assert_operator(operator, facts, at),
        (NodeKind::Constant(constant), "ConstantNode") => assert_constant(constant, facts, at),
        (NodeKind::Value(value), "ValueNode") => assert_value(value, facts, at),
        (kind, expected) => panic!("{at} is {kind:?}, expected {expected}"),
    }
}

#[track_caller]
fn assert_operator(operator: &Operator, facts: &Json, at: &str) {
    assert_eq!(json!(operator.operator_type.name()), facts["op"], "{at}");
    assert_eq!(json!(operator.operator_type.code()), facts["op_code"], "{at}");
    let known = OperatorType::from_name(facts["op"].as_str().unwrap());
    assert_eq!(known, Some(operator.operator_type), "{at}");
    let ids = |ids: &[Option<u32>]| -> Json {
        ids.iter().map(|id| id.map_or(json!(-1), |id| json!(id))).collect()
    };
    assert_eq!(ids(&operator.inputs), facts["inputs"], "{at}");
    assert_eq!(ids(&operator.outputs), facts["outputs"], "{at}");
    let Some(attributes) = &operator.attributes else {
        assert_eq!(facts["attrs_type"], json!("NONE"), "{at}");
        return;
    };
    let table = attributes.attributes_type();
    assert_eq!(json!(table.name()), facts["attrs_type"], "{at}");
    assert_eq!(json!(table.code()), facts["attrs_tag"], "{at}");
    let mut expected: Map<String, Json> = facts["attrs"].as_object().cloned().unwrap_or_default();
    let expected_type = expected.remove("value_type");
    for (field, value) in attributes.fields() {
        let at = format!("{at}, {field}");
        let fact = expected.remove(field).unwrap_or_else(|| panic!("{at} is too much"));
        match value {
            AttributeValue::Absent => assert_eq!(fact, Json::Null, "{at}"),
            AttributeValue::Bool(value) => assert_eq!(fact, json!(value), "{at}"),
            AttributeValue::Int(value) => assert_eq!(fact, json!(value), "{at}"),
            AttributeValue::Float(value) => {
                assert_eq!(fact.as_f64(), Some(f64::from(value)), "{at}");
            }
            AttributeValue::Enum { name, .. } => assert_eq!(fact, json!(name), "{at}"),
            AttributeValue::Ints(values) => assert_eq!(fact, json!(values), "{at}"),
            AttributeValue::Uints(values) => assert_eq!(fact, json!(values), "{at}"),
            AttributeValue::Text(text) => assert_eq!(fact, json!(text), "{at}"),
            AttributeValue::Graph(graph) => assert_graph(graph, &fact, &at),
            value => panic!("{at}: {value:?}"),
        }
        if let Some(expected) = &expected_type {
            let is_float = matches!(value, AttributeValue::Float(_));
            assert_eq!(expected, if is_float { "FloatScalar" } else { "IntScalar" }, "{at}");
        }
    }
    assert_eq!(expected, Map::new(), "{at}");
}

#[track_caller]
fn assert_constant(constant: &Constant, facts: &Json, at: &str) {
    assert_eq!(json!(constant.shape), facts["shape"], "{at}");
    let dtype = constant.dtype.and_then(ConstantDataType::name);
    assert_eq!(json!(dtype), facts["dtype"], "{at}");
    assert_eq!(json!(constant.data_offset), facts["data_offset"], "{at}");
    let (member, bytes) = match &constant.data {
        None => ("NONE", None),
        Some(ConstantData::Float(bytes)) => ("FloatData", Some(bytes)),
        Some(ConstantData::Int32(bytes)) => ("Int32Data", Some(bytes)),
        Some(ConstantData::Int8(bytes)) => ("Int8Data", Some(bytes)),
        Some(ConstantData::UInt8(bytes)) => ("UInt8Data", Some(bytes)),
        Some(data) => panic!("{at}: {data:?}"),
    };
    assert_eq!(json!(member), facts["inline_data"], "{at}");
    if let Some(bytes) = bytes {
        assert_eq!(json!(bytes.len()), facts["byte_len"], "{at}");
        let digest = Algorithm::Sha256.digest(bytes).to_string();
        assert_eq!(digest.strip_prefix("sha256:"), facts["sha256"].as_str(), "{at}");
    }
}

#[track_caller]
fn assert_value(value: &Value, facts: &Json, at: &str) {
    let shape = value.shape.as_ref().map(|dims| -> Json {
        let dim = |dim: &Dim| match dim {
            Dim::Fixed(elements) => json!(elements),
            Dim::Symbol(symbol) => json!(symbol),
        };
        dims.iter().map(dim).collect()
    });
    assert_eq!(json!(shape), facts["shape"], "{at}");
    let dtype = value.dtype.and_then(DataType::name);
    assert_eq!(json!(dtype), facts["dtype"], "{at}");
}

/// Converter and runtime of one release go together.
#[test]
fn files_need_no_later_release_than_their_converter() {
    for_each_file(|name, file, _| {
        let reader = Reader::from_bytes(file.to_vec()).unwrap();
        let release = reader.required_release().unwrap();
        let converter = match name {
            "mlp.legacy.v1.rten" => Release::new(4, 0),
            "convnet.legacy.v2.rten" => Release::new(13, 1),
            name if name.starts_with("new_ops") || name.starts_with("old_ops") => {
                Release::new(26, 0)
            }
            _ => Release::new(22, 0),
        };
        assert!(release <= converter, "{name}: {release}");
    });
}

#[test]
fn totals_are_as_the_facts_say() {
    for_each_file(|name, file, facts| {
        let totals = Reader::from_bytes(file.to_vec()).unwrap().model().totals();
        let mut found = [0_u64; 3];
        count(&facts["graph"], &mut found);
        assert_eq!([totals.operators, totals.constants, totals.parameters], found, "{name}");
        let by_operator: u64 = totals.by_operator.iter().map(|(_, count)| count).sum();
        assert_eq!(by_operator, totals.operators, "{name}");
    });
}

fn count(graph: &Json, found: &mut [u64; 3]) {
    for node in graph["nodes"].as_array().unwrap() {
        found[0] += u64::from(node["kind"] == "OperatorNode");
        found[1] += u64::from(node["kind"] == "ConstantNode");
        found[2] += node["elements"].as_u64().unwrap_or_default();
        for branch in ["then_branch", "else_branch", "body"] {
            if node["attrs"][branch].is_object() {
                count(&node["attrs"][branch], found);
            }
        }
    }
}
