use std::{io, path::PathBuf};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{args::Args, failure::About, outcome::Outcome, output};

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  modelcrate completions bash > ~/.local/share/bash-completion/completions/modelcrate")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Args::command(), "modelcrate", &mut script);
        io::Write::write_all(&mut io::stdout().lock(), &script)?;
        Ok(Outcome::Fine)
    }
}

/// Print the manual page, of this command or of one of its commands, or write all of them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate man > modelcrate.1
  modelcrate man verify | man -l -
  modelcrate man --all ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The command whose page is wanted, such as `verify` or `ptl embed`
    #[arg(value_name = "COMMAND")]
    commands: Vec<String>,
    /// Write the pages of all commands into this folder, which must be there
    #[arg(long, value_name = "FOLDER", conflicts_with = "commands")]
    all: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let mut command = Args::command();
        if let Some(folder) = &self.all {
            clap_mangen::generate_to(command, folder).about(folder)?;
            return Ok(Outcome::Fine);
        }
        command.build();
        for name in &self.commands {
            let found = command.find_subcommand(name).cloned();
            command = found.ok_or_else(|| anyhow::anyhow!("there is no command {name:?}"))?;
        }
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        output::print_text(&String::from_utf8_lossy(&page))?;
        Ok(Outcome::Fine)
    }
}
