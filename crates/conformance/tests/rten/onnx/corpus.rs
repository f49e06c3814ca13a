//! The files of RTen's own converter.

use std::{fs, path::Path};

use rten_format::{
    Reader,
    onnx::{Export, ExternalData},
};
use serde_json::Value as Json;

use super::{Exports, assert_sound};

/// Outputs that are not what the file of expected outputs says.
const EXCEPTIONS: [(&str, &str); 1] = [
    // That file says NaN for everything that is not finite.
    ("dtypes", "o15"),
];

/// Outputs of operators that ONNX Runtime 1.31.1 does not have in the newest operator set: it knows
/// no Multinomial behind release 7, and Attention needs release 23.
const NOT_IMPLEMENTED: [(&str, &str); 1] = [("new_ops", "Multinomial.18.0")];

fn files() -> Vec<(String, Reader)> {
    let files = test_support::files("rten/valid", "rten");
    assert_eq!(files.len(), 22);
    let open = |path: &Path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, Reader::open(path).unwrap())
    };
    files.iter().map(|path| open(path)).collect()
}

/// Returns the name that files of all versions of a model share.
fn model(name: &str) -> &str {
    name.split('.').next().unwrap()
}

fn runs(name: &str) -> Option<std::path::PathBuf> {
    let path = test_support::testdata("rten/valid").join(format!("{}.run.json", model(name)));
    path.exists().then_some(path)
}

fn listed<'a>(list: &[(&'a str, &'a str)], name: &str) -> Vec<&'a str> {
    list.iter().filter(|(of, _)| *of == model(name)).map(|(_, output)| *output).collect()
}

/// Asserts that every run gave what is expected.
#[track_caller]
fn assert_outputs(name: &str, found: &Json) -> usize {
    let Some(path) = runs(name) else { return 0 };
    let expected: Json = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let expected = expected["runs"].as_array().unwrap();
    let found_runs = found["runs"].as_array().unwrap();
    assert_eq!(found_runs.len(), expected.len(), "{name}");
    let names = found["outputs"].as_array().unwrap();
    let mut compared = 0;
    for (found_run, expected) in found_runs.iter().zip(expected) {
        let without = listed(&NOT_IMPLEMENTED, name);
        let outputs = expected["outputs"].as_object().unwrap();
        let outputs = outputs.iter().filter(|(output, _)| !without.contains(&output.as_str()));
        let found_run = found_run.as_array().unwrap();
        let outputs: Vec<_> = outputs.collect();
        assert_eq!(found_run.len(), outputs.len(), "{name}");
        for (output, expected) in outputs {
            let at = names.iter().position(|name| name[0] == **output);
            // Only the model without operators gives out its input, under another name.
            let at = at.or_else(|| (model(name) == "passthrough").then_some(0));
            let at = at.unwrap_or_else(|| panic!("{name} has no output {output}"));
            let any_not_finite = listed(&EXCEPTIONS, name).contains(&output.as_str());
            assert_close(&format!("{name} {output}"), &found_run[at], expected, any_not_finite);
            compared += 1;
        }
    }
    compared
}

/// Asserts that two tensors are the same up to a thousandth.
#[track_caller]
fn assert_close(what: &str, found: &Json, expected: &Json, any_not_finite: bool) {
    assert_eq!(found["shape"], expected["shape"], "{what}");
    let (found, expected) =
        (found["data"].as_array().unwrap(), expected["data"].as_array().unwrap());
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let is_close = match (number(found), number(expected)) {
            (Some(found), Some(expected)) => {
                (found - expected).abs() <= 1e-3 * expected.abs().max(0.1)
            }
            (None, None) => found == expected || any_not_finite,
            _ => false,
        };
        assert!(is_close, "{what}: element {at} is {found}, expected {expected}");
    }
}

/// Returns what is finite.
fn number(value: &Json) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(|truth| f64::from(u8::from(truth))))
}

fn assert_same_outputs(exports: &Exports, names: &[String]) {
    let Some(found) = exports.run() else { return };
    assert_eq!(found.len(), names.len());
    let mut compared = 0;
    for (name, found) in names.iter().zip(&found) {
        assert_sound(name, found);
        compared += assert_outputs(name, found);
    }
    assert_eq!(compared, EXPECTED_OUTPUTS);
}

/// How many outputs the files of expected outputs have, over all versions of each model and all
/// runs, but for [`NOT_IMPLEMENTED`].
const EXPECTED_OUTPUTS: usize = 446;

#[test]
fn every_file_gives_the_outputs_of_rten() {
    let mut exports = Exports::new();
    let mut names = Vec::new();
    for (name, reader) in files() {
        let without = listed(&NOT_IMPLEMENTED, &name).join(",");
        let without = if without.is_empty() { "-".to_owned() } else { without };
        let exported =
            exports.add_with(&name, &reader, runs(&name), &without, Export::new(&reader));
        assert_eq!(exported.data, None);
        assert_eq!(exported.opset, if model(&name) == "new_ops" { 23 } else { 20 });
        names.push(name);
    }
    #[cfg(feature = "peers")]
    assert_eq!(exports.compared, EXPECTED_OUTPUTS + 2);
    assert_same_outputs(&exports, &names);
}

#[test]
fn constants_may_be_in_another_file() {
    let mut exports = Exports::new();
    let mut names = Vec::new();
    let mut with_data = 0;
    for (name, reader) in files() {
        let without = listed(&NOT_IMPLEMENTED, &name).join(",");
        if !without.is_empty() {
            // The script loads it from memory, where the data file is not found.
            continue;
        }
        let export = Export::new(&reader).external_data(ExternalData::From(0));
        let exported = exports.add_with(&name, &reader, runs(&name), "-", export);
        with_data += usize::from(exported.data.is_some());
        names.push(name);
    }
    assert_eq!(with_data, 7);
    let Some(found) = exports.run() else { return };
    for (name, found) in names.iter().zip(&found) {
        assert_sound(name, found);
        assert_outputs(name, found);
    }
}
