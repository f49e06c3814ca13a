//! Prints the table of ratios of `benches/README.md`: every case, its sides in turn, best of
//! several rounds.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks through its output"
)]

use std::{env, fs, thread};

use anyhow::{Context as _, Result, bail};
use benches::{
    Scale,
    run::{self, TOPICS},
};

const HELP: &str = "\
Usage: ratios [--rounds N] [--small] [TOPIC]...

Compares the crates with their peers and prints a Markdown table. Files go where TMPDIR says, up to
4 GiB. All topics are measured unless some are named.

  --rounds N   how often every side runs at least; 7 by default
  --small      small files, to see that everything runs";

fn main() -> Result<()> {
    let (mut rounds, mut scale, mut wanted) = (7, Scale::FULL, Vec::new());
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-h" | "--help" => {
                println!("{HELP}\n\nTopics: {}", TOPICS.map(|topic| topic.name).join(", "));
                return Ok(());
            }
            "--rounds" => rounds = args.next().context("--rounds needs a number")?.parse()?,
            "--small" => scale = Scale::TEST,
            name if TOPICS.iter().any(|topic| topic.name == name) => wanted.push(arg),
            _ => bail!("unknown argument {arg:?}\n\n{HELP}"),
        }
    }
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let mut rows = Vec::new();
    for topic in TOPICS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == topic.name) {
            eprintln!("{} …", topic.name);
            rows.extend((topic.compare)(scale, rounds)?);
        }
    }
    let cores = thread::available_parallelism()?;
    let system = env::consts::OS;
    println!(
        "{cores} cores, {}, {system}; best of {rounds} rounds or more; load {load} before.",
        cpu()
    );
    if scale != Scale::FULL {
        println!("Small files: the sizes in the table are not those that were measured.");
    }
    println!();
    print!("{}", run::table(&rows));
    Ok(())
}

/// Returns what the system calls the processor.
fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    model.unwrap_or(env::consts::ARCH).to_owned()
}
