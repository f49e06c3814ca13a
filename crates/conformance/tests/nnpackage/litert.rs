//! LiteRT runs what we make of Circle models.

use std::path::PathBuf;

use conformance::python::Client;
use nnpackage::circle_format::{
    Reader, Writer,
    model::{
        ActivationFunctionType, BuiltinOperator, Model, ModelBuilder, Operator, Padding, Schema,
        Tensor, TensorType,
        options::{
            ConcatenationOptions, Conv2DOptions, DepthwiseConv2DOptions, Pool2DOptions,
            ReshapeOptions, SoftmaxOptions,
        },
    },
};
use serde_json::{Value as Json, json};

use crate::models;

/// A small classifier: convolutions, pooling, two ways that meet, a softmax.
fn classifier(schema: Schema) -> Model {
    let float = |name: &str, shape: &[i32]| Tensor::new(name, TensorType::Float32, shape.to_vec());
    let weights = |count: usize| {
        let numbers = (0..count).map(|at| (at as f32 * 0.37).sin());
        numbers.flat_map(f32::to_le_bytes).collect::<Vec<u8>>()
    };
    let mut model = ModelBuilder::new(schema);
    let mut graph = model.subgraph("main");
    let picture = graph.input(float("picture", &[1, 8, 8, 3]));
    let kernel = graph.constant(float("kernel", &[4, 3, 3, 3]), weights(108));
    let bias = graph.constant(float("bias", &[4]), weights(4));
    let found = graph.tensor(float("found", &[1, 8, 8, 4]));
    let (padding, stride) = (Padding::SAME, 1);
    let conv = Conv2DOptions {
        padding,
        stride_w: stride,
        stride_h: stride,
        fused_activation_function: ActivationFunctionType::RELU6,
        ..Conv2DOptions::default()
    };
    let conv = Operator::new([picture, kernel, bias], [found]).options(conv);
    graph.operator(BuiltinOperator::CONV_2D, conv);
    let kernel = graph.constant(float("depth kernel", &[1, 3, 3, 4]), weights(36));
    let bias = graph.constant(float("depth bias", &[4]), weights(4));
    let deep = graph.tensor(float("deep", &[1, 4, 4, 4]));
    let depthwise = DepthwiseConv2DOptions {
        padding,
        stride_w: 2,
        stride_h: 2,
        depth_multiplier: 1,
        ..DepthwiseConv2DOptions::default()
    };
    let depthwise = Operator::new([found, kernel, bias], [deep]).options(depthwise);
    graph.operator(BuiltinOperator::DEPTHWISE_CONV_2D, depthwise);
    let pooled = graph.tensor(float("pooled", &[1, 4, 4, 4]));
    let pool = Pool2DOptions {
        padding: Padding::VALID,
        stride_w: 2,
        stride_h: 2,
        filter_width: 2,
        filter_height: 2,
        ..Pool2DOptions::default()
    };
    let pool = Operator::new([found], [pooled]).options(pool);
    graph.operator(BuiltinOperator::MAX_POOL_2D, pool);
    let both = graph.tensor(float("both", &[1, 4, 4, 8]));
    let concat = ConcatenationOptions { axis: 3, ..ConcatenationOptions::default() };
    let concat = Operator::new([deep, pooled], [both]).options(concat);
    graph.operator(BuiltinOperator::CONCATENATION, concat);
    let shape = Tensor::new("shape", TensorType::Int32, [2]);
    let shape = graph.constant(shape, [1_i32, 128].map(i32::to_le_bytes).concat());
    let flat = graph.tensor(float("flat", &[1, 128]));
    let reshape = Operator::new([both, shape], [flat]).options(ReshapeOptions::default());
    graph.operator(BuiltinOperator::RESHAPE, reshape);
    let odds = graph.output(float("odds", &[1, 128]));
    let softmax = Operator::new([flat], [odds]).options(SoftmaxOptions { beta: 1.0 });
    graph.operator(BuiltinOperator::SOFTMAX, softmax);
    graph.finish();
    model.finish()
}

/// TFLite becomes Circle and TFLite again, and LiteRT computes the same bits.
#[test]
fn circle_becomes_the_tflite_that_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: String, model: &Model, origin: &Reader| -> PathBuf {
        let path = folder.path().join(name);
        Writer::create(&path, model).unwrap().origin(origin).finish().unwrap();
        path
    };
    let made = [
        models::dense(Schema::Tflite),
        models::add(Schema::Tflite, [1.0, -2.0, 3.5, 0.0]),
        classifier(Schema::Tflite),
    ];
    let mut tflite: Vec<Reader> =
        made.iter().map(|model| Reader::from_bytes(model.to_bytes().unwrap()).unwrap()).collect();
    tflite.extend(Client::models().iter().map(|path| Reader::open(path).unwrap()));
    let mut paths = Vec::new();
    for (at, before) in tflite.iter().enumerate() {
        paths.push(write(format!("{at}.tflite"), before.model(), before));
        let circle = before.model().to_schema(Schema::Circle).unwrap();
        let circle = Reader::open(write(format!("{at}.circle"), &circle, before)).unwrap();
        let again = circle.model().to_schema(Schema::Tflite).unwrap();
        paths.push(write(format!("{at} again.tflite"), &again, &circle));
    }
    let Some(found) = Client::LITERT.run("litert_run.py", &paths) else { return };
    for (pair, path) in found.as_array().unwrap().chunks(2).zip(paths.chunks(2)) {
        assert_eq!(pair[1], pair[0], "{path:?}");
    }
    // Some real models have operators of their own.
    let ran = found.as_array().unwrap().iter().filter(|run| run["error"].is_null()).count() / 2;
    assert!(ran >= made.len() + (tflite.len() - made.len()) * 4 / 5, "{ran} of {}", tflite.len());
}

/// onert runs the Circle, LiteRT the TFLite that becomes of it.
#[test]
fn litert_computes_what_onert_does() {
    let folder = tempfile::tempdir().unwrap();
    let (mut circles, mut paths) = (Vec::new(), Vec::new());
    let made = [models::dense(Schema::Circle), models::add(Schema::Circle, [1.0, -2.0, 3.5, 0.0])];
    for (at, model) in made.iter().chain([&classifier(Schema::Circle)]).enumerate() {
        let circle = folder.path().join(format!("{at}.circle"));
        Writer::create(&circle, model).unwrap().finish().unwrap();
        circles.push(circle);
        let path = folder.path().join(format!("{at}.tflite"));
        Writer::create(&path, &model.to_schema(Schema::Tflite).unwrap()).unwrap().finish().unwrap();
        paths.push(path);
    }
    let Some(expected) = Client::LITERT.run("litert_run.py", &paths) else { return };
    let numbers = |json: &Json| serde_json::from_value::<Vec<f64>>(json.clone()).unwrap();
    let jobs = circles
        .iter()
        .zip(expected.as_array().unwrap())
        .map(|(path, expected)| json!({"path": path, "inputs": expected["given"]}));
    let Some(found) = crate::onert::run(folder.path(), &jobs.collect()) else { return };
    for (found, expected) in found.iter().zip(expected.as_array().unwrap()) {
        let (found, expected) = (numbers(&found["made"][0]), numbers(&expected["made"][0]));
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-5 * expected.abs().max(1.0));
        }
    }
}
