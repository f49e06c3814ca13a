//! The Python clients on our files, and us on theirs.
//!
//! `cargo xtask oracles` installs them; where one is missing its tests say so and pass, except in
//! continuous integration.

mod convert;
mod ztensor2;

use std::path::{Path, PathBuf};

use conformance::{
    python::Client,
    samples::{DTYPES, bytes, coo, csr, tensor},
};
use serde_json::{Map, Value as Json, json};
use tempfile::TempDir;
use ztensor::{
    Attributes, Compression, Editor, Format, Generation, Reader, Role, Storage, Value, Version,
    WriteOptions, Writer, compact,
    tensor_core::{DType, Severity, TensorBuf, Verify, digest::Algorithm},
};

/// A folder for files that are exchanged.
struct Exchange(TempDir);

impl Exchange {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Returns the path of a file; 1.2.3 tells a format by the extension.
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(format!("{name}.zt"))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// A file in the making, with what a client is expected to print about it.
struct Model {
    writer: Writer<Vec<u8>>,
    expected: Map<String, Json>,
}

impl Model {
    fn new(options: WriteOptions) -> Self {
        Self { writer: options.write_to(Vec::new()).unwrap(), expected: Map::new() }
    }

    fn dense(&mut self, name: &str, tensor: &TensorBuf) {
        self.writer.add(name, tensor).unwrap();
        let dims = tensor.info().shape.dims();
        self.expect(name, &Format::Dense, dims, &[(Role::Data, tensor)]);
    }

    fn csr(&mut self, name: &str, dtype: DType) {
        let matrix = csr(dtype);
        self.writer.add_csr(name, &matrix).unwrap();
        let parts = [
            (Role::Values, matrix.values()),
            (Role::Indices, matrix.indices()),
            (Role::Indptr, matrix.indptr()),
        ];
        self.expect(name, &Format::SparseCsr, matrix.shape().dims(), &parts);
    }

    fn coo(&mut self, name: &str, dtype: DType) {
        let list = coo(dtype);
        self.writer.add_coo(name, &list).unwrap();
        let parts = [(Role::Values, list.values()), (Role::Coords, list.coords())];
        self.expect(name, &Format::SparseCoo, list.shape().dims(), &parts);
    }

    fn expect(&mut self, name: &str, format: &Format, dims: &[u64], parts: &[(Role, &TensorBuf)]) {
        let components: Map<String, Json> = parts
            .iter()
            .map(|(role, part)| (role.as_str().to_owned(), sha256(part.bytes())))
            .collect();
        let dtype = parts[0].1.dtype();
        self.expected.insert(name.to_owned(), described(dtype, dims, format, &components));
    }

    /// Tensors of every element type that 1.1.1 reads, in every format that it reads.
    fn fill(&mut self) {
        for dtype in DTYPES {
            self.dense(&format!("{dtype}/matrix"), &tensor(dtype, [5, 7]));
            self.dense(&format!("{dtype}/scalar"), &tensor(dtype, []));
            self.dense(&format!("{dtype}/empty"), &tensor(dtype, [3, 0]));
            self.csr(&format!("{dtype}/csr"), dtype);
            self.coo(&format!("{dtype}/coo"), dtype);
        }
        // The C interface of 1.1.1, over which its Python reads, cannot name a tensor with a NUL.
        for name in ["", "é 重み 🦀", "line\nbreak", "quote\"back\\slash", &"n".repeat(1_000)]
        {
            self.dense(name, &tensor(DType::U8, [3]));
        }
    }

    fn finish(self) -> (Vec<u8>, Json) {
        (self.writer.finish().unwrap(), Json::Object(self.expected))
    }
}

/// Returns what a client prints about a tensor: `dtype` is that of its first component.
fn described(dtype: DType, dims: &[u64], format: &Format, components: &Map<String, Json>) -> Json {
    let (name, meant) = names(dtype);
    let mut json = json!({
        "dtype": name, "shape": dims, "format": format.as_str(), "components": components,
    });
    if let Some(meant) = meant {
        json["type"] = meant.into();
    }
    json
}

/// Returns the name of the stored elements in Python, and their `type` in 1.2.
fn names(dtype: DType) -> (&'static str, Option<&'static str>) {
    match dtype {
        DType::F64 => ("float64", None),
        DType::F32 => ("float32", None),
        DType::F16 => ("float16", None),
        DType::BF16 => ("bfloat16", None),
        DType::I64 => ("int64", None),
        DType::I32 => ("int32", None),
        DType::I16 => ("int16", None),
        DType::I8 => ("int8", None),
        DType::U64 => ("uint64", None),
        DType::U32 => ("uint32", None),
        DType::U16 => ("uint16", None),
        DType::U8 => ("uint8", None),
        DType::Bool => ("bool", None),
        DType::F8E4M3 => ("uint8", Some("f8_e4m3fn")),
        DType::F8E5M2 => ("uint8", Some("f8_e5m2")),
        DType::C64 => ("float32", Some("complex64")),
        DType::C128 => ("float64", Some("complex128")),
        other => panic!("zTensor does not store {other}"),
    }
}

fn sha256(bytes: &[u8]) -> Json {
    Algorithm::Sha256.digest(bytes).to_string().into()
}

/// Returns what we read from a file, in the form in which clients print it.
fn read(path: &Path) -> Json {
    let reader = Reader::options().verify(Verify::Always).open(path).unwrap();
    reader.tensors().map(|tensor| (tensor.name().to_owned(), read_tensor(tensor))).collect()
}

fn read_tensor(tensor: ztensor::Tensor<'_>) -> Json {
    let object = tensor.object().unwrap();
    match object.format {
        Format::Dense => drop(tensor.read().unwrap()),
        Format::SparseCsr => drop(tensor.csr().unwrap()),
        Format::SparseCoo => drop(tensor.coo().unwrap()),
        Format::QuantizedGroup => drop(tensor.quantized().unwrap()),
        ref other => panic!("{other}"),
    }
    let blobs = tensor.blobs().unwrap();
    let components = blobs
        .iter()
        .map(|blob| (blob.role().as_str().to_owned(), sha256(&blob.bytes().unwrap())))
        .collect();
    let dtype = tensor.info().unwrap().dtype;
    let mut json = described(dtype, object.shape.dims(), &object.format, &components);
    if let Some(attributes) = tensor.attributes().unwrap() {
        json["attributes"] = attributes.iter().map(|(key, v)| (key, plain(v))).collect();
    }
    json
}

fn plain(value: &Value) -> Json {
    match value {
        Value::Integer(number) => i64::try_from(*number).unwrap().into(),
        Value::Text(text) => text.clone().into(),
        other => panic!("{other}"),
    }
}

/// Asserts that what a client printed is what was expected, tensor by tensor.
#[track_caller]
fn assert_tensors(found: &Json, expected: &Json) {
    let (found, expected) = (found.as_object().unwrap(), expected.as_object().unwrap());
    for (name, tensor) in expected {
        assert_eq!(found.get(name), Some(tensor), "{name:?}");
    }
    assert_eq!(found.len(), expected.len());
}

fn storages() -> [Storage; 4] {
    let (raw, zstd) = (Storage::default(), Compression::Zstd { level: 3, frame: None });
    let frames = Compression::Zstd { level: 3, frame: 64.try_into().ok() };
    [
        raw,
        raw.digest(Algorithm::Sha256),
        raw.compression(zstd).digest(Algorithm::Crc32c),
        raw.compression(frames).digest(Algorithm::Sha256),
    ]
}

#[test]
fn python_1_1_reads_ours() {
    let exchange = Exchange::new();
    for storage in storages() {
        for alignment in [64, 4_096] {
            let options = WriteOptions::default().storage(storage).alignment(alignment);
            let mut model = Model::new(options);
            model.writer.set_attributes(&[("key", "value")].into_iter().collect());
            model.fill();
            let (file, expected) = model.finish();
            let path = exchange.put("ours", &file);
            let Some(found) = Client::ZTENSOR_1_1.run("read_1_1.py", &[path]) else { return };
            assert_tensors(&found, &expected);
        }
    }
}

#[test]
fn python_1_1_reads_what_we_edited() {
    let exchange = Exchange::new();
    let mut model = Model::new(WriteOptions::default());
    model.dense("kept", &tensor(DType::F32, [10]));
    model.dense("removed", &tensor(DType::F64, [10]));
    let mut later = Model::new(WriteOptions::default());
    let added = tensor(DType::I16, [4, 4]);
    later.dense("added", &added);
    let (file, mut expected) = model.finish();
    let path = exchange.put("ours", &file);
    let mut editor = Editor::open(&path).unwrap();
    editor.remove("removed").unwrap();
    editor.writer().add("added", &added).unwrap();
    editor.commit().unwrap();
    expected.as_object_mut().unwrap().remove("removed");
    expected["added"] = later.finish().1["added"].take();
    let Some(found) = Client::ZTENSOR_1_1.run("read_1_1.py", &[&path]) else { return };
    assert_tensors(&found, &expected);
    compact(&path, WriteOptions::default()).unwrap();
    let found = Client::ZTENSOR_1_1.run("read_1_1.py", &[&path]).unwrap();
    assert_tensors(&found, &expected);
}

#[test]
fn python_1_2_reads_ours_of_1_1() {
    let exchange = Exchange::new();
    for storage in storages() {
        let mut model = Model::new(WriteOptions::default().storage(storage));
        model.fill();
        model.dense("nul\0", &tensor(DType::U8, [3]));
        let (file, expected) = model.finish();
        let path = exchange.put("ours", &file);
        let Some(found) = Client::ZTENSOR_1_2.run("read_1_2.py", &[path]) else { return };
        assert_tensors(&found, &expected);
    }
}

#[test]
fn python_1_2_reads_ours_of_1_2() {
    let exchange = Exchange::new();
    for storage in storages() {
        let options = WriteOptions::default().version(Version::V1_2).storage(storage);
        let mut model = Model::new(options);
        model.writer.set_attributes(&any_attributes());
        model.fill();
        for dtype in [DType::F8E4M3, DType::F8E5M2, DType::C64, DType::C128] {
            model.dense(&format!("{dtype}/matrix"), &tensor(dtype, [5, 7]));
            model.dense(&format!("{dtype}/scalar"), &tensor(dtype, []));
            model.dense(&format!("{dtype}/empty"), &tensor(dtype, [3, 0]));
            model.csr(&format!("{dtype}/csr"), dtype);
            model.coo(&format!("{dtype}/coo"), dtype);
        }
        quantized(&mut model);
        let (file, expected) = model.finish();
        let path = exchange.put("ours", &file);
        assert_eq!(Reader::open(&path).unwrap().validate().findings(), []);
        let Some(found) = Client::ZTENSOR_1_2.run("read_1_2.py", &[path]) else { return };
        assert_tensors(&found, &expected);
    }
}

fn quantized(model: &mut Model) {
    let attributes: [(&str, Value); 3] =
        [("bits", 4_u64.into()), ("group_size", 16_u64.into()), ("packing", "8_per_i32".into())];
    let parts = [
        (Role::PackedWeight, &tensor(DType::I32, [16])),
        (Role::Scales, &tensor(DType::F16, [8])),
        (Role::Zeros, &tensor(DType::F16, [8])),
    ];
    let mut object = model.writer.object("quantized").unwrap();
    object.set_attributes(&attributes.into_iter().collect());
    for (role, part) in &parts {
        object.put(role.clone(), part.dtype(), part.bytes()).unwrap();
    }
    object.finish(Format::QuantizedGroup, [8, 16]).unwrap();
    model.expect("quantized", &Format::QuantizedGroup, &[8, 16], &parts);
    model.expected["quantized"]["attributes"] =
        json!({"bits": 4, "group_size": 16, "packing": "8_per_i32"});
}

/// Values of every type that an attribute may have.
fn any_attributes() -> Attributes {
    let floats = [0.0, -0.0, 1.5, 65_504.0, 5.960_464_477_539_063e-8, 1e10, 0.1, 1e300];
    let floats = floats.into_iter().chain([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    let numbers = [0, 23, 24, 255, 256, 65_535, 65_536, 0xffff_ffff, 1 << 32, u64::MAX.into()];
    let negative = numbers.map(|number: i128| Value::Integer(-1 - number));
    let numbers = numbers.into_iter().map(Value::Integer).chain(negative);
    let lengths = [0, 23, 24, 255, 256, 65_535, 65_536];
    let map =
        vec![("b".into(), 1_u64.into()), ("a".into(), 2_u64.into()), (3_u64.into(), true.into())];
    [
        ("null", Value::Null),
        ("bools", Value::Array(vec![true.into(), false.into()])),
        ("floats", Value::Array(floats.map(Value::Float).collect())),
        ("numbers", Value::Array(numbers.collect())),
        ("texts", Value::Array(lengths.map(|len| "t".repeat(len).into()).into())),
        ("bytes", Value::Array(lengths.map(|len| Value::Bytes(bytes(len))).into())),
        ("lists", Value::Array(lengths.map(|len| Value::Array(vec![Value::Null; len])).into())),
        ("map", Value::Map(map)),
        ("tag", Value::Tag(40_000, Box::new("tagged".into()))),
    ]
    .into_iter()
    .collect()
}

#[test]
fn python_1_1_is_read_by_us() {
    let exchange = Exchange::new();
    let path = exchange.path("theirs");
    let Some(expected) = Client::ZTENSOR_1_1.run("write_1_1.py", &[&path]) else { return };
    assert_tensors(&read(&path), &expected);
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.generation(), Generation::V1_1);
    assert_eq!(reader.validate().findings(), []);
}

#[test]
fn python_1_2_is_read_by_us() {
    let exchange = Exchange::new();
    let path = exchange.path("theirs");
    let Some(expected) = Client::ZTENSOR_1_2.run("write_1_2.py", &[&path]) else { return };
    assert_tensors(&read(&path), &expected);
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.generation(), Generation::V1_2);
    assert_eq!(reader.validate().findings(), []);
}

#[test]
fn python_1_2_is_read_after_our_edits() {
    let exchange = Exchange::new();
    let path = exchange.path("theirs");
    let Some(mut expected) = Client::ZTENSOR_1_2.run("write_1_2.py", &[&path]) else { return };
    let mut added = Model::new(WriteOptions::default());
    let mut editor = Editor::open(&path).unwrap();
    for storage in storages() {
        for dtype in [DType::I32, DType::F8E4M3, DType::F8E5M2, DType::C64, DType::C128] {
            let (name, data) = (format!("{dtype} as {storage:?}"), tensor(dtype, [5, 5]));
            let mut object = editor.writer().object(&name).unwrap();
            object.set_storage(storage);
            object.put(Role::Data, dtype, data.bytes()).unwrap();
            object.finish(Format::Dense, [5, 5]).unwrap();
            added.dense(&name, &data);
        }
    }
    editor.remove("zstd/int8").unwrap();
    editor.commit().unwrap();
    expected.as_object_mut().unwrap().extend(added.expected);
    expected.as_object_mut().unwrap().remove("zstd/int8");
    let found = Client::ZTENSOR_1_2.run("read_1_2.py", &[&path]).unwrap();
    assert_tensors(&found, &expected);
    compact(&path, WriteOptions::default()).unwrap();
    let found = Client::ZTENSOR_1_2.run("read_1_2.py", &[&path]).unwrap();
    assert_tensors(&found, &expected);
    assert_tensors(&read(&path), &expected);
}

/// What 1.2.3 does to a file in place keeps what was there, and is read by us.
#[test]
fn ours_is_read_after_python_1_2_edits() {
    for version in [Version::V1_1, Version::V1_2] {
        let exchange = Exchange::new();
        let mut model = Model::new(WriteOptions::default().version(version));
        model.dense("kept", &tensor(DType::BF16, [3, 3]));
        model.dense("replaced", &tensor(DType::U8, [4]));
        model.dense("removed", &tensor(DType::F32, [100]));
        model.csr("rows", DType::F16);
        let path = exchange.put("ours", &model.finish().0);
        let out = exchange.path("without");
        let args = [path.clone(), out.clone()];
        if Client::ZTENSOR_1_2.run("edit_1_2.py", &args).is_none() {
            return;
        }
        let mut expected = Model::new(WriteOptions::default());
        expected.dense("kept", &tensor(DType::BF16, [3, 3]));
        expected.dense("replaced", &TensorBuf::from_slice([4], &[9_u8; 4]).unwrap());
        expected.dense("appended", &TensorBuf::from_slice([5], &[0_i16, 1, 2, 3, 4]).unwrap());
        let typed = TensorBuf::new(DType::F8E5M2, [7], (0..7).collect::<Vec<u8>>()).unwrap();
        expected.dense("typed", &typed);
        expected.csr("rows", DType::F16);
        let mut expected = expected.finish().1;
        assert_tensors(&read(&out), &expected);
        let mut removed = Model::new(WriteOptions::default());
        removed.dense("removed", &tensor(DType::F32, [100]));
        expected["removed"] = removed.finish().1["removed"].take();
        assert_tensors(&read(&path), &expected);
        for path in [path, out] {
            let report = Reader::open(path).unwrap().validate();
            assert!(report.worst() < Some(Severity::Error), "{report:?}");
        }
    }
}

/// Asserts that cbor2 finds our manifest strictly encoded, and says the same of it as we do;
/// `None` where there is no cbor2.
#[track_caller]
fn assert_strict(path: &Path) -> Option<()> {
    let found = Client::CBOR2.run("manifest.py", &[path])?;
    let reader = Reader::open(path).unwrap();
    let manifest = reader.manifest();
    let names: Vec<&str> = manifest.names().collect();
    assert_eq!(found, json!({"version": manifest.version(), "objects": names}));
    Some(())
}

#[test]
fn manifests_are_strict_cbor() {
    let exchange = Exchange::new();
    for version in [Version::V1_1, Version::V1_2] {
        for storage in storages() {
            let options = WriteOptions::default().version(version).storage(storage);
            let mut model = Model::new(options);
            model.writer.set_attributes(&any_attributes());
            model.fill();
            quantized(&mut model);
            for name in conformance::samples::names() {
                if !model.writer.contains(&name) {
                    model.dense(&name, &tensor(DType::C64, [1]));
                }
            }
            let path = exchange.put("ours", &model.finish().0);
            let Some(()) = assert_strict(&path) else { return };
            let mut editor = Editor::open(&path).unwrap();
            editor.remove("quantized").unwrap();
            editor.replace("b", &tensor(DType::U8, [1 << 16])).unwrap();
            editor.commit().unwrap();
            assert_strict(&path).unwrap();
            compact(&path, WriteOptions::default()).unwrap();
            assert_strict(&path).unwrap();
        }
    }
}

#[test]
fn manifest_of_many_objects_is_strict_cbor() {
    let exchange = Exchange::new();
    for count in [0, 23, 24, 255, 256, 65_536] {
        let mut writer = Writer::new(Vec::new());
        for at in 0..count {
            writer.add(&format!("layer.{at}"), &tensor(DType::U8, [0])).unwrap();
        }
        let path = exchange.put("ours", &writer.finish().unwrap());
        let Some(()) = assert_strict(&path) else { return };
    }
}

#[test]
fn migrated_manifests_are_strict_cbor() {
    let exchange = Exchange::new();
    for source in test_support::files("ztensor/valid/legacy", "zt") {
        let mut writer = Writer::new(Vec::new());
        ztensor::migrate(&Reader::open(source).unwrap(), &mut writer).unwrap();
        let path = exchange.put("migrated", &writer.finish().unwrap());
        let Some(()) = assert_strict(&path) else { return };
    }
}
