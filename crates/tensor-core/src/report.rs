//! What a check found: findings with stable rule ids, and the verdict that follows from them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt,
    hash::Hash,
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
}

/// Writes what is known of the place, from the archive entry down to the byte; nothing for a whole file.
impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensor = self.tensor.as_ref().map(|tensor| format!("{tensor:?}"));
        let place = [
            self.entry.as_ref().map(|entry| format!("{entry:?}")),
            // A path may end with the name.
            tensor.filter(|tensor| !self.path.as_ref().is_some_and(|path| path.contains(tensor))),
            self.path.clone(),
            self.line.map(|line| format!("line {line}")),
            self.column.map(|column| format!("column {column}")),
            self.offset.map(|offset| format!("byte {offset}")),
        ];
        f.write_str(&place.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }
}

/// One thing that a check found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
}

macro_rules! places {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty, |$value:ident| $some:expr;)*) => {
        impl At {
            $(
                $(#[doc = $doc])*
                #[must_use]
                pub fn $name(mut self, $value: impl Into<$type>) -> Self {
                    self.$name = $some;
                    self
                }
            )*
        }

        impl Finding {
            $(
                $(#[doc = $doc])*
                #[must_use]
                pub fn $name(mut self, $value: impl Into<$type>) -> Self {
                    self.at = self.at.$name($value);
                    self
                }
            )*
        }
    };
}

places! {
    /// Says at which byte from the start of the file it is.
    offset: Option<u64>, |offset| offset.into();
    /// Says at which path inside the document it is.
    path: String, |path| Some(path.into());
    /// Says in which archive entry it is.
    entry: String, |name| Some(name.into());
    /// Says in which tensor it is.
    tensor: String, |name| Some(name.into());
    /// Says in which line of a text document it is, counted from 1.
    line: Option<u64>, |line| line.into();
    /// Says where in its line it is, in characters, counted from 1.
    column: Option<u64>, |column| column.into();
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

    /// Leaves out indices and counts, too.
    fn without_numbers(&self) -> (&str, Severity, At, String) {
        let (rule, severity, mut at, message) = self.without_position();
        at.path = at.path.as_deref().map(without_numbers);
        at.entry = at.entry.as_deref().map(without_numbers);
        (rule, severity, at, without_numbers(&message))
    }
}

/// Puts `#` in the place of each number. Digits beside a letter are those of a word, such as `f32`, or
/// of a digest.
fn without_numbers(text: &str) -> String {
    let is_digit = |character: char| character.is_ascii_digit();
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, found)) = rest.find(is_digit).and_then(|at| rest.split_at_checked(at)) {
        let behind = found.trim_start_matches(is_digit);
        kept.push_str(before);
        let is_word =
            kept.ends_with(char::is_alphabetic) || behind.starts_with(char::is_alphabetic);
        kept.push_str(if is_word { found.strip_suffix(behind).unwrap_or(found) } else { "#" });
        rest = behind;
    }
    kept + rest
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
    /// brought in. What is found twice is to be found twice in both.
    ///
    /// Neither the order counts, nor at which byte or line something is. Where a finding is gone,
    /// another of its rule and severity that differs in numbers only, such as indices in its path, is
    /// the same one, which has moved. Of a rule of which the earlier report does not list all findings,
    /// only so many are new as there are more now.
    #[must_use]
    pub fn new_since(&self, before: &Self) -> Self {
        let (mut ours, mut theirs) = (self.listed(), before.listed());
        take_same(&mut ours, &mut theirs, Finding::without_position);
        take_same(&mut ours, &mut theirs, Finding::without_numbers);
        let mut gone = HashMap::<&str, Gone>::new();
        for finding in &before.findings {
            let gone = gone.entry(&finding.rule).or_default();
            gone.worst = gone.worst.max(Some(finding.severity));
        }
        let unlisted = before.rules.iter().map(|(id, rule)| (&**id, rule.omitted));
        for (id, count) in theirs.iter().map(|finding| (&*finding.rule, 1)).chain(unlisted) {
            let gone = gone.entry(id).or_default();
            gone.count = gone.count.saturating_add(count);
        }
        let mut new = Self::default();
        for (id, severity, omitted) in self.summaries() {
            let left = gone.entry(id).or_default().take(severity, omitted);
            if left > 0 {
                new.omit(id.clone(), severity, left);
            }
        }
        for finding in ours {
            let is_known = before.omitted_of(&finding.rule) > 0
                && gone.entry(&finding.rule).or_default().take(finding.severity, 1) == 0;
            if !is_known {
                new.add(finding.clone());
            }
        }
        new
    }

    /// Returns the first error that an earlier report on the same file does not have: why a writer
    /// refuses what it is to write.
    #[must_use]
    pub fn new_error_since(&self, before: &Self) -> Option<Finding> {
        let mut new = self.new_since(before).into_iter();
        new.find(|finding| finding.severity == Severity::Error)
    }

    /// Returns the findings that another report does not have to the letter; those that are only
    /// counted are compared by their number.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let (mut ours, mut theirs) = (self.listed(), other.listed());
        take_same(&mut ours, &mut theirs, |finding| finding);
        let mut rest = Self::default();
        rest.extend(ours.into_iter().cloned());
        for (id, severity, omitted) in self.summaries() {
            let left = omitted.saturating_sub(other.omitted_of(id));
            if left > 0 {
                rest.omit(id.clone(), severity, left);
            }
        }
        rest
    }

    /// Returns the findings without those that say how many are left out.
    fn listed(&self) -> Vec<&Finding> {
        let findings = self.findings.iter().enumerate();
        let is_listed = |(index, finding): &(usize, &Finding)| {
            summed_up(&self.rules, *index, &finding.rule).is_none()
        };
        findings.filter(is_listed).map(|(_, finding)| finding).collect()
    }

    /// Returns of which rules findings are left out, the gravest of them, and how many.
    fn summaries(&self) -> impl Iterator<Item = (&Cow<'static, str>, Severity, u64)> {
        self.rules.iter().filter(|(_, rule)| rule.omitted > 0).filter_map(|(id, rule)| {
            Some((id, self.findings.get(rule.summary)?.severity, rule.omitted))
        })
    }

    fn omitted_of(&self, rule: &str) -> u64 {
        self.rules.get(rule).map_or(0, |rule| rule.omitted)
    }

    /// Takes out the findings that something is so of; returns how many those are, with those that
    /// are only counted, and the others.
    #[must_use]
    pub fn split(self, is_so: impl Fn(&Finding) -> bool) -> (u64, Self) {
        let (mut taken, mut rest) = (0_u64, Self::default());
        let Self { findings, rules } = self;
        for (index, finding) in findings.into_iter().enumerate() {
            match summed_up(&rules, index, &finding.rule) {
                omitted if is_so(&finding) => taken = taken.saturating_add(omitted.unwrap_or(1)),
                Some(omitted) => rest.omit(finding.rule, finding.severity, omitted),
                None => rest.add(finding),
            }
        }
        (taken, rest)
    }

    /// Says of every finding that it is in an entry of an archive.
    #[must_use]
    pub fn in_entry(self, name: &str) -> Self {
        self.map(|finding| finding.at.entry = Some(name.to_owned()))
    }

    /// Changes every finding, but for its rule: as where files get other names.
    #[must_use]
    pub fn map(mut self, change: impl FnMut(&mut Finding)) -> Self {
        self.findings.iter_mut().for_each(change);
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

/// Findings of a rule that nothing in a later report is matched with yet.
#[derive(Default)]
struct Gone {
    count: u64,
    /// The gravest of all that the rule had.
    worst: Option<Severity>,
}

impl Gone {
    /// Matches findings with as many; returns how many of them are new, where one is if it is graver
    /// than all before.
    fn take(&mut self, severity: Severity, count: u64) -> u64 {
        let graver = u64::from(Some(severity) > self.worst);
        let taken = self.count.min(count.saturating_sub(graver));
        self.count = self.count.saturating_sub(taken);
        count.saturating_sub(taken)
    }
}

/// Takes out of both what has the same key in both.
fn take_same<'a, K: Eq + Hash>(
    ours: &mut Vec<&'a Finding>,
    theirs: &mut Vec<&'a Finding>,
    key: impl Fn(&'a Finding) -> K,
) {
    let mut unmatched = HashMap::<K, u64>::new();
    for finding in &*theirs {
        let count = unmatched.entry(key(finding)).or_default();
        *count = count.saturating_add(1);
    }
    let mut take = |finding: &'a Finding| match unmatched.get_mut(&key(finding)) {
        Some(count) if *count > 0 => {
            *count = count.saturating_sub(1);
            true
        }
        _ => false,
    };
    ours.retain(|finding| !take(finding));
    theirs.retain(|finding| take(finding));
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
    use std::ops::Range;

    use proptest::{
        collection::vec,
        prelude::*,
        sample::{Index, select},
    };

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
    fn what_is_taken_out_is_counted() {
        let mut report = notes(Report::PER_RULE + 3);
        report.add(Finding::error("x/other", "stays"));
        let (taken, rest) = report.split(|finding| finding.rule == "x/gap");
        assert_eq!((taken, rest.findings().len()), (Report::PER_RULE as u64 + 3, 1));
        let (taken, rest) = notes(Report::PER_RULE + 3).split(|_| false);
        assert_eq!((taken, rest.omitted()), (0, 3));
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
    fn what_has_another_number_now_is_not_new() {
        let at = |path: &str, message: &str| {
            let mut report = Report::default();
            report.add(Finding::error("x/y", message).path(path).entry("data/part_1"));
            report
        };
        let before = at("self_test[1].inputs", "edge \"0:0:12\" leads to models[0]");
        let moved = at("self_test[0].inputs", "edge \"1:0:7\" leads to models[1]");
        assert!(moved.new_since(&before).is_empty());
        assert_eq!(moved.without(&before), moved);
        // What is there once more is new, whatever its number.
        let mut both = before.clone();
        both.append(moved.clone());
        assert_eq!(both.new_since(&before), moved);
        for [path, message] in [
            ["self_test[1].outputs", "edge \"0:0:12\" leads to models[0]"],
            ["self_test[1].inputs", "edge \"0:0:12\" leads to tensors[0]"],
            ["self_test[1].inputs", "edge \"0:0:f16\" leads to models[0]"],
        ] {
            let other = at(path, message);
            assert_eq!(other.new_since(&before), other);
        }
        let words = "f32 2d 3fe1 \u{e9}1 i8x a-1 part_12.bin 0:1 2^64";
        assert_eq!(without_numbers(words), "f32 2d 3fe1 \u{e9}1 i8x a-# part_#.bin #:# #^#");
    }

    #[test]
    fn findings_that_are_only_counted_are_compared_by_number() {
        let (before, after) = (notes(Report::PER_RULE + 3), notes(Report::PER_RULE + 5));
        for new in [after.new_since(&before), after.without(&before)] {
            assert_eq!(new.findings()[0].message, "2 more are not listed");
            assert_eq!(new.findings().len(), 1);
        }
        assert!(before.new_since(&after).is_empty() && before.without(&after).is_empty());
        // Others are among those that are listed.
        let words = |numbers: Range<usize>| {
            let mut report = Report::default();
            report.extend(numbers.map(|number| Finding::note("x/gap", format!("n{number}"))));
            report
        };
        let (all, mut removed) = (words(0..Report::PER_RULE + 3), words(5..Report::PER_RULE + 3));
        assert!(removed.new_since(&all).is_empty());
        // None was so grave.
        removed.add(Finding::error("x/gap", "n"));
        assert_eq!(removed.new_since(&all).worst(), Some(Severity::Error));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn one_more_is_one_new(
            many in select(&[0, 3, 999, 1000, 1005]),
            others in vec((0..2_usize, 0..4, 0..3_usize), 0..20),
            at in any::<Index>(),
            grade in 0..3_usize,
        ) {
            const GRADES: [Severity; 3] = [Severity::Note, Severity::Warning, Severity::Error];
            let report = |findings: &[Finding]| {
                let mut report = Report::default();
                report.extend(findings.iter().cloned());
                report
            };
            let rules = ["x/gap", "x/other"];
            let mut findings: Vec<_> =
                (0..many).map(|n| Finding::note("x/gap", n.to_string())).collect();
            for (rule, place, grade) in others {
                let message = format!("element {place}");
                findings.push(Finding::new(GRADES[grade], rules[rule], message).path("a[0]"));
            }
            let before = report(&findings);
            prop_assert!(before.new_since(&before).is_empty() && before.without(&before).is_empty());
            findings.reverse();
            prop_assert!(report(&findings).new_since(&before).is_empty());
            findings.reverse();
            let new = Finding::new(GRADES[grade], "x/gap", "element 7 of another");
            findings.insert(at.index(findings.len() + 1), new);
            prop_assert_eq!(report(&findings).new_since(&before).findings().len(), 1);
        }
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
