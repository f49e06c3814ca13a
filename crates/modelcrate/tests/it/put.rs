//! Tensors of one file as those of another that is there already.

use std::path::{Path, PathBuf};

use modelcrate::{
    AnyReader, ConvertOptions, TensorSet, carton_format, circle_format, rten_format,
    tensor_core::TensorBuf,
    weights::ElementType,
    ztensor::{self, Writer},
};
use test_support::{files, testdata};

fn options() -> ConvertOptions {
    ConvertOptions::default()
}

/// Returns a copy of a file that can be changed, in a folder of its own.
fn copy(path: &Path) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join(path.file_name().unwrap());
    std::fs::copy(path, &to).unwrap();
    (folder, to)
}

/// Returns tensors of the same names, types and shapes, of which every byte is 1.
fn ones(set: &TensorSet<'_>) -> AnyReader {
    let mut writer = Writer::new(Vec::new());
    for tensor in set.tensors() {
        let info = tensor.tensor().info().unwrap();
        let bytes = vec![1; usize::try_from(info.byte_len().unwrap()).unwrap()];
        let ones = TensorBuf::new(info.dtype, info.shape, bytes).unwrap();
        writer.add(tensor.name(), &ones).unwrap();
    }
    AnyReader::from_bytes(writer.finish().unwrap()).unwrap()
}

#[track_caller]
fn is_ones(path: &Path, names: &[String], was_sound: bool) {
    let reader = AnyReader::open(path).unwrap();
    assert!(!was_sound || reader.validate().is_valid(), "{path:?}: {:?}", reader.validate());
    let set = reader.tensor_set().unwrap();
    for name in names {
        let bytes = set.tensor(name).unwrap().bytes().unwrap();
        assert!(bytes.iter().all(|byte| *byte == 1), "{path:?}: {name}");
    }
}

/// Returns the names of those that have one of their own.
fn own_names(set: &TensorSet<'_>) -> Vec<String> {
    let named = set.tensors().iter().filter(|one| one.tensor().name() == Some(one.name()));
    named.map(|one| one.name().to_owned()).collect()
}

#[test]
fn constants_of_rten_models() {
    let mut done = 0;
    for path in files("rten/valid", "rten") {
        let (_folder, path) = copy(&path);
        let old = AnyReader::open(&path).unwrap();
        let ones = ones(&old.tensor_set().unwrap());
        let set = ones.tensor_set().unwrap();
        let mut editor = rten_format::Editor::open(&path).unwrap();
        let Ok(fitted) = set.fit_rten(editor.reader(), &options()) else { continue };
        let names: Vec<String> = fitted.names().map(str::to_owned).collect();
        fitted.describe(editor.model_mut());
        // What a graph makes of other numbers, such as shapes, is not looked at.
        if editor
            .rewrite(|wanted| fitted.read(wanted).map_err(|_| rten_format::Error::NonePending))
            .is_ok()
        {
            is_ones(&path, &names, true);
            done += 1;
        }
    }
    assert!(done > 0);
}

#[test]
fn constants_of_circle_models() {
    let (mut done, mut reasons) = (0, Vec::new());
    for path in
        files("nnpackage/valid", "tflite").into_iter().chain(files("nnpackage/valid", "circle"))
    {
        let (_folder, path) = copy(&path);
        let old = AnyReader::open(&path).unwrap();
        let is_sound = old.validate().is_valid();
        let mut old = old.tensor_set().unwrap();
        let mut names = own_names(&old);
        let is_plain = |name: &String| matches!(old.tensor(name).unwrap().elements(), Ok((ElementType::Plain(dtype), _)) if dtype.width().is_some());
        names.retain(is_plain);
        old.retain(|name| names.iter().any(|own| own == name));
        let ones = ones(&old);
        let set = ones.tensor_set().unwrap();
        let mut editor = circle_format::Editor::open(&path).unwrap();
        match set.fit_circle(editor.reader(), &options()) {
            Ok(fitted) => fitted.put(editor.model_mut()).unwrap(),
            Err(refused) => {
                reasons.push((path, refused));
                continue;
            }
        }
        editor.commit().unwrap();
        is_ones(&path, &names, is_sound);
        done += 1;
    }
    assert!(done > 0, "{reasons:#?}");
}

#[test]
fn tensors_of_cartons_and_ztensor_files() {
    let mut done = 0;
    for path in files("carton/valid", "carton") {
        let (_folder, path) = copy(&path);
        let old = AnyReader::open(&path).unwrap();
        let Ok(mut old) = old.tensor_set() else { continue };
        let numeric = |one: &modelcrate::NamedTensor<'_>| one.bytes().is_ok();
        let names: Vec<String> = old
            .tensors()
            .iter()
            .filter(|one| numeric(one))
            .map(|one| one.name().to_owned())
            .collect();
        old.retain(|name| names.iter().any(|own| own == name));
        let ones = ones(&old);
        let set = ones.tensor_set().unwrap();
        let mut editor = carton_format::Editor::open(&path).unwrap();
        let Ok(fitted) = set.fit_carton(editor.reader(), &options()) else { continue };
        fitted.put(&mut editor).unwrap();
        editor.commit().unwrap();
        is_ones(&path, &names, true);
        done += 1;
    }
    assert!(done > 0);
    let path = files("ztensor/valid/v1.1-ref", "zt").remove(0);
    let (_folder, path) = copy(&path);
    let weights = AnyReader::open(testdata("weights/model.safetensors")).unwrap();
    let set = weights.tensor_set().unwrap();
    for _ in 0..2 {
        // Those that are there are replaced.
        let mut editor = ztensor::Editor::open(&path).unwrap();
        set.fit_ztensor(&options()).unwrap().put(&mut editor, |_| ()).unwrap();
        editor.commit().unwrap();
        let new = AnyReader::open(&path).unwrap();
        for tensor in set.tensors() {
            let put = new.tensor(tensor.name()).unwrap().unwrap();
            assert_eq!(put.bytes().unwrap(), tensor.bytes().unwrap());
        }
    }
}

fn is_plain(one: &circle_format::Tensor<'_>) -> bool {
    one.bytes().is_ok() && one.info().unwrap().dtype.width().is_some()
}

/// Returns a model of two graphs, whose constants have the same names and other elements.
fn two_graphs(byte: u8) -> Vec<u8> {
    let reader =
        circle_format::Reader::open(testdata("nnpackage/valid/everything.circle")).unwrap();
    let mut model = reader.model().clone();
    model.subgraphs.truncate(1);
    model.subgraphs.push(model.subgraphs[0].clone());
    let constants = reader.tensors().filter(|one| one.subgraph() == 0 && is_plain(one));
    let constants: Vec<_> = constants.collect();
    for (graph, byte) in [(0, byte), (1, byte + 1)] {
        for constant in &constants {
            let len = constant.bytes().unwrap().len();
            let buffer = model.add_buffer(vec![byte; len]);
            let index = constant.index() as usize;
            model.subgraphs[graph].tensors[index].buffer = buffer;
        }
    }
    let options = circle_format::WriteOptions::default();
    options.write_to(Vec::new(), &model).origin(&reader).finish().unwrap()
}

#[test]
fn of_one_name_in_several_graphs_each_takes_its_own() {
    let [old, new] =
        [2, 4].map(|byte| circle_format::Reader::from_bytes(two_graphs(byte)).unwrap());
    let new = AnyReader::Circle(new);
    let mut set = new.tensor_set().unwrap();
    let AnyReader::Circle(reader) = &new else { panic!() };
    let plain = reader.tensors().zip(set.tensors()).filter(|(one, _)| is_plain(one));
    let plain: Vec<String> = plain.map(|(_, named)| named.name().to_owned()).collect();
    set.retain(|name| plain.iter().any(|one| one == name));
    let mut model = old.model().clone();
    set.fit_circle(&old, &options()).unwrap().put(&mut model).unwrap();
    let put = circle_format::WriteOptions::default();
    let put = put.write_to(Vec::new(), &model).origin(&old).finish().unwrap();
    let put = circle_format::Reader::from_bytes(put).unwrap();
    assert!(put.tensors().count() > 1);
    for constant in put.tensors().filter(is_plain) {
        let expected = if constant.subgraph() == 0 { 4 } else { 5 };
        let bytes = constant.bytes().unwrap();
        assert!(bytes.iter().all(|byte| *byte == expected), "{:?}", constant.name());
    }
    // Of another kind of file, no graph is told.
    let ones = ones(&set);
    let refused = ones.tensor_set().unwrap().fit_circle(&old, &options()).unwrap_err();
    assert!(refused[0].to_string().contains("is the name of several tensors"), "{}", refused[0]);
}

#[test]
fn what_does_not_fit_is_said_of_every_tensor() {
    let mut writer = Writer::new(Vec::new());
    for (name, elements) in [("a", 2), ("b", 3)] {
        writer
            .add(
                name,
                &TensorBuf::from_slice([elements], &vec![0.5_f64; elements as usize]).unwrap(),
            )
            .unwrap();
    }
    let weights = AnyReader::from_bytes(writer.finish().unwrap()).unwrap();
    let set = weights.tensor_set().unwrap();
    let mut graph = rten_format::Graph::default();
    for name in ["a", "b"] {
        let constant = TensorBuf::from_slice([2], &[1.0_f32, 2.0]).unwrap();
        let constant = rten_format::Constant::from_tensor(&constant).unwrap();
        graph.nodes.push(rten_format::Node::named(name, rten_format::NodeKind::Constant(constant)));
    }
    let model = rten_format::Model { graph, metadata: None };
    let model = rten_format::Reader::from_bytes(model.to_bytes().unwrap()).unwrap();
    let refused = |options: ConvertOptions| {
        let refused = set.fit_rten(&model, &options).unwrap_err();
        refused.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let message = "its elements are f64, expected f32 (--lossy: f64 as f32, loses precision; values \
                   that do not fit are refused)";
    let expected = ["a", "b"].map(|name| format!("{name:?}: {message}"));
    assert_eq!(refused(options()), expected);
    assert_eq!(refused(options().lossy(true)), ["\"b\": its shape is [3], expected [2]"]);
    let names = [("a".to_owned(), "x".to_owned()), ("b".to_owned(), "y".to_owned())].into();
    assert_eq!(
        refused(options().names(names)),
        ["there is no tensor that is called as one of these"]
    );
}

#[cfg(target_os = "linux")]
#[test]
fn libraries_install_no_handlers() {
    let (_folder, path) = copy(&testdata("rten/valid/mlp.v2.rten"));
    let mut editor = rten_format::Editor::open(&path).unwrap();
    editor.model_mut().metadata.get_or_insert_default().license = Some("MIT".to_owned());
    editor.commit().unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
    for (name, signal) in [("SIGHUP", 1), ("SIGINT", 2), ("SIGTERM", 15), ("SIGXFSZ", 25)] {
        assert_eq!(caught >> (signal - 1) & 1, 0, "{name}");
    }
}
