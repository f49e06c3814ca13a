//! Models of our own: what no converter writes, but the format allows.

mod builder;

use std::fs;

use builder::Builder;
use rten_format::{
    Attributes, AutoPad, DataType, Model, OperatorType, Reader, ResizeMode,
    attributes::{
        ArgMaxAttrs, AttentionAttrs, CastAttrs, CastLikeAttrs, ConcatAttrs,
        ConcatFromSequenceAttrs, ConvAttrs, ConvTransposeAttrs, CumSumAttrs, DequantizeLinearAttrs,
        DropoutAttrs, EinsumAttrs, EyeLikeAttrs, FlattenAttrs, GatherAttrs, GatherNDAttrs,
        GemmAttrs, IfAttrs, LSTMAttrs, LoopAttrs, MaxPoolAttrs, ModAttrs, NonMaxSuppressionAttrs,
        OneHotAttrs, PadAttrs, QuantizeLinearAttrs, ReduceMeanAttrs, ReshapeAttrs, ResizeAttrs,
        ScatterElementsAttrs, ScatterNDAttrs, SequenceEmptyAttrs, SplitAttrs, SplitToSequenceAttrs,
        TopKAttrs, TransposeAttrs, TriluAttrs, UpsampleAttrs,
    },
    onnx::{Export, ExternalData},
};
use serde_json::{Value as Json, json};

use super::{Exports, NO_SHAPE, assert_sound};

/// Exports a model, checks it and runs it with inputs; returns the outputs, `None` where the
/// clients are not installed.
#[track_caller]
fn outputs(model: &Model, inputs: &Json) -> Option<Vec<Json>> {
    let reader = Reader::from_bytes(model.to_bytes().unwrap()).unwrap();
    let mut exports = Exports::new();
    let runs = exports.folder.path().join("run.json");
    fs::write(&runs, json!({ "runs": [{ "inputs": inputs }] }).to_string()).unwrap();
    exports.add("made", &reader, Some(runs));
    let found = exports.run()?.remove(0);
    assert_sound("made", &found);
    Some(found["runs"][0].as_array().unwrap().clone())
}

fn ints(shape: &[u32], data: &[i32]) -> Json {
    json!({ "shape": shape, "data": data })
}

fn floats(shape: &[u32], data: &[f32]) -> Json {
    json!({ "shape": shape, "data": data })
}

fn reduce(keep_dims: bool) -> Option<Attributes> {
    let axes = Some(vec![1]);
    Some(ReduceMeanAttrs { axes, keep_dims, ..Default::default() }.into())
}

fn concat(axis: i32) -> Option<Attributes> {
    Some(ConcatAttrs { axis }.into())
}

/// Adds everything that takes whole numbers, to a matrix of them, `[2, 3]`.
fn take_numbers(b: &mut Builder, m: u32) -> Vec<u32> {
    use OperatorType as O;
    let seven = b.int(7);
    let axis = b.ints(&[1], &[1]);
    let scalar = b.int(1);
    let others = b.ints(&[2, 3], &[3, -2, 5, 1, 0, 4]);
    let whole = b.floats(&[2, 3], &[0.5, 1.5, -1.0, 2.0, 0.0, 3.0]);
    let shape = b.ints(&[2], &[3, 2]);
    let pads = b.ints(&[4], &[1, 0, 0, 1]);
    let indices = b.ints(&[2, 3], &[0, 1, 1, 0, 0, 1]);
    let pairs = b.ints(&[2, 1], &[1, 0]);
    let repeats = b.ints(&[2], &[2, 1]);
    let wide = b.ints(&[3], &[2, 2, 3]);
    let depth = b.int(2);
    let off_on = b.ints(&[2], &[5, 6]);
    let starts = b.ints(&[1], &[1]);
    let ends = b.ints(&[1], &[3]);
    let mut made = Vec::new();
    for operator in [O::Add, O::Sub, O::Mul, O::Max, O::Min, O::Equal, O::Less, O::Greater] {
        made.push(b.op(operator, None, &[m, m]));
        made.push(b.op(operator, None, &[m, others]));
        made.push(b.op(operator, None, &[others, m]));
    }
    for operator in [O::LessOrEqual, O::GreaterOrEqual, O::And, O::Or, O::Xor] {
        made.push(b.op(operator, None, &[m, others]));
    }
    for operator in [O::Not, O::Abs, O::Neg, O::Sign, O::Relu, O::Shape, O::Size, O::NonZero] {
        made.push(b.op(operator, None, &[m]));
    }
    made.push(b.op(O::Identity, None, &[m]));
    made.push(b.op(O::Div, None, &[m, seven]));
    made.push(b.op(O::Mod, Some(ModAttrs { fmod: false }.into()), &[m, seven]));
    made.push(b.op(O::Pow, None, &[m, seven]));
    made.push(b.op(O::Pow, None, &[whole, m]));
    made.push(b.op(O::Clip, None, &[m, scalar, seven]));
    made.push(b.op(O::Where, None, &[m, m, others]));
    made.push(b.op(O::Where, None, &[others, whole, whole]));
    made.push(b.op(O::CumSum, Some(CumSumAttrs::default().into()), &[m, scalar]));
    made.push(b.op(O::Concat, concat(0), &[m, others, m]));
    made.push(b.op(O::Expand, None, &[m, wide]));
    made.push(b.op(O::Flatten, Some(FlattenAttrs { axis: 0 }.into()), &[m]));
    made.push(b.op(O::Gather, Some(GatherAttrs { axis: 1 }.into()), &[m, scalar]));
    made.push(b.op(O::Gather, Some(GatherAttrs { axis: 0 }.into()), &[whole, m]));
    made.push(b.op(O::GatherElements, Some(GatherAttrs { axis: 0 }.into()), &[m, indices]));
    made.push(b.op(O::GatherElements, Some(GatherAttrs { axis: 0 }.into()), &[whole, m]));
    made.push(b.op(O::GatherND, Some(GatherNDAttrs { batch_dims: 0 }.into()), &[m, pairs]));
    let scatter = ScatterElementsAttrs::default();
    made.push(b.op(O::ScatterElements, Some(scatter.clone().into()), &[others, indices, m]));
    made.push(b.op(O::ScatterElements, Some(scatter.clone().into()), &[m, indices, m]));
    made.push(b.op(O::Scatter, Some(scatter.into()), &[m, indices, others]));
    let scatter = ScatterNDAttrs::default();
    made.push(b.op(O::ScatterND, Some(scatter.into()), &[others, pairs, m]));
    let product = Some(TransposeAttrs { perm: Some(vec![1, 0]) }.into());
    let transposed = b.op(O::Transpose, product, &[m]);
    made.push(transposed);
    made.push(b.op(O::MatMul, None, &[m, transposed]));
    let equation = Some("ij,kj->ik".to_owned());
    made.push(b.op(O::Einsum, Some(EinsumAttrs { equation }.into()), &[m, others]));
    for operator in [O::ReduceSum, O::ReduceMean, O::ReduceMax, O::ReduceMin, O::ReduceProd] {
        made.push(b.op(operator, reduce(false), &[m]));
        made.push(b.op(operator, reduce(true), &[m]));
    }
    for operator in [O::ReduceL1, O::ReduceL2, O::ReduceSumSquare] {
        made.push(b.op(operator, reduce(false), &[m]));
    }
    let extremum = ArgMaxAttrs { axis: 1, keep_dims: false };
    made.push(b.op(O::ArgMax, Some(extremum.clone().into()), &[m]));
    made.push(b.op(O::ArgMin, Some(extremum.into()), &[m]));
    made.push(b.op(O::OneHot, Some(OneHotAttrs { axis: -1 }.into()), &[m, depth, off_on]));
    made.push(b.op(O::Pad, Some(PadAttrs::default().into()), &[m, pads]));
    made.push(b.op(O::Pad, None, &[m, pads, seven]));
    made.push(b.op(O::Reshape, Some(ReshapeAttrs { allow_zero: false }.into()), &[m, shape]));
    made.push(b.op(O::Slice, None, &[m, starts, ends, axis]));
    made.push(b.op(O::Tile, None, &[m, repeats]));
    made.push(b.op(O::Trilu, Some(TriluAttrs { upper: true }.into()), &[m]));
    made.push(b.op(O::Unsqueeze, None, &[m, axis]));
    let unsqueezed = b.op(O::Unsqueeze, None, &[m, axis]);
    made.push(b.op(O::Squeeze, None, &[unsqueezed, axis]));
    let top = TopKAttrs { axis: -1, largest: true, sorted: true };
    let k = b.ints(&[1], &[2]);
    made.extend(b.ops(O::TopK, Some(top.into()), &[m, k], 2));
    made.extend(b.ops(O::Split, Some(SplitAttrs { axis: 1, num_outputs: None }.into()), &[m], 3));
    for to in [DataType::Int32, DataType::Float, DataType::Int8, DataType::UInt8] {
        made.push(b.op(O::Cast, Some(CastAttrs { to }.into()), &[m]));
    }
    made.push(b.op(O::CastLike, Some(CastLikeAttrs {}.into()), &[whole, m]));
    made.push(b.op(O::CastLike, Some(CastLikeAttrs {}.into()), &[m, whole]));
    made.push(b.op(O::EyeLike, Some(EyeLikeAttrs::default().into()), &[m]));
    let dtype = Some(DataType::Float);
    made.push(b.op(O::EyeLike, Some(EyeLikeAttrs { dtype, k: 1 }.into()), &[m]));
    made.push(b.op(O::PRelu, None, &[whole, whole]));
    let scale = b.float(0.5);
    let dequantize = DequantizeLinearAttrs::default();
    made.push(b.op(O::DequantizeLinear, Some(dequantize.into()), &[m, scale]));
    sequences(b, m, others, &mut made);
    made
}

/// Adds what goes through sequences.
fn sequences(b: &mut Builder, m: u32, others: u32, made: &mut Vec<u32>) {
    use OperatorType as O;
    let (first, second) = (b.int(0), b.int(1));
    let join = || Some(ConcatFromSequenceAttrs { axis: 0, new_axis: true }.into());
    let both = b.op(O::SequenceConstruct, None, &[m, others]);
    made.push(b.op(O::ConcatFromSequence, join(), &[both]));
    made.push(b.op(O::SequenceAt, None, &[both, second]));
    made.push(b.op(O::SequenceLength, None, &[both]));
    let one = b.op(O::SequenceErase, None, &[both, first]);
    let two = b.op(O::SequenceInsert, None, &[one, m]);
    let same = b.op(O::Identity, None, &[two]);
    made.push(b.op(O::ConcatFromSequence, join(), &[same]));
    let dtype = Some(DataType::Int32);
    let empty = b.op(O::SequenceEmpty, Some(SequenceEmptyAttrs { dtype }.into()), &[]);
    let filled = b.op(O::SequenceInsert, None, &[empty, m]);
    made.push(b.op(O::ConcatFromSequence, join(), &[filled]));
    let split = Some(SplitToSequenceAttrs { axis: 0, keep_dims: false }.into());
    let split = b.op(O::SplitToSequence, split, &[m]);
    made.push(b.op(O::SequenceAt, None, &[split, first]));
}

/// The matrix is made of truth values in ONNX first, and of numbers then.
#[test]
fn truth_values_compute_as_numbers() {
    let mut b = Builder::new();
    let x = b.input("x", DataType::Float, &[2, 3]);
    let zeros = b.floats(&[1], &[0.0]);
    let truth = b.op(OperatorType::Greater, None, &[x, zeros]);
    let truths = take_numbers(&mut b, truth);
    let nothing = b.int(0);
    let number = b.op(OperatorType::Add, None, &[truth, nothing]);
    let numbers = take_numbers(&mut b, number);
    assert_eq!(truths.len(), numbers.len());
    let count = truths.len();
    assert!(count > 100, "{count}");
    for id in truths.into_iter().chain(numbers) {
        b.output(id);
    }
    let x = floats(&[2, 3], &[1.0, -1.0, 2.0, 0.0, 3.0, -2.0]);
    let Some(found) = outputs(&b.model(), &json!({ "x": x })) else { return };
    let (truths, numbers) = found.split_at(count);
    let value = |element: &Json| element.as_f64().unwrap_or(f64::from(element == &json!(true)));
    for (at, (truth, number)) in truths.iter().zip(numbers).enumerate() {
        assert_eq!(truth["shape"], number["shape"], "{at}");
        let values = |found: &Json| -> Vec<f64> {
            found["data"].as_array().unwrap().iter().map(value).collect()
        };
        assert_eq!(values(truth), values(number), "{at}");
    }
}

/// Asserts that a tensor has these elements, and that it is a list of so many.
#[track_caller]
fn assert_elements(found: &Json, expected: &[f64]) {
    let value = |element: &Json| element.as_f64().unwrap_or(f64::from(element == &json!(true)));
    let found: Vec<f64> = found["data"].as_array().unwrap().iter().map(value).collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4;
    assert!(found.iter().zip(expected).all(is_close), "{found:?}, expected {expected:?}");
}

fn branches(then_branch: Builder, else_branch: Builder) -> Option<Attributes> {
    let [then_branch, else_branch] =
        [then_branch, else_branch].map(|branch| Some(Box::new(branch.graph)));
    Some(IfAttrs { then_branch, else_branch }.into())
}

/// A branch that gives out a captured value as it is, and one that holds a branch of its own.
#[test]
fn branches_agree_on_types() {
    let mut b = Builder::new();
    let x = b.input("x", DataType::Int32, &[2]);
    let three = b.ints(&[2], &[3, 3]);
    let less = b.value(Some("less"));
    b.make(OperatorType::Less, None, &[x, three], less);

    let mut inner_then = Builder::new();
    let captured = inner_then.capture("less");
    inner_then.output(captured);
    let mut inner_else = Builder::new();
    let number = inner_else.ints(&[2], &[8, 9]);
    inner_else.output(number);

    let mut then_branch = Builder::new();
    let zero = then_branch.int(0);
    let inner = then_branch.op(OperatorType::If, branches(inner_then, inner_else), &[zero]);
    then_branch.output(inner);
    let mut else_branch = Builder::new();
    let captured = else_branch.capture("less");
    else_branch.output(captured);

    let first = b.int(0);
    let condition = b.op(OperatorType::Gather, Some(GatherAttrs { axis: 0 }.into()), &[x, first]);
    let result = b.op(OperatorType::If, branches(then_branch, else_branch), &[condition]);
    b.output(result);
    let model = b.model();
    let Some(found) = outputs(&model, &json!({ "x": ints(&[2], &[1, 5]) })) else { return };
    assert_elements(&found[0], &[8.0, 9.0]);
    let found = outputs(&model, &json!({ "x": ints(&[2], &[0, 5]) })).unwrap();
    assert_elements(&found[0], &[1.0, 0.0]);
}

/// A number starts it, a comparison goes on, and a truth value becomes a number on the way.
#[test]
fn loops_take_any_condition() {
    let mut body = Builder::new();
    let iteration = body.value(Some("iteration"));
    let go_on = body.value(Some("go_on"));
    body.graph.inputs = vec![iteration, go_on];
    let sum = body.input("sum", DataType::Int32, &[]);
    let flag = body.input("flag", DataType::Int32, &[]);
    let limit = body.capture("limit");
    let next = body.op(OperatorType::Add, None, &[sum, iteration]);
    let next = body.op(OperatorType::Add, None, &[next, go_on]);
    let less = body.op(OperatorType::Less, None, &[next, limit]);
    let counted = body.op(OperatorType::Add, None, &[flag, less]);
    for id in [less, next, counted, less] {
        body.output(id);
    }
    let mut b = Builder::new();
    b.input("limit", DataType::Int32, &[]);
    let most = b.int(100);
    let go_on = b.int(2);
    let start = b.int(10);
    let truth = b.op(OperatorType::Equal, None, &[start, start]);
    let body = Some(Box::new(body.graph));
    let inputs = [most, go_on, start, truth];
    let made = b.ops(OperatorType::Loop, Some(LoopAttrs { body }.into()), &inputs, 3);
    for id in made {
        b.output(id);
    }
    let Some(found) = outputs(&b.model(), &json!({ "limit": ints(&[], &[14]) })) else { return };
    // 10 + 0 + 1 = 11, 11 + 1 + 1 = 13, 13 + 2 + 1 = 16: two of them are below 14.
    assert_elements(&found[0], &[16.0]);
    assert_elements(&found[1], &[3.0]);
    assert_elements(&found[2], &[1.0, 1.0, 0.0]);
}

/// The sign is that of the divisor.
#[test]
fn remainders_of_floats() {
    let mut b = Builder::new();
    let x = b.input("x", DataType::Float, &[8]);
    let by = [2.0, -2.0, 2.0, -2.0, f32::INFINITY, f32::NEG_INFINITY, -2.0, 0.75];
    let by = b.floats(&[8], &by);
    let rest = b.op(OperatorType::Mod, Some(ModAttrs { fmod: false }.into()), &[x, by]);
    b.output(rest);
    let x = floats(&[8], &[3.5, 3.5, -3.5, -3.5, 1.0, -1.0, 4.0, -1.0]);
    let Some(found) = outputs(&b.model(), &json!({ "x": x })) else { return };
    assert_elements(&found[0], &[1.5, -0.5, 0.5, -1.5, 1.0, -1.0, 0.0, 0.5]);
}

/// Converters leave out, or fill in for two dimensions, what these have.
#[test]
fn windows_have_the_rank_of_their_kernels() {
    let mut b = Builder::new();
    let x = b.input("x", DataType::Float, &[1, 1, 4]);
    let image = b.input("image", DataType::Float, &[1, 1, 2, 2]);
    let kernel = b.floats(&[1, 1, 2], &[1.0, 10.0]);
    let square = b.floats(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let conv = ConvAttrs { groups: 1, auto_pad: AutoPad::NotSet, ..ConvAttrs::default() };
    let plain = ConvAttrs {
        pads: Some(vec![0; 4]),
        strides: Some(vec![1, 1]),
        dilations: Some(vec![1, 1]),
        ..conv.clone()
    };
    let transposed = ConvTransposeAttrs {
        strides: Some(vec![2, 2]),
        groups: 1,
        auto_pad: AutoPad::NotSet,
        ..ConvTransposeAttrs::default()
    };
    let pool = MaxPoolAttrs {
        kernel_size: vec![2],
        auto_pad: AutoPad::NotSet,
        pads: Some(vec![0; 4]),
        strides: Some(vec![1, 1]),
        ceil_mode: false,
    };
    let given = [
        b.op(OperatorType::Conv, Some(conv.clone().into()), &[x, kernel]),
        b.op(OperatorType::Conv, Some(plain.into()), &[x, kernel]),
        b.op(OperatorType::MaxPool, Some(pool.into()), &[x]),
        b.op(OperatorType::Conv, Some(conv.into()), &[image, square]),
        b.op(OperatorType::ConvTranspose, Some(transposed.into()), &[image, square]),
    ];
    for id in given {
        b.output(id);
    }
    let x = floats(&[1, 1, 4], &[1.0, 2.0, 3.0, 4.0]);
    let image = floats(&[1, 1, 2, 2], &[1.0, 0.0, 0.0, 1.0]);
    let Some(found) = outputs(&b.model(), &json!({ "x": x, "image": image })) else { return };
    assert_elements(&found[0], &[21.0, 32.0, 43.0]);
    assert_elements(&found[1], &[21.0, 32.0, 43.0]);
    assert_elements(&found[2], &[2.0, 3.0, 4.0]);
    assert_elements(&found[3], &[5.0]);
    let spread = [1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0];
    assert_elements(&found[4], &spread);
}

#[test]
fn names_need_not_be_unique() {
    let mut b = Builder::new();
    let x = b.input("same", DataType::Float, &[2]);
    let two = b.floats(&[2], &[2.0, 2.0]);
    b.graph.nodes[two as usize].name = Some("same".to_owned());
    let sum = b.value(Some("same"));
    b.make(OperatorType::Add, None, &[x, two], sum);
    let product = b.value(Some(""));
    b.make(OperatorType::Mul, None, &[sum, two], product);
    let mut branch = Builder::new();
    let local = branch.floats(&[2], &[1.0, 1.0]);
    branch.graph.nodes[local as usize].name = Some("same".to_owned());
    let made = branch.value(Some("same_2"));
    branch.make(OperatorType::Neg, None, &[local], made);
    branch.output(made);
    let one = b.int(1);
    let result = b.op(OperatorType::If, branches(branch.clone(), branch), &[one]);
    // Several times the same, an input, a constant.
    for id in [product, product, x, two, result, sum] {
        b.output(id);
    }
    let Some(found) = outputs(&b.model(), &json!({ "same": floats(&[2], &[1.0, 3.0]) })) else {
        return;
    };
    let expected = [[6.0, 10.0], [6.0, 10.0], [1.0, 3.0], [2.0, 2.0], [-1.0, -1.0], [3.0, 5.0]];
    for (found, expected) in found.iter().zip(expected) {
        assert_elements(found, &expected);
    }
}

/// No element type and no shape is given for anything, as in files of old releases; an operator
/// stands before the one whose output it reads.
#[test]
fn order_and_types_are_found() {
    let mut b = Builder::new();
    let x = b.value(Some("x"));
    b.graph.inputs = vec![x];
    let early = b.value(Some("early"));
    let late = b.value(Some("late"));
    b.make(OperatorType::Gather, Some(GatherAttrs { axis: 0 }.into()), &[early, x], late);
    let table = b.floats(&[3], &[5.0, 6.0, 7.0]);
    b.make(OperatorType::Neg, None, &[table], early);
    b.output(late);
    let model = b.model();
    let reader = Reader::from_bytes(model.to_bytes().unwrap()).unwrap();
    let mut exports = Exports::new();
    let runs = exports.folder.path().join("run.json");
    let inputs = json!({ "x": ints(&[2], &[2, 0]) });
    fs::write(&runs, json!({ "runs": [{ "inputs": inputs }] }).to_string()).unwrap();
    let exported = exports.add("made", &reader, Some(runs));
    let rules: Vec<&str> =
        exported.report.findings().iter().map(|finding| &*finding.rule).collect();
    assert_eq!(rules, ["rten/onnx-input-type", "rten/onnx-no-shape", "rten/onnx-no-shape"]);
    let Some(found) = exports.run() else { return };
    // The checker wants a shape of every input.
    assert_eq!(found[0]["check"], NO_SHAPE);
    assert_eq!(found[0]["inputs"], json!([["x", "tensor(int64)", []]]));
    assert_elements(&found[0]["runs"][0][0], &[-7.0, -5.0]);
}

#[test]
fn quantized_values_meet_others() {
    let mut b = Builder::new();
    let x = b.input("x", DataType::Float, &[2, 2]);
    let scale = b.float(0.5);
    let scales = b.floats(&[2], &[0.5, 0.25]);
    let zero_point = b.bytes(&[], &[128]);
    let quantize = |output_dtype| -> Option<Attributes> {
        Some(QuantizeLinearAttrs { axis: 1, output_dtype }.into())
    };
    let dequantize = || -> Option<Attributes> { Some(DequantizeLinearAttrs { axis: 1 }.into()) };
    let plain = b.op(OperatorType::QuantizeLinear, quantize(None), &[x, scale]);
    let signed = quantize(Some(DataType::Int8));
    let signed = b.op(OperatorType::QuantizeLinear, signed, &[x, scales]);
    let shifted = b.op(OperatorType::QuantizeLinear, quantize(None), &[x, scale, zero_point]);
    let back = b.op(OperatorType::DequantizeLinear, dequantize(), &[signed, scales]);
    let product = b.op(OperatorType::MatMulInteger, None, &[shifted, signed, zero_point]);
    let bias = b.ints(&[2], &[100, -100]);
    let sum = b.op(OperatorType::Add, None, &[product, bias]);
    let same = b.op(OperatorType::DequantizeLinear, dequantize(), &[product, scale]);
    let half = b.op(OperatorType::DequantizeLinear, dequantize(), &[bias, scale]);
    let dynamic = b.ops(OperatorType::DynamicQuantizeLinear, None, &[x], 3);
    let rten_format::NodeKind::Operator(last) = &mut b.graph.nodes.last_mut().unwrap().kind else {
        panic!("the last node is an operator");
    };
    last.outputs[0] = None;
    for id in [plain, signed, shifted, back, product, sum, same, half, dynamic[2]] {
        b.output(id);
    }
    let x = floats(&[2, 2], &[1.0, -1.0, 2.0, 0.5]);
    let Some(found) = outputs(&b.model(), &json!({ "x": x })) else { return };
    assert_elements(&found[0], &[2.0, 0.0, 4.0, 1.0]);
    assert_elements(&found[1], &[2.0, -4.0, 4.0, 2.0]);
    assert_elements(&found[2], &[130.0, 126.0, 132.0, 129.0]);
    assert_elements(&found[3], &[1.0, -1.0, 2.0, 0.5]);
    // [2, -2; 4, 1] times [2, -4; 4, 2].
    assert_elements(&found[4], &[-4.0, -12.0, 12.0, -14.0]);
    assert_elements(&found[5], &[96.0, -112.0, 112.0, -114.0]);
    assert_elements(&found[6], &[-2.0, -6.0, 6.0, -7.0]);
    assert_elements(&found[7], &[50.0, -50.0]);
    assert_elements(&found[8], &[85.0]);
}

/// Inputs that the format has in other places, types or numbers than ONNX.
#[test]
fn inputs_are_where_onnx_has_them() {
    let mut b = Builder::new();
    let x = b.input("x", DataType::Float, &[1, 1, 2, 2]);
    let scales = b.floats(&[4], &[1.0, 1.0, 2.0, 2.0]);
    let none = b.floats(&[0], &[]);
    let sizes = b.ints(&[4], &[1, 1, 1, 1]);
    let resize = || -> Option<Attributes> {
        let mode = ResizeMode::Nearest;
        Some(ResizeAttrs { mode, ..ResizeAttrs::default() }.into())
    };
    let upsample = Some(UpsampleAttrs { mode: ResizeMode::Nearest }.into());
    let larger = b.op(OperatorType::Upsample, upsample, &[x, scales]);
    let scaled = b.op(OperatorType::Resize, resize(), &[x, none, scales, sizes]);
    let sized = b.op(OperatorType::Resize, resize(), &[x, none, none, sizes]);
    let noop = ReduceMeanAttrs { axes: Some(vec![]), keep_dims: true, noop_with_empty_axes: true };
    let same = b.op(OperatorType::ReduceSum, Some(noop.into()), &[x]);
    let all = ReduceMeanAttrs { axes: None, keep_dims: false, noop_with_empty_axes: false };
    let all = b.op(OperatorType::ReduceSum, Some(all.into()), &[x]);
    let ratio = b.float(0.5);
    let off = b.int(0);
    let dropout = Some(DropoutAttrs { seed: Some(1) }.into());
    let dropped = b.ops(OperatorType::Dropout, dropout, &[x, ratio, off], 2);
    let gemm = GemmAttrs { alpha: 2.0, ..GemmAttrs::default() };
    let a = b.floats(&[1, 2], &[1.0, 2.0]);
    let c = b.floats(&[2, 1], &[3.0, 4.0]);
    let product = b.op(OperatorType::Gemm, Some(gemm.into()), &[a, c]);
    for id in [larger, scaled, sized, same, all, dropped[0], dropped[1], product] {
        b.output(id);
    }
    let x = floats(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let Some(found) = outputs(&b.model(), &json!({ "x": x })) else { return };
    let wide = [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 3.0, 3.0, 4.0, 4.0];
    assert_elements(&found[0], &wide);
    // Coordinates of half pixels are rounded down.
    let half = [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 4.0];
    assert_elements(&found[1], &half);
    assert_elements(&found[2], &[1.0]);
    assert_elements(&found[3], &[1.0, 2.0, 3.0, 4.0]);
    assert_elements(&found[4], &[10.0]);
    assert_elements(&found[5], &[1.0, 2.0, 3.0, 4.0]);
    assert_elements(&found[6], &[1.0, 1.0, 1.0, 1.0]);
    assert_elements(&found[7], &[22.0]);
}

/// Inputs that are left out or have another shape mean in RTen what ONNX has no default for.
#[test]
fn inputs_that_are_left_out_keep_their_meaning() {
    let mut b = Builder::new();
    let x = b.input("x", DataType::Float, &[3]);
    let two = b.int(2);
    let top = TopKAttrs { axis: 0, largest: true, sorted: true };
    let top = b.ops(OperatorType::TopK, Some(top.into()), &[x, two], 2);
    let boxes = b.floats(&[1, 2, 4], &[0.0, 0.0, 1.0, 1.0, 5.0, 5.0, 6.0, 6.0]);
    let scores = b.floats(&[1, 1, 2], &[0.5, 0.75]);
    let suppress = Some(NonMaxSuppressionAttrs::default().into());
    let kept = b.op(OperatorType::NonMaxSuppression, suppress, &[boxes, scores]);
    for id in [top[0], top[1], kept] {
        b.output(id);
    }
    let x = floats(&[3], &[4.0, 6.0, 5.0]);
    let Some(found) = outputs(&b.model(), &json!({ "x": x })) else { return };
    assert_elements(&found[0], &[6.0, 5.0]);
    assert_elements(&found[1], &[1.0, 2.0]);
    assert_elements(&found[2], &[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
}

/// A loop without a number of iterations and without a condition ends by its own.
#[test]
fn loops_need_no_inputs() {
    let mut body = Builder::new();
    let iteration = body.value(Some("iteration"));
    let go_on = body.value(Some("go_on"));
    body.graph.inputs = vec![iteration, go_on];
    let limit = body.int(3);
    let less = body.op(OperatorType::Less, None, &[iteration, limit]);
    body.output(less);
    body.output(iteration);
    let mut b = Builder::new();
    let body = Some(Box::new(body.graph));
    let counted = b.op(OperatorType::Loop, Some(LoopAttrs { body }.into()), &[]);
    b.output(counted);
    let Some(found) = outputs(&b.model(), &json!({})) else { return };
    assert_elements(&found[0], &[0.0, 1.0, 2.0, 3.0]);
}

/// The file has no word for a sequence: what a value is follows from who makes it.
#[test]
fn sequences_go_round_and_out() {
    let mut body = Builder::new();
    let iteration = body.value(Some("iteration"));
    let go_on = body.value(Some("go_on"));
    let collected = body.value(Some("collected"));
    body.graph.inputs = vec![iteration, go_on, collected];
    let x = body.capture("x");
    let scaled = body.op(OperatorType::Add, None, &[x, iteration]);
    let longer = body.op(OperatorType::SequenceInsert, None, &[collected, scaled]);
    for id in [go_on, longer] {
        body.output(id);
    }
    let mut b = Builder::new();
    b.input("x", DataType::Int32, &[2]);
    let (three, yes) = (b.int(3), b.int(1));
    let dtype = Some(DataType::Int32);
    let empty = SequenceEmptyAttrs { dtype };
    let empty = b.op(OperatorType::SequenceEmpty, Some(empty.into()), &[]);
    let body = Some(Box::new(body.graph));
    let inputs = [three, yes, empty];
    let all = b.op(OperatorType::Loop, Some(LoopAttrs { body }.into()), &inputs);
    b.output(all);
    let x = ints(&[2], &[10, 20]);
    let Some(found) = outputs(&b.model(), &json!({ "x": x })) else { return };
    let members = found[0].as_array().unwrap();
    let expected = [[10.0, 20.0], [11.0, 21.0], [12.0, 22.0]];
    assert_eq!(members.len(), expected.len());
    for (found, expected) in members.iter().zip(expected) {
        assert_elements(found, &expected);
    }
}

/// A constant that is listed as an input can be given, and need not be.
#[test]
fn constants_may_be_inputs() {
    let mut b = Builder::new();
    let x = b.input("x", DataType::Int32, &[2]);
    let offset = b.ints(&[2], &[10, 20]);
    b.graph.nodes[offset as usize].name = Some("offset".to_owned());
    b.graph.inputs.push(offset);
    let sum = b.op(OperatorType::Add, None, &[x, offset]);
    b.output(sum);
    let x = ints(&[2], &[1, 2]);
    let Some(found) = outputs(&b.clone().model(), &json!({ "x": x })) else { return };
    assert_elements(&found[0], &[11.0, 22.0]);
    let inputs = json!({ "x": x, "offset": ints(&[2], &[5, 6]) });
    assert_elements(&outputs(&b.model(), &inputs).unwrap()[0], &[6.0, 8.0]);
}

/// The number of valid keys is newer than the operator.
#[test]
fn attention_takes_a_length() {
    let mut b = Builder::new();
    let q = b.floats(&[1, 1, 1, 1], &[1.0]);
    let k = b.floats(&[1, 1, 2, 1], &[1.0, 1.0]);
    let v = b.floats(&[1, 1, 2, 1], &[5.0, 7.0]);
    let lens = b.ints(&[1], &[1]);
    let made = b.value(None);
    let operator = rten_format::Operator {
        operator_type: OperatorType::Attention,
        attributes: Some(AttentionAttrs::default().into()),
        inputs: vec![Some(q), Some(k), Some(v), None, None, None, Some(lens)],
        outputs: vec![Some(made)],
    };
    b.node(rten_format::Node { name: None, kind: operator.into() });
    b.output(made);
    let Some(found) = outputs(&b.model(), &json!({})) else { return };
    assert_elements(&found[0], &[5.0]);
}

/// Numbers where ONNX has 32 bits, or truth values.
#[test]
fn recurrence_and_attention_take_numbers() {
    let mut b = Builder::new();
    let x = b.input("x", DataType::Float, &[2, 1, 2]);
    let w = b.floats(&[1, 4, 2], &[0.1; 8]);
    let r = b.floats(&[1, 4, 1], &[0.2; 4]);
    let lens = b.ints(&[1], &[1]);
    let lstm = LSTMAttrs { hidden_size: 1, ..LSTMAttrs::default() };
    let last = b.value(None);
    let operator = rten_format::Operator {
        operator_type: OperatorType::LSTM,
        attributes: Some(lstm.into()),
        inputs: vec![Some(x), Some(w), Some(r), None, Some(lens)],
        outputs: vec![None, Some(last)],
    };
    b.node(rten_format::Node { name: None, kind: operator.into() });
    let q = b.floats(&[1, 1, 2, 1], &[1.0, 2.0]);
    let v = b.floats(&[1, 1, 2, 1], &[5.0, 6.0]);
    let mask = b.ints(&[2, 2], &[1, 0, 0, 1]);
    let attention = Some(AttentionAttrs::default().into());
    let attended = b.op(OperatorType::Attention, attention, &[q, q, v, mask]);
    b.output(last);
    b.output(attended);
    let x = floats(&[2, 1, 2], &[1.0, 1.0, 9.0, 9.0]);
    let Some(found) = outputs(&b.model(), &json!({ "x": x })) else { return };
    // Of the gates sigmoid(0.2), of the cell tanh(0.2); the second step is not taken.
    let gate = 1.0 / (1.0 + (-0.2_f64).exp());
    assert_elements(&found[0], &[gate * (gate * 0.2_f64.tanh()).tanh()]);
    assert_elements(&found[1], &[5.0, 6.0]);
}

/// Constants of a branch are in the data file of the whole model.
#[test]
fn branches_find_their_constants() {
    let data: Vec<f32> = (0..100_u8).map(f32::from).collect();
    let mut branch = Builder::new();
    let weights = branch.floats(&[100], &data);
    let twice = branch.op(OperatorType::Add, None, &[weights, weights]);
    branch.output(twice);
    let mut b = Builder::new();
    let condition = b.input("condition", DataType::Int32, &[]);
    let result = b.op(OperatorType::If, branches(branch.clone(), branch), &[condition]);
    b.output(result);
    let reader = Reader::from_bytes(b.model().to_bytes().unwrap()).unwrap();
    let mut exports = Exports::new();
    let runs = exports.folder.path().join("run.json");
    let inputs = json!({ "condition": ints(&[], &[1]) });
    fs::write(&runs, json!({ "runs": [{ "inputs": inputs }] }).to_string()).unwrap();
    let export = Export::new(&reader).external_data(ExternalData::From(0));
    let exported = exports.add_with("made", &reader, Some(runs), "-", export);
    let len = fs::metadata(exported.data.unwrap()).unwrap().len();
    assert_eq!(len, 400 + 48 + 400);
    let Some(found) = exports.run() else { return };
    assert_sound("made", &found[0]);
    let expected: Vec<f64> = data.iter().map(|value| f64::from(*value) * 2.0).collect();
    assert_elements(&found[0]["runs"][0][0], &expected);
}
