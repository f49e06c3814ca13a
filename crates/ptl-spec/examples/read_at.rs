//! Reads tensors from a store of one's own: here a vector that tells its requests.
//!
//! ```sh
//! cargo run -p ptl-spec --example read_at
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{error::Error, fs, io};

use ptl_spec::{
    Reader,
    tensor_core::{ReadAt, Source},
};

#[derive(Debug)]
struct Store(Vec<u8>);

impl ReadAt for Store {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        println!("{} bytes at byte {offset}", buffer.len());
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let found = self.0.get(start..start + buffer.len());
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let store = Store(fs::read("testdata/ptl/valid/torch251/img_fb.ptl")?);
    let reader = Reader::from_source(Source::from_read_at(store))?;
    for tensor in reader.tensors()? {
        println!("{}: {} bytes", tensor.name(), tensor.bytes()?.len());
    }
    Ok(())
}
