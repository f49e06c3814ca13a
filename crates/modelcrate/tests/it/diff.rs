//! What differs between two files.

use std::num::NonZeroUsize;

use modelcrate::{
    AnyReader, Change, ContentDigest, Diff, DiffOptions, HashList, Rule, hash_line,
    rten_format::NodeKind,
    ztensor::{Reader, Writer, migrate},
};
use tensor_core::{DType, TensorBuf, compare::Tolerance};
use test_support::{files, testdata};

fn diff(old: &AnyReader, new: &AnyReader, options: &DiffOptions) -> Diff {
    old.diff(new, options, |_| true, |_| ()).unwrap()
}

fn zt(tensors: &[(&str, TensorBuf)]) -> AnyReader {
    let mut writer = Writer::new(Vec::new());
    for (name, tensor) in tensors {
        writer.add(name, tensor).unwrap();
    }
    AnyReader::from_bytes(writer.finish().unwrap()).unwrap()
}

fn floats(values: &[f32]) -> TensorBuf {
    TensorBuf::from_slice([values.len() as u64], values).unwrap()
}

#[test]
fn every_old_ztensor_file_is_like_what_it_becomes() {
    for path in files("ztensor/valid/legacy", "zt") {
        let old = Reader::open(&path).unwrap();
        let mut writer = Writer::new(Vec::new());
        migrate(&old, &mut writer).unwrap();
        let new = AnyReader::from_bytes(writer.finish().unwrap()).unwrap();
        let old = AnyReader::open(&path).unwrap();
        let found = diff(&old, &new, &DiffOptions::default());
        assert!(found.is_empty(), "{path:?}: {found:?}");
        let hash = |of: &AnyReader| {
            let threads = NonZeroUsize::new(2).unwrap();
            of.tensor_set().unwrap().content_hash(threads, |_| ()).unwrap()
        };
        assert_eq!(hash(&old), hash(&new), "{path:?}");
    }
}

#[test]
fn every_file_of_testdata_is_like_itself() {
    let mut compared = 0;
    for (folder, extension) in [
        ("carton/valid", "carton"),
        ("nnpackage/valid", "circle"),
        ("nnpackage/valid", "tflite"),
        ("nnpackage/valid", "zip"),
        ("ptl/valid/torch251", "ptl"),
        ("rten/valid", "rten"),
        ("weights", "gguf"),
        ("weights", "npz"),
        ("weights", "safetensors"),
        ("ztensor/valid/v1.1-ref", "zt"),
        ("ztensor/valid/v1.1-hand", "zt"),
    ] {
        for path in files(folder, extension) {
            let Ok(reader) = AnyReader::open(&path) else { continue };
            if reader.byte_len() > 64 << 20 || reader.tensor_set().is_err() {
                continue;
            }
            let mut found = diff(&reader, &reader, &DiffOptions::default());
            found.tensors.retain(|tensor| match &tensor.change {
                Change::Unknown { reason } => {
                    assert!(reason.contains("in another file"), "{path:?}: {reason}");
                    found.same += 1;
                    false
                }
                _ => true,
            });
            assert!(found.is_empty(), "{path:?}: {found:#?}");
            assert!(found.apart.is_empty(), "{path:?}: {found:#?}");
            let set = reader.tensor_set().unwrap();
            assert_eq!(found.same, set.tensors().len() as u64, "{path:?}");
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn values_across_ranges() {
    // More than one range and one piece: differences in the first, the second and the last.
    let len = (9 << 20) + 7;
    let old = vec![1.0_f32; len];
    let mut new = old.clone();
    (new[3], new[5 << 20], new[len - 1]) = (2.0, -4.0, 1.5);
    let folder = tempfile::tempdir().unwrap();
    let readers = [("old", old), ("new", new)].map(|(name, values)| {
        let path = folder.path().join(name);
        let mut writer = Writer::create(&path).unwrap();
        writer.add("w", &floats(&values)).unwrap();
        writer.finish().unwrap();
        AnyReader::open(path).unwrap()
    });
    for threads in [1, 2, 5] {
        let mut options = DiffOptions::default();
        options.threads = NonZeroUsize::new(threads).unwrap();
        let found = diff(&readers[0], &readers[1], &options);
        let Change::Values { values, .. } = &found.tensors[0].change else { panic!("{found:?}") };
        assert_eq!((values.elements, values.mismatches), (len as u64, 3));
        let most = values.max_abs.unwrap();
        assert_eq!((most.value, most.index, values.first_mismatch), (5.0, 5 << 20, Some(3)));
        assert!(diff(&readers[0], &readers[0], &options).is_empty());
    }
}

#[test]
fn tolerance_decides() {
    let (old, new) = (zt(&[("w", floats(&[1.0, 2.0]))]), zt(&[("w", floats(&[1.0, 2.5]))]));
    let mut options = DiffOptions::default();
    assert!(!diff(&old, &new, &options).is_empty());
    options.tolerance = Some(Tolerance { atol: 0.5, rtol: 0.0, equal_nan: true });
    assert!(diff(&old, &new, &options).is_empty());
    options.tolerance = Some(Tolerance { atol: 0.25, rtol: 0.1, equal_nan: true });
    assert!(!diff(&old, &new, &options).is_empty(), "0.5 > 0.25 + 0.1 * 2");
}

#[test]
fn other_bits_of_equal_values() {
    let (old, new) = (zt(&[("w", floats(&[0.0]))]), zt(&[("w", floats(&[-0.0]))]));
    let found = diff(&old, &new, &DiffOptions::default());
    let Change::Values { values, .. } = &found.tensors[0].change else { panic!("{found:?}") };
    assert_eq!(values.mismatches, 0);
    let nan = zt(&[("w", floats(&[f32::NAN]))]);
    assert!(diff(&nan, &nan, &DiffOptions::default()).is_empty());
}

#[test]
fn sparse_is_like_dense() {
    let reader = AnyReader::open(testdata("ztensor/valid/v1.1-ref/sparse_coo.zt")).unwrap();
    let mut set = reader.tensor_set().unwrap();
    // Those that have an element twice stay as they are.
    set.retain(|name| reader.tensor(name).unwrap().unwrap().bytes().is_ok());
    let dense: Vec<(&str, TensorBuf)> = set
        .tensors()
        .iter()
        .map(|tensor| (tensor.name(), tensor.tensor().read().unwrap()))
        .collect();
    let dense = zt(&dense);
    let dense = dense.tensor_set().unwrap();
    let found = set.diff(&dense, &DiffOptions::default(), |_| ()).unwrap();
    assert!(found.tensors.is_empty() && found.same > 4, "{found:?}");
    let hashes =
        [&set, &dense].map(|set| set.content_hash(NonZeroUsize::MIN, |_| ()).unwrap().digest);
    assert_eq!(hashes[0], hashes[1]);
}

#[test]
fn halves_of_bytes() {
    let bits = |bytes: &[u8]| TensorBuf::new(DType::U4, [3], bytes.to_vec()).unwrap();
    let (old, new) = (bits(&[0x21, 0x03]), bits(&[0x21, 0x04]));
    let target = |tensor: &TensorBuf| -> Option<AnyReader> {
        let mut writer = Writer::new(Vec::new());
        writer.add("w", tensor).ok()?;
        Some(AnyReader::from_bytes(writer.finish().ok()?).unwrap())
    };
    let (Some(old), Some(new)) = (target(&old), target(&new)) else { return };
    let found = diff(&old, &new, &DiffOptions::default());
    let Change::Values { values, .. } = &found.tensors[0].change else { panic!("{found:?}") };
    assert_eq!((values.elements, values.mismatches), (3, 1));
}

#[test]
fn graphs_by_what_they_make() {
    let path = files("rten/valid", "rten")
        .into_iter()
        .find(|path| AnyReader::open(path).is_ok_and(|reader| reader.operators().len() > 3));
    let old = AnyReader::open(path.unwrap()).unwrap();
    let AnyReader::Rten(reader) = &old else { panic!() };
    let mut model = reader.model().clone();
    let dropped = model.graph.nodes.iter_mut().rev().find_map(|node| match &mut node.kind {
        NodeKind::Operator(operator) => Some(operator.inputs.pop()),
        _ => None,
    });
    assert!(dropped.is_some());
    let new = AnyReader::from_bytes(model.to_bytes().unwrap()).unwrap();
    let found = diff(&old, &new, &DiffOptions::default());
    let [only] = found.operators.as_slice() else { panic!("{:?}", found.operators) };
    let (old, new) = (only.old.as_ref().unwrap(), only.new.as_ref().unwrap());
    assert_eq!(old.inputs.len(), new.inputs.len() + 1);
    assert!(found.operator_types.is_empty());
}

#[test]
fn renamed_graphs_are_alike() {
    let path = files("rten/valid", "rten")
        .into_iter()
        .find(|path| AnyReader::open(path).is_ok_and(|reader| reader.operators().len() > 3));
    let old = AnyReader::open(path.unwrap()).unwrap();
    let AnyReader::Rten(reader) = &old else { panic!() };
    let mut model = reader.model().clone();
    for node in &mut model.graph.nodes {
        if !matches!(node.kind, NodeKind::Constant(_)) {
            node.name = node.name.take().map(|name| format!("new/{name}"));
        }
    }
    let new = AnyReader::from_bytes(model.to_bytes().unwrap()).unwrap();
    let found = diff(&old, &new, &DiffOptions::default());
    assert!(found.operators.is_empty(), "{:?}", found.operators);
}

#[test]
fn methods_are_alike_in_both_containers() {
    let mut compared = 0;
    for version in ["torch113", "torch251"] {
        for path in files(&format!("ptl/valid/{version}"), "ptl") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let twin = path.with_file_name(format!("{name}_fb.ptl"));
            let (Ok(zip), Ok(flat)) = (AnyReader::open(&path), AnyReader::open(twin)) else {
                continue;
            };
            let found = diff(&zip, &flat, &DiffOptions::default());
            assert!(found.operators.is_empty(), "{path:?}: {:#?}", found.operators);
            compared += usize::from(!zip.operators().is_empty());
        }
    }
    assert!(compared >= 4, "{compared}");
}

#[test]
fn operators_of_methods_are_compared() {
    let open = |file: &str| AnyReader::open(testdata("ptl/valid/torch251").join(file)).unwrap();
    let (old, new) = (open("img.ptl"), open("ids.ptl"));
    let operators: Vec<String> = old.operators().iter().map(|of| of.operator.clone()).collect();
    let found = diff(&old, &new, &DiffOptions::default()).operators;
    let removed = |operator: &String| {
        found.iter().any(|of| of.new.is_none() && of.old.as_ref().unwrap().operator == *operator)
    };
    assert!(operators.len() >= 5 && operators.iter().all(removed), "{operators:?}: {found:#?}");
}

#[test]
fn metadata_of_one_format_alone_do_not_count() {
    let reader = AnyReader::open(testdata("weights/model.safetensors")).unwrap();
    let set = reader.tensor_set().unwrap();
    let tensors: Vec<_> =
        set.tensors().iter().map(|of| (of.name(), of.tensor().read().unwrap())).collect();
    let bare = zt(&tensors);
    let found = diff(&reader, &bare, &DiffOptions::default());
    assert!(found.is_empty(), "{found:?}");
    let apart: Vec<&str> = found.apart.iter().map(|of| of.name.as_str()).collect();
    assert!(apart.contains(&"format"), "{apart:?}");
}

#[test]
fn names_are_mapped() {
    let (old, new) = (zt(&[("model.w", floats(&[1.0]))]), zt(&[("w", floats(&[1.0]))]));
    let mut options = DiffOptions::default();
    assert_eq!(diff(&old, &new, &options).tensors.len(), 2);
    options.names = ["model.*=*".parse::<Rule>().unwrap()].into_iter().collect();
    assert!(diff(&old, &new, &options).is_empty());
    let found = old.diff(&new, &options, |name| name == "w", |_| ()).unwrap();
    assert_eq!((found.same, found.is_empty()), (1, true));
}

#[test]
fn a_list_beside_a_file_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    std::fs::copy(testdata("weights/model.safetensors"), &path).unwrap();
    let reader = AnyReader::open(&path).unwrap();
    let check = || reader.check_sidecar(&path, NonZeroUsize::MIN, |_| ());
    assert!(check().is_empty());
    let digest =
        reader.tensor_set().unwrap().content_hash(NonZeroUsize::MIN, |_| ()).unwrap().digest;
    let list = folder.path().join("a.safetensors.hash");
    std::fs::write(&list, hash_line(digest, "else/where/a.safetensors")).unwrap();
    assert!(check().is_empty());
    assert_eq!(HashList::<ContentDigest>::parse(&hash_line(digest, "x")).files.len(), 1);
    let other = hash_line(digest, "a.safetensors").replacen(":", ":0", 1).replacen("  ", "", 1);
    for (text, rule) in [
        (format!("tensors-v1:{}  a.safetensors\n", "0".repeat(64)), "file/hash"),
        (other, "file/hash-list"),
        (hash_line(digest, "b.safetensors"), "file/hash-list"),
    ] {
        std::fs::write(&list, text).unwrap();
        let report = check();
        let rules: Vec<_> = report.findings().iter().map(|finding| &*finding.rule).collect();
        assert_eq!(rules, [rule]);
    }
}
