//! Both refuse the same files, by the same rules.

use reference2::{Vocabulary, format::validate};
use test_support::{cases::cases, testdata};
use ztensor::{
    Error, Reader,
    tensor_core::digest::{Algorithm, Digest},
};

/// Returns the name of the rule that keeps each from opening a file; `None` where it opens.
fn rules(bytes: &[u8]) -> [Option<String>; 2] {
    let ours = Reader::from_bytes(bytes.to_vec()).err().map(|error| match error {
        Error::Rejected { rule, .. } => rule.to_string(),
        other => other.to_string(),
    });
    let theirs = validate::image(bytes, &Vocabulary::standard()).err();
    [ours, theirs.map(|error| error.rule().map_or(error.to_string(), |rule| format!("{rule:?}")))]
}

#[test]
fn every_invalid_file() {
    let mut compared = 0;
    for case in cases("ztensor/v2") {
        let [ours, theirs] = rules(&case.bytes());
        assert_eq!(ours, theirs, "{}", case.file());
        compared += 1;
    }
    assert!(compared > 100, "{compared}");
}

/// Changes a byte of a manifest, and the hash in the footer with it.
fn changed(file: &[u8], at: usize, value: u8) -> Vec<u8> {
    let mut bytes = file.to_vec();
    bytes[at] = value;
    let footer = bytes.len() - 40;
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let start = usize::try_from(number(footer)).unwrap();
    let Digest::Xxh3(hash) = Algorithm::Xxh3.digest(&bytes[start..footer]) else { unreachable!() };
    bytes[footer + 16..footer + 24].copy_from_slice(&hash.to_le_bytes());
    bytes
}

#[test]
fn every_byte_of_a_manifest() {
    let mut refused = 0;
    for name in ["v2_mixed_4096.zt", "shards.zt"] {
        let file = std::fs::read(testdata("ztensor/v2/valid").join(name)).unwrap();
        let start =
            usize::try_from(Reader::from_bytes(file.clone()).unwrap().manifest().offset()).unwrap();
        for at in start..file.len() - 40 {
            let old = file[at];
            for value in [
                0,
                1,
                0x7f,
                0x80,
                0xff,
                old ^ 1,
                old ^ 0x20,
                old.wrapping_add(1),
                old.wrapping_sub(1),
            ] {
                let bytes = changed(&file, at, value);
                let [ours, theirs] = rules(&bytes);
                assert_eq!(ours, theirs, "{name}: byte {at} is {value:#04x}, was {old:#04x}");
                refused += u32::from(ours.is_some());
            }
        }
    }
    assert!(refused > 5000, "{refused}");
}

#[test]
fn every_byte_of_a_footer() {
    let file = std::fs::read(testdata("ztensor/v2/valid/shards-00001.zt")).unwrap();
    for at in file.len() - 40..file.len() {
        for value in 0..=255 {
            let mut bytes = file.clone();
            bytes[at] = value;
            let [ours, theirs] = rules(&bytes);
            assert_eq!(ours, theirs, "byte {at} is {value:#04x}");
        }
    }
}

#[test]
fn every_length() {
    let file = std::fs::read(testdata("ztensor/v2/valid/shards-00001.zt")).unwrap();
    for len in 8..file.len() {
        let [ours, theirs] = rules(&file[..len]);
        assert!(ours.is_some(), "{len}");
        assert_eq!(ours, theirs, "{len}");
    }
}
