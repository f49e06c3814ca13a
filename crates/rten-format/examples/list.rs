//! Lists the constants of a model: the tensor data is not read.
//!
//! ```sh
//! cargo run -p rten-format --example list -- model.rten
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use rten_format::{Reader, tensor_core::Extent};

fn main() -> rten_format::Result<()> {
    let sample = "testdata/rten/valid/mlp.v2.rten";
    let path = std::env::args().nth(1).unwrap_or_else(|| sample.to_owned());
    let reader = Reader::open(path)?;
    println!("{:?}, {} constants", reader.version(), reader.tensors().len());
    for tensor in reader.tensors() {
        let offset = tensor.extent()?.map(Extent::offset);
        println!("{} {} at byte {offset:?}", tensor.path(), tensor.info()?);
    }
    Ok(())
}
