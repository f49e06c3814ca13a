//! Sets the description of a model in its place: `edit MODEL TEXT`.
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{env, error::Error};

use circle_format::Editor;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let (Some(path), Some(text)) = (args.next(), args.next()) else {
        return Err("expected the path of a model and a text".into());
    };
    let mut editor = Editor::open(path)?;
    editor.model_mut().description = Some(text);
    println!("{:?}", editor.commit()?);
    Ok(())
}
