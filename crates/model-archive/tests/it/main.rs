//! Reading, refusing, writing, changing and unpacking archives, and reading folders.

mod append;
mod changed;
mod differential;
mod edit;
mod face;
mod folder;
mod fuzz_corpus;
mod hostile;
mod lazy;
mod read;
mod unpack;
mod write;

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(9));
    std::io::Write::write_all(&mut encoder, content).unwrap();
    encoder.finish().unwrap()
}
