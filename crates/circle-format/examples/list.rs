//! Lists the constants of a Circle or TFLite model: `list MODEL`.
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{env, error::Error};

use circle_format::Reader;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("expected the path of a model")?;
    let reader = Reader::open(path)?;
    for tensor in reader.tensors() {
        match tensor.info() {
            Ok(info) => println!("{}: {} {}", tensor.path(), info.dtype, info.shape),
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}
