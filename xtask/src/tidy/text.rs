//! What no file of the repository may hold, of whatever kind it is.

use super::{Files, Violation};

/// The size of the largest file, in bytes. Larger ones are made when tests run.
const MAX_BYTES: usize = 1 << 20;

/// The size of the largest file of generated code, in bytes: one file is what flatc makes of a schema.
const MAX_GENERATED_BYTES: usize = 2 << 20;

/// Folders of single machines; in two parts, so that this file does not hold them.
const FOLDERS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/fa", "rm/")];

/// Hosts that packages come from: which ones to use is a matter of each machine's settings.
const HOSTS: [&str; 6] = [
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("debian", ".org"),
];

/// Files whose white space is what a program printed or stored.
const EXEMPT_EXTENSIONS: [&str; 3] = ["trycmd", "stdout", "stderr"];

pub(super) fn check(files: &Files, violations: &mut Vec<Violation>) {
    for (path, bytes) in &files.0 {
        let mut add = |message| violations.push(Violation::new(path, message));
        check_size(path, bytes.len(), &mut add);
        if !path.ends_with("Cargo.lock") {
            check_places(bytes, &mut add);
        }
        if let Ok(text) = str::from_utf8(bytes)
            && !is_exempt(path)
        {
            check_white_space(text, &mut add);
        }
    }
}

fn check_size(path: &str, len: usize, add: &mut impl FnMut(String)) {
    let is_generated = path.contains("/src/generated/");
    let most = if is_generated { MAX_GENERATED_BYTES } else { MAX_BYTES };
    if len > most {
        add(format!("is {len} bytes, expected at most {most}"));
    }
}

fn check_places(bytes: &[u8], add: &mut impl FnMut(String)) {
    let text = String::from_utf8_lossy(bytes);
    for place in FOLDERS.into_iter().chain(HOSTS) {
        let may_be_lower = place.starts_with('/') && !bytes.contains(&0);
        for (at, _) in text.match_indices(place) {
            let (before, _) = text.split_at(at);
            if may_be_lower && before.ends_with(is_in_component) {
                continue;
            }
            let line = before.matches('\n').count() + 1;
            add(format!(
                "line {line} has {place:?}, expected no machine's folder and no registry's host"
            ));
        }
    }
}

/// Returns whether a character before a `/` makes it the middle of a path. In binary files it
/// may as well be the length of the path.
fn is_in_component(c: char) -> bool {
    c.is_alphanumeric() || "._-".contains(c)
}

fn is_exempt(path: &str) -> bool {
    let extension = path.rsplit('.').next().unwrap_or_default();
    let is_schema = path.starts_with("schemas/") && extension == "fbs";
    path.starts_with("testdata/")
        || path.starts_with("fuzz/corpus/")
        || is_schema
        || EXEMPT_EXTENSIONS.contains(&extension)
}

fn check_white_space(text: &str, add: &mut impl FnMut(String)) {
    if text.contains('\0') {
        return;
    }
    if !text.is_empty() && !text.ends_with('\n') {
        add("the last line has no end, expected a newline".to_owned());
    }
    for (number, line) in (1..).zip(text.split('\n')) {
        if line.ends_with([' ', '\t', '\r']) {
            add(format!("line {number} ends in white space, expected none"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::messages;

    fn found(path: &str, text: &str) -> Vec<String> {
        messages(|violations| check(&Files::of([(path, text)]), violations))
    }

    #[test]
    fn clean_files_pass() {
        let long = "\n".repeat(MAX_BYTES + 1);
        for (path, text) in [
            ("README.md", "# Name\n\nText.\n"),
            ("empty", ""),
            ("Cargo.lock", concat!("crates", ".io\n")),
            ("crates/a/src/generated/a.rs", long.as_str()),
            // Stored output keeps its white space.
            ("testdata/a/b", "x \n"),
            ("a.trycmd", "x \n"),
            ("a.stdout", "x \n"),
            ("schemas/a.fbs", "x \n"),
            ("b.bin", "\0 \n"),
        ] {
            assert_eq!(found(path, text), [""; 0], "{path}");
        }
    }

    #[test]
    fn machine_folders_and_hosts_are_found() {
        let expected = "expected no machine's folder and no registry's host";
        for place in FOLDERS.iter().chain(&HOSTS) {
            assert_eq!(
                found("a.md", &format!("text\nsee {place}x\n")),
                [format!("a.md: line 2 has {place:?}, {expected}")]
            );
        }
        for folder in FOLDERS {
            // Lower folders may have any name, but what is before it in a binary file may be a length.
            assert_eq!(found("a.md", &format!("target{folder}x\n")), [""; 0]);
            assert_eq!(found("testdata/a.zt", &format!("\0j{folder}model")).len(), 1);
        }
    }

    #[test]
    fn large_files_are_found() {
        let text = "\n".repeat(MAX_BYTES + 1);
        assert_eq!(found("a.bin", &text), ["a.bin: is 1048577 bytes, expected at most 1048576"]);
        assert_eq!(
            found("crates/a/src/generated/a.rs", &text.repeat(2)),
            ["crates/a/src/generated/a.rs: is 2097154 bytes, expected at most 2097152"]
        );
    }

    #[test]
    fn white_space_at_ends_is_found() {
        assert_eq!(
            found("a.rs", "fn f() {} \n\t\nx"),
            [
                "a.rs: the last line has no end, expected a newline",
                "a.rs: line 1 ends in white space, expected none",
                "a.rs: line 2 ends in white space, expected none",
            ]
        );
    }
}
