//! Lists the tensors, methods and extra files of a model: none of the tensors is read.
//!
//! ```sh
//! cargo run -p ptl-spec --example list -- model.ptl
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use ptl_spec::Reader;

fn main() -> ptl_spec::Result<()> {
    let sample = "testdata/ptl/valid/torch251/img.ptl";
    let path = std::env::args().nth(1).unwrap_or_else(|| sample.to_owned());
    let reader = Reader::open(path)?;
    for tensor in reader.tensors()? {
        println!("{} {}", tensor.name(), tensor.info()?);
    }
    for method in &reader.bytecode()?.methods {
        println!("{}: {} instructions", method.name, method.instructions);
    }
    for file in reader.extra_files() {
        println!("{}, {} bytes", file.path(), file.len()?);
    }
    Ok(())
}
