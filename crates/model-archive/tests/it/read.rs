//! What archives of other writers hold.
#![cfg(all(feature = "deflate", feature = "zstd"))]

use std::io::BufRead;

use model_archive::{Archive, Kind, Symlinks};
use tensor_core::{
    Source,
    digest::{Algorithm, DigestReader},
};

#[test]
fn cartons_of_the_reference_read_whole() {
    let Some(folder) = test_support::shared("corpus/carton") else { return };
    let text = std::fs::read(folder.join("expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&text).unwrap();
    for (file, expected) in expected.as_object().unwrap() {
        let source = Source::open(folder.join(file)).unwrap();
        let archive = Archive::options().symlinks(Symlinks::Kept).from_source(source).unwrap();
        let report = archive.lint();
        assert!(report.is_empty(), "{file}: {report:?}");
        let expected = expected["zip_entries"].as_array().unwrap();
        assert_eq!(archive.entries().len(), expected.len());
        for (entry, expected) in archive.entries().zip(expected) {
            assert_eq!(entry.name(), expected["name"]);
            assert_eq!(u64::from(entry.info().method.code()), expected["method"]);
            assert_eq!(entry.info().size, expected["size"]);
            if entry.info().kind == Kind::Symlink {
                assert_eq!(entry.target().unwrap(), expected["symlink_target"]);
                continue;
            }
            if expected["sha256"] == ZEROS_AND_TAIL {
                // To compare is faster than to hash.
                are_zeros_and_tail(entry.reader().unwrap());
                continue;
            }
            let mut content = DigestReader::new(entry.reader().unwrap(), Algorithm::Sha256);
            std::io::copy(&mut content, &mut std::io::sink()).unwrap();
            let digest = content.finish().1.to_string();
            assert_eq!(digest.strip_prefix("sha256:").unwrap(), expected["sha256"], "{file}");
        }
    }
}

#[track_caller]
fn are_zeros_and_tail(mut content: impl BufRead) {
    let (zeros, mut left) = (vec![0; 1 << 20], (4_usize << 30) + 6);
    while left > 0 {
        let ready = content.fill_buf().unwrap();
        let taken = ready.len().min(zeros.len()).min(left);
        assert!(taken > 0 && ready[..taken] == zeros[..taken], "{left} bytes before the tail");
        content.consume(taken);
        left -= taken;
    }
    let mut tail = String::new();
    content.read_to_string(&mut tail).unwrap();
    assert_eq!(tail, "tail");
}

/// What `(head -c 4294967302 /dev/zero; printf tail) | sha256sum` prints.
const ZEROS_AND_TAIL: &str = "d65250315bac176e9ed1d2a5e0ac865d4eced73e58cdc3b1fef12746fa1e7f7c";

/// PyTorch puts a zip64 end record beside an end record that does not need one, sizes of 8 bytes
/// into local headers alone, and pads extra fields; other writers use descriptors and folders.
#[test]
fn archives_of_other_writers_read_whole() {
    for (folder, extension) in
        [("ptl/torch113", "ptl"), ("ptl/torch251", "ptl"), ("nnpackage", "zip")]
    {
        let Some(folder) = test_support::shared(&format!("corpus/{folder}")) else { continue };
        let mut read = 0;
        for file in std::fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            let is_archive = std::fs::read(&file).is_ok_and(|bytes| bytes.starts_with(b"PK"));
            if !is_archive || file.extension().is_none_or(|found| found != extension) {
                continue;
            }
            let archive = Archive::from_source(Source::open(&file).unwrap()).unwrap();
            assert!(archive.lint().is_empty(), "{file:?}");
            for entry in archive.entries() {
                entry.verify().unwrap();
            }
            read += 1;
        }
        assert!(read > 3, "{read} in {folder:?}");
    }
}

#[test]
fn directory_and_comment_are_where_they_say() {
    let mut zip = test_support::zip::Zip::of(&[("a", b"1"), ("b", b"2")]);
    zip.end.comment = b"remark".to_vec();
    let bytes = zip.to_bytes();
    let archive = Archive::from_bytes(bytes.clone()).unwrap();
    let directory = archive.directory_extent().slice(&bytes).unwrap();
    assert!(directory.starts_with(b"PK\x01\x02") && directory.len() == 2 * 47);
    assert_eq!(archive.comment_extent().slice(&bytes).unwrap(), b"remark");
}
