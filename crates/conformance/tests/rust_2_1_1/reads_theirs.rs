//! We read what the reference writes.

use proptest::prelude::*;
use reference2::{DigestAlgorithm, Writer as TheirWriter, read};
use ztensor::{
    Reader, Role,
    tensor_core::{Verified, digest::Algorithm},
};

use super::{Tensor, tensors, theirs};

fn reads(path: &std::path::Path, tensors: &[Tensor]) {
    let reader = Reader::open(path).unwrap();
    assert!(reader.validate().is_valid(), "{:?}", reader.validate());
    assert_eq!(reader.manifest().len(), tensors.len());
    for tensor in tensors {
        let found = reader.tensor(&tensor.name).unwrap();
        let blob = found.blob(&Role::Data).unwrap().unwrap();
        assert_eq!(blob.elements().unwrap(), tensor.elements);
        assert_eq!(found.object().unwrap().shape.dims(), tensor.shape);
        assert!(blob.bytes().unwrap() == tensor.bytes, "{}", tensor.name);
        assert_eq!(blob.verify().unwrap(), Verified::Digest);
    }
    let manifest = read::manifest_of(path).unwrap().unwrap();
    for (theirs, ours) in
        [(DigestAlgorithm::Sha256, Algorithm::Sha256), (DigestAlgorithm::Xxh3, Algorithm::Xxh3)]
    {
        let found = reader.content_digest(ours).unwrap().unwrap().to_string();
        assert_eq!(found, manifest.content_digest(theirs).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_the_form(tensors in tensors(), grid in 12_u32..=17) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.zt");
        theirs(&path, &tensors, TheirWriter::options(), false);
        reads(&path, &tensors);
        prop_assert!(Reader::open(&path).unwrap().canonical().is_empty());
        let options = || TheirWriter::options().canonical(false).align(1 << grid);
        theirs(&path, &tensors, options(), false);
        reads(&path, &tensors);
        theirs(&path, &tensors, options(), true);
        reads(&path, &tensors);
        let mut writer = TheirWriter::append(&path).unwrap();
        writer.add("zzzz_appended", [2_u64], reference2::DType::U8, &[1, 0]).unwrap();
        writer.finish().unwrap();
        let reader = Reader::open(&path).unwrap();
        prop_assert!(reader.validate().is_valid(), "{:?}", reader.validate());
        prop_assert_eq!(reader.manifest().len(), tensors.len() + 1);
    }
}
