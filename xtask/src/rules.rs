//! `docs/rules.md`: every rule that a finding or an error can name, each with a file that breaks it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::{cargo, output, root};

/// Writes the list.
pub(crate) fn write() -> Result<()> {
    let (path, text) = (path(), made()?);
    fs::create_dir_all(root().join("docs"))?;
    fs::write(&path, text).with_context(|| format!("{path:?}"))
}

/// Compares the list with what the command says of the rules and of the test data.
pub(crate) fn check() -> Result<()> {
    let path = path();
    let kept = fs::read_to_string(&path).with_context(|| format!("{path:?}"))?;
    let made = made()?;
    if let Some((made, kept)) = made.lines().zip(kept.lines()).find(|(made, kept)| made != kept) {
        bail!("{path:?} has {kept:?}, expected {made:?} (`cargo xtask rules`)");
    }
    ensure!(made == kept, "{path:?} is not as long as it should be (`cargo xtask rules`)");
    Ok(())
}

#[derive(Deserialize)]
struct Explained {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    id: String,
    severities: Vec<String>,
    meaning: String,
    remedy: String,
    source: String,
}

#[derive(Deserialize)]
struct Verified {
    path: String,
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Finding {
    rule: String,
}

fn made() -> Result<String> {
    let explained = output(modelcrate().args(["explain", "--format", "json"]))?;
    let Explained { rules } = serde_json::from_str(&explained)?;
    Ok(table(&rules, &examples()?))
}

/// Returns for each rule the first file of the test data that breaks it.
fn examples() -> Result<BTreeMap<String, String>> {
    let mut command = modelcrate();
    let command = command.args(["verify", "--format", "jsonl", "testdata"]).stderr(Stdio::null());
    // Files are invalid, so the status says nothing.
    let printed = String::from_utf8(command.output()?.stdout)?;
    let mut examples = BTreeMap::new();
    for line in printed.lines() {
        let Verified { path, findings } = serde_json::from_str(line)?;
        for Finding { rule } in findings {
            examples.entry(rule).or_insert_with(|| path.clone());
        }
    }
    ensure!(!examples.is_empty(), "the command found nothing in the test data");
    Ok(examples)
}

fn table(rules: &[Rule], examples: &BTreeMap<String, String>) -> String {
    let mut text = HEAD.to_owned();
    let mut source = "";
    for rule in rules {
        if rule.source != source {
            source = &rule.source;
            let _ = write!(text, "\nSource: {source}.\n\n{COLUMNS}");
        }
        let Rule { id, severities, meaning, remedy, .. } = rule;
        let example = examples.get(id).map(|path| format!("`{path}`")).unwrap_or_default();
        let severities = severities.join(", ");
        let _ = writeln!(text, "| `{id}` | {severities} | {meaning} | {remedy} | {example} |");
    }
    text
}

fn modelcrate() -> Command {
    let mut command = cargo();
    command.args(["run", "--quiet", "-p", "modelcrate-cli", "--"]);
    command
}

fn path() -> PathBuf {
    root().join("docs/rules.md")
}

const HEAD: &str = "\
# Rules

Every rule that a finding or an error can name, made by `cargo xtask rules`: how grave breaking it is, the
gravest first where that depends on the format or the profile; what it means, and what the format's clients
make of it where that is known; what to do; and a file of ours that breaks it, where `verify` finds it in
one. `modelcrate explain RULE` prints the same.
";

const COLUMNS: &str = "\
| rule | severity | meaning | what to do | example |
|---|---|---|---|---|
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_one_source_are_in_one_table() {
        let rule = |id: &str, source: &str| Rule {
            id: id.to_owned(),
            severities: vec!["error".to_owned(), "note".to_owned()],
            meaning: "it is so".to_owned(),
            remedy: "mend it".to_owned(),
            source: source.to_owned(),
        };
        let rules = [rule("a/one", "a text"), rule("a/two", "a text"), rule("b/one", "another")];
        let examples = [("a/two".to_owned(), "testdata/two".to_owned())].into();
        let made = table(&rules, &examples);
        assert_eq!(made.matches(COLUMNS).count(), 2);
        let line = "| `a/two` | error, note | it is so | mend it | `testdata/two` |\n";
        assert!(made.contains(line), "{made}");
        assert!(made.ends_with("| `b/one` | error, note | it is so | mend it |  |\n"), "{made}");
    }
}
