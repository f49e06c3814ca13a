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
Usage: ratios [--rounds N] [--full|--small] [TOPIC|main]...

Compares the crates with their peers and prints a Markdown table. Files go where TMPDIR says, up to
256 MiB. All topics are measured unless some are named; main is those of getting weights in and out.

  --rounds N   how often every side runs at least; 7 by default
  --full       files of up to 4 GiB, as the table says
  --small      small files, to see that everything runs";

const MAIN: [&str; 9] = [
    "convert",
    "content",
    "command",
    "open",
    "write",
    "carton_tensors",
    "carton_verify",
    "carton_pack",
    "rten_write",
];

fn main() -> Result<()> {
    let (mut rounds, mut scale, mut wanted) = (7, Scale::QUICK, Vec::new());
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-h" | "--help" => {
                println!("{HELP}\n\nTopics: {}", TOPICS.map(|topic| topic.name).join(", "));
                return Ok(());
            }
            "--rounds" => rounds = args.next().context("--rounds needs a number")?.parse()?,
            "--full" => scale = Scale::FULL,
            "--small" => scale = Scale::TEST,
            "main" => wanted.extend(MAIN.map(str::to_owned)),
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
        println!(
            "Smaller files: the sizes in the table are those of --full, not those that were measured."
        );
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
