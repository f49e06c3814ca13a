//! Exports in the runtime's own loader of ONNX.

use std::{fs, path::Path};

use rten::{Model, Value, ValueType};
use rten_format::Reader;
use serde_json::{Value as Json, json};
use tensor_core::{Extent, compare::compare};

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
    let whole = Extent::first(reader.source().len());
    let file = export.with_extension("rten");
    fs::write(&file, reader.source().read(whole, "file").unwrap()).unwrap();
    let model = load(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
    let exported = load(export).unwrap_or_else(|error| panic!("{name}, exported: {error}"));
    let Some(runs) = runs else { return 0 };
    let runs: Json = serde_json::from_slice(&fs::read(runs).unwrap()).unwrap();
    let mut compared = 0;
    for run in runs["runs"].as_array().unwrap() {
        // What the runtime cannot compute with its own file it need not with ours.
        let Ok(expected) = outputs(&model, run) else { continue };
        let found = outputs(&exported, run);
        let found = found.unwrap_or_else(|error| panic!("{name}, exported: {error}"));
        assert_eq!(found.len(), expected.len(), "{name}");
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_same(&format!("{name}, output {at}"), found, expected);
            compared += 1;
        }
    }
    compared
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

#[track_caller]
fn assert_same(at: &str, found: &Value, expected: &Value) {
    if let (Value::Sequence(found), Value::Sequence(expected)) = (found, expected) {
        assert_eq!(found, expected, "{at}");
        return;
    }
    let (found, expected) = (result(found.clone()), result(expected.clone()));
    assert_eq!(found.info(), expected.info(), "{at}");
    let comparison = compare(&found.view(), &expected.view(), CLOSE).unwrap();
    assert!(comparison.is_close(), "{at}: {comparison:?}");
}
