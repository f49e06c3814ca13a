//! Lists what is in a carton: `MANIFEST`, `carton.toml` and the index are read, and no tensor.
//!
//! ```sh
//! cargo run -p carton-format --example list -- model.carton
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use carton_format::Reader;

fn main() -> carton_format::Result<()> {
    let sample = "testdata/carton/golden/everything.carton";
    let path = std::env::args().nth(1).unwrap_or_else(|| sample.to_owned());
    let reader = Reader::open(path)?;
    println!("model hash {}", reader.model_hash());
    println!("runner {}", reader.description()?.runner.name);
    for file in reader.files() {
        println!("{:?} {}", file.place(), file.path());
    }
    for tensor in reader.tensors()? {
        match tensor.info() {
            Ok(info) => println!("{} {info}", tensor.name()),
            Err(_) => println!("{} of {} tensors", tensor.name(), tensor.inner().count()),
        }
    }
    Ok(())
}
