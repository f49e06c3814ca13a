//! Tensors of one format as those of another.

use std::{cell::Cell, fs::File, num::NonZeroUsize, path::Path};

use modelcrate::{
    AnyReader, Becoming, Change, ConvertOptions, DiffOptions, NamedTensor, Product, Refusal,
    Request, Rule, Target, TensorSet,
    tensor_core::{ErrorKind, Source, TensorBuf},
    weights::npy,
    ztensor::{Coo, Writer},
};
use test_support::{files, testdata};

#[test]
fn empty_names_stay() {
    let mut writer = Writer::new(Vec::new());
    for name in ["a", ""] {
        writer.add(name, &TensorBuf::from_slice([2], &[1_i32, 2]).unwrap()).unwrap();
    }
    let reader = AnyReader::from_bytes(writer.finish().unwrap()).unwrap();
    let set = reader.tensor_set().unwrap();
    let refused = convert(&set, Target::ZTensor2).unwrap_err();
    assert_eq!(
        refused[0].to_string(),
        "\"\": names are of 1 to 1024 bytes in normal form C, without NUL, there"
    );
    let others = [Target::Npy, Target::ZTensor2];
    for target in Target::ALL.iter().filter(|target| !others.contains(target)) {
        let converted = convert(&set, *target).unwrap();
        assert!(converted.tensors().unwrap().any(|tensor| tensor.name() == Some("")), "{target}");
        is_same(&set, &converted.tensor_set().unwrap(), target.name());
    }
}

#[test]
fn models_become_what_lives() {
    for (path, to, found) in [
        ("ptl/valid/torch251/dict.ptl", "pt", "ptl"),
        ("rten/valid/mlp.v1.rten", "rten2", "rten"),
        ("rten/valid/mlp.v2.rten", "rten1", "rten"),
        ("ztensor/valid/v1.1-ref/scalars.zt", "zt2", "ztensor"),
        ("nnpackage/valid/01_minimal_circle_stored.zip", "tflite", "tflite"),
    ] {
        let mut reader = AnyReader::open(testdata(path)).unwrap();
        if let AnyReader::NnPackage(package) = &reader {
            let model = package.files().unwrap().find(|file| file.path() == "add.circle").unwrap();
            reader = AnyReader::from_bytes(model.bytes().unwrap()).unwrap();
        }
        let request = Request::new(to.parse().unwrap());
        let Becoming::Model(model) = reader.convert(&request).unwrap() else { panic!("{path}") };
        let mut bytes = Vec::new();
        model.write(&mut bytes).unwrap();
        let half = bytes[..bytes.len() / 2].to_vec();
        assert!(model.check(Source::from_bytes(bytes.clone())).unwrap().is_valid(), "{path}");
        model.check(Source::from_bytes(half)).unwrap_err();
        assert_eq!(AnyReader::from_bytes(bytes).unwrap().format().name(), found, "{path}");
    }
}

#[test]
fn models_do_not_become_others() {
    for (path, to, message) in [
        (
            "nnpackage/valid/everything.circle",
            "circle",
            "is a Circle model, which cannot become circle: it can become tflite, gguf, npy, npz, \
             safetensors, ztensor, zt2",
        ),
        (
            "rten/valid/mlp.v1.rten",
            "rten",
            "is an RTen model, which cannot become rten: it can become onnx, rten1, rten2, gguf, \
             npy, npz, safetensors, ztensor, zt2",
        ),
    ] {
        let reader = AnyReader::open(testdata(path)).unwrap();
        let error = reader.convert(&Request::new(to.parse().unwrap())).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!((error.rule(), error.kind()), ("file/usage", ErrorKind::Usage));
    }
    let unknown = "zip".parse::<Product>().unwrap_err().to_string();
    assert!(unknown.starts_with("\"zip\" is none of circle, gguf"), "{unknown}");
}

#[test]
fn chosen_tensors_are_not_migrated() {
    let reader = AnyReader::open(testdata("ztensor/valid/v1.1-ref/scalars.zt")).unwrap();
    let mut request = Request::new(Product::Tensors(Target::ZTensor));
    assert!(matches!(reader.convert(&request).unwrap(), Becoming::Model(_)));
    request.tensors = Some(ConvertOptions::default());
    let becoming = reader.convert(&request).unwrap();
    assert!(matches!(becoming, Becoming::Tensors(_, Target::ZTensor, _)));
}

fn threads() -> NonZeroUsize {
    NonZeroUsize::new(2).unwrap()
}

fn convert(set: &TensorSet<'_>, target: Target) -> Result<AnyReader, Vec<Refusal>> {
    convert_with(set, target, &ConvertOptions::default())
}

fn convert_with(
    set: &TensorSet<'_>,
    target: Target,
    options: &ConvertOptions,
) -> Result<AnyReader, Vec<Refusal>> {
    let bytes = [1, 3].map(|threads| {
        let threads = NonZeroUsize::new(threads).unwrap();
        let conversion = set.convert_to(target, &options.clone().threads(threads))?;
        let done = Cell::new(0);
        let [file] = conversion.files().collect::<Vec<_>>()[..] else { panic!("one file") };
        let bytes = file.write(Vec::new(), |bytes| done.set(done.get() + bytes)).unwrap();
        assert!(file.byte_len().is_none_or(|len| len == bytes.len() as u64));
        assert_eq!(done.get(), conversion.tensor_bytes());
        Ok::<_, Vec<Refusal>>(bytes)
    });
    let [bytes, again] = bytes;
    assert_eq!(bytes, again, "{target}");
    Ok(AnyReader::from_bytes(bytes?).unwrap())
}

fn mapped(rules: &[&str]) -> DiffOptions {
    let mut options = DiffOptions::default();
    options.names = rules.iter().map(|rule| rule.parse::<Rule>().unwrap()).collect();
    options
}

#[track_caller]
fn is_same(old: &TensorSet<'_>, new: &TensorSet<'_>, what: &str) {
    assert_eq!(old.tensors().len(), new.tensors().len(), "{what}");
    for tensor in old.tensors() {
        let other = new.tensor(tensor.name()).unwrap_or_else(|| panic!("{what}: {tensor:?}"));
        assert_eq!(tensor.elements().unwrap(), other.elements().unwrap(), "{what}");
        assert_eq!(tensor.bytes().unwrap(), other.bytes().unwrap(), "{what}: {}", tensor.name());
    }
    let diff = old.diff(new, &DiffOptions::default(), |_| ()).unwrap();
    assert!(diff.tensors.is_empty(), "{what}: {diff:?}");
    let hashes = [old, new].map(|set| set.content_hash(threads(), |_| ()).unwrap());
    assert_eq!(hashes[0], hashes[1], "{what}");
}

/// Compares all but tensors with a file that was made of some tensors of another.
#[track_caller]
fn differs_as_was_said(
    old: &AnyReader,
    set: &TensorSet<'_>,
    target: Target,
    new: &AnyReader,
    what: &str,
) {
    let is_meant = |name: &str| set.tensor(name).is_some();
    let mut diff = old.diff(new, &DiffOptions::default(), is_meant, |_| ()).unwrap();
    let conversion = set.convert_to(target, &ConvertOptions::default()).unwrap();
    let left_out = conversion.left_out();
    diff.metadata.retain(|key| !left_out.contains(&key.name));
    assert!(diff.is_empty(), "{what}: {diff:?}");
    // What the new file alone has is what it calls otherwise, and nothing is lost in silence.
    for key in diff.apart.iter().filter(|key| key.new.is_none()) {
        let is_known = left_out.contains(&key.name)
            || new.metadata().values().any(|value| {
                let old = key.old.as_ref().unwrap();
                value == old || value.as_str() == Some(&old.to_string())
            });
        assert!(is_known, "{what}: {key:?}");
    }
}

#[test]
fn every_set_of_testdata_becomes_what_can_hold_it() {
    let (mut converted, mut shards) = ([0; Target::ALL.len()], 0);
    for (folder, extension) in [
        ("carton/valid", "carton"),
        ("nnpackage/valid", "circle"),
        ("nnpackage/valid", "tflite"),
        ("nnpackage/valid", "zip"),
        ("ptl/valid/backport", "ptl"),
        ("ptl/valid/torch113", "ptl"),
        ("ptl/valid/torch251", "ptl"),
        ("rten/valid", "rten"),
        ("weights", "gguf"),
        ("weights", "json"),
        ("weights", "npy"),
        ("weights", "npz"),
        ("weights", "safetensors"),
        ("ztensor/valid/legacy", "zt"),
        ("ztensor/valid/v1.1-hand", "zt"),
        ("ztensor/valid/v1.1-ref", "zt"),
        ("ztensor/v2/valid", "zt"),
    ] {
        for path in files(folder, extension) {
            let Ok(reader) = AnyReader::open(&path) else { continue };
            if reader.byte_len() > 64 << 20 {
                continue;
            }
            let Ok(mut set) = reader.tensor_set() else { continue };
            for (target, converted) in Target::ALL.iter().zip(&mut converted) {
                // What it cannot hold is named, tensor by tensor; the rest is converted.
                if let Err(refused) = set.convert_to(*target, &ConvertOptions::default()) {
                    assert!(refused.iter().all(|refused| !refused.reason.is_empty()), "{path:?}");
                    let names: Vec<String> =
                        refused.into_iter().filter_map(|one| one.tensor).collect();
                    set.retain(|name| names.iter().all(|refused| refused != name));
                }
                // An archive without files may be anything.
                if set.tensors().is_empty() && *target == Target::Npz {
                    continue;
                }
                if *target == Target::Npy {
                    let one = set.tensors().first().map(|tensor| tensor.name().to_owned());
                    set.retain(|name| Some(name) == one.as_deref());
                    if let Ok(new) = convert(&set, *target) {
                        let (old, new) = (&set.tensors()[0], new.tensor("arr_0").unwrap());
                        assert_eq!(new.unwrap().bytes().unwrap(), old.bytes().unwrap());
                        *converted += 1;
                    }
                    set = reader.tensor_set().unwrap();
                    continue;
                }
                let what = format!("{path:?} as {target}");
                let new =
                    convert(&set, *target).unwrap_or_else(|refused| panic!("{what}: {refused:?}"));
                is_same(&set, &new.tensor_set().unwrap(), &what);
                differs_as_was_said(&reader, &set, *target, &new, &what);
                *converted += set.tensors().len();
                if let Some(own) = Target::from_format(reader.format()) {
                    let back = convert(&new.tensor_set().unwrap(), own);
                    let back = back.unwrap_or_else(|refused| panic!("{what} back: {refused:?}"));
                    is_same(&set, &back.tensor_set().unwrap(), &format!("{what} and back"));
                }
                if *target == Target::Safetensors && set.tensors().len() > 1 {
                    let folder = tempfile::tempdir().unwrap();
                    is_same(&set, &in_shards(&set, folder.path()).tensor_set().unwrap(), &what);
                    shards += 1;
                }
                // The rest of the targets take what this one does not have.
                set = reader.tensor_set().unwrap();
            }
        }
    }
    assert!(converted.iter().all(|tensors| *tensors > 20), "{converted:?}");
    assert!(shards > 20, "{shards}");
}

/// Writes shards of one tensor each, and opens them by their index.
fn in_shards(set: &TensorSet<'_>, folder: &Path) -> AnyReader {
    let options = ConvertOptions::default().shard_size(1);
    let conversion = set.convert_to(Target::Safetensors, &options).unwrap();
    for file in conversion.files() {
        file.write(File::create(folder.join(file.name())).unwrap(), |_| ()).unwrap();
    }
    // Tensors without elements fit in one file.
    let last = conversion.files().last().unwrap().name();
    let reader = AnyReader::open(folder.join(last)).unwrap();
    assert!(reader.validate().is_empty(), "{:?}", reader.validate());
    reader
}

#[test]
fn what_a_target_does_not_have_is_said_of_every_tensor() {
    let reader = AnyReader::open(testdata("weights/model.gguf")).unwrap();
    let set = reader.tensor_set().unwrap();
    let refused = set.convert_to(Target::Safetensors, &ConvertOptions::default()).unwrap_err();
    let [q] = refused.as_slice() else { panic!("{refused:?}") };
    let message =
        "\"q\": safetensors has no element type q8_0 (--dequantize: q8_0 as f32, 256 bytes)";
    assert_eq!(q.to_string(), message);
    is_same(&set, &convert(&set, Target::Gguf).unwrap().tensor_set().unwrap(), "gguf");
    let options = ConvertOptions::default().dequantize(true);
    let conversion = set.convert_to(Target::Safetensors, &options).unwrap();
    // Of a long list only its length is known.
    assert_eq!(conversion.left_out(), ["tokenizer.ggml.tokens"]);
    assert_eq!(conversion.notes()[0].effect, "q8_0 as f32, 256 bytes");
}

#[test]
fn sparse_tensors_are_not_made_dense_unasked() {
    for (file, reason) in [
        ("sparse_coo", "is stored as sparse_coo, expected dense"),
        ("high_rank", "it has 70 dimensions, and readers take at most 64"),
    ] {
        let path = testdata(&format!("ztensor/valid/v1.1-ref/{file}.zt"));
        let reader = AnyReader::open(path).unwrap();
        let set = reader.tensor_set().unwrap();
        let refused = set.convert_to(Target::Safetensors, &ConvertOptions::default());
        assert_eq!(refused.unwrap_err()[0].reason, reason);
    }
}

#[test]
fn differences_have_a_place() {
    let [one, other] = ["weights/arrays.npz", "weights/model.safetensors"]
        .map(|path| AnyReader::open(testdata(path)).unwrap());
    let [old, new] = [&one, &other].map(|reader| reader.tensor_set().unwrap());
    let diff = old.diff(&new, &DiffOptions::default(), |_| ()).unwrap();
    let changes: Vec<_> =
        diff.tensors.iter().map(|tensor| (tensor.name(), &tensor.change)).collect();
    assert_eq!(
        changes,
        [
            ("half", &Change::Added),
            ("ids", &Change::Removed),
            ("mask", &Change::Removed),
            ("none", &Change::Added),
            ("z", &Change::Removed),
        ]
    );
    assert_eq!(diff.same, 1);
    // As the half of the other, so that only the element type is another.
    let diff = old.diff(&new, &mapped(&["w=half"]), |_| ()).unwrap();
    let half = diff.tensors.iter().find(|tensor| tensor.old.as_deref() == Some("w")).unwrap();
    let Change::ElementType { values: Some(values), .. } = &half.change else { panic!("{half:?}") };
    assert!(values.is_close() && values.max_abs.is_some_and(|most| most.value == 0.0));
}

#[test]
fn elements_come_in_the_usual_order() {
    let [rows, columns] = ["weights/rows.npy", "weights/columns_big_endian.npy"]
        .map(|path| AnyReader::open(testdata(path)).unwrap());
    let [rows, columns] = [&rows, &columns].map(|reader| reader.tensor_set().unwrap());
    is_same(&rows, &columns, "orders");
    let new = convert(&columns, Target::Safetensors).unwrap();
    is_same(&rows, &new.tensor_set().unwrap(), "safetensors");
    let digests = |path| {
        let options = modelcrate::SummaryOptions::default().digests(true);
        AnyReader::open(testdata(path)).unwrap().summary(options).tensors[0].sha256.clone().unwrap()
    };
    assert_eq!(digests("weights/rows.npy"), digests("weights/columns_big_endian.npy"));
}

#[test]
fn tensors_that_get_one_name_are_not_lost() {
    let reader = AnyReader::open(testdata("weights/arrays.npz")).unwrap();
    let set = reader.tensor_set().unwrap();
    let diff = set.diff(&set, &mapped(&["ids=w", "mask=w", "z=w"]), |_| ()).unwrap();
    let unknown = diff.tensors.iter().filter(|one| matches!(one.change, Change::Unknown { .. }));
    assert_eq!((unknown.count(), diff.same), (3, 1));
}

#[test]
fn names_stand_once() {
    let reader = AnyReader::open(testdata("nnpackage/valid/03_two_models_connected.zip")).unwrap();
    let set = reader.tensor_set().unwrap();
    let mut names: Vec<&str> = set.tensors().iter().map(NamedTensor::name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), reader.tensors().unwrap().count()), (count, count));
    assert!(names.iter().all(|name| !name.is_empty()));
}

fn as_zt(fill: impl FnOnce(&mut Writer<Vec<u8>>)) -> AnyReader {
    let mut writer = Writer::new(Vec::new());
    fill(&mut writer);
    AnyReader::from_bytes(writer.finish().unwrap()).unwrap()
}

#[test]
fn sparse_tensors_are_made_dense() {
    let values = TensorBuf::from_slice([2], &[1.5_f64, -2.0]).unwrap();
    let coords = TensorBuf::from_slice([4], &[0_u64, 1, 2, 0]).unwrap();
    let coo = Coo::from_parts([2, 3], values, coords).unwrap();
    let reader = as_zt(|writer| writer.add_coo("s", &coo).unwrap());
    let set = reader.tensor_set().unwrap();
    let refused = convert(&set, Target::Npz).unwrap_err();
    let message = "\"s\": is stored as sparse_coo, expected dense (--densify: stored with its zeros, 48 bytes)";
    assert_eq!(refused[0].to_string(), message);
    let options = ConvertOptions::default().densify(true);
    let new = convert_with(&set, Target::Npz, &options).unwrap();
    let dense = new.tensor("s").unwrap().unwrap().read().unwrap();
    assert_eq!(dense.as_slice::<f64>().unwrap(), [0.0, 0.0, 1.5, -2.0, 0.0, 0.0]);
}

#[test]
fn the_nearest_element_type() {
    let reader = as_zt(|writer| {
        writer.add("yes", &TensorBuf::from_slice([2], &[true, false]).unwrap()).unwrap();
        writer.add("large", &TensorBuf::from_slice([2], &[7, 1_u64 << 63]).unwrap()).unwrap();
        writer.add("complex", &TensorBuf::from_slice([1], &[[1.0_f32, 2.0]]).unwrap()).unwrap();
    });
    let mut set = reader.tensor_set().unwrap();
    let refused: Vec<_> =
        convert(&set, Target::Gguf).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        refused,
        [
            "\"complex\": gguf has no element type c64",
            "\"large\": gguf has no element type u64 (--lossy: u64 as i64, values that do not fit \
             are refused)",
            "\"yes\": gguf has no element type bool (--lossy: bool as i8, values stay)",
        ]
    );
    set.retain(|name| name != "complex");
    let options = ConvertOptions::default().lossy(true);
    let conversion = set.convert_to(Target::Gguf, &options).unwrap();
    let error = conversion.files().next().unwrap().write(Vec::new(), |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "tensor \"large\": element 1 is more than i64 has");
    set.retain(|name| name == "yes");
    let new = convert_with(&set, Target::Gguf, &options).unwrap();
    let yes = new.tensor("yes").unwrap().unwrap().read().unwrap();
    assert_eq!(yes.as_slice::<i8>().unwrap(), [1, 0]);
}

/// The values are those that PyTorch quantized: `testdata/ptl/README.md`.
#[test]
fn integers_stand_for_the_numbers_of_pytorch() {
    let reader = AnyReader::open(testdata("ptl/valid/torch251/quant.ptl")).unwrap();
    let set = reader.tensor_set().unwrap();
    let codes = set.convert_to(Target::Safetensors, &ConvertOptions::default()).unwrap();
    assert!(codes.notes().iter().all(|note| note.effect == "codes without their scales"));
    assert_eq!(codes.notes().len(), 3);
    let options = ConvertOptions::default().dequantize(true);
    let new = convert_with(&set, Target::Safetensors, &options).unwrap();
    for name in ["q_i8", "q_u8", "q_ch"] {
        let real = new.tensor(name).unwrap().unwrap().read().unwrap();
        assert_eq!(real.as_slice::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "{name}");
    }
    let options = modelcrate::SummaryOptions::default().stats(true);
    for tensor in reader.summary(options).tensors {
        let stats = tensor.stats.unwrap();
        assert_eq!((tensor.stats_of.as_deref(), stats.count), (Some("dequantized"), 6));
        assert!((stats.mean.unwrap() - 2.5).abs() < 1e-12, "{stats:?}");
    }
}

#[test]
fn integers_stand_for_the_numbers_of_circle() {
    let path = "nnpackage/valid/06_rich_circle_numeric_versions.zip";
    let reader = AnyReader::open(testdata(path)).unwrap();
    let set = reader.tensor_set().unwrap();
    let real = set.tensor("wq").unwrap().tensor().dequantize().unwrap();
    // The codes 1 to 4 with the scales 0.5 and 0.25.
    assert_eq!(real.as_slice::<f32>().unwrap(), [0.5, 1.0, 0.75, 1.0]);
    let error = set.tensor("bias").unwrap().tensor().dequantize().unwrap_err();
    assert_eq!(error.to_string(), "there are no scales beside it");
}

/// The codes 87, 22, 108, 129, 168 and 64 with the scale 0.01 and the zero point 128.
#[test]
fn integers_stand_for_the_numbers_of_rten() {
    for version in ["v1", "v2"] {
        let path = format!("rten/valid/quantized.{version}.rten");
        let reader = AnyReader::open(testdata(&path));
        let reader = reader.unwrap();
        let set = reader.tensor_set().unwrap();
        let real = set.tensor("table.q").unwrap().tensor().dequantize().unwrap();
        let scale = f64::from(0.01_f32);
        let expected = [-41.0, -106.0, -20.0, 1.0, 40.0, -64.0].map(|code| (code * scale) as f32);
        assert_eq!(real.as_slice::<f32>().unwrap(), expected);
        let quantized = set.convert_to(Target::Safetensors, &ConvertOptions::default()).unwrap();
        let notes: Vec<&str> = quantized.notes().iter().map(|note| &*note.tensor).collect();
        assert_eq!(notes, ["table.q"]);
        // Its scale is multiplied in elsewhere.
        let error = set.tensor("w.q").unwrap().tensor().dequantize().unwrap_err();
        assert_eq!(error.to_string(), "there are no scales beside it");
    }
}

#[test]
fn truth_values_are_0_or_1() {
    let mut bytes = Vec::new();
    npy::write(&TensorBuf::from_slice([3], &[0_u8, 1, 2]).unwrap(), &mut bytes).unwrap();
    let at = bytes.windows(3).position(|word| word == b"|u1").unwrap();
    bytes[at + 1] = b'b';
    let reader = AnyReader::from_bytes(bytes).unwrap();
    let set = reader.tensor_set().unwrap();
    let lossy = ConvertOptions::default().lossy(true);
    for target in Target::ALL {
        let conversion = set.convert_to(*target, &lossy).unwrap();
        let error = conversion.files().next().unwrap().write(Vec::new(), |_| ()).unwrap_err();
        let message = "tensor \"arr_0\": element 2 is neither 0 nor 1";
        assert_eq!(error.to_string(), message, "{target}");
    }
}

#[test]
fn shards_are_read_as_one() {
    let reader = AnyReader::open(testdata("weights/model.safetensors")).unwrap();
    let set = reader.tensor_set().unwrap();
    let options = ConvertOptions::default().shard_size(24).stem("tiny");
    let conversion = set.convert_to(Target::Safetensors, &options).unwrap();
    let names: Vec<&str> = conversion.files().map(modelcrate::ConvertedFile::name).collect();
    assert!(names.len() > 2 && names.last() == Some(&"tiny.safetensors.index.json"), "{names:?}");
    let folder = tempfile::tempdir().unwrap();
    for file in conversion.files() {
        let bytes = file.write(Vec::new(), |_| ()).unwrap();
        assert_eq!(file.byte_len(), Some(bytes.len() as u64));
        std::fs::write(folder.path().join(file.name()), bytes).unwrap();
    }
    let new = AnyReader::open(folder.path().join("tiny.safetensors.index.json")).unwrap();
    assert!(new.validate().is_empty(), "{:?}", new.validate());
    let new = new.tensor_set().unwrap();
    for tensor in set.tensors() {
        let other = new.tensor(tensor.name()).unwrap();
        assert_eq!(tensor.bytes().unwrap(), other.bytes().unwrap());
    }
    assert_eq!(new.metadata()["name"], "tiny");
    is_same_tensors(&new, &convert(&new, Target::Safetensors).unwrap().tensor_set().unwrap());
    let refused = set.convert_to(Target::Gguf, &options).unwrap_err();
    assert_eq!(refused[0].to_string(), "gguf has no shards, expected safetensors");
}

fn is_same_tensors(old: &TensorSet<'_>, new: &TensorSet<'_>) {
    for tensor in old.tensors() {
        assert_eq!(tensor.bytes().unwrap(), new.tensor(tensor.name()).unwrap().bytes().unwrap());
    }
}

#[test]
fn compression_new_names_and_tensors_of_several_files() {
    let [one, other] = ["weights/model.safetensors", "weights/arrays.npz"]
        .map(|path| AnyReader::open(testdata(path)).unwrap());
    let mut set = TensorSet::new();
    for tensor in one.tensors().unwrap() {
        set.add(tensor.name().unwrap(), tensor).unwrap();
    }
    let again = other.tensor("w").unwrap().unwrap();
    assert_eq!(set.add("w", again).unwrap_err().to_string(), "\"w\": stands twice, expected once");
    set.add("w2", again).unwrap();
    let options = ConvertOptions::default().compression(3);
    let names = |old: &str, new: &str| [(old.to_owned(), new.to_owned())].into();
    for target in [Target::Npz, Target::ZTensor] {
        let options = options.clone().names(names("w2", "new"));
        let new = convert_with(&set, target, &options).unwrap();
        let new = new.tensor("new").unwrap().unwrap();
        assert!(new.extent().unwrap().is_none());
        assert_eq!(new.bytes().unwrap(), again.bytes().unwrap());
    }
    let refused = |options: ConvertOptions| {
        let refused = set.convert_to(Target::Safetensors, &options).unwrap_err();
        refused.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(refused(options), ["safetensors has no compression of level 3"]);
    let options = ConvertOptions::default();
    assert_eq!(
        refused(options.clone().names(names("x", "y"))),
        ["\"x\": there is no tensor of this name"]
    );
    let clash = refused(options.names(names("w2", "w")));
    assert_eq!(clash, ["\"w2\": another tensor is called \"w\" too"]);
}

#[test]
fn metadata_go_by_the_names_of_the_target() {
    let reader = AnyReader::open(testdata("weights/model.gguf")).unwrap();
    let mut set = reader.tensor_set().unwrap();
    // The same bytes from GGUF to GGUF, long lists and small types among them.
    let again = convert(&set, Target::Gguf).unwrap();
    assert_eq!(again.metadata(), reader.metadata());
    set.retain(|name| name == "w");
    let new = convert(&set, Target::ZTensor).unwrap();
    assert_eq!(
        (&new.metadata()["name"], &set.metadata()["general.name"]),
        (&"tiny".into(), &"tiny".into())
    );
    let back = convert(&new.tensor_set().unwrap(), Target::Gguf).unwrap();
    assert_eq!(back.metadata()["general.name"], "tiny");
    set.metadata_mut().insert("general.name".to_owned(), "large".into());
    assert_eq!(convert(&set, Target::Gguf).unwrap().metadata()["general.name"], "large");
}
