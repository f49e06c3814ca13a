//! What we refuse or find fault with, and what the runtime makes of it.

use std::fs;

use rten_format::Reader;
use test_support::{files, mutations, testdata};

use super::client::{load, load_optimized, map};

/// The files of `testdata/rten/invalid`, with what the runtime says of each: that is the first line
/// of an error or a panic. Those that it loads it may still refuse when it optimises them.
const CASES: &[(&str, Outcome)] = &[
    ("attributes_missing", Refused(r#"in node "softmax": operator error: attributes are missing"#)),
    ("attributes_wrong", Refused(r#"in node "softmax": operator error: attributes are missing"#)),
    (
        "branch_missing",
        Refused(r#"in node "act1": operator error: error in attribute "then": missing branch"#),
    ),
    (
        "constant_empty",
        Refused(r#"in node "fc1.bias": graph error: unsupported data type for inline constant"#),
    ),
    ("cycle", Unplanned(r#"Encountered cycle visiting dependency "a1" of operator "fc1""#)),
    ("dangling_capture", Loaded),
    ("duplicate_name", Loaded),
    ("external_in_v1", Refused(r#"in node "fc1.bias": graph error: tensor data section missing"#)),
    ("fixed_zero_input", Loaded),
    ("header_cut", Refused("invalid header: segment offset is invalid")),
    ("header_version", Refused("invalid header: unsupported file version")),
    ("inline_length", Refused("panic: data length 8 does not match shape [9]")),
    ("input_id_over_limit", Refused("panic: assertion failed: value <= i32::MAX as u32")),
    ("model_data_cut", Refused("invalid header: segment length is invalid")),
    ("model_data_in_header", Refused("invalid header: segment offset is invalid")),
    ("model_data_length_huge", Refused("invalid header: segment length is invalid")),
    ("model_data_offset_huge", Refused("invalid header: segment offset is invalid")),
    ("node_missing", Refused(r#"in node "fc1.weight": graph error: unknown node type"#)),
    ("not_rten", Refused("parse error: Range [67324752, 67324756) is out of bounds.")),
    ("operator_type", Refused(r#"in node "act1": operator error: operator not supported"#)),
    ("order", Refused(r#"in node "act1": graph error: operator input is invalid"#)),
    ("output_id", Unplanned(r#"Output 2 ("[ID: 99]") is not a value node in the graph."#)),
    ("output_twice", Unplanned(r#"Outputs are not unique. Output "probs" is duplicated."#)),
    ("padding", Loaded),
    ("schema_version", Refused("parse error: unsupported model schema version 2")),
    ("segments_overlap", Loaded),
    // A product that a build without debug assertions lets wrap.
    ("shape_overflow", Refused("panic: attempt to multiply with overflow")),
    ("tensor_data_behind_end", Refused("invalid header: segment offset is invalid")),
    ("tensor_data_in_header", Refused("invalid header: segment offset is invalid")),
    ("tensors_cut", Refused(r#"in node "fc2.weight": graph error: invalid tensor data offset"#)),
    ("three_bytes", Refused("invalid header: header is too short")),
    (
        "too_many_inputs",
        Refused(r#"in node "act1": operator error: operator has 2 inputs but maximum is 1"#),
    ),
    ("two_producers", Loaded),
    ("undefined_value", Unplanned(r#"Missing input "x" for op "fc1""#)),
    (
        "unknown_number",
        Refused(r#"in node "act1": operator error: error in attribute "mode": unknown value"#),
    ),
    ("v1_cut", Refused("parse error: Range [220, 224) is out of bounds.")),
    ("v1_root_behind_end", Refused("parse error: Range [256, 260) is out of bounds.")),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Loaded,
    /// Loaded as it is, but there is no order in which its operators could be run.
    Unplanned(&'static str),
    Refused(&'static str),
}
use Outcome::{Loaded, Refused, Unplanned};

/// What of an error does not hang on where in the file something is.
fn first_line(error: &str) -> &str {
    error.lines().next().unwrap_or_default()
}

#[test]
fn every_invalid_file() {
    let names = files("rten/invalid", "rten").into_iter();
    let names: Vec<_> = names.map(|path| path.file_stem().unwrap().to_owned()).collect();
    assert!(CASES.iter().map(|(name, _)| *name).eq(names), "a file without a case, or the reverse");
    for (name, expected) in CASES {
        let path = testdata("rten/invalid").join(format!("{name}.rten"));
        match (map(&path), *expected) {
            (Ok(_), Loaded) => load_optimized(&path).unwrap(),
            (Ok(_), Unplanned(reason)) => assert_eq!(
                load_optimized(&path).unwrap_err(),
                format!(
                    "shape inference failed: execution planning failed: planning error: {reason}"
                ),
                "{name}"
            ),
            (Err(found), Refused(reason)) => assert_eq!(first_line(&found), reason, "{name}"),
            (found, expected) => panic!("{name}: {:?}, expected {expected:?}", found.err()),
        }
    }
}

/// Bytes that have no name are taken for what they look like, which changes two reasons.
#[test]
fn every_invalid_file_by_bytes() {
    for (name, expected) in CASES {
        let file = fs::read(testdata("rten/invalid").join(format!("{name}.rten"))).unwrap();
        let expected = match expected {
            _ if ["not_rten", "three_bytes"].contains(name) => "unknown model file type",
            Refused(reason) => reason,
            Loaded | Unplanned(_) => "",
        };
        let found = load(file).map_or_else(|error| error, |_| String::new());
        assert_eq!(first_line(&found), expected, "{name}");
    }
}

/// Calls `check` with one in [`STRIDE`] of the changes of each short sample, and with where it is.
/// The first 4 bytes stay as they are.
fn changed_samples(mut check: impl FnMut(&[u8], &str)) {
    for path in files("rten/valid", "rten") {
        let file = fs::read(&path).unwrap();
        if file.len() > 10_000 {
            continue;
        }
        let mut count = 0;
        mutations(&file, |changed| {
            count += 1;
            if count % STRIDE != 0 || changed[..4] != file[..4] {
                return;
            }
            let at = file.iter().zip(changed).position(|(old, new)| old != new);
            check(changed, &format!("{path:?} changed at byte {at:?}"));
        });
    }
}

/// The runtime may tolerate more: it looks for an order of the operators only when it optimises
/// or runs them.
#[test]
fn what_we_find_no_error_in_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changed.rten");
    let (mut sound, mut total) = (0, 0);
    changed_samples(|changed, at| {
        total += 1;
        let Ok(reader) = Reader::from_bytes(changed.to_vec()) else { return };
        if reader.validate().is_valid() {
            sound += 1;
            // Not by bytes: looking whether they are an ONNX model, the runtime may never end.
            fs::write(&path, changed).unwrap();
            map(&path).unwrap_or_else(|error| panic!("{at}: {error}"));
        }
    });
    assert!(sound * 5 > total && sound * 5 < total * 4, "{sound} of {total} are sound");
}

/// Prime, so that all bytes of a word have their turn.
const STRIDE: usize = 97;
