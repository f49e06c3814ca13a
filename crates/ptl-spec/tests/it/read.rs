//! Every model file of `testdata/ptl/valid` is what its `expected.json` says, and what PyTorch's
//! verdict on the variants says.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ptl_spec::{
    Argument, ContainerKind, Dialect, File, Json, Method, Place, Quantization, Reader, Spec,
    SpecSource, Tensor,
    model_archive::Archive,
    sidecar, sniff, sniff_archive,
    tensor_core::{At, ErrorKind, Extent, Source, Verified, Verify, digest::Algorithm},
    with_extra_files,
};
use test_support::{CountingSource, files, testdata};

use crate::{
    json::{self, array, long, members, text},
    model,
};

/// Every model file with what is expected of it.
fn models() -> Vec<(PathBuf, Json)> {
    let mut models = Vec::new();
    for folder in ["torch113", "torch251", "backport"] {
        for path in files(&format!("ptl/valid/{folder}"), "ptl") {
            let expected = json::read(path.with_extension("expected.json"));
            models.push((path, expected));
        }
    }
    assert_eq!(models.len(), 44);
    models
}

fn number(json: &Json, key: &str) -> u64 {
    long(json.get(key).unwrap()) as u64
}

fn texts(json: &Json, key: &str) -> Vec<String> {
    array(json, key).iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn numbers(json: &Json, key: &str) -> Vec<u64> {
    array(json, key).iter().map(|item| long(item) as u64).collect()
}

fn sizes(json: &Json, key: &str) -> Vec<(String, u64)> {
    let files = members(json.get(key).unwrap()).iter();
    files.map(|(name, size)| (name.clone(), long(size) as u64)).collect()
}

fn size(file: File<'_>) -> (String, u64) {
    (file.path().to_owned(), file.len().unwrap())
}

#[test]
fn containers_are_as_expected() {
    for (path, expected) in models() {
        let reader = Reader::open(&path).unwrap();
        let container = reader.container();
        assert_eq!(container.to_string(), text(&expected, "format"), "{path:?}");
        assert_eq!(reader.source().len(), number(&expected, "size"), "{path:?}");
        match container {
            ContainerKind::Zip => {
                assert_eq!(reader.root(), Some(text(&expected, "root")), "{path:?}");
                let version = reader.record("version").unwrap().bytes().unwrap();
                assert_eq!(version, text(&expected, "version_record"), "{path:?}");
                let found: Vec<_> = reader.records().map(size).collect();
                assert_eq!(found, sizes(&expected, "records"), "{path:?}");
            }
            _ => {
                assert_eq!(reader.root(), None);
                let version = u64::from(reader.operator_version().unwrap());
                assert_eq!(number(&expected, "operator_version"), version);
                assert_eq!(number(&expected, "storages"), reader.storage_count().unwrap());
                let found: Vec<_> = reader.extra_files().map(size).collect();
                assert_eq!(found, sizes(&expected, "extra_files"), "{path:?}");
            }
        }
    }
}

#[test]
fn methods_are_as_expected() {
    let shown = |arguments: &Option<Vec<Argument>>| {
        let arguments = arguments.as_deref().unwrap_or_default();
        arguments.iter().map(Argument::to_string).collect::<Vec<_>>()
    };
    for (path, expected) in models() {
        let reader = Reader::open(&path).unwrap();
        let bytecode = reader.bytecode().unwrap();
        assert_eq!(bytecode.version, number(&expected, "bytecode_version"), "{path:?}");
        assert_eq!(bytecode.methods.len(), array(&expected, "methods").len());
        for (method, expected) in bytecode.methods.iter().zip(array(&expected, "methods")) {
            let Method { name, arguments, returns, operators, .. } = method;
            assert_eq!(name, text(expected, "name"));
            assert_eq!(shown(arguments), texts(expected, "arguments"), "{path:?}");
            assert_eq!(shown(returns), texts(expected, "returns"), "{path:?}");
            let operators: Vec<String> = operators.iter().map(ToString::to_string).collect();
            assert_eq!(operators, texts(expected, "operators"), "{path:?}");
            assert!(method.instructions > 0 && method.registers > 0, "{path:?}");
        }
        assert_eq!(bytecode.forward().map(Method::short_name), Some("forward"));
    }
}

fn with_storage(reader: &Reader, index: u64) -> Tensor<'_> {
    let mut tensors = reader.tensors().unwrap();
    tensors.find(|tensor| tensor.storage_index().map(u64::from) == Some(index)).unwrap()
}

fn check_tensor(tensor: Tensor<'_>, expected: &Json, path: &Path) {
    let what = format!("{} of {path:?}", tensor.name());
    match text(expected, "path") {
        path if path.contains("<const>") => assert_eq!(tensor.place(), Place::Constants, "{what}"),
        // States of objects have no names here, as ZIP archives have none for them.
        path => assert_eq!(tensor.path(), path.replace("<state>", ""), "{what}"),
    }
    assert_eq!(tensor.info().unwrap().dtype.name(), text(expected, "dtype"), "{what}");
    assert_eq!(tensor.shape().dims(), numbers(expected, "shape"), "{what}");
    assert_eq!(tensor.strides(), numbers(expected, "stride"), "{what}");
    assert_eq!(tensor.storage_offset(), number(expected, "storage_offset"), "{what}");
    let grad = expected.get("requires_grad") == Some(&Json::Bool(true));
    assert_eq!(tensor.requires_grad(), grad, "{what}");
    assert_eq!(tensor.storage_bytes().unwrap().len() as u64, number(expected, "storage_nbytes"));
    if let Some(record) = expected.get("record") {
        assert_eq!(tensor.record(), record.as_str(), "{what}");
        let class = format!("{}Storage", tensor.scalar_type());
        assert_eq!(class, text(expected, "storage_type"), "{what}");
        let place = match text(expected, "archive") {
            "data.pkl" => Place::State,
            _ => Place::Constants,
        };
        assert_eq!(tensor.place(), place, "{what}");
    } else {
        assert_eq!(tensor.storage_index().map(u64::from), Some(number(expected, "storage_index")));
        let extent = tensor.storage_extent().unwrap().unwrap();
        assert_eq!(extent.offset(), number(expected, "storage_file_offset"), "{what}");
    }
    tensor.extent().unwrap();
    let bytes = tensor.bytes().unwrap();
    let digest = Algorithm::Sha256.digest(&bytes).to_string();
    assert_eq!(digest, format!("sha256:{}", text(expected, "sha256_contiguous_le")), "{what}");
    let mut buffer = vec![1; bytes.len()];
    tensor.read_into(&mut buffer).unwrap();
    assert_eq!(buffer, bytes);
    assert_eq!(tensor.read().unwrap().bytes(), &bytes);
    quantized(tensor, expected.get("quant"), &what);
}

fn quantized(tensor: Tensor<'_>, expected: Option<&Json>, what: &str) {
    match (tensor.quantization(), expected) {
        (None, None) => {}
        (Some(Quantization::PerTensor { scheme, scale, zero_point }), Some(expected)) => {
            assert_eq!(scheme.name(), text(expected, "qscheme"), "{what}");
            let rest = [Json::Float(*scale), Json::Int(*zero_point)];
            assert_eq!(array(expected, "rest"), rest, "{what}");
        }
        (Some(Quantization::PerChannel { scheme, axis }), Some(expected)) => {
            assert_eq!(scheme.name(), text(expected, "qscheme"), "{what}");
            let scales = tensor.scales().unwrap().read().unwrap();
            let zeros = tensor.zero_points().unwrap().read().unwrap();
            let rest = [
                Json::from(scales.view().to_vec::<f64>().unwrap()),
                Json::from(zeros.view().to_vec::<i64>().unwrap()),
                Json::Int(*axis),
            ];
            assert_eq!(array(expected, "rest"), rest, "{what}");
        }
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn tensors_are_as_expected() {
    let mut checked = 0;
    for (path, expected) in models() {
        let reader = Reader::open(&path).unwrap();
        let expected = array(&expected, "tensors");
        let tensors: Vec<_> =
            reader.tensors().unwrap().filter(|tensor| tensor.place() != Place::Bytecode).collect();
        assert_eq!(tensors.len(), expected.len(), "{path:?}");
        for (tensor, expected) in tensors.into_iter().zip(expected) {
            // A list of constants is in another order than the code of the lite interpreter.
            let is_constant = text(expected, "path").contains("<const>");
            let tensor = match is_constant {
                true => with_storage(&reader, number(expected, "storage_index")),
                false => tensor,
            };
            check_tensor(tensor, expected, &path);
            let found = reader.tensor(tensor.name()).unwrap().unwrap();
            assert_eq!((found.path(), found.place()), (tensor.path(), tensor.place()));
            checked += 1;
        }
        assert!(reader.tensor("no such tensor").unwrap().is_none());
    }
    assert!(checked > 150, "{checked}");
}

/// Whichever container a model is in, its tensors have one name and one content.
#[test]
fn names_of_both_containers() {
    let tensors = |path: String| {
        let reader = Reader::open(testdata(&path)).unwrap();
        let tensors = reader.tensors().unwrap().map(|tensor| {
            let name = tensor.name().to_owned();
            (name, tensor.place(), tensor.shape().clone(), tensor.bytes().unwrap())
        });
        tensors.collect::<Vec<_>>()
    };
    for of in ["torch113", "torch251"] {
        for name in ["img", "img_opt", "zoo"] {
            let [zip, flat] =
                ["", "_fb"].map(|end| tensors(format!("ptl/valid/{of}/{name}{end}.ptl")));
            assert_eq!(zip, flat, "{of} {name}");
            assert!(zip.len() > 3, "{of} {name}");
        }
    }
}

/// Old bytecode versions hold the constants of the lite interpreter apart from those of the full
/// runtime: copies in another order.
#[test]
fn constants_of_old_bytecode() {
    let digests = |reader: &Reader, place| {
        let tensors = reader.tensors().unwrap().filter(|tensor| tensor.place() == place);
        let mut found: Vec<_> = tensors
            .map(|tensor| {
                tensor.extent().unwrap();
                let name = tensor.name();
                assert_eq!(reader.tensor(name).unwrap().unwrap().record(), tensor.record());
                (tensor.shape().dims().to_vec(), tensor.bytes().unwrap())
            })
            .collect();
        found.sort();
        found
    };
    for version in 4..=7 {
        let name = format!("ptl/valid/backport/img_opt_v{version}.ptl");
        let reader = Reader::open(testdata(&name)).unwrap();
        let constants = digests(&reader, Place::Constants);
        assert_eq!(constants.len(), 4);
        assert_eq!(digests(&reader, Place::Bytecode), constants, "{name}");
        let mut bytecode = reader.tensors().unwrap().filter(|t| t.place() == Place::Bytecode);
        let folder = if version == 4 { "bytecode/" } else { "constants/" };
        assert!(bytecode.all(|tensor| tensor.record().unwrap().starts_with(folder)));
    }
    let reader = Reader::open(testdata("ptl/valid/backport/img_opt_v4.ptl")).unwrap();
    let names = reader.tensors().unwrap().map(Tensor::name).skip(4);
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["bytecode/<const>1", "bytecode/<const>2", "bytecode/<const>5.0", "bytecode/<const>5.1"]
    );
}

/// Files have one name, whichever container they are in.
#[test]
fn files_of_both_containers() {
    for name in ["img.ptl", "img_fb.ptl"] {
        let reader = Reader::open(testdata("ptl/valid/torch113").join(name)).unwrap();
        let names: Vec<&str> = reader.files().unwrap().map(File::path).collect();
        assert!(names.contains(&"extra/model/live.spec.json"), "{names:?}");
        let sources: Vec<File<'_>> = reader.sources().unwrap().collect();
        let [source] = sources.as_slice() else { panic!("{sources:?}") };
        assert_eq!(source.path(), "code/__torch__.py");
        let source = source.bytes().unwrap();
        assert!(source.starts_with(b"class Net") && source.ends_with(b"\n"), "{source:?}");
    }
    // One is always asked for with its checksum.
    let mut bytes = model("img.ptl");
    let reader = Reader::from_bytes(bytes.clone()).unwrap();
    let at = reader.sources().unwrap().next().unwrap().stored_extent().unwrap().offset();
    bytes[at as usize + 20] ^= 1;
    let reader = Reader::from_bytes(bytes).unwrap();
    assert!(reader.sources().unwrap().next().unwrap().bytes().is_err());
}

#[test]
fn signatures_of_methods() {
    let shown = |name: &str| {
        let reader = Reader::open(testdata("ptl/valid").join(name)).unwrap();
        reader.bytecode().unwrap().methods.iter().map(Method::to_string).collect::<Vec<_>>()
    };
    for name in ["torch113/img.ptl", "torch251/img_fb.ptl"] {
        assert_eq!(shown(name), ["forward(x: Tensor) -> Tensor"], "{name}");
    }
    let scalars = "forward(x: Tuple[bool, int, float]) -> Tuple[int, float, bool]";
    assert_eq!(shown("torch113/scalars.ptl"), [scalars]);
}

#[test]
fn records_start_on_64_bytes() {
    for (path, _) in models() {
        let reader = Reader::open(&path).unwrap();
        for record in reader.records().filter(|record| !record.is_compressed()) {
            assert!(
                record.stored_extent().unwrap().is_aligned(64),
                "{} of {path:?}",
                record.path()
            );
        }
    }
}

#[test]
fn embedded_specs_are_read() {
    let mut found = 0;
    for (path, expected) in models() {
        let reader = Reader::open(&path).unwrap();
        let size = match expected.get("records").or(expected.get("extra_files")) {
            Some(files) => {
                files.get("extra/model/live.spec.json").or(files.get("model/live.spec.json"))
            }
            None => None,
        };
        let spec = reader.spec().unwrap();
        assert_eq!(spec.is_some(), size.is_some(), "{path:?}");
        if let Some(Json::Int(size)) = size {
            assert_eq!(reader.spec_text().unwrap().unwrap().len() as i64, *size);
            found += 1;
        }
    }
    assert!(found >= 20, "{found}");
}

#[test]
fn extra_files_are_listed() {
    let reader = Reader::open(testdata("ptl/valid/torch251/img_extras.ptl")).unwrap();
    let files: Vec<_> = reader.extra_files().map(size).collect();
    let expected =
        [("unicode/ümlaut.txt", 2), ("empty", 0), ("labels.txt", 4), ("model/live.spec.json", 583)];
    assert_eq!(files, expected.map(|(name, size)| (name.to_owned(), size)));
    assert_eq!(reader.extra_file("LABELS.txt").unwrap().bytes().unwrap(), "a\nb\n");
    assert!(reader.extra_file("data.pkl").is_none());
}

#[test]
fn a_spec_may_stand_beside_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.ptl");
    fs::copy(testdata("ptl/valid/torch251/img_nospec.ptl"), &model).unwrap();
    let find = || Reader::open(&model).unwrap().find_spec(&Spec::options()).unwrap();
    assert!(find().is_none());
    let side = sidecar(&model);
    assert_eq!(side.file_name().unwrap(), "model.ptl.live.spec.json");
    fs::copy(testdata("ptl/calls/specs/img.json"), &side).unwrap();
    let (source, spec) = find().unwrap();
    assert_eq!(source, SpecSource::Sidecar(side));
    assert_eq!(spec.signature().parameters.len(), 5);
    fs::copy(testdata("ptl/valid/torch251/img.ptl"), &model).unwrap();
    let (source, spec) = Reader::open(&model)
        .unwrap()
        .find_spec(&Spec::options().dialect(Dialect::Android))
        .unwrap()
        .unwrap();
    assert_eq!((source, spec.dialect()), (SpecSource::Embedded, Dialect::Android));
}

#[test]
fn variants_get_their_verdicts() {
    let Json::Array(verdicts) = json::read(testdata("ptl/valid/variants/verdicts.json")) else {
        panic!("verdicts")
    };
    assert_eq!(verdicts.len(), 20);
    for verdict in &verdicts {
        let path = testdata("ptl/valid/variants").join(text(verdict, "file"));
        let opened = Reader::open(&path).and_then(|reader| {
            let spec = reader.spec()?;
            reader.bytecode()?;
            for tensor in reader.tensors()? {
                tensor.bytes()?;
            }
            Ok((reader, spec))
        });
        match (text(verdict, "expect"), opened) {
            ("reject", Err(_)) => {}
            ("accept", Ok((_, Some(_)))) | ("no_spec", Ok((_, None))) => {}
            (expected, Ok((_, spec))) => panic!("{path:?}: {expected}, found {spec:?}"),
            (expected, Err(error)) => panic!("{path:?}: {expected}, found {error}"),
        }
    }
}

#[test]
fn opening_reads_the_directory_alone() {
    let bytes = model("img_opt.ptl");
    let counting = CountingSource::new(&bytes);
    let reader = Reader::from_source(counting.source()).unwrap();
    let directory =
        reader.records().map(|record| record.stored_extent().unwrap().end()).max().unwrap();
    let reads = counting.take_reads();
    let first = reads.first().copied().unwrap();
    assert_eq!(first, Extent::first(8));
    // What came before the records were asked for lies behind them, or is the first bytes.
    let local = reads.len() - reader.records().count();
    assert!(reads[1..local].iter().all(|read| read.end() > directory), "{reads:?}");
    let storages: Vec<Extent> =
        reader.tensors().unwrap().map(|t| t.storage_extent().unwrap().unwrap()).collect();
    let touched = |reads: &[Extent]| {
        storages.iter().filter(|storage| reads.iter().any(|read| read.overlaps(**storage))).count()
    };
    assert_eq!(storages.len(), 4);
    drop(counting.take_reads());
    let tensor = reader.tensor("constants/2").unwrap().unwrap();
    tensor.bytes().unwrap();
    assert_eq!(touched(&counting.take_reads()), 1);
}

#[test]
fn a_flatbuffer_is_read_where_its_tables_lead() {
    let bytes = model("zoo_fb.ptl");
    let long = [("long", Some(vec![7; 1 << 20].into())), ("short", Some("1".into()))];
    let bytes = with_extra_files(&bytes, long).unwrap();
    let (memory, counting) = (Reader::from_bytes(bytes.clone()), CountingSource::new(&bytes));
    let (memory, reader) = (memory.unwrap(), Reader::from_source(counting.source()).unwrap());
    assert_eq!(reader.bytecode().unwrap(), memory.bytecode().unwrap());
    assert_eq!(reader.lint().findings(), memory.lint().findings());
    let (tensors, expected) = (reader.tensors().unwrap(), memory.tensors().unwrap());
    assert!(tensors.len() > 10 && tensors.len() == expected.len());
    for (tensor, expected) in tensors.zip(expected) {
        assert_eq!(tensor.name(), expected.name());
        assert_eq!(tensor.bytes().unwrap(), expected.bytes().unwrap());
    }
    assert_eq!(reader.extra_file("short").unwrap().bytes().unwrap(), "1");
    // The long one is not among them.
    assert!(counting.total() < 1 << 20, "{} bytes are read", counting.total());
    assert_eq!(reader.extra_file("long").unwrap().bytes().unwrap(), vec![7; 1 << 20]);
    assert_eq!(reader.validate().findings(), memory.validate().findings());
}

/// A module whose only attribute is `{3: t, -1: t}` behind a state of an inner object.
fn module_with_integer_keys() -> Vec<u8> {
    use flatbuffers::{FlatBufferBuilder, WIPOffset};
    type Offset = WIPOffset<flatbuffers::TableFinishedWIPOffset>;
    type Builder = FlatBufferBuilder<'static>;
    fn table(fbb: &mut Builder, fields: impl FnOnce(&mut Builder)) -> Offset {
        let start = fbb.start_table();
        fields(fbb);
        fbb.end_table(start)
    }
    fn slot(id: u16) -> u16 {
        4 + 2 * id
    }
    fn value<T>(fbb: &mut Builder, kind: u8, of: WIPOffset<T>) -> Offset {
        table(fbb, |fbb| {
            fbb.push_slot_always(slot(0), kind);
            fbb.push_slot_always(slot(1), of);
        })
    }
    let mut builder = FlatBufferBuilder::new();
    let fbb = &mut builder;
    let none = table(fbb, |_| ());
    let [first, second] = [3_i64, -1].map(|key| {
        let key = fbb.push(key);
        value(fbb, 1, key)
    });
    let (sizes, strides) = (fbb.create_vector(&[2_i32]), fbb.create_vector(&[1_i32]));
    let tensor = table(fbb, |fbb| {
        fbb.push_slot_always(slot(1), 6_i8);
        fbb.push_slot_always(slot(3), sizes);
        fbb.push_slot_always(slot(4), strides);
    });
    let tensor = value(fbb, 5, tensor);
    let (keys, items) = (fbb.create_vector(&[1_u32, 2]), fbb.create_vector(&[3_u32, 3]));
    let dict = table(fbb, |fbb| {
        fbb.push_slot_always(slot(0), keys);
        fbb.push_slot_always(slot(1), items);
    });
    let dict = value(fbb, 9, dict);
    let inner = table(fbb, |fbb| {
        fbb.push_slot_always(slot(0), 0_u32);
        fbb.push_slot_always(slot(1), 4_u32);
    });
    let inner = value(fbb, 10, inner);
    let attributes = fbb.create_vector(&[5_u32]);
    let outer = table(fbb, |fbb| {
        fbb.push_slot_always(slot(0), 0_u32);
        fbb.push_slot_always(slot(2), attributes);
    });
    let outer = value(fbb, 10, outer);
    let (class, attribute) = (fbb.create_string("__torch__.M"), fbb.create_string("d"));
    let names = fbb.create_vector(&[attribute]);
    let class = table(fbb, |fbb| {
        fbb.push_slot_always(slot(0), class);
        fbb.push_slot_always(slot(2), names);
    });
    let data = fbb.create_vector(&[0_u8; 8]);
    let storage = table(fbb, |fbb| fbb.push_slot_always(slot(0), data));
    let values = fbb.create_vector(&[none, first, second, tensor, dict, inner, outer]);
    let (storages, types) = (fbb.create_vector(&[storage]), fbb.create_vector(&[class]));
    let module = table(fbb, |fbb| {
        fbb.push_slot_always(slot(0), 9_u32);
        fbb.push_slot_always(slot(3), 6_u32);
        fbb.push_slot_always(slot(4), values);
        fbb.push_slot_always(slot(6), storages);
        fbb.push_slot_always(slot(7), types);
    });
    fbb.finish(module, Some("PTMF"));
    builder.finished_data().to_vec()
}

#[test]
fn integer_keys_are_names_and_states_are_none() {
    let reader = Reader::from_bytes(module_with_integer_keys()).unwrap();
    let names: Vec<_> = reader.tensors().unwrap().map(|tensor| tensor.name().to_owned()).collect();
    assert_eq!(names, ["d.3", "d.-1"]);
}

#[test]
fn stored_bytes_are_not_copied() {
    for name in ["img.ptl", "img_fb.ptl"] {
        let bytes = bytes::Bytes::from(model(name));
        let reader = Reader::from_bytes(bytes.clone()).unwrap();
        let tensor = reader.tensor("conv_weight").unwrap().unwrap();
        let start = tensor.storage_extent().unwrap().unwrap().offset() as usize;
        assert_eq!(tensor.bytes().unwrap().as_ptr(), bytes[start..].as_ptr(), "{name}");
    }
}

/// A file of a machine of the other byte order says so, and its numbers are turned around.
#[test]
fn big_endian_numbers_are_swapped() {
    let mut file = model("img.ptl");
    let little = Reader::from_bytes(file.clone()).unwrap();
    let place = little.record("byteorder").unwrap().stored_extent().unwrap();
    let place = place.offset() as usize..place.end() as usize;
    file[place].copy_from_slice(b"big   ");
    let big = Reader::from_bytes(file).unwrap();
    let bytes = |reader: &Reader| reader.tensor("fc_bias").unwrap().unwrap().bytes().unwrap();
    let (little, big) = (bytes(&little), bytes(&big));
    let swapped: Vec<u8> = big.chunks(4).flat_map(|word| word.iter().rev()).copied().collect();
    assert_eq!(swapped, little);
    assert_ne!(big, little);
}

#[test]
fn models_are_told_by_their_content() {
    for (path, _) in models() {
        let bytes = fs::read(&path).unwrap();
        let counting = CountingSource::new(&bytes);
        assert!(sniff(&counting.source()).unwrap(), "{path:?}");
        assert!(counting.total() < 16 << 10, "{path:?}: {} bytes", counting.total());
        // One that was cut off is still a model.
        assert!(sniff(&Source::from_bytes(bytes[..bytes.len() / 2].to_vec())).unwrap());
    }
    let other = test_support::zip::Zip::of(&[("x/y", b"z")]).to_bytes();
    for bytes in [&b""[..], b"PK\x03\x04", b"{\"pack\": {}}", &other] {
        assert!(!sniff(&Source::from_bytes(bytes.to_vec())).unwrap());
    }
    for path in files("ptl/calls/specs", "json") {
        assert!(Spec::sniff(&Source::open(path).unwrap()).unwrap());
    }
    let model = Source::open(testdata("ptl/valid/torch251/img.ptl")).unwrap();
    assert!(!Spec::sniff(&model).unwrap());
    let archive = Archive::options().from_source(model).unwrap();
    assert!(sniff_archive(&archive));
    assert!(Reader::options().from_archive(archive).unwrap().spec().unwrap().is_some());
}

/// A record whose bytes were changed is refused where it is asked for, and not before.
#[test]
fn checksums_are_compared_when_asked_for() {
    let mut bytes = model("img.ptl");
    let sound = Reader::from_bytes(bytes.clone()).unwrap();
    let extent = sound.tensor("fc_weight").unwrap().unwrap().extent().unwrap().unwrap();
    bytes[extent.offset() as usize] ^= 1;
    let read = |verify: Verify| {
        let reader = Reader::options().verify(verify).from_bytes(bytes.clone()).unwrap();
        let tensor = reader.tensor("fc_weight").unwrap().unwrap();
        let mut buffer = vec![0; extent.len() as usize];
        let found = [tensor.bytes().map(drop), tensor.read_into(&mut buffer)].map(|r| r.is_ok());
        assert!(tensor.verify().is_err() && reader.lint().is_valid());
        assert!(!reader.validate().is_valid());
        found
    };
    assert_eq!(read(Verify::Never), [true, true]);
    assert_eq!(read(Verify::Once), [false, false]);
    assert_eq!(read(Verify::Always), [false, false]);
    let flat = Reader::open(testdata("ptl/valid/torch251/img_fb.ptl")).unwrap();
    let tensor = flat.tensor("fc_weight").unwrap().unwrap();
    assert_eq!(tensor.verify().unwrap(), Verified::NoDigest);
    let path = testdata("ptl/valid/torch251/img.ptl");
    let sound = Reader::options().verify(Verify::Once).open(path).unwrap();
    let tensor = sound.tensor("fc_weight").unwrap().unwrap();
    assert_eq!(tensor.bytes().unwrap(), tensor.bytes().unwrap());
    assert_eq!(tensor.verify().unwrap(), Verified::Digest);
}

#[test]
fn errors_say_what_they_mean_and_where() {
    let error = |name: &str| {
        Reader::open(testdata("ptl/invalid").join(name)).and_then(|reader| {
            reader.bytecode()?;
            drop(reader.tensors()?);
            reader.spec().map(drop)
        })
    };
    let found = [
        ("root_missing.ptl", ErrorKind::Malformed, "ptl/root"),
        ("not_lite.ptl", ErrorKind::Unsupported, "ptl/not-lite"),
        ("pickle_eval.ptl", ErrorKind::Malformed, "ptl/pickle"),
        ("flat_root.ptl", ErrorKind::Malformed, "ptl/flatbuffer"),
        ("flat_sizes.ptl", ErrorKind::Malformed, "ptl/flatbuffer"),
        ("spec_malformed.ptl", ErrorKind::Malformed, "ptl/spec-json"),
    ];
    for (name, kind, rule) in found {
        let error = error(name).unwrap_err();
        assert_eq!((error.kind(), error.rule()), (kind, rule), "{name}");
        assert_ne!(error.at(), At::file(), "{name}: {error}");
    }
}
