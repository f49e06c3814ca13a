//! The checks and chores of this workspace, run as `cargo xtask COMMAND`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks through its output"
)]

mod ci;
mod codegen;
mod descriptions;
mod engines;
#[cfg(unix)]
mod faults;
mod fuzz;
mod gallery;
mod golden;
mod newcomer;
mod npm;
mod onert_table;
mod oracles;
mod pages;
mod python;
mod rules;
mod tidy;
mod wheel;
mod workspace;

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

const HELP: &str = "\
Usage: cargo xtask COMMAND

Commands:
  ci                  run every check that a change has to pass, in order
  tidy                check the crate graph, the manifests, the sources and the test data
  codegen [--check]   make code from the FlatBuffers schemas, or check that it is up to date
  conformance         run the real clients of the formats on our files, and us on theirs
  engines             install servers of buckets, and run the tests that need them
  faults [--kills N]  kill every command that changes a file, 200 times unless told, limit the size
                      of its files and fill its disk: the old file or the new one is left
  fuzz [TARGET]... [--minutes N]
                      run fuzz targets under the address sanitizer; what breaks one is kept
  golden [--check]    write the golden files and docs/gallery, or compare them with what is made
  newcomer [command|release|tests|core]...
                      measure what the first builds cost, from clean, and compare with the limits
  onert-table [--check]
                      measure what onert does with each operator, or compare it with the table
  oracles [--check]   install the real clients of the formats, or say which are installed
  pages [--keep]      open reports in a browser and use them; keep pictures that changed
  python [--bench|--clusters|--door]
                      build the Python package, install it, and run its tests and type checkers; or
                      measure it beside safetensors, run it on Spark and Ray, or follow its README
  rules [--check]     write docs/rules.md, each rule with a file that breaks it, or compare it
  help                print this text";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<()> {
    match args {
        ["ci"] => ci::run(),
        ["tidy"] => tidy::run(),
        ["codegen"] => codegen::write(),
        ["codegen", "--check"] => codegen::check(),
        ["conformance"] => ci::conformance(),
        ["engines"] => engines::run(),
        #[cfg(unix)]
        ["faults"] => faults::run(200),
        #[cfg(unix)]
        ["faults", "--kills", kills] => faults::run(kills.parse().context("--kills")?),
        ["fuzz", args @ ..] => fuzz::run(args),
        ["golden"] => golden::write().and_then(|()| gallery::write()),
        ["golden", "--check"] => golden::check().and_then(|()| gallery::check()),
        ["newcomer", parts @ ..] => newcomer::run(parts),
        ["onert-table"] => onert_table::write(),
        ["onert-table", "--check"] => onert_table::check(),
        ["pages"] => pages::check(),
        ["pages", "--keep"] => pages::keep(),
        ["python"] => wheel::test(),
        ["python", "--clusters"] => wheel::clusters(),
        ["python", "--door"] => wheel::door(),
        ["python", "--bench"] => wheel::bench(),
        ["rules"] => rules::write(),
        ["rules", "--check"] => rules::check(),
        ["oracles"] => oracles::install(),
        ["oracles", "--check"] => oracles::check(),
        [] | ["help" | "-h" | "--help"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => bail!("unknown command {:?}\n\n{HELP}", args.join(" ")),
    }
}

/// Returns the root folder of the workspace.
fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// Returns a command that runs at the root of the workspace, without standard input.
fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Returns a command that runs cargo as if from a shell.
///
/// What `cargo run` tells this program about itself is removed: build scripts that watch those
/// variables would run again each time.
fn cargo() -> Command {
    let mut command = command(env::var_os("CARGO").unwrap_or("cargo".into()));
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_about_this_package) {
            command.env_remove(name);
        }
    }
    command
}

fn is_about_this_package(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}

/// Runs a command whose output goes to ours; an error where it fails.
fn succeed(command: &mut Command) -> Result<()> {
    let status =
        command.status().with_context(|| format!("{} cannot be started", shown(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", shown(command));
    }
    Ok(())
}

/// Runs a command and returns its standard output; an error where it fails.
fn output(command: &mut Command) -> Result<String> {
    let output =
        command.output().with_context(|| format!("{} cannot be started", shown(command)))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        let status = output.status;
        bail!("{} failed: {status}: {}", shown(command), message.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("output of {}", shown(command)))
}

/// Returns the program and its arguments as one would type them.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name();
    let words = program.into_iter().chain(command.get_args());
    let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    words.join(" ")
}

/// Returns processor time of a process: field 14 of its `stat` is its own, field 16 that of the children
/// that it has waited for.
fn processor_time(process: &str, field: usize) -> Result<Duration> {
    let path = format!("/proc/{process}/stat");
    let stat = fs::read_to_string(&path).context("processor times need /proc")?;
    // Behind the name of the program, which may hold anything but is in parentheses: from field 3 on.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks = fields.skip(field.saturating_sub(3)).take(2).map(str::parse::<u64>);
    let ticks: u64 = ticks.sum::<Result<_, _>>().context(path)?;
    Ok(Duration::from_millis(ticks.saturating_mul(10)))
}

fn quoted(word: &str) -> String {
    if word.contains([' ', '\n', '*']) {
        return format!("'{word}'");
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_command_is_named() {
        let error = run(&["tidy", "--fast"]).unwrap_err().to_string();
        assert!(error.starts_with("unknown command \"tidy --fast\""));
    }

    #[test]
    fn own_package_variables_are_hidden_from_cargo() {
        assert!(is_about_this_package("CARGO_PKG_NAME"));
        assert!(is_about_this_package("CARGO_MANIFEST_DIR"));
        assert!(!is_about_this_package("CARGO_TARGET_DIR"));
    }

    #[test]
    fn command_is_shown_without_folders() {
        let mut command = Command::new("/usr/bin/cargo");
        assert_eq!(shown(command.args(["fmt", "--all"])), "cargo fmt --all");
        assert_eq!(shown(command.arg("*")), "cargo fmt --all '*'");
    }

    #[test]
    fn failed_command_is_an_error() {
        let error = succeed(&mut Command::new("false")).unwrap_err().to_string();
        assert_eq!(error, "false failed: exit status: 1");
    }
}
