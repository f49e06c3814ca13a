//! What a published package has to hold so that others can find, build and pass it on.

use toml::{Table, Value};

use super::{Files, Violation};
use crate::workspace::Member;

const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

pub(super) fn check(members: &[Member], files: &Files, violations: &mut Vec<Violation>) {
    for member in members.iter().filter(|member| member.is_published) {
        for name in LICENCES {
            let path = format!("{}/{name}", member.folder);
            if files.0.get(&path) != files.0.get(name) {
                let message = "the text of the licence is missing, expected that of the root";
                violations.push(Violation::new(path, message));
            }
        }
        let path = format!("{}/Cargo.toml", member.folder);
        let manifest = files.text(&path).and_then(|text| text.parse::<Table>().ok());
        for message in manifest.iter().flat_map(missing) {
            violations.push(Violation::new(&path, message));
        }
    }
}

/// Returns what a manifest lacks.
fn missing(manifest: &Table) -> Vec<String> {
    let package = manifest.get("package");
    let value = |keys: &[&str]| keys.iter().try_fold(package?, |value, key| value.get(key));
    let list = |key| value(&[key]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut messages = Vec::new();
    if list("keywords").is_empty() || list("categories").is_empty() {
        messages.push("nobody will find it, expected `keywords` and `categories`".to_owned());
    }
    let builds_all = value(&["metadata", "docs", "rs", "all-features"]);
    if builds_all.and_then(Value::as_bool) != Some(true) {
        let message = "docs.rs leaves features out, expected `all-features = true` in \
                       `[package.metadata.docs.rs]`";
        messages.push(message.to_owned());
    }
    if !list("exclude").iter().any(|path| path.as_str() == Some("/tests")) {
        let message = "tests are packaged without their data, expected `exclude = [\"/tests\"]`";
        messages.push(message.to_owned());
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::messages;

    const MANIFEST: &str = "\
        [package]\n\
        keywords = [\"tensor\"]\n\
        categories = [\"encoding\"]\n\
        exclude = [\"/tests\"]\n\
        [package.metadata.docs.rs]\n\
        all-features = true\n";

    fn found(manifest: &str, licence: &str) -> Vec<String> {
        let files = Files::of([
            ("LICENSE-APACHE", "Apache"),
            ("LICENSE-MIT", "MIT"),
            ("crates/x/LICENSE-APACHE", "Apache"),
            ("crates/x/LICENSE-MIT", licence),
            ("crates/x/Cargo.toml", manifest),
        ]);
        messages(|violations| check(&[Member::library("crates/x")], &files, violations))
    }

    #[test]
    fn complete_package_passes() {
        assert_eq!(found(MANIFEST, "MIT"), [""; 0]);
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(found("[package]\n", "MIT").len(), 3);
        assert_eq!(
            found(MANIFEST, "other"),
            ["crates/x/LICENSE-MIT: the text of the licence is missing, expected that of the root"]
        );
    }

    #[test]
    fn what_is_not_published_needs_nothing() {
        let member = Member { is_published: false, ..Member::library("crates/x") };
        let files = Files::of([("crates/x/Cargo.toml", "[package]\n")]);
        assert_eq!(messages(|violations| check(&[member], &files, violations)), [""; 0]);
    }
}
