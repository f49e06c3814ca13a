//! What a model would be like, before it is written.

use modelcrate::tensor_core::{Finding, Report, Severity};
use serde::Serialize;

use crate::{options::Force, outcome::Outcome, output};

/// What the checks say of a model that is to be written.
#[derive(Default, Serialize)]
pub(crate) struct Checked {
    /// Whether it is not written for that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    refused: bool,
    /// Errors and warnings that were not there before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
}

impl Checked {
    /// Compares what is found in a model with what was found in the one that it is made of.
    pub(crate) fn of(after: &Report, before: &Report, force: Force) -> Self {
        let new = after.new_since(before).into_iter();
        let findings: Vec<_> = new.filter(|found| found.severity > Severity::Note).collect();
        let is_broken = findings.iter().any(|found| found.severity == Severity::Error);
        Self { refused: is_broken && !force.force, findings }
    }

    /// Adds what is to be said of the parts that it was made of.
    pub(crate) fn found(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
    }

    pub(crate) const fn is_refused(&self) -> bool {
        self.refused
    }

    pub(crate) const fn outcome(&self) -> Outcome {
        if self.refused { Outcome::Invalid } else { Outcome::Fine }
    }

    /// Writes what was found, behind what became of the model at `path`.
    pub(crate) fn text(&self, path: &str, done: &str) -> String {
        let refused = format!("{path}: not written, as it would be invalid (--force writes it)\n");
        let mut text = if self.refused { refused } else { done.to_owned() };
        text.extend(self.findings.iter().map(output::finding_text));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_errors_are_refused_unless_forced() {
        let report = |findings: &[&Finding]| {
            let mut report = Report::default();
            findings.iter().for_each(|finding| report.add((*finding).clone()));
            report
        };
        let [old, new] = ["a", "b"].map(|rule| Finding::error(rule, "is wrong"));
        let (warning, note) = (Finding::warning("c", "is odd"), Finding::note("d", "is so"));
        let before = report(&[&old]);
        let checked =
            Checked::of(&report(&[&old, &warning, &note]), &before, Force { force: false });
        assert!(!checked.is_refused() && checked.outcome() == Outcome::Fine);
        assert_eq!(checked.findings, [warning]);
        let after = report(&[&old, &new]);
        let checked = Checked::of(&after, &before, Force { force: false });
        assert!(checked.is_refused() && checked.outcome() == Outcome::Invalid);
        let text = checked.text("m", "m: written\n");
        assert!(text.starts_with("m: not written, as it would be invalid (--force writes it)\n"));
        assert!(text.contains("[b]") && !text.contains("[a]"), "{text}");
        assert_eq!(Checked::of(&after, &before, Force { force: true }).outcome(), Outcome::Fine);
    }
}
