//! Shows a tensor as an array of the crate `ndarray`: feature `ndarray` of tensor-core.
//!
//! ```sh
//! cargo run -p ztensor-format --example ndarray
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::error::Error;

use ztensor::{
    Reader, Writer,
    tensor_core::{DType, TensorBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut writer = Writer::new(Vec::new());
    writer.add("weight", &TensorBuf::from_vec([2, 3], vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?)?;
    let reader = Reader::from_bytes(writer.finish()?)?;
    for tensor in reader.tensors().filter(|t| t.info().is_ok_and(|i| i.dtype == DType::F32)) {
        let tensor = tensor.read()?;
        // In place; `to_array` copies where the bytes are not aligned for it.
        let array = tensor.as_array::<f32>()?;
        println!("{array}\nsum {}", array.sum());
    }
    Ok(())
}
