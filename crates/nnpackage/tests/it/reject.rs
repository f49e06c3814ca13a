//! Every package of `testdata/nnpackage/invalid` gets the verdict of `cases.toml`.

use nnpackage::{Reaction, Reader};
use test_support::{
    cases::{Case, cases},
    testdata,
};

#[test]
fn every_case_gets_its_verdict() {
    let cases = cases("nnpackage");
    assert_eq!(cases.len(), testdata("nnpackage/invalid").read_dir().unwrap().count());
    // Models are cases of circle-format.
    let is_model =
        |case: &Case| [".circle", ".tflite"].iter().any(|end| case.file().ends_with(end));
    for case in cases.into_iter().filter(|case| !is_model(case)) {
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
