use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::{Outcome, generate, inspect, verify, zt};

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
