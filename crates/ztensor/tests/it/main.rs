//! The tests of the crate that need no allocator of their own.

mod copy;
mod edit;
mod fuzz_corpus;
mod honest;
mod killed;
mod quantized;
mod read;
mod v2;
mod validate;
mod write;

/// Replaces the one place where some bytes stand in a file.
#[track_caller]
fn patched(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let places: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(from)).collect();
    assert_eq!(places.len(), 1, "{}", from.escape_ascii());
    [&bytes[..places[0]], to, &bytes[places[0] + from.len()..]].concat()
}
