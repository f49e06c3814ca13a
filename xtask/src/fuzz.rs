//! Runs the fuzz targets of `fuzz/` on any bytes, and keeps what breaks them.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{cargo, command, output, processor_time, root, succeed};

/// Builds and runs the targets that are named, or all, each for so many minutes of processor time
/// and as many at once as there are processors.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let (minutes, wanted) = parse(args)?;
    let targets = chosen(targets()?, &wanted)?;
    let programs = build(&targets)?;
    println!("\n| target | inputs | processor minutes | findings |\n|---|---|---|---|");
    let mut broken = 0;
    for targets in targets.chunks(thread::available_parallelism().map_or(1, NonZeroUsize::get)) {
        let runs: Result<Vec<Run>> =
            targets.iter().map(|target| Run::start(target, &programs, minutes)).collect();
        for (target, ended) in ends(runs?) {
            let Ended { inputs, time, findings } = ended?;
            println!("| {target} | {inputs} | {} | {findings} |", time.as_secs() / 60);
            broken += findings;
        }
    }
    ensure!(broken == 0, "{broken} inputs broke a target; they are in fuzz/corpus");
    Ok(())
}

/// Waits for all runs at once, each of which has its own time.
fn ends(runs: Vec<Run>) -> Vec<(String, Result<Ended>)> {
    thread::scope(|scope| {
        let waiting = runs.into_iter().map(|run| {
            let target = run.target.clone();
            (target, scope.spawn(move || run.end()))
        });
        let waiting: Vec<_> = waiting.collect();
        let panicked = || bail!("the thread that waited for it panicked");
        waiting
            .into_iter()
            .map(|(name, run)| (name, run.join().unwrap_or_else(|_| panicked())))
            .collect()
    })
}

fn parse<'a>(args: &[&'a str]) -> Result<(u64, Vec<&'a str>)> {
    let (mut minutes, mut targets, mut args) = (1, Vec::new(), args.iter());
    while let Some(&arg) = args.next() {
        match arg {
            "--minutes" => {
                let number = args.next().and_then(|number| number.parse().ok());
                // None at all would be no limit for libFuzzer.
                let number = number.filter(|number| *number > 0);
                minutes = number.context("--minutes needs a whole number from 1 on")?;
            }
            option if option.starts_with('-') => bail!("unknown option {option:?}"),
            target => targets.push(target),
        }
    }
    Ok((minutes, targets))
}

fn targets() -> Result<BTreeSet<String>> {
    let stem = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry?.path();
        Ok(path.file_stem().unwrap_or_default().to_string_lossy().into_owned())
    };
    fs::read_dir(root().join("fuzz/src/bin"))?.map(stem).collect()
}

fn chosen(all: BTreeSet<String>, wanted: &[&str]) -> Result<Vec<String>> {
    if let Some(unknown) = wanted.iter().find(|name| !all.contains(**name)) {
        let all: Vec<String> = all.into_iter().collect();
        bail!("there is no fuzz target {unknown:?}, expected one of {}", all.join(", "));
    }
    let is_wanted = |name: &String| wanted.is_empty() || wanted.contains(&name.as_str());
    Ok(all.into_iter().filter(is_wanted).collect())
}

/// Builds targets with counters of coverage and under the address sanitizer, and returns the
/// folder that they are in.
///
/// Only nightly compilers take these flags by themselves; the stable one is told to.
fn build(targets: &[String]) -> Result<PathBuf> {
    let host = output(command("rustc").args(["--print", "host-tuple"]))?;
    let (host, target) = (host.trim(), root().join("target/fuzz"));
    // Dependencies are those of the workspace; cargo adds the few that only the targets have.
    fs::copy(root().join("Cargo.lock"), root().join("fuzz/Cargo.lock"))?;
    let mut build = cargo();
    build.args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", host]);
    build.arg("--target-dir").arg(&target);
    build.args(targets.iter().flat_map(|target| ["--bin", target]));
    build.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", FLAGS.join(" "));
    succeed(&mut build)?;
    Ok(target.join(host).join("release"))
}

const FLAGS: [&str; 7] = [
    "--cfg fuzzing",
    "-Zsanitizer=address",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// A target that is being run; it stops at its first finding.
struct Run {
    target: String,
    child: Child,
    /// The processor time that it gets.
    limit: Duration,
    log: PathBuf,
    /// Where the inputs come that break it.
    broken: PathBuf,
}

impl Run {
    fn start(target: &str, programs: &Path, minutes: u64) -> Result<Self> {
        let folder = root().join("target/fuzz/runs").join(target);
        let (learnt, broken) = (folder.join("learnt"), folder.join("broken"));
        for folder in [&learnt, &broken] {
            fs::create_dir_all(folder).with_context(|| format!("{folder:?}"))?;
        }
        let log = folder.join("log");
        let mut command = command(programs.join(target));
        command.arg(format!("-artifact_prefix={}/", broken.display()));
        command.args(OPTIONS);
        // What is new goes into the first folder.
        command.arg(&learnt).args(seeds(target));
        command.stdout(Stdio::null()).stderr(File::create(&log)?);
        let child = command.spawn().with_context(|| format!("{target} cannot be started"))?;
        let limit = Duration::from_secs(minutes * 60);
        Ok(Self { target: target.to_owned(), child, limit, log, broken })
    }

    /// Waits until it stops by itself or has had its time, and is asked to stop then; returns the
    /// time that it has had.
    fn wait(&mut self) -> Result<(ExitStatus, Duration)> {
        let id = self.child.id().to_string();
        let mut time = Duration::ZERO;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok((status, time));
            }
            time = processor_time(&id, 14)?;
            if time >= self.limit {
                succeed(command("kill").args(["-INT", &id]))?;
                return Ok((self.child.wait()?, time));
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits for the end; inputs that broke the target are moved to where the tests replay them.
    fn end(mut self) -> Result<Ended> {
        let (status, time) = self.wait()?;
        let log = fs::read(&self.log)?;
        let inputs = inputs(&String::from_utf8_lossy(&log));
        let inputs =
            inputs.with_context(|| format!("{} did not run: {:?}", self.target, self.log))?;
        let kept = root().join("fuzz/corpus").join(&self.target);
        let mut findings = 0;
        for found in fs::read_dir(&self.broken)? {
            let found = found?.path();
            let name = found.file_name().unwrap_or_default().to_string_lossy();
            if let Some(name) = kept_name(&name) {
                println!("{}: {name} breaks it, as {:?} says", self.target, self.log);
                fs::create_dir_all(&kept)?;
                fs::copy(&found, kept.join(name))?;
                findings += 1;
            }
            fs::remove_file(&found)?;
        }
        let has_ended = findings > 0 || status.code() == Some(INTERRUPTED);
        ensure!(has_ended, "{} failed with {status}: {:?}", self.target, self.log);
        Ok(Ended { inputs, time, findings })
    }
}

impl Drop for Run {
    /// Leaves no process behind where another one has failed.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// What came of a run.
struct Ended {
    /// How many inputs were tried.
    inputs: u64,
    /// The processor time that it has had.
    time: Duration,
    /// How many inputs broke the target.
    findings: usize,
}

/// What libFuzzer exits with where it is asked to stop.
const INTERRUPTED: i32 = 72;

/// libFuzzer hands each input over in a heap buffer of its length. Leaks are none of its business:
/// safe code may leak.
const OPTIONS: [&str; 5] = [
    "-print_final_stats=1",
    "-max_len=65536",
    "-timeout=30",
    "-rss_limit_mb=2048",
    "-detect_leaks=0",
];

/// Returns folders of inputs to start from: earlier findings, and the files of the format.
fn seeds(target: &str) -> Vec<PathBuf> {
    let testdata = root().join("testdata");
    let format = target.split('_').next().map(|format| match format {
        "zt2" => testdata.join("ztensor/v2"),
        format => testdata.join(format),
    });
    let files = format.filter(|folder| folder.is_dir()).unwrap_or(testdata);
    let found = root().join("fuzz/corpus").join(target);
    [found, files].into_iter().filter(|folder| folder.is_dir()).collect()
}

/// Returns how many inputs a log says were tried.
fn inputs(log: &str) -> Option<u64> {
    let line = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line?.trim().parse().ok()
}

/// Returns the name that an input gets in the corpus: the start of its digest; `None` where it was
/// only slow.
fn kept_name(artifact: &str) -> Option<&str> {
    let (kind, digest) = artifact.split_once('-')?;
    ["crash", "oom", "timeout"].contains(&kind).then(|| digest.get(..16)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_minutes_come_in_any_order() {
        assert_eq!(parse(&["a", "--minutes", "30", "b"]).unwrap(), (30, vec!["a", "b"]));
        assert_eq!(parse(&[]).unwrap(), (1, Vec::new()));
        for (args, message) in [
            (&["--minutes"][..], "--minutes needs a whole number from 1 on"),
            (&["--minutes", "x"], "--minutes needs a whole number from 1 on"),
            (&["--minutes", "0"], "--minutes needs a whole number from 1 on"),
            (&["--fast"], "unknown option \"--fast\""),
        ] {
            assert_eq!(parse(args).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn unknown_targets_are_refused() {
        let all = || ["a", "b"].map(str::to_owned).into();
        assert_eq!(chosen(all(), &[]).unwrap(), ["a", "b"]);
        assert_eq!(chosen(all(), &["b"]).unwrap(), ["b"]);
        let message = "there is no fuzz target \"c\", expected one of a, b";
        assert_eq!(chosen(all(), &["c"]).unwrap_err().to_string(), message);
    }

    #[test]
    fn every_target_has_seeds() {
        for target in targets().unwrap() {
            assert!(!seeds(&target).is_empty(), "{target}");
        }
    }

    #[test]
    fn logs_say_how_many_inputs_there_were() {
        let log = "Done 17 runs\nstat::number_of_executed_units: 17\nstat::peak_rss_mb: 40\n";
        assert_eq!(inputs(log), Some(17));
        assert_eq!(inputs(""), None);
    }

    #[test]
    fn only_faults_are_kept() {
        let digest = "0123456789abcdef0123456789abcdef01234567";
        for (kind, kept) in
            [("crash", true), ("oom", true), ("timeout", true), ("slow-unit", false)]
        {
            let name = format!("{kind}-{digest}");
            assert_eq!(kept_name(&name), kept.then_some("0123456789abcdef"), "{kind}");
        }
    }
}
