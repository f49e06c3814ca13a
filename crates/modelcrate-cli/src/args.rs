use clap::{Parser, Subcommand};
use modelcrate::Format;

use crate::{
    cat, catalog, compact, convert, create, diff, edit, explain, extract, failure::of_other_format,
    generate, hash, inspect, options::Manner, outcome::Outcome, recover, verify,
};

/// Opens model files whose toolchains are gone: looks inside, verifies, edits.
#[derive(Debug, Parser)]
#[command(name = "modelcrate", version, max_term_width = 100, after_help = EXIT_STATUS)]
pub(crate) struct Args {
    #[command(flatten)]
    manner: Manner,
    #[command(subcommand)]
    command: Command,
}

const EXIT_STATUS: &str = "\
Exit status: 0 all is well (warnings allowed), 1 a file is invalid, or the result would be and is \
refused, 2 the command could not be carried out.

A file for standard output (-) goes there once it is whole; over 64 MiB, it needs room in TMPDIR.

Example:
  modelcrate inspect model.zt";

#[derive(Debug, Subcommand)]
enum Command {
    Inspect(inspect::Inspect),
    Verify(verify::Verify),
    Catalog(catalog::Catalog),
    Convert(Box<convert::Convert>),
    Extract(extract::Extract),
    Cat(cat::Cat),
    Create(Box<create::Create>),
    Edit(Box<edit::Edit>),
    Compact(compact::Compact),
    Recover(recover::Recover),
    #[cfg(any(feature = "carton", feature = "nnpackage"))]
    Pack(Box<crate::pack::Pack>),
    #[cfg(any(feature = "carton", feature = "nnpackage"))]
    Unpack(Box<crate::unpack::Unpack>),
    Graph(crate::graph::Graph),
    #[cfg(feature = "page")]
    Report(crate::report::Report),
    Diff(diff::Diff),
    Hash(hash::Hash),
    /// Link, fill, edit and compare cartons
    #[cfg(feature = "carton")]
    #[command(after_help = "\
Example:
  modelcrate carton hash model.carton")]
    Carton {
        #[command(subcommand)]
        command: crate::carton::Carton,
    },
    /// Merge, split and edit nnpackages, and say what onert does with them
    #[cfg(feature = "nnpackage")]
    #[command(after_help = "\
Examples:
  modelcrate nnpackage onert model.zip
  modelcrate nnpackage split models.zip parts/")]
    Nnpackage {
        #[command(subcommand)]
        command: crate::nnpackage::Nnpackage,
    },
    /// Show the code of PyTorch Live models; show, run and embed their specs
    #[cfg(feature = "ptl")]
    #[command(after_help = "\
Examples:
  modelcrate ptl embed model.ptl live.spec.json
  modelcrate ptl inputs model.ptl --param image=@photo.jpg --param side=224 -o inputs")]
    Ptl {
        #[command(subcommand)]
        command: crate::ptl::Ptl,
    },
    /// Cut and edit RTen models
    #[cfg(feature = "rten")]
    #[command(after_help = "\
Examples:
  modelcrate rten requires model.rten
  modelcrate rten cut model.rten part.rten --outputs hidden")]
    Rten {
        #[command(subcommand)]
        command: crate::rten::Rten,
    },
    Explain(explain::Explain),
    Completions(generate::Completions),
    Man(generate::Man),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        self.manner.set();
        let taken = self.command.formats();
        self.command.run().map_err(|error| match taken {
            [] => error,
            taken => of_other_format(error, taken),
        })
    }
}

impl Command {
    /// Returns the formats that a command of a group is for; none of one that takes all.
    const fn formats(&self) -> &'static [Format] {
        match self {
            #[cfg(feature = "carton")]
            Self::Carton { .. } => &[Format::Carton],
            #[cfg(feature = "nnpackage")]
            Self::Nnpackage { .. } => &[Format::NnPackage, Format::Circle, Format::TfLite],
            #[cfg(feature = "ptl")]
            Self::Ptl { .. } => &[Format::Ptl, Format::PtlSpec],
            #[cfg(feature = "rten")]
            Self::Rten { .. } => &[Format::Rten],
            _ => &[],
        }
    }

    fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Command::Inspect(command) => command.run(),
            Command::Verify(command) => command.run(),
            Command::Catalog(command) => command.run(),
            Command::Convert(command) => command.run(),
            Command::Extract(command) => command.run(),
            Command::Cat(command) => command.run(),
            Command::Create(command) => command.run(),
            Command::Edit(command) => command.run(),
            Command::Compact(command) => command.run(),
            Command::Recover(command) => command.run(),
            #[cfg(any(feature = "carton", feature = "nnpackage"))]
            Command::Pack(command) => command.run(),
            #[cfg(any(feature = "carton", feature = "nnpackage"))]
            Command::Unpack(command) => command.run(),
            Command::Graph(command) => command.run(),
            #[cfg(feature = "page")]
            Command::Report(command) => command.run(),
            Command::Diff(command) => command.run(),
            Command::Hash(command) => command.run(),
            #[cfg(feature = "carton")]
            Command::Carton { command } => command.run(),
            #[cfg(feature = "nnpackage")]
            Command::Nnpackage { command } => command.run(),
            #[cfg(feature = "ptl")]
            Command::Ptl { command } => command.run(),
            #[cfg(feature = "rten")]
            Command::Rten { command } => command.run(),
            Command::Explain(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
        }
    }
}

#[cfg(all(
    test,
    feature = "http",
    feature = "nnpackage",
    feature = "page",
    feature = "ptl",
    feature = "rten",
    feature = "ztensor"
))]
mod tests {
    use std::{fs, path::Path};

    use clap::{Command, CommandFactory as _};

    use super::*;

    /// Commands that neither change nor make a file.
    const READERS: &str = "inspect, verify, explain, diff, hash, cat, completions, man, carton hash, \
        carton platforms, nnpackage config, nnpackage onert, ptl code, ptl results, ptl signature, ptl spec, \
        rten requires";

    /// Returns all commands that are not groups of others, with their full names.
    fn commands(group: &Command, before: &str) -> Vec<(String, Command)> {
        let commands = group.get_subcommands().map(|command| {
            let name = format!("{before}{}", command.get_name());
            let below = commands(command, &format!("{name} "));
            if below.is_empty() { vec![(name, command.clone())] } else { below }
        });
        commands.flatten().collect()
    }

    fn text(path: &str) -> String {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
    }

    #[test]
    fn every_command_that_writes_is_killed_and_made_to_wait() {
        let (killed, waiting) = (text("../../xtask/faults.toml"), text("tests/it/wait.rs"));
        for (name, command) in commands(&Args::command(), "") {
            let is_killed = killed.contains(&format!("\nrun = \"{name} "));
            assert!(is_killed != READERS.split(", ").any(|reader| reader == name), "{name}");
            let waits = command.get_arguments().any(|argument| argument.get_id() == "wait");
            assert_eq!(waiting.contains(&format!("\"{name} FILE")), waits, "{name}");
        }
    }

    /// Splits a line as a shell does, up to the end of its first command.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut is_quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '\'' => is_quoted = !is_quoted,
                '|' | '>' | '#' if !is_quoted => break,
                ' ' if !is_quoted => words.push(String::new()),
                c => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn examples_are_commands() {
        let mut texts = vec![text("README.md")];
        for (_, command) in commands(&Args::command(), "") {
            texts.extend(command.get_after_help().map(ToString::to_string));
        }
        for text in texts {
            for line in text.replace("\\\n", " ").lines().map(str::trim_start) {
                if line.starts_with("modelcrate ") {
                    Args::try_parse_from(words(line)).unwrap_or_else(|error| panic!("{error}"));
                }
            }
        }
    }
}
