//! What is found in sound models.

use circle_format::Reader;

use crate::common::packed_models;

#[test]
fn packed_models_are_valid() {
    for (path, bytes) in packed_models() {
        assert!(Reader::from_bytes(bytes).unwrap().validate().is_valid(), "{path}");
    }
}
