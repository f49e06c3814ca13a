//! Changes a copy of a model in place: the weights stay where they are.
//!
//! ```sh
//! cargo run -p rten-format --example edit
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{error::Error, fs};

use rten_format::{Dim, Editor, Reader, Rewrite};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("rten-edit-{}.rten", std::process::id()));
    fs::copy("testdata/rten/valid/mlp.v2.rten", &path)?;
    let mut editor = Editor::open(&path)?;
    let model = editor.model_mut();
    model.metadata.get_or_insert_default().license = Some("MIT".to_owned());
    let input = *model.graph.inputs.first().ok_or("there is no input")?;
    model.set_dim(input, 0, Dim::from("batch"))?;
    println!("{} bytes will be unused", editor.unused_bytes());
    println!("{:?}", editor.commit()?);
    // They are left out of any other file.
    let bytes = Rewrite::new(&Reader::open(&path)?).write_v2(Vec::new())?;
    println!("{} bytes without them", bytes.len());
    fs::remove_file(&path)?;
    Ok(())
}
