//! Writes a model that adds one: `write MODEL`.

use std::{env, error::Error};

use circle_format::{
    Writer,
    model::{
        BuiltinOperator, ModelBuilder, Operator, Schema, Tensor, TensorType, options::AddOptions,
    },
};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("expected the path of a new model")?;
    let mut model = ModelBuilder::new(Schema::Circle);
    let mut graph = model.subgraph("main");
    let x = graph.input(Tensor::new("x", TensorType::Float32, [1, 4]));
    let one = 1.0_f32.to_le_bytes().to_vec();
    let one = graph.constant(Tensor::new("one", TensorType::Float32, [1]), one);
    let sum = graph.output(Tensor::new("sum", TensorType::Float32, [1, 4]));
    let add = Operator::new([x, one], [sum]).options(AddOptions::default());
    graph.operator(BuiltinOperator::ADD, add);
    graph.finish();
    Writer::create(path, &model.finish())?.finish()?;
    Ok(())
}
