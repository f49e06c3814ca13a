//! Puts a file beside the spec of a copy of a model, and compacts it.
//!
//! ```sh
//! cargo run -p ptl-spec --example edit
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{error::Error, fs};

use ptl_spec::{Editor, Reader, WriteOptions, compact};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("ptl-edit-{}.ptl", std::process::id()));
    fs::copy("testdata/ptl/valid/torch251/img.ptl", &path)?;
    let mut dry = Editor::dry_run(&path, WriteOptions::default())?;
    dry.set("labels.txt", "cat\ndog\n")?;
    println!("would be {:?}", dry.commit()?);
    let mut editor = Editor::open(&path)?;
    editor.set("labels.txt", "cat\ndog\n")?;
    println!("{:?}", editor.commit()?);
    println!("{:?}", compact(&path, WriteOptions::default())?);
    let reader = Reader::open(&path)?;
    for file in reader.extra_files() {
        println!("{}, {} bytes", file.path(), file.len()?);
    }
    fs::remove_file(&path)?;
    Ok(())
}
