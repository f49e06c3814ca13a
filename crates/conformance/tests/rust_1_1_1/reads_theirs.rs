//! We read what the reference writes, also where our writer makes other bytes or none.

use std::io::Cursor;

use conformance::samples::{DTYPES, tensor};
use reference::{ChecksumAlgorithm, ZTensorWriter, writer::Compression as Theirs};
use ztensor::{
    Error, Fault, Reader,
    tensor_core::{DType, Severity, TensorBuf},
};

use crate::{File, assert_same, every_kind, with_element};

#[test]
fn elements_of_every_type() {
    for dtype in DTYPES {
        let file = File::dense([("t", tensor(dtype, [4, 4]))]).by_them();
        let reader = Reader::from_bytes(file).unwrap();
        let found = reader.tensor("t").unwrap().read().unwrap();
        with_element!(dtype, T => {
            let elements: Vec<T> = found.to_vec().unwrap();
            assert_same(&TensorBuf::from_slice([4, 4], &elements).unwrap(), &tensor(dtype, [4, 4]));
        });
    }
}

#[test]
fn file_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.zt");
    let file = every_kind();
    std::fs::write(&path, file.by_them()).unwrap();
    let reader = Reader::open(&path).unwrap();
    for entry in &file.entries {
        entry.assert_read_by_us(&reader, &file.storage);
    }
}

#[test]
fn dense_forms_of_sparse_tensors() {
    let file = every_kind().by_them();
    let reader = Reader::from_bytes(file).unwrap();
    for dtype in DTYPES {
        let values = |shape: [u64; 1]| tensor(dtype, shape);
        let width = usize::try_from(dtype.width().unwrap()).unwrap();
        // Where the samples say that their elements are.
        for (name, places) in [("csr", vec![1, 2, 6, 8]), ("coo", vec![9, 15, 20])] {
            let found = reader.tensor(&format!("{dtype}.{name}")).unwrap().read().unwrap();
            let values = values([places.len() as u64]);
            let mut expected = vec![0; found.bytes().len()];
            for (value, place) in values.bytes().chunks(width).zip(places) {
                expected[place * width..][..width].copy_from_slice(value);
            }
            test_support::assert_bytes(found.bytes(), &expected, name);
        }
    }
}

/// The reference keeps the last one and leaves the blob of the first where it is.
#[test]
fn name_that_was_added_twice() {
    let (first, last) = (tensor(DType::U8, [70]), tensor(DType::I16, [2]));
    let file = File::dense([("t", first), ("t", last.clone())]).by_them();
    let reader = Reader::from_bytes(file).unwrap();
    assert_same(&reader.tensor("t").unwrap().read().unwrap(), &last);
    let report = reader.validate();
    assert!(report.worst() < Some(Severity::Error), "{report:?}");
}

#[test]
fn damage_under_a_digest() {
    for algorithm in [ChecksumAlgorithm::Crc32c, ChecksumAlgorithm::Sha256] {
        let mut sink = Cursor::new(Vec::new());
        let mut writer = ZTensorWriter::new(&mut sink).unwrap();
        let dtype = reference::DType::U8;
        writer.add_object_bytes("t", vec![3], dtype, Theirs::Raw, &[1, 2, 3], algorithm).unwrap();
        writer.finalize().unwrap();
        let mut bytes = sink.into_inner();
        bytes[65] ^= 1;
        let error = Reader::from_bytes(bytes).unwrap().tensor("t").unwrap().verify().unwrap_err();
        let Error::Component { fault, .. } = error else { panic!("{error}") };
        assert!(matches!(*fault, Fault::DigestMismatch { .. }), "{fault}");
    }
}
