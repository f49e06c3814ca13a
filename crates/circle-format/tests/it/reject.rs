//! Every model of `testdata/nnpackage/invalid` gets the verdict of `cases.toml`.

use circle_format::Reader;
use test_support::cases::{Case, assert_forecasts};

#[test]
fn every_case_gets_its_verdict() {
    let count = assert_forecasts(Case::is_model, |path| {
        let opened = Reader::open(path).map_err(|error| (error.rule(), error.to_string()));
        opened.map(|reader| (reader.validate(), reader.forecast()))
    });
    assert_eq!(count, 71);
}
