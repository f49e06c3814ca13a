//! The cases that ONNX tests its backends with, converted by RTen's own converter and exported.
//!
//! `operators.txt` has all that RTen computes with the converted file, and that is not the same in RTen
//! and ONNX Runtime with the export, with the reason.

use std::{collections::BTreeMap, path::Path};

use conformance::python::Client;
use rten::Value;
use rten_format::{
    Reader,
    onnx::Export,
    tensor_core::{TensorBuf, compare::Tolerance, output::Durability},
};
use serde_json::{Value as Json, json};

use crate::runtime::{
    client::{result, tensor},
    exported::{compute, is_close},
};

/// What is not equal, one case a line: its name, what is wrong, and why.
const KNOWN: &str = include_str!("operators.txt");

/// How many cases RTen computes with the converted file.
const COMPUTED: usize = 790;

#[test]
fn cases_of_every_operator() {
    let folder = tempfile::tempdir().unwrap();
    let made = Client::RTEN_CONVERT.run("operator_cases.py", &[folder.path()]);
    let Some(made) = made else { return };
    assert_eq!(made["cases"], 1884);
    let mut wrong = BTreeMap::new();
    let mut computed = Vec::new();
    let mut arguments = Vec::new();
    for name in made["made"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        let path = |end: &str| folder.path().join(format!("{name}{end}"));
        let (export, runs) = (path(".onnx"), path(".run.json"));
        match of_case(&path(".rten"), &export, &runs) {
            Ok(outputs) if outputs.is_empty() => {}
            Ok(outputs) => {
                computed.push((name, outputs));
                arguments.extend([export, runs, "-".into()]);
            }
            Err(what) => drop(wrong.insert(name, what)),
        }
    }
    let Some(found) = Client::ONNX_RUNTIME.run("onnx_run.py", &arguments) else { return };
    for ((name, expected), found) in computed.iter().zip(found.as_array().unwrap()) {
        if let Err(what) = in_onnx_runtime(found, expected) {
            wrong.insert(name, what);
        }
    }
    let found: Vec<String> = wrong.iter().map(|(name, what)| format!("{name}: {what}")).collect();
    let known = KNOWN.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let known: Vec<&str> = known.map(|line| line.split(" -- ").next().unwrap()).collect();
    assert!(found == known, "{}", found.join("\n"));
    assert_eq!(computed.len(), COMPUTED);
}

/// Exports a case and runs it in RTen; returns the outputs, none where RTen cannot run the file itself.
fn of_case(file: &Path, export: &Path, runs: &Path) -> Result<Vec<Vec<Value>>, &'static str> {
    let reader = Reader::open(file).map_err(|_| "not opened")?;
    let exported = Export::new(&reader).durability(Durability::Cached).write(export);
    // What the runtime does not compute need not be exported.
    match compute(&reader, if exported.is_ok() { export } else { file }, Some(runs)) {
        Err(_) => Ok(Vec::new()),
        Ok(Ok(outputs)) if exported.is_ok() || outputs.is_empty() => Ok(outputs),
        Ok(_) if exported.is_err() => Err("not exported"),
        Ok(_) => Err("differs in RTen"),
    }
}

/// Compares what ONNX Runtime computes with what RTen does.
fn in_onnx_runtime(found: &Json, expected: &[Vec<Value>]) -> Result<(), &'static str> {
    if !found["error"].is_null() {
        return Err("refused by ONNX Runtime");
    }
    let runs = found["runs"].as_array().unwrap();
    let pairs = runs.iter().zip(expected);
    let mut pairs =
        pairs.flat_map(|(found, expected)| found.as_array().unwrap().iter().zip(expected));
    if !pairs.all(|(found, expected)| is_same(found, expected)) {
        return Err("differs in ONNX Runtime");
    }
    if found["check"].is_null() { Ok(()) } else { Err("refused by the checker") }
}

fn is_same(found: &Json, expected: &Value) -> bool {
    if matches!(expected, Value::Sequence(_)) {
        // RTen gave the same with both, and members have no types of their own.
        return true;
    }
    let mut found = found.clone();
    found["dtype"] = json!(match found["dtype"].as_str().unwrap() {
        "float32" => "f32",
        "int8" => "i8",
        "uint8" => "u8",
        _ => "i32",
    });
    is_close(&finite(&tensor(&found)), &result(expected.clone()), CLOSE)
}

/// Returns a tensor with `NaN` for all that is not finite, as the results of RTen have it.
fn finite(tensor: &TensorBuf) -> TensorBuf {
    let Ok(numbers) = tensor.view().to_vec::<f32>() else { return tensor.clone() };
    let numbers = numbers.into_iter().map(|it| if it.is_finite() { it } else { f32::NAN });
    let shape = tensor.info().shape.clone();
    TensorBuf::from_slice(shape, &numbers.collect::<Vec<_>>()).unwrap()
}

/// By how much two runtimes may differ.
const CLOSE: Tolerance = Tolerance { rtol: 1e-3, atol: 1e-4, equal_nan: true };
