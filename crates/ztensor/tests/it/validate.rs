//! What validation reports: rule, severity and place of every fault, and nothing about good files.

use test_support::testdata;
use ztensor::{
    Reader, Writer,
    tensor_core::{ErrorKind, Finding, Limits, Profile, Report, Severity, Source, TensorBuf},
};

use crate::patched;

fn validate(file: &str) -> Report {
    Reader::open(testdata("ztensor").join(file)).unwrap().validate()
}

/// Returns rule, severity, tensor and offset of every finding.
fn findings(report: &Report) -> Vec<(&str, Severity, &str, Option<u64>)> {
    report
        .findings()
        .iter()
        .map(|f| (&*f.rule, f.severity, f.at.tensor.as_deref().unwrap_or(""), f.at.offset))
        .collect()
}

#[test]
fn valid_files_have_no_errors() {
    for folder in ["v1.1-ref", "v1.1-hand", "legacy"] {
        for path in test_support::files(&format!("ztensor/valid/{folder}"), "zt") {
            let report = Reader::open(&path).unwrap().validate();
            assert!(report.is_valid(), "{path:?}: {report:?}");
        }
    }
}

#[test]
fn every_rule_says_where() {
    use Severity::{Error, Note, Warning};
    for (file, expected) in [
        ("invalid/offset_misaligned.zt", ("zt/blob-misaligned", Error, "t", Some(72))),
        ("invalid/offset_zero.zt", ("zt/blob-out-of-bounds", Error, "t", Some(0))),
        ("invalid/length_wraps.zt", ("zt/blob-out-of-bounds", Error, "t", Some(64))),
        ("invalid/product_more.zt", ("zt/blob-length", Error, "t", Some(64))),
        ("invalid/shape_wraps_0.zt", ("zt/shape-overflow", Error, "t", None)),
        ("invalid/dtype_F32.zt", ("zt/dtype", Error, "t", Some(64))),
        ("invalid/encoding_lz4.zt", ("zt/encoding", Error, "t", Some(64))),
        ("invalid/digest_sha_wrong.zt", ("zt/digest-mismatch", Error, "t", Some(64))),
        ("invalid/digest_unknown.zt", ("zt/digest-unknown", Warning, "t", Some(64))),
        ("invalid/bool_not_0_1.zt", ("zt/bool", Error, "t", Some(64))),
        ("invalid/zstd_cut.zt", ("zt/zstd", Error, "t", Some(64))),
        ("invalid/zstd_short.zt", ("zt/decoded-length", Error, "t", Some(64))),
        ("invalid/zstd_long.zt", ("zt/decoded-length", Error, "t", Some(64))),
        ("invalid/csr_index_range.zt", ("zt/layout", Error, "t", None)),
        ("invalid/csr_unsorted_row.zt", ("zt/csr-order", Warning, "t", Some(128))),
        ("invalid/coo_range.zt", ("zt/layout", Error, "t", None)),
        ("invalid/quant_no_zeros.zt", ("zt/component-missing", Error, "t", None)),
        ("valid/v1.1-hand/padding_not_zero.zt", ("zt/padding", Warning, "", Some(8))),
        ("valid/v1.1-hand/shared_blob.zt", ("zt/blob-shared", Note, "head", Some(64))),
        ("valid/v1.1-hand/unknown_format.zt", ("zt/format", Warning, "lowrank", None)),
        ("valid/v1.1-hand/version_7_0_0_beta.zt", ("zt/version-text", Warning, "", Some(65))),
        ("valid/v1.1-ref/duplicate_add_last_wins.zt", ("zt/gap", Note, "", Some(64))),
    ] {
        let report = validate(file);
        let found = findings(&report);
        assert!(found.contains(&expected), "{file}: {expected:?} in {found:?}");
    }
}

/// A file of two tensors of 40 bytes, at 64 and at 128.
fn file() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for name in ["a", "b"] {
        writer.add(name, &TensorBuf::from_slice([40], &[7_u8; 40]).unwrap()).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn overlapping_blobs() {
    // "b" moves from 128 to 64 and keeps its length; then "a" is made shorter by 8.
    let shared = patched(&file(), b"offset\x18\x80", b"offset\x18\x40");
    let report = Reader::from_bytes(shared.clone()).unwrap().validate();
    assert!(findings(&report).contains(&("zt/blob-shared", Severity::Note, "b", Some(64))));
    let at = shared.windows(2).position(|pair| pair == b"\x81\x18").unwrap();
    let mut partial = shared;
    partial[at + 2] = 32;
    let at = partial.windows(7).position(|word| word == b"length\x18").unwrap();
    partial[at + 7] = 32;
    let report = Reader::from_bytes(partial).unwrap().validate();
    let found = findings(&report);
    assert!(
        found.iter().any(|f| f.0 == "zt/blob-overlap" && f.1 == Severity::Warning),
        "{found:?}"
    );
}

#[test]
fn hidden_bytes_between_blobs() {
    let mut bytes = file();
    bytes[64 + 40 + 3] = 1;
    let report = Reader::from_bytes(bytes).unwrap().validate();
    assert_eq!(findings(&report), [("zt/padding", Severity::Warning, "", Some(107))]);
}

#[test]
fn threads_do_not_change_the_report() {
    let bytes = std::fs::read(testdata("ztensor/valid/v1.1-hand/unknown_fields.zt")).unwrap();
    let report = |threads: usize| {
        let threads = std::num::NonZeroUsize::new(threads).unwrap();
        Reader::options().threads(threads).from_bytes(bytes.clone()).unwrap().validate()
    };
    assert_eq!(report(1), report(4));
}

#[test]
fn every_stored_byte_is_read_once() {
    let bytes = std::fs::read(testdata("ztensor/valid/v1.1-ref/digests.zt")).unwrap();
    let store = test_support::CountingSource::new(&bytes);
    let reader = Reader::from_source(store.source()).unwrap();
    let opened = store.total();
    assert!(reader.validate().is_empty());
    let blobs = reader.manifest().offset() - 8;
    assert_eq!(store.total() - opened, blobs);
}

#[test]
fn many_objects_over_one_blob_have_a_limit() {
    let one = std::num::NonZeroUsize::MIN;
    let limits = Limits::default();
    let limits = limits.with_decoded_bytes(1000).with_expansion(0).with_depth(128);
    let reader = Reader::options().threads(one).limits(limits).from_bytes(file()).unwrap();
    assert!(reader.validate().is_empty());
    let limits = limits.with_decoded_bytes(79);
    let reader = Reader::options().threads(one).limits(limits).from_bytes(file()).unwrap();
    let report = reader.validate();
    assert_eq!(findings(&report), [("zt/limit", Severity::Error, "b", Some(128))]);
    let expected = "component \"data\" of object \"b\" cannot be read: bytes of all objects together \
                    is 80, over the limit of 79 (Limits::expansion)";
    assert_eq!(report.findings()[0].message, expected);
    let budget = reader.budget();
    let [a, b] = ["a", "b"].map(|name| reader.tensor(name).unwrap());
    assert!(a.validate_within(&budget).is_empty() && b.validate().is_empty());
    assert_eq!(b.validate_within(&budget), report);
}

/// Every file of `testdata` that opens.
fn opened() -> Vec<(String, Reader)> {
    ["valid/v1.1-ref", "valid/v1.1-hand", "valid/legacy", "invalid"]
        .iter()
        .flat_map(|folder| test_support::files(&format!("ztensor/{folder}"), "zt"))
        .filter_map(|path| Some((path.display().to_string(), Reader::open(&path).ok()?)))
        .collect()
}

#[test]
fn lint_is_a_part_of_validate() {
    let mut rules = std::collections::BTreeSet::new();
    for (file, reader) in opened() {
        let (mut all, lint) = (reader.validate().findings().to_vec(), reader.lint());
        for finding in lint.findings() {
            let at = all.iter().position(|found| found == finding);
            all.remove(at.unwrap_or_else(|| panic!("{file}: {finding:?} only by lint")));
            rules.insert(finding.rule.to_string());
        }
        // What is left takes reading.
        for Finding { rule, .. } in all {
            let reads = ["zt/digest-mismatch", "zt/bool", "zt/zstd", "zt/decoded-length"];
            let parts = ["zt/layout", "zt/csr-order", "zt/limit", "zt/quantized-size"];
            assert!(reads.contains(&&*rule) || parts.contains(&&*rule), "{file}: {rule}");
        }
    }
    for rule in ["zt/blob-length", "zt/dtype", "zt/padding", "zt/blob-shared", "zt/gap"] {
        assert!(rules.contains(rule), "{rule} not in {rules:?}");
    }
}

#[test]
fn lint_reads_no_tensor() {
    let bytes = std::fs::read(testdata("ztensor/valid/v1.1-ref/digests.zt")).unwrap();
    let store = test_support::CountingSource::new(&bytes);
    let reader = Reader::from_source(store.source()).unwrap();
    drop(store.take_reads());
    assert!(reader.lint().is_empty());
    for read in store.take_reads() {
        for tensor in reader.tensors() {
            let extent = tensor.extent().unwrap().unwrap();
            assert!(!extent.overlaps(read), "{read:?} of {}", tensor.name());
        }
    }
}

#[test]
fn parts_beside_broken_ones_are_read_as_well() {
    let bytes = std::fs::read(testdata("ztensor/invalid/digest_sha_wrong.zt")).unwrap();
    let bytes = patched(&bytes, b"cf32", b"cf33");
    let report = Reader::from_bytes(bytes).unwrap().validate();
    let rules: Vec<&str> = report.findings().iter().map(|finding| &*finding.rule).collect();
    assert_eq!(rules, ["zt/dtype", "zt/digest-mismatch"]);
}

#[test]
fn indices_that_are_floats() {
    let mut bytes = std::fs::read(testdata("ztensor/invalid/csr_unsorted_row.zt")).unwrap();
    let at = bytes.windows(8).position(|word| word == b"gindices").unwrap();
    let at = at + bytes[at..].windows(3).position(|word| word == b"u64").unwrap();
    bytes[at] = b'f';
    let report = Reader::from_bytes(bytes).unwrap().lint();
    assert_eq!(findings(&report), [("zt/layout", Severity::Error, "t", None)]);
    assert_eq!(report.findings()[0].message, "object \"t\": indices are f64, expected integers");
}

#[test]
fn files_without_their_end_are_reported() {
    let path = testdata("ztensor/valid/v1.1-ref/scalars.zt");
    let mut bytes = std::fs::read(&path).unwrap();
    let whole = bytes.len() as u64;
    bytes.extend([0; 9]);
    let reader = Reader::options().profile(Profile::Lenient).from_bytes(bytes).unwrap();
    for report in [reader.lint(), reader.validate()] {
        assert_eq!(findings(&report), [("zt/recovered", Severity::Warning, "", Some(whole))]);
        let expected = "the last 9 bytes are not a complete file; what stands before them was read";
        assert_eq!(report.findings()[0].message, expected);
    }
}

#[test]
fn progress_adds_up() {
    let reader = Reader::open(testdata("ztensor/valid/v1.1-ref/many_300.zt")).unwrap();
    let done = std::sync::atomic::AtomicU64::new(0);
    let count = |bytes| {
        done.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
    };
    assert!(reader.validate_with(count).is_valid());
    let stored = |t: ztensor::Tensor<'_>| t.extent().unwrap().unwrap().len();
    assert_eq!(done.into_inner(), reader.tensors().map(stored).sum::<u64>());
}

#[test]
fn errors_have_a_kind_and_a_place() {
    let error = Reader::from_bytes(&b"PK"[..]).unwrap_err();
    assert_eq!((error.rule(), error.kind()), ("zt/magic", ErrorKind::Malformed));
    let error = Reader::from_bytes(&b"\x89ZT2\r\n\x1a\n"[..]).unwrap_err();
    assert_eq!((error.rule(), error.kind()), ("zt2/file-too-small", ErrorKind::Malformed));
    let limits = Limits::default().with_manifest_bytes(3);
    let error = Reader::options().limits(limits).from_bytes(file()).unwrap_err();
    assert_eq!((error.rule(), error.kind()), ("zt/limit", ErrorKind::OverLimit));
    let error = ztensor::Error::from(Source::open("none.zt").unwrap_err());
    assert!(!error.kind().is_file_fault());
    let reader = Reader::open(testdata("ztensor/invalid/offset_misaligned.zt")).unwrap();
    let error = reader.tensor("t").unwrap().read().unwrap_err();
    assert_eq!((error.rule(), error.kind()), ("zt/blob-misaligned", ErrorKind::Malformed));
    let at = error.at();
    assert_eq!(at.tensor.as_deref(), Some("t"));
    assert_eq!((at.path.as_deref(), at.offset), (Some("components.\"data\""), Some(72)));
}
