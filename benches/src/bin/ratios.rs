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
    Scale, Topic,
    carton::{open::CartonOpen, pack::CartonPack, tensors::CartonTensors, verify::CartonVerify},
    compress::Compress,
    nnpackage::{open::NnpackageOpen, write::NnpackageWrite},
    open::Open,
    ptl::{files::PtlFiles, image::PtlImage, tokens::PtlTokens},
    read::Read,
    rten::{open::RtenOpen, write::RtenWrite},
    run,
    verify::Verify,
    write::Write,
};

const HELP: &str = "\
Usage: ratios [--rounds N] [--small] [TOPIC]...

Compares the crates with their peers and prints a Markdown table. Topics are read, open, write,
verify, compress, carton_open, carton_tensors, carton_verify, carton_pack, rten_open, rten_write, ptl_image,
ptl_tokens, ptl_files, nnpackage_open and nnpackage_write; all of them by default. Files go where TMPDIR
says, up to 4 GiB.

  --rounds N   how often every side runs at least; 7 by default
  --small      small files, to see that everything runs";

/// How a topic is run, by its name.
type Entry = (&'static str, fn(Scale, usize) -> Result<Vec<run::Row>>);

/// All topics, in the order of the table.
const TOPICS: [Entry; 16] = [
    (Read::NAME, run::compare::<Read>),
    (Open::NAME, run::compare::<Open>),
    (Write::NAME, run::compare::<Write>),
    (Verify::NAME, run::compare::<Verify>),
    (Compress::NAME, run::compare::<Compress>),
    (CartonOpen::NAME, run::compare::<CartonOpen>),
    (CartonTensors::NAME, run::compare::<CartonTensors>),
    (CartonVerify::NAME, run::compare::<CartonVerify>),
    (CartonPack::NAME, run::compare::<CartonPack>),
    (RtenOpen::NAME, run::compare::<RtenOpen>),
    (RtenWrite::NAME, run::compare::<RtenWrite>),
    (PtlImage::NAME, run::compare::<PtlImage>),
    (PtlTokens::NAME, run::compare::<PtlTokens>),
    (PtlFiles::NAME, run::compare::<PtlFiles>),
    (NnpackageOpen::NAME, run::compare::<NnpackageOpen>),
    (NnpackageWrite::NAME, run::compare::<NnpackageWrite>),
];

fn main() -> Result<()> {
    let (mut rounds, mut scale, mut wanted) = (7, Scale::FULL, Vec::new());
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-h" | "--help" => {
                println!("{HELP}");
                return Ok(());
            }
            "--rounds" => rounds = args.next().context("--rounds needs a number")?.parse()?,
            "--small" => scale = Scale::TEST,
            name if TOPICS.iter().any(|(topic, _)| *topic == name) => wanted.push(arg),
            _ => bail!("unknown argument {arg:?}\n\n{HELP}"),
        }
    }
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let mut rows = Vec::new();
    for (name, compare) in TOPICS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            eprintln!("{name} …");
            rows.extend(compare(scale, rounds)?);
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
