//! What a check found: findings with stable rule ids, and the verdict that follows from them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt,
};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Readers tolerate it, but someone should mend it.
    Warning,
    /// It breaks the format's text, lies, or is unsafe to read.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Where a finding is, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct At {
    /// A path inside the document, such as `objects."w".components."data"`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub path: Option<String>,
    /// Bytes from the start of the file.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub offset: Option<u64>,
    /// The name of an archive entry.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub entry: Option<String>,
    /// The name of a tensor.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub tensor: Option<String>,
    /// A line of a text document, counted from 1.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub line: Option<u64>,
    /// Where in the line it is, in characters, counted from 1.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub column: Option<u64>,
}

impl At {
    /// Points at the file as a whole.
    #[must_use]
    pub fn file() -> Self {
        Self::default()
    }

    /// Adds a byte offset from the start of the file.
    #[must_use]
    pub fn offset(mut self, offset: impl Into<Option<u64>>) -> Self {
        self.offset = offset.into();
        self
    }

    /// Adds a path inside the document.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Adds the name of an archive entry.
    #[must_use]
    pub fn entry(mut self, name: impl Into<String>) -> Self {
        self.entry = Some(name.into());
        self
    }

    /// Adds a line of a text document, counted from 1.
    #[must_use]
    pub fn line(mut self, line: impl Into<Option<u64>>) -> Self {
        self.line = line.into();
        self
    }

    /// Adds where in its line it is, in characters, counted from 1.
    #[must_use]
    pub fn column(mut self, column: impl Into<Option<u64>>) -> Self {
        self.column = column.into();
        self
    }

    /// Adds the name of a tensor.
    #[must_use]
    pub fn tensor(mut self, name: impl Into<String>) -> Self {
        self.tensor = Some(name.into());
        self
    }
}

/// One thing that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// A stable id, `<format>/<words>`, such as `zt/blob-misaligned`.
    pub rule: Cow<'static, str>,
    /// How much it matters.
    pub severity: Severity,
    /// Where it is.
    pub at: At,
    /// What was found and what was expected, in one sentence.
    pub message: String,
}

impl Finding {
    /// Makes a finding about the file as a whole.
    #[must_use]
    pub fn new(
        severity: Severity,
        rule: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self { rule: rule.into(), severity, at: At::file(), message: message.into() }
    }

    /// Makes an error about the file as a whole.
    #[must_use]
    pub fn error(rule: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, rule, message)
    }

    /// Makes a warning about the file as a whole.
    #[must_use]
    pub fn warning(rule: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, rule, message)
    }

    /// Makes a note about the file as a whole.
    #[must_use]
    pub fn note(rule: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, rule, message)
    }

    /// Says where it is.
    #[must_use]
    pub fn at(mut self, at: At) -> Self {
        self.at = at;
        self
    }

    /// Says at which byte of the file it is.
    #[must_use]
    pub fn offset(mut self, offset: impl Into<Option<u64>>) -> Self {
        self.at = self.at.offset(offset);
        self
    }

    /// Says where in the document it is.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.at = self.at.path(path);
        self
    }

    /// Says in which archive entry it is.
    #[must_use]
    pub fn entry(mut self, name: impl Into<String>) -> Self {
        self.at = self.at.entry(name);
        self
    }

    /// Says in which tensor it is.
    #[must_use]
    pub fn tensor(mut self, name: impl Into<String>) -> Self {
        self.at = self.at.tensor(name);
        self
    }

    /// Says in which line of a text document it is, counted from 1.
    #[must_use]
    pub fn line(mut self, line: impl Into<Option<u64>>) -> Self {
        self.at = self.at.line(line);
        self
    }

    /// Says where in its line it is, in characters, counted from 1.
    #[must_use]
    pub fn column(mut self, column: impl Into<Option<u64>>) -> Self {
        self.at = self.at.column(column);
        self
    }
}

impl Finding {
    /// Returns what says that two findings are one, wherever in the file that moved to.
    fn without_position(&self) -> (&str, Severity, At, String) {
        let mut pieces = self.message.split("byte ");
        let mut message = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            message.push_str("byte ");
            message.push_str(piece.trim_start_matches(|digit: char| digit.is_ascii_digit()));
        }
        let at = self.at.clone().offset(None).line(None).column(None);
        (&self.rule, self.severity, at, message)
    }
}

/// Everything that a check found, in the order of the file.
///
/// Of each rule the first [`PER_RULE`](Self::PER_RULE) findings are kept, and one more says how
/// many are not: a hostile file can have millions of faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(transparent))]
pub struct Report {
    findings: Vec<Finding>,
    #[cfg_attr(feature = "serde", serde(skip))]
    rules: Rules,
}

type Rules = BTreeMap<Cow<'static, str>, Rule>;

/// How often a rule was broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rule {
    listed: usize,
    omitted: u64,
    /// Which finding says how many are left out, where some are.
    summary: usize,
}

impl Report {
    /// How many findings of one rule are kept.
    pub const PER_RULE: usize = 1000;

    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        let rule = self.rules.entry(finding.rule.clone()).or_default();
        if rule.listed < Self::PER_RULE {
            rule.listed = rule.listed.saturating_add(1);
            self.findings.push(finding);
        } else {
            self.omit(finding.rule, finding.severity, 1);
        }
    }

    /// Counts findings of a rule that are not kept.
    fn omit(&mut self, id: Cow<'static, str>, severity: Severity, count: u64) {
        let rule = self.rules.entry(id.clone()).or_default();
        let is_first = rule.omitted == 0;
        rule.omitted = rule.omitted.saturating_add(count);
        let message = format!("{} more are not listed", rule.omitted);
        if is_first {
            rule.summary = self.findings.len();
            self.findings.push(Finding::new(severity, id, message));
        } else if let Some(summary) = self.findings.get_mut(rule.summary) {
            summary.message = message;
            summary.severity = summary.severity.max(severity);
        }
    }

    /// Adds everything that another report found.
    pub fn append(&mut self, other: Self) {
        let Self { findings, rules } = other;
        for (index, finding) in findings.into_iter().enumerate() {
            match summed_up(&rules, index, &finding.rule) {
                Some(omitted) => self.omit(finding.rule, finding.severity, omitted),
                None => self.add(finding),
            }
        }
    }

    /// Returns the findings that an earlier report on the same file does not have: what an edit has
    /// brought in. At which byte or line something is does not count, nor the order; what is found twice
    /// is to be found twice in both.
    #[must_use]
    pub fn new_since(&self, before: &Self) -> Self {
        let mut known = HashMap::<_, u64>::new();
        for finding in &before.findings {
            let count = known.entry(finding.without_position()).or_default();
            *count = count.saturating_add(1);
        }
        let mut new = Self::default();
        for (index, finding) in self.findings.iter().enumerate() {
            if let Some(omitted) = summed_up(&self.rules, index, &finding.rule) {
                let earlier = before.rules.get(&finding.rule).map_or(0, |rule| rule.omitted);
                if omitted > earlier {
                    new.omit(finding.rule.clone(), finding.severity, omitted.abs_diff(earlier));
                }
                continue;
            }
            match known.get_mut(&finding.without_position()) {
                Some(count) if *count > 0 => *count = count.saturating_sub(1),
                _ => new.add(finding.clone()),
            }
        }
        new
    }

    /// Says of every finding that it is in an entry of an archive.
    #[must_use]
    pub fn in_entry(mut self, name: &str) -> Self {
        self.findings.iter_mut().for_each(|finding| finding.at.entry = Some(name.to_owned()));
        self
    }

    /// Tells whether no more findings of a rule are kept, so that none need be made.
    #[must_use]
    pub fn is_full(&self, rule: &str) -> bool {
        self.rules.get(rule).is_some_and(|rule| rule.listed >= Self::PER_RULE)
    }

    /// Returns how many findings were counted but not kept.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.rules.values().map(|rule| rule.omitted).fold(0, u64::saturating_add)
    }

    /// Returns the findings in the order in which they were added.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Tells whether nothing at all was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns the severity of the gravest finding; `None` where there is none.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// Tells whether the file may be relied on: no finding is an error.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.worst() != Some(Severity::Error)
    }
}

/// Returns how many findings of a rule are left out, where the one at `index` says so.
fn summed_up(rules: &Rules, index: usize, rule: &str) -> Option<u64> {
    let rule = rules.get(rule).filter(|rule| rule.summary == index)?;
    (rule.omitted > 0).then_some(rule.omitted)
}

impl Extend<Finding> for Report {
    fn extend<I: IntoIterator<Item = Finding>>(&mut self, findings: I) {
        findings.into_iter().for_each(|finding| self.add(finding));
    }
}

impl IntoIterator for Report {
    type Item = Finding;
    type IntoIter = std::vec::IntoIter<Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.findings.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_finding_decides() {
        let mut report = Report::default();
        assert!(report.is_valid() && report.worst().is_none());
        report.add(Finding::warning("x/padding", "padding is not zero").offset(9));
        report.add(Finding::note("x/gap", "12 bytes belong to nothing"));
        assert!(report.is_valid());
        assert_eq!(report.worst(), Some(Severity::Warning));
        report.add(Finding::error("x/digest", "digest differs").tensor("w"));
        assert!(!report.is_valid());
    }

    fn notes(count: usize) -> Report {
        let mut report = Report::default();
        report.extend((0..count).map(|index| Finding::note("x/gap", index.to_string())));
        report
    }

    #[test]
    fn a_rule_is_listed_so_often_and_then_counted() {
        let mut report = notes(Report::PER_RULE);
        assert!(report.is_full("x/gap") && report.omitted() == 0);
        report.add(Finding::error("x/gap", "the gravest is not listed"));
        report.add(Finding::note("x/gap", "nor is this"));
        report.add(Finding::note("x/other", "this is"));
        assert_eq!(report.findings().len(), Report::PER_RULE + 2);
        let summary = &report.findings()[Report::PER_RULE];
        assert_eq!(
            (summary.severity, summary.message.as_str()),
            (Severity::Error, "2 more are not listed")
        );
        assert!(!report.is_valid());
    }

    #[test]
    fn counts_of_reports_add_up() {
        let mut report = notes(Report::PER_RULE + 3);
        report.append(notes(Report::PER_RULE + 4));
        assert_eq!(report.findings().len(), Report::PER_RULE + 1);
        assert_eq!(report.omitted(), Report::PER_RULE as u64 + 7);
        assert_eq!(report.findings()[Report::PER_RULE].message, "1007 more are not listed");
    }

    #[test]
    fn what_is_new_is_told_from_what_has_moved() {
        let gap = |offset: u64| {
            Finding::note("x/gap", format!("12 bytes at byte {offset} are free")).offset(offset)
        };
        let digest = Finding::error("x/digest", "digest differs").tensor("w");
        let mut before = Report::default();
        before.extend([gap(8), digest.clone()]);
        let mut after = Report::default();
        after.extend([digest.clone(), gap(64), gap(128), digest.clone().tensor("b")]);
        let new = after.new_since(&before);
        assert_eq!(new.findings(), [gap(128), digest.tensor("b")]);
        assert!(before.new_since(&after).is_empty());
    }

    #[test]
    fn what_is_counted_only_may_be_new() {
        let (before, after) = (notes(Report::PER_RULE + 3), notes(Report::PER_RULE + 5));
        assert_eq!(after.new_since(&before).findings()[0].message, "2 more are not listed");
        assert!(before.new_since(&after).is_empty());
    }

    #[cfg(feature = "serde")]
    #[test]
    fn unknown_places_are_left_out() {
        let mut report = Report::default();
        report.add(Finding::error("x/y", "m").at(At::file().offset(7).tensor("w")));
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            r#"[{"rule":"x/y","severity":"error","at":{"offset":7,"tensor":"w"},"message":"m"}]"#
        );
    }
}
