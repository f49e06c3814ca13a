//! The crate `ztensor` 1.1.1, which the text of zTensor 1.1 comes with, on our files, and us on its
//! files.

mod edited;
mod migrated;
mod reads_ours;
mod reads_theirs;
mod same_bytes;

use std::{
    collections::BTreeMap,
    io::{Cursor, Read, Seek},
};

use reference::{ChecksumAlgorithm, ZTensorReader, ZTensorWriter};
use ztensor::{
    Compression, Coo, Csr, Format, Reader, Storage, WriteOptions, Writer,
    tensor_core::{DType, TensorBuf, Verified, Verify, digest::Algorithm},
};

/// Evaluates an expression with a type alias for the Rust type of an element type that the
/// reference reads.
macro_rules! with_element {
    ($dtype:expr, $Element:ident => $body:expr) => {
        with_element!(
            $dtype, $Element => $body;
            F64 f64, F32 f32, F16 half::f16, BF16 half::bf16, I64 i64, I32 i32, I16 i16, I8 i8,
            U64 u64, U32 u32, U16 u16, U8 u8, Bool bool
        )
    };
    ($dtype:expr, $Element:ident => $body:expr; $($variant:ident $type:ty),*) => {
        match $dtype {
            $(ztensor::tensor_core::DType::$variant => {
                type $Element = $type;
                $body
            })*
            other => panic!("the reference does not read {other}"),
        }
    };
}
use with_element;

/// What a file holds, in the order in which it is written.
#[derive(Clone, Debug, Default)]
struct File {
    attributes: Option<BTreeMap<String, String>>,
    /// How everything is stored whose entry does not say otherwise.
    storage: Storage,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Dense(TensorBuf),
    /// A dense tensor with a storage of its own, which our writer does not offer for sparse ones.
    Stored(TensorBuf, Storage),
    Csr(Csr),
    Coo(Coo),
}

impl File {
    /// A file of dense tensors, stored as they are by default.
    fn dense<N: Into<String>>(tensors: impl IntoIterator<Item = (N, TensorBuf)>) -> Self {
        let mut file = Self::default();
        for (name, tensor) in tensors {
            file.push(name, Content::Dense(tensor));
        }
        file
    }

    fn push(&mut self, name: impl Into<String>, content: Content) {
        self.entries.push(Entry { name: name.into(), content });
    }

    fn stored(self, storage: Storage) -> Self {
        Self { storage, ..self }
    }

    /// Returns the bytes that our writer makes.
    fn by_us(&self, options: WriteOptions) -> Vec<u8> {
        let mut writer = options.storage(self.storage).write_to(Vec::new()).unwrap();
        self.write(&mut writer);
        writer.finish().unwrap()
    }

    fn write<W: std::io::Write>(&self, writer: &mut Writer<W>) {
        if let Some(attributes) = self.attributes.clone() {
            writer.set_attributes(&attributes.into_iter().collect());
        }
        for Entry { name, content } in &self.entries {
            match content {
                Content::Dense(tensor) => writer.add(name, tensor).unwrap(),
                Content::Stored(tensor, storage) => {
                    let mut object = writer.object(name).unwrap();
                    object.set_storage(*storage);
                    let info = tensor.info();
                    object.put(ztensor::Role::Data, info.dtype, tensor.bytes()).unwrap();
                    object.finish(Format::Dense, info.shape.clone()).unwrap();
                }
                Content::Csr(matrix) => writer.add_csr(name, matrix).unwrap(),
                Content::Coo(tensor) => writer.add_coo(name, tensor).unwrap(),
            }
        }
    }

    /// Returns the bytes that the reference makes.
    fn by_them(&self) -> Vec<u8> {
        let mut sink = Cursor::new(Vec::new());
        let mut writer = ZTensorWriter::new(&mut sink).unwrap();
        if let Some(attributes) = self.attributes.clone() {
            writer.set_attributes(attributes);
        }
        for Entry { name, content } in &self.entries {
            let storage = match content {
                Content::Stored(_, storage) => storage,
                _ => &self.storage,
            };
            let (level, sum) = (their_compression(storage), their_checksum(storage));
            let result = match content {
                Content::Dense(tensor) | Content::Stored(tensor, _) => {
                    let (dtype, dims) = (their_dtype(tensor), dims(tensor.info().shape.dims()));
                    writer.add_object_bytes(name, dims, dtype, level, tensor.bytes(), sum)
                }
                Content::Csr(matrix) => {
                    let (dims, values) = (dims(matrix.shape().dims()), matrix.values());
                    let (indices, indptr) = (u64s(matrix.indices()), u64s(matrix.indptr()));
                    let (dtype, values) = (their_dtype(values), values.bytes());
                    writer.add_csr_object_bytes(
                        name, dims, dtype, values, &indices, &indptr, level, sum,
                    )
                }
                Content::Coo(tensor) => {
                    let (dims, values) = (dims(tensor.shape().dims()), tensor.values());
                    let (dtype, values) = (their_dtype(values), values.bytes());
                    let coords = u64s(tensor.coords());
                    writer.add_coo_object_bytes(name, dims, dtype, values, &coords, level, sum)
                }
            };
            result.unwrap();
        }
        let written = writer.finalize().unwrap();
        assert_eq!(written, sink.get_ref().len() as u64);
        sink.into_inner()
    }

    /// Asserts that the reference reads all of this, and nothing else, from `bytes`.
    #[track_caller]
    fn assert_read_by_them(&self, bytes: &[u8]) {
        let mut reader = open(bytes);
        assert!(reader.list_objects().keys().eq(self.sorted().keys()));
        assert_eq!(reader.manifest.attributes, self.attributes);
        for entry in &self.entries {
            entry.assert_read_by(&mut reader);
        }
    }

    /// Asserts that we read all of this, and nothing else, from `bytes`, and find no fault.
    #[track_caller]
    fn assert_read_by_us(&self, bytes: &[u8]) {
        let reader = Reader::options().verify(Verify::Always).from_bytes(bytes.to_vec()).unwrap();
        assert!(reader.manifest().names().eq(self.sorted().into_keys()));
        let attributes = reader.manifest().attributes().unwrap();
        let expected = self.attributes.clone().map(|pairs| pairs.into_iter().collect());
        assert_eq!(attributes, expected);
        for entry in &self.entries {
            entry.assert_read_by_us(&reader, &self.storage);
        }
        assert_eq!(reader.validate().findings(), []);
    }

    fn sorted(&self) -> BTreeMap<&str, &Content> {
        self.entries.iter().map(|entry| (entry.name.as_str(), &entry.content)).collect()
    }
}

impl Entry {
    #[track_caller]
    fn assert_read_by<R: Read + Seek>(&self, reader: &mut ZTensorReader<R>) {
        match &self.content {
            Content::Dense(tensor) | Content::Stored(tensor, _) => {
                assert_dense(reader, &self.name, tensor);
            }
            Content::Csr(matrix) => assert_csr(reader, &self.name, matrix),
            Content::Coo(tensor) => assert_coo(reader, &self.name, tensor),
        }
    }

    #[track_caller]
    fn assert_read_by_us(&self, reader: &Reader, storage: &Storage) {
        let tensor = reader.tensor(&self.name).unwrap();
        let storage = match &self.content {
            Content::Dense(expected) | Content::Stored(expected, _) => {
                assert_eq!(tensor.info().unwrap(), *expected.info(), "{:?}", self.name);
                assert_same(&tensor.read().unwrap(), expected);
                match &self.content {
                    Content::Stored(_, storage) => storage,
                    _ => storage,
                }
            }
            Content::Csr(expected) => {
                let found = tensor.csr().unwrap();
                assert_eq!(found.shape(), expected.shape());
                assert_same(found.values(), expected.values());
                assert_same(found.indices(), expected.indices());
                assert_same(found.indptr(), expected.indptr());
                storage
            }
            Content::Coo(expected) => {
                let found = tensor.coo().unwrap();
                assert_eq!(found.shape(), expected.shape());
                assert_same(found.values(), expected.values());
                assert_same(found.coords(), expected.coords());
                storage
            }
        };
        let expected = if storage.digest.is_some() { Verified::Digest } else { Verified::NoDigest };
        assert_eq!(tensor.verify().unwrap(), expected, "{:?}", self.name);
    }
}

/// Asserts that the reference reads a dense tensor in each of its ways.
#[track_caller]
fn assert_dense<R: Read + Seek>(reader: &mut ZTensorReader<R>, name: &str, expected: &TensorBuf) {
    let object = reader.get_object(name).unwrap().clone();
    assert_eq!(object.format, "dense", "{name:?}");
    assert_eq!(object.shape, expected.info().shape.dims(), "{name:?}");
    let component = &object.components["data"];
    assert_eq!(component.dtype, their_dtype(expected), "{name:?}");
    assert!(reader.read_object(name, true).unwrap() == *expected.bytes(), "{name:?}");
    assert!(reader.read_object(name, false).unwrap() == *expected.bytes(), "{name:?}");
    assert!(reader.read_component(component).unwrap() == *expected.bytes(), "{name:?}");
    with_element!(expected.dtype(), T => {
        let elements = reader.read_object_as::<T>(name).unwrap();
        let found = TensorBuf::from_slice(expected.info().shape.clone(), &elements).unwrap();
        assert_same(&found, expected);
    });
}

#[track_caller]
fn assert_csr<R: Read + Seek>(reader: &mut ZTensorReader<R>, name: &str, expected: &Csr) {
    let values = expected.values();
    assert_eq!(reader.get_object(name).unwrap().components["values"].dtype, their_dtype(values));
    with_element!(values.dtype(), T => {
        let found = reader.read_csr_object::<T>(name).unwrap();
        assert_eq!(found.shape, expected.shape().dims());
        assert_same(&TensorBuf::from_slice(values.info().shape.clone(), &found.values).unwrap(), values);
        assert_eq!(found.indices, u64s(expected.indices()));
        assert_eq!(found.indptr, u64s(expected.indptr()));
    });
}

#[track_caller]
fn assert_coo<R: Read + Seek>(reader: &mut ZTensorReader<R>, name: &str, expected: &Coo) {
    let values = expected.values();
    assert_eq!(reader.get_object(name).unwrap().components["values"].dtype, their_dtype(values));
    with_element!(values.dtype(), T => {
        let found = reader.read_coo_object::<T>(name).unwrap();
        assert_eq!(found.shape, expected.shape().dims());
        assert_same(&TensorBuf::from_slice(values.info().shape.clone(), &found.values).unwrap(), values);
        // The reference returns the coordinates element by element.
        let (rank, nnz) = (found.shape.len(), found.values.len());
        let by_dimension = (0..rank * nnz).map(|at| found.indices[at % nnz][at / nnz]);
        assert!(by_dimension.eq(u64s(expected.coords())));
    });
}

/// Asserts that tensors are equal to the bit.
#[track_caller]
fn assert_same(found: &TensorBuf, expected: &TensorBuf) {
    assert_eq!(found.info(), expected.info());
    test_support::assert_bytes(found.bytes(), expected.bytes(), "elements");
}

fn open(bytes: &[u8]) -> ZTensorReader<Cursor<&[u8]>> {
    ZTensorReader::new(Cursor::new(bytes)).unwrap()
}

fn u64s(tensor: &TensorBuf) -> Vec<u64> {
    tensor.to_vec().unwrap()
}

fn dims(dims: &[u64]) -> Vec<u64> {
    dims.to_vec()
}

fn their_dtype(tensor: &TensorBuf) -> reference::DType {
    match tensor.dtype() {
        DType::F64 => reference::DType::F64,
        DType::F32 => reference::DType::F32,
        DType::F16 => reference::DType::F16,
        DType::BF16 => reference::DType::BF16,
        DType::I64 => reference::DType::I64,
        DType::I32 => reference::DType::I32,
        DType::I16 => reference::DType::I16,
        DType::I8 => reference::DType::I8,
        DType::U64 => reference::DType::U64,
        DType::U32 => reference::DType::U32,
        DType::U16 => reference::DType::U16,
        DType::U8 => reference::DType::U8,
        DType::Bool => reference::DType::Bool,
        other => panic!("the reference does not read {other}"),
    }
}

fn their_compression(storage: &Storage) -> reference::writer::Compression {
    match storage.compression {
        Compression::None => reference::writer::Compression::Raw,
        Compression::Zstd { level, frame: None } => reference::writer::Compression::Zstd(level),
        other => panic!("the reference does not write {other:?}"),
    }
}

fn their_checksum(storage: &Storage) -> ChecksumAlgorithm {
    match storage.digest {
        None => ChecksumAlgorithm::None,
        Some(Algorithm::Sha256) => ChecksumAlgorithm::Sha256,
        Some(Algorithm::Crc32c) => ChecksumAlgorithm::Crc32c,
        Some(other) => panic!("the reference does not write {other}"),
    }
}

const RAW: Compression = Compression::None;

const fn zstd(level: i32) -> Compression {
    Compression::Zstd { level, frame: None }
}

/// Every pair of an encoding and a digest that both sides write.
fn storages() -> Vec<Storage> {
    let mut storages = Vec::new();
    for compression in [RAW, zstd(3)] {
        let storage = Storage::default().compression(compression);
        storages.push(storage);
        storages.extend([Algorithm::Sha256, Algorithm::Crc32c].map(|a| storage.digest(a)));
    }
    storages
}

/// Dense and sparse tensors of every element type that the reference reads.
fn every_kind() -> File {
    let mut file = File::default();
    for dtype in conformance::samples::DTYPES {
        use conformance::samples::{coo, csr, tensor};
        file.push(format!("{dtype}.matrix"), Content::Dense(tensor(dtype, [5, 7])));
        file.push(format!("{dtype}.scalar"), Content::Dense(tensor(dtype, [])));
        file.push(format!("{dtype}.empty"), Content::Dense(tensor(dtype, [3, 0])));
        file.push(format!("{dtype}.csr"), Content::Csr(csr(dtype)));
        file.push(format!("{dtype}.coo"), Content::Coo(coo(dtype)));
    }
    file
}
