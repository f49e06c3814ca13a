//! Every file of `testdata/carton/invalid` gets the verdict of `cases.toml`, from a file, from
//! memory and, where its files can stand in a folder, from there.
//!
//! The files are made by `cases.rs`. With `REJECT=overwrite` in the environment this test
//! writes them and `cases.toml`; what changed there is to be read before it is committed.

mod cases;
mod changed;
mod made;
mod memory;

use std::{fmt::Write as _, fs, path::Path};

use self::cases::{Case, cases};
use self::made::Carton;
use carton_format::{
    ReadOptions, Reader,
    model_archive::{Archive, Kind, Symlinks},
};
use tensor_core::{At, Chain, Profile, Report, Severity, Source};
use test_support::{assert_bytes, testdata};

/// What opening and validation say of a carton.
#[derive(Debug, PartialEq)]
struct Verdict {
    /// Why the strict profile does not open it.
    open: Option<String>,
    /// Why the lenient profile does not open it.
    lenient: Option<String>,
    /// What validation finds, in the strict profile where that opens it.
    findings: Vec<Finding>,
}

#[derive(Clone, Debug, PartialEq)]
struct Finding {
    severity: Severity,
    text: String,
}

impl Verdict {
    fn of(open: impl Fn(ReadOptions) -> carton_format::Result<Reader>) -> Self {
        let strict = open(Reader::options());
        let lenient = open(Reader::options().profile(Profile::Lenient));
        let message = |reader: &carton_format::Result<Reader>| {
            reader.as_ref().err().map(|error| Chain(error).to_string())
        };
        let (opens, opens_leniently) = (message(&strict), message(&lenient));
        // What opens in the lenient profile alone is graded by the strict one.
        let graded = |reader: Reader| match reader.archive() {
            Some(archive) => Reader::options().from_archive(archive.clone()),
            None => Ok(reader),
        };
        let findings =
            strict.or_else(|_| graded(lenient?)).map(|reader| findings(&reader.validate()));
        Self { open: opens, lenient: opens_leniently, findings: findings.unwrap_or_default() }
    }

    fn word(&self) -> &'static str {
        let worst = self.findings.iter().map(|finding| finding.severity).max();
        match (&self.open, worst) {
            (Some(_), _) => "refused",
            (None, Some(Severity::Error)) => "error",
            (None, Some(Severity::Warning)) => "warning",
            (None, Some(Severity::Note)) => "note",
            (None, None) => "sound",
        }
    }
}

fn findings(report: &Report) -> Vec<Finding> {
    let finding = |found: &tensor_core::Finding| Finding {
        severity: found.severity,
        text: format!("{} ({}) {}", found.rule, place(&found.at), found.message),
    };
    report.findings().iter().map(finding).collect()
}

fn place(at: &At) -> String {
    let mut parts = Vec::new();
    parts.extend(at.entry.as_ref().map(|entry| format!("{entry:?}")));
    parts.extend(at.line.map(|line| format!("line {line}")));
    parts.extend(at.offset.map(|offset| format!("byte {offset}")));
    parts.extend(at.path.clone());
    parts.extend(at.tensor.as_ref().map(|tensor| format!("tensor {tensor:?}")));
    parts.join(", ")
}

/// Writes a case as it stands in `cases.toml`.
fn block(case: &Case, verdict: &Verdict) -> String {
    let Case { name, why, section, .. } = case;
    let mut text = format!(
        "[[case]]\nfile = \"{name}.carton\"\nwhy = {}\nsection = {}\nverdict = \"{}\"\n",
        toml_string(why),
        toml_string(section),
        verdict.word(),
    );
    if let Some(open) = &verdict.open {
        let _ = writeln!(text, "open = {}", toml_string(open));
    }
    if verdict.lenient != verdict.open {
        let lenient = verdict.lenient.as_deref().unwrap_or("opens");
        let _ = writeln!(text, "lenient = {}", toml_string(lenient));
    }
    if !verdict.findings.is_empty() {
        text.push_str("findings = [\n");
        for finding in &verdict.findings {
            let line = format!("{} {}", finding.severity, finding.text);
            let _ = writeln!(text, "    {},", toml_string(&line));
        }
        text.push_str("]\n");
    }
    text
}

/// Writes a text as a literal string of TOML where that can hold it, or else as a basic one.
fn toml_string(text: &str) -> String {
    if !text.contains(['\'', '\u{7f}']) && !text.chars().any(char::is_control) {
        return format!("'{text}'");
    }
    // Strings of JSON are strings of TOML too.
    serde_json::to_string(text).unwrap()
}

const HEAD: &str = "\
# One table for each file in `invalid/`: what a sound reader does, and why. The files and this one
# are made by `REJECT=overwrite cargo test -p carton-format --test it reject`.
#
# section   of the format text
# verdict   refused, or the gravest finding of validation, or sound
# open      the error of opening in the strict profile; absent where it opens
# lenient   \"opens\" or the error of opening in the lenient profile, where that differs
# findings  of validation: severity, rule, place, message
";

#[test]
fn every_file_gets_its_verdict() {
    let folder = testdata("carton/invalid");
    let cases = cases();
    if std::env::var_os("REJECT").is_some_and(|value| value == "overwrite") {
        overwrite(&folder, &cases);
    }
    let mut text = HEAD.to_owned();
    for case in &cases {
        let path = folder.join(format!("{}.carton", case.name));
        assert_bytes(&fs::read(&path).unwrap(), &case.bytes, case.name);
        assert!(case.bytes.len() < 4096, "{} has {} bytes", case.name, case.bytes.len());
        let from_file = Verdict::of(|options| options.open(&path));
        let from_memory = Verdict::of(|options| options.from_bytes(case.bytes.clone()));
        assert_eq!(from_file, from_memory, "{}", case.name);
        let _ = write!(text, "\n{}", block(case, &from_file));
    }
    let path = testdata("carton/cases.toml");
    if std::env::var_os("REJECT").is_some_and(|value| value == "overwrite") {
        fs::write(&path, &text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    let blocks = |text: &str| text.split("\n\n").map(str::to_owned).collect::<Vec<_>>();
    for (found, expected) in blocks(&text).iter().zip(&blocks(&expected)) {
        assert_eq!(found, expected);
    }
    assert_eq!(text, expected);
    let parsed: toml::Table = text.parse().unwrap();
    assert_eq!(parsed["case"].as_array().unwrap().len(), cases.len());
    assert_eq!(fs::read_dir(folder).unwrap().count(), cases.len());
}

fn overwrite(folder: &Path, cases: &[Case]) {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).unwrap();
    for case in cases {
        fs::write(folder.join(format!("{}.carton", case.name)), &case.bytes).unwrap();
    }
}

/// What the lenient profile grades as a warning is an error of the strict one, and nothing else
/// differs.
#[test]
fn grades_follow_the_profile() {
    let mut differing = 0;
    for case in cases() {
        let options = Archive::options().symlinks(Symlinks::Kept).profile(Profile::Lenient);
        let archive = options.from_source(Source::from_bytes(case.bytes.clone()));
        let Ok(archive) = archive else { continue };
        let open = |profile| {
            let reader = Reader::options().profile(profile).from_archive(archive.clone());
            Some(findings(&reader.ok()?.validate()))
        };
        let Some((strict, lenient)) = open(Profile::Strict).zip(open(Profile::Lenient)) else {
            continue;
        };
        assert_eq!(strict.len(), lenient.len(), "{}", case.name);
        for (strict, lenient) in strict.iter().zip(&lenient) {
            assert_eq!(strict.text, lenient.text, "{}", case.name);
            if strict.severity != lenient.severity {
                differing += 1;
                let grades = (strict.severity, lenient.severity);
                assert_eq!(grades, (Severity::Error, Severity::Warning), "{}", case.name);
                let rules = ["zip/", "carton/unportable-path"];
                let is_strict = rules.iter().any(|rule| strict.text.starts_with(rule));
                assert!(is_strict, "{}", strict.text);
            }
        }
    }
    assert!(differing > 5, "{differing}");
}

/// What lint finds validation finds too, and it finds all that needs no content.
#[test]
fn lint_is_a_part_of_validation() {
    let mut equal = 0;
    for case in cases() {
        let Ok(reader) = Reader::options().profile(Profile::Lenient).from_bytes(case.bytes) else {
            continue;
        };
        let (lint, all) = (findings(&reader.lint()), findings(&reader.validate()));
        assert!(lint.iter().all(|finding| all.contains(finding)), "{}", case.name);
        equal += usize::from(lint.len() == all.len());
    }
    assert!(equal > 100, "{equal}");
}

/// Validation finds the same whatever was read before.
#[test]
fn reading_before_changes_no_finding() {
    for case in cases() {
        let open = || Reader::options().profile(Profile::Lenient).from_bytes(case.bytes.clone());
        let (Ok(fresh), Ok(read)) = (open(), open()) else { continue };
        let _ = read.description();
        for file in read.files() {
            let _ = file.bytes();
        }
        for tensor in read.tensors().into_iter().flatten() {
            let _ = tensor.value();
        }
        assert_eq!(findings(&read.validate()), findings(&fresh.validate()), "{}", case.name);
    }
}

/// A folder with the files of a carton is found to be what the carton is, but for its archive.
#[cfg(unix)]
#[test]
fn folders_get_the_verdicts_of_archives() {
    let mut compared = 0;
    for case in cases() {
        let options = Reader::options().profile(Profile::Lenient);
        let Ok(reader) = options.from_bytes(case.bytes.clone()) else { continue };
        let folder = tempfile::tempdir().unwrap();
        if put(&reader, folder.path()).is_none() {
            continue;
        }
        let of_files = |mut findings: Vec<Finding>| {
            // What the archive has rules of its own for, and links, which a folder follows.
            let others = ["zip/", "carton/path-case", "carton/unportable-path"];
            findings.retain(|finding| others.iter().all(|rule| !finding.text.starts_with(rule)));
            for finding in &mut findings {
                if let Some((place, _)) = finding.text.split_once(") is a link to") {
                    finding.text = format!("{place}) is a link");
                } else if case.name == "symlink_digest" {
                    finding.text =
                        finding.text.split_once(')').unwrap().0.to_owned() + ") is a link";
                }
            }
            findings
        };
        let found = of_files(findings(&Reader::open(folder.path()).unwrap().validate()));
        assert_eq!(found, of_files(findings(&reader.validate())), "{}", case.name);
        compared += 1;
    }
    assert!(compared > 100, "{compared}");
}

/// Writes all files of an archive; `None` where one cannot be read, or a link not be followed.
#[cfg(unix)]
fn put(reader: &Reader, folder: &Path) -> Option<()> {
    for entry in reader.archive().unwrap().entries() {
        let path = folder.join(entry.name());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        entry.resolve().ok()?;
        if entry.info().kind == Kind::Symlink {
            std::os::unix::fs::symlink(entry.target().unwrap(), path).unwrap();
        } else {
            fs::write(path, entry.checked_bytes().ok()?).ok()?;
        }
    }
    Some(())
}

/// Names that would move a cursor, or turn text around, are escaped wherever a message has them.
#[test]
fn messages_hide_nothing() {
    let evil = "\\u001B]0;x\\u0007\\u202E\\u2066\\u200F\\n[ok]";
    let raw = "\u{202e}\u{2066}\u{200f}\u{feff}";
    let broken = [
        ("\"@tensor_data/numbers\"", format!("\"@tensor_data/{evil}\"")),
        ("\"@tensor_data/numbers\"", format!("\"{evil}\"")),
        ("\"@misc/plot.png\"", format!("\"@misc/{evil}\"")),
        ("![plot](@misc/plot.png)", format!("![{raw}](@misc/{raw})")),
        ("![plot](@misc/plot.png)", format!("![](http://{raw})")),
        ("name = \"x\"", format!("name = \"{evil}\"")),
        ("x = \"@tensor_data", format!("\"{evil}\" = \"@tensor_data")),
        ("threads = 1", format!("\"{evil}\" = [1]")),
        ("threads = 1", format!("threads = 1\n\"{evil}\" = 2023-01-22")),
        ("\"n\", 2", format!("\"{evil}\", \"{evil}\"")),
        ("\"x86_64-unknown-linux-gnu\"", format!("\"{evil}\"")),
        ("\"=1.2.3\"", format!("\"{evil}\"")),
        ("model_name = \"full\"", format!("repository = \"{evil}\"")),
        ("model_name = \"full\"", format!("\"{evil}\" = 1")),
        ("model_name = \"full\"", format!("{raw} = 1")),
        ("model_name = \"full\"", "model_name = \"\u{1b}\"".to_owned()),
    ];
    let mut cartons: Vec<Carton> =
        broken.iter().map(|(from, to)| Carton::full().toml(from, to)).collect();
    let key = format!("{raw}x");
    let index = |from, to: &str| Carton::full().index(from, &to.replace("{}", evil));
    cartons.extend([
        index("name = \"numbers\"\n", "name = \"{}\"\n"),
        index("tensor_0.bin", "{}"),
        index("[\"numbers\", \"numbers\"]", "[\"{}\"]"),
        index("\"float32\"", "\"{}\""),
        Carton::full().unlisted(&format!("model/{raw}"), "x"),
        Carton::full().listed(&format!("model/{raw}"), "x"),
        Carton::full().symlink("model/l", "\u{1b}[2J", "x"),
        Carton::full().symlink("model/l", raw, "x"),
        Carton::full().manifest(|text| format!("{text}\u{1b}{raw}")),
        Carton::full().manifest(|text| format!("{text}model/\u{1b}={}\n", "0".repeat(64))),
        Carton::full().manifest(|text| format!("{text}model/x=\u{1b}{raw}\n")),
        Carton::full().links(format!("version = 1\n[urls]\n\"{evil}\" = []\n")),
        Carton::full().links(format!("version = 1\n[urls]\n'{key}' = 1\n")),
        Carton::full().links(format!(
            "version = 1\n[urls]\n{} = [\"{evil}\", \"https://{raw}\"]\n",
            "0".repeat(64)
        )),
    ]);
    for carton in cartons {
        let text = match Reader::from_bytes(carton.bytes()) {
            Err(error) => Chain(&error).to_string(),
            Ok(reader) => {
                let report = reader.validate();
                assert!(!report.is_empty(), "{:?}", carton.zip().entries);
                let shown = report.into_iter().map(|finding| {
                    format!("{} {}", finding.message, finding.at.path.unwrap_or_default())
                });
                shown.collect()
            }
        };
        let hidden = |char: char| char.is_control() || raw.contains(char);
        assert!(!text.contains(hidden), "{text:?}");
    }
}
