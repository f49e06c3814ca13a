//! What a check found: findings with stable rule ids, and the verdict that follows from them.

use std::{borrow::Cow, fmt};

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// Everything that a check found, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(transparent))]
pub struct Report {
    findings: Vec<Finding>,
}

impl Report {
    /// Adds a finding.
    pub fn push(
        &mut self,
        severity: Severity,
        rule: impl Into<Cow<'static, str>>,
        at: At,
        message: impl Into<String>,
    ) {
        let (rule, message) = (rule.into(), message.into());
        self.findings.push(Finding { rule, severity, at, message });
    }

    /// Adds everything that another report found.
    pub fn append(&mut self, other: Self) {
        self.findings.extend(other.findings);
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
        report.push(Severity::Warning, "x/padding", At::file().offset(9), "padding is not zero");
        report.push(Severity::Note, "x/gap", At::file(), "12 bytes belong to nothing");
        assert!(report.is_valid());
        assert_eq!(report.worst(), Some(Severity::Warning));
        report.push(Severity::Error, "x/digest", At::file().tensor("w"), "digest differs");
        assert!(!report.is_valid());
    }

    #[cfg(feature = "serde")]
    #[test]
    fn unknown_places_are_left_out() {
        let mut report = Report::default();
        report.push(Severity::Error, "x/y", At::file().offset(7).tensor("w"), "m");
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            r#"[{"rule":"x/y","severity":"error","at":{"offset":7,"tensor":"w"},"message":"m"}]"#
        );
    }
}
