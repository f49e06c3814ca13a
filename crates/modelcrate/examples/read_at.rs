//! Reads a model of any format from a store of one's own: here a vector that tells its requests.
//!
//! ```sh
//! cargo run -p modelcrate --example read_at -- model.rten
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{env, error::Error, fs, io};

use modelcrate::{
    AnyReader,
    tensor_core::{ReadAt, Source},
};

/// Stands for anything that has bytes at offsets: a database, an object store.
#[derive(Debug)]
struct Store(Vec<u8>);

impl ReadAt for Store {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        println!("{} bytes at byte {offset}", buffer.len());
        let rest = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..));
        let part = rest.and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("expected the path of a model")?;
    let reader = AnyReader::from_source(Source::from_read_at(Store(fs::read(path)?)))?;
    println!("opened: {}", reader.format());
    for tensor in reader.tensors()? {
        println!("{}: {}", tensor.name().unwrap_or("?"), tensor.info()?);
        tensor.bytes()?;
    }
    Ok(())
}
