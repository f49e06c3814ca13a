//! onert loads and runs what we write.

use std::{fs, path::Path};

use conformance::python::Client;
use nnpackage::{
    BufferPlacement, ModelReader, ModelWriteOptions, ModelWriter,
    model::{Model, Schema},
};
use serde_json::{Value as Json, json};

use crate::models;

/// Runs jobs; `None` where onert is not installed.
#[track_caller]
fn run(folder: &Path, jobs: &Json) -> Option<Vec<Json>> {
    let path = folder.join("jobs.json");
    fs::write(&path, jobs.to_string()).unwrap();
    Some(serde_json::from_value(Client::ONERT.run("onert_run.py", &[path])?).unwrap())
}

/// What a run of a model with rows of 4 floats gives.
fn made(outputs: &[&[f64]]) -> Json {
    let infos = outputs.iter().map(|output| json!([0, [1, output.len()]]));
    let infos: Vec<_> = infos.collect();
    json!({"inputs": [[0, [1, 4]]], "outputs": infos, "made": outputs})
}

#[test]
fn bare_models() {
    let folder = tempfile::tempdir().unwrap();
    let (mut jobs, mut expected) = (Vec::new(), Vec::new());
    let mut add = |name: &str, model: &Model, outputs: &[f64]| {
        let path = folder.path().join(format!("{name}.{}", model.schema));
        ModelWriter::new(model).create(&path).unwrap();
        jobs.push(json!({"path": path, "inputs": [[1.0, 2.0, 3.0, 4.0]]}));
        expected.push(made(&[outputs]));
    };
    for schema in [Schema::Circle, Schema::Tflite] {
        add("add", &models::add(schema, [10.0, 20.0, 30.0, 40.0]), &[11.0, 22.0, 33.0, 44.0]);
        add("dense", &models::dense(schema), &[30.5, 0.0]);
    }
    let converted = models::dense(Schema::Tflite).to_circle().unwrap();
    add("converted", &converted, &[30.5, 0.0]);

    // Out of the tables, where onert does not look, and in again.
    let outside = ModelWriteOptions::default().placement(BufferPlacement::Outside);
    let outside = ModelWriter::new(&converted).options(outside).to_bytes().unwrap();
    let outside = ModelReader::from_bytes(outside).unwrap();
    assert!(outside.model().buffers[1].is_external());
    let path = folder.path().join("again.circle");
    let inline = ModelWriteOptions::default().placement(BufferPlacement::Inline);
    ModelWriter::of(&outside).options(inline).create(&path).unwrap();
    jobs.push(json!({"path": path, "inputs": [[1.0, 2.0, 3.0, 4.0]]}));
    expected.push(made(&[&[30.5, 0.0]]));

    // Edited: names, metadata, a signature.
    let mut edited = models::dense(Schema::Circle);
    edited.set_metadata("license", "MIT");
    edited.rename_tensors([("x", "input")]);
    edited.description = Some("a longer description than before".to_owned());
    let path = folder.path().join("edited.circle");
    ModelWriter::new(&edited).create(&path).unwrap();
    jobs.push(json!({"path": path, "inputs": [[1.0, 2.0, 3.0, 4.0]]}));
    expected.push(made(&[&[30.5, 0.0]]));

    let Some(found) = run(folder.path(), &json!(jobs)) else { return };
    assert_eq!(found, expected);
}

#[test]
fn custom_operators_run_in_packages() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("package");
    fs::create_dir_all(package.join("metadata")).unwrap();
    let manifest = json!({"models": ["m.circle"], "model-types": ["circle"]});
    fs::write(package.join("metadata/MANIFEST"), manifest.to_string()).unwrap();
    ModelWriter::new(&models::custom()).create(package.join("m.circle")).unwrap();
    let job = json!({"path": package, "inputs": [[1.0, 2.0, 3.0, 4.0]], "custom": ["MyOp"]});
    let Some(found) = run(folder.path(), &json!([job])) else { return };
    assert_eq!(found, [made(&[&[2.0, 4.0, 6.0, 8.0]])]);
}
