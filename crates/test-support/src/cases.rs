//! What `cases.toml` of a format says of the files in `invalid/`.

use std::{
    fmt::Display,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use tensor_core::Report;
use toml::{Table, Value};

use crate::testdata;

/// One table `[[case]]`.
#[derive(Clone, Debug)]
pub struct Case {
    format: String,
    table: Table,
}

impl Case {
    /// Returns the name of the file, relative to `invalid/`.
    #[must_use]
    pub fn file(&self) -> &str {
        self.text("file")
    }

    /// Returns where the file is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        testdata(&self.format).join("invalid").join(self.file())
    }

    /// Reads the file.
    ///
    /// # Panics
    ///
    /// Where it cannot be read.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let path = self.path();
        fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
    }

    /// Returns the text of a key; an empty one where it is missing.
    #[must_use]
    pub fn text(&self, key: &str) -> &str {
        self.table.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Asserts that the file is refused as the case says, by an error of this rule and message; or
    /// that the first of its gravest findings is the one of the case.
    ///
    /// # Panics
    ///
    /// Where it is not so.
    pub fn assert_verdict(&self, found: Result<Report, (&str, String)>) {
        let (expect, rule, message) = match found {
            Err((rule, message)) => ("open-error".to_owned(), rule.to_owned(), message),
            Ok(report) => {
                let worst = report.worst();
                let expect = worst.map_or_else(|| "nothing".to_owned(), |worst| worst.to_string());
                let first = report.into_iter().find(|finding| Some(finding.severity) == worst);
                let first = first.map(|finding| (finding.rule.into_owned(), finding.message));
                let (rule, message) = first.unwrap_or_default();
                (expect, rule, message)
            }
        };
        let expected = ["expect", "rule", "message"].map(|key| self.text(key));
        assert_eq!([&*expect, &rule, &message], expected, "{}: {}", self.file(), self.text("why"));
    }

    /// Tells whether the file is a model, and not a package of such.
    #[must_use]
    pub fn is_model(&self) -> bool {
        [".circle", ".tflite"].iter().any(|end| self.file().ends_with(end))
    }

    /// Returns the most memory that the file may take: `max_rss_mb`, or 64 MiB.
    #[must_use]
    pub fn bytes_allowed(&self) -> u64 {
        self.number("max_rss_mb", 64) << 20
    }

    /// Returns the most time that the file may take: `max_seconds`, or 5 s.
    #[must_use]
    pub fn time_allowed(&self) -> Duration {
        Duration::from_secs(self.number("max_seconds", 5))
    }

    fn number(&self, key: &str, default: u64) -> u64 {
        let number = self.table.get(key).and_then(Value::as_integer);
        number.and_then(|number| number.try_into().ok()).unwrap_or(default)
    }
}

/// Asserts the verdicts of nnpackages or of models, and what onert makes of each; returns how many there
/// are.
///
/// # Panics
///
/// Where one gets another.
pub fn assert_forecasts<'e, R: Display>(
    is_ours: impl Fn(&Case) -> bool,
    check: impl Fn(&Path) -> Result<(Report, Option<R>), (&'e str, String)>,
) -> usize {
    let ours = cases("nnpackage").into_iter().filter(is_ours);
    let assert = |case: Case| {
        let checked = check(&case.path());
        let onert = checked.as_ref().map_or_else(
            |_| String::new(),
            |(_, onert)| onert.as_ref().map_or("runs it".to_owned(), R::to_string),
        );
        case.assert_verdict(checked.map(|(report, _)| report));
        assert_eq!(onert, case.text("onert"), "{}", case.file());
    };
    ours.map(assert).count()
}

/// Returns the cases of a folder of `testdata/`, in order.
///
/// # Panics
///
/// Where there are none: a test over no cases proves nothing.
#[must_use]
pub fn cases(format: &str) -> Vec<Case> {
    let path = testdata(format).join("cases.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let table: Table = text.parse().unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let cases = table.get("case").and_then(Value::as_array).into_iter().flatten();
    let case = |table: &Table| Case { format: format.to_owned(), table: table.clone() };
    let cases: Vec<Case> = cases.filter_map(Value::as_table).map(case).collect();
    assert!(!cases.is_empty(), "no case in {path:?}");
    cases
}
