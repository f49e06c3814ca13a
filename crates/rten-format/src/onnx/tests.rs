//! Small models, and the nodes that they become.

use std::io;

use prost::Message as _;
use tensor_core::DType;

use super::{
    Export,
    proto::{DimensionProto, GraphProto, ModelProto, NodeProto, TypeValue},
};
use crate::{
    Attributes, Constant, ConstantData, DataType, Dim, Graph, Metadata, Model, Node, Operator,
    OperatorType, Reader, Value,
    attributes::{
        ConvAttrs, GatherAttrs, IfAttrs, LoopAttrs, QuantizeLinearAttrs, ReduceMeanAttrs,
        SplitAttrs,
    },
};

fn typed(name: &str, dtype: DataType) -> Node {
    let shape = Some(vec![Dim::Symbol("n".to_owned())]);
    Node::named(name, Value { shape, dtype: Some(dtype) })
}

fn value(name: &str) -> Node {
    Node::named(name, Value::default())
}

fn ints(name: &str, data: &[i32]) -> Node {
    let shape = vec![u32::try_from(data.len()).unwrap()];
    let bytes: Vec<u8> = data.iter().flat_map(|value| value.to_le_bytes()).collect();
    let data = Some(ConstantData::Int32(bytes.into()));
    Node::named(name, Constant { shape, dtype: None, data, data_offset: None })
}

fn op(
    operator_type: OperatorType,
    attributes: Option<Attributes>,
    inputs: &[u32],
    outputs: &[u32],
) -> Node {
    let ids = |ids: &[u32]| ids.iter().copied().map(Some).collect();
    let (inputs, outputs) = (ids(inputs), ids(outputs));
    Node { name: None, kind: Operator { operator_type, attributes, inputs, outputs }.into() }
}

fn graph(nodes: Vec<Node>, inputs: &[u32], outputs: &[u32]) -> Graph {
    Graph { nodes, inputs: inputs.to_vec(), outputs: outputs.to_vec(), captures: vec![] }
}

fn exported(graph: Graph, metadata: Option<Metadata>) -> ModelProto {
    let reader = Reader::from_bytes(Model { graph, metadata }.to_bytes().unwrap()).unwrap();
    ModelProto::decode(&Export::new(&reader).to_bytes().unwrap()[..]).unwrap()
}

fn main_graph(graph: Graph) -> GraphProto {
    exported(graph, None).graph.unwrap()
}

/// Writes nodes as `output = Operator(input, input)`, a cast with the number of its type.
fn lines(graph: &GraphProto) -> Vec<String> {
    let line = |node: &NodeProto| {
        let operator = node.op_type.as_deref().unwrap();
        let to = node.attribute.iter().find(|attribute| attribute.name.as_deref() == Some("to"));
        let to = to.map(|to| format!(" to {}", to.i.unwrap())).unwrap_or_default();
        format!("{} = {operator}({}){to}", node.output.join(", "), node.input.join(", "))
    };
    graph.node.iter().map(line).collect()
}

/// Writes inputs and outputs with the numbers of their element types.
fn interface(graph: &GraphProto) -> Vec<String> {
    let values = graph.input.iter().chain(&graph.output);
    let text = |value: &super::proto::ValueInfoProto| {
        let r#type = value.r#type.clone().unwrap().value.unwrap();
        let TypeValue::Tensor(tensor) = r#type else { return "sequence".to_owned() };
        format!("{}: {}", value.name.as_deref().unwrap(), tensor.elem_type.unwrap())
    };
    values.map(text).collect()
}

/// Writes initialisers with the numbers of their element types and their bytes.
fn initializers(graph: &GraphProto) -> Vec<String> {
    let text = |initializer: &super::proto::Initializer| {
        let tensor = &initializer.tensor;
        let (name, data) = (tensor.name.as_deref().unwrap(), tensor.raw_data.as_ref().unwrap());
        format!("{name}: {} {data:?}", tensor.data_type.unwrap())
    };
    graph.initializer.iter().map(text).collect()
}

#[test]
fn truth_values_are_cast_where_numbers_are_needed() {
    let nodes = vec![
        typed("i", DataType::Int32),
        ints("two", &[2]),
        value("less"),
        op(OperatorType::Less, None, &[0, 1], &[2]),
        value("sum"),
        op(OperatorType::Add, None, &[2, 0], &[4]),
        value("twice"),
        op(OperatorType::Add, None, &[2, 2], &[6]),
        value("not"),
        op(OperatorType::Not, None, &[2], &[8]),
        value("other"),
        op(OperatorType::Not, None, &[0], &[10]),
    ];
    let graph = main_graph(graph(nodes, &[0], &[4, 6, 8, 10]));
    assert_eq!(interface(&graph), ["i: 7", "sum: 7", "twice: 7", "not: 9", "other: 9"]);
    assert_eq!(initializers(&graph), [r#"two: 7 b"\x02\0\0\0\0\0\0\0""#]);
    assert_eq!(
        lines(&graph),
        [
            "less = Less(i, two)",
            "less_as_int64 = Cast(less) to 7",
            "sum = Add(less_as_int64, i)",
            "twice = Add(less_as_int64, less_as_int64)",
            "not = Not(less)",
            "i_as_bool = Cast(i) to 9",
            "other = Not(i_as_bool)",
        ]
    );
}

/// Where all readers want the same of a constant there is nothing to be cast.
#[test]
fn constants_are_what_their_readers_want() {
    let nodes = vec![
        typed("x", DataType::Float),
        ints("mask", &[2, 0]),
        ints("quantized", &[-1]),
        ints("both", &[1, 0]),
        value("a"),
        op(OperatorType::Where, None, &[1, 0, 0], &[4]),
        value("b"),
        op(OperatorType::Relu, None, &[2], &[6]),
        value("c"),
        op(OperatorType::Where, None, &[3, 3, 3], &[8]),
    ];
    let graph = main_graph(graph(nodes, &[0], &[4, 6, 8]));
    assert_eq!(
        initializers(&graph),
        [
            r#"mask: 9 b"\x01\0""#,
            r#"quantized: 6 b"\xff\xff\xff\xff""#,
            r#"both: 7 b"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0""#,
        ]
    );
    assert_eq!(
        lines(&graph),
        [
            "a = Where(mask, x, x)",
            "b = Relu(quantized)",
            "both_as_bool = Cast(both) to 9",
            "c = Where(both_as_bool, both, both)",
        ]
    );
}

#[test]
fn conditions_of_loops_are_truth_values_inside_and_outside() {
    let body = graph(
        vec![
            value("iteration"),
            value("go_on"),
            value("sum"),
            value("next"),
            op(OperatorType::Add, None, &[2, 1], &[3]),
        ],
        &[0, 1, 2],
        &[3, 3],
    );
    let body = Some(Box::new(body));
    let nodes = vec![
        typed("i", DataType::Int32),
        value("equal"),
        op(OperatorType::Equal, None, &[0, 0], &[1]),
        value("result"),
        op(OperatorType::Loop, Some(LoopAttrs { body }.into()), &[0, 0, 1], &[3]),
    ];
    let graph = main_graph(graph(nodes, &[0], &[3]));
    assert_eq!(
        lines(&graph),
        [
            "equal = Equal(i, i)",
            "i_as_bool = Cast(i) to 9",
            "equal_as_int64 = Cast(equal) to 7",
            "result = Loop(i, i_as_bool, equal_as_int64)",
        ]
    );
    let body = graph.node[3].attribute[0].g.as_ref().unwrap();
    assert_eq!(
        interface(body),
        ["iteration: 7", "go_on: 9", "sum: 7", "next_as_bool: 9", "next: 7"]
    );
    assert_eq!(
        lines(body),
        [
            "go_on_as_int64 = Cast(go_on) to 7",
            "next = Add(sum, go_on_as_int64)",
            "next_as_bool = Cast(next) to 9",
        ]
    );
}

#[test]
fn branches_capture_by_name() {
    let branch = |captured: &str| {
        let mut branch = graph(vec![value(captured)], &[], &[0]);
        branch.captures = vec![0];
        Some(Box::new(branch))
    };
    let branches = IfAttrs { then_branch: branch("i"), else_branch: branch("less") };
    let nodes = vec![
        typed("i", DataType::Int32),
        value("less"),
        op(OperatorType::Less, None, &[0, 0], &[1]),
        value("result"),
        op(OperatorType::If, Some(branches.into()), &[1], &[3]),
    ];
    let graph = main_graph(graph(nodes, &[0], &[3]));
    assert_eq!(lines(&graph), ["less = Less(i, i)", "result = If(less)"]);
    let branches = graph.node[1].attribute.iter().map(|branch| branch.g.as_ref().unwrap());
    let branches: Vec<_> = branches.map(lines).collect();
    assert_eq!(branches, [["i_output = Identity(i)"], ["less_as_int64 = Cast(less) to 7"]]);
}

#[test]
fn attributes_become_inputs() {
    let reduce = ReduceMeanAttrs { axes: Some(vec![-1]), keep_dims: true, ..Default::default() };
    let quantize = QuantizeLinearAttrs { axis: 0, output_dtype: Some(DataType::Int8) };
    let nodes = vec![
        typed("x", DataType::Float),
        value("sum"),
        op(OperatorType::ReduceSum, Some(reduce.into()), &[0], &[1]),
        value("quantized"),
        op(OperatorType::QuantizeLinear, Some(quantize.into()), &[0, 1], &[3]),
    ];
    let graph = main_graph(graph(nodes, &[0], &[3]));
    assert_eq!(initializers(&graph), [r#"axes_2: 7 b"\xff\xff\xff\xff\xff\xff\xff\xff""#]);
    assert_eq!(
        lines(&graph),
        [
            "sum = ReduceSum(x, axes_2)",
            "sum_shape = Shape(sum)",
            "sum_zero_point = ConstantOfShape(sum_shape)",
            "quantized = QuantizeLinear(x, sum, sum_zero_point)",
        ]
    );
    assert_eq!(interface(&graph), ["x: 1", "quantized: 3"]);
}

#[test]
fn outputs_have_names_of_their_own() {
    let nodes = vec![
        typed("x", DataType::Float),
        value("x"),
        Node { name: None, kind: Value::default().into() },
        op(OperatorType::Neg, None, &[0], &[1]),
        op(OperatorType::Neg, None, &[1], &[2]),
    ];
    let graph = main_graph(graph(nodes, &[0], &[0, 2, 2]));
    assert_eq!(
        lines(&graph),
        [
            "x_2 = Neg(x)",
            "value_2 = Neg(x_2)",
            "x_output = Identity(x)",
            "value_2_output = Identity(value_2)",
        ]
    );
    assert_eq!(interface(&graph), ["x: 1", "x_output: 1", "value_2: 1", "value_2_output: 1"]);
    let names: Vec<_> = graph.node.iter().map(|node| node.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["Neg_3", "Neg_4", "x_output", "value_2_output"]);
}

/// Returns the rules of what an export reports, and the places.
fn findings(graph: Graph, input_types: &[(String, DType)]) -> Vec<String> {
    let reader = Reader::from_bytes(Model { graph, metadata: None }.to_bytes().unwrap()).unwrap();
    let exported = Export::new(&reader).input_types(input_types).write_to(io::sink(), "").unwrap();
    let findings = exported.report.findings().iter();
    findings
        .map(|finding| format!("{}: {}", finding.at.path.as_deref().unwrap(), finding.message))
        .collect()
}

#[test]
fn constants_that_are_given_out_keep_their_names() {
    let nodes =
        vec![ints("numbers", &[1]), value("sum"), op(OperatorType::Add, None, &[0, 0], &[1])];
    let made = graph(nodes, &[], &[0, 1, 0]);
    assert_eq!(
        lines(&main_graph(made.clone())),
        [
            "sum = Add(numbers_constant, numbers_constant)",
            "numbers = Identity(numbers_constant)",
            "numbers_constant_output = Identity(numbers_constant)",
        ]
    );
    assert_eq!(
        findings(made, &[]),
        ["graph/node 0 \"numbers\": is given out as \"numbers_constant_output\""]
    );
}

#[test]
fn inputs_are_what_all_readers_take_or_what_is_asked_for() {
    let nodes = vec![
        typed("truth", DataType::Int32),
        typed("index", DataType::Int32),
        typed("x", DataType::Float),
        value("a"),
        op(OperatorType::Where, None, &[0, 2, 2], &[3]),
        value("b"),
        op(OperatorType::Gather, Some(GatherAttrs { axis: 0 }.into()), &[3, 1], &[5]),
    ];
    let made = graph(nodes, &[0, 1, 2], &[5]);
    let types = |graph: &GraphProto| interface(graph)[..3].join(", ");
    assert_eq!(types(&main_graph(made.clone())), "truth: 9, index: 7, x: 1");
    assert_eq!(
        findings(made.clone(), &[])[..2],
        [
            "graph/node 0 \"truth\": is BOOL in ONNX, where the file says Int32",
            "graph/node 1 \"index\": is INT64 in ONNX, where the file says Int32",
        ]
    );
    let reader = Reader::from_bytes(Model { graph: made, metadata: None }.to_bytes().unwrap());
    let reader = reader.unwrap();
    let export = |types: &[(String, DType)]| Export::new(&reader).input_types(types).to_bytes();
    let asked = |name: &str, dtype| vec![(name.to_owned(), dtype)];
    let export_of = |types: &[(String, DType)]| {
        ModelProto::decode(&export(types).unwrap()[..]).unwrap().graph.unwrap()
    };
    let wide = export_of(&[asked("truth", DType::I64), asked("index", DType::I32)].concat());
    assert_eq!(types(&wide), "truth: 7, index: 6, x: 1");
    let refused = |name, dtype| export(&asked(name, dtype)).unwrap_err().to_string();
    assert_eq!(refused("y", DType::I32), "model has no input \"y\", expected truth, index, x");
    assert_eq!(refused("x", DType::I32), "graph/node 2 \"x\" has an input type i32, expected f32");
}

#[test]
fn last_operator_that_makes_a_value_is_taken() {
    let nodes = vec![
        typed("x", DataType::Float),
        value("y"),
        op(OperatorType::Neg, None, &[0], &[1]),
        op(OperatorType::Abs, None, &[0], &[1]),
    ];
    let made = graph(nodes, &[0], &[1]);
    assert_eq!(lines(&main_graph(made.clone())), ["y = Abs(x)"]);
    let message = "is made more than once, taken from the last operator that makes it";
    assert_eq!(findings(made, &[]), [format!("graph/node 1 \"y\": {message}")]);

    let split = Attributes::Split(SplitAttrs { axis: 0, num_outputs: Some(3) });
    let nodes = vec![
        typed("x", DataType::Float),
        value("y"),
        value("z"),
        op(OperatorType::Split, Some(split), &[0], &[1, 2, 1]),
    ];
    let made = graph(nodes, &[0], &[1]);
    assert_eq!(lines(&main_graph(made.clone())), ["unused_3, z, y = Split(x)"]);
    assert_eq!(findings(made, &[]), [format!("graph/node 1 \"y\": {message}")]);
}

#[test]
fn windows_have_as_many_dimensions_as_their_pads() {
    let conv = |pads| {
        let table = ConvAttrs { pads, groups: 1, ..ConvAttrs::default() };
        let nodes = vec![
            typed("x", DataType::Float),
            typed("w", DataType::Float),
            value("y"),
            op(OperatorType::Conv, Some(Attributes::Conv(table)), &[0, 1], &[2]),
        ];
        let node = main_graph(graph(nodes, &[0, 1], &[2])).node.remove(0);
        let strides = node.attribute.into_iter().find(|one| one.name.as_deref() == Some("strides"));
        strides.unwrap().ints
    };
    assert_eq!(conv(Some(vec![1; 6])), [1; 3]);
    assert_eq!(conv(None), [1; 2]);
}

#[test]
fn shapes_that_operators_contradict_are_left_out() {
    let shape = Some(vec![Dim::Fixed(1), Dim::Symbol("m".to_owned())]);
    let nodes = vec![
        typed("x", DataType::Float),
        Node::named("y", Value { shape, dtype: None }),
        op(OperatorType::Neg, None, &[0], &[1]),
    ];
    let made = graph(nodes, &[0], &[1]);
    let output = main_graph(made.clone()).output.remove(0);
    let Some(TypeValue::Tensor(tensor)) = output.r#type.unwrap().value else { panic!() };
    assert_eq!(tensor.shape.unwrap().dim, [DimensionProto { value: None }]);
    let message = "has a shape of 2 dimensions, but 1 are made";
    assert_eq!(findings(made, &[]), [format!("graph/node 1 \"y\": {message}")]);
}

#[test]
fn metadata_stays() {
    let metadata = Metadata {
        description: Some("what it does".to_owned()),
        license: Some("MIT".to_owned()),
        ..Metadata::default()
    };
    let model = exported(graph(vec![], &[], &[]), Some(metadata));
    assert_eq!(model.ir_version, Some(9));
    assert_eq!(model.opset_import[0].version, Some(20));
    assert_eq!(model.producer_name.as_deref(), Some("rten-format"));
    assert_eq!(model.doc_string.as_deref(), Some("what it does"));
    let entry = |at: usize| {
        let entry = &model.metadata_props[at];
        (entry.key.as_deref().unwrap(), entry.value.as_deref().unwrap())
    };
    assert_eq!([entry(0), entry(1)], [("description", "what it does"), ("license", "MIT")]);
}

#[test]
fn operators_that_are_newer_raise_the_operator_set() {
    let attention = |inputs: &[u32]| {
        let attributes = Some(crate::attributes::AttentionAttrs::default().into());
        let mut nodes = vec![typed("q", DataType::Float), ints("lens", &[1]), value("y")];
        let operator = op(OperatorType::Attention, attributes, inputs, &[2]);
        nodes.push(operator);
        let model = exported(graph(nodes, &[0], &[2]), None);
        (model.opset_import[0].version.unwrap(), model.ir_version.unwrap())
    };
    assert_eq!(attention(&[0, 0, 0]), (23, 11));
    assert_eq!(attention(&[0, 0, 0, 0, 0, 0, 1]), (24, 12));
}
