//! The members of the workspace, as `cargo metadata` describes them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::{cargo, output};

/// One package of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Relative to the root of the workspace, with `/` between components.
    pub(crate) folder: String,
    pub(crate) is_library: bool,
    pub(crate) has_build_script: bool,
    pub(crate) is_published: bool,
    pub(crate) dependencies: Vec<Dependency>,
    /// Each feature with what it turns on.
    pub(crate) features: BTreeMap<String, Vec<String>>,
}

/// One dependency of a member.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Whether it is taken from a folder and not from the registry.
    pub(crate) is_local: bool,
}

/// For which targets a dependency is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Dev,
    Build,
}

/// Returns the members, sorted by folder.
pub(crate) fn members() -> Result<Vec<Member>> {
    let metadata = output(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    parse(&metadata).context("output of cargo metadata")
}

fn parse(metadata: &str) -> Result<Vec<Member>> {
    let metadata: Value = serde_json::from_str(metadata)?;
    let root = string(&metadata, "workspace_root")?;
    let mut members = list(&metadata, "packages")?
        .iter()
        .map(|package| Member::parse(package, root))
        .collect::<Result<Vec<_>>>()?;
    members.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(members)
}

impl Member {
    fn parse(package: &Value, root: &str) -> Result<Self> {
        let targets = list(package, "targets")?;
        let has_target = |kind| {
            let mut kinds = targets.iter().filter_map(|target| target["kind"].as_array());
            kinds.any(|kinds| kinds.iter().any(|found| found == kind))
        };
        Ok(Self {
            name: string(package, "name")?.to_owned(),
            folder: folder(string(package, "manifest_path")?, root)?,
            is_library: has_target("lib"),
            has_build_script: has_target("custom-build"),
            is_published: package["publish"] != Value::Array(Vec::new()),
            dependencies: list(package, "dependencies")?
                .iter()
                .map(Dependency::parse)
                .collect::<Result<_>>()?,
            features: features(package)?,
        })
    }
}

impl Dependency {
    fn parse(dependency: &Value) -> Result<Self> {
        Ok(Self {
            name: string(dependency, "name")?.to_owned(),
            kind: match dependency["kind"].as_str() {
                Some("dev") => Kind::Dev,
                Some("build") => Kind::Build,
                _ => Kind::Normal,
            },
            is_local: dependency["path"].is_string(),
        })
    }
}

#[cfg(test)]
impl Member {
    /// Returns a published library that uses nothing.
    pub(crate) fn library(folder: &str) -> Self {
        Self {
            name: folder.rsplit('/').next().unwrap().to_owned(),
            folder: folder.to_owned(),
            is_library: true,
            has_build_script: false,
            is_published: true,
            dependencies: Vec::new(),
            features: BTreeMap::new(),
        }
    }
}

fn folder(manifest: &str, root: &str) -> Result<String> {
    let folder = manifest
        .strip_prefix(root)
        .and_then(|path| path.strip_suffix("Cargo.toml"))
        .with_context(|| format!("{manifest:?} is not below the workspace root"))?;
    Ok(folder.replace('\\', "/").trim_matches('/').to_owned())
}

fn features(package: &Value) -> Result<BTreeMap<String, Vec<String>>> {
    let features = package["features"].as_object();
    let features = features.context("`features` is missing, expected an object")?;
    let enabled = |list: &Value| {
        let list = list.as_array().into_iter().flatten();
        list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    Ok(features.iter().map(|(name, list)| (name.clone(), enabled(list))).collect())
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    let list = value[key].as_array();
    list.with_context(|| format!("`{key}` is missing, expected a list"))
}

fn string<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    let string = value[key].as_str();
    string.with_context(|| format!("`{key}` is missing, expected a string"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{
        "workspace_root": "/home/w",
        "packages": [{
            "name": "tensor-core",
            "manifest_path": "/home/w/crates/tensor-core/Cargo.toml",
            "publish": null,
            "targets": [{"kind": ["lib"]}, {"kind": ["test"]}],
            "features": {"default": [], "mmap": ["dep:memmap2"]},
            "dependencies": [
                {"name": "memmap2", "kind": null},
                {"name": "test-support", "kind": "dev", "path": "/home/w/crates/test-support"}
            ]
        }, {
            "name": "benches",
            "manifest_path": "/home/w/benches/Cargo.toml",
            "publish": [],
            "targets": [{"kind": ["custom-build"]}, {"kind": ["bench"]}],
            "features": {},
            "dependencies": []
        }]
    }"#;

    #[test]
    fn members_are_sorted_by_folder() {
        let members = parse(METADATA).unwrap();
        let folders: Vec<&str> = members.iter().map(|member| &*member.folder).collect();
        assert_eq!(folders, ["benches", "crates/tensor-core"]);
    }

    #[test]
    fn targets_say_what_a_member_is() {
        let members = parse(METADATA).unwrap();
        let facts = |m: &Member| (m.is_library, m.has_build_script, m.is_published);
        assert_eq!(facts(&members[0]), (false, true, false));
        assert_eq!(facts(&members[1]), (true, false, true));
    }

    #[test]
    fn dependencies_keep_kind_and_origin() {
        let core = parse(METADATA).unwrap().remove(1);
        let facts: Vec<_> = core
            .dependencies
            .iter()
            .map(|dependency| (&*dependency.name, dependency.kind, dependency.is_local))
            .collect();
        assert_eq!(facts, [("memmap2", Kind::Normal, false), ("test-support", Kind::Dev, true)]);
        assert_eq!(core.features["mmap"], ["dep:memmap2"]);
    }

    #[test]
    fn missing_key_is_named() {
        let error = parse(r#"{"workspace_root": "/"}"#).unwrap_err();
        assert_eq!(error.to_string(), "`packages` is missing, expected a list");
    }
}
