//! Shows a tensor as an array of the crate `ndarray`: feature `ndarray` of tensor-core.
//!
//! ```sh
//! cargo run -p carton-format --example ndarray
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::error::Error;

use carton_format::Reader;

fn main() -> Result<(), Box<dyn Error>> {
    let reader = Reader::open("testdata/carton/golden/everything.carton")?;
    let tensor = reader.tensor("float32")?.ok_or("there is no \"float32\"")?.read()?;
    // In place; `to_array` copies where the bytes are not aligned for it.
    let array = tensor.as_array::<f32>()?;
    println!("{array}");
    Ok(())
}
