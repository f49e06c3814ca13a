//! Every file of `testdata/rten/invalid` gets the verdict of `cases.toml`, and no cut or change of
//! a small file does more than give an error.

use rten_format::{Reader, tensor_core::Severity};
use serde_json::Value as Json;
use test_support::{files, mutations, testdata, truncations};

use crate::rten_read;

/// Returns what `cases.toml` says of a file: expectation, rule, message.
fn verdict(bytes: Vec<u8>) -> (&'static str, String, String) {
    let reader = match Reader::from_bytes(bytes) {
        Ok(reader) => reader,
        Err(error) => return ("open-error", error.rule().to_owned(), error.to_string()),
    };
    let report = reader.validate();
    let worst = report.worst();
    let expect = match worst {
        Some(Severity::Error) => "verify-error",
        Some(Severity::Warning) => "verify-warning",
        _ => "ok",
    };
    let finding = report.findings().iter().find(|finding| Some(finding.severity) == worst);
    let text = finding.map(|finding| (finding.rule.to_string(), finding.message.clone()));
    let (rule, message) = text.unwrap_or_default();
    (expect, rule, message)
}

#[test]
fn every_invalid_file_gets_its_verdict() {
    let text = std::fs::read_to_string(testdata("rten/cases.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let cases = serde_json::to_value(table).unwrap()["case"].as_array().unwrap().clone();
    assert_eq!(cases.len(), files("rten/invalid", "rten").len());
    for case in cases {
        let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
        let bytes = std::fs::read(testdata("rten/invalid").join(text("file"))).unwrap();
        let (expect, rule, message) = verdict(bytes);
        let found = [Json::from(expect), Json::from(rule), Json::from(message)];
        let expected = ["expect", "rule", "message"].map(|key| case[key].clone());
        assert_eq!(found, expected, "{}", text("file"));
    }
}

/// Small valid files of every kind.
fn small_files() -> Vec<Vec<u8>> {
    let files = files("rten/valid", "rten").into_iter();
    let bytes = files.map(|path| std::fs::read(path).unwrap());
    bytes.filter(|bytes| bytes.len() < 1100).collect()
}

/// The last bytes of model data may be padding.
#[test]
fn every_truncation_is_found() {
    for bytes in small_files() {
        truncations(&bytes, |cut| {
            rten_read::run(cut);
            let (expect, ..) = verdict(cut.to_vec());
            let is_padding = bytes.len() - cut.len() < 8;
            assert!(is_padding || expect.ends_with("error"), "{} of {}", cut.len(), bytes.len());
        });
    }
}

#[test]
fn changed_bytes_break_nothing() {
    for bytes in small_files() {
        mutations(&bytes, rten_read::run);
    }
}
