//! Files are read as their facts say, and no more of them than is asked for.

use std::{collections::VecDeque, fs};

use rten_format::{
    Constant, ConstantData, ConstantDataType, Graph, Header, Model, Node, Operator, OperatorType,
    Reader, Tensor, Version,
    attributes::LoopAttrs,
    tensor_core::{Extent, Limits, digest::Algorithm},
};
use serde_json::{Value as Json, json};
use test_support::{CountingSource, files};

fn constant(shape: &[u32], data: Option<ConstantData>, data_offset: Option<u64>) -> Constant {
    let dtype = data_offset.map(|_| ConstantDataType::Float32);
    Constant { shape: shape.to_vec(), dtype, data, data_offset }
}

fn floats(values: &[f32]) -> Option<ConstantData> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Some(ConstantData::Float(bytes.into()))
}

fn model(nodes: Vec<Node>) -> Model {
    Model { graph: Graph { nodes, ..Graph::default() }, metadata: None }
}

/// Lays a file of version 2 out as RTen's converter does.
fn version_2(model: &Model, tensor_data: &[u8]) -> Vec<u8> {
    let model_data = model.to_bytes().unwrap();
    let extent = Extent::new(Header::LEN, model_data.len() as u64).unwrap();
    let tensor_data_offset = extent.end().next_multiple_of(64);
    let mut file = Header { model_data: extent, tensor_data_offset }.to_bytes();
    file.extend(model_data);
    file.resize(tensor_data_offset as usize, 0);
    file.extend(tensor_data);
    file
}

/// Lists the facts about all constants, those of subgraphs where their operator is.
fn constants(graph: &Json) -> Vec<Json> {
    let mut found = Vec::new();
    let mut nodes: VecDeque<Json> = graph["nodes"].as_array().unwrap().clone().into();
    while let Some(node) = nodes.pop_front() {
        if node["kind"] == "ConstantNode" {
            found.push(node);
            continue;
        }
        let branches = ["then_branch", "else_branch", "body"];
        let inner =
            branches.into_iter().filter_map(|branch| node["attrs"][branch]["nodes"].as_array());
        for node in inner.flatten().rev() {
            nodes.push_front(node.clone());
        }
    }
    found
}

fn assert_tensor(tensor: Tensor<'_>, facts: &Json, at: &str) {
    let path = tensor.path();
    let at = format!("{at}: {path}");
    assert_eq!(json!(tensor.name()), facts["name"], "{at}");
    assert_eq!(json!(tensor.node()), facts["index"], "{at}");
    let info = tensor.info().unwrap();
    assert_eq!(json!(info.shape.dims()), facts["shape"], "{at}");
    let extent = tensor.extent().unwrap().unwrap();
    assert_eq!(json!(extent.len()), facts["byte_len"], "{at}");
    if !extent.is_empty() {
        assert_eq!(json!(extent.offset()), facts["file_pos"], "{at}");
    }
    let bytes = tensor.bytes().unwrap();
    let digest = Algorithm::Sha256.digest(&bytes).to_string();
    assert_eq!(digest.strip_prefix("sha256:"), facts["sha256"].as_str(), "{at}");
    let mut buffer = vec![1; bytes.len()];
    tensor.read_into(&mut buffer).unwrap();
    assert_eq!(buffer, bytes, "{at}");
    assert_eq!(tensor.read().unwrap().info(), &info, "{at}");
    tensor.verify().unwrap();
}

#[test]
fn constants_are_as_their_facts_say() {
    for path in files("rten/valid", "rten") {
        let facts = fs::read(path.with_extension("facts.json")).unwrap();
        let facts: Json = serde_json::from_slice(&facts).unwrap();
        let at = path.display().to_string();
        let in_file = Reader::open(&path).unwrap();
        let in_memory = Reader::from_bytes(fs::read(&path).unwrap()).unwrap();
        for reader in [in_file, in_memory] {
            let (version, header) = match reader.header() {
                None => (Version::V1, Json::Null),
                Some(header) => {
                    let header = json!({
                        "version": 2,
                        "model_data_offset": header.model_data.offset(),
                        "model_data_len": header.model_data.len(),
                        "tensor_data_offset": header.tensor_data_offset,
                    });
                    (Version::V2, header)
                }
            };
            assert_eq!(facts["container"], format!("{version:?}"), "{at}");
            assert_eq!(reader.version(), version, "{at}");
            assert_eq!(facts.get("header").unwrap_or(&Json::Null), &header, "{at}");
            let expected = constants(&facts["graph"]);
            assert_eq!(reader.tensors().len(), expected.len(), "{at}");
            for (tensor, facts) in reader.tensors().zip(&expected) {
                assert_tensor(tensor, facts, &at);
            }
        }
    }
}

#[test]
fn opening_reads_header_and_model_data() {
    let nodes = vec![Node::named("w", constant(&[4], None, Some(64)))];
    let file = version_2(&model(nodes), &[7; 80]);
    let counting = CountingSource::new(&file);
    let reader = Reader::from_source(counting.source()).unwrap();
    let header = *reader.header().unwrap();
    assert_eq!(counting.take_reads(), [Extent::first(Header::LEN), header.model_data]);
    let tensor = reader.tensor("w").unwrap();
    tensor.info().unwrap();
    assert_eq!(counting.take_reads(), []);
    assert_eq!(tensor.bytes().unwrap(), [7; 16].as_slice());
    assert_eq!(counting.take_reads(), [tensor.extent().unwrap().unwrap()]);
}

#[test]
fn length_of_the_tensor_data_costs_nothing() {
    let nodes = vec![Node::named("w", constant(&[1 << 10, 1 << 20], None, Some(0)))];
    let start = version_2(&model(nodes), &[]);
    let len = start.len() as u64 + (4 << 30);
    let store = CountingSource::with_zeros(&start, 4 << 30);
    let reader = Reader::from_source(store.source()).unwrap();
    let extent = reader.tensor("w").unwrap().extent().unwrap().unwrap();
    assert_eq!((extent.len(), extent.end()), (4 << 30, len));
    assert!(store.take_reads().iter().all(|read| !read.overlaps(extent)));

    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &start).unwrap();
    file.as_file().set_len(len).unwrap();
    let reader = Reader::open(file.path()).unwrap();
    let tensor = reader.tensor("w").unwrap();
    assert_eq!(tensor.extent().unwrap().unwrap(), extent);
    let limits = Limits::default().with_decoded_bytes(1 << 30);
    let reader = Reader::options().limits(limits).open(file.path()).unwrap();
    let error = reader.tensor("w").unwrap().bytes().unwrap_err();
    assert_eq!(
        error.to_string(),
        "bytes of a constant is 4294967296, over the limit of 1073741824 (Limits::decoded_bytes)"
    );
}

#[test]
fn memory_is_not_copied() {
    let nodes = vec![
        Node::named("inline", constant(&[2], floats(&[1.0, 2.0]), None)),
        Node::named("external", constant(&[4], None, Some(0))),
    ];
    let file = bytes::Bytes::from(version_2(&model(nodes), &[7; 16]));
    let reader = Reader::from_bytes(file.clone()).unwrap();
    for tensor in reader.tensors() {
        let bytes = tensor.bytes().unwrap();
        assert!(file.as_ptr_range().contains(&bytes.as_ptr()), "{}", tensor.path());
    }
}

#[test]
fn data_offset_wins_over_inline_data() {
    let mut both = constant(&[1], floats(&[1.0]), Some(0));
    both.dtype = Some(ConstantDataType::Int32);
    let file = version_2(&model(vec![Node::named("w", both)]), &[9, 0, 0, 0]);
    let reader = Reader::from_bytes(file).unwrap();
    let tensor = reader.tensor("w").unwrap();
    assert_eq!(tensor.read().unwrap().view().to_vec::<i32>().unwrap(), [9]);
}

#[test]
fn dtype_of_inline_data_is_its_own() {
    let mut inline = constant(&[1], floats(&[1.5]), None);
    inline.dtype = Some(ConstantDataType::Int32);
    let file = model(vec![Node::named("w", inline)]).to_bytes().unwrap();
    let reader = Reader::from_bytes(file).unwrap();
    assert_eq!(reader.tensor("w").unwrap().info().unwrap().to_string(), "f32 [1]");
}

#[test]
fn names_in_the_main_graph_come_first() {
    let named = |name, value| Node::named(name, constant(&[], floats(&[value]), None));
    let body = model(vec![named("w", 1.0), named("inner", 2.0)]).graph;
    let operator = Operator {
        operator_type: OperatorType::Loop,
        attributes: Some(LoopAttrs { body: Some(Box::new(body)) }.into()),
        inputs: vec![],
        outputs: vec![],
    };
    let nodes = vec![named("w", 3.0), Node::named("loop", operator), named("w", 4.0)];
    let reader = Reader::from_bytes(model(nodes).to_bytes().unwrap()).unwrap();
    let found = |name: &str| {
        let tensor = reader.tensor(name)?;
        Some((tensor.path(), tensor.read().unwrap().view().to_vec::<f32>().unwrap()[0]))
    };
    assert_eq!(found("w"), Some(("graph/node 2 \"w\"".to_owned(), 4.0)));
    assert_eq!(found("inner"), Some(("graph/body/node 1 \"inner\"".to_owned(), 2.0)));
    assert_eq!(found("loop"), None);
    assert_eq!(found(""), None);
    let names: Vec<_> = reader.tensors().map(Tensor::path).collect();
    assert_eq!(
        names,
        [
            "graph/node 0 \"w\"",
            "graph/body/node 0 \"w\"",
            "graph/body/node 1 \"inner\"",
            "graph/node 2 \"w\"",
        ]
    );
}

#[test]
fn model_data_may_follow_the_tensors() {
    let nodes = vec![Node::named("w", constant(&[4], None, Some(0)))];
    let model_data = model(nodes).to_bytes().unwrap();
    let extent = Extent::new(64, model_data.len() as u64).unwrap();
    let mut file = Header { model_data: extent, tensor_data_offset: 32 }.to_bytes();
    file.extend([7; 16]);
    file.resize(64, 0);
    file.extend(model_data);
    let reader = Reader::from_bytes(file).unwrap();
    assert_eq!(reader.tensor("w").unwrap().bytes().unwrap(), [7; 16].as_slice());
}

#[test]
fn readers_are_shared_between_threads() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<Reader>();
}

#[test]
fn limits_are_named() {
    let file = model(vec![
        Node::named("a", constant(&[1; 5], floats(&[1.0]), None)),
        Node::named("b", constant(&[], floats(&[1.0]), None)),
    ]);
    let file = file.to_bytes().unwrap();
    let open = |limits| Reader::options().limits(limits).from_bytes(file.clone());
    assert_eq!(
        open(Limits::default().with_tensors(1)).unwrap_err().to_string(),
        "number of constants is 2, over the limit of 1 (Limits::tensors)"
    );
    assert_eq!(
        open(Limits::default().with_manifest_bytes(100)).unwrap_err().to_string(),
        format!(
            "model data in bytes is {}, over the limit of 100 (Limits::manifest_bytes)",
            file.len()
        )
    );
    let reader = open(Limits::default().with_rank(4)).unwrap();
    let error = reader.tensor("a").unwrap().bytes().unwrap_err();
    assert_eq!(
        error.to_string(),
        "graph/node 0 \"a\" cannot be read: rank is 5, over the limit of 4 (Limits::rank)"
    );
    assert_eq!(error.rule(), "rten/limit");
}

#[test]
fn buffer_of_another_length() {
    let file = model(vec![Node::named("a", constant(&[], floats(&[1.0]), None))]);
    let reader = Reader::from_bytes(file.to_bytes().unwrap()).unwrap();
    let error = reader.tensor("a").unwrap().read_into(&mut [0; 3]).unwrap_err();
    assert_eq!(error.to_string(), "inline data is 4 bytes long, but the buffer holds 3");
}
