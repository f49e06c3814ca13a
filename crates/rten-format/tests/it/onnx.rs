//! Export to ONNX: what is refused, what is written, and that nothing else happens. What the
//! exported models compute is tested in the crate `conformance`.

use std::{fs, io, path::Path};

use rten_format::{
    Attributes, Constant, ConstantData, ConstantDataType, DataType, Dim, Graph, Model, Node,
    NodeKind, Operator, OperatorType, Reader, Value,
    attributes::{ConcatAttrs, IfAttrs, LoopAttrs, SequenceEmptyAttrs},
    onnx::{Error, Export, Exported, ExternalData},
    tensor_core::{
        ReadAt, Source,
        output::{Durability, Existing},
    },
};
use test_support::{files, mutations, names, testdata, truncations};

fn value(name: &str) -> Node {
    Node::named(name, Value::default())
}

fn typed(name: &str, dtype: DataType) -> Node {
    let shape = Some(vec![Dim::Fixed(2)]);
    Node::named(name, Value { shape, dtype: Some(dtype) })
}

fn floats(name: &str, shape: &[u32], data: &[f32]) -> Node {
    let bytes: Vec<u8> = data.iter().flat_map(|value| value.to_le_bytes()).collect();
    let (shape, dtype) = (shape.to_vec(), Some(ConstantDataType::Float32));
    let data = Some(ConstantData::Float(bytes.into()));
    Node::named(name, Constant { shape, dtype, data, data_offset: None })
}

fn operator(
    operator_type: OperatorType,
    attributes: Option<Attributes>,
    inputs: &[Option<u32>],
    outputs: &[Option<u32>],
) -> Node {
    let (inputs, outputs) = (inputs.to_vec(), outputs.to_vec());
    Node::named("op", Operator { operator_type, attributes, inputs, outputs })
}

fn graph(nodes: Vec<Node>, inputs: &[u32], outputs: &[u32]) -> Graph {
    Graph { nodes, inputs: inputs.to_vec(), outputs: outputs.to_vec(), captures: vec![] }
}

fn reader(graph: Graph) -> Reader {
    let model = Model { graph, metadata: None };
    Reader::from_bytes(model.to_bytes().unwrap()).unwrap()
}

#[track_caller]
fn refused(graph: Graph, message: &str) {
    let error = Export::new(&reader(graph)).to_bytes().unwrap_err();
    assert_eq!(error.to_string(), message);
}

/// Files that open but are not valid; those that are missing here are exported nevertheless.
#[test]
fn invalid_files_are_refused() {
    let expected = [
        (
            "attributes_missing.rten",
            "graph/node 12 \"softmax\" has attributes of type none, but Softmax needs SoftmaxAttrs",
        ),
        (
            "attributes_wrong.rten",
            "graph/node 12 \"softmax\" has attributes of type CastAttrs, but Softmax needs \
             SoftmaxAttrs",
        ),
        (
            "branch_missing.rten",
            "graph/node 10 \"act1\" has input 0 of element type Float, but If needs Int32",
        ),
        (
            "constant_empty.rten",
            "graph/node 1 \"fc1.bias\" has neither inline data nor a data offset, expected one of \
             them",
        ),
        ("cycle.rten", "graph/node 9 \"fc1\" waits for its own output through 2 operators"),
        (
            "dangling_capture.rten",
            "graph/node 10 \"act1\" has input 0 of element type Float, but Loop needs Int32",
        ),
        (
            "external_in_v1.rten",
            "graph/node 1 \"fc1.bias\" has data offset 0, but a file of version 1 has no tensor \
             data",
        ),
        (
            "inline_length.rten",
            "graph/node 1 \"fc1.bias\" has 32 bytes of inline data, but its shape [9] needs 36",
        ),
        (
            "input_id_over_limit.rten",
            "graph refers to node 2147483648, which is not a value of its graph",
        ),
        (
            "node_missing.rten",
            "graph/node 0 \"fc1.weight\" is of unknown kind 0, expected an operator, a constant or \
             a value",
        ),
        ("operator_type.rten", "graph/node 10 \"act1\" has operator type 200, expected 0 to 144"),
        (
            "order.rten",
            "graph/node 10 \"act1\" refers to node 12, which is not a value of its graph",
        ),
        ("output_id.rten", "graph refers to node 99, which is not a value of its graph"),
        (
            "shape_overflow.rten",
            "graph/node 1 \"fc1.bias\" cannot be read: shape [2147483648, 2147483648, 4] has more \
             elements than 64 bits can count",
        ),
        (
            "tensors_cut.rten",
            "graph/node 2 \"fc2.weight\" needs 96 bytes at byte 128 of the tensor data, which \
             starts at byte 1664 of a file of 1856 bytes",
        ),
        ("too_many_inputs.rten", "graph/node 10 \"act1\" has 2 inputs, but Relu has at most 1"),
        ("undefined_value.rten", "graph/node 4 \"x\" is read, but nothing makes it"),
        ("unknown_number.rten", "graph/node 10 \"act1\" has no input 1, which Pad needs"),
    ];
    let mut found = Vec::new();
    for path in files("rten/invalid", "rten") {
        let Ok(reader) = Reader::open(&path) else { continue };
        if let Err(error) = Export::new(&reader).to_bytes() {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            found.push((name, error.to_string()));
        }
    }
    let found: Vec<(&str, &str)> = found.iter().map(|(name, text)| (&**name, &**text)).collect();
    assert_eq!(found, expected);
}

fn add(inputs: &[Option<u32>], outputs: &[Option<u32>]) -> Node {
    operator(OperatorType::Add, None, inputs, outputs)
}

fn x() -> Node {
    typed("x", DataType::Float)
}

fn whole() -> Node {
    typed("i", DataType::Int32)
}

#[test]
fn inputs_of_other_numbers() {
    let with =
        |inputs: &[Option<u32>]| graph(vec![x(), value("y"), add(inputs, &[Some(1)])], &[0], &[1]);
    refused(with(&[Some(0)]), "graph/node 2 \"op\" has no input 1, which Add needs");
    refused(with(&[None, Some(0)]), "graph/node 2 \"op\" has no input 0, which Add needs");
    refused(with(&[Some(0); 3]), "graph/node 2 \"op\" has 3 inputs, but Add has at most 2");
    let concat = Some(ConcatAttrs::default().into());
    let concat = operator(OperatorType::Concat, concat, &[None, Some(0)], &[Some(1)]);
    refused(
        graph(vec![x(), value("y"), concat], &[0], &[1]),
        "graph/node 2 \"op\" has no input 0, which Concat needs",
    );
}

#[test]
fn more_outputs_than_there_are() {
    let nodes = vec![x(), value("y"), value("z"), add(&[Some(0); 2], &[Some(1), Some(2)])];
    refused(graph(nodes, &[0], &[1]), "graph/node 3 \"op\" has 2 outputs, but Add has at most 1");
}

#[test]
fn ids_of_no_value() {
    let with = |input: u32, output: u32| {
        let inputs = [Some(0), Some(input)];
        graph(vec![x(), value("y"), add(&inputs, &[Some(output)])], &[0], &[1])
    };
    let message = "graph/node 2 \"op\" refers to node 2, which is not a value of its graph";
    refused(with(2, 1), message);
    refused(with(0, 2), message);
    let message = "graph/node 2 \"op\" refers to node 9, which is not a value of its graph";
    refused(with(9, 1), message);
    let message = "graph refers to node 3, which is not a value of its graph";
    refused(graph(vec![x()], &[0], &[3]), message);
    refused(graph(vec![x()], &[3], &[0]), message);
}

#[test]
fn values_made_twice() {
    refused(graph(vec![x()], &[0, 0], &[0]), "graph/node 0 \"x\" is made more than once");
    let again = add(&[Some(0); 2], &[Some(0)]);
    refused(graph(vec![x(), again], &[0], &[0]), "graph/node 0 \"x\" is made more than once");
    let constant = floats("c", &[1], &[0.5]);
    let nodes = vec![x(), constant, add(&[Some(0); 2], &[Some(1)])];
    refused(graph(nodes, &[0], &[1]), "graph/node 1 \"c\" is made more than once");
    let nodes = vec![x(), value("y"), add(&[Some(0); 2], &[Some(1); 2])];
    refused(graph(nodes, &[0], &[1]), "graph/node 2 \"op\" has 2 outputs, but Add has at most 1");
}

#[test]
fn types_that_do_not_fit() {
    let nodes = vec![x(), whole(), value("y"), add(&[Some(0), Some(1)], &[Some(2)])];
    refused(
        graph(nodes, &[0, 1], &[2]),
        "graph/node 3 \"op\" has input 1 of element type Int32, but Add needs Float",
    );
    let negate = || operator(OperatorType::Neg, None, &[Some(0)], &[Some(1)]);
    refused(
        graph(vec![typed("q", DataType::UInt8), value("y"), negate()], &[0], &[1]),
        "graph/node 2 \"op\" has input 0 of element type UInt8, but Neg needs Float, Int8, Int32",
    );
    let empty = Some(SequenceEmptyAttrs::default().into());
    let empty = operator(OperatorType::SequenceEmpty, empty, &[], &[Some(0)]);
    refused(
        graph(vec![value("s"), value("y"), empty, negate()], &[], &[1]),
        "graph/node 3 \"op\" has input 0 that is a sequence, but Neg needs a tensor",
    );
    refused(
        graph(vec![typed("u", DataType::Unknown(9))], &[0], &[0]),
        "graph/node 0 \"u\" has dtype unknown 9, expected Int32, Float, Int8 or UInt8",
    );
}

#[test]
fn subgraphs_that_do_not_fit() {
    let with = |operator_type, attributes| {
        let operator = operator(operator_type, Some(attributes), &[Some(0)], &[Some(1)]);
        graph(vec![whole(), value("y"), operator], &[0], &[1])
    };
    refused(
        with(OperatorType::If, IfAttrs::default().into()),
        "graph/node 2 \"op\" has then_branch nothing, expected a graph",
    );
    let empty = || Some(Box::<Graph>::default());
    let branches = IfAttrs { then_branch: empty(), else_branch: empty() };
    refused(
        with(OperatorType::If, branches.into()),
        "graph/then_branch has 0 outputs, but its operator needs at least 1",
    );
    refused(
        with(OperatorType::Loop, LoopAttrs { body: empty() }.into()),
        "graph/body has 0 inputs, but its operator needs 2",
    );
    refused(
        with(OperatorType::Loop, LoopAttrs { body: None }.into()),
        "graph/node 2 \"op\" has body nothing, expected a graph",
    );
}

#[test]
fn values_that_no_graph_around_has() {
    let mut branch = graph(vec![value("elsewhere")], &[], &[0]);
    branch.captures = vec![0];
    let branches = IfAttrs {
        then_branch: Some(Box::new(branch.clone())),
        else_branch: Some(Box::new(branch)),
    };
    let operator = operator(OperatorType::If, Some(branches.into()), &[Some(0)], &[Some(1)]);
    refused(
        graph(vec![whole(), value("y"), operator], &[0], &[1]),
        "graph/then_branch/node 0 \"elsewhere\" is read, but nothing makes it",
    );
}

#[test]
fn same_file_gives_the_same_bytes() {
    for path in files("rten/valid", "rten") {
        let export = || Export::new(&Reader::open(&path).unwrap()).to_bytes().unwrap();
        test_support::assert_bytes(&export(), &export(), "second export");
    }
}

/// Exporting any change of a file is a model or an error.
#[test]
fn changed_files_do_no_harm() {
    let small = files("rten/valid", "rten").into_iter().map(|path| fs::read(path).unwrap());
    let mut exported = 0_u32;
    for bytes in small.filter(|bytes| bytes.len() < 1300) {
        let mut export = |bytes: &[u8]| {
            if let Ok(reader) = Reader::from_bytes(bytes.to_vec()) {
                exported += u32::from(Export::new(&reader).to_bytes().is_ok());
            }
        };
        truncations(&bytes, &mut export);
        mutations(&bytes, &mut export);
    }
    assert!(exported > 100, "{exported}");
}

fn with_weights() -> Reader {
    let weights: Vec<f32> = (0..300_u16).map(f32::from).collect();
    let (small, large) = (floats("small", &[2], &[1.0, 2.0]), floats("large", &[300], &weights));
    let again = floats("again", &[64], &weights[..64]);
    reader(graph(vec![small, large, again], &[], &[]))
}

#[track_caller]
fn written(export: Export<'_>, path: &Path) -> Exported {
    export.durability(Durability::Cached).write(path).unwrap()
}

#[test]
fn constants_are_whole_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    let reader = with_weights();
    let exported = written(Export::new(&reader), &path);
    assert_eq!((&exported.model, &exported.data), (&path, &None));
    assert_eq!(exported.opset, 20);
    assert!(exported.report.is_empty());
    assert_eq!(names(folder.path()), ["model.onnx"]);
    assert_eq!(fs::read(&path).unwrap(), Export::new(&reader).to_bytes().unwrap());
}

#[test]
fn data_file_has_the_constants_on_boundaries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    let reader = with_weights();
    let exported = written(Export::new(&reader).external_data(ExternalData::From(256)), &path);
    assert_eq!(exported.data, Some(folder.path().join("model.onnx.data")));
    assert_eq!(names(folder.path()), ["model.onnx", "model.onnx.data"]);
    let data = fs::read(folder.path().join("model.onnx.data")).unwrap();
    let weights: Vec<u8> = (0..300_u16).flat_map(|at| f32::from(at).to_le_bytes()).collect();
    // 1200 bytes, and zeros up to the next multiple of 64.
    let expected = [&weights[..], &[0; 16], &weights[..256]].concat();
    test_support::assert_bytes(&data, &expected, "data file");
    let again = folder.path().join("again.onnx");
    written(Export::new(&reader).external_data(ExternalData::From(256)), &again);
    assert_eq!(fs::read(folder.path().join("again.onnx.data")).unwrap(), data);
}

#[test]
fn nothing_is_left_of_an_export_that_fails() {
    let path = testdata("rten/invalid/tensors_cut.rten");
    let folder = tempfile::tempdir().unwrap();
    let reader = Reader::open(path).unwrap();
    for external in [ExternalData::Never, ExternalData::Automatic, ExternalData::From(0)] {
        let target = folder.path().join("model.onnx");
        let error = Export::new(&reader).external_data(external).write(target).unwrap_err();
        assert!(matches!(error, Error::Rten(_)), "{error}");
        assert_eq!(names(folder.path()), [""; 0]);
    }
}

/// The model is in its place, and needs its data, where only the folder is not synchronised.
#[cfg(unix)]
#[test]
fn data_stays_with_a_model_that_is_in_its_place() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = tempfile::tempdir().unwrap();
    let [path, hidden] = ["model.onnx", "hidden"].map(|name| folder.path().join(name));
    fs::create_dir(&hidden).unwrap();
    fs::write(hidden.join("model"), b"old").unwrap();
    symlink("hidden/model", &path).unwrap();
    let set_mode = |mode| fs::set_permissions(&hidden, fs::Permissions::from_mode(mode)).unwrap();
    // Files can be put there, but it cannot be opened.
    set_mode(0o300);
    if fs::File::open(&hidden).is_ok() {
        eprintln!("skipped: root may open any folder");
        return;
    }
    let reader = with_weights();
    let written = Export::new(&reader).external_data(ExternalData::From(256)).write(&path);
    set_mode(0o700);
    assert!(matches!(written, Err(Error::Core(_))), "{written:?}");
    assert_ne!(fs::read(&path).unwrap(), b"old");
    assert!(folder.path().join("model.onnx.data").exists());
}

#[test]
fn files_that_are_there_can_be_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    fs::write(&path, b"old").unwrap();
    let reader = with_weights();
    let export = Export::new(&reader).existing(Existing::Keep);
    for external in [ExternalData::Never, ExternalData::From(0)] {
        let export = export.external_data(external);
        for error in [export.check(&path).unwrap_err(), export.write(&path).unwrap_err()] {
            assert_eq!(error.to_string(), format!("{path:?} is there already"));
        }
        assert_eq!(names(folder.path()), ["model.onnx"]);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }
}

/// A file whose tensor data is longer than any memory, of which only the header is there.
struct Sparse(Vec<u8>);

const SPARSE: u64 = 1 << 40;

impl ReadAt for Sparse {
    fn len(&self) -> u64 {
        SPARSE
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        let end = start + buffer.len();
        let bytes = self.0.get(start..end).ok_or(io::ErrorKind::Other)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

#[test]
fn larger_than_a_message_is_not_read() {
    let (shape, dtype) = (vec![1 << 29], Some(ConstantDataType::Float32));
    let constant = Constant { shape, dtype, data: None, data_offset: Some(0) };
    let nodes = vec![Node::named("w", NodeKind::Constant(constant))];
    let model = Model { graph: graph(nodes, &[], &[]), metadata: None }.to_bytes().unwrap();
    let mut bytes = b"RTEN".to_vec();
    bytes.extend(2_u32.to_le_bytes());
    for field in [32, model.len() as u64, 4096] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend(model);
    let reader = Reader::from_source(Source::from_read_at(Sparse(bytes))).unwrap();
    let message = "model would take 2147483648 bytes, over the protobuf limit of 2147483647, \
                   expected external data";
    assert_eq!(Export::new(&reader).to_bytes().unwrap_err().to_string(), message);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    let never = Export::new(&reader).external_data(ExternalData::Never);
    assert_eq!(never.write(&path).unwrap_err().to_string(), message);
    // By itself it goes into a data file, which fails where there are no bytes.
    let error = Export::new(&reader).write(&path).unwrap_err();
    assert_eq!(error.to_string(), "tensor data at byte 4096 could not be read");
    assert_eq!(names(folder.path()), [""; 0]);
}
