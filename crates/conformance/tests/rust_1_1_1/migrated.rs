//! The reference reads what we migrate from other generations.

use std::{collections::BTreeMap, io::Cursor, path::Path};

use reference::LegacyReader;
use test_support::{files, testdata, unhex};
use ztensor::{
    Reader, Writer, migrate,
    tensor_core::{DType, Severity, TensorBuf},
};

use crate::{Content, File, assert_dense, open};

#[track_caller]
fn migrated(path: &Path) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    let report = migrate(&Reader::open(path).unwrap(), &mut writer).unwrap();
    assert!(report.worst() < Some(Severity::Warning), "{report:?}");
    let bytes = writer.finish().unwrap();
    assert_eq!(Reader::from_bytes(bytes.clone()).unwrap().validate().findings(), []);
    bytes
}

fn legacy(name: &str) -> std::path::PathBuf {
    testdata("ztensor/valid/legacy").join(name)
}

fn dense(dtype: DType, shape: &[u64], bytes: Vec<u8>) -> TensorBuf {
    TensorBuf::new(dtype, shape, bytes).unwrap()
}

/// The values are those of `expected.json`; the reference itself swaps the bytes of `be`.
#[test]
fn generation_0_1() {
    let bytes = migrated(&legacy("v0_1_file.zt"));
    let mut reader = open(&bytes);
    let expected = [
        ("w", dense(DType::F32, &[2, 2], unhex("0000803f000000400000404000008040"))),
        ("be", TensorBuf::from_slice([3], &[1.0_f32, 2.0, 3.0]).unwrap()),
        ("z", dense(DType::BF16, &[64], vec![0x3f; 128])),
        ("b", dense(DType::Bool, &[], vec![1])),
    ];
    for (name, tensor) in &expected {
        assert_dense(&mut reader, name, tensor);
    }
    let attributes = reader.get_object("z").unwrap().attributes.clone().unwrap();
    assert_eq!(format!("{attributes:?}"), r#"{"n": Integer(7), "note": Text("hi")}"#);
}

/// What the reference reads from the file of the older generation it reads from the new one.
#[test]
fn generation_0_1_as_before() {
    let path = legacy("v0_1_file.zt");
    let bytes = migrated(&path);
    let is_legacy = |bytes: &[u8]| reference::is_legacy_format(&mut Cursor::new(bytes)).unwrap();
    assert!(is_legacy(&std::fs::read(&path).unwrap()) && !is_legacy(&bytes));
    let (mut before, mut after) = (LegacyReader::open(&path).unwrap(), open(&bytes));
    let names: Vec<String> = before.list_objects().keys().cloned().collect();
    assert_eq!(names, ["b", "be", "w", "z"]);
    for name in names.iter().filter(|name| *name != "be") {
        let (old, new) = (before.get_object(name).unwrap(), after.get_object(name).unwrap());
        assert_eq!(old.shape, new.shape, "{name}");
        assert_eq!(old.components["data"].dtype, new.components["data"].dtype, "{name}");
        let old = before.read_object(name, true).unwrap();
        assert_eq!(after.read_object(name, true).unwrap(), old, "{name}");
    }
}

#[test]
fn generation_1_0() {
    let bytes = migrated(&legacy("v1_0_file.zt"));
    let mut expected = File::dense([
        ("w", dense(DType::F32, &[2, 2], unhex("0000803f000000400000404000008040"))),
        ("z", dense(DType::BF16, &[64], vec![0x3f; 128])),
        ("b", dense(DType::Bool, &[], vec![1])),
    ]);
    let u64s = conformance::samples::u64s;
    let values = TensorBuf::from_slice([2], &[1.0_f32, 2.0]).unwrap();
    let csr = ztensor::Csr::from_parts([2, 3], values, u64s(&[1, 2]), u64s(&[0, 1, 2]));
    expected.push("csr", Content::Csr(csr.unwrap()));
    let values = TensorBuf::from_slice([2], &[10_i32, 20]).unwrap();
    let coo = ztensor::Coo::from_parts([2, 3], values, u64s(&[0, 1, 0, 2]));
    expected.push("coo", Content::Coo(coo.unwrap()));
    let generator = ("generator".to_owned(), "zTensor-Rust v0.1.0".to_owned());
    expected.attributes = Some(BTreeMap::from([generator]));
    expected.assert_read_by_them(&bytes);
}

#[test]
fn generation_1_2() {
    let bytes = migrated(&legacy("v12_appended.zt"));
    File::dense([
        ("first", dense(DType::U8, &[3], vec![1, 2, 3])),
        ("second", dense(DType::U16, &[2], vec![1, 0, 2, 0])),
    ])
    .assert_read_by_them(&bytes);
}

/// Its 8-bit floats and complex numbers have a dtype in 1.1 that the reference refuses, with the
/// whole file.
#[test]
fn generation_1_2_without_what_the_reference_lacks() {
    let source = Reader::open(legacy("v12_types.zt")).unwrap();
    let mut reduced =
        Writer::options().version(ztensor::Version::V1_2).write_to(Vec::new()).unwrap();
    for name in ["plain", "q", "z"] {
        reduced.copy(source.tensor(name).unwrap()).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reduced.zt");
    std::fs::write(&path, reduced.finish().unwrap()).unwrap();
    let bytes = migrated(&path);
    let mut reader = open(&bytes);
    let plain = dense(DType::F32, &[2, 2], unhex("0000803f000000400000404000008040"));
    assert_dense(&mut reader, "plain", &plain);
    let z = TensorBuf::from_slice([512], &[7_u32; 512]).unwrap();
    assert_dense(&mut reader, "z", &z);
    let component = reader.get_object("q").unwrap().components["packed_weight"].clone();
    assert_eq!(reader.read_component(&component).unwrap(), [0x21; 64]);
}

/// Migration copies a file that is of generation 1.1 already.
#[test]
fn generation_1_1_as_before() {
    for path in files("ztensor/valid/v1.1-ref", "zt") {
        let original = std::fs::read(&path).unwrap();
        let bytes = migrated(&path);
        // One file has an orphaned blob, which is not copied.
        if !path.ends_with("duplicate_add_last_wins.zt") {
            test_support::assert_bytes(&bytes, &original, &format!("{path:?}"));
        }
        let (mut before, mut after) = (open(&original), open(&bytes));
        assert!(before.list_objects().keys().eq(after.list_objects().keys()), "{path:?}");
        assert_eq!(before.manifest.attributes, after.manifest.attributes);
        let objects = after.list_objects().clone();
        for (name, object) in &objects {
            for (role, component) in &object.components {
                let found = after.read_component(component).unwrap();
                let component = before.get_object(name).unwrap().components[role].clone();
                assert!(found == before.read_component(&component).unwrap(), "{path:?} {name:?}");
            }
        }
    }
}
