//! What a newcomer pays: time and space of the first builds, from clean, beside what they may cost.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{cargo, processor_time, root, succeed};

/// Measures one build after the other, each from clean, and prints the table of CONTRIBUTING.md; or
/// those rows of it that are named.
pub(crate) fn run(parts: &[&str]) -> Result<()> {
    if let Some(unknown) = parts.iter().find(|part| PARTS.iter().all(|(name, _)| name != *part)) {
        bail!("{unknown:?} is not a part of the table");
    }
    let mut rows = Vec::new();
    for (_, measure) in PARTS.iter().filter(|(name, _)| parts.is_empty() || parts.contains(name)) {
        let found = measure()?;
        // What was measured is not lost where a later build fails.
        found.iter().for_each(|row| println!("{}: {}", row.what, row.found));
        rows.extend(found);
    }
    println!("\n| what | measured | at most |\n|---|---|---|");
    for row in &rows {
        println!("| {} | {} | {} |", row.what, row.found, row.most);
    }
    match rows.iter().filter(|row| row.is_over).count() {
        0 => Ok(()),
        over => bail!("{over} of {} figures are over what they may be", rows.len()),
    }
}

type Measure = fn() -> Result<Vec<Row>>;

const PARTS: [(&str, Measure); 4] =
    [("command", first_command), ("release", release), ("tests", tests), ("core", core)];

struct Row {
    what: &'static str,
    found: String,
    most: String,
    is_over: bool,
}

impl Row {
    fn time(what: &'static str, found: Duration, most: u64) -> Self {
        let (seconds, is_over) = (found.as_secs_f64(), found > Duration::from_secs(most));
        let show = |seconds: f64| {
            if most < 300 {
                format!("{seconds:.0} s")
            } else {
                format!("{:.1} min", seconds / 60.0)
            }
        };
        #[expect(clippy::cast_precision_loss, reason = "a number of seconds")]
        let limit = show(most as f64);
        Self { what, found: show(seconds), most: limit, is_over }
    }

    fn bytes(what: &'static str, found: u64, most: u64) -> Self {
        let show = |bytes: u64| {
            let tenths = bytes / 100_000;
            if bytes < 1_000_000_000 {
                return format!("{}.{} MB", tenths / 10, tenths % 10);
            }
            format!("{}.{} GB", tenths / 10_000, tenths / 1000 % 10)
        };
        Self { what, found: show(found), most: show(most), is_over: found > most }
    }

    fn count(what: &'static str, found: usize, most: usize) -> Self {
        Self { what, found: found.to_string(), most: most.to_string(), is_over: found > most }
    }
}

/// The first command of the README: a build of the command to try it.
fn first_command() -> Result<Vec<Row>> {
    let target = clean("dev")?;
    let started = Instant::now();
    succeed(build(&target).args(["build", "-p", "modelcrate-cli"]))?;
    let row = Row::time("README's first command, from clean", started.elapsed(), 150);
    fs::remove_dir_all(&target)?;
    Ok(vec![row])
}

/// The command as it is installed.
fn release() -> Result<Vec<Row>> {
    let target = clean("release")?;
    let started = Instant::now();
    succeed(build(&target).args(["build", "--release", "-p", "modelcrate-cli"]))?;
    let binary = target.join("release/modelcrate");
    let len = fs::metadata(&binary).with_context(|| format!("{binary:?}"))?.len();
    let rows = vec![
        Row::time("an optimised build of the command, from clean", started.elapsed(), 286),
        Row::bytes("the command, stripped", len, 12_000_000),
    ];
    fs::remove_dir_all(&target)?;
    Ok(rows)
}

/// The second command of the README: all tests.
fn tests() -> Result<Vec<Row>> {
    let target = clean("test")?;
    let cpu = processor_time("self", 16)?;
    let mut compile = build(&target);
    compile.args(["test", "--workspace", "--no-run", "--message-format", "json"]);
    let compiled = compile.stderr(Stdio::inherit()).output()?;
    if !compiled.status.success() {
        bail!("cargo test --workspace --no-run failed: {}", compiled.status);
    }
    let messages = String::from_utf8(compiled.stdout)?;
    let binaries = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let binaries = binaries
        .filter(|message| message["profile"]["test"] == true && message["executable"].is_string());
    let binaries = binaries.count();
    succeed(build(&target).args(["test", "--workspace", "--quiet"]))?;
    let cpu = processor_time("self", 16)?.saturating_sub(cpu);
    let rows = vec![
        Row::time("`cargo test --workspace` from clean, processor time", cpu, 12 * 60),
        Row::count("test binaries", binaries, 40),
        Row::bytes("target folder of the tests", folder_len(&target)?, 4_000_000_000),
    ];
    fs::remove_dir_all(&target)?;
    Ok(rows)
}

/// The crate that everything stands on, as a dependency is built.
fn core() -> Result<Vec<Row>> {
    let target = clean("core")?;
    let cpu = processor_time("self", 16)?;
    succeed(build(&target).args(["build", "-p", "tensor-core"]))?;
    let cpu = processor_time("self", 16)?.saturating_sub(cpu);
    fs::remove_dir_all(&target)?;
    Ok(vec![Row::time("debug build of tensor-core alone, processor time", cpu, 8)])
}

/// Returns a call of cargo that builds into a folder of its own.
fn build(target: &Path) -> Command {
    let mut cargo = cargo();
    cargo.env("CARGO_TARGET_DIR", target).env("CARGO_INCREMENTAL", "0");
    cargo
}

fn clean(name: &str) -> Result<PathBuf> {
    let target = root().join("target/newcomer").join(name);
    match fs::remove_dir_all(&target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(target),
    }
}

/// Returns the bytes of all files below a folder; what has several names counts once a name.
fn folder_len(folder: &Path) -> Result<u64> {
    let mut len = 0_u64;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let more = if metadata.is_dir() { folder_len(&entry.path())? } else { metadata.len() };
        len = len.saturating_add(more);
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_shown_in_the_units_of_their_limits() {
        let row = Row::time("", Duration::from_millis(149_600), 150);
        assert_eq!((row.found.as_str(), row.most.as_str(), row.is_over), ("150 s", "150 s", false));
        let row = Row::time("", Duration::from_secs(12 * 60 + 1), 12 * 60);
        assert_eq!((row.found.as_str(), row.is_over), ("12.0 min", true));
        let row = Row::bytes("", 11_960_000, 12_000_000);
        assert_eq!((row.found.as_str(), row.most.as_str()), ("11.9 MB", "12.0 MB"));
        assert_eq!(Row::bytes("", 4_120_000_000, 4_000_000_000).found, "4.1 GB");
    }

    #[test]
    fn time_of_children_grows() {
        let before = processor_time("self", 16).unwrap();
        assert!(Command::new("true").status().unwrap().success());
        assert!(processor_time("self", 16).unwrap() >= before);
    }
}
