//! Changes a copy of a file in place: what is there stays where it is.
//!
//! ```sh
//! cargo run -p ztensor-format --example edit
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{error::Error, fs};

use ztensor::{Editor, Reader, WriteOptions, compact, tensor_core::TensorBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("ztensor-edit-{}.zt", std::process::id()));
    fs::copy("testdata/ztensor/valid/v1.1-hand/object_attributes.zt", &path)?;
    let mut editor = Editor::open(&path)?;
    editor.set_attribute("license", "MIT")?;
    editor.set_tensor_attribute("t", "frozen", true)?;
    editor.replace("u", &TensorBuf::from_slice([3], &[0.5_f32, 1.0, 1.5])?)?;
    editor.remove("v")?;
    println!("{:?}", editor.commit()?);
    // The bytes of what was removed go only now.
    println!("{:?}", compact(&path, WriteOptions::default())?);
    println!("{:?}", Reader::open(&path)?.manifest().names().collect::<Vec<_>>());
    fs::remove_file(&path)?;
    Ok(())
}
