//! onert loads and runs what we write.

use std::{
    fs,
    path::{Path, PathBuf},
};

use conformance::python::Client;
use nnpackage::{
    Builder, ConfigChange, Connected, Edit, IoRef, Merge, Need, Reaction, Reader, Stage, Writer,
    circle_format::{
        BufferPlacement, Reader as ModelReader, WriteOptions as ModelWriteOptions,
        Writer as ModelWriter,
        model::{
            DimensionType, LossFn, LossOptions, LossReductionType, Model, Optimizer,
            OptimizerOptions, Schema, SparseIndices, SparseLevel, Sparsity, TrainingInfo,
        },
    },
    tensor_core::Source,
};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use test_support::testdata;

use crate::models;

/// Runs jobs; `None` where onert is not installed.
#[track_caller]
pub(crate) fn run(folder: &Path, jobs: &Json) -> Option<Vec<Json>> {
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
        ModelWriter::create(&path, model).unwrap().finish().unwrap();
        jobs.push(json!({"path": path, "inputs": [[1.0, 2.0, 3.0, 4.0]]}));
        expected.push(made(&[outputs]));
    };
    for schema in [Schema::Circle, Schema::Tflite] {
        add("add", &models::add(schema, [10.0, 20.0, 30.0, 40.0]), &[11.0, 22.0, 33.0, 44.0]);
        add("dense", &models::dense(schema), &[30.5, 0.0]);
    }
    let converted = models::dense(Schema::Tflite).to_schema(Schema::Circle).unwrap();
    add("converted", &converted, &[30.5, 0.0]);

    // Out of the tables, where onert does not look, and in again.
    let outside = ModelWriteOptions::default().placement(BufferPlacement::Outside);
    let outside = outside.write_to(Vec::new(), &converted).finish().unwrap();
    let outside = ModelReader::from_bytes(outside).unwrap();
    assert!(outside.model().buffers[1].is_external());
    let path = folder.path().join("again.circle");
    let inline = ModelWriteOptions::default().placement(BufferPlacement::Inline);
    let inline = inline.create(&path, outside.model()).unwrap();
    inline.origin(&outside).finish().unwrap();
    jobs.push(json!({"path": path, "inputs": [[1.0, 2.0, 3.0, 4.0]]}));
    expected.push(made(&[&[30.5, 0.0]]));

    // Edited: names, metadata, a signature.
    let mut edited = models::dense(Schema::Circle);
    edited.set_metadata("license", "MIT");
    edited.rename_tensors([("x", "input")]);
    edited.description = Some("a longer description than before".to_owned());
    let path = folder.path().join("edited.circle");
    ModelWriter::create(&path, &edited).unwrap().finish().unwrap();
    jobs.push(json!({"path": path, "inputs": [[1.0, 2.0, 3.0, 4.0]]}));
    expected.push(made(&[&[30.5, 0.0]]));

    let Some(found) = run(folder.path(), &json!(jobs)) else { return };
    assert_eq!(found, expected);
}

/// A package in the making, and what onert makes of it.
struct Packages {
    folder: TempDir,
    jobs: Vec<Json>,
    expected: Vec<Json>,
}

impl Packages {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), jobs: Vec::new(), expected: Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Builds an archive, unpacks it as onert needs it, and runs it.
    fn add(&mut self, name: &str, builder: &Builder, custom: &[&str], outputs: &[&[f64]]) {
        let archive = self.path(&format!("{name}.zip"));
        Writer::create(&archive, builder).unwrap().finish().unwrap();
        self.add_archive(name, &archive, custom, outputs);
        // The folder form has the same files with the same bytes.
        let folder = self.path(&format!("{name} as a folder"));
        Writer::options().create_folder(&folder, builder).unwrap();
        assert_eq!(contents(&folder), contents(&self.path(name)), "{name}");
    }

    fn add_archive(&mut self, name: &str, archive: &Path, custom: &[&str], outputs: &[&[f64]]) {
        let reader = Reader::open(archive).unwrap();
        let forecast = reader.forecast().map(|reaction| reaction.to_string());
        let expected = (!custom.is_empty()).then_some("needs a kernel");
        assert_eq!(forecast.as_deref(), expected, "{name}: {:?}", reader.diagnoses());
        let folder = self.path(name);
        nnpackage::extract(&reader, &folder).unwrap();
        let inputs = json!([[1.0, 2.0, 3.0, 4.0]]);
        self.jobs.push(json!({"path": folder, "inputs": inputs, "custom": custom}));
        self.expected.push(made(outputs));
    }

    fn run(self) {
        let Some(found) = run(self.folder.path(), &json!(self.jobs)) else { return };
        assert_eq!(found, self.expected);
    }
}

/// Returns the files of a folder with their bytes.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let reader = Reader::open(folder).unwrap();
    let files = reader.files().unwrap();
    files.map(|file| (file.path().to_owned(), file.bytes().unwrap().to_vec())).collect()
}

fn model(model: &Model) -> Source {
    Source::from_bytes(model.to_bytes().unwrap())
}

fn add_of(constant: f32) -> Source {
    model(&models::add(Schema::Circle, [constant; 4]))
}

/// `y = (x + 10) + 100`, in two models.
fn connected() -> Builder {
    let mut builder = Builder::default();
    builder.model("first.circle", add_of(10.0)).unwrap();
    builder.model("second.circle", add_of(100.0)).unwrap();
    builder.input(IoRef::new(0, 0, 0));
    builder.output(IoRef::new(1, 0, 0));
    builder.connect(IoRef::new(0, 0, 0), IoRef::new(1, 0, 0));
    builder
}

#[test]
fn built_packages() {
    let mut packages = Packages::new();

    let mut one = Builder::default();
    one.model("dense.tflite", model(&models::dense(Schema::Tflite))).unwrap();
    packages.add("one model", &one, &[], &[&[30.5, 0.0]]);

    // Whatever the extension says, the type is that of the content.
    let mut named = Builder::default();
    named.model("models/dense.bin", model(&models::dense(Schema::Circle))).unwrap();
    packages.add("a model in a folder", &named, &[], &[&[30.5, 0.0]]);

    let mut mapped = Builder::default();
    mapped.model("dense.circle", model(&models::dense(Schema::Circle))).unwrap();
    mapped.config("run.cfg", "# fast\nNUM_THREADS = 2\n").unwrap();
    mapped.mmap().unwrap();
    mapped.digests(true);
    packages.add("a configuration", &mapped, &[], &[&[30.5, 0.0]]);

    packages.add("two models", &connected(), &[], &[&[111.0, 112.0, 113.0, 114.0]]);

    let mut custom = Builder::default();
    custom.model("m.circle", model(&models::custom())).unwrap();
    packages.add("a custom operator", &custom, &["MyOp"], &[&[2.0, 4.0, 6.0, 8.0]]);
    // The same, without a kernel.
    packages.jobs.push(json!({"path": packages.path("a custom operator")}));
    let said = "Error during model prepare : Unable to find associated kernel for op\n";
    packages.expected.push(json!({"failed": "prepare", "said": said}));
    packages.run();
}

#[test]
fn edited_packages() {
    let mut packages = Packages::new();
    let before = packages.path("before.zip");
    Writer::create(&before, &connected()).unwrap().finish().unwrap();

    let mut edit = Edit::new(&Reader::open(&before).unwrap());
    edit.replace_model(1, add_of(1000.0)).unwrap();
    edit.change_config(&[ConfigChange::set("USE_MMAPED_DATA", "1")]).unwrap();
    let after = packages.path("replaced.zip");
    Writer::create(&after, &edit).unwrap().finish().unwrap();
    packages.add_archive("replaced", &after, &[], &[&[1011.0, 1012.0, 1013.0, 1014.0]]);

    // A third model behind the second one.
    let mut edit = Edit::new(&Reader::open(&before).unwrap());
    assert_eq!(edit.add_model("third.circle", add_of(0.5)).unwrap(), 2);
    edit.connect(IoRef::new(1, 0, 0), IoRef::new(2, 0, 0));
    edit.manifest_mut().pkg_outputs = vec![IoRef::new(2, 0, 0)];
    let after = packages.path("added.zip");
    Writer::create(&after, &edit).unwrap().finish().unwrap();
    packages.add_archive("added", &after, &[], &[&[111.5, 112.5, 113.5, 114.5]]);

    let mut edit = Edit::new(&Reader::open(&before).unwrap());
    edit.remove_model(1, Connected::Drop).unwrap();
    let after = packages.path("removed.zip");
    Writer::create(&after, &edit).unwrap().finish().unwrap();
    packages.add_archive("removed", &after, &[], &[&[11.0, 12.0, 13.0, 14.0]]);
    packages.run();
}

#[test]
fn split_and_merged_packages() {
    let mut packages = Packages::new();
    let before = packages.path("before.zip");
    Writer::create(&before, &connected()).unwrap().finish().unwrap();
    let parts = nnpackage::split(&Reader::open(&before).unwrap()).unwrap();
    let outputs: [&[f64]; 2] = [&[11.0, 12.0, 13.0, 14.0], &[101.0, 102.0, 103.0, 104.0]];
    let mut readers = Vec::new();
    for (at, (part, outputs)) in parts.iter().zip(outputs).enumerate() {
        packages.add(&format!("part {at}"), part, &[], &[outputs]);
        readers.push(Reader::open(packages.path(&format!("part {at}.zip"))).unwrap());
    }
    let mut merge = Merge::default();
    merge.package(&readers[0]).package(&readers[1]);
    merge.connect(IoRef::new(0, 0, 0), IoRef::new(1, 0, 0));
    let merged = merge.build().unwrap();
    packages.add("merged", &merged, &[], &[&[111.0, 112.0, 113.0, 114.0]]);
    packages.run();
}

/// What is said of every fault is what onert does.
#[test]
fn forecasts() {
    let folder = tempfile::tempdir().unwrap();
    let (mut jobs, mut forecasts) = (Vec::new(), Vec::new());
    let mut add = |path: PathBuf, forecast: Option<Reaction>| {
        jobs.push(json!({"path": path}));
        forecasts.push((path, forecast));
    };
    for entry in fs::read_dir(testdata("nnpackage/invalid")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let Ok(reader) = Reader::open(&path) else { continue };
            // What is outside of a package is not known.
            if reader.diagnoses().iter().all(|found| found.finding.rule != "nnp/outside") {
                add(path, reader.forecast());
            }
        } else if path.extension().is_some_and(|found| found == "circle" || found == "tflite") {
            // The type of a bare model is its extension.
            let Ok(reader) = ModelReader::open(&path) else { continue };
            add(path, reader.forecast());
        }
    }
    let Some(found) = run(folder.path(), &json!(jobs)) else { return };
    came_true(&forecasts, &found);
}

/// What is said of models that real packages ship is what onert says: where it stops, and why.
#[test]
fn real_models() {
    let paths = Client::models();
    if paths.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let jobs: Vec<_> = paths.iter().map(|path| json!({"path": path})).collect();
    let Some(found) = run(folder.path(), &json!(jobs)) else { return };
    let mut wrong = Vec::new();
    for (path, found) in paths.iter().zip(&found) {
        let forecast = ModelReader::open(path).unwrap().forecast();
        if !is_exact(forecast.as_ref(), found) {
            wrong.push(format!("{}: {forecast:?}, but {found}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(paths.len() >= 27, "{} models", paths.len());
}

/// What stops onert is gone once a model is mended, and values are what they were.
#[test]
fn mended_models() {
    let folder = tempfile::tempdir().unwrap();
    let (mut jobs, mut expected) = (Vec::new(), Vec::new());
    for schema in [Schema::Circle, Schema::Tflite] {
        let model = models::half(schema);
        let before = folder.path().join(format!("before.{schema}"));
        ModelWriter::create(&before, &model).unwrap().finish().unwrap();
        let reader = ModelReader::open(&before).unwrap();
        let (mended, changes) = reader.mended_for_onert().unwrap();
        assert_eq!(changes.len(), 2, "{changes:?}");
        let after = folder.path().join(format!("after.{schema}"));
        ModelWriter::create(&after, &mended).unwrap().origin(&reader).finish().unwrap();
        assert_eq!(ModelReader::open(&after).unwrap().forecast(), None);
        let inputs = json!([[1.0, 2.0, 0.0, 0.0]]);
        jobs.extend([before, after].map(|path| json!({"path": path, "inputs": inputs})));
        let said = "Fail to load model: Invalid number of input tensors for this operation.\n";
        expected.push(json!({"failed": "load_model_from_file", "said": said}));
        let (made, infos) = ([[2.5, 0.0, 1.0 / 1024.0, 0.5_f64.powi(24)]], json!([[0, [1, 1, 4]]]));
        expected.push(json!({"inputs": [[0, [1, 4]]], "outputs": infos, "made": made}));
    }
    let Some(found) = run(folder.path(), &json!(jobs)) else { return };
    assert_eq!(found, expected);
}

/// What is said of mended models of real packages comes true, some of them run, and LiteRT computes
/// the same bits before and after.
#[test]
fn mended_real_models() {
    let folder = tempfile::tempdir().unwrap();
    let (mut jobs, mut forecasts, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    for (at, before) in Client::models().into_iter().enumerate() {
        let reader = ModelReader::open(&before).unwrap();
        let (mut model, mut changes) = reader.mended_for_onert().unwrap();
        changes.extend(model.fix_shapes());
        if changes.is_empty() {
            continue;
        }
        let path = folder.path().join(format!("{at}.tflite"));
        ModelWriter::create(&path, &model).unwrap().origin(&reader).finish().unwrap();
        jobs.push(json!({"path": path}));
        forecasts.push((path.clone(), ModelReader::open(&path).unwrap().forecast()));
        pairs.extend([before, path]);
    }
    if jobs.is_empty() {
        return;
    }
    if let Some(found) = Client::LITERT.run("litert_run.py", &pairs) {
        for (made, paths) in found.as_array().unwrap().chunks(2).zip(pairs.chunks(2)) {
            assert_eq!(made[0], made[1], "{paths:?}");
        }
    }
    let Some(found) = run(folder.path(), &json!(jobs)) else { return };
    came_true(&forecasts, &found);
    let running = forecasts.iter().filter(|(_, forecast)| forecast.is_none()).count();
    assert!(running >= 9, "{running} of {} run", found.len());
}

/// What onert reads of sparse constants, and what it says of the others.
#[test]
fn sparse_constants() {
    let folder = tempfile::tempdir().unwrap();
    let (mut jobs, mut forecasts) = (Vec::new(), Vec::new());
    let dense = |dense_size| SparseLevel { dense_size, ..SparseLevel::default() };
    let csr = |segments: SparseIndices, indices: SparseIndices| SparseLevel {
        format: DimensionType::SPARSE_CSR,
        segments: Some(segments),
        indices: Some(indices),
        ..SparseLevel::default()
    };
    let i32s = |numbers: &[i32]| SparseIndices::I32(numbers.to_vec());
    let u16s = |numbers: &[u16]| SparseIndices::U16(numbers.to_vec());
    let u8s = |numbers: &[u8]| SparseIndices::U8(numbers.to_vec().into());
    let rows = || csr(u16s(&[0, 2, 4]), u16s(&[0, 1, 0, 3]));
    let block = || csr(u16s(&[0, 1, 2]), u16s(&[1, 3]));
    let matrix = |order: &[i32], levels: Vec<SparseLevel>| (vec![2, 4], order.to_vec(), levels);
    let vector = |levels: Vec<SparseLevel>| (vec![8], vec![0], levels);
    let blocks = |levels: Vec<SparseLevel>| (vec![32, 4], vec![0, 1, 2, 3], levels);
    for ((shape, traversal_order, levels), block_map) in [
        (matrix(&[0, 1], vec![dense(2), rows()]), vec![]),
        (matrix(&[0, 1], vec![csr(u16s(&[0, 2]), u16s(&[0, 1])), rows()]), vec![]),
        (matrix(&[0, 1], vec![dense(2), dense(4)]), vec![]),
        (matrix(&[1, 0], vec![dense(2), rows()]), vec![]),
        (matrix(&[0, 1, 2], vec![dense(2), rows(), dense(2)]), vec![1]),
        (matrix(&[0, 1, 2], vec![dense(2), rows(), dense(2)]), vec![0]),
        (blocks(vec![dense(2), block(), dense(16), dense(1)]), vec![0, 1]),
        (blocks(vec![dense(2), block(), dense(16), dense(1)]), vec![1, 0]),
        (blocks(vec![dense(16), block(), dense(2), dense(1)]), vec![0, 1]),
        (blocks(vec![dense(2), block(), dense(16), rows()]), vec![0, 1]),
        (blocks(vec![block(), block(), dense(16), dense(1)]), vec![0, 1]),
        (blocks(vec![dense(2), dense(4), dense(16), dense(1)]), vec![0, 1]),
        (
            blocks(vec![dense(2), csr(i32s(&[0, 1, 2]), u16s(&[1, 3])), dense(16), dense(1)]),
            vec![0, 1],
        ),
        (
            blocks(vec![dense(2), csr(u16s(&[0, 1, 2]), i32s(&[1, 3])), dense(16), dense(1)]),
            vec![0, 1],
        ),
        (
            blocks(vec![dense(2), csr(u8s(&[0, 1, 2]), u8s(&[1, 3])), dense(16), dense(1)]),
            vec![0, 1],
        ),
        (vector(vec![dense(8)]), vec![]),
        (vector(vec![csr(u16s(&[0, 4]), u16s(&[0, 1, 4, 7]))]), vec![]),
    ] {
        let mut model = models::dense(Schema::Circle);
        let [_, weights, bias, y] = &mut model.subgraphs[0].tensors[..] else { panic!("tensors") };
        (bias.shape, y.shape) = (vec![shape[0]], vec![1, shape[0]]);
        weights.shape = shape;
        weights.sparsity = Some(Box::new(Sparsity { traversal_order, block_map, levels }));
        model.buffers[1].data = vec![0; 128].into();
        model.buffers[2].data = vec![0; 128].into();
        let path = folder.path().join(format!("{}.circle", jobs.len()));
        ModelWriter::create(&path, &model).unwrap().finish().unwrap();
        jobs.push(json!({"path": path, "inputs": [[1.0, 2.0, 3.0, 4.0]]}));
        let reader = ModelReader::open(&path).unwrap();
        forecasts.push((path, reader.forecast()));
    }
    let Some(found) = run(folder.path(), &json!(jobs)) else { return };
    came_true(&forecasts, &found);
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
    let (mut jobs, mut forecasts) = (Vec::new(), Vec::new());
    for (at, bytes) in cases.into_iter().enumerate() {
        let mut model = models::add(Schema::Circle, [10.0, 20.0, 30.0, 40.0]);
        model.set_metadata(TrainingInfo::METADATA, bytes);
        let path = folder.path().join(format!("{at}.circle"));
        ModelWriter::create(&path, &model).unwrap().finish().unwrap();
        jobs.push(json!({"path": path}));
        let forecast = ModelReader::open(&path).unwrap().forecast();
        forecasts.push((path, forecast));
    }
    assert_eq!(forecasts.iter().filter(|(_, forecast)| forecast.is_none()).count(), 5);
    let Some(found) = run(folder.path(), &json!(jobs)) else { return };
    came_true(&forecasts, &found);
}

#[track_caller]
fn came_true(forecasts: &[(PathBuf, Option<Reaction>)], found: &[Json]) {
    assert_eq!(forecasts.len(), found.len());
    let mut wrong = Vec::new();
    for ((path, forecast), found) in forecasts.iter().zip(found) {
        if !is_so(forecast.as_ref(), found) {
            wrong.push(format!("{}: {forecast:?}, but {found}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Tells whether onert stops where a forecast says, and says what it says.
fn is_exact(forecast: Option<&Reaction>, found: &Json) -> bool {
    forecast.and_then(Reaction::stops_at) == stopped(found) && is_so(forecast, found)
}

fn stopped(found: &Json) -> Option<Stage> {
    let call = found["failed"].as_str().or(found["ended"].as_str())?;
    Some(match call {
        "load_model_from_file" => Stage::Load,
        "prepare" => Stage::Prepare,
        _ => Stage::Run,
    })
}

/// Tells whether a forecast came true: that what it says stops onert, unless something else does
/// before.
fn is_so(forecast: Option<&Reaction>, found: &Json) -> bool {
    let (failed, ended) = (found["failed"].as_str(), found["ended"].as_str());
    let said = found["said"].as_str().unwrap_or_default();
    let stopped = stopped(found);
    match forecast {
        None => stopped.is_none(),
        Some(Reaction::Fails { stage, message }) => match stopped {
            Some(found) if found == *stage => failed.is_some() && said.contains(&**message),
            Some(found) => (found as u8) < (*stage as u8),
            None => false,
        },
        Some(Reaction::Crashes { stage }) => match stopped {
            Some(found) if found == *stage => ended.is_some(),
            Some(found) => (found as u8) < (*stage as u8),
            None => false,
        },
        Some(Reaction::Needs(Need::Kernel)) => {
            stopped == Some(Stage::Prepare)
                && said.contains("Unable to find associated kernel for op")
        }
        Some(Reaction::Needs(Need::Shape)) => stopped != Some(Stage::Load),
        // Anything can be what is not defined, not tried, or wrong.
        Some(_) => true,
    }
}
