//! Loading and running models, and what they have to compute.

use std::{
    fs,
    panic::{self, AssertUnwindSafe},
    path::Path,
};

use rten::{Model, ModelOptions, NodeId, Value};
use rten_tensor::prelude::*;
use serde_json::Value as Json;
use tensor_core::{
    DType, Shape, TensorBuf,
    compare::{Tolerance, compare},
};
use test_support::testdata;

/// Asserts that a file computes what the sample of this name does, such as `mlp`, however it is
/// loaded.
#[track_caller]
pub(crate) fn runs_like(file: impl AsRef<[u8]>, sample: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.rten");
    fs::write(&path, file).unwrap();
    file_runs_like(&path, sample);
}

/// Like [`runs_like`], but with a file on the disk, whose name has to end in `.rten`.
#[track_caller]
pub(crate) fn file_runs_like(path: &Path, sample: &str) {
    let runs = fs::read(testdata("rten/valid").join(format!("{sample}.run.json"))).unwrap();
    let runs: Json = serde_json::from_slice(&runs).unwrap();
    for (way, model) in load_both_ways(path) {
        for (number, run) in runs["runs"].as_array().unwrap().iter().enumerate() {
            assert_run(&model, run, &format!("{sample}, {way}, run {number}"));
        }
    }
}

/// Loads a file from memory and from a mapping.
#[track_caller]
pub(crate) fn load_both_ways(path: &Path) -> [(&'static str, Model); 2] {
    let loaded = load(fs::read(path).unwrap()).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let mapped = map(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    [("by bytes", loaded), ("by mmap", mapped)]
}

/// Loads a file that is in memory; the error is the text of the runtime, or `panic: ` and that of a
/// panic.
pub(crate) fn load(file: Vec<u8>) -> Result<Model, String> {
    caught(|| options().load(file).map_err(|error| error.to_string()))
}

/// Loads a file from a mapping.
#[expect(unsafe_code, reason = "the runtime maps files without a promise of its own")]
pub(crate) fn map(path: &Path) -> Result<Model, String> {
    // SAFETY: tests do not change their files.
    caught(|| unsafe { options().load_mmap(path) }.map_err(|error| error.to_string()))
}

/// Loads a file as the runtime does unless told otherwise, with its optimiser.
pub(crate) fn load_optimized(path: &Path) -> Result<(), String> {
    caught(|| Model::load_file(path).map(drop).map_err(|error| error.to_string()))
}

pub(super) fn options() -> ModelOptions {
    let mut options = ModelOptions::with_all_ops();
    options.enable_optimization(false);
    options
}

/// Makes an error of a panic: the runtime takes some lies in files for faults of its own.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

#[track_caller]
fn assert_run(model: &Model, run: &Json, at: &str) {
    // Operators may have the names of values, so that `find_node` would find those.
    let find = |ids: &[NodeId], name: &str| {
        let has_name =
            |id: &NodeId| model.node_info(*id).and_then(|info| info.name()) == Some(name);
        ids.iter().copied().find(has_name).unwrap_or_else(|| panic!("{at}: no {name:?}"))
    };
    let [inputs, outputs] = ["inputs", "outputs"].map(|side| run[side].as_object().unwrap());
    let inputs = inputs
        .iter()
        .map(|(name, json)| (find(model.input_ids(), name), value(&tensor(json)).into()));
    let ids: Vec<NodeId> = outputs.keys().map(|name| find(model.output_ids(), name)).collect();
    let found = model.run(inputs.collect(), &ids, None);
    let found = found.unwrap_or_else(|error| panic!("{at}: {error}"));
    for ((name, expected), found) in outputs.iter().zip(found) {
        let (found, expected) = (result(found), tensor(expected));
        assert_eq!(found.info().dtype, expected.info().dtype, "{at}: {name:?}");
        let comparison = compare(&found.view(), &expected.view(), CLOSE);
        let comparison = comparison.unwrap_or_else(|error| panic!("{at}: {name:?}: {error}"));
        assert!(comparison.is_close(), "{at}: {name:?}: {comparison:?}");
    }
}

/// Reads a tensor of a `.run.json`.
pub(crate) fn tensor(json: &Json) -> TensorBuf {
    let shape = json["shape"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap());
    let shape: Shape = shape.collect();
    let numbers = json["data"].as_array().unwrap().iter().map(number);
    let tensor = match json["dtype"].as_str().unwrap() {
        "f32" => TensorBuf::from_slice(shape, &numbers.map(|it| it as f32).collect::<Vec<_>>()),
        "i32" => TensorBuf::from_slice(shape, &numbers.map(|it| it as i32).collect::<Vec<_>>()),
        "i8" => TensorBuf::from_slice(shape, &numbers.map(|it| it as i8).collect::<Vec<_>>()),
        "u8" => TensorBuf::from_slice(shape, &numbers.map(|it| it as u8).collect::<Vec<_>>()),
        other => panic!("element type {other:?}"),
    };
    tensor.unwrap()
}

/// Reads a number; the samples have `NaN` for all that JSON does not have, infinities as well.
fn number(json: &Json) -> f64 {
    match json.as_str() {
        Some("NaN") => f64::NAN,
        Some("Inf") => f64::INFINITY,
        Some("-Inf") => f64::NEG_INFINITY,
        _ => json.as_f64().unwrap_or_else(|| f64::from(u8::from(json.as_bool().unwrap()))),
    }
}

/// Gives a tensor to the runtime.
pub(super) fn value(tensor: &TensorBuf) -> Value {
    let shape = tensor.info().shape.dims().iter().map(|dim| usize::try_from(*dim).unwrap());
    let (shape, view): (Vec<usize>, _) = (shape.collect(), tensor.view());
    let value = match tensor.info().dtype {
        DType::F32 => Value::from_shape(&shape, view.to_vec::<f32>().unwrap()).ok(),
        DType::I32 => Value::from_shape(&shape, view.to_vec::<i32>().unwrap()).ok(),
        DType::I8 => Value::from_shape(&shape, view.to_vec::<i8>().unwrap()).ok(),
        DType::U8 => Value::from_shape(&shape, view.to_vec::<u8>().unwrap()).ok(),
        other => panic!("the runtime has no {other}"),
    };
    value.unwrap()
}

/// Takes a tensor from the runtime, with `NaN` as in [`number`].
pub(crate) fn result(value: Value) -> TensorBuf {
    let shape = |dims: &[usize]| dims.iter().map(|dim| *dim as u64).collect::<Shape>();
    let tensor = match value {
        Value::FloatTensor(it) => {
            let numbers = it.to_vec().into_iter();
            let numbers = numbers.map(|it| if it.is_finite() { it } else { f32::NAN });
            TensorBuf::from_slice(shape(it.shape()), &numbers.collect::<Vec<_>>())
        }
        Value::Int32Tensor(it) => TensorBuf::from_slice(shape(it.shape()), &it.to_vec()),
        Value::Int8Tensor(it) => TensorBuf::from_slice(shape(it.shape()), &it.to_vec()),
        Value::UInt8Tensor(it) => TensorBuf::from_slice(shape(it.shape()), &it.to_vec()),
        other => panic!("no sample has an output such as {:?}", other.dtype()),
    };
    tensor.unwrap()
}

/// By how much kernels for other processors may differ.
pub(super) const CLOSE: Tolerance = Tolerance { rtol: 1e-6, atol: 1e-6, equal_nan: true };
