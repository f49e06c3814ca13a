use std::{path::PathBuf, str::FromStr};

use clap::{Parser, Subcommand, ValueEnum};

use crate::{Outcome, carton, generate, inspect, nnpackage, ptl, rten, verify, zt};

/// Opens model files whose toolchains are gone: looks inside, verifies, edits.
#[derive(Debug, Parser)]
#[command(name = "modelcrate", version, max_term_width = 100, after_help = EXIT_STATUS)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXIT_STATUS: &str = "\
Exit status: 0 all is well (warnings allowed), 1 a file is invalid, 2 the command could not be carried out.

Example:
  modelcrate inspect model.zt";

#[derive(Debug, Subcommand)]
enum Command {
    Inspect(inspect::Inspect),
    Verify(verify::Verify),
    /// Pack, link, fill, edit and compare cartons
    #[command(after_help = "\
Examples:
  modelcrate carton pack model/ -o model.carton --runner torchscript --framework-version =1.12.1
  modelcrate carton hash model.carton")]
    Carton {
        #[command(subcommand)]
        command: carton::Carton,
    },
    /// Check, build, edit, unpack and describe nnpackages and their Circle and TFLite models
    #[command(after_help = "\
Examples:
  modelcrate nnpackage check model.zip
  modelcrate nnpackage build model.circle -o model.zip
  modelcrate nnpackage connect --language dot models.zip | dot -Tsvg > models.svg")]
    Nnpackage {
        #[command(subcommand)]
        command: nnpackage::Nnpackage,
    },
    /// Show, run, embed and remove specs of PyTorch Live models
    #[command(after_help = "\
Examples:
  modelcrate ptl embed model.ptl live.spec.json
  modelcrate ptl pack model.ptl --param image=@photo.jpg --param side=224 -o inputs")]
    Ptl {
        #[command(subcommand)]
        command: ptl::Ptl,
    },
    /// Draw, dump, edit, convert and export RTen models
    #[command(after_help = "\
Examples:
  modelcrate rten graph model.rten | dot -Tsvg > model.svg
  modelcrate rten to-v2 old.rten new.rten")]
    Rten {
        #[command(subcommand)]
        command: rten::Rten,
    },
    /// Edit zTensor files
    #[command(after_help = "\
Example:
  modelcrate zt append model.zt --from adapter.zt")]
    Zt {
        #[command(subcommand)]
        command: zt::Zt,
    },
    Completions(generate::Completions),
    Man(generate::Man),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        match self.command {
            Command::Inspect(command) => command.run(),
            Command::Verify(command) => command.run(),
            Command::Carton { command } => command.run(),
            Command::Nnpackage { command } => command.run(),
            Command::Ptl { command } => command.run(),
            Command::Rten { command } => command.run(),
            Command::Zt { command } => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
        }
    }
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Human,
    /// One JSON object
    Json,
    /// One JSON object a line and file, as each is done
    Jsonl,
}

/// Options that every command has that prints results.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Print {
    /// How results are printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Show no progress
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// Tells whether a path means standard input or output.
pub(crate) fn is_stdio(path: &std::path::Path) -> bool {
    path.as_os_str() == "-"
}

/// A file to read; `-` is standard input.
pub(crate) type Input = PathBuf;

/// A number of bytes: digits alone, or with one of `KiB`, `MiB` and `GiB` behind them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
        let unit = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
        let (digits, unit) = unit.unwrap_or((text, 1_u64));
        let number = digits.trim_end().parse::<u64>().ok();
        let bytes = number.and_then(|number| number.checked_mul(unit));
        bytes.map(Self).ok_or_else(|| format!("{text:?} is no number of bytes, such as 16MiB"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("0", 0), ("17", 17), ("1KiB", 1024), ("3 MiB", 3 << 20)] {
            assert_eq!(text.parse::<Size>().unwrap().0, bytes);
        }
        for text in ["", "MiB", "-1", "1.5GiB", "1 kb", "99999999999999GiB"] {
            let message = format!("{text:?} is no number of bytes, such as 16MiB");
            assert_eq!(text.parse::<Size>().unwrap_err(), message);
        }
    }
}
