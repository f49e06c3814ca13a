//! Shows the constants of a package as arrays of the crate `ndarray`: feature `ndarray` of
//! tensor-core.
//!
//! ```sh
//! cargo run -p nnpackage --example ndarray -- model.zip
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::error::Error;

use nnpackage::{Reader, tensor_core::DType};

fn main() -> Result<(), Box<dyn Error>> {
    let sample = "testdata/nnpackage/valid/06_rich_circle_numeric_versions.zip";
    let path = std::env::args().nth(1).unwrap_or_else(|| sample.to_owned());
    let reader = Reader::open(path)?;
    for tensor in reader.tensors()?.filter(|t| t.info().is_ok_and(|i| i.dtype == DType::F32)) {
        let elements = tensor.read()?;
        // Copied where the bytes are not aligned for an array in place.
        let array = elements.to_array::<f32>()?;
        println!("{}\n{array}\nsum {}", tensor.path(), array.sum());
    }
    Ok(())
}
