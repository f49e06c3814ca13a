//! Results for people and for GitHub.

use std::{collections::HashMap, fmt::Write as _};

use modelcrate::{
    Coverage, Verdict,
    tensor_core::{Finding, Report, Severity, text::grouped},
};
use serde::Serialize;

use super::File;
use crate::{
    escape::escape,
    options::manner,
    output::{finding_text, line_text},
};

/// Writes the verdict on a file and what was found in it.
pub(super) fn text(file: &File) -> String {
    let style = match file.verdict {
        Verdict::Valid => anstyle::AnsiColor::Green.on_default(),
        Verdict::Warnings => anstyle::AnsiColor::Yellow.on_default(),
        Verdict::Invalid => anstyle::AnsiColor::Red.on_default(),
    };
    let mut text = String::new();
    let _ = writeln!(text, "{}: {style}{}{style:#}", escape(&file.path), file.verdict);
    if let Some(hash) = &file.model_hash {
        let _ = writeln!(text, "  model hash {hash}");
    }
    if manner().verbose {
        text.extend(file.findings.findings().iter().map(finding_text));
    } else {
        alike(&file.findings, &mut text);
    }
    text
}

/// Writes findings that say the same once, and of each rule [`MOST`] lines.
fn alike(findings: &Report, text: &mut String) {
    let key = |finding: &Finding| (finding.severity, finding.rule.clone(), finding.message.clone());
    let (mut alike, mut lines) = (HashMap::new(), HashMap::new());
    for finding in findings.findings() {
        *alike.entry(key(finding)).or_insert(0_u64) += 1;
    }
    for finding in findings.findings() {
        let Some(alike) = alike.remove(&key(finding)) else { continue };
        let (written, left) = lines.entry(&finding.rule).or_insert((0, (finding.severity, 0_u64)));
        if *written == MOST {
            *left = (left.0.max(finding.severity), left.1.saturating_add(alike));
            continue;
        }
        *written += 1;
        text.push_str(&if alike == 1 { finding_text(finding) } else { many_text(finding, alike) });
    }
    let mut left: Vec<_> = lines.into_iter().filter(|(_, (_, left))| left.1 > 0).collect();
    left.sort_unstable();
    for (rule, (_, (severity, left))) in left {
        text.push_str(&line_text(severity, rule, &format!("{left} more (-v lists them)")));
    }
}

/// Writes a finding that is there several times.
fn many_text(first: &Finding, alike: u64) -> String {
    let place = first.at.to_string();
    let place = if place.is_empty() { place } else { format!(" (first: {place})") };
    line_text(first.severity, &first.rule, &format!("{alike} × {}{place}", first.message))
}

/// What became of several files.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Tally {
    pub(super) files: u64,
    pub(super) valid: u64,
    pub(super) warnings: u64,
    pub(super) invalid: u64,
    /// Those that could not be read, which are neither.
    pub(super) unread: u64,
    pub(super) skipped: u64,
    /// Findings that were left out.
    pub(super) ignored: u64,
    pub(super) coverage: Coverage,
}

impl Tally {
    pub(super) fn add(&mut self, file: &File) {
        self.files = self.files.saturating_add(1);
        let of_verdict = match file.verdict {
            _ if file.is_unread => &mut self.unread,
            Verdict::Valid => &mut self.valid,
            Verdict::Warnings => &mut self.warnings,
            Verdict::Invalid => &mut self.invalid,
        };
        *of_verdict = of_verdict.saturating_add(1);
        self.ignored = self.ignored.saturating_add(file.ignored);
        self.coverage = self.coverage.and(file.coverage.unwrap_or_default());
    }

    /// Writes the last line; that on one file only has what its own line does not say.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if self.files != 1 || self.skipped > 0 {
            let files = if self.files == 1 { "file" } else { "files" };
            let _ = write!(text, "{} {files}", grouped(self.files));
            let parts = [
                (self.valid, "valid"),
                (self.warnings, "with warnings"),
                (self.invalid, "invalid"),
                (self.unread, "not read"),
                (self.skipped, "skipped"),
            ];
            for (at, (number, what)) in parts.into_iter().filter(|part| part.0 > 0).enumerate() {
                let joint = if at == 0 { ": " } else { ", " };
                let _ = write!(text, "{joint}{} {what}", grouped(number));
            }
            text.push('\n');
        }
        if self.ignored > 0 {
            let findings = if self.ignored == 1 { "finding" } else { "findings" };
            let _ = writeln!(text, "{} {findings} ignored", grouped(self.ignored));
        }
        if let Some(percent) = self.coverage.percent().filter(|percent| *percent < 100) {
            let _ = writeln!(text, "{percent} % of the weight bytes are covered by a digest");
        }
        text
    }
}

/// Writes what was found in a file as annotations of GitHub's.
pub(super) fn annotations(file: &File) -> String {
    let mut text = String::new();
    for finding in file.findings.findings() {
        let command = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let place = finding.at.to_string();
        let joint = if place.is_empty() { "" } else { ": " };
        let message = format!("{place}{joint}{}", finding.message);
        let line = finding.at.line.filter(|_| finding.at.entry.is_none());
        let line = line.map(|line| format!(",line={line}")).unwrap_or_default();
        let [path, rule] = [file.path.as_str(), &*finding.rule].map(property);
        let _ = writeln!(text, "::{command} file={path}{line},title={rule}::{}", data(&message));
    }
    text
}

fn data(text: &str) -> String {
    escape(&text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")).into_owned()
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Lines for a rule.
const MOST: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_that_say_the_same_are_counted() {
        let mut report = Report::default();
        let twice = |offset: u64| Finding::warning("x/padding", "is not zero").offset(offset);
        report.extend([twice(8), Finding::error("x/y", "is wrong"), twice(16)]);
        report.extend((0..8).map(|at| Finding::note("x/gap", format!("{at} bytes"))));
        let mut text = String::new();
        alike(&report, &mut text);
        let text = anstream::adapter::strip_str(&text).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "  warning [x/padding] 2 × is not zero (first: byte 8)");
        assert_eq!(lines[1], "  error [x/y] is wrong");
        assert_eq!(
            (lines[6], lines[7]),
            ("  note [x/gap] 4 bytes", "  note [x/gap] 3 more (-v lists them)")
        );
        assert_eq!(lines.len(), 8);
    }

    #[test]
    fn the_last_line_has_what_there_is() {
        let mut tally =
            Tally { files: 10_000, valid: 9_998, warnings: 1, invalid: 1, ..Tally::default() };
        tally.skipped = 55;
        let expected = "10,000 files: 9,998 valid, 1 with warnings, 1 invalid, 55 skipped\n";
        assert_eq!(tally.text(), expected);
        let one = Tally { files: 1, valid: 1, ..Tally::default() };
        assert_eq!(one.text(), "");
    }
}
