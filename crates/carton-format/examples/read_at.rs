//! Reads a tensor from a store of one's own: here a vector that counts its requests.
//!
//! ```sh
//! cargo run -p carton-format --example read_at
//! ```
#![allow(clippy::print_stdout, reason = "an example talks through its output")]

use std::{
    error::Error,
    fs, io,
    sync::atomic::{AtomicU64, Ordering},
};

use carton_format::{
    Reader,
    tensor_core::{ReadAt, Source},
};

#[derive(Debug)]
struct Store {
    bytes: Vec<u8>,
    requests: AtomicU64,
}

impl ReadAt for Store {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let request = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        println!("request {request}: {} bytes at byte {offset}", buffer.len());
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let found = self.bytes.get(start..start + buffer.len());
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let bytes = fs::read("testdata/carton/golden/everything.carton")?;
    let store = Store { bytes, requests: AtomicU64::new(0) };
    let reader = Reader::from_source(Source::from_read_at(store))?;
    let tensor = reader.tensor("float32")?.ok_or("there is no \"float32\"")?;
    println!("{}: {:?}", tensor.info()?, tensor.read()?.to_vec::<f32>()?);
    Ok(())
}
