//! Cartons that were cut or changed: errors and findings, and never another content for a digest.

use std::num::NonZeroUsize;

use carton_format::{Place, ReadOptions, Reader, Sha256};
use tensor_core::Profile;
use test_support::{mutations, truncations};

use super::made::{Carton, compress};

/// Small cartons: stored, compressed, linked.
fn small() -> [Vec<u8>; 3] {
    let mut compressed = Carton::small().zip();
    compress(&mut compressed);
    let linked = Carton::small();
    let line = format!("{} = [\"https://models.example.com/m\"]", linked.digest("model/m"));
    let linked = linked.left_out("model/m").links(format!("version = 1\n\n[urls]\n{line}\n"));
    [Carton::with_tensors().bytes(), compressed.to_bytes(), linked.bytes()]
}

fn options(profile: Profile) -> ReadOptions {
    Reader::options().profile(profile).threads(NonZeroUsize::MIN)
}

/// Reads everything in the strictest profile that opens it. Whoever trusts the model hash gets the
/// content that it stands for, or an error; and validation finds an error wherever reading does.
fn holds(original: &Reader, changed: &[u8]) {
    let opens = |profile| options(profile).from_bytes(changed.to_vec());
    let Ok(reader) = opens(Profile::Strict).or_else(|_| opens(Profile::Lenient)) else { return };
    let is_same_model = reader.model_hash() == original.model_hash();
    let mut is_read = reader.description().is_ok();
    match reader.tensors() {
        Ok(tensors) => tensors.for_each(|tensor| is_read &= tensor.value().is_ok()),
        Err(_) => is_read = false,
    }
    for file in reader.files().filter(|file| file.place() == Place::Here) {
        match file.bytes() {
            Ok(content) if is_same_model => {
                assert_eq!(content, original.file(file.path()).unwrap().bytes().unwrap());
            }
            Ok(content) => assert_eq!(Sha256::digest(&content), file.sha256()),
            Err(_) => is_read = false,
        }
    }
    assert!(is_read || !reader.validate().is_valid(), "validation finds less than reading");
}

#[test]
fn what_is_unchanged_is_sound() {
    for bytes in small() {
        let report = options(Profile::Strict).from_bytes(bytes).unwrap().validate();
        assert!(report.is_valid(), "{report:?}");
    }
}

#[test]
fn every_truncation() {
    for bytes in small() {
        truncations(&bytes, |cut| {
            for profile in [Profile::Strict, Profile::Lenient] {
                let error = options(profile).from_bytes(cut.to_vec()).unwrap_err();
                assert_eq!(error.rule(), "zip/directory", "{} bytes: {error}", cut.len());
            }
        });
    }
}

#[test]
fn changed_bytes() {
    for bytes in small() {
        let original = options(Profile::Strict).from_bytes(bytes.clone()).unwrap();
        mutations(&bytes, |changed| holds(&original, changed));
    }
}
