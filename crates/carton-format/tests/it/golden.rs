//! What the writer must reproduce is sound, and reads as the writer was told.

use carton_format::{Place, Reader, Value};
use tensor_core::Severity;
use test_support::files;

#[test]
fn golden_files_are_sound() {
    for path in files("carton/golden", "carton") {
        let report = Reader::open(&path).unwrap().validate();
        let worse: Vec<_> =
            report.findings().iter().filter(|finding| finding.severity > Severity::Note).collect();
        // The shortest description lacks what only the format's own library asks for.
        let is_minimal = path.ends_with("minimal.carton");
        let allowed = ["carton/no-compat-version", "carton/no-model"];
        assert!(
            worse.iter().all(|finding| is_minimal && allowed.contains(&&*finding.rule)),
            "{path:?}: {worse:?}"
        );
    }
}

#[test]
fn one_model_in_every_compression() {
    let readers = ["everything", "stored", "deflate", "zstd", "shrunk"]
        .map(|name| Reader::open(test_support::testdata(&format!("carton/golden/{name}.carton"))));
    let [first, others @ ..] = readers.map(Result::unwrap);
    for other in others {
        assert_eq!(other.model_hash(), first.model_hash());
        for tensor in first.tensors().unwrap() {
            let same = other.tensor(tensor.name()).unwrap().unwrap();
            assert_eq!(same.kind(), tensor.kind());
            match (same.value().unwrap(), tensor.value().unwrap()) {
                (Value::Numeric(found), Value::Numeric(expected)) => {
                    assert_eq!(found.bytes(), expected.bytes());
                }
                (Value::Strings { strings: found, .. }, Value::Strings { strings, .. }) => {
                    assert_eq!(found, strings);
                }
                (Value::Nested(found), Value::Nested(expected)) => {
                    assert_eq!(found.len(), expected.len());
                }
                other => panic!("{other:?}"),
            }
        }
        let linked = other.files().filter(|file| file.place() == Place::Linked).count();
        assert_eq!(linked, usize::from(other.links().is_some()));
    }
}
