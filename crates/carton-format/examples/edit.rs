//! Changes a copy of a carton: a key of its description, with all comments kept, and a file.
//!
//! ```sh
//! cargo run -p carton-format --example edit
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{error::Error, fs};

use carton_format::{Change, Editor, NewValue, Reader};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("carton-edit-{}.carton", std::process::id()));
    fs::copy("testdata/carton/golden/everything.carton", &path)?;
    let mut editor = Editor::open(&path)?;
    editor.change(&[
        Change::set("license", NewValue::guess("MIT")),
        Change::set("runner.opts.threads", NewValue::guess("4")),
    ])?;
    editor.put("misc/notes.txt", "tuned by hand")?;
    println!("{:?}", editor.commit()?);
    let reader = Reader::open(&path)?;
    println!("{:?}, model hash {}", reader.description()?.license, reader.model_hash());
    fs::remove_file(&path)?;
    Ok(())
}
