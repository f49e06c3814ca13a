//! Edits change what they are asked to, in place, and leave the weights alone.

use std::fs;

use rten_format::{
    AttributeValue, Attributes, AutoPad, Constant, ConstantDataType, DataType, Dim, Editor, Error,
    GraphBuilder, Metadata, Model, NodeKind, OperatorType, Reader, Rewrite, Value, Version,
    WriteOptions,
    attributes::{ConvAttrs, EinsumAttrs, GemmAttrs, IfAttrs, LoopAttrs, SoftmaxAttrs},
    tensor_core::{self, Extent, output::Edited},
    topology::Topology,
};
use test_support::testdata;

/// Copies a file of the converter into a new folder.
fn copy(name: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::copy(testdata("rten/valid").join(name), &path).unwrap();
    (dir, path)
}

fn bytes(reader: &Reader) -> bytes::Bytes {
    reader.source().read(Extent::first(reader.source().len()), "file").unwrap()
}

fn describe(model: &mut Model, text: &str) {
    model.metadata.get_or_insert_default().description = Some(text.to_owned());
}

#[test]
fn version_2_grows_by_its_model_data() {
    let (_dir, path) = copy("mlp.v2.rten");
    let old = fs::read(&path).unwrap();
    let mut editor = Editor::open(&path).unwrap();
    describe(editor.model_mut(), "another");
    let expected = editor.model().clone();
    let unused = editor.unused_bytes();
    let preview = bytes(&editor.preview().unwrap());
    let edited = editor.commit().unwrap();
    let new = fs::read(&path).unwrap();
    assert_eq!(preview, new);
    let (before, after) = (old.len() as u64, new.len() as u64);
    assert_eq!(edited, Edited::Appended { before, after });
    let model_data = Reader::open(&path).unwrap().model_data();
    assert_eq!((model_data.offset() % 64, model_data.end()), (0, new.len() as u64));
    // All but where the model data is stays what it was.
    assert_eq!((&new[..8], &new[24..old.len()]), (&old[..8], &old[24..]));
    let old = Reader::from_bytes(old).unwrap();
    assert_eq!(unused, old.header().unwrap().tensor_data_offset - 32);
    let reader = Reader::open(&path).unwrap();
    assert_eq!((reader.model(), reader.model_data()), (&expected, model_data));
    for (new, old) in reader.tensors().zip(old.tensors()) {
        assert_eq!(new.bytes().unwrap(), old.bytes().unwrap());
    }
    let rules: Vec<_> = reader.validate().findings().iter().map(|f| f.rule.clone()).collect();
    assert_eq!(rules, ["rten/gap"]);
    let bytes = Rewrite::new(&reader).write_v2(Vec::new()).unwrap();
    assert!(Reader::from_bytes(bytes).unwrap().validate().is_empty());
}

/// Whatever of the new model data is there when an edit is cut short, the old one is what is found:
/// the header is changed last.
#[test]
fn edits_that_are_cut_short_leave_the_file() {
    let (_dir, path) = copy("mlp.v2.rten");
    let old = fs::read(&path).unwrap();
    let expected = Reader::open(&path).unwrap().model().clone();
    let mut editor = Editor::open(&path).unwrap();
    describe(editor.model_mut(), "another");
    editor.commit().unwrap();
    let new = fs::read(&path).unwrap();
    for len in old.len()..=new.len() {
        let cut = [&old[..], &new[old.len()..len]].concat();
        assert_eq!(Reader::from_bytes(cut).unwrap().model(), &expected, "{len}");
    }
}

#[test]
fn version_1_is_replaced() {
    let (dir, path) = copy("mlp.v1.rten");
    let mut editor = Editor::open(&path).unwrap();
    describe(editor.model_mut(), "another");
    let expected = editor.model().clone();
    assert_eq!(editor.unused_bytes(), 0);
    let before = fs::metadata(&path).unwrap().len();
    let preview = bytes(&editor.preview().unwrap());
    let edited = editor.commit().unwrap();
    assert_eq!(preview, fs::read(&path).unwrap());
    let after = fs::metadata(&path).unwrap().len();
    assert_eq!(edited, Edited::Replaced { before, after });
    let reader = Reader::open(&path).unwrap();
    assert_eq!((reader.version(), reader.model()), (Version::V1, &expected));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn nothing_is_written_where_nothing_changes() {
    for name in ["mlp.v1.rten", "mlp.v2.rten"] {
        let (_dir, path) = copy(name);
        let old = fs::read(&path).unwrap();
        assert_eq!(Editor::open(&path).unwrap().commit().unwrap(), Edited::Unchanged);
        let mut dropped = Editor::open(&path).unwrap();
        describe(dropped.model_mut(), "dropped");
        drop(dropped);
        assert_eq!(fs::read(&path).unwrap(), old);
    }
}

#[test]
fn dry_runs_leave_the_file() {
    for name in ["mlp.v1.rten", "mlp.v2.rten"] {
        let (_dir, path) = copy(name);
        let old = fs::read(&path).unwrap();
        let edit = |mut editor: Editor| {
            describe(editor.model_mut(), "another");
            (editor.unused_bytes(), editor.commit().unwrap())
        };
        let expected = edit(Editor::dry_run(&path, WriteOptions::default()).unwrap());
        assert_eq!(fs::read(&path).unwrap(), old);
        assert_eq!(edit(Editor::open(&path).unwrap()), expected);
    }
}

#[test]
fn one_editor_at_a_time() {
    let (_dir, path) = copy("mlp.v2.rten");
    let editor = Editor::open(&path).unwrap();
    let dry_run = Editor::dry_run(&path, WriteOptions::default());
    for error in [Editor::open(&path).unwrap_err(), dry_run.unwrap_err()] {
        assert!(matches!(error, Error::Core(tensor_core::Error::Locked { .. })), "{error}");
    }
    drop(editor);
    drop(Editor::open(&path).unwrap());
}

/// Elements may not get lost: neither by a data offset that leads nowhere, nor by none at all.
#[test]
fn constants_without_elements() {
    let (_dir, path) = copy("mlp.v2.rten");
    let old = fs::read(&path).unwrap();
    let refuse = |change: fn(&mut Constant), message: &str| {
        let mut editor = Editor::open(&path).unwrap();
        let NodeKind::Constant(constant) = &mut editor.model_mut().graph.nodes[0].kind else {
            panic!()
        };
        change(constant);
        assert_eq!(editor.commit().unwrap_err().to_string(), message);
        assert_eq!(fs::read(&path).unwrap(), old);
    };
    refuse(
        |constant| constant.data_offset = Some(1 << 40),
        "graph/node 0 \"fc1.weight\" needs 128 bytes at byte 1099511627776 of the tensor data, which \
         starts at byte 1664 of a file of 1888 bytes",
    );
    refuse(
        |constant| constant.data_offset = None,
        "graph/node 0 \"fc1.weight\" has neither inline data nor a data offset, expected one of \
         them",
    );
    refuse(
        |constant| *constant = Constant::described([2], ConstantDataType::Int8),
        "graph/node 0 \"fc1.weight\" has neither inline data nor a data offset, expected one of \
         them",
    );
}

#[test]
fn files_that_are_none_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.rten");
    fs::write(&path, b"RTEN, but no more").unwrap();
    Editor::open(&path).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), b"RTEN, but no more");
    Editor::open(dir.path()).unwrap_err();
}

/// Two levels of branches that capture `x` of the main graph, the inner one only by name.
pub(crate) fn nested() -> Model {
    let value = Value::default;
    let mut inner = GraphBuilder::new();
    let x = inner.capture("x", value()).unwrap();
    let y = inner.value("inner_y", value()).unwrap();
    inner.operator("", OperatorType::Relu, None, &[Some(x)], &[Some(y)]).unwrap();
    inner.output(y).unwrap();
    let inner = Some(Box::new(inner.finish()));
    let mut outer = GraphBuilder::new();
    let condition = outer.capture("condition", value()).unwrap();
    let y = outer.value("outer_y", value()).unwrap();
    let branches = IfAttrs { then_branch: inner.clone(), else_branch: inner };
    let attributes = Some(branches.into());
    outer.operator("", OperatorType::If, attributes, &[Some(condition)], &[Some(y)]).unwrap();
    outer.output(y).unwrap();
    let outer = Some(Box::new(outer.finish()));
    let mut graph = GraphBuilder::new();
    let condition = graph.input("condition", Value::new([], DataType::Int32)).unwrap();
    let x = graph.input("x", Value::new(["batch".into(), 0.into()], DataType::Float)).unwrap();
    let (w, y) = (graph.value("w", value()).unwrap(), graph.value("y", value()).unwrap());
    graph.operator("relu", OperatorType::Relu, None, &[Some(x)], &[Some(w)]).unwrap();
    let branches = IfAttrs { then_branch: outer.clone(), else_branch: outer };
    let attributes = Some(branches.into());
    graph.operator("if", OperatorType::If, attributes, &[Some(condition)], &[Some(y)]).unwrap();
    graph.output(w).unwrap();
    graph.output(y).unwrap();
    Model { graph: graph.finish(), metadata: None }
}

#[test]
fn names_change_where_they_are_captured() {
    let mut model = nested();
    assert_eq!(model.find("x").len(), 5);
    model.rename(0, 1, "image").unwrap();
    assert_eq!((model.find("x"), model.find("image").len()), (vec![], 5));
    assert!(Topology::of(&model).capture_source(2, 0) == Some((0, 1)));
    assert!(model.lint().is_valid());
    // Operators have names that nothing refers to.
    model.rename(0, 4, "image").unwrap();
    assert_eq!(model.graph.nodes[4].name.as_deref(), Some("image"));
}

#[test]
fn names_that_cannot_be() {
    let refuse = |scope, id, name, message: &str| {
        let mut model = nested();
        let error = model.rename(scope, id, name).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(model, nested());
    };
    refuse(0, 1, "y", "graph/node 1 \"x\" has the name of node 3, expected one of its own");
    refuse(
        0,
        1,
        "inner_y",
        "graph/then_branch/then_branch/node 0 \"x\" has the name of node 1, expected one of its own",
    );
    refuse(
        2,
        0,
        "z",
        "graph/then_branch/then_branch/node 0 \"x\" is captured by its name, expected a node that \
         does not come from another graph",
    );
    refuse(0, 9, "z", "graph/node 9 refers to node 9, but the graph has 6 nodes");
    refuse(99, 0, "z", "graph 99 refers to node 0, but the graph has 0 nodes");
    // What is between the two would be found instead.
    refuse(
        0,
        1,
        "outer_y",
        "graph/then_branch/then_branch would capture another value by the name \"outer_y\" than \
         before",
    );
    refuse(
        1,
        1,
        "x",
        "graph/then_branch/then_branch would capture another value by the name \"x\" than before",
    );
}

#[test]
fn names_are_exchanged() {
    let mut model = nested();
    model.rename_all(&[(0, 1, "y"), (0, 3, "x")]).unwrap();
    assert_eq!(model.find("y").len(), 5);
    model.rename_all(&[(0, 3, "y"), (0, 1, "x")]).unwrap();
    assert_eq!(model, nested());
    let error = model.rename_all(&[(0, 1, "z"), (0, 2, "z")]).unwrap_err();
    let message = "graph/node 2 \"w\" has the name of node 1, expected one of its own";
    assert_eq!((error.to_string().as_str(), &model), (message, &nested()));
}

/// Whoever does not ask for the lock can still change a file: an edit must not spoil that.
#[test]
fn files_that_others_change_meanwhile() {
    type Change = fn(&std::path::Path);
    let changes: [Change; 3] = [
        |path| {
            fs::copy(path, path.with_extension("new")).unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        },
        |path| {
            use std::io::Write;
            let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
            file.write_all(&[7; 1000]).unwrap();
        },
        |path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[24] ^= 64;
            fs::write(path, bytes).unwrap();
        },
    ];
    for change in changes {
        let (_dir, path) = copy("mlp.v2.rten");
        let mut editor = Editor::open(&path).unwrap();
        describe(editor.model_mut(), "lost");
        change(&path);
        let changed = fs::read(&path).unwrap();
        let error = editor.commit().unwrap_err();
        let expected = "was replaced or changed while it was open, expected the same file";
        assert_eq!(error.to_string(), format!("{path:?} {expected}"));
        assert!(fs::read(&path).unwrap() == changed);
    }
}

#[test]
fn weights_are_streamed_into_the_same_file() {
    for name in ["mlp.v1.rten", "mlp.v2.rten"] {
        let (_dir, path) = copy(name);
        let mut editor = Editor::open(&path).unwrap();
        let version = editor.reader().version();
        for node in &mut editor.model_mut().graph.nodes {
            if let NodeKind::Constant(constant) = &mut node.kind {
                *constant = Constant::described(constant.shape.clone(), ConstantDataType::Float32);
            }
        }
        let (mut asked, before) = (Vec::new(), fs::metadata(&path).unwrap().len());
        let edited = editor.rewrite(|pending| {
            asked.push(pending.name.clone().unwrap());
            Ok(vec![1; usize::try_from(pending.info.byte_len()?).unwrap()].into())
        });
        let after = fs::metadata(&path).unwrap().len();
        assert_eq!(edited.unwrap(), Edited::Replaced { before, after });
        let reader = Reader::open(&path).unwrap();
        assert_eq!((reader.version(), asked.len()), (version, 4));
        assert!(reader.validate().is_empty(), "{:?}", reader.validate());
        for tensor in reader.tensors() {
            assert!(tensor.bytes().unwrap().iter().all(|byte| *byte == 1));
        }
        let mut editor = Editor::open(&path).unwrap();
        editor.model_mut().graph.nodes[0].kind =
            Constant::described([8, 4], ConstantDataType::Float32).into();
        let error = editor.rewrite(|_| Ok(vec![0; 5].into())).unwrap_err();
        assert!(matches!(error, Error::Constant { .. }), "{error}");
        assert_eq!(Reader::open(&path).unwrap().model(), reader.model());
    }
}

#[test]
fn edited_files_are_found_to_be_sound() {
    for path in test_support::files("rten/golden", "rten") {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("model.rten");
        fs::copy(&path, &copy).unwrap();
        for turn in 0..3 {
            let mut editor = Editor::open(&copy).unwrap();
            describe(editor.model_mut(), &"x".repeat(turn * 40));
            editor.commit().unwrap();
            let report = Reader::open(&copy).unwrap().validate();
            let worst = report.worst();
            assert!(worst.is_none_or(|worst| worst == tensor_core::Severity::Note), "{report:?}");
        }
    }
}

#[test]
fn outputs_change() {
    let mut model = nested();
    model.set_outputs(&[3, 1]).unwrap();
    assert_eq!(model.graph.outputs, [3, 1]);
    let mut refuse = |outputs: &[u32], message: &str| {
        assert_eq!(model.set_outputs(outputs).unwrap_err().to_string(), message);
        assert_eq!(model.graph.outputs, [3, 1]);
    };
    refuse(&[3, 4], "outputs[1] refers to node 4, an operator");
    refuse(&[3, 3], "outputs[1] is node 3, which is an output already");
    refuse(&[17], "outputs[0] refers to node 17, but the graph has 6 nodes");
}

#[test]
fn dimensions_of_0_become_symbols() {
    let mut model = nested();
    assert_eq!(model.zero_dims(), [(1, 1)]);
    model.set_dim(1, 1, "width".into()).unwrap();
    let NodeKind::Value(value) = &model.graph.nodes[1].kind else { panic!() };
    let expected = [Dim::Symbol("batch".to_owned()), Dim::Symbol("width".to_owned())];
    assert_eq!(value.shape.as_deref(), Some(&expected[..]));
    assert!(model.zero_dims().is_empty() && model.lint().is_empty());
    for (id, axis, message) in [
        (1, 2, "graph/node 1 has 2 dimensions, so there is no dimension 2"),
        (3, 0, "graph/node 3 has no dimensions, expected a value with a shape"),
        (4, 0, "graph/node 4 has no dimensions, expected a value with a shape"),
        (9, 0, "graph/node 9 refers to node 9, but the graph has 6 nodes"),
    ] {
        assert_eq!(model.set_dim(id, axis, 1.into()).unwrap_err().to_string(), message);
    }
}

#[test]
fn attributes_are_set_by_text() {
    let mut table = Attributes::from(ConvAttrs::default());
    let texts =
        [("auto_pad", "NotSet"), ("pads", "1, 1,0,2"), ("groups", "4"), ("strides", "none")];
    texts.into_iter().try_for_each(|(field, text)| table.set(field, text)).unwrap();
    let pads = Some(vec![1, 1, 0, 2]);
    let expected = ConvAttrs { auto_pad: AutoPad::NotSet, pads, groups: 4, ..Default::default() };
    assert_eq!(table, expected.into());
    table.set("pads", "").unwrap();
    assert_eq!(table.fields()[1], ("pads", AttributeValue::Uints(&[])));
    let mut einsum = Attributes::from(EinsumAttrs { equation: Some("ij->ji".to_owned()) });
    einsum.set("equation", "none").unwrap();
    assert_eq!(einsum, EinsumAttrs { equation: None }.into());
    for (table, field, text, message) in [
        (
            ConvAttrs::default().into(),
            "axis",
            "1",
            "has no attribute \"axis\", expected one of: auto_pad, pads, groups, strides, dilations",
        ),
        (
            ConvAttrs::default().into(),
            "auto_pad",
            "SAME",
            "has attribute auto_pad \"SAME\", expected one of Same, NotSet",
        ),
        (
            ConvAttrs::default().into(),
            "pads",
            "1,-1",
            "has attribute pads \"1,-1\", expected none or whole numbers with commas between them",
        ),
        (
            SoftmaxAttrs::default().into(),
            "axis",
            "2147483648",
            "has attribute axis \"2147483648\", expected a whole number of 32 bits",
        ),
        (
            GemmAttrs::default().into(),
            "alpha",
            "1e999",
            "has attribute alpha \"1e999\", expected a finite number",
        ),
        (
            IfAttrs::default().into(),
            "then_branch",
            "x",
            "has attribute then_branch \"x\", expected a graph, which no text says",
        ),
    ] {
        let mut table: Attributes = table;
        let before = table.clone();
        assert_eq!(table.set(field, text).unwrap_err().to_string(), message);
        assert_eq!(table, before);
    }
}

#[test]
fn attributes_of_operators_change() {
    let reader = Reader::open(testdata("rten/valid/mlp.v2.rten")).unwrap();
    let mut model = reader.model().clone();
    assert_eq!(model.find_operators("softmax"), [(0, 12)]);
    model.set_attribute(0, 12, "axis", "0").unwrap();
    let NodeKind::Operator(operator) = &model.graph.nodes[12].kind else { panic!() };
    assert_eq!(operator.attributes, Some(SoftmaxAttrs { axis: 0 }.into()));
    for (id, message) in [
        (10, "graph/node 10 \"act1\" has no attribute \"axis\", expected one of: none"),
        (5, "graph/node 5 \"probs\" is not an operator"),
        (99, "graph/node 99 refers to node 99, but the graph has 13 nodes"),
    ] {
        assert_eq!(model.set_attribute(0, id, "axis", "1").unwrap_err().to_string(), message);
    }
    let mut model = nested();
    let (scope, id) = (1, model.graph_mut(1).unwrap().nodes.len() as u32 - 1);
    let error = model.set_attribute(scope, id, "else_branch", "1").unwrap_err().to_string();
    assert!(error.starts_with("graph/then_branch/node 2 "), "{error}");
}

#[test]
fn parts_become_models() {
    let reader = Reader::open(testdata("rten/valid/mlp.v2.rten")).unwrap();
    let model = reader.model();
    let input = reader.model().graph.inputs[0];
    // The first layer.
    let hidden = model.graph.nodes.iter().find_map(|node| match &node.kind {
        NodeKind::Operator(operator) if operator.operator_type == OperatorType::Relu => {
            operator.outputs[0]
        }
        _ => None,
    });
    let first = model.extract(&[], &[hidden.unwrap()]).unwrap();
    assert!(first.lint().is_empty(), "{:?}", first.lint());
    assert_eq!((first.totals().operators, first.totals().constants), (2, 2));
    assert_eq!(first.graph.inputs.len(), 1);
    let bytes = Rewrite::new(&reader).model(first).write_v2(Vec::new()).unwrap();
    let first = Reader::from_bytes(bytes).unwrap();
    for tensor in first.tensors() {
        let old = reader.tensor(tensor.name().unwrap()).unwrap();
        assert_eq!(tensor.bytes().unwrap(), old.bytes().unwrap());
    }
    // The second one, from what the first one gives.
    let second = model.extract(&[hidden.unwrap()], &model.graph.outputs).unwrap();
    assert!(second.lint().is_empty(), "{:?}", second.lint());
    assert_eq!((second.totals().operators, second.totals().constants), (2, 2));
    assert_eq!(second.graph.inputs.len(), 1);
    assert_eq!(second.metadata, model.metadata);
    // Everything.
    let all = model.extract(&[input], &model.graph.outputs).unwrap();
    assert_eq!(&all, model);
}

#[test]
fn subgraphs_keep_what_they_capture() {
    let model = nested();
    let part = model.extract(&[], &[3]).unwrap();
    assert!(part.lint().is_valid(), "{:?}", part.lint());
    let names: Vec<_> = part.graph.nodes.iter().map(|node| node.name.clone().unwrap()).collect();
    assert_eq!(names, ["condition", "x", "y", "if"]);
    assert_eq!((&part.graph.inputs[..], &part.graph.outputs[..]), (&[0, 1][..], &[2][..]));
}

/// What the caller gives is not made as well.
#[test]
fn inputs_among_several_outputs() {
    let reader = Reader::open(testdata("rten/valid/quantized.v2.rten")).unwrap();
    let model = reader.model();
    let several = model.graph.nodes.iter().find_map(|node| match &node.kind {
        NodeKind::Operator(operator) if operator.outputs.len() > 1 => Some(operator),
        _ => None,
    });
    let outputs: Vec<u32> = several.unwrap().outputs.iter().flatten().copied().collect();
    let part = model.extract(&outputs[..1], &outputs[1..]).unwrap();
    let rules: Vec<_> = part.lint().findings().iter().map(|f| f.rule.clone()).collect();
    assert_eq!(rules, ["rten/unused"]);
}

#[test]
fn parts_that_are_none() {
    let model = nested();
    for (inputs, outputs, message) in [
        (&[][..], &[5][..], "outputs[0] refers to node 5, an operator"),
        (&[], &[2, 2], "outputs[1] is node 2, which is an output already"),
        (&[5], &[2], "inputs[0] is node 5, which is not a value"),
        (&[1, 1], &[2], "inputs[1] is node 1, which is an input already"),
        (&[8], &[2], "inputs[0] refers to node 8, but the graph has 6 nodes"),
    ] {
        assert_eq!(model.extract(inputs, outputs).unwrap_err().to_string(), message);
    }
}

#[test]
fn weights_are_replaced() {
    let reader = Reader::open(testdata("rten/valid/mlp.v2.rten")).unwrap();
    let mut model = reader.model().clone();
    let tensor = tensor_core::TensorBuf::from_slice([8, 4], &[0.5_f32; 32]).unwrap();
    let (scope, id) = model.find("fc1.weight")[0];
    let graph = model.graph_mut(scope).unwrap();
    graph.nodes[id as usize].kind = Constant::from_tensor(&tensor).unwrap().into();
    let bytes = Rewrite::new(&reader).model(model).write_v2(Vec::new()).unwrap();
    let new = Reader::from_bytes(bytes).unwrap();
    assert_eq!(new.source().len(), reader.source().len());
    for tensor in new.tensors() {
        let old = reader.tensor(tensor.name().unwrap()).unwrap();
        let is_same = tensor.bytes().unwrap() == old.bytes().unwrap();
        assert_eq!(is_same, tensor.name() != Some("fc1.weight"));
    }
}

#[test]
fn graphs_are_found_by_number() {
    let mut model = nested();
    let bodies = Topology::of(&model).scopes().len();
    assert_eq!(bodies, 7);
    for scope in 0..bodies {
        let expected = Topology::of(&model).scopes()[scope].graph().clone();
        assert_eq!(model.graph_mut(scope).unwrap(), &expected);
    }
    assert!(model.graph_mut(bodies).is_none());
    let body = LoopAttrs { body: Some(Box::new(model.graph.clone())) };
    assert_eq!(Attributes::from(body).subgraphs_mut().count(), 1);
    assert_eq!(model.metadata, None::<Metadata>);
}
