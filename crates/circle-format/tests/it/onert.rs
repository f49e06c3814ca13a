//! What is said of onert, and what becomes of models for it.

use std::path::Path;

use circle_format::{
    Need, Reaction, Reader, Stage, Writer,
    model::{
        Buffer, BuiltinOperator, Model, ModelBuilder, Operator, OperatorCode, Schema, Tensor,
        TensorType, options::AddOptions,
    },
};
use tensor_core::Report;

/// A model of operators of one input and one output, all of the shape `[1, 4]`.
fn chain(schema: Schema, operators: &[(OperatorCode, TensorType)]) -> Model {
    let mut model = ModelBuilder::new(schema);
    let mut graph = model.subgraph("main");
    let mut last = graph.input(Tensor::new("x", TensorType::Float32, [1, 4]));
    for (at, (code, tensor_type)) in operators.iter().enumerate() {
        let made = graph.tensor(Tensor::new(format!("t{at}"), *tensor_type, [1, 4]));
        graph.operator(code.clone(), Operator::new([last], [made]));
        last = made;
    }
    graph.finish();
    let mut model = model.finish();
    model.subgraphs[0].outputs = vec![last];
    model
}

fn floats(operators: &[BuiltinOperator]) -> Vec<(OperatorCode, TensorType)> {
    operators.iter().map(|code| (OperatorCode::new(*code), TensorType::Float32)).collect()
}

fn read(model: &Model) -> Reader {
    Reader::from_bytes(model.to_bytes().unwrap()).unwrap()
}

fn fails(stage: Stage, message: &str) -> Option<Reaction> {
    Some(Reaction::Fails { stage, message: message.to_owned() })
}

/// Returns rules and messages.
fn said(report: &Report) -> Vec<String> {
    let said = |found: &tensor_core::Finding| format!("{} {}", found.rule, found.message);
    report.findings().iter().map(said).collect()
}

const INPUTS: &str = "Invalid number of input tensors for this operation.";

#[test]
fn operators_that_are_alike_are_counted() {
    let reshapes = floats(&[BuiltinOperator::RESHAPE; 3]);
    let reader = read(&chain(Schema::Circle, &reshapes));
    let expected = format!(
        "model/onert-operator 3 × RESHAPE with 1 input, which onert 0.1.0 does not run (onert fails \
         to load: {INPUTS:?})"
    );
    assert_eq!(said(&reader.lint()), [expected]);
}

/// Of what stops onert at one stage the first counts, and what it looks at last comes last.
#[test]
fn what_comes_first_is_forecast() {
    let half = [(OperatorCode::new(BuiltinOperator::DEQUANTIZE), TensorType::Float16)];
    let custom = [(OperatorCode::custom("Mine"), TensorType::Float32)];
    let prelu = floats(&[BuiltinOperator::PRELU]);
    let reshape = floats(&[BuiltinOperator::RESHAPE]);
    let forecast = |parts: &[&[(OperatorCode, TensorType)]]| {
        read(&chain(Schema::Circle, &parts.concat())).forecast()
    };
    let validator = fails(Stage::Load, "OperationValidator failed at line 317");
    assert_eq!(forecast(&[&prelu, &half]), fails(Stage::Load, INPUTS));
    assert_eq!(forecast(&[&half]), validator);
    assert_eq!(forecast(&[&half, &reshape]), fails(Stage::Load, INPUTS));
    let crashes = Some(Reaction::Crashes { stage: Stage::Load });
    assert_eq!(forecast(&[&reshape, &custom]), fails(Stage::Load, INPUTS));
    assert_eq!(forecast(&[&custom, &reshape]), crashes);
}

#[test]
fn what_was_not_tried_is_not_known_to_run() {
    let mut model = ModelBuilder::new(Schema::Circle);
    let mut graph = model.subgraph("main");
    let x = graph.input(Tensor::new("x", TensorType::Float32, [1, 4]));
    let i = graph.input(Tensor::new("i", TensorType::Int32, [1, 4]));
    let y = graph.output(Tensor::new("y", TensorType::Float32, [1, 4]));
    let add = Operator::new([x, i], [y]).options(AddOptions::default());
    graph.operator(BuiltinOperator::ADD, add);
    graph.finish();
    let model = model.finish();
    assert_eq!(read(&model).forecast(), Some(Reaction::Untried));
    let said = said(&read(&model).lint());
    assert!(said[0].starts_with("model/onert-untried ADD of f32 i32 > f32, which"), "{said:?}");

    let mut same = model.clone();
    same.subgraphs[0].tensors[1].tensor_type = TensorType::Float32;
    assert_eq!(read(&same).forecast(), None);
    same.subgraphs[0].tensors[0].shape_signature = Some(vec![-1, 4]);
    assert_eq!(read(&same).forecast(), Some(Reaction::Needs(Need::Shape)));
}

/// TFLite has other runtimes.
#[test]
fn what_stops_onert_alone_is_asked_for() {
    let ceil = floats(&[BuiltinOperator::CEIL]);
    let [circle, tflite] =
        [Schema::Circle, Schema::Tflite].map(|schema| read(&chain(schema, &ceil)));
    let known = said(&circle.lint());
    assert_eq!(known.len(), 1);
    assert_eq!(said(&tflite.lint()), [""; 0]);
    assert_eq!(said(&tflite.lint_for_onert(None)), known);
    assert_eq!(said(&circle.lint_for_onert(None)), [""; 0]);
    for (name, failed) in [
        ("m.circle", None),
        ("m.tflite", None),
        ("m.CIRCLE", Some("Failed to open CIRCLE loader")),
        ("m.", Some("Failed to open  loader")),
        ("m", Some("invalid path")),
        (".circle", Some("invalid path")),
    ] {
        let said = said(&circle.lint_for_onert(Some(Path::new(name))));
        let fits = failed.is_none_or(|failed| said[0].contains(failed));
        assert!(fits && said.len() == usize::from(failed.is_some()), "{name}: {said:?}");
    }
}

/// A model whose constant of 16 bits two operators widen.
fn halves() -> Model {
    let mut model = ModelBuilder::new(Schema::Tflite);
    let mut graph = model.subgraph("main");
    let row = |name: &str| Tensor::new(name, TensorType::Float32, [2]);
    let half = Tensor::new("half", TensorType::Float16, [2]);
    let half = graph.constant(half, vec![0x00, 0x3e, 0x00, 0xc0]);
    let (a, b) = (graph.tensor(row("a")), graph.tensor(row("b")));
    for wide in [a, b] {
        graph.operator(BuiltinOperator::DEQUANTIZE, Operator::new([half], [wide]));
    }
    let y = graph.output(row("y"));
    let add = Operator::new([a, b], [y]).options(AddOptions::default());
    graph.operator(BuiltinOperator::ADD, add);
    graph.finish();
    let mut model = model.finish();
    // Some converters give each tensor a buffer.
    model.subgraphs[0].tensors[1].buffer = 2;
    model.buffers.push(Buffer::default());
    model
}

#[test]
fn constants_of_16_bits_become_wide_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.tflite");
    let reader = read(&halves());
    let (mended, changes) = reader.mended_for_onert().unwrap();
    let places: Vec<_> = changes.iter().map(|change| &*change.path).collect();
    assert_eq!(places, ["subgraph 0/operator 0", "subgraph 0/operator 1"]);
    Writer::create(&path, &mended).unwrap().origin(&reader).finish().unwrap();
    let mended = Reader::open(&path).unwrap();
    assert_eq!(said(&mended.validate()), [""; 0]);
    assert_eq!(mended.forecast(), None);
    let values = ["a", "b"].map(|name| mended.tensor(name).unwrap().read().unwrap());
    assert_eq!(values.map(|value| value.to_vec::<f32>().unwrap()), [[1.5, -2.0]; 2]);
    assert!(mended.tensor("half").is_none());
    let with_bytes = mended.model().buffers.iter().filter(|buffer| !buffer.is_empty()).count();
    assert_eq!((with_bytes, mended.model().subgraphs[0].operators.len()), (1, 1));
    assert_eq!(mended.mended_for_onert().unwrap().1, []);
}

/// What else uses the constant keeps it.
#[test]
fn constants_of_16_bits_stay_where_they_are_used() {
    let mut model = halves();
    let y = &mut model.subgraphs[0];
    y.operators.push(Operator { opcode_index: 1, ..Operator::new([0], [3]) });
    let (mended, changes) = read(&model).mended_for_onert().unwrap();
    assert_eq!(changes.len(), 2);
    assert_eq!(mended.subgraphs[0].tensors[0].buffer, model.subgraphs[0].tensors[0].buffer);
}

#[test]
fn what_is_given_out_or_counted_stays() {
    let mut model = halves();
    model.subgraphs[0].outputs.push(0);
    let mended = read(&model).mended_for_onert().unwrap().0;
    assert_eq!(mended.subgraphs[0].tensors[0].buffer, model.subgraphs[0].tensors[0].buffer);
    let mut counted = halves();
    counted.set_metadata("model_control_dependencies", "0,1");
    assert_eq!(read(&counted).mended_for_onert().unwrap().1, []);
}

/// A scalar has no dimensions that an input could say, and other numbers than -1 say nothing.
#[test]
fn reshapes_without_a_shape_stay() {
    let changes = |shape: &[i32], signature: Option<Vec<i32>>| {
        let mut model = ModelBuilder::new(Schema::Tflite);
        let mut graph = model.subgraph("main");
        let x = graph.input(Tensor::new("x", TensorType::Float32, [1]));
        let y = Tensor::new("y", TensorType::Float32, shape.to_vec());
        let y = graph.output(Tensor { shape_signature: signature, ..y });
        graph.operator(BuiltinOperator::RESHAPE, Operator::new([x], [y]));
        graph.finish();
        let (_, changes) = read(&model.finish()).mended_for_onert().unwrap();
        changes.into_iter().map(|mended| mended.change).collect::<Vec<_>>()
    };
    assert_eq!(changes(&[], None), [""; 0]);
    assert_eq!(changes(&[1, 1], Some(vec![-2, 1])), [""; 0]);
    assert_eq!(changes(&[1, 1], Some(vec![])), ["RESHAPE has its shape [1, 1] as an input"]);
    assert_eq!(changes(&[1, 1], Some(vec![-1, 1])), ["RESHAPE has its shape [-1, 1] as an input"]);
}

#[test]
fn constants_without_elements_stop_it() {
    let mut model = ModelBuilder::new(Schema::Circle);
    let mut graph = model.subgraph("main");
    let x = graph.input(Tensor::new("x", TensorType::Float32, [1]));
    let shape = graph.constant(Tensor::new("shape", TensorType::Int32, [0]), vec![]);
    let y = graph.output(Tensor::new("y", TensorType::Float32, []));
    graph.operator(BuiltinOperator::RESHAPE, Operator::new([x, shape], [y]));
    graph.finish();
    let reader = read(&model.finish());
    assert_eq!(reader.forecast(), Some(Reaction::Crashes { stage: Stage::Run }));
    let said = said(&reader.lint());
    let expected = "model/onert-empty operator 0 reads tensor 1, which has no elements (onert crashes \
                    while running)";
    assert!(said.iter().any(|found| found == expected), "{said:?}");
}
