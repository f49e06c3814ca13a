//! The test data: every folder says where its files come from, every invalid file what is wrong.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use super::{Files, Violation};

pub(super) fn check(files: &Files, violations: &mut Vec<Violation>) -> Result<()> {
    let formats: BTreeSet<&str> =
        files.below("testdata").filter_map(|(path, _)| Some(path.split_once('/')?.0)).collect();
    for format in formats {
        check_format(&format!("testdata/{format}"), files, violations)?;
    }
    Ok(())
}

fn check_format(folder: &str, files: &Files, violations: &mut Vec<Violation>) -> Result<()> {
    let readme = format!("{folder}/README.md");
    if files.text(&readme).is_none() {
        let message = "there is no such file, expected how each file of the folder came to be";
        violations.push(Violation::new(readme, message));
    }
    let path = format!("{folder}/cases.toml");
    let text = files.text(&path).unwrap_or_default();
    let cases = cases(text).with_context(|| path.clone())?;
    let invalid = format!("{folder}/invalid");
    let stored: Vec<&str> =
        files.below(&invalid).map(|(file, _)| file).filter(|file| *file != "README.md").collect();
    for file in &stored {
        if !cases.iter().any(|case| covers(case, file)) {
            let message = format!("no case names this file, expected one in {path}");
            violations.push(Violation::new(format!("{invalid}/{file}"), message));
        }
    }
    for case in &cases {
        if !stored.iter().any(|file| covers(case, file)) {
            let message = format!("a case names {case:?}, expected that file in {invalid}");
            violations.push(Violation::new(&path, message));
        }
    }
    Ok(())
}

/// Returns the key `file` of every table `[[case]]`.
fn cases(text: &str) -> Result<BTreeSet<String>> {
    let table: Table = text.parse()?;
    let cases = table.get("case").and_then(Value::as_array);
    let cases = cases.into_iter().flatten();
    cases
        .map(|case| {
            let file = case.get("file").and_then(Value::as_str);
            let file = file.context("a case names no file, expected the key `file`")?;
            Ok(file.to_owned())
        })
        .collect()
}

/// Returns whether a case is about this file, or about a folder that it lies in.
fn covers(case: &str, file: &str) -> bool {
    file.strip_prefix(case).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<const N: usize>(files: [(&str, &str); N]) -> Vec<String> {
        let mut violations = Vec::new();
        check(&Files::of(files), &mut violations).unwrap();
        violations.iter().map(Violation::to_string).collect()
    }

    #[test]
    fn named_files_pass() {
        let files = [
            ("testdata/README.md", "# Test data\n"),
            ("testdata/a/README.md", "# a\n"),
            (
                "testdata/a/cases.toml",
                "[[case]]\nfile = \"later.zt\"\n[[case]]\nfile = \"package\"\n",
            ),
            ("testdata/a/invalid/README.md", "# Invalid\n"),
            ("testdata/a/invalid/later.zt", ""),
            ("testdata/a/invalid/package/metadata/MANIFEST", ""),
            ("testdata/a/valid/one.zt", ""),
        ];
        assert_eq!(found(files), [""; 0]);
    }

    #[test]
    fn missing_readme_is_found() {
        assert_eq!(
            found([("testdata/a/valid/one.zt", "")]),
            ["testdata/a/README.md: there is no such file, \
                 expected how each file of the folder came to be"]
        );
    }

    #[test]
    fn unnamed_and_absent_files_are_found() {
        let files = [
            ("testdata/a/README.md", "# a\n"),
            ("testdata/a/cases.toml", "[[case]]\nfile = \"late\"\n"),
            ("testdata/a/invalid/later.zt", ""),
        ];
        assert_eq!(
            found(files),
            [
                "testdata/a/invalid/later.zt: no case names this file, \
                 expected one in testdata/a/cases.toml",
                "testdata/a/cases.toml: a case names \"late\", \
                 expected that file in testdata/a/invalid",
            ]
        );
    }

    #[test]
    fn case_without_a_file_is_an_error() {
        let error = cases("[[case]]\nname = \"later\"\n").unwrap_err();
        assert_eq!(error.to_string(), "a case names no file, expected the key `file`");
    }
}
