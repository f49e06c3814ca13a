//! What Rust sources must and must not say.

use super::{Files, Violation, graph::Role};
use crate::workspace::Member;

/// The files of tensor-core that may hold `unsafe`.
const UNSAFE_FILES: [&str; 3] = ["src/buf.rs", "src/float8.rs", "src/source.rs"];

/// The file of the Python package that may: it speaks the C interfaces of Python.
const UNSAFE_EXTENSION: [&str; 1] = ["src/memory.rs"];

/// What must not be committed; in two parts, so that this file does not hold it.
const UNFINISHED: [&str; 8] = [
    concat!("todo", "!"),
    concat!("unimplemented", "!"),
    concat!("dbg", "!"),
    concat!("#[", "ignore"),
    concat!("#[", "should_panic"),
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("XX", "X"),
];

pub(super) fn check(members: &[Member], files: &Files, violations: &mut Vec<Violation>) {
    for member in members {
        if member.is_library && member.folder.starts_with("crates/") {
            check_library(member, files, violations);
        }
        if matches!(Role::of(member), Some(Role::Format | Role::Package)) {
            check_skeleton(member, files, violations);
        }
        match Role::of(member) {
            Some(Role::Core) => check_unsafe(&member.folder, &UNSAFE_FILES, files, violations),
            Some(Role::Extension) => {
                check_unsafe(&member.folder, &UNSAFE_EXTENSION, files, violations);
            }
            _ => {}
        }
    }
    for path in files.0.keys().filter(|path| path.ends_with(".rs")) {
        for (line, word) in files.text(path).into_iter().flat_map(unfinished) {
            let message = format!("line {line} has `{word}`, expected finished code");
            violations.push(Violation::new(path, message));
        }
    }
}

/// The files that every format crate has, each a file or a folder: who knows one crate finds his
/// way in all.
const SKELETON: [&str; 6] = ["error", "read", "tensor", "validate", "edit", "write"];

/// What some formats do not have: models of PyTorch are not written from nothing, and the tensors of
/// an nnpackage are those of circle-format.
const WITHOUT: [(&str, &str); 2] = [("ptl-spec", "write"), ("nnpackage", "tensor")];

fn check_skeleton(member: &Member, files: &Files, violations: &mut Vec<Violation>) {
    let has = |path: &str| files.0.contains_key(&format!("{}/{path}", member.folder));
    for name in SKELETON {
        let is_exempt = WITHOUT.contains(&(member.name.as_str(), name));
        if !is_exempt && !has(&format!("src/{name}.rs")) && !has(&format!("src/{name}/mod.rs")) {
            let message = "there is no such module, expected the files that every format has";
            violations.push(Violation::new(format!("{}/src/{name}.rs", member.folder), message));
        }
    }
    if !has("tests/it/main.rs") {
        let message = "there is no such file, expected one binary for the tests of a crate";
        violations.push(Violation::new(format!("{}/tests/it/main.rs", member.folder), message));
    }
}

fn check_library(member: &Member, files: &Files, violations: &mut Vec<Violation>) {
    let path = format!("{}/src/lib.rs", member.folder);
    let text = files.text(&path).unwrap_or_default();
    if !text.lines().any(|line| line.starts_with("//!")) {
        let message = "there are no crate docs, expected lines that start with `//!`";
        violations.push(Violation::new(&path, message));
    }
    let is_strict = matches!(Role::of(member), Some(Role::Format | Role::Archive));
    let expected = unsafe_attribute(&member.folder, files);
    if is_strict && !text.lines().any(|line| line == expected) {
        let message = format!("unsafe code is not ruled out, expected `{expected}`");
        violations.push(Violation::new(&path, message));
    }
    let path = format!("{}/README.md", member.folder);
    let text = files.text(&path).unwrap_or_default();
    if member.is_published && !text.lines().any(|line| line.starts_with("# ")) {
        let message = "there is no front page, expected a file with a heading";
        violations.push(Violation::new(&path, message));
    }
}

/// Returns the attribute that the root of a format crate carries: generated code is unsafe, so
/// that a crate which has some can only deny it elsewhere.
fn unsafe_attribute(folder: &str, files: &Files) -> &'static str {
    let generated = format!("{folder}/src/generated");
    if files.below(&generated).next().is_some() {
        return "#![deny(unsafe_code)]";
    }
    "#![forbid(unsafe_code)]"
}

fn check_unsafe(folder: &str, allowed: &[&str], files: &Files, violations: &mut Vec<Violation>) {
    for (path, bytes) in files.below(folder) {
        if !path.ends_with(".rs") || allowed.contains(&path) {
            continue;
        }
        let text = str::from_utf8(bytes).unwrap_or_default();
        for line in lines_where(text, has_unsafe) {
            let message =
                format!("line {line} is unsafe, expected that only in {}", allowed.join(", "));
            violations.push(Violation::new(format!("{folder}/{path}"), message));
        }
    }
}

/// Returns whether a line of code, comments aside, opens something unsafe.
fn has_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices("unsafe").any(|(at, word)| {
        let after = code.get(at + word.len()..).unwrap_or_default().trim_start();
        let opens = ["{", "fn ", "impl", "trait ", "extern "];
        after.is_empty() || opens.iter().any(|open| after.starts_with(open))
    })
}

/// Returns what is unfinished in a text, with the number of its line.
fn unfinished(text: &str) -> Vec<(usize, &'static str)> {
    let words = UNFINISHED.into_iter();
    words
        .flat_map(|word| {
            let lines = lines_where(text, move |line| has_word(line, word));
            lines.map(move |line| (line, word))
        })
        .collect()
}

/// Returns whether a word stands in a line by itself, not as a part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, from) = line.split_at(at);
        let after = from.strip_prefix(word).unwrap_or_default();
        let joins_before = word.starts_with(is_word) && before.ends_with(is_word);
        let joins_after = word.ends_with(is_word) && after.starts_with(is_word);
        !joins_before && !joins_after
    })
}

/// Returns the numbers of the lines for which `matches` holds, counted from 1.
fn lines_where(text: &str, matches: impl Fn(&str) -> bool) -> impl Iterator<Item = usize> {
    let lines = (1..).zip(text.lines());
    lines.filter_map(move |(number, line)| matches(line).then_some(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::messages;

    const ROOT: &str = "//! A format.\n\n#![forbid(unsafe_code)]\n";

    fn found<const N: usize>(folder: &str, files: [(&str, &str); N]) -> Vec<String> {
        messages(|violations| check(&[Member::library(folder)], &Files::of(files), violations))
    }

    #[test]
    fn complete_library_passes() {
        let files = [
            ("crates/model-archive/README.md", "# model-archive\n"),
            ("crates/model-archive/src/lib.rs", ROOT),
        ];
        assert_eq!(found("crates/model-archive", files), [""; 0]);
    }

    #[test]
    fn a_format_has_the_files_of_all_formats() {
        let ptl = [
            ("crates/ptl-spec/README.md", "# ptl-spec\n"),
            ("crates/ptl-spec/src/edit/mod.rs", ""),
            ("crates/ptl-spec/src/error.rs", ""),
            ("crates/ptl-spec/src/lib.rs", ROOT),
            ("crates/ptl-spec/src/read.rs", ""),
            ("crates/ptl-spec/src/validate.rs", ""),
            ("crates/ptl-spec/tests/it/main.rs", ""),
        ];
        assert_eq!(
            found("crates/ptl-spec", ptl),
            ["crates/ptl-spec/src/tensor.rs: there is no such module, \
                 expected the files that every format has"]
        );
    }

    #[test]
    fn missing_front_page_docs_and_attribute_are_found() {
        assert_eq!(
            found("crates/model-archive", [("crates/model-archive/src/lib.rs", "")]),
            [
                "crates/model-archive/src/lib.rs: there are no crate docs, \
                 expected lines that start with `//!`",
                "crates/model-archive/src/lib.rs: unsafe code is not ruled out, \
                 expected `#![forbid(unsafe_code)]`",
                "crates/model-archive/README.md: there is no front page, \
                 expected a file with a heading",
            ]
        );
    }

    #[test]
    fn generated_code_asks_for_deny() {
        let files = Files::of([("crates/rten-format/src/generated/mod.rs", "")]);
        let attribute = |folder| unsafe_attribute(folder, &files);
        assert_eq!(attribute("crates/rten-format"), "#![deny(unsafe_code)]");
        assert_eq!(attribute("crates/model-archive"), "#![forbid(unsafe_code)]");
    }

    #[test]
    fn unsafe_outside_its_files_is_found() {
        let files = [
            ("crates/tensor-core/README.md", "# tensor-core\n"),
            ("crates/tensor-core/src/buf.rs", "unsafe { f() }\n"),
            ("crates/tensor-core/src/lib.rs", "//! `unsafe fn`\n"),
            ("crates/tensor-core/src/shape.rs", "\nlet x = unsafe { f() };\n"),
        ];
        assert_eq!(
            found("crates/tensor-core", files),
            ["crates/tensor-core/src/shape.rs: line 2 is unsafe, \
                 expected that only in src/buf.rs, src/float8.rs, src/source.rs"]
        );
    }

    #[test]
    fn unsafe_outside_the_c_interfaces_is_found() {
        let files = [
            ("crates/modelcrate-python/README.md", "# modelcrate\n"),
            ("crates/modelcrate-python/src/lib.rs", "//! `unsafe`\n"),
            ("crates/modelcrate-python/src/memory.rs", "unsafe { f() }\n"),
            ("crates/modelcrate-python/src/tensor.rs", "unsafe { f() }\n"),
        ];
        assert_eq!(
            found("crates/modelcrate-python", files),
            ["crates/modelcrate-python/src/tensor.rs: line 1 is unsafe, \
                 expected that only in src/memory.rs"]
        );
    }

    #[test]
    fn unsafe_is_told_from_its_name() {
        assert!(has_unsafe("unsafe impl Send for A {}"));
        assert!(has_unsafe("pub unsafe fn map() {"));
        assert!(has_unsafe("    unsafe"));
        assert!(!has_unsafe("#![deny(unsafe_code)]"));
        assert!(!has_unsafe("f(); // unsafe { }"));
    }

    #[test]
    fn unfinished_code_is_found() {
        for word in UNFINISHED {
            let text = format!("fn f() {{\n    {word}\n}}\n");
            assert_eq!(unfinished(&text), [(2, word)]);
        }
    }

    #[test]
    fn longer_words_are_finished() {
        for word in UNFINISHED.iter().filter(|word| !word.starts_with('#')) {
            assert_eq!(unfinished(&format!("my_{word}\n")), []);
        }
        assert_eq!(unfinished(concat!("XX", "XX 0XX", "X0\n")), []);
    }
}
