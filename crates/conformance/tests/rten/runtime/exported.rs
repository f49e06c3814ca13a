//! Exports in the runtime's own loader of ONNX.

use std::{fs, path::Path};

use rten::{Model, Value, ValueType};
use rten_format::Reader;
use serde_json::{Value as Json, json};
use tensor_core::{
    Extent, TensorBuf,
    compare::{Tolerance, compare},
};

use super::client::{CLOSE, caught, options, result, tensor, value};

/// Asserts that the runtime computes with an export what it computes with the file that it was made
/// from; returns how many outputs were compared.
#[track_caller]
pub(crate) fn computes_the_same(
    name: &str,
    reader: &Reader,
    export: &Path,
    runs: Option<&Path>,
) -> usize {
    let computed = compute(reader, export, runs);
    let computed = computed.unwrap_or_else(|error| panic!("{name}: {error}"));
    let computed = computed.unwrap_or_else(|error| panic!("{name}, exported: {error}"));
    computed.iter().map(Vec::len).sum()
}

/// Returns what the runtime computes with a file, where it computes the same with an export of it;
/// the outer error is what it has against the file, the inner one what it has against the export.
pub(crate) fn compute(
    reader: &Reader,
    export: &Path,
    runs: Option<&Path>,
) -> Result<Result<Vec<Vec<Value>>, String>, String> {
    let whole = Extent::first(reader.source().len());
    let file = export.with_extension("rten");
    fs::write(&file, reader.source().read(whole, "file").unwrap()).unwrap();
    let model = load(&file)?;
    let runs = runs.map_or(json!({ "runs": [] }), |runs| {
        serde_json::from_slice(&fs::read(runs).unwrap()).unwrap()
    });
    let runs = runs["runs"].as_array().unwrap().iter();
    // What the runtime cannot compute with its own file it need not with ours.
    let runs: Vec<_> = runs.filter_map(|run| Some((run, outputs(&model, run).ok()?))).collect();
    Ok(load(export).and_then(|exported| {
        for (run, expected) in &runs {
            same(&outputs(&exported, run)?, expected)?;
        }
        Ok(runs.into_iter().map(|(_, expected)| expected).collect())
    }))
}

fn load(path: &Path) -> Result<Model, String> {
    caught(|| options().load_file(path).map_err(|error| error.to_string()))
}

/// Runs a model and returns all of its outputs, in their order.
fn outputs(model: &Model, run: &Json) -> Result<Vec<Value>, String> {
    let named = |name: &str| {
        let has_name = |id: &&_| model.node_info(**id).and_then(|info| info.name()) == Some(name);
        model.input_ids().iter().find(has_name).copied()
    };
    let mut inputs = Vec::new();
    for (name, json) in run["inputs"].as_object().unwrap() {
        let Some(id) = named(name) else { continue };
        let mut json = json.clone();
        if json["dtype"].is_null() {
            let dtype = model.node_info(id).and_then(|info| info.dtype());
            let is_float =
                dtype.is_some_and(|dtype| dtype == ValueType::Tensor(rten::DataType::Float));
            json["dtype"] = json!(if is_float { "f32" } else { "i32" });
        }
        inputs.push((id, value(&tensor(&json)).into()));
    }
    // None may be asked for twice.
    let mut ids = Vec::new();
    for id in model.output_ids() {
        if !ids.contains(id) {
            ids.push(*id);
        }
    }
    let found = caught(|| model.run(inputs, &ids, None).map_err(|error| error.to_string()))?;
    let position = |id| ids.iter().position(|other| other == id).unwrap();
    Ok(model.output_ids().iter().map(|id| found[position(id)].clone()).collect())
}

fn same(found: &[Value], expected: &[Value]) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} outputs, expected {}", found.len(), expected.len()));
    }
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let is_same = match (found, expected) {
            (Value::Sequence(found), Value::Sequence(expected)) => found == expected,
            _ => is_close(&result(found.clone()), &result(expected.clone()), CLOSE),
        };
        if !is_same {
            return Err(format!("output {at} differs"));
        }
    }
    Ok(())
}

/// Tells whether two tensors have the same shape and type, and the same elements within bounds.
pub(crate) fn is_close(found: &TensorBuf, expected: &TensorBuf, bounds: Tolerance) -> bool {
    let is_alike = found.info() == expected.info();
    is_alike && compare(&found.view(), &expected.view(), bounds).is_ok_and(|it| it.is_close())
}
