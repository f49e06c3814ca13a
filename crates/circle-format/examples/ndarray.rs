//! Prints the mean of a constant of 32-bit floats: `ndarray MODEL TENSOR`.
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{env, error::Error};

use circle_format::Reader;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let (Some(path), Some(name)) = (args.next(), args.next()) else {
        return Err("expected the path of a model and the name of a constant".into());
    };
    let tensor = Reader::open(path)?.tensor(&name).ok_or("there is no such constant")?.read()?;
    let array = tensor.to_array::<f32>()?;
    println!("{:?}, mean {:?}", array.shape(), array.mean());
    Ok(())
}
