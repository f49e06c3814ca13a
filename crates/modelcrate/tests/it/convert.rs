//! Tensors of one format as those of another.

use std::num::NonZeroUsize;

use modelcrate::{AnyReader, Change, DiffOptions, NamedTensor, Refusal, Rule, Target, TensorSet};
use test_support::{files, testdata};

fn threads() -> NonZeroUsize {
    NonZeroUsize::new(2).unwrap()
}

fn convert(set: &TensorSet<'_>, target: Target) -> Result<AnyReader, Vec<Refusal>> {
    let conversion = set.convert_to(target)?;
    let bytes = conversion.write(Vec::new(), |_| ()).unwrap();
    assert!(conversion.file_len().is_none_or(|len| len == bytes.len() as u64));
    assert_eq!(conversion.write(Vec::new(), |_| ()).unwrap(), bytes, "{target}");
    Ok(AnyReader::from_bytes(bytes).unwrap())
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

#[test]
fn every_set_of_testdata_becomes_what_can_hold_it() {
    let mut converted = [0; Target::ALL.len()];
    for (folder, extension) in [
        ("carton/valid", "carton"),
        ("nnpackage/valid", "circle"),
        ("nnpackage/valid", "tflite"),
        ("ptl/valid/torch251", "ptl"),
        ("rten/valid", "rten"),
        ("weights", "safetensors"),
        ("weights", "npz"),
        ("ztensor/valid/v1.1-ref", "zt"),
    ] {
        for path in files(folder, extension) {
            let reader = AnyReader::open(&path).unwrap();
            if reader.byte_len() > 64 << 20 {
                continue;
            }
            let Ok(mut set) = reader.tensor_set() else { continue };
            for (target, converted) in Target::ALL.iter().zip(&mut converted) {
                // What it cannot hold is named, tensor by tensor; the rest is converted.
                if let Err(refused) = set.convert_to(*target) {
                    assert!(refused.iter().all(|refused| !refused.reason.is_empty()), "{path:?}");
                    let names: Vec<String> = refused.into_iter().map(|one| one.tensor).collect();
                    set.retain(|name| names.iter().all(|refused| refused != name));
                }
                // An archive without files may be anything.
                if set.tensors().is_empty() && *target == Target::Npz {
                    continue;
                }
                let what = format!("{path:?} as {target}");
                let new =
                    convert(&set, *target).unwrap_or_else(|refused| panic!("{what}: {refused:?}"));
                is_same(&set, &new.tensor_set().unwrap(), &what);
                *converted += set.tensors().len();
            }
        }
    }
    assert!(converted.iter().all(|tensors| *tensors > 100), "{converted:?}");
}

#[test]
fn what_a_target_does_not_have_is_said_of_every_tensor() {
    let reader = AnyReader::open(testdata("weights/model.gguf")).unwrap();
    let set = reader.tensor_set().unwrap();
    let refused = set.convert_to(Target::Safetensors).unwrap_err();
    let [q] = refused.as_slice() else { panic!("{refused:?}") };
    assert_eq!((&*q.tensor, &*q.reason), ("q", "safetensors has no element type q8_0"));
    is_same(&set, &convert(&set, Target::Gguf).unwrap().tensor_set().unwrap(), "gguf");
    // Of a long list only its length is known.
    assert_eq!(set.convert_to(Target::Gguf).unwrap().left_out(), ["tokenizer.ggml.tokens"]);
}

#[test]
fn sparse_tensors_are_not_made_dense_unasked() {
    let path = files("ztensor/valid/v1.1-ref", "zt").into_iter().find_map(|path| {
        let reader = AnyReader::open(path).unwrap();
        let refused = reader.tensor_set().unwrap().convert_to(Target::Safetensors).err()?;
        Some(refused.into_iter().map(|refused| refused.reason).collect::<Vec<_>>())
    });
    assert_eq!(path.unwrap()[0], "is stored as sparse_coo, expected dense");
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
