//! Every model of `testdata/nnpackage/invalid` gets the verdict of `cases.toml`.

use circle_format::{Reaction, Reader};
use test_support::cases::{Case, cases};

#[test]
fn every_case_gets_its_verdict() {
    let is_model =
        |case: &Case| [".circle", ".tflite"].iter().any(|end| case.file().ends_with(end));
    let cases: Vec<Case> = cases("nnpackage").into_iter().filter(is_model).collect();
    assert_eq!(cases.len(), 71);
    for case in cases {
        let opened = Reader::open(case.path());
        let found = opened.as_ref().map(Reader::validate);
        case.assert_verdict(found.map_err(|error| (error.rule(), error.to_string())));
        let onert = opened.map_or_else(
            |_| String::new(),
            |reader| reader.forecast().as_ref().map_or("runs it".to_owned(), Reaction::to_string),
        );
        assert_eq!(onert, case.text("onert"), "{}", case.file());
    }
}
