//! Validation finds what is wrong, and in files of RTen's converters only what is explained here.

use std::fs;

use bytes::Bytes;
use rten_format::{
    Attributes, AutoPad, Constant, ConstantData, ConstantDataType, DataType, Dim, Graph, Header,
    Metadata, Model, Node, NodeKind, Operator, OperatorType, PadMode, Reader, Value,
    attributes::{ConvAttrs, IfAttrs, LoopAttrs, MaxPoolAttrs, PadAttrs, SoftmaxAttrs},
    tensor_core::{Extent, Report, Severity},
};
use test_support::files;

fn lines(report: &Report) -> Vec<String> {
    let lines = report.findings().iter().map(|finding| {
        let path = finding.at.path.clone().unwrap_or_default();
        format!("{} {} {path}: {}", finding.severity, finding.rule, finding.message)
    });
    lines.collect()
}

/// What the converters write and validation remarks on, with the reason.
fn explained(file: &str) -> &'static [&'static str] {
    match file {
        // The converter lists constants of a branch among its captures where an operator of the
        // branch reads them. The body counts no turns, so its first input is unused.
        "control_flow.v1.rten" | "control_flow.v2.rten" => &[
            "note rten/captured-constant graph/then_branch: captures[0] is node 0, a constant, \
             which is there already",
            "note rten/captured-constant graph/else_branch: captures[0] is node 0, a constant, \
             which is there already",
            "note rten/captured-constant graph/body: captures[1] is node 0, a constant, which is \
             there already",
            "note rten/unused graph/body/node 1 \"i\": is an input that nothing reads",
        ],
        // An output that is left out has the name "" in ONNX, of which the converter makes a value.
        "dtypes.v1.rten" | "dtypes.v2.rten" => {
            &["note rten/unused graph/node 63: is made and read by nothing"]
        }
        _ => &[],
    }
}

#[test]
fn findings_in_real_files_are_explained() {
    for path in files("rten/valid", "rten") {
        let reader = Reader::from_bytes(fs::read(&path).unwrap()).unwrap();
        let file = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(lines(&reader.validate()), explained(file), "{file}");
    }
}

fn value(name: &str) -> Node {
    let shape = Some(vec![Dim::Symbol("batch".to_owned()), Dim::Fixed(2)]);
    Node::named(name, Value { shape, dtype: Some(DataType::Float) })
}

fn integer(name: &str) -> Node {
    Node::named(name, Value { shape: None, dtype: Some(DataType::Int32) })
}

fn floats(name: &str, values: &[f32]) -> Node {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let constant = Constant {
        shape: vec![values.len() as u32],
        dtype: Some(ConstantDataType::Float32),
        data: Some(ConstantData::Float(bytes.into())),
        data_offset: None,
    };
    Node::named(name, constant)
}

fn operator(name: &str, operator_type: OperatorType, inputs: &[u32], outputs: &[u32]) -> Node {
    let ids = |ids: &[u32]| ids.iter().copied().map(Some).collect();
    let (inputs, outputs) = (ids(inputs), ids(outputs));
    Node::named(name, Operator { operator_type, attributes: None, inputs, outputs })
}

fn with(mut node: Node, attributes: impl Into<Attributes>) -> Node {
    let NodeKind::Operator(operator) = &mut node.kind else { panic!("{node:?}") };
    operator.attributes = Some(attributes.into());
    node
}

/// `y = softmax(x + w)`: 0 w, 1 x, 2 sum, 3 y, 4 add, 5 softmax.
fn model() -> Model {
    let nodes = vec![
        floats("w", &[1.0, 2.0]),
        value("x"),
        value("sum"),
        value("y"),
        operator("add", OperatorType::Add, &[1, 0], &[2]),
        with(operator("softmax", OperatorType::Softmax, &[2], &[3]), SoftmaxAttrs { axis: 1 }),
    ];
    let graph = Graph { nodes, inputs: vec![1], outputs: vec![3], captures: vec![] };
    Model { graph, metadata: None }
}

fn operator_mut(model: &mut Model, id: usize) -> &mut Operator {
    match &mut model.graph.nodes[id].kind {
        NodeKind::Operator(operator) => operator,
        kind => panic!("{kind:?}"),
    }
}

fn constant_mut(model: &mut Model, id: usize) -> &mut Constant {
    match &mut model.graph.nodes[id].kind {
        NodeKind::Constant(constant) => constant,
        kind => panic!("{kind:?}"),
    }
}

fn value_mut(model: &mut Model, id: usize) -> &mut Value {
    match &mut model.graph.nodes[id].kind {
        NodeKind::Value(value) => value,
        kind => panic!("{kind:?}"),
    }
}

/// Changes one thing in the model and expects these findings, of the model and of a file with it.
#[track_caller]
fn finds(change: impl FnOnce(&mut Model), expected: &[&str]) {
    let mut model = model();
    change(&mut model);
    assert_eq!(lines(&model.lint()), expected);
    let file = model.to_bytes().unwrap();
    assert_eq!(lines(&Reader::from_bytes(file).unwrap().validate()), expected);
}

#[test]
fn sound_model() {
    finds(|_| (), &[]);
}

#[test]
fn nodes_and_operators() {
    finds(
        |model| model.graph.nodes.push(Node { name: None, kind: NodeKind::Missing }),
        &[
            "error rten/node-type graph/node 6: is empty, expected an operator, a constant or a value",
        ],
    );
    finds(
        |model| operator_mut(model, 4).operator_type = OperatorType::Unknown(145),
        &[
            "error rten/operator-type graph/node 4 \"add\": has operator type 145, expected 0 to 144",
        ],
    );
    finds(
        |model| operator_mut(model, 5).attributes = None,
        &[
            "error rten/attributes graph/node 5 \"softmax\": has attributes none, but Softmax needs \
           SoftmaxAttrs",
        ],
    );
    finds(
        |model| operator_mut(model, 5).attributes = Some(ConvAttrs::default().into()),
        &["error rten/attributes graph/node 5 \"softmax\": has attributes ConvAttrs, but Softmax \
           needs SoftmaxAttrs"],
    );
    finds(
        |model| operator_mut(model, 4).attributes = Some(SoftmaxAttrs { axis: 0 }.into()),
        &[
            "warning rten/attributes-ignored graph/node 4 \"add\": has attributes SoftmaxAttrs, which \
           Add ignores",
        ],
    );
    finds(
        |model| operator_mut(model, 4).inputs.push(None),
        &["error rten/too-many-inputs graph/node 4 \"add\": has 3 inputs, but Add takes up to 2"],
    );
    finds(
        |model| operator_mut(model, 4).inputs.truncate(1),
        &[
            "note rten/unused graph/node 0 \"w\": is read by nothing",
            "warning rten/missing-input graph/node 4 \"add\": has no input 1, without which Add cannot run",
        ],
    );
    finds(
        |model| operator_mut(model, 4).inputs[0] = None,
        &[
            "note rten/unused graph/node 1 \"x\": is an input that nothing reads",
            "warning rten/missing-input graph/node 4 \"add\": has no input 0, without which Add \
             cannot run",
        ],
    );
    finds(
        |model| constant_mut(model, 0).dtype = Some(ConstantDataType::Int8),
        &[
            "warning rten/dtype-mismatch graph/node 0 \"w\": has dtype Int8, but its inline data is \
           f32",
        ],
    );
}

#[test]
fn lists_that_do_not_fit_the_window() {
    let pool = |model: &mut Model, auto_pad| {
        let operator = operator_mut(model, 5);
        operator.operator_type = OperatorType::MaxPool;
        let (pads, strides) = (Some(vec![0; 6]), Some(vec![]));
        let table =
            MaxPoolAttrs { kernel_size: vec![2, 2], auto_pad, pads, strides, ceil_mode: false };
        operator.attributes = Some(table.into());
    };
    let strides = "warning rten/window graph/node 5 \"softmax\": has strides of 0 numbers, expected 2 \
                   for a window of 2 dimensions: RTen opens the model, and cannot run it";
    let pads = strides.replace("strides of 0 numbers, expected 2", "pads of 6 numbers, expected 4");
    finds(|model| pool(model, AutoPad::NotSet), &[&pads, strides]);
    // Pads that nothing reads.
    finds(|model| pool(model, AutoPad::Same), &[strides]);
    // The rank of a convolution is that of its kernel.
    finds(
        |model| {
            constant_mut(model, 0).shape = vec![2, 1, 1];
            let operator = operator_mut(model, 4);
            operator.operator_type = OperatorType::Conv;
            let (strides, dilations) = (Some(vec![1, 1]), Some(vec![1]));
            let table = ConvAttrs { strides, dilations, ..ConvAttrs::default() };
            operator.attributes = Some(table.into());
        },
        &["warning rten/window graph/node 4 \"add\": has strides of 2 numbers, expected 1 for a \
           window of 1 dimensions: RTen opens the model, and cannot run it"],
    );
}

#[test]
fn contradictory_element_types() {
    // What an operator is given is what it makes, and what the next one is given.
    finds(
        |model| {
            value_mut(model, 1).dtype = None;
            let constant = constant_mut(model, 0);
            constant.dtype = Some(ConstantDataType::Int8);
            constant.data = Some(ConstantData::Int8(Bytes::from_static(&[1, 2])));
        },
        &["warning rten/element-type graph/node 5 \"softmax\": has input 0 of element type Int8, \
           but Softmax needs Float"],
    );
    finds(
        |model| value_mut(model, 1).dtype = Some(DataType::Int32),
        &["warning rten/element-type graph/node 4 \"add\": has input 1 of element type Float, \
           but Add needs Int32"],
    );
    // What the file says of a result does not count against what makes it.
    finds(|model| value_mut(model, 2).dtype = Some(DataType::Int32), &[]);
    finds(
        |model| operator_mut(model, 4).operator_type = OperatorType::SequenceConstruct,
        &[
            "warning rten/element-type graph/node 5 \"softmax\": has input 0 that is a sequence, but \
           Softmax needs a tensor",
        ],
    );
}

#[test]
fn axes_that_converters_filled_in() {
    let note = "note rten/softmax-axis graph/node 5 \"softmax\": has axis 0 of a tensor of rank 2, which \
                converters up to 0.22.0 write for a missing axis: the last one";
    let axis = |axis| {
        move |model: &mut Model| {
            operator_mut(model, 5).attributes = Some(SoftmaxAttrs { axis }.into());
        }
    };
    finds(axis(0), &[note]);
    finds(axis(-2), &[]);
    let flat = |model: &mut Model| {
        axis(0)(model);
        for id in [2, 3] {
            value_mut(model, id).shape = Some(vec![Dim::Fixed(2)]);
        }
    };
    finds(flat, &[]);
}

#[test]
fn unknown_numbers() {
    let pad = |mode| {
        move |model: &mut Model| {
            let operator = operator_mut(model, 5);
            operator.operator_type = OperatorType::Pad;
            operator.inputs.push(Some(0));
            operator.attributes = Some(PadAttrs { mode }.into());
            let pads = constant_mut(model, 0);
            pads.dtype = Some(ConstantDataType::Int32);
            pads.data = Some(ConstantData::Int32(Bytes::from_static(&[0; 8])));
            value_mut(model, 1).dtype = Some(DataType::Int32);
        }
    };
    finds(pad(PadMode::Wrap), &[]);
    finds(
        pad(PadMode::Unknown(9)),
        &["error rten/unknown-number graph/node 5 \"softmax\": has attribute mode of unknown \
           PadMode 9, which RTen refuses"],
    );
    finds(
        |model| {
            let operator = operator_mut(model, 5);
            operator.operator_type = OperatorType::Conv;
            operator.inputs.push(Some(0));
            let auto_pad = AutoPad::Unknown(7);
            operator.attributes = Some(ConvAttrs { auto_pad, ..Default::default() }.into());
        },
        &[
            "warning rten/unknown-number graph/node 5 \"softmax\": has attribute auto_pad of unknown \
           AutoPad 7, which RTen takes for no padding",
        ],
    );
    finds(
        |model| value_mut(model, 2).dtype = Some(DataType::Unknown(4)),
        &[
            "error rten/unknown-number graph/node 2 \"sum\": has unknown dtype 4, which RTen refuses",
        ],
    );
}

#[test]
fn links_between_nodes() {
    finds(
        |model| model.graph.outputs.push(6),
        &["error rten/node-id graph: outputs[1] is node 6, but the graph has 6 nodes"],
    );
    finds(
        |model| model.graph.inputs.push(1 << 31),
        &["error rten/node-id graph: inputs[1] is node 2147483648, over the limit of the format, \
           2147483647"],
    );
    finds(
        |model| operator_mut(model, 4).inputs[1] = Some(9),
        &[
            "note rten/unused graph/node 0 \"w\": is read by nothing",
            "error rten/node-id graph/node 4 \"add\": has inputs[1] that is node 9, but the graph \
             has 6 nodes",
        ],
    );
    finds(
        |model| model.graph.nodes.swap(3, 5),
        &[
            "error rten/id-kind graph: outputs[0] is node 3, an operator, expected a value",
            "error rten/order graph/node 3 \"softmax\": has outputs[0] that is node 3, expected one \
             before the operator",
            "error rten/id-kind graph/node 3 \"softmax\": has outputs[0] that is node 3, an \
             operator, expected a value",
            "note rten/unused graph/node 5 \"y\": is made and read by nothing",
        ],
    );
    finds(
        |model| {
            operator_mut(model, 4).inputs[0] = Some(3);
        },
        &[
            "note rten/unused graph/node 1 \"x\": is an input that nothing reads",
            "error rten/cycle graph/node 4 \"add\": waits for its own output, through nodes 4, 5",
        ],
    );
    finds(
        |model| model.graph.nodes.push(operator("again", OperatorType::Relu, &[2], &[3])),
        &["warning rten/two-producers graph/node 3 \"y\": is made by nodes 5 and 6; the last one \
           wins"],
    );
    finds(
        |model| operator_mut(model, 5).outputs.push(Some(0)),
        &[
            "warning rten/too-many-outputs graph/node 5 \"softmax\": has an output 1, but Softmax \
           makes 1",
            "warning rten/id-kind graph/node 5 \"softmax\": has outputs[1] that is node 0, a \
           constant, expected a value",
        ],
    );
    finds(
        // Nothing reads it, so RTen takes it out.
        |model| operator_mut(model, 5).outputs.push(Some(4)),
        &[
            "error rten/id-kind graph/node 5 \"softmax\": has outputs[1] that is node 4, an operator, \
           expected a value",
        ],
    );
    finds(
        |model| operator_mut(model, 5).outputs.push(Some(1)),
        &[
            "warning rten/given-and-made graph/node 1 \"x\": is an input, but node 5 makes it",
            "warning rten/too-many-outputs graph/node 5 \"softmax\": has an output 1, but Softmax \
           makes 1",
        ],
    );
    finds(
        |model| operator_mut(model, 5).inputs[0] = Some(4),
        &[
            "note rten/unused graph/node 4 \"add\": makes nothing that is read",
            "error rten/id-kind graph/node 5 \"softmax\": has inputs[0] that is node 4, an \
             operator, expected a value or a constant",
        ],
    );
}

#[test]
fn lists_of_the_graph() {
    finds(
        |model| model.graph.outputs.push(5),
        &["error rten/id-kind graph: outputs[1] is node 5, an operator, expected a value"],
    );
    finds(
        |model| model.graph.outputs.push(3),
        &["error rten/id-twice graph: outputs[1] is node 3, which is listed before"],
    );
    finds(
        |model| model.graph.inputs.push(1),
        &["warning rten/id-twice graph: inputs[1] is node 1, which is listed before"],
    );
    finds(|model| model.graph.inputs.push(0), &[]);
    finds(
        |model| model.graph.nodes[2].name = Some("w".to_owned()),
        &[
            "warning rten/duplicate-name graph/node 2 \"w\": has the name of node 0; by its name only \
           the last one is found",
        ],
    );
    finds(|model| model.graph.nodes[4].name = Some("w".to_owned()), &[]);
    finds(
        |model| model.graph.captures.push(2),
        &[
            "warning rten/given-and-made graph/node 2 \"sum\": is a capture, but node 4 makes it",
            "error rten/dangling-capture graph/node 2 \"sum\": is captured, but nothing is around \
             the main graph",
        ],
    );
}

#[test]
fn values() {
    finds(
        |model| {
            model.graph.nodes.extend([value("z"), value("unread")]);
            model.graph.nodes.push(operator("none", OperatorType::Relu, &[6], &[7]));
        },
        &[
            "warning rten/undefined-value graph/node 6 \"z\": is read, but nothing makes it: it is \
           neither an input nor a capture; no output needs it",
            "note rten/unused graph/node 8 \"none\": makes nothing that is read",
        ],
    );
    finds(
        |model| model.graph.inputs.clear(),
        &["error rten/undefined-value graph/node 1 \"x\": is read, but nothing makes it: it is \
           neither an input nor a capture"],
    );
    finds(
        |model| {
            model.graph.nodes.push(value("z"));
            model.graph.outputs.push(6);
        },
        &["error rten/undefined-value graph/node 6 \"z\": is read, but nothing makes it: it is \
           neither an input nor a capture"],
    );
    finds(
        |model| model.graph.nodes.extend([value("z"), floats("c", &[])]),
        &[
            "note rten/unused graph/node 6 \"z\": is made and read by nothing",
            "note rten/unused graph/node 7 \"c\": is read by nothing",
        ],
    );
    finds(
        |model| model.graph.outputs.clear(),
        &["note rten/unused graph/node 5 \"softmax\": makes nothing that is read"],
    );
    finds(
        |model| value_mut(model, 1).shape = Some(vec![Dim::Fixed(0), Dim::Fixed(2)]),
        &[
            "warning rten/fixed-zero-input graph/node 1 \"x\": is an input whose dimension 0 is fixed \
           at 0: converters write that for an unknown one, and RTen since 0.25.0 takes only empty \
           tensors for it",
        ],
    );
    finds(|model| value_mut(model, 2).shape = Some(vec![Dim::Fixed(0)]), &[]);
    finds(
        |model| value_mut(model, 2).shape = Some(vec![Dim::Fixed(1); 65]),
        &["warning rten/rank graph/node 2 \"sum\": has rank 65, expected up to 64"],
    );
}

/// A branch that returns what it captures by this name.
fn branch(capture: &str) -> Option<Box<Graph>> {
    let nodes =
        vec![value(capture), value("r"), operator("copy", OperatorType::Identity, &[0], &[1])];
    Some(Box::new(Graph { nodes, inputs: vec![], outputs: vec![1], captures: vec![0] }))
}

/// Adds 6 "r", 7 "c", 8 an If of these branches.
fn add_if(model: &mut Model, branches: IfAttrs) {
    model.graph.nodes.extend([value("r"), integer("c")]);
    model.graph.nodes.push(with(operator("if", OperatorType::If, &[7], &[6]), branches));
    model.graph.inputs.push(7);
    model.graph.outputs.push(6);
}

#[test]
fn branches_of_if() {
    let branches = |then_branch, else_branch| {
        move |model: &mut Model| add_if(model, IfAttrs { then_branch, else_branch })
    };
    finds(branches(branch("x"), branch("w")), &[]);
    finds(
        branches(branch("x"), None),
        &["error rten/branch-missing graph/node 8 \"if\": has no else_branch, which RTen refuses"],
    );
    finds(
        branches(branch("x"), branch("none")),
        &[
            "error rten/dangling-capture graph/else_branch/node 0 \"none\": is captured, but no graph \
           around has a value of its name",
        ],
    );
    let mut odd = branch("x").unwrap();
    odd.inputs.push(0);
    odd.captures.clear();
    odd.outputs.clear();
    finds(
        branches(Some(odd), branch("x")),
        &[
            "warning rten/branch graph/node 8 \"if\": has a then_branch of 1 inputs, expected 0",
            "warning rten/branch graph/node 8 \"if\": has a then_branch of 0 outputs, expected 1 or \
             more",
            "note rten/unused graph/then_branch/node 2 \"copy\": makes nothing that is read",
        ],
    );
    let mut undefined = branch("x").unwrap();
    undefined.captures.clear();
    finds(
        branches(branch("x"), Some(undefined)),
        &["error rten/undefined-value graph/else_branch/node 0 \"x\": is read, but nothing makes \
           it: it is neither an input nor a capture"],
    );
}

#[test]
fn bodies_of_loop() {
    let add = |body: Option<Box<Graph>>| {
        move |model: &mut Model| {
            let attributes = LoopAttrs { body };
            let operator = operator("loop", OperatorType::Loop, &[6, 6], &[]);
            model.graph.nodes.push(integer("n"));
            model.graph.nodes.push(with(operator, attributes));
            model.graph.inputs.push(6);
        }
    };
    finds(
        add(None),
        &["error rten/branch-missing graph/node 7 \"loop\": has no body, which RTen refuses"],
    );
    finds(
        add(branch("n")),
        &["warning rten/branch graph/node 7 \"loop\": has a body of 0 inputs, expected 2"],
    );
}

#[test]
fn subgraphs_that_are_too_deep() {
    let mut model = model();
    for _ in 0..16 {
        let Model { graph, .. } = std::mem::take(&mut model);
        let body = LoopAttrs { body: Some(Box::new(Graph { inputs: vec![], ..graph })) };
        let nodes = vec![with(operator("loop", OperatorType::Loop, &[], &[]), body)];
        model.graph = Graph { nodes, ..Graph::default() };
    }
    let report = model.lint();
    let found = lines(&report).into_iter().find(|line| line.contains("subgraph-depth"));
    let path = "/body".repeat(16);
    let expected = format!(
        "error rten/subgraph-depth graph{path}: graph is 16 levels below the main one, but RTen \
         reads up to 15"
    );
    assert_eq!(found, Some(expected));
}

#[test]
fn more_tables_than_rten_reads() {
    let mut model = model();
    let dims = vec![Dim::Fixed(1); 50];
    let value = Value { shape: Some(dims), dtype: None };
    let node = Node { name: None, kind: value.into() };
    model.graph.nodes.extend(std::iter::repeat_n(node, 19_300));
    let lines = lines(&model.lint());
    assert_eq!(
        lines.iter().find(|line| line.contains("table-count")).map(String::as_str),
        Some(
            "warning rten/table-count : model data has 1003622 tables, but RTen reads up to 1000000"
        )
    );
    // As many findings of a rule are listed as anyone reads.
    assert_eq!(lines.len(), 1002);
    assert_eq!(
        lines.iter().find(|line| line.contains("not listed")).map(String::as_str),
        Some("note rten/unused : 18300 more are not listed")
    );
}

#[test]
fn hash_of_the_onnx_file() {
    finds(
        |model| {
            let onnx_hash = Some("A".repeat(64));
            model.metadata = Some(Metadata { onnx_hash, ..Metadata::default() });
        },
        &[&format!(
            "warning rten/onnx-hash metadata: onnx_hash is \"{}\", expected a SHA-256 in 64 \
             lower-case hex digits",
            "A".repeat(64)
        )],
    );
}

/// Changes the constant of the model, and expects this error first when it is read and when a file
/// of version 1 with it is validated.
#[track_caller]
fn refuses(change: impl FnOnce(&mut Constant), rule: &str, message: &str) {
    let mut model = model();
    change(constant_mut(&mut model, 0));
    let reader = Reader::from_bytes(model.to_bytes().unwrap()).unwrap();
    let error = reader.tensor("w").unwrap().bytes().unwrap_err();
    assert_eq!((error.rule(), &*error.to_string()), (rule, message));
    // The place of a finding is not said again in its message.
    let message = message.strip_prefix("graph/node 0 \"w\" ").unwrap();
    let report = reader.validate();
    let mut errors = report.findings().iter().filter(|f| f.severity == Severity::Error);
    let found = errors.next().map(|finding| (&*finding.rule, &*finding.message));
    assert_eq!(found, Some((rule, message)));
    assert_eq!(errors.next(), None);
}

#[test]
fn constants_that_cannot_be_read() {
    refuses(
        |constant| constant.data = None,
        "rten/constant-data",
        "graph/node 0 \"w\" has neither inline data nor a data offset, expected one of them",
    );
    refuses(
        |constant| constant.shape = vec![3],
        "rten/tensor-length",
        "graph/node 0 \"w\" has 8 bytes of inline data, but its shape [3] needs 12",
    );
    refuses(
        |constant| constant.shape = vec![1 << 31, 1 << 31, 4],
        "rten/shape-overflow",
        "graph/node 0 \"w\" cannot be read: shape [2147483648, 2147483648, 4] has more elements \
         than 64 bits can count",
    );
    refuses(
        |constant| constant.shape = vec![1; 65],
        "rten/limit",
        "graph/node 0 \"w\" cannot be read: rank is 65, over the limit of 64 (Limits::rank)",
    );
    refuses(
        |constant| (constant.data, constant.data_offset) = (None, Some(64)),
        "rten/external-in-v1",
        "graph/node 0 \"w\" has data offset 64, but a file of version 1 has no tensor data",
    );
    refuses(
        |constant| {
            (constant.data, constant.data_offset, constant.dtype) = (None, Some(64), None);
        },
        "rten/constant-dtype",
        "graph/node 0 \"w\" has a data offset but no dtype, expected one of Int32, Float32, Int8, \
         UInt8",
    );
    refuses(
        |constant| {
            let dtype = Some(ConstantDataType::Unknown(4));
            (constant.data, constant.data_offset, constant.dtype) = (None, Some(64), dtype);
        },
        "rten/constant-dtype",
        "graph/node 0 \"w\" has dtype 4, expected one of Int32 (0), Float32 (1), Int8 (2), UInt8 \
         (3)",
    );
}

#[test]
fn unknown_dtype_of_inline_data() {
    let mut model = model();
    constant_mut(&mut model, 0).dtype = Some(ConstantDataType::Unknown(4));
    let reader = Reader::from_bytes(model.to_bytes().unwrap()).unwrap();
    assert_eq!(
        lines(&reader.validate()),
        ["warning rten/dtype-mismatch graph/node 0 \"w\": has dtype unknown 4, but its inline \
             data is f32"]
    );
}

/// A file of version 2: model data at byte 64, tensors of 8 bytes at these offsets from byte
/// `tensor_data`, zeros everywhere else.
struct Layout {
    data_offsets: Vec<u64>,
    tensor_data: u64,
    len: u64,
    model_data: u64,
    poke: Option<usize>,
}

impl Layout {
    fn new(data_offsets: &[u64]) -> Self {
        let (tensor_data, len) = (1024, 1024 + 256);
        Self { data_offsets: data_offsets.to_vec(), tensor_data, len, model_data: 32, poke: None }
    }

    /// Returns the findings; those on the way between model data and tensor data are left out.
    fn findings(self) -> Vec<String> {
        let mut model = model();
        let nodes = self.data_offsets.iter().map(|offset| {
            let dtype = Some(ConstantDataType::Float32);
            let constant =
                Constant { shape: vec![2], dtype, data: None, data_offset: Some(*offset) };
            Node::named("t", constant)
        });
        let first = model.graph.nodes.len() as u32;
        model.graph.nodes.extend(nodes);
        for (index, node) in (first..).zip(&mut model.graph.nodes[first as usize..]) {
            node.name = Some(format!("t{index}"));
            model.graph.outputs.push(index);
        }
        let model_data = Bytes::from(model.to_bytes().unwrap());
        assert!(model_data.len() < 900, "{}", model_data.len());
        let extent = Extent::new(self.model_data, model_data.len() as u64).unwrap();
        let header = Header { model_data: extent, tensor_data_offset: self.tensor_data };
        let mut file = header.to_bytes();
        file.resize(self.len as usize, 0);
        let start = self.model_data as usize;
        file[start..start + model_data.len()].copy_from_slice(&model_data);
        if let Some(at) = self.poke {
            file[at] = 1;
        }
        let report = Reader::from_bytes(file).unwrap().validate();
        let mut lines = lines(&report);
        lines.retain(|line| !line.contains("rten/gap"));
        lines
    }
}

#[test]
fn tensors_in_their_places() {
    let mut layout = Layout::new(&[0, 64, 128, 192]);
    layout.len = 1024 + 200;
    assert_eq!(layout.findings(), Vec::<String>::new());
}

#[test]
fn tensors_behind_the_end() {
    for offset in [249, u64::MAX] {
        assert_eq!(
            Layout::new(&[192, offset]).findings(),
            [format!(
                "error rten/tensor-out-of-bounds graph/node 7 \"t7\": needs 8 \
                 bytes at byte {offset} of the tensor data, which starts at byte 1024 of a file of \
                 1280 bytes"
            )]
        );
    }
}

#[test]
fn tensors_that_share_bytes() {
    assert_eq!(
        Layout::new(&[192, 192]).findings(),
        [
            "note rten/tensor-shared graph/node 7 \"t7\": tensor has the bytes of graph/node 6 \"t6\""
        ]
    );
    assert_eq!(
        Layout::new(&[192, 196]).findings(),
        [
            "note rten/tensor-misaligned graph/node 7 \"t7\": tensor at byte 1220 is not on a \
             multiple of 64",
            "warning rten/tensor-overlap graph/node 7 \"t7\": tensor of 8 bytes at byte 1220 \
             overlaps graph/node 6 \"t6\", 8 bytes at byte 1216",
        ]
    );
}

#[test]
fn tensors_off_their_boundaries() {
    assert_eq!(
        Layout::new(&[194]).findings(),
        ["warning rten/tensor-misaligned graph/node 6 \"t6\": tensor at byte 1218 is not on a \
          multiple of 4"]
    );
}

#[test]
fn tensor_data_off_its_boundary() {
    let mut layout = Layout::new(&[188]);
    layout.tensor_data = 1028;
    assert_eq!(
        layout.findings(),
        ["note rten/segment-misaligned header: tensor data starts at byte 1028, which is not a \
          multiple of 64"]
    );
}

#[test]
fn tensor_data_inside_the_model_data() {
    let mut layout = Layout::new(&[8, 1152]);
    layout.tensor_data = 64;
    let findings = layout.findings();
    let [tensor, segment, overlap] = findings.as_slice() else { panic!("{findings:#?}") };
    assert!(segment.starts_with(
        "warning rten/segment-overlap header: tensor data starts at byte 64, inside the model data, "
    ));
    assert_eq!(
        tensor,
        "note rten/tensor-misaligned graph/node 6 \"t6\": tensor at byte 72 is not on a multiple \
         of 64"
    );
    assert_eq!(
        overlap,
        "warning rten/tensor-overlap graph/node 6 \"t6\": tensor of 8 bytes at byte 72 overlaps \
         the model data"
    );
}

#[test]
fn bytes_that_belong_to_nothing() {
    assert_eq!(
        Layout::new(&[0]).findings(),
        ["note rten/trailing-bytes : 248 bytes at byte 1032 belong to nothing"]
    );
    let mut layout = Layout::new(&[192, 128]);
    layout.poke = Some(1024 + 140);
    assert_eq!(
        layout.findings(),
        ["warning rten/padding : padding of 56 bytes at byte 1160 is not zero, which hides bytes \
          from every reader"]
    );
}

#[test]
fn inline_data_and_an_offset() {
    let mut model = model();
    constant_mut(&mut model, 0).data_offset = Some(0);
    assert_eq!(
        lines(&model.lint()),
        [
            "warning rten/inline-and-external graph/node 0 \"w\": has inline data and a data offset, \
          which takes precedence"
        ]
    );
}

/// Many operators that make, and many that read, one value of a long name and a high rank.
#[test]
fn shared_values_cost_no_more_than_the_file() {
    let many = 20_000;
    let mut shared = value(&"n".repeat(100_000));
    if let NodeKind::Value(value) = &mut shared.kind {
        value.shape = Some(vec![Dim::Fixed(1); 10_000]);
    }
    let mut nodes = vec![shared];
    nodes.extend((0..many).map(|_| operator("make", OperatorType::Relu, &[], &[0])));
    nodes.extend((0..many).map(|_| operator("read", OperatorType::Add, &[0, 0], &[])));
    let graph = Graph { nodes, outputs: vec![0; 20_000], ..Graph::default() };
    let model = Model { graph, metadata: None };
    let reader = Reader::from_bytes(model.to_bytes().unwrap()).unwrap();
    let start = std::time::Instant::now();
    let findings = reader.validate().findings().len();
    assert!(findings < 3000, "{findings}");
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}
