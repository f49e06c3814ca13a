//! The members of the workspace, as `cargo metadata` describes them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::Deserialize;

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
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The folder that it is taken from, where that is not the registry.
    pub(crate) path: Option<String>,
}

/// For which targets a dependency is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Option<String>")]
pub(crate) enum Kind {
    Normal,
    Dev,
    Build,
}

impl From<Option<String>> for Kind {
    fn from(kind: Option<String>) -> Self {
        match kind.as_deref() {
            Some("dev") => Self::Dev,
            Some("build") => Self::Build,
            _ => Self::Normal,
        }
    }
}

#[derive(Deserialize)]
struct Metadata {
    workspace_root: String,
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    /// The registries that it may go to, where not to all.
    publish: Option<Vec<String>>,
    targets: Vec<Target>,
    features: BTreeMap<String, Vec<String>>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

/// Returns the members, sorted by folder.
pub(crate) fn members() -> Result<Vec<Member>> {
    let metadata = output(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    parse(&metadata).context("output of cargo metadata")
}

fn parse(metadata: &str) -> Result<Vec<Member>> {
    let Metadata { workspace_root, packages } = serde_json::from_str(metadata)?;
    let members = packages.into_iter().map(|package| Member::new(package, &workspace_root));
    let mut members = members.collect::<Result<Vec<_>>>()?;
    members.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(members)
}

impl Member {
    fn new(package: Package, root: &str) -> Result<Self> {
        let Package { name, manifest_path, publish, targets, features, dependencies } = package;
        let has = |kind: &str| targets.iter().flat_map(|target| &target.kind).any(|k| k == kind);
        let folder =
            manifest_path.strip_prefix(root).and_then(|path| path.strip_suffix("Cargo.toml"));
        let folder =
            folder.with_context(|| format!("{manifest_path:?} is not below the workspace root"))?;
        Ok(Self {
            name,
            folder: folder.replace('\\', "/").trim_matches('/').to_owned(),
            is_library: has("lib"),
            has_build_script: has("custom-build"),
            is_published: publish.is_none_or(|registries| !registries.is_empty()),
            dependencies,
            features,
        })
    }

    /// Returns a published library that uses nothing.
    #[cfg(test)]
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
    fn members_are_sorted_and_described() {
        let members = parse(METADATA).unwrap();
        let facts = |m: &Member| (m.is_library, m.has_build_script, m.is_published);
        let [benches, core] = members.as_slice() else { panic!("{members:?}") };
        assert_eq!((&*benches.folder, facts(benches)), ("benches", (false, true, false)));
        assert_eq!((&*core.folder, facts(core)), ("crates/tensor-core", (true, false, true)));
        let facts = |d: &Dependency| (d.name.clone(), d.kind, d.path.is_some());
        let dependencies: Vec<_> = core.dependencies.iter().map(facts).collect();
        let expected = [("memmap2", Kind::Normal, false), ("test-support", Kind::Dev, true)];
        assert_eq!(dependencies, expected.map(|(name, kind, path)| (name.to_owned(), kind, path)));
        assert_eq!(core.features["mmap"], ["dep:memmap2"]);
    }

    #[test]
    fn missing_key_is_named() {
        let error = parse(r#"{"workspace_root": "/"}"#).unwrap_err().to_string();
        assert!(error.starts_with("missing field `packages`"), "{error}");
    }
}
