//! Canonical files are the same, whoever writes them.

use proptest::prelude::*;
use reference2::Writer as TheirWriter;

use super::{canonical, ours, tensors, theirs};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn canonical_files(tensors in tensors()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.zt");
        theirs(&path, &tensors, TheirWriter::options(), false);
        test_support::assert_bytes(
            &ours(&tensors, canonical()),
            &std::fs::read(&path).unwrap(),
            "canonical file",
        );
    }
}
