//! Changes the configuration of a copy of a package in place; comments and order stay.
//!
//! ```sh
//! cargo run -p nnpackage --example edit
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{error::Error, fs};

use nnpackage::{ConfigChange, Editor, Reader, WriteOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("nnpackage-edit-{}.zip", std::process::id()));
    fs::copy("testdata/nnpackage/valid/02_tflite_deflate_config.zip", &path)?;
    let change = [ConfigChange::set("NUM_THREADS", "4"), ConfigChange::unset("EXECUTOR")];
    let mut dry = Editor::dry_run(&path, WriteOptions::default())?;
    dry.edit_mut().change_config(&change)?;
    println!("would be {:?}", dry.commit()?);
    let mut editor = Editor::open(&path)?;
    editor.edit_mut().change_config(&change)?;
    println!("{:?}", editor.commit()?);
    for entry in Reader::open(&path)?.config()?.ok_or("no configuration")?.entries() {
        println!("line {}: {} = {}", entry.line, entry.key, entry.value);
    }
    fs::remove_file(&path)?;
    Ok(())
}
