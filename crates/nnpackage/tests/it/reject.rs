//! Every package of `testdata/nnpackage/invalid` gets the verdict of `cases.toml`.

use nnpackage::Reader;
use test_support::{
    cases::{assert_forecasts, cases},
    testdata,
};

#[test]
fn every_case_gets_its_verdict() {
    let all = testdata("nnpackage/invalid").read_dir().unwrap().count();
    assert_eq!(cases("nnpackage").len(), all);
    // Models are cases of circle-format.
    let count = assert_forecasts(
        |case| !case.is_model(),
        |path| {
            let opened = Reader::open(path).map_err(|error| (error.rule(), error.to_string()));
            opened.map(|reader| (reader.validate(), reader.forecast()))
        },
    );
    assert_eq!(count, all - 71);
}
