//! Our writer makes the bytes of the reference, and each reads them.

use std::{collections::BTreeMap, io::Write as _};

use conformance::samples::{DTYPES, bytes, coo, csr, names, tensor, u64s};
use proptest::prelude::*;
use test_support::assert_bytes;
use ztensor::{
    Coo, Csr, Format, Role, Storage, WriteOptions, Writer,
    tensor_core::{DType, TensorBuf, digest::Algorithm},
};

use crate::{Content, Entry, File, RAW, every_kind, storages, zstd};

#[track_caller]
fn assert_same_bytes(file: &File, what: &str) {
    assert_bytes(&file.by_us(WriteOptions::default()), &file.by_them(), what);
}

/// Asserts that both write the same, and that each reads it.
#[track_caller]
fn assert_agree(file: &File, what: &str) {
    assert_same_bytes(file, what);
    file.assert_read_by_them(&file.by_them());
    file.assert_read_by_us(&file.by_them());
}

#[test]
fn file_of_nothing() {
    assert_agree(&File::default(), "no objects");
    let attributes = Some(BTreeMap::new());
    assert_agree(&File { attributes, ..File::default() }, "an empty map of attributes");
}

#[test]
fn every_kind_in_every_storage() {
    for storage in storages() {
        assert_agree(&every_kind().stored(storage), &format!("{storage:?}"));
    }
}

#[test]
fn every_level_of_zstd() {
    // More than a block of zstd, so that levels differ in how they split it.
    let tensor = TensorBuf::new(DType::U8, [300_000], bytes(300_000)).unwrap();
    for level in [-100, -7, -1].into_iter().chain(0..=22) {
        let storage = Storage::default().compression(zstd(level)).digest(Algorithm::Sha256);
        let file = File::dense([("t", tensor.clone())]).stored(storage);
        assert_agree(&file, &format!("level {level}"));
    }
}

#[test]
fn blob_sizes_around_the_grid() {
    let sizes = (0..=130).map(|size| (format!("{size}"), tensor(DType::U8, [size])));
    assert_same_bytes(&File::dense(sizes), "blobs of 0 to 130 bytes");
}

#[test]
fn odd_names_and_attributes() {
    let mut file = File::dense(names().into_iter().map(|name| (name, tensor(DType::U8, [3]))));
    file.attributes = Some(names().into_iter().map(|name| (name.clone(), name)).collect());
    assert_agree(&file, "names");
}

#[test]
fn mixed_storages_in_one_file() {
    let mut file = File::default();
    for (at, storage) in storages().into_iter().enumerate() {
        file.push(format!("{at}"), Content::Stored(tensor(DType::BF16, [100]), storage));
    }
    assert_agree(&file, "storages");
}

#[test]
fn counts_of_every_width() {
    // The head of a CBOR map grows at each of these.
    for count in [23, 24, 255, 256, 65_535, 65_536_u64] {
        let tensors = (0..count).map(|at| (at.to_string(), tensor(DType::U8, [0])));
        assert_same_bytes(&File::dense(tensors), &format!("{count} objects"));
    }
}

#[test]
fn dimensions_of_every_width() {
    for dim in [23, 24, 255, 256, 65_535, 65_536, u64::from(u32::MAX), 1 << 32, u64::MAX] {
        assert_same_bytes(&File::dense([("t", tensor(DType::U8, [0, dim]))]), &format!("{dim}"));
    }
}

#[test]
fn ranks_of_every_width() {
    for rank in [0, 1, 23, 24, 255, 256] {
        let file = File::dense([("t", tensor(DType::I16, vec![1; rank]))]);
        assert_same_bytes(&file, &format!("rank {rank}"));
    }
}

#[test]
fn sparse_tensors_without_elements() {
    let nothing = tensor(DType::F32, [0]);
    let mut file = File::default();
    for (name, rows, columns) in [("4x0", 4, 0), ("0x4", 0, 4), ("3x3", 3, 3)] {
        let indptr = u64s(&vec![0; rows + 1]);
        let shape = [rows as u64, columns];
        let matrix = Csr::from_parts(shape, nothing.clone(), u64s(&[]), indptr).unwrap();
        file.push(format!("csr.{name}"), Content::Csr(matrix));
        let list = Coo::from_parts(shape, nothing.clone(), u64s(&[])).unwrap();
        file.push(format!("coo.{name}"), Content::Coo(list));
    }
    for storage in storages() {
        assert_same_bytes(&file.clone().stored(storage), &format!("{storage:?}"));
    }
}

#[test]
fn data_in_pieces() {
    let data = tensor(DType::F32, [100_000]);
    let storage = Storage::default().compression(zstd(3)).digest(Algorithm::Crc32c);
    let expected = File::dense([("t", data.clone())]).stored(storage).by_them();
    for piece in [1_000, 4_097, 131_072, 131_073] {
        let mut writer = WriteOptions::default().storage(storage).write_to(Vec::new()).unwrap();
        let mut object = writer.object("t").unwrap();
        let mut component = object.component(Role::Data, DType::F32).unwrap();
        for piece in data.bytes().chunks(piece) {
            component.write_all(piece).unwrap();
        }
        component.finish().unwrap();
        object.finish(Format::Dense, [100_000]).unwrap();
        assert_bytes(&writer.finish().unwrap(), &expected, &format!("pieces of {piece} bytes"));
    }
}

#[test]
fn writer_of_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("ours.zt"), folder.path().join("theirs.zt"));
    let expected = tensor(DType::F64, [9]);
    let mut writer = Writer::create(&ours).unwrap();
    writer.add("t", &expected).unwrap();
    writer.finish().unwrap();
    let mut writer = reference::ZTensorWriter::create(&theirs).unwrap();
    let (raw, none) = (reference::writer::Compression::Raw, reference::ChecksumAlgorithm::None);
    let elements = expected.to_vec::<f64>().unwrap();
    writer.add_object("t", vec![9], reference::DType::F64, raw, &elements, none).unwrap();
    writer.finalize().unwrap();
    assert_bytes(&std::fs::read(ours).unwrap(), &std::fs::read(theirs).unwrap(), "files");
}

fn any_storage() -> impl Strategy<Value = Storage> {
    let compression = prop_oneof![Just(RAW), (-5..10_i32).prop_map(zstd)];
    let digest = prop::option::of(prop_oneof![Just(Algorithm::Sha256), Just(Algorithm::Crc32c)]);
    (compression, digest).prop_map(|(compression, digest)| {
        let mut storage = Storage::default().compression(compression);
        storage.digest = digest;
        storage
    })
}

fn any_dense() -> impl Strategy<Value = TensorBuf> {
    let shape = prop::collection::vec(0..12_u64, 0..4);
    (prop::sample::select(DTYPES.to_vec()), shape).prop_map(|(dtype, shape)| tensor(dtype, shape))
}

fn any_content() -> impl Strategy<Value = Content> {
    prop_oneof![
        4 => any_dense().prop_map(Content::Dense),
        4 => (any_dense(), any_storage()).prop_map(|(t, storage)| Content::Stored(t, storage)),
        1 => any_csr().prop_map(Content::Csr),
        1 => any_coo().prop_map(Content::Coo),
        1 => prop::sample::select(DTYPES.to_vec()).prop_map(|dtype| Content::Csr(csr(dtype))),
        1 => prop::sample::select(DTYPES.to_vec()).prop_map(|dtype| Content::Coo(coo(dtype))),
    ]
}

fn any_csr() -> impl Strategy<Value = Csr> {
    let row = prop::collection::btree_set(0..9_u64, 0..5);
    (prop::collection::vec(row, 0..6), prop::sample::select(DTYPES.to_vec())).prop_map(
        |(rows, dtype)| {
            let mut indptr = vec![0];
            for row in &rows {
                indptr.push(indptr[indptr.len() - 1] + row.len() as u64);
            }
            let count = rows.len() as u64;
            let indices: Vec<u64> = rows.into_iter().flatten().collect();
            let values = tensor(dtype, [indices.len() as u64]);
            Csr::from_parts([count, 9], values, u64s(&indices), u64s(&indptr)).unwrap()
        },
    )
}

fn any_coo() -> impl Strategy<Value = Coo> {
    let dims = prop::collection::vec(1..9_u64, 1..4);
    let elements = dims.prop_flat_map(|dims| {
        let place: Vec<_> = dims.iter().map(|dim| 0..*dim).collect();
        (Just(dims), prop::collection::vec(place, 0..10))
    });
    (elements, prop::sample::select(DTYPES.to_vec())).prop_map(|((dims, places), dtype)| {
        let of_dimension = |at: usize| places.iter().map(move |place| place[at]);
        let coords: Vec<u64> = (0..dims.len()).flat_map(of_dimension).collect();
        let values = tensor(dtype, [places.len() as u64]);
        Coo::from_parts(dims, values, u64s(&coords)).unwrap()
    })
}

fn any_file() -> impl Strategy<Value = File> {
    let attributes = prop::option::of(prop::collection::btree_map(".{0,9}", ".{0,40}", 0..5));
    // Each name once: the reference keeps a blob that it orphans, our writer refuses the name.
    let entries = prop::collection::hash_map(".{0,30}", any_content(), 0..12);
    (attributes, any_storage(), entries).prop_map(|(attributes, storage, entries)| {
        let entries = entries.into_iter().map(|(name, content)| Entry { name, content });
        File { attributes, storage, entries: entries.collect() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_set_of_tensors(file in any_file()) {
        assert_agree(&file, "any file");
    }
}
