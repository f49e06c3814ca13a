//! What the manifest of each member takes from the workspace.

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use super::{Files, Violation};
use crate::workspace::Member;

/// The keys of `[package]` that every member inherits.
const INHERITED: [&str; 4] = ["version", "edition", "rust-version", "license"];

const DEPENDENCIES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// The members that may name a package by another name and in another version: the peers that we
/// are compared with.
const WITH_PEERS: [&str; 2] = ["benches", "crates/conformance"];

pub(super) fn check(
    members: &[Member],
    files: &Files,
    violations: &mut Vec<Violation>,
) -> Result<()> {
    for member in members {
        let path = format!("{}/Cargo.toml", member.folder);
        let Some(text) = files.text(&path) else {
            continue;
        };
        let manifest: Table = text.parse().with_context(|| path.clone())?;
        let mut add = |message| violations.push(Violation::new(&path, message));
        check_inherited(&manifest, &mut add);
        for dependency in dependencies(&manifest) {
            let may_rename = WITH_PEERS.contains(&&*member.folder);
            check_dependency(&dependency, may_rename, &mut add);
        }
    }
    Ok(())
}

fn check_inherited(manifest: &Table, add: &mut impl FnMut(String)) {
    for key in INHERITED {
        let value = manifest.get("package").and_then(|package| package.get(key));
        if !is_inherited(value) {
            add(format!("`{key}` is not inherited, expected `{key}.workspace = true`"));
        }
    }
    if !is_inherited(manifest.get("lints")) {
        add("the lints are not inherited, expected `[lints] workspace = true`".to_owned());
    }
}

fn check_dependency(dependency: &Dependency<'_>, may_rename: bool, add: &mut impl FnMut(String)) {
    let Dependency { table, name, value } = dependency;
    let is_peer = may_rename && value.get("package").is_some();
    if !is_peer && !is_inherited(Some(value)) {
        add(format!("`{name}` in `{table}` has a source of its own, expected `workspace = true`"));
    }
}

struct Dependency<'a> {
    table: &'static str,
    name: &'a str,
    value: &'a Value,
}

/// Returns the dependencies of all kinds, those of single targets included.
fn dependencies(manifest: &Table) -> Vec<Dependency<'_>> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values);
    let tables = targets.filter_map(Value::as_table).chain([manifest]);
    tables.flat_map(dependencies_of_one).collect()
}

fn dependencies_of_one(table: &Table) -> impl Iterator<Item = Dependency<'_>> {
    DEPENDENCIES.into_iter().flat_map(|name| {
        let entries = table.get(name).and_then(Value::as_table);
        let entries = entries.into_iter().flatten();
        entries.map(move |(key, value)| Dependency { table: name, name: key, value })
    })
}

fn is_inherited(value: Option<&Value>) -> bool {
    let workspace = value.and_then(|value| value.get("workspace"));
    workspace.and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: &str = "\
        [package]\n\
        name = \"ztensor\"\n\
        version.workspace = true\n\
        edition.workspace = true\n\
        rust-version.workspace = true\n\
        license.workspace = true\n\
        [dependencies]\n\
        bytes.workspace = true\n\
        zstd = { workspace = true, optional = true }\n\
        [target.'cfg(unix)'.dependencies]\n\
        rustix.workspace = true\n\
        [lints]\n\
        workspace = true\n";

    fn found(folder: &str, text: &str) -> Vec<String> {
        let member = Member::library(folder);
        let files = Files::of([(&*format!("{folder}/Cargo.toml"), text)]);
        let mut violations = Vec::new();
        check(&[member], &files, &mut violations).unwrap();
        violations.into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn what_is_not_inherited_is_found() {
        assert_eq!(found("crates/ztensor", CLEAN), [""; 0]);
        let own_source = |name| {
            format!(
                "`{name}` in `dependencies` has a source of its own, expected `workspace = true`"
            )
        };
        for (from, to, message) in [
            (
                "version.workspace = true\nedition",
                "version = \"1.0.0\"\nedition",
                "`version` is not inherited, expected `version.workspace = true`".to_owned(),
            ),
            (
                "[lints]\nworkspace = true\n",
                "",
                "the lints are not inherited, expected `[lints] workspace = true`".to_owned(),
            ),
            ("bytes.workspace = true", "bytes = \"1\"", own_source("bytes")),
            // In every table.
            ("rustix.workspace = true", "rustix = \"1\"", own_source("rustix")),
        ] {
            assert_eq!(found("crates/ztensor", &CLEAN.replace(from, to)), [message]);
        }
    }

    #[test]
    fn only_peers_may_have_a_version() {
        let peer = "bytes.workspace = true\npeer = { package = \"ztensor\", version = \"1\" }";
        let text = CLEAN.replace("bytes.workspace = true", peer);
        assert_eq!(found("benches", &text), [""; 0]);
        assert_eq!(found("crates/ztensor", &text).len(), 1);
    }
}
