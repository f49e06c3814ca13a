//! Lists the models of a package and their constants: the tables are read, and no constant.
//!
//! ```sh
//! cargo run -p nnpackage --example list -- model.zip
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use nnpackage::Reader;

fn main() -> nnpackage::Result<()> {
    let sample = "testdata/nnpackage/valid/06_rich_circle_numeric_versions.zip";
    let path = std::env::args().nth(1).unwrap_or_else(|| sample.to_owned());
    let reader = Reader::open(path)?;
    println!("nnpackage {}", reader.manifest().version);
    for model in reader.models() {
        println!("model {} {}, {} bytes", model.index(), model.path(), model.file().len()?);
    }
    for tensor in reader.tensors()? {
        println!("{} {}", tensor.path(), tensor.info()?);
    }
    Ok(())
}
