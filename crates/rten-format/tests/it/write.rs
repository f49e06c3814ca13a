//! What is written reads back, is laid out as RTen's converter does it, and is the same each time.

use std::{
    fs,
    io::{self, Write},
};

use bytes::Bytes;
use rten_format::{
    Attributes, Constant, ConstantData, ConstantDataType, Graph, GraphBuilder, Header, Model, Node,
    NodeKind, Reader, Rewrite, Tensor, Version, WriteOptions, Writer,
    tensor_core::{Extent, Limits, TensorBuf},
};
use test_support::{CountingSource, files, testdata};

/// Every file that RTen's converter wrote, with its name.
fn corpus() -> Vec<(String, Reader)> {
    let open = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, Reader::open(path).unwrap())
    };
    files("rten/valid", "rten").into_iter().map(open).collect()
}

fn visit(graph: &mut Graph, change: &mut impl FnMut(&mut Constant)) {
    for node in &mut graph.nodes {
        match &mut node.kind {
            NodeKind::Constant(constant) => change(constant),
            NodeKind::Operator(operator) => {
                let attributes = operator.attributes.as_mut();
                for (_, graph) in attributes.into_iter().flat_map(Attributes::subgraphs_mut) {
                    visit(graph, change);
                }
            }
            _ => {}
        }
    }
}

/// Takes away what depends on where elements are.
fn bare(model: &Model) -> Model {
    let mut model = model.clone();
    visit(&mut model.graph, &mut |constant| {
        *constant = Constant { dtype: None, data: None, data_offset: None, ..constant.clone() };
    });
    model
}

fn contents(reader: &Reader) -> Vec<(String, String, Bytes)> {
    let content = |tensor: Tensor<'_>| {
        (tensor.path(), tensor.info().unwrap().to_string(), tensor.bytes().unwrap())
    };
    reader.tensors().map(content).collect()
}

#[track_caller]
fn assert_same(found: &Reader, expected: &Reader, at: &str) {
    assert_eq!(bare(found.model()), bare(expected.model()), "{at}");
    assert_eq!(contents(found), contents(expected), "{at}");
    let rules = |reader: &Reader| {
        let report = reader.validate();
        let rules = report.findings().iter().map(|finding| finding.rule.clone());
        rules.collect::<Vec<_>>()
    };
    assert_eq!(rules(found), rules(expected), "{at}");
}

fn v2(reader: &Reader) -> Reader {
    let bytes = Rewrite::new(reader).write_v2(Vec::new()).unwrap();
    assert_eq!(bytes, Rewrite::new(reader).write_v2(Vec::new()).unwrap());
    Reader::from_bytes(bytes).unwrap()
}

fn v1(reader: &Reader) -> Reader {
    Reader::from_bytes(Rewrite::new(reader).to_v1_bytes().unwrap()).unwrap()
}

#[test]
fn every_file_of_the_converter_in_both_versions() {
    for (name, reader) in corpus() {
        let (first, second) = (v1(&reader), v2(&reader));
        assert_eq!((first.version(), second.version()), (Version::V1, Version::V2));
        assert_same(&first, &reader, &name);
        assert_same(&second, &reader, &name);
        assert_same(&v1(&second), &reader, &name);
        assert_same(&v2(&first), &reader, &name);
    }
}

#[test]
fn elements_are_where_the_converter_puts_them() {
    for (name, reader) in corpus() {
        let Some(stem) = name.strip_suffix(".v2.rten") else { continue };
        let places = |reader: &Reader| -> Vec<Option<u64>> {
            reader.tensors().map(|tensor| tensor.constant().data_offset).collect()
        };
        let expected = places(&reader);
        assert_eq!(places(&v2(&reader)), expected, "{name}");
        let first = format!("{stem}.v1.rten");
        if let Some((_, first)) = corpus().into_iter().find(|(name, _)| *name == first) {
            assert_eq!(places(&v2(&first)), expected, "{name}");
        }
        let header = v2(&reader);
        let header = header.header().unwrap();
        assert_eq!(header.model_data.offset(), 32, "{name}");
        assert_eq!(
            header.tensor_data_offset,
            header.model_data.end().next_multiple_of(64),
            "{name}"
        );
    }
}

#[test]
fn wrapping_keeps_the_bytes_of_version_1() {
    for (name, reader) in corpus() {
        let wrapped = Rewrite::new(&reader).write_wrapped(Vec::new());
        if reader.version() == Version::V2 {
            let message = "the file has a header already, expected one of version 1";
            assert_eq!(wrapped.unwrap_err().to_string(), message, "{name}");
            continue;
        }
        let bytes = wrapped.unwrap();
        let old = reader.source().read(reader.model_data(), "").unwrap();
        assert_eq!((&bytes[32..][..old.len()], bytes.len() % 64), (&old[..], 0), "{name}");
        let wrapped = Reader::from_bytes(bytes).unwrap();
        assert_eq!(wrapped.model(), reader.model(), "{name}");
        assert_eq!(Rewrite::new(&wrapped).to_v1_bytes().unwrap(), old, "{name}");
    }
}

#[test]
fn paths_and_sinks_get_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.rten");
    let reader = Reader::open(testdata("rten/valid/mlp.v1.rten")).unwrap();
    let options = WriteOptions::default().inline_elements(0).alignment(4096);
    let rewrite = || Rewrite::new(&reader).options(options);
    rewrite().to_v2(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), rewrite().write_v2(Vec::new()).unwrap());
    let header = *Reader::open(&path).unwrap().header().unwrap();
    assert_eq!(header.tensor_data_offset, 4096);
    rewrite().to_v1(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), rewrite().to_v1_bytes().unwrap());
    rewrite().wrap(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), rewrite().write_wrapped(Vec::new()).unwrap());
}

#[test]
fn shared_elements_stay_shared() {
    let constant = |offset| Constant {
        data_offset: Some(offset),
        ..Constant::described([20], ConstantDataType::UInt8)
    };
    let mut graph = GraphBuilder::new();
    for (name, offset) in [("a", 64), ("b", 0), ("c", 64), ("d", 60)] {
        let id = graph.constant(name, constant(offset)).unwrap();
        graph.output(id).unwrap();
    }
    let model = Model { graph: graph.finish(), metadata: None };
    let elements: Vec<u8> = (0..84).collect();
    let model_data = model.to_bytes().unwrap();
    let extent = Extent::new(32, model_data.len() as u64).unwrap();
    let header = Header { model_data: extent, tensor_data_offset: extent.end() };
    let file = [header.to_bytes(), model_data, elements].concat();
    let reader = Reader::from_bytes(file).unwrap();
    let copy = v2(&reader);
    assert_eq!(contents(&copy), contents(&reader));
    let offsets: Vec<_> = copy.tensors().map(|t| t.constant().data_offset.unwrap()).collect();
    // What overlaps is one part, in which all is where it was.
    assert_eq!(offsets, [4, 64, 4, 0]);
}

/// One constant of 100 bytes that is given, between two that are pending.
fn model() -> Model {
    let given = TensorBuf::from_slice([100], &[7_u8; 100]).unwrap();
    let constants = [
        ("first", Constant::described([5, 4], ConstantDataType::Float32)),
        ("given", Constant::from_tensor(&given).unwrap()),
        ("none", Constant::described([0, 9], ConstantDataType::Int32)),
        ("second", Constant::described([3], ConstantDataType::Int8)),
    ];
    let mut graph = GraphBuilder::new();
    for (name, constant) in constants {
        let id = graph.constant(name, constant).unwrap();
        graph.output(id).unwrap();
    }
    Model { graph: graph.finish(), metadata: None }
}

#[test]
fn pending_elements_come_in_the_order_of_the_file() {
    let model = model();
    let mut writer = Writer::new(Vec::new(), &model).unwrap();
    let pending: Vec<_> = writer.all_pending().map(|pending| pending.path.clone()).collect();
    assert_eq!(pending, ["graph/node 0 \"first\"", "graph/node 3 \"second\""]);
    writer.add(&[1; 80]).unwrap();
    assert_eq!(writer.pending().unwrap().info.to_string(), "i8 [3]");
    writer.stream(&[2, 3, 4][..]).unwrap();
    assert!(writer.pending().is_none());
    let file = writer.finish().unwrap();
    let reader = Reader::from_bytes(file).unwrap();
    assert!(reader.validate().is_empty(), "{:?}", reader.validate());
    assert_eq!(reader.tensor("first").unwrap().bytes().unwrap(), [1; 80][..]);
    assert_eq!(reader.tensor("given").unwrap().bytes().unwrap(), [7; 100][..]);
    assert_eq!(reader.tensor("none").unwrap().bytes().unwrap(), [0; 0][..]);
    assert_eq!(reader.tensor("second").unwrap().bytes().unwrap(), [2, 3, 4][..]);
    let extents: Vec<_> =
        reader.tensors().map(|tensor| tensor.extent().unwrap().unwrap()).collect();
    let start = reader.header().unwrap().tensor_data_offset;
    let place = |at: usize| (extents[at].offset() - start, extents[at].len());
    assert_eq!([place(0), place(1), place(3)], [(0, 80), (128, 100), (256, 3)]);
    assert_eq!(reader.source().len(), start + 259);
}

#[test]
fn elements_of_another_length() {
    let model = model();
    let mut writer = Writer::new(Vec::new(), &model).unwrap();
    let error = writer.add(&[0; 79]).unwrap_err();
    let message = "graph/node 0 \"first\" was given 79 bytes, but its shape [5, 4] needs 80";
    assert_eq!(error.to_string(), message);
    writer.add(&[0; 80]).unwrap();
    let error = writer.stream(&[0; 2][..]).unwrap_err();
    let message = "graph/node 3 \"second\" was given 2 bytes, but its shape [3] needs 3";
    assert_eq!(error.to_string(), message);
    let failed = "the file cannot be written on, as something before could only be written in part";
    assert_eq!(writer.add(&[0; 3]).unwrap_err().to_string(), failed);
    assert_eq!(writer.finish().unwrap_err().to_string(), failed);

    let mut writer = Writer::new(Vec::new(), &model).unwrap();
    let error = writer.stream(&[0; 300][..]).unwrap_err();
    let message = "graph/node 0 \"first\" was given 300 bytes, but its shape [5, 4] needs 80";
    assert_eq!(error.to_string(), message);
}

#[test]
fn missing_elements() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.rten");
    fs::write(&path, "old").unwrap();
    let error = Writer::create(&path, &model()).unwrap().finish().unwrap_err();
    let message = "graph/node 0 \"first\" is still without its elements, as are 1 others";
    assert_eq!(error.to_string(), message);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn elements_that_nobody_wants() {
    let mut writer = Writer::new(Vec::new(), &Model::default()).unwrap();
    let error = writer.add(&[]).unwrap_err();
    assert_eq!(error.to_string(), "elements were given, but no constant waits for any");
    let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
    assert_eq!(reader.model(), &Model::default());
}

#[test]
fn tensors_of_another_type() {
    let model = model();
    let other = TensorBuf::from_slice([4, 5], &[0.0_f32; 20]).unwrap();
    let mut graph = GraphBuilder::new();
    graph.constant("other", Constant::from_tensor(&other).unwrap()).unwrap();
    let other = Model { graph: graph.finish(), metadata: None };
    let other = Writer::new(Vec::new(), &other).unwrap().finish().unwrap();
    let other = Reader::from_bytes(other).unwrap();
    let mut writer = Writer::new(Vec::new(), &model).unwrap();
    let error = writer.copy(other.tensor("other").unwrap()).unwrap_err();
    let message = "graph/node 0 \"first\" was given f32 [4, 5], expected f32 [5, 4]";
    assert_eq!(error.to_string(), message);
}

#[test]
fn constants_that_do_not_fit_their_shapes() {
    let with = |constant: Constant| {
        let built = GraphBuilder::new().constant("w", constant.clone()).unwrap_err().to_string();
        let nodes = vec![Node::named("w", constant)];
        let model = Model { graph: Graph { nodes, ..Graph::default() }, metadata: None };
        let written = Writer::new(Vec::new(), &model).map(drop).unwrap_err().to_string();
        assert_eq!(written.strip_prefix("graph/node 0"), built.strip_prefix("node"));
        written
    };
    let data = ConstantData::new(ConstantDataType::Int32, vec![0; 16]);
    let described = |shape: &[u32]| Constant::described(shape, ConstantDataType::Int32);
    assert_eq!(
        with(Constant { data, ..described(&[3]) }),
        "graph/node 0 \"w\" has 16 bytes of inline data, but its shape [3] needs 12"
    );
    assert_eq!(
        with(Constant { dtype: None, ..described(&[3]) }),
        "graph/node 0 \"w\" has a data offset but no dtype, expected one of Int32, Float32, Int8, \
         UInt8"
    );
    assert_eq!(
        with(described(&[u32::MAX, u32::MAX, 4])),
        "graph/node 0 \"w\" cannot be read: shape [4294967295, 4294967295, 4] has more \
         elements than 64 bits can count"
    );
    assert_eq!(
        with(described(&[1; 65])),
        "graph/node 0 \"w\" cannot be read: rank is 65, over the limit of 64 (Limits::rank)"
    );
    let huge = u32::MAX;
    assert_eq!(
        with(described(&[huge, huge])),
        "graph/node 0 \"w\" cannot be read: shape [4294967295, 4294967295] of i32 has more bytes \
         than 64 bits can count"
    );
}

#[test]
fn alignments_that_are_none() {
    for (alignment, found) in [(0, "0"), (48, "48"), (1 << 17, "131072")] {
        let options = WriteOptions::default().alignment(alignment);
        let error = options.write_to(Vec::new(), &Model::default()).map(drop).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("alignment of {found} bytes is not one, expected a power of two up to 65536")
        );
    }
}

/// A file of version 2 with this many elements of 4 bytes.
fn large(elements: u32) -> Reader {
    let described = Constant::described([elements], ConstantDataType::Float32);
    let mut graph = GraphBuilder::new();
    graph.constant("large", Constant { data_offset: Some(0), ..described }).unwrap();
    let small = TensorBuf::from_slice([2], &[1_i32, 2]).unwrap();
    graph.constant("small", Constant::from_tensor(&small).unwrap()).unwrap();
    let model = Model { graph: graph.finish(), metadata: None };
    let model_data = model.to_bytes().unwrap();
    let extent = Extent::new(32, model_data.len() as u64).unwrap();
    let header = Header { model_data: extent, tensor_data_offset: 4096 };
    let head = [header.to_bytes(), model_data].concat();
    let zeros = 4096 + u64::from(elements) * 4 - head.len() as u64;
    Reader::from_source(CountingSource::with_zeros(&head, zeros).source()).unwrap()
}

#[test]
fn version_1_of_too_much_is_refused_before_it_is_read() {
    let reader = large(1 << 30);
    let error = Rewrite::new(&reader).to_v1_bytes().unwrap_err();
    assert_eq!(
        error.to_string(),
        "model data would take up to 4294969122 bytes, over the FlatBuffers limit of 2147483647"
    );
}

#[test]
fn version_1_of_constants_without_elements() {
    for name in ["inline_length.rten", "constant_empty.rten", "external_in_v1.rten"] {
        let reader = Reader::open(testdata("rten/invalid").join(name)).unwrap();
        let error = Rewrite::new(&reader).to_v1_bytes().unwrap_err().to_string();
        assert!(error.starts_with("graph/node 1 \"fc1.bias\" has "), "{error}");
        let wrapped = Rewrite::new(&reader).write_wrapped(Vec::new()).unwrap_err().to_string();
        assert_eq!(wrapped, error);
        let second = Rewrite::new(&reader).write_v2(Vec::new()).unwrap_err().to_string();
        assert_eq!(second, error);
    }
}

/// Counts what is written.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn tensor_data_beyond_4_gib_is_streamed() {
    let reader = large(u32::MAX / 16);
    let written = Rewrite::new(&reader).write_v2(Counter(0)).unwrap();
    let length = u64::from(u32::MAX / 16) * 4;
    assert!((length..length + 4096).contains(&written.0), "{}", written.0);
    // Only the layout of more: nothing is written before it is asked for.
    let more = Constant::described([u32::MAX], ConstantDataType::Int32);
    let mut graph = GraphBuilder::new();
    graph.constant("a", more.clone()).unwrap();
    graph.constant("b", more).unwrap();
    let model = Model { graph: graph.finish(), metadata: None };
    let writer = Writer::new(Vec::new(), &model).unwrap();
    assert_eq!(writer.all_pending().count(), 2);
}

/// What the model brings along goes into the tensor data, however much it is.
#[test]
fn given_elements_beyond_2_gib() {
    let reader = large(16);
    let data = ConstantData::new(ConstantDataType::UInt8, vec![0; 64 << 20]);
    let described = Constant::described([64 << 20], ConstantDataType::UInt8);
    let constant = Constant { data, ..described };
    let mut model = reader.model().clone();
    for number in 0..33 {
        model.graph.nodes.push(Node::named(format!("c{number}"), constant.clone()));
    }
    let rewrite = || Rewrite::new(&reader).model(model.clone());
    assert!(rewrite().write_v2(Counter(0)).unwrap().0 > 33 * (64 << 20));
    let error = rewrite().to_v1_bytes().unwrap_err().to_string();
    assert!(error.ends_with(" bytes, over the FlatBuffers limit of 2147483647"), "{error}");
}

#[test]
fn a_sink_that_fails() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let count = bytes.len().min(self.0);
            self.0 -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let reader = Reader::open(testdata("rten/valid/mlp.v2.rten")).unwrap();
    let whole = Rewrite::new(&reader).write_v2(Vec::new()).unwrap().len();
    for room in 0..whole {
        let error = Rewrite::new(&reader).write_v2(Full(room)).map(drop).unwrap_err();
        assert!(error.to_string().starts_with("writing at byte "), "{error}");
    }
    Rewrite::new(&reader).write_v2(Full(whole)).unwrap();
}

#[test]
fn models_read_back_under_any_rule() {
    let reader = Reader::open(testdata("rten/valid/control_flow.v2.rten")).unwrap();
    for elements in [0, 1, 16, 100, u64::MAX] {
        let options = WriteOptions::default().inline_elements(elements);
        let bytes = Rewrite::new(&reader).options(options).write_v2(Vec::new()).unwrap();
        let copy = Reader::options().limits(Limits::default()).from_bytes(bytes).unwrap();
        assert_same(&copy, &reader, &elements.to_string());
        for tensor in copy.tensors() {
            let count = tensor.info().unwrap().shape.elements().unwrap();
            assert_eq!(tensor.is_external(), count > elements, "{}", tensor.path());
        }
    }
}
