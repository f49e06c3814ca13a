//! What the fuzz target `zt2_read` does with its input; a test of the crate replays the corpus.

use ztensor::{
    Editor, Form, Generation, Reader, Version, WriteOptions,
    tensor_core::{
        Limits, Profile, Verify,
        digest::{Algorithm, Digest},
    },
};

/// Opens, reads, validates, edits and rewrites any bytes as a file of generation 2, and as the manifest
/// of one: nothing but errors may come of it.
pub(crate) fn run(bytes: &[u8]) {
    if bytes.starts_with(MAGIC) && bytes.len() >= 48 {
        read(rehashed(bytes.to_vec()));
    } else if let Some((&[low, high], rest)) = bytes.split_first_chunk() {
        let blobs = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (blobs, manifest) = rest.split_at(blobs);
        let mut file = MAGIC.to_vec();
        file.resize(4096, 0);
        file.extend_from_slice(blobs);
        file.resize(file.len().next_multiple_of(4096), 0);
        let offset = file.len() as u64;
        file.extend_from_slice(manifest);
        for number in [offset, manifest.len() as u64, 0, 2] {
            file.extend_from_slice(&number.to_le_bytes());
        }
        file.extend_from_slice(MAGIC);
        read(rehashed(file));
    }
}

/// Gives the footer the hash of the manifest that it names.
fn rehashed(mut file: Vec<u8>) -> Vec<u8> {
    let footer = file.len() - 40;
    let number = |at: usize| file[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let (offset, length) = (number(footer), number(footer + 8));
    let range = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
    let manifest = range.and_then(|(start, len)| file.get(start..start.checked_add(len)?));
    if let Some(Digest::Xxh3(hash)) = manifest.map(|manifest| Algorithm::Xxh3.digest(manifest)) {
        file[footer + 16..footer + 24].copy_from_slice(&hash.to_le_bytes());
    }
    file
}

fn read(file: Vec<u8>) {
    let limits = Limits::default().with_decoded_bytes(1 << 20).with_metadata_bytes(1 << 16);
    let options = Reader::options().limits(limits).profile(Profile::Lenient).verify(Verify::Always);
    let Ok(reader) = options.from_bytes(file) else { return };
    assert_eq!(reader.generation(), Generation::V2);
    let (report, lint) = (reader.validate(), reader.lint());
    assert!(lint.findings().iter().all(|finding| report.findings().contains(finding)));
    let _ = reader.canonical();
    let id = reader.content_digest(Algorithm::Xxh3).expect("opened");
    for tensor in reader.tensors() {
        let _ = (tensor.info(), tensor.attributes(), tensor.verify(), tensor.extent());
        if let Ok(dense) = tensor.read() {
            let mut buffer = vec![0; dense.bytes().len()];
            assert!(tensor.read_into(&mut buffer).is_ok() && buffer == dense.bytes()[..]);
        }
        for blob in tensor.blobs().into_iter().flatten() {
            if let Ok(bytes) = blob.bytes() {
                let (len, half) = (bytes.len() as u64, bytes.len() / 2);
                assert_eq!(blob.bytes_at(half as u64..len).expect("in range"), bytes[half..]);
            }
        }
    }
    // What is copied as it is stored stays what it is.
    let free = WriteOptions::default().verify(Verify::Never);
    if let Ok(copy) = Editor::copy_to(Vec::new(), &reader, free).and_then(Editor::finish) {
        let copy = Reader::from_bytes(copy).expect("does not open");
        assert_eq!(copy.content_digest(Algorithm::Xxh3).expect("opened"), id);
    }
    if report.is_valid() {
        let compact = ztensor::rewrite(&reader, Vec::new(), WriteOptions::default());
        if let Ok(compact) = compact {
            assert!(Reader::from_bytes(compact).expect("does not open").validate().is_valid());
        }
        for (version, form) in [(Version::V2, Form::Canonical), (Version::V1_1, Form::Free)] {
            let options = WriteOptions::default().version(version).form(form);
            let mut writer = options.write_to(Vec::new()).expect("settings that go together");
            if ztensor::migrate(&reader, &mut writer).is_ok() {
                let new = Reader::from_bytes(writer.finish().expect("in memory"));
                assert!(new.expect("does not open").validate().is_valid());
            }
        }
    }
}

const MAGIC: &[u8; 8] = b"\x89ZT2\r\n\x1a\n";
