//! Lists the entries of an archive, and where those that are stored as they are lie.
//!
//! ```sh
//! cargo run -p model-archive --example list -- model.carton
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use model_archive::{Archive, Method, Symlinks, tensor_core::Profile};

fn main() -> model_archive::Result<()> {
    let sample = "testdata/ptl/valid/torch251/img.ptl";
    let path = std::env::args().nth(1).unwrap_or_else(|| sample.to_owned());
    // Only to look at: what other readers may take for something else is listed too.
    let options = Archive::options().profile(Profile::Lenient).symlinks(Symlinks::Kept);
    for entry in options.open(path)?.entries() {
        let info = entry.info();
        print!("{:>10} {} {}", info.size, info.method, entry.name());
        match info.method {
            Method::Stored => println!(" at byte {}", entry.extent()?.offset()),
            _ => println!(),
        }
    }
    Ok(())
}
