//! Builds a package of two models, one behind the other.
//!
//! ```sh
//! cargo run -p nnpackage --example write
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::error::Error;

use nnpackage::{Builder, IoRef, Reader, Writer, tensor_core::Source};

fn main() -> Result<(), Box<dyn Error>> {
    let sample = Reader::open("testdata/nnpackage/valid/01_minimal_circle_stored.zip")?;
    let model = Source::from_bytes(sample.file("add.circle").ok_or("no model")?.bytes()?);
    let mut builder = Builder::default();
    builder.model("first.circle", model.clone())?;
    builder.model("second.circle", model)?;
    builder.input(IoRef::new(0, 0, 0));
    builder.connect(IoRef::new(0, 0, 0), IoRef::new(1, 0, 0));
    builder.output(IoRef::new(1, 0, 0));
    builder.mmap()?;
    builder.digests(true);
    let package = Writer::options().alignment(64).write_to(Vec::new(), &builder).finish()?;
    let len = package.len();
    for model in Reader::from_bytes(package)?.models() {
        println!("{len} bytes with {}", model.path());
    }
    Ok(())
}
