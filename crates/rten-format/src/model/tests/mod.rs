//! Tests of the typed model, and what others make models with.

pub(crate) mod any;
mod wire;

use bytes::Bytes;
use proptest::{prop_assert_eq, proptest};
use tensor_core::{Limits, Report, Severity};

use super::*;
use crate::{
    Constant, ConstantData, Dim, Error, Node, NodeKind, Operator, OperatorType, Reader, Value,
    WriteOptions,
    attributes::{EinsumAttrs, IfAttrs, LoopAttrs},
    model::tests::any::Any as _,
};

#[track_caller]
fn rejects(bytes: Vec<u8>, message: &str) {
    let error = Model::parse(bytes, &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), message);
}

fn operator(attributes: impl Into<crate::Attributes>) -> Operator {
    Operator {
        operator_type: OperatorType::If,
        attributes: Some(attributes.into()),
        inputs: vec![Some(0), None],
        outputs: vec![None, Some(1)],
    }
}

fn constant(data: ConstantData) -> Constant {
    Constant { shape: vec![2], dtype: None, data: Some(data), data_offset: None }
}

/// A model with something of everything.
fn model() -> Model {
    let branch = Graph {
        nodes: vec![Node { name: None, kind: NodeKind::Missing }],
        captures: vec![0],
        ..Graph::default()
    };
    let external = Constant {
        shape: vec![2, 3],
        dtype: Some(crate::ConstantDataType::Float32),
        data: None,
        data_offset: Some(1 << 32),
    };
    let dims = vec![Dim::Symbol("batch".to_owned()), Dim::Fixed(4)];
    let nodes = vec![
        Node::named("float", constant(ConstantData::Float(vec![1; 8].into()))),
        Node::named("int32", constant(ConstantData::Int32(vec![2; 8].into()))),
        Node::named("int8", constant(ConstantData::Int8(vec![3; 2].into()))),
        Node::named("uint8", constant(ConstantData::UInt8(vec![4; 2].into()))),
        Node::named("external", external),
        Node::named("value", Value { shape: Some(dims), dtype: Some(crate::DataType::Int8) }),
        Node::named("unknown", Value::default()),
        Node::named("", operator(EinsumAttrs { equation: Some("i,i->".to_owned()) })),
        Node::named(
            "if",
            operator(IfAttrs { then_branch: Some(Box::new(branch)), else_branch: None }),
        ),
    ];
    let graph = Graph { nodes, inputs: vec![5], outputs: vec![6], captures: vec![] };
    let license = Some("MIT".to_owned());
    Model { graph, metadata: Some(Metadata { license, ..Metadata::default() }) }
}

/// A model with loops in loops.
fn nested(depth: u32) -> Model {
    let mut graph = Graph::default();
    for _ in 0..depth {
        let kind = operator(LoopAttrs { body: Some(Box::new(graph)) }).into();
        graph = Graph { nodes: vec![Node { name: None, kind }], ..Graph::default() };
    }
    Model { graph, metadata: None }
}

#[test]
fn everything_reads_back() {
    let bytes = model().to_bytes().unwrap();
    assert_eq!(bytes, model().to_bytes().unwrap());
    assert_eq!(Model::parse(bytes, &Limits::default()).unwrap(), model());
}

#[test]
fn bytes_are_fewer_than_measured() {
    let mut size = Size::default();
    model().graph.measure(&mut size).unwrap();
    size.require().unwrap();
    size.bytes(i32::MAX as u64);
    let error = size.require().unwrap_err().to_string();
    assert!(error.ends_with(" bytes, over the FlatBuffers limit of 2147483647"), "{error}");
}

#[test]
fn subgraphs_are_as_deep_as_readers_allow() {
    let bytes = nested(15).to_bytes().unwrap();
    assert_eq!(Model::parse(bytes, &Limits::default()).unwrap(), nested(15));
    let error = nested(16).to_bytes().unwrap_err();
    assert_eq!(
        error.to_string(),
        "subgraphs are nested deeper than 15 levels, which no reader of RTen allows"
    );
}

#[test]
fn deeper_tables() {
    let mut builder = Builder::new();
    let graph = Some(nested(16).graph.build(&mut builder).unwrap());
    let args = stored::ModelArgs { schema_version: 1, graph, metadata: None };
    let root = stored::Model::create(builder.fbb(), &args);
    rejects(
        builder.finish(root),
        "model data has tables nested deeper than the limit of 64 (Limits::depth)",
    );
    let bytes = nested(15).to_bytes().unwrap();
    let error = Model::parse(bytes, &Limits::default().with_depth(8)).unwrap_err();
    assert!(matches!(error, Error::TooDeep { limit: 8 }), "{error}");
}

/// Builds model data in which a graph holds one node many times.
fn repeated(node: &Node, times: usize) -> Vec<u8> {
    let mut builder = Builder::new();
    let node = node.build(&mut builder).unwrap();
    let nodes = Some(builder.fbb().create_vector(&vec![node; times]));
    let args = stored::GraphArgs { nodes, ..Default::default() };
    let graph = Some(stored::Graph::create(builder.fbb(), &args));
    let args = stored::ModelArgs { schema_version: 1, graph, metadata: None };
    let root = stored::Model::create(builder.fbb(), &args);
    builder.finish(root)
}

#[test]
fn tables_shared_too_often() {
    let shape = Some(vec![Dim::Fixed(1); 20]);
    let bytes = repeated(&Node::named("shared", Value { shape, dtype: None }), 1000);
    let limit = bytes.len() / 4;
    rejects(
        bytes,
        &format!(
            "model data has more than {limit} tables, those that are shared counted each time, expected one in 4 bytes, at most 10000000"
        ),
    );
}

#[test]
fn vectors_shared_too_often() {
    let bytes = vec![0; 1 << 20];
    let node = Node::named("shared", constant(ConstantData::UInt8(bytes.into())));
    rejects(
        repeated(&node, 17),
        "model data is malformed: part at byte 188 needs more bytes than the limit of 16780224 for \
         all parts, shared ones counted each time",
    );
}

#[test]
fn other_schema_version() {
    let mut builder = Builder::new();
    let graph = Some(Graph::default().build(&mut builder).unwrap());
    let args = stored::ModelArgs { graph, ..Default::default() };
    let root = stored::Model::create(builder.fbb(), &args);
    rejects(builder.finish(root), "schema_version of the model is 0, expected 1");
}

#[test]
fn missing_graph() {
    let mut builder = Builder::new();
    let table = builder.fbb().start_table();
    builder.fbb().push_slot_always(stored::Model::VT_SCHEMA_VERSION, SCHEMA_VERSION);
    let table = builder.fbb().end_table(table);
    rejects(
        builder.finish(table),
        "model data is malformed: graph at byte 12 is absent, expected in every such table",
    );
}

#[test]
fn node_ids_beyond_the_format() {
    let mut model = model();
    let mut operator = operator(EinsumAttrs::default());
    operator.inputs = vec![Some(1 << 31)];
    model.graph.nodes.push(Node { name: None, kind: operator.into() });
    assert_eq!(
        model.to_bytes().unwrap_err().to_string(),
        "node id 2147483648 is over the limit of the format, 2147483647"
    );
}

#[test]
fn constants_of_whole_elements() {
    let data = ConstantData::Float(vec![0; 7].into());
    let nodes = vec![Node { name: None, kind: constant(data).into() }];
    let model = Model { graph: Graph { nodes, ..Graph::default() }, metadata: None };
    assert_eq!(
        model.to_bytes().unwrap_err().to_string(),
        "constant data of 7 bytes is not a whole number of elements of 4 bytes"
    );
}

#[test]
fn constants_are_slices_of_model_data() {
    let bytes = Bytes::from(model().to_bytes().unwrap());
    let read = Model::parse(bytes.clone(), &Limits::default()).unwrap();
    let NodeKind::Constant(constant) = &read.graph.nodes[0].kind else { panic!() };
    let Some(ConstantData::Float(data)) = &constant.data else { panic!() };
    assert!(bytes.as_ptr_range().contains(&data.as_ptr()));
}

/// Lists rules and paths of errors.
fn errors(report: &Report) -> Vec<(String, Option<String>)> {
    let errors = report.findings().iter().filter(|found| found.severity == Severity::Error);
    let mut errors: Vec<_> =
        errors.map(|found| (found.rule.to_string(), found.at.path.clone())).collect();
    errors.sort();
    errors
}

proptest! {
    /// A writer refuses what its reader could not read, or adds nothing to what is wrong.
    #[test]
    fn files_have_the_errors_of_their_models(graph in Box::<Graph>::any()) {
        let model = Model { graph: *graph, metadata: None };
        for inline_elements in [0, 16] {
            let options = WriteOptions::default().inline_elements(inline_elements).unchecked();
            let Ok(mut writer) = options.write_to(Vec::new(), &model) else { continue };
            while let Some(pending) = writer.pending() {
                let elements = vec![0; pending.info.byte_len().unwrap() as usize];
                writer.add(&elements).unwrap();
            }
            let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
            prop_assert_eq!(errors(&reader.validate()), errors(&model.lint()));
        }
    }
}

#[test]
fn every_truncation() {
    let bytes = model().to_bytes().unwrap();
    test_support::truncations(&bytes, |bytes| {
        let _ = Model::parse(bytes.to_vec(), &Limits::default());
    });
}

#[test]
fn changed_bytes_never_panic() {
    let bytes = model().to_bytes().unwrap();
    test_support::mutations(&bytes, |bytes| {
        let Ok(model) = Model::parse(bytes.to_vec(), &Limits::default()) else {
            return;
        };
        if let Ok(bytes) = model.to_bytes() {
            Model::parse(bytes, &Limits::default()).unwrap();
        }
    });
}
