//! Writes a carton of a model, a description and a tensor for a self test.
//!
//! ```sh
//! cargo run -p carton-format --example write -- new.carton
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::error::Error;

use carton_format::{
    Description, Named, Runner, SelfTest, TensorSpec, Value, Writer,
    tensor_core::{
        DType, TensorBuf,
        symbolic::{Dim, SymbolicShape},
    },
};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "new.carton".to_owned());
    let mut description = Description::new(Runner::new("torchscript", "=1.12.1".parse()?));
    // Not demanded by the format's text, but by its own library.
    description.runner.compat_version = Some(1);
    let shape = SymbolicShape::Dims(vec![Dim::Symbol("batch".to_owned()), Dim::Fixed(2)]);
    description.inputs = Some(vec![TensorSpec::new("x", DType::F32, shape.clone())]);
    description.outputs = Some(vec![TensorSpec::new("y", DType::F32, shape)]);
    let test = SelfTest::new(Named::from_iter([("x", "sample".to_owned())]));
    description.self_tests = Some(vec![test]);

    let mut writer = Writer::create(&path)?;
    writer.description(&description)?;
    writer.file("model/model.pt", &[0; 1000])?;
    let sample = TensorBuf::from_slice([1, 2], &[0.5_f32, 1.5])?;
    writer.tensor("sample", &Value::Numeric(sample))?;
    // There is no file before this.
    let finished = writer.finish()?;
    println!("{path}: model hash {}", finished.manifest.model_hash());
    Ok(())
}
