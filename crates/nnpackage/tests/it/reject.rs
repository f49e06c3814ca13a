//! Every package of `testdata/nnpackage/invalid` gets the verdict of `cases.toml`.

use std::path::Path;

use nnpackage::{Reaction, Reader, tensor_core::Severity};
use serde_json::Value as Json;
use test_support::testdata;

/// What is said of a file: expectation, rule, message, and what stops onert.
#[derive(Debug, Default, PartialEq)]
struct Verdict {
    expect: String,
    rule: String,
    message: String,
    onert: String,
}

impl Verdict {
    fn of_open(error: &nnpackage::Error) -> Self {
        let (rule, message) = (error.rule().to_owned(), error.to_string());
        Self { expect: "open-error".to_owned(), rule, message, onert: String::new() }
    }

    /// Takes the first of the gravest findings.
    fn of_report(report: &tensor_core::Report, onert: Option<Reaction>) -> Self {
        let worst = report.worst();
        let expect = match worst {
            Some(Severity::Error) => "error",
            Some(Severity::Warning) => "warning",
            Some(Severity::Note) => "note",
            None => "nothing",
        };
        let finding = report.findings().iter().find(|finding| Some(finding.severity) == worst);
        let onert = onert.map_or_else(|| "runs it".to_owned(), |reaction| reaction.to_string());
        Self {
            expect: expect.to_owned(),
            rule: finding.map_or_else(String::new, |finding| finding.rule.to_string()),
            message: finding.map_or_else(String::new, |finding| finding.message.clone()),
            onert,
        }
    }
}

fn verdict(path: &Path) -> Verdict {
    match Reader::open(path) {
        Ok(reader) => Verdict::of_report(&reader.validate(), reader.forecast()),
        Err(error) => Verdict::of_open(&error),
    }
}

fn cases() -> Vec<Json> {
    let text = std::fs::read_to_string(testdata("nnpackage/cases.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    serde_json::to_value(table).unwrap()["case"].as_array().unwrap().clone()
}

#[test]
fn every_case_gets_its_verdict() {
    let cases = cases();
    assert_eq!(cases.len(), testdata("nnpackage/invalid").read_dir().unwrap().count());
    for case in cases {
        let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
        if text("file").ends_with(".circle") || text("file").ends_with(".tflite") {
            // Cases of circle-format.
            continue;
        }
        let expected = Verdict {
            expect: text("expect"),
            rule: text("rule"),
            message: text("message"),
            onert: text("onert"),
        };
        let found = verdict(&testdata("nnpackage/invalid").join(text("file")));
        assert_eq!(found, expected, "{}: {}", text("file"), text("why"));
    }
}
