use clap::{Parser, Subcommand};

use crate::{generate, inspect, outcome::Outcome, verify};

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
    #[cfg(feature = "carton")]
    #[command(after_help = "\
Examples:
  modelcrate carton pack model/ -o model.carton --runner torchscript --framework-version =1.12.1
  modelcrate carton hash model.carton")]
    Carton {
        #[command(subcommand)]
        command: crate::carton::Carton,
    },
    /// Check, build, edit, unpack and describe nnpackages and their Circle and TFLite models
    #[cfg(feature = "nnpackage")]
    #[command(after_help = "\
Examples:
  modelcrate nnpackage check model.zip
  modelcrate nnpackage build model.circle -o model.zip
  modelcrate nnpackage connect --language dot models.zip | dot -Tsvg > models.svg")]
    Nnpackage {
        #[command(subcommand)]
        command: crate::nnpackage::Nnpackage,
    },
    /// Show, run, embed and remove specs of PyTorch Live models
    #[cfg(feature = "ptl")]
    #[command(after_help = "\
Examples:
  modelcrate ptl embed model.ptl live.spec.json
  modelcrate ptl pack model.ptl --param image=@photo.jpg --param side=224 -o inputs")]
    Ptl {
        #[command(subcommand)]
        command: crate::ptl::Ptl,
    },
    /// Draw, dump, edit, convert and export RTen models
    #[cfg(feature = "rten")]
    #[command(after_help = "\
Examples:
  modelcrate rten graph model.rten | dot -Tsvg > model.svg
  modelcrate rten to-v2 old.rten new.rten")]
    Rten {
        #[command(subcommand)]
        command: crate::rten::Rten,
    },
    /// Edit zTensor files
    #[cfg(feature = "ztensor")]
    #[command(after_help = "\
Example:
  modelcrate ztensor append model.zt --from adapter.zt")]
    Ztensor {
        #[command(subcommand)]
        command: crate::ztensor::Ztensor,
    },
    Completions(generate::Completions),
    Man(generate::Man),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        match self.command {
            Command::Inspect(command) => command.run(),
            Command::Verify(command) => command.run(),
            #[cfg(feature = "carton")]
            Command::Carton { command } => command.run(),
            #[cfg(feature = "nnpackage")]
            Command::Nnpackage { command } => command.run(),
            #[cfg(feature = "ptl")]
            Command::Ptl { command } => command.run(),
            #[cfg(feature = "rten")]
            Command::Rten { command } => command.run(),
            #[cfg(feature = "ztensor")]
            Command::Ztensor { command } => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
        }
    }
}
