//! Every check that a change has to pass; `.ci/run` runs this list and nothing else.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::{
    cargo, codegen, command, engines, gallery, golden, onert_table, oracles, output, pages, rules,
    shown, succeed, tidy, wheel,
    workspace::{self, Member},
};

/// Runs the steps in order and stops at the first that fails.
pub(crate) fn run() -> Result<()> {
    let started = Instant::now();
    let steps = steps(&workspace::members()?);
    let result = steps.iter().try_for_each(Step::run);
    println!("\n==> {} after {}", verdict(&result), elapsed(started));
    result
}

struct Step {
    title: String,
    action: Action,
}

enum Action {
    /// Calls of cargo, one after the other.
    Cargo(Vec<Call>),
    /// A command of this program.
    Here(fn() -> Result<()>),
}

/// One call of cargo.
struct Call {
    args: Vec<String>,
    variables: &'static [(&'static str, &'static str)],
}

/// Returns the steps for a workspace of these members.
///
/// All builds use the profile `dev`, benchmarks too, so that a dependency is compiled once: what is
/// checked here is that they run, not how fast.
fn steps(members: &[Member]) -> Vec<Step> {
    vec![
        Step::cargo("fmt --all --check"),
        Step::here("xtask tidy", tidy::run),
        Step::here("xtask codegen --check", codegen::check),
        Step::cargo("clippy --workspace --all-targets --all-features -- -D warnings"),
        Step::here("xtask oracles", oracles::install),
        Step::cargo("test --workspace"),
        Step::here("test addresses, against servers of ours", engines::own_servers),
        #[cfg(unix)]
        Step::here("xtask faults --kills 20", crate::faults::some),
        Step::here("xtask conformance", conformance),
        Step::here("xtask onert-table --check", onert_table::check),
        Step::here("xtask python", wheel::test),
        documentation(),
        each_crate_alone(members),
        other_targets(),
        packages(members),
        Step::here("cargo deny", deny),
        Step::here("xtask golden --check", golden::check),
        Step::here("reports in docs/gallery", gallery::check),
        Step::here("xtask pages", pages::check),
        Step::here("xtask rules --check", rules::check),
        Step::cargo("bench --profile dev -p benches --features peers --bench * -- --test"),
    ]
}

/// Runs the tests that need the real clients of the formats, and the peers from the registry, which
/// take longer to build than everything of ours.
pub(crate) fn conformance() -> Result<()> {
    Call::new("test -p conformance --features peers").run()
}

/// With all features, as docs.rs builds it, and with those that a user has by default.
fn documentation() -> Step {
    // Without the peers there is nothing in benches to document.
    let selections = ["--all-features", "--exclude benches"].into_iter();
    let calls = selections.map(|flags| Call {
        variables: &[("RUSTDOCFLAGS", "-D warnings")],
        ..Call::new(&format!("doc --workspace --no-deps {flags}"))
    });
    Step::calls("documentation", calls.collect())
}

/// Checks the crates that need no C compiler on targets of 32 bits and without a system, where
/// their standard libraries are installed.
fn other_targets() -> Step {
    let packages: String = PORTABLE.iter().map(|name| format!("-p {name} ")).collect();
    let flags = format!("{packages}--no-default-features");
    let libraries = output(command("rustc").args(["--print", "sysroot"])).unwrap_or_default();
    let libraries = Path::new(libraries.trim()).join("lib/rustlib");
    let (installed, missing): (Vec<&str>, Vec<&str>) =
        TARGETS.into_iter().partition(|target| libraries.join(target).join("lib").is_dir());
    for target in missing {
        println!("skipped: the standard library for {target} is not installed");
    }
    let calls =
        installed.iter().map(|target| Call::new(&format!("check {flags} --target {target}")));
    Step::calls("other targets", calls.collect())
}

const TARGETS: [&str; 2] = ["i686-unknown-linux-gnu", "wasm32-unknown-unknown"];

/// The libraries that compile without a C compiler once their default features are off.
const PORTABLE: [&str; 6] =
    ["tensor-core", "flat-tables", "ztensor-format", "rten-format", "circle-format", "nnpackage"];

/// Makes the packages that a registry would get. They are not built once more: each crate was, alone,
/// and what is left out of a package is nothing but tests.
fn packages(members: &[Member]) -> Step {
    let published = members.iter().filter(|member| member.is_published);
    let names: String = published.map(|member| format!(" -p {}", member.name)).collect();
    Step::calls("packages", vec![Call::new(&format!("package --locked --no-verify{names}"))])
}

/// Checks the licences, versions and sources of the dependencies.
///
/// Advisories need a copy of their database, which is fetched from elsewhere than the registry.
fn deny() -> Result<()> {
    Call::new("deny --log-level error check --hide-inclusion-graph licenses bans sources").run()
}

/// Checks every published library without the others, which would turn its features on.
fn each_crate_alone(members: &[Member]) -> Step {
    let libraries = members.iter().filter(|member| {
        member.is_library && member.is_published && member.folder.starts_with("crates/")
    });
    let calls = libraries.flat_map(|member| {
        selections(&member.features)
            .into_iter()
            .map(|flags| Call::new(&format!("clippy -p {} {flags} -- -D warnings", member.name)))
    });
    Step::calls("each crate alone", calls.collect())
}

/// Returns the flags for no, default and all features and for each one, without repetitions.
fn selections(features: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut selections = vec!["--no-default-features".to_owned()];
    if features.get("default").is_some_and(|on| !on.is_empty()) {
        selections.push(String::new());
    }
    let single: Vec<&String> = features.keys().filter(|name| *name != "default").collect();
    for name in &single {
        selections.push(format!("--no-default-features --features {name}"));
    }
    if single.len() > 1 {
        selections.push("--all-features".to_owned());
    }
    selections
}

impl Step {
    fn cargo(args: &str) -> Self {
        Self::calls(&format!("cargo {args}"), vec![Call::new(args)])
    }

    fn here(args: &str, command: fn() -> Result<()>) -> Self {
        Self { title: format!("cargo {args}"), action: Action::Here(command) }
    }

    fn calls(title: &str, calls: Vec<Call>) -> Self {
        Self { title: title.to_owned(), action: Action::Cargo(calls) }
    }

    fn run(&self) -> Result<()> {
        println!("\n==> {}", self.title);
        let started = Instant::now();
        let result = self.action.run();
        println!("<== {}: {} after {}", self.title, verdict(&result), elapsed(started));
        result
    }
}

impl Action {
    fn run(&self) -> Result<()> {
        match self {
            Self::Cargo(calls) => calls.iter().try_for_each(Call::run),
            Self::Here(command) => command(),
        }
    }
}

impl Call {
    fn new(args: &str) -> Self {
        Self { args: args.split_whitespace().map(str::to_owned).collect(), variables: &[] }
    }

    fn run(&self) -> Result<()> {
        let mut cargo = cargo();
        cargo.args(&self.args).envs(self.variables.iter().copied());
        let variables = self.variables.iter();
        let variables: String = variables.map(|(k, v)| format!("{k}={v:?} ")).collect();
        println!("$ {variables}{}", shown(&cargo));
        succeed(&mut cargo)
    }
}

fn verdict(result: &Result<()>) -> &'static str {
    if result.is_ok() { "passed" } else { "failed" }
}

fn elapsed(since: Instant) -> String {
    duration(since.elapsed())
}

fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        return format!("{:.1} s", duration.as_secs_f64());
    }
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(names: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
        let owned = |on: &[&str]| on.iter().map(|&on| on.to_owned()).collect();
        names.iter().map(|&(name, on)| (name.to_owned(), owned(on))).collect()
    }

    fn calls(step: &Step) -> Vec<String> {
        match &step.action {
            Action::Cargo(calls) => calls.iter().map(|call| call.args.join(" ")).collect(),
            Action::Here(_) => Vec::new(),
        }
    }

    #[test]
    fn no_features_are_one_selection() {
        assert_eq!(selections(&features(&[])), ["--no-default-features"]);
        assert_eq!(selections(&features(&[("default", &[])])), ["--no-default-features"]);
    }

    #[test]
    fn every_feature_is_selected_alone() {
        let features = features(&[("default", &["zstd"]), ("mmap", &[]), ("zstd", &[])]);
        assert_eq!(
            selections(&features),
            [
                "--no-default-features",
                "",
                "--no-default-features --features mmap",
                "--no-default-features --features zstd",
                "--all-features",
            ]
        );
    }

    #[test]
    fn only_published_libraries_are_checked_alone() {
        let unpublished = Member { is_published: false, ..Member::library("crates/test-support") };
        let command = Member { is_library: false, ..Member::library("crates/modelcrate-cli") };
        let step = each_crate_alone(&[unpublished, command, Member::library("crates/ztensor")]);
        assert_eq!(calls(&step), ["clippy -p ztensor --no-default-features -- -D warnings"]);
    }

    #[test]
    fn minutes_are_shown_from_one_minute_on() {
        assert_eq!(duration(Duration::from_millis(59_940)), "59.9 s");
        assert_eq!(duration(Duration::from_secs(185)), "3 min 05 s");
    }
}
