//! Weights that a model has in a file of their own: they stay with it, and are missed.

use std::{fs, path::Path};

use nnpackage::{
    Builder, Edit, File, Merge, Reader, Writer,
    circle_format::{
        Schema,
        model::{BuiltinOperator, ExternalBuffer, ModelBuilder, Operator, Tensor, TensorType},
    },
    split,
    tensor_core::Severity,
};

use crate::common::written;

/// A model that adds four numbers of `weights`.
fn model(weights: Option<&str>) -> Vec<u8> {
    let row = |name: &str| Tensor::new(name, TensorType::Float32, [4]);
    let mut model = ModelBuilder::new(Schema::Tflite);
    let mut graph = model.subgraph("main");
    let x = graph.input(row("x"));
    let w = graph.constant(row("w"), vec![0; if weights.is_some() { 0 } else { 16 }]);
    let y = graph.output(row("y"));
    graph.operator(BuiltinOperator::ADD, Operator::new([x, w], [y]));
    graph.finish();
    let mut model = model.finish();
    if let Some(weights) = weights {
        model.external_groups = vec![Some(weights.to_owned())];
        let buffer = ExternalBuffer { id: 1, group: 0, offset: 16, len: 16, packing: None };
        model.external_buffers = vec![buffer];
        model.subgraphs[0].tensors[1].external_buffer = 1;
    }
    model.to_bytes().unwrap()
}

/// Puts a model and its weights into a folder, and makes a package of them.
fn package(folder: &Path, fill: u8) -> Reader {
    fs::create_dir_all(folder.join("metadata")).unwrap();
    fs::write(folder.join("m.tflite"), model(Some("metadata/w.bin"))).unwrap();
    fs::write(folder.join("metadata/w.bin"), [fill; 32]).unwrap();
    let mut builder = Builder::default();
    builder.model_from("m.tflite", folder.join("m.tflite")).unwrap();
    written(&builder)
}

fn paths(reader: &Reader) -> Vec<&str> {
    reader.files().unwrap().map(File::path).collect()
}

/// Returns the errors of a package, in words.
fn errors(reader: &Reader) -> Vec<String> {
    let errors = reader.lint().into_iter().filter(|found| found.severity == Severity::Error);
    errors.map(|found| format!("{} {}", found.rule, found.message)).collect()
}

#[test]
fn merged_and_split_packages_keep_them() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = [1, 2].map(|fill| package(folder.path(), fill));
    assert_eq!(errors(&first), [""; 0]);
    let mut merge = Merge::default();
    merge.package(&first).package_in("second", &second);
    let merged = written(&merge.build().unwrap());
    let expected = [
        "m.tflite",
        "metadata/MANIFEST",
        "metadata/w.bin",
        "second/m.tflite",
        "second/metadata/w.bin",
    ];
    assert_eq!(paths(&merged), expected);
    assert_eq!(errors(&merged), [""; 0]);
    let parts = split(&merged).unwrap();
    let part = written(&parts[1]);
    assert_eq!(paths(&part), ["metadata/MANIFEST", "second/m.tflite", "second/metadata/w.bin"]);
    assert_eq!(part.file("second/metadata/w.bin").unwrap().bytes().unwrap(), [2; 32][..]);
    assert_eq!(errors(&part), [""; 0]);
}

#[test]
fn missing_and_short_ones_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("package");
    let reader = package(folder.path(), 1);
    Writer::options().create_folder(&place, &Edit::new(&reader)).unwrap();
    let weights = place.join("metadata/w.bin");
    fs::write(&weights, [1; 31]).unwrap();
    let short = "nnp/weights needs 16 bytes at byte 16 of \"metadata/w.bin\", which has 31";
    assert_eq!(errors(&Reader::open(&place).unwrap()), [short]);
    fs::remove_file(&weights).unwrap();
    let missing = "nnp/weights has weights in \"metadata/w.bin\", which is not in the package";
    assert_eq!(errors(&Reader::open(&place).unwrap()), [missing]);
}

#[test]
fn replaced_models_bring_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let before = package(folder.path(), 1);
    // Other weights of the same name.
    fs::write(folder.path().join("metadata/w.bin"), [2; 32]).unwrap();
    let mut edit = Edit::new(&before);
    edit.replace_model_from(0, folder.path().join("m.tflite")).unwrap();
    let after = written(&edit);
    assert_eq!(after.file("metadata/w.bin").unwrap().bytes().unwrap(), [2; 32][..]);
    // A model without any.
    fs::write(folder.path().join("plain.tflite"), model(None)).unwrap();
    let mut edit = Edit::new(&after);
    edit.replace_model_from(0, folder.path().join("plain.tflite")).unwrap();
    assert_eq!(paths(&written(&edit)), ["m.tflite", "metadata/MANIFEST"]);
}

#[test]
fn those_of_another_model_stay() {
    let folder = tempfile::tempdir().unwrap();
    let before = package(folder.path(), 1);
    let mut edit = Edit::new(&before);
    edit.add_model_from("n.tflite", folder.path().join("m.tflite")).unwrap();
    let both = written(&edit);
    fs::write(folder.path().join("plain.tflite"), model(None)).unwrap();
    let mut edit = Edit::new(&both);
    edit.replace_model_from(0, folder.path().join("plain.tflite")).unwrap();
    assert!(paths(&written(&edit)).contains(&"metadata/w.bin"));
    // Two models cannot have different ones in one place.
    fs::write(folder.path().join("metadata/w.bin"), [2; 32]).unwrap();
    let error = Edit::new(&both).replace_model_from(0, folder.path().join("m.tflite")).unwrap_err();
    assert_eq!(error.to_string(), "\"metadata/w.bin\" is in the package already");
}
