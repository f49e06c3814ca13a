//! The reference reads what we write.

use std::num::NonZeroU64;

use proptest::prelude::*;
use reference2::{Source, Verified, read};
use ztensor::{
    Compression, Coo, Csr, Editor, Reader, Shard, Storage, WriteOptions, Writer,
    tensor_core::{TensorBuf, digest::Algorithm},
};

use super::{Tensor, canonical, free, open, ours, tensors};

/// Asserts that the reference reads these tensors, and verifies them.
fn reads(bytes: &[u8], tensors: &[Tensor]) {
    let (_folder, source) = open(bytes);
    let source = source.unwrap();
    assert_eq!(source.len(), tensors.len());
    for tensor in tensors {
        let found = source.tensor(&tensor.name).unwrap();
        assert_eq!(found.shape(), tensor.shape);
        assert_eq!(found.verify().unwrap(), Verified::Digest);
        assert!(*found.data().unwrap().bytes().unwrap() == tensor.bytes[..], "{}", tensor.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_the_form(tensors in tensors(), grid in 12_u32..=16, frame in prop::option::of(1_u64..40)) {
        reads(&ours(&tensors, canonical()), &tensors);
        reads(&ours(&tensors, free(1 << grid)), &tensors);
        let compression = Compression::Zstd { level: 3, frame: frame.and_then(NonZeroU64::new) };
        let storage = Storage::default().compression(compression);
        reads(&ours(&tensors, free(1 << grid).storage(storage)), &tensors);
        let sha256 = Storage::default().digest(Algorithm::Sha256);
        reads(&ours(&tensors, free(1 << grid).storage(sha256)), &tensors);
    }

    #[test]
    fn canonical_files_are_canonical(tensors in tensors()) {
        // Its checker and its own writer disagree where an empty tensor comes before another one.
        let tensors: Vec<Tensor> = tensors.into_iter().filter(|it| !it.bytes.is_empty()).collect();
        let bytes = ours(&tensors, canonical());
        let (folder, _) = open(&bytes);
        let faults = read::canonical_violations(folder.path().join("file.zt")).unwrap();
        prop_assert!(faults.is_empty(), "{faults:?}");
    }
}

#[test]
fn what_was_edited_compacted_and_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    let tensor = |number: f32| TensorBuf::from_slice([2], &[number, 0.5]).unwrap();
    let mut writer = canonical().create(&path).unwrap();
    for (name, number) in [("a", 1.0), ("b", 2.0)] {
        writer.add(name, &tensor(number)).unwrap();
    }
    writer.finish().unwrap();
    let mut editor = Editor::open(&path).unwrap();
    editor.remove("b").unwrap();
    editor.writer().add("c", &tensor(3.0)).unwrap();
    editor.rename(&[("a", "z")]).unwrap();
    editor.set_attribute("license", "MIT").unwrap();
    editor.commit().unwrap();
    let check = || {
        let source = Source::open(&path).unwrap();
        assert_eq!(source.names().collect::<Vec<_>>(), ["c", "z"]);
        for (name, number) in [("c", 3.0), ("z", 1.0)] {
            let found = source.tensor(name).unwrap();
            assert_eq!(found.verify().unwrap(), Verified::Digest);
            assert_eq!(*found.data().unwrap().bytes().unwrap(), tensor(number).bytes()[..]);
        }
    };
    check();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&whole[..], &[0; 5000]].concat()).unwrap();
    assert!(Source::open(&path).is_err());
    ztensor::recover(&path, WriteOptions::default()).unwrap();
    check();
    ztensor::compact(&path, WriteOptions::default()).unwrap();
    check();
    assert_eq!(read::canonical_violations(&path).unwrap(), [""; 0]);
}

#[test]
fn sparse_tensors_and_shards() {
    let folder = tempfile::tempdir().unwrap();
    let (shard, root) = (folder.path().join("model-1.zt"), folder.path().join("model.zt"));
    let u32s = |numbers: &[u32]| TensorBuf::from_slice([numbers.len() as u64], numbers).unwrap();
    let values = TensorBuf::from_slice([3], &[1.0_f32, 2.0, 3.0]).unwrap();
    let csr = Csr::from_parts([2, 3], values.clone(), u32s(&[0, 2, 1]), u32s(&[0, 2, 3])).unwrap();
    let coo = Coo::from_parts([2, 3], values, u32s(&[0, 0, 1, 0, 2, 1])).unwrap();
    let mut writer = canonical().create(&shard).unwrap();
    writer.add_csr("csr", &csr).unwrap();
    writer.finish().unwrap();
    let held = Reader::open(&shard).unwrap();
    let mut writer: Writer<_> = free(4096).create(&root).unwrap();
    writer.add_shard("1", &Shard::of(held.source(), Algorithm::Sha256).unwrap()).unwrap();
    writer.link("csr", held.tensor("csr").unwrap(), "1").unwrap();
    writer.add_coo("coo", &coo).unwrap();
    writer.finish().unwrap();
    let source = Source::open(&root).unwrap();
    source.verify_shards().unwrap();
    for name in ["csr", "coo"] {
        assert_eq!(source.tensor(name).unwrap().verify().unwrap(), Verified::Digest, "{name}");
    }
    let values = source.tensor("csr").unwrap().part("values").unwrap();
    assert_eq!(*values.bytes().unwrap(), csr.values().bytes()[..]);
}

#[test]
fn files_of_every_other_generation_come_over() {
    let mut came = 0;
    for folder in ["valid/v1.1-ref", "valid/v1.1-hand", "valid/legacy"] {
        for path in test_support::files(&format!("ztensor/{folder}"), "zt") {
            let reader = Reader::open(&path).unwrap();
            let mut writer = canonical().write_to(Vec::new()).unwrap();
            if ztensor::migrate(&reader, &mut writer).is_err() {
                continue;
            }
            let (_folder, source) = open(&writer.finish().unwrap());
            let source = source.unwrap_or_else(|error| panic!("{path:?}: {error}"));
            for tensor in source.tensors() {
                assert_eq!(tensor.verify().unwrap(), Verified::Digest, "{path:?}");
            }
            came += 1;
        }
    }
    assert!(came > 25, "{came}");
}
