use modelcrate::rten_format::Model;
use serde::Serialize;

use crate::{
    options::{Format, Input, Print},
    outcome::Outcome,
    output,
};

/// Show everything in a model: every node with its attributes, every constant and where it is
///
/// Elements are shown where they are part of the model data and few.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate rten dump model.rten | less
  modelcrate rten dump --format json model.rten | jq '.model.graph.nodes[].name'")]
pub(crate) struct Dump {
    /// The model; - is standard input
    file: Input,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Dumped<'a> {
    path: String,
    version: u8,
    model: &'a Model,
}

impl Dump {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let reader = super::open(&self.file)?;
        match self.print.format {
            Format::Human => output::print_text(&reader.model().dump().to_string())?,
            Format::Json | Format::Jsonl => {
                let (path, model) = (self.file.display().to_string(), reader.model());
                let version = 1_u8.saturating_add(reader.header().is_some().into());
                output::print_result(self.print, &Dumped { path, version, model }, "")?;
            }
        }
        Ok(Outcome::Fine)
    }
}
