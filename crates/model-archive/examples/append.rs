//! Replaces one entry of an archive in place: nothing that is there is written over.
//!
//! ```sh
//! cargo run -p model-archive --example append -- model.zip labels.txt "cat, dog"
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::error::Error;

use model_archive::{
    Archive, ArchiveWriter, Entry, EntryOptions, Layout,
    tensor_core::{Profile, output::LockedFile},
};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, name, content] = &*arguments else {
        println!("usage: append ARCHIVE NAME CONTENT");
        return Ok(());
    };
    let mut file = LockedFile::open(path)?;
    // Bytes of earlier edits may be left in it.
    let archive = Archive::options().profile(Profile::Lenient).from_source(file.source()?)?;
    let keep = |entry: Entry<'_>| entry.name() != name;
    let mut tail = ArchiveWriter::behind_archive(Vec::new(), &archive, Layout::Plain, keep)?;
    tail.add(name, content.as_bytes(), &EntryOptions::default())?;
    let tail = tail.finish()?;
    file.check_in_place()?;
    file.write_all_at(&tail, archive.source().len())?;
    file.sync()?;
    println!("{} bytes appended", tail.len());
    Ok(())
}
