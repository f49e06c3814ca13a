//! Shows tensors as arrays of the crate `ndarray`: feature `ndarray` of tensor-core.
//!
//! ```sh
//! cargo run -p ptl-spec --example ndarray
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::error::Error;

use ptl_spec::{Reader, tensor_core::DType};

fn main() -> Result<(), Box<dyn Error>> {
    let reader = Reader::open("testdata/ptl/valid/torch251/img.ptl")?;
    for tensor in reader.tensors()?.filter(|t| t.info().is_ok_and(|i| i.dtype == DType::F32)) {
        let elements = tensor.read()?;
        // In place; `to_array` copies where the bytes are not aligned for it.
        let array = elements.to_array::<f32>()?;
        println!("{} {:?}, sum {}", tensor.name(), array.shape(), array.sum());
    }
    Ok(())
}
