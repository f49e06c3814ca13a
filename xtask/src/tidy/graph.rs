//! The crate graph of ARCHITECTURE.md: which crate may use which.

use super::Violation;
use crate::workspace::{Kind, Member};

/// The format crates. A new one is added here.
const FORMATS: [&str; 6] =
    ["carton-format", "circle-format", "nnpackage", "ptl-spec", "rten-format", "ztensor-format"];

/// Where a crate stands in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Knows no format.
    Core,
    /// Knows ZIP files and no model.
    Archive,
    /// Knows FlatBuffers and no model.
    Tables,
    /// Knows one format.
    Format,
    /// Knows packages of models of another format.
    Package,
    /// Knows all formats.
    Facade,
    /// Knows the facade.
    Command,
    /// Knows the facade, and brings the command along.
    Extension,
    /// Serves the tests of the others.
    TestSupport,
    /// May use anything: nothing that is published depends on it.
    Free,
}

impl Role {
    /// Returns the role of a member; `None` for a crate that has none yet.
    pub(super) fn of(member: &Member) -> Option<Self> {
        if !member.folder.starts_with("crates/") {
            return Some(Self::Free);
        }
        let name = member.name.as_str();
        match name {
            "tensor-core" => Some(Self::Core),
            "model-archive" => Some(Self::Archive),
            "flat-tables" => Some(Self::Tables),
            "modelcrate" => Some(Self::Facade),
            "modelcrate-cli" => Some(Self::Command),
            "test-support" => Some(Self::TestSupport),
            "conformance" => Some(Self::Free),
            "modelcrate-python" => Some(Self::Extension),
            "nnpackage" => Some(Self::Package),
            _ => FORMATS.contains(&name).then_some(Self::Format),
        }
    }

    fn may_use(self, name: &str, kind: Kind) -> bool {
        if kind == Kind::Dev && name == "test-support" {
            return !matches!(self, Self::Core | Self::TestSupport);
        }
        match self {
            Self::Core => false,
            Self::Archive | Self::Tables | Self::TestSupport => name == "tensor-core",
            Self::Format => matches!(name, "tensor-core" | "model-archive" | "flat-tables"),
            Self::Package => matches!(name, "tensor-core" | "model-archive" | "circle-format"),
            Self::Facade => {
                matches!(name, "tensor-core" | "model-archive") || FORMATS.contains(&name)
            }
            Self::Command => matches!(name, "tensor-core" | "modelcrate"),
            Self::Extension => matches!(name, "modelcrate" | "modelcrate-cli"),
            Self::Free => true,
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Core => "no crate of the workspace",
            Self::Archive | Self::Tables | Self::TestSupport => "only `tensor-core`",
            Self::Format => "only `tensor-core`, `model-archive` and `flat-tables`",
            Self::Package => "only `tensor-core`, `model-archive` and `circle-format`",
            Self::Facade => "only `tensor-core`, `model-archive` and the format crates",
            Self::Command => "only `modelcrate` and `tensor-core`",
            Self::Extension => "only `modelcrate` and `modelcrate-cli`",
            Self::Free => "any crate",
        }
    }
}

pub(super) fn check(members: &[Member], violations: &mut Vec<Violation>) {
    for member in members {
        let manifest = format!("{}/Cargo.toml", member.folder);
        let Some(role) = Role::of(member) else {
            let message =
                "crate has no place in the graph, expected one in xtask/src/tidy/graph.rs";
            violations.push(Violation::new(manifest, message));
            continue;
        };
        if member.has_build_script && member.folder.starts_with("crates/") {
            let message = "there is a build script, expected none in crates/";
            violations.push(Violation::new(&manifest, message));
        }
        for dependency in &member.dependencies {
            if dependency.path.is_some() && !role.may_use(&dependency.name, dependency.kind) {
                let (name, expected) = (&dependency.name, role.expected());
                let message = format!("depends on `{name}`, expected {expected}");
                violations.push(Violation::new(&manifest, message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{tidy::messages, workspace::Dependency};

    fn member(folder: &str, dependencies: &[(&str, Kind)]) -> Member {
        let local = |&(name, kind): &(&str, Kind)| Dependency {
            name: name.to_owned(),
            kind,
            path: Some(String::new()),
        };
        Member { dependencies: dependencies.iter().map(local).collect(), ..Member::library(folder) }
    }

    fn found(member: Member) -> Vec<String> {
        messages(|violations| check(&[member], violations))
    }

    #[test]
    fn allowed_uses_pass() {
        use Kind::{Dev, Normal};
        for (folder, name, kind) in [
            ("crates/model-archive", "tensor-core", Normal),
            ("crates/flat-tables", "tensor-core", Normal),
            ("crates/rten-format", "flat-tables", Normal),
            ("crates/ztensor-format", "tensor-core", Normal),
            ("crates/ztensor-format", "test-support", Dev),
            ("crates/carton-format", "model-archive", Normal),
            ("crates/circle-format", "model-archive", Normal),
            ("crates/nnpackage", "circle-format", Normal),
            ("crates/modelcrate", "ztensor-format", Normal),
            ("crates/modelcrate-cli", "modelcrate", Normal),
            ("crates/modelcrate-python", "modelcrate-cli", Normal),
            ("crates/test-support", "tensor-core", Normal),
            ("crates/conformance", "ztensor-format", Normal),
            ("benches", "ztensor-format", Normal),
        ] {
            assert_eq!(found(member(folder, &[(name, kind)])), [""; 0], "{folder}");
        }
    }

    #[test]
    fn forbidden_uses_are_found() {
        use Kind::{Build, Dev, Normal};
        for (folder, name, kind) in [
            ("crates/tensor-core", "test-support", Dev),
            ("crates/tensor-core", "ztensor-format", Normal),
            ("crates/model-archive", "ztensor-format", Normal),
            ("crates/flat-tables", "model-archive", Normal),
            ("crates/ztensor-format", "rten-format", Dev),
            ("crates/circle-format", "nnpackage", Normal),
            ("crates/nnpackage", "rten-format", Normal),
            ("crates/ztensor-format", "test-support", Normal),
            ("crates/ztensor-format", "test-support", Build),
            ("crates/modelcrate", "modelcrate-cli", Normal),
            ("crates/modelcrate-cli", "ztensor-format", Normal),
            ("crates/modelcrate-python", "ztensor-format", Normal),
            ("crates/test-support", "ztensor-format", Normal),
        ] {
            assert_eq!(found(member(folder, &[(name, kind)])).len(), 1, "{folder}");
        }
    }

    #[test]
    fn sibling_is_named() {
        assert_eq!(
            found(member("crates/ztensor-format", &[("nnpackage", Kind::Normal)])),
            ["crates/ztensor-format/Cargo.toml: depends on `nnpackage`, \
                 expected only `tensor-core`, `model-archive` and `flat-tables`"]
        );
    }

    #[test]
    fn crates_of_the_registry_are_no_concern() {
        let mut core = member("crates/tensor-core", &[("bytes", Kind::Normal)]);
        core.dependencies[0].path = None;
        assert_eq!(found(core), [""; 0]);
    }

    #[test]
    fn unknown_crate_is_found() {
        assert_eq!(
            found(member("crates/new-format", &[])),
            ["crates/new-format/Cargo.toml: crate has no place in the graph, \
                 expected one in xtask/src/tidy/graph.rs"]
        );
    }

    #[test]
    fn build_script_is_found() {
        let mut format = member("crates/ztensor-format", &[]);
        format.has_build_script = true;
        assert_eq!(
            found(format),
            ["crates/ztensor-format/Cargo.toml: there is a build script, expected none in crates/"]
        );
    }
}
