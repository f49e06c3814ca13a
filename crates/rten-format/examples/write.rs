//! Writes a model of two layers, its weights streamed.
//!
//! ```sh
//! cargo run -p rten-format --example write -- new.rten
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::error::Error;

use rten_format::{
    Constant, ConstantDataType, DataType, Dim, GraphBuilder, Model, OperatorType, Reader, Value,
    Writer, attributes::GemmAttrs,
};

fn main() -> Result<(), Box<dyn Error>> {
    let temporary = std::env::temp_dir().join(format!("rten-{}.rten", std::process::id()));
    let path = std::env::args().nth(1).map_or_else(|| temporary.clone(), Into::into);
    let mut graph = GraphBuilder::new();
    let dims = [Dim::from("batch"), Dim::Fixed(4)];
    let input = graph.input("x", Value::new(dims, DataType::Float))?;
    let weight = graph.constant("w", Constant::described([4, 8], ConstantDataType::Float32))?;
    let gemm = GemmAttrs { alpha: 1.0, beta: 1.0, ..GemmAttrs::default() };
    let [hidden, output] = ["hidden", "y"].map(|name| {
        let dims = [Dim::from("batch"), Dim::Fixed(8)];
        graph.value(name, Value::new(dims, DataType::Float))
    });
    let (hidden, output) = (hidden?, output?);
    let inputs = [Some(input), Some(weight)];
    graph.operator("gemm", OperatorType::Gemm, Some(gemm.into()), &inputs, &[Some(hidden)])?;
    graph.operator("relu", OperatorType::Relu, None, &[Some(hidden)], &[Some(output)])?;
    graph.output(output)?;
    let model = Model { graph: graph.finish(), metadata: None };

    let mut writer = Writer::create(&path, &model)?;
    while let Some(pending) = writer.pending() {
        let len = usize::try_from(pending.info.byte_len()?)?;
        writer.add(&vec![0; len])?;
    }
    writer.finish()?;
    let reader = Reader::open(&path)?;
    println!("{} constants, valid: {}", reader.tensors().len(), reader.validate().is_valid());
    if path == temporary {
        std::fs::remove_file(path)?;
    }
    Ok(())
}
