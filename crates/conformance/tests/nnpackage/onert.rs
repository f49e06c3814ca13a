//! onert loads and runs what we write.

use std::{fs, path::Path};

use conformance::python::Client;
use nnpackage::{
    BufferPlacement, ModelReader, ModelWriteOptions, ModelWriter, Reaction, Stage,
    model::{
        LossFn, LossOptions, LossReductionType, Model, Optimizer, OptimizerOptions, Schema,
        TrainingInfo,
    },
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

/// onert verifies training information when it loads a model, and stops where we say that it does.
#[test]
fn training_information() {
    let sound = TrainingInfo {
        version: 1,
        optimizer: Optimizer::SGD,
        optimizer_options: Some(OptimizerOptions::Sgd { learning_rate: 0.5 }),
        loss: LossFn::MEAN_SQUARED_ERROR,
        loss_options: Some(LossOptions::MeanSquaredError),
        epochs: 3,
        batch_size: 4,
        loss_reduction: LossReductionType::SumOverBatchSize,
        trainable_operators: vec![0],
    };
    let adam =
        OptimizerOptions::Adam { learning_rate: 0.5, beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7 };
    let changed = |change: &dyn Fn(&mut TrainingInfo)| {
        let mut training = sound.clone();
        change(&mut training);
        training.to_bytes().unwrap()
    };
    let bytes = sound.to_bytes().unwrap();
    let cases = [
        changed(&|_| ()),
        changed(&|of| {
            of.optimizer = Optimizer::ADAM;
            of.optimizer_options = Some(adam.clone());
        }),
        changed(&|of| of.optimizer = Optimizer::ADAM),
        changed(&|of| of.optimizer_options = None),
        changed(&|of| of.optimizer = Optimizer::from_code(5)),
        changed(&|of| of.loss = LossFn::CATEGORICAL_CROSSENTROPY),
        changed(&|of| of.loss = LossFn::SPARSE_CATEGORICAL_CROSSENTROPY),
        changed(&|of| of.loss = LossFn::from_code(9)),
        changed(&|of| of.loss_options = None),
        changed(&|of| of.loss_reduction = LossReductionType::from_code(7)),
        changed(&|of| of.trainable_operators = vec![7, -1]),
        bytes[..bytes.len() - 24].to_vec(),
        b"it is no information".to_vec(),
    ];
    let folder = tempfile::tempdir().unwrap();
    let (mut jobs, mut expected) = (Vec::new(), Vec::new());
    for (at, bytes) in cases.into_iter().enumerate() {
        let mut model = models::add(Schema::Circle, [10.0, 20.0, 30.0, 40.0]);
        model.set_metadata(TrainingInfo::METADATA, bytes);
        let path = folder.path().join(format!("{at}.circle"));
        ModelWriter::new(&model).create(&path).unwrap();
        expected.push(match ModelReader::open(&path).unwrap().forecast() {
            None => made(&[&[11.0, 22.0, 33.0, 44.0]]),
            Some(Reaction::Fails { stage: Stage::Load, .. }) => {
                json!({"failed": "load_model_from_file"})
            }
            Some(Reaction::Crashes { stage: Stage::Load }) => {
                json!({"failed": "ended", "status": -11})
            }
            other => panic!("{at}: {other:?}"),
        });
        jobs.push(json!({"path": path, "inputs": [[1.0, 2.0, 3.0, 4.0]]}));
    }
    assert_eq!(expected.iter().filter(|job| job.get("made").is_some()).count(), 5);
    let Some(found) = run(folder.path(), &json!(jobs)) else { return };
    assert_eq!(found, expected);
}
