#![doc = include_str!("rules.md")]
#![expect(clippy::doc_markdown, reason = "the table is what explain prints, too")]

use tensor_core::Severity;

/// A rule that findings and errors name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Rule {
    /// The stable id, `<prefix>/<words>`.
    pub id: &'static str,
    /// How grave it is to break it, the gravest first, with commas between.
    #[serde(serialize_with = "words")]
    severities: &'static str,
    /// What is so where it is broken.
    pub meaning: &'static str,
    /// What to do then.
    pub remedy: &'static str,
    /// What the rule follows from: a format's text, its runtime, or this library.
    pub source: &'static str,
}

impl Rule {
    /// Returns the rule of an id.
    #[must_use]
    pub fn find(id: &str) -> Option<Self> {
        Self::all().find(|rule| rule.id == id)
    }

    /// Returns the rules that a pattern means: an id, or what ids start with, up to a slash or a
    /// hyphen.
    pub fn matching(pattern: &str) -> impl Iterator<Item = Self> {
        Self::all().filter(move |rule| is_match(pattern, rule.id))
    }

    /// Returns all rules, as they are in the table.
    pub fn all() -> impl Iterator<Item = Self> {
        let (mut source, mut remedy) = ("", "");
        TABLE.lines().filter_map(move |line| {
            let text =
                |prefix| line.strip_prefix(prefix).map(|text: &str| text.trim_end_matches('.'));
            source = text("Source: ").unwrap_or(source);
            remedy = text("Remedy: ").unwrap_or(remedy);
            let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
            let id = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
            let (severities, meaning) = (cells.next()?, cells.next()?);
            let remedy = cells.next().filter(|cell| !cell.is_empty()).unwrap_or(remedy);
            Some(Self { id, severities, meaning, remedy, source })
        })
    }

    /// Returns how grave it is to break the rule, the gravest first.
    pub fn severities(self) -> impl Iterator<Item = Severity> {
        let all = [Severity::Error, Severity::Warning, Severity::Note];
        all.into_iter().filter(move |severity| {
            self.severities.split(", ").any(|word| word == severity.to_string())
        })
    }
}

/// Tells whether a pattern means a rule: as its id, or as what that starts with, up to a slash or a
/// hyphen.
#[must_use]
pub fn is_match(pattern: &str, rule: &str) -> bool {
    pattern == rule || pattern.ends_with(['/', '-']) && rule.starts_with(pattern)
}

fn words<S: serde::Serializer>(
    severities: &&'static str,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(severities.split(", "))
}

const TABLE: &str = include_str!("rules.md");

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn the_table_is_whole() {
        let mut seen = BTreeSet::new();
        for rule in Rule::all() {
            assert!(seen.insert(rule.id), "{} stands twice", rule.id);
            let severities: Vec<_> =
                rule.severities().map(|severity| severity.to_string()).collect();
            assert_eq!(severities.join(", "), rule.severities, "{}", rule.id);
            for text in [rule.meaning, rule.remedy, rule.source] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{}: {text:?}", rule.id);
            }
        }
    }

    #[test]
    fn patterns_end_at_words() {
        let ids = |pattern| Rule::matching(pattern).map(|rule| rule.id).collect::<Vec<_>>();
        assert_eq!(ids("zt/gap"), ["zt/gap"]);
        assert_eq!(
            ids("zt/digest-"),
            ["zt/digest-malformed", "zt/digest-mismatch", "zt/digest-unknown"]
        );
        assert!(ids("zt/").len() > 30 && ids("zt").is_empty() && ids("").is_empty());
        assert_eq!(Rule::find("zt/gap").unwrap().remedy, "`modelcrate compact` leaves them out");
    }

    /// Every text of the sources that has the form of an id, of a prefix that the table has.
    #[test]
    fn every_rule_of_the_sources_is_in_the_table() {
        let known: BTreeSet<&str> = Rule::all().map(|rule| rule.id).collect();
        let prefixes: BTreeSet<&str> = known.iter().filter_map(|id| id.split('/').next()).collect();
        let (mut found, mut unknown) = (BTreeSet::new(), BTreeSet::new());
        for folder in fs::read_dir(test_support::workspace().join("crates")).unwrap() {
            sources(&folder.unwrap().path().join("src"), &mut |path, text| {
                let (text, _) = text.split_once("\nmod tests {").unwrap_or((text, ""));
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                let literals = code.flat_map(|line| line.split('"'));
                for literal in literals.filter(|literal| is_id(literal, &prefixes)) {
                    match known.get(literal) {
                        Some(id) => found.insert(*id),
                        None => unknown.insert(format!("{path:?}: {literal}")),
                    };
                }
            });
        }
        assert!(unknown.is_empty(), "expected in rules.md: {unknown:#?}");
        let unused: Vec<_> = known.difference(&found).collect();
        assert!(unused.is_empty(), "nothing has these rules: {unused:?}");
    }

    fn is_id(literal: &str, prefixes: &BTreeSet<&str>) -> bool {
        let Some((prefix, words)) = literal.split_once('/') else { return false };
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        prefixes.contains(prefix) && !words.is_empty() && words.chars().all(is_plain)
    }

    fn sources(folder: &Path, visit: &mut impl FnMut(&Path, &str)) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            // These packages are for tests, and have paths that look like ids.
            let is_of_tests = ["conformance", "test-support"]
                .iter()
                .any(|name| path.components().any(|part| part.as_os_str() == *name));
            if path.is_dir() {
                sources(&path, visit);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !is_of_tests {
                visit(&path, &fs::read_to_string(&path).unwrap());
            }
        }
    }
}
