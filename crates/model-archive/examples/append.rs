//! Replaces one entry of an archive in place: nothing that is there is written over, and at every
//! moment the file ends as it did or as it is to.
//!
//! ```sh
//! cargo run -p model-archive --example append -- model.zip labels.txt "cat, dog"
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{error::Error, io};

use model_archive::{
    Archive, ArchiveWriter, Entry, EntryOptions, Layout,
    tensor_core::{
        Profile,
        output::{Append, Durability, LockedFile},
    },
};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, name, content] = &*arguments else {
        println!("usage: append ARCHIVE NAME CONTENT");
        return Ok(());
    };
    let file = LockedFile::open(path)?;
    // Bytes of earlier edits may be left in it.
    let archive = Archive::options().profile(Profile::Lenient).from_source(file.source()?)?;
    let keep = |entry: Entry<'_>| entry.name() != name;
    let old = archive.clone();
    let old_end = move |offset| old.directory_at(offset).map_err(io::Error::other);
    let len = archive.source().len();
    let sink = Append::new(Some(file), len, Durability::Synced, old_end);
    let mut tail = ArchiveWriter::behind_archive(sink, &archive, Layout::Plain, keep)?;
    tail.add(name, content.as_bytes(), &EntryOptions::default())?;
    let len = tail.finish()?.commit()?;
    println!("{len} bytes");
    Ok(())
}
