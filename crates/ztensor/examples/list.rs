//! Lists the tensors of a file: the manifest is read, and no tensor.
//!
//! ```sh
//! cargo run -p ztensor-format --example list -- model.zt
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use ztensor::Reader;

fn main() -> ztensor::Result<()> {
    let sample = "testdata/ztensor/valid/v1.1-ref/dense_raw_all_dtypes.zt";
    let path = std::env::args().nth(1).unwrap_or_else(|| sample.to_owned());
    let reader = Reader::open(path)?;
    println!("zTensor {}, {} tensors", reader.generation(), reader.manifest().len());
    for tensor in reader.tensors() {
        match tensor.extent()? {
            Some(extent) => {
                println!("{} {} at byte {}", tensor.name(), tensor.info()?, extent.offset());
            }
            None => println!("{} {}, encoded", tensor.name(), tensor.info()?),
        }
    }
    Ok(())
}
