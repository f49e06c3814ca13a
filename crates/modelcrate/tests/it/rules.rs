//! What is found in all of testdata, against the table of rules.

use std::{collections::BTreeMap, fs, path::Path};

use modelcrate::{
    AnyReader, is_model_folder,
    rules::Rule,
    tensor_core::{Finding, Profile, Report},
};

#[test]
fn what_testdata_breaks_is_in_the_table() {
    let mut unknown = BTreeMap::new();
    check(&test_support::workspace().join("testdata"), &mut |path, finding| {
        let rule = Rule::find(&finding.rule);
        if !rule.is_some_and(|rule| rule.severities().any(|known| known == finding.severity)) {
            unknown.insert((finding.rule.to_string(), finding.severity), path.to_owned());
        }
    });
    assert!(unknown.is_empty(), "expected in rules.md: {unknown:#?}");
}

fn check(path: &Path, take: &mut impl FnMut(&Path, &Finding)) {
    if path.is_dir() && !is_model_folder(path) {
        for entry in fs::read_dir(path).unwrap() {
            check(&entry.unwrap().path(), take);
        }
        return;
    }
    for profile in [Profile::Strict, Profile::Lenient] {
        found(path, profile).findings().iter().for_each(|finding| take(path, finding));
    }
}

fn found(path: &Path, profile: Profile) -> Report {
    match AnyReader::options().profile(profile).open(path) {
        // What unpacks to more takes long.
        Ok(reader) if reader.byte_len() > 1 << 26 => reader.lint(),
        Ok(reader) => reader.validate(),
        Err(error) => {
            let mut report = Report::default();
            report.add(Finding::error(error.rule(), error.to_string()).at(error.at()));
            report
        }
    }
}
