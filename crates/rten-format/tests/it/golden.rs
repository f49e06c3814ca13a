//! What the writers must reproduce is sound, and is one model in every layout.

use rten_format::{Reader, Tensor, Version};
use test_support::{files, testdata};

#[test]
fn golden_files_are_sound() {
    for path in files("rten/golden", "rten") {
        let reader = Reader::open(&path).unwrap();
        assert!(reader.validate().is_empty(), "{path:?}: {:?}", reader.validate());
        for tensor in reader.tensors() {
            tensor.verify().unwrap();
        }
    }
}

#[test]
fn one_model_in_every_layout() {
    let open = |name: &str| Reader::open(testdata("rten/golden").join(name)).unwrap();
    let contents = |reader: &Reader| -> Vec<_> {
        let content = |tensor: Tensor<'_>| (tensor.path(), tensor.bytes().unwrap());
        reader.tensors().map(content).collect()
    };
    let first = open("model.v2.rten");
    for name in ["inline.v2.rten", "external.v2.rten", "model.v1.rten", "wrapped.v2.rten"] {
        let other = open(name);
        assert_eq!(contents(&other), contents(&first), "{name}");
        assert_eq!(other.version() == Version::V1, name == "model.v1.rten");
    }
    let external = |reader: &Reader| reader.tensors().filter(|t| t.is_external()).count();
    assert_eq!(external(&first), 2);
    assert_eq!(external(&open("wrapped.v2.rten")), 0);
    // The constant without elements has none anywhere.
    assert_eq!(external(&open("external.v2.rten")), first.tensors().len() - 2);
    assert_eq!(open("part.v2.rten").tensors().len(), 2);
}
