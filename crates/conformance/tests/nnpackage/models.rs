//! Models that tests are made of.

use std::path::PathBuf;

use nnpackage::{
    Reader,
    circle_format::{
        Reader as ModelReader,
        model::{
            ActivationFunctionType, BuiltinOperator, Model, ModelBuilder, Operator, OperatorCode,
            Schema, Tensor, TensorType,
            options::{AddOptions, FullyConnectedOptions, ReshapeOptions},
        },
    },
};
use test_support::{files, testdata};

/// Returns every model of the test data that can be read, with its name.
pub(crate) fn all() -> Vec<(String, ModelReader)> {
    let mut models = Vec::new();
    let mut add = |name: &str, path: &PathBuf, reader: &ModelReader| {
        models.push((format!("{} {name}", path.display()), reader.clone()));
    };
    for folder in ["nnpackage/valid", "nnpackage/invalid"] {
        for path in files(folder, "circle").into_iter().chain(files(folder, "tflite")) {
            if let Ok(reader) = ModelReader::open(&path) {
                add("", &path, &reader);
            }
        }
    }
    for path in files("nnpackage/valid", "zip") {
        let package = Reader::open(&path).unwrap();
        for model in package.models() {
            if let Ok(reader) = model.open() {
                add(model.path(), &path, reader);
            }
        }
    }
    models
}

pub(crate) fn everything(schema: Schema) -> ModelReader {
    ModelReader::open(testdata("nnpackage/valid").join(format!("everything.{schema}"))).unwrap()
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn row(name: &str) -> Tensor {
    Tensor::new(name, TensorType::Float32, [1, 4])
}

/// `y = x + constant`.
pub(crate) fn add(schema: Schema, constant: [f32; 4]) -> Model {
    let mut model = ModelBuilder::new(schema);
    let mut graph = model.subgraph("main");
    let x = graph.input(row("x"));
    let constant = graph.constant(row("c"), floats(&constant));
    let y = graph.output(row("y"));
    let add = Operator::new([x, constant], [y]).options(AddOptions::default());
    graph.operator(BuiltinOperator::ADD, add);
    graph.finish();
    model.finish()
}

/// `y = relu(weights · x + bias)`, with 2 rows of weights.
pub(crate) fn dense(schema: Schema) -> Model {
    let mut model = ModelBuilder::new(schema);
    let mut graph = model.subgraph("main");
    let x = graph.input(row("x"));
    let weights = floats(&[1.0, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0, -4.0]);
    let weights = graph.constant(Tensor::new("w", TensorType::Float32, [2, 4]), weights);
    let bias = Tensor::new("b", TensorType::Float32, [2]);
    let bias = graph.constant(bias, floats(&[0.5, 0.25]));
    let y = graph.output(Tensor::new("y", TensorType::Float32, [1, 2]));
    let options = FullyConnectedOptions {
        fused_activation_function: ActivationFunctionType::RELU,
        ..FullyConnectedOptions::default()
    };
    let dense = Operator::new([x, weights, bias], [y]).options(options);
    graph.operator(BuiltinOperator::FULLY_CONNECTED, dense);
    graph.finish();
    model.finish()
}

/// `y = reshape(x + constant)`, where the constant is stored in 16 bits and the shape in options.
pub(crate) fn half(schema: Schema) -> Model {
    let mut model = ModelBuilder::new(schema);
    let mut graph = model.subgraph("main");
    let x = graph.input(row("x"));
    // 1.5, -2, 1/1024 and the least number above nothing.
    let halves = [0x3e00_u16, 0xc000, 0x1400, 0x0001];
    let halves = halves.iter().flat_map(|half| half.to_le_bytes()).collect::<Vec<u8>>();
    let half = graph.constant(Tensor::new("h", TensorType::Float16, [1, 4]), halves);
    let wide = graph.tensor(row("w"));
    graph.operator(BuiltinOperator::DEQUANTIZE, Operator::new([half], [wide]));
    let sum = graph.tensor(row("s"));
    let add = Operator::new([x, wide], [sum]).options(AddOptions::default());
    graph.operator(BuiltinOperator::ADD, add);
    let y = graph.output(Tensor::new("y", TensorType::Float32, [1, 1, 4]));
    let options = ReshapeOptions { new_shape: vec![1, 1, -1] };
    graph.operator(BuiltinOperator::RESHAPE, Operator::new([sum], [y]).options(options));
    graph.finish();
    model.finish()
}

/// `y = MyOp(x)`, an operator that the application brings along.
pub(crate) fn custom() -> Model {
    let mut model = ModelBuilder::new(Schema::Circle);
    let mut graph = model.subgraph("main");
    let x = graph.input(row("x"));
    let y = graph.output(row("y"));
    // An empty map of FlexBuffers.
    let options = Some(vec![0, 0, 1, 0, 0, 36, 1].into());
    let operator = Operator { custom_options: options, ..Operator::new([x], [y]) };
    graph.operator(OperatorCode::custom("MyOp"), operator);
    graph.finish();
    model.finish()
}
