use std::{io::Write as _, path::PathBuf};

use anyhow::{anyhow, ensure};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Input, is_stdio},
    outcome::Outcome,
    output,
    paths::same_file,
    write::Writing,
};

/// Write an extra file of a model into a file of its own
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl extract model.ptl model/live.spec.json live.spec.json
  modelcrate ptl extract model.ptl labels.txt - | head")]
pub(crate) struct Extract {
    /// The model to read; - is standard input
    model: Input,
    /// The name of the extra file, such as `model/live.spec.json`
    name: String,
    /// The file to write; - is standard output
    output: PathBuf,
    #[command(flatten)]
    write: Writing,
}

#[derive(Serialize)]
struct Extracted<'a> {
    path: String,
    dry_run: bool,
    name: &'a str,
    bytes: u64,
}

impl Extract {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let Self { name, output: path, write, .. } = &self;
        let reader = super::open(&self.model)?;
        let file = reader.extra_file(name);
        let file = file.ok_or_else(|| anyhow!("there is no extra file {name:?}"));
        let content = file.about(&self.model)?.bytes().about(&self.model)?;
        self.check_output().about(path)?;
        let mut sink = write.create(path).about(path)?;
        sink.write_all(&content).about(path)?;
        let bytes = sink.commit(path)?;
        let shown = path.display().to_string();
        let result = Extracted { path: shown, dry_run: write.dry_run, name, bytes };
        let (shown, would) = (escape(&result.path), write.would_be());
        let text = format!("{shown}: {would}written, {}\n", output::size(bytes));
        write.report(path, &result, &text)?;
        Ok(Outcome::Fine)
    }

    fn check_output(&self) -> anyhow::Result<()> {
        let is_input = !is_stdio(&self.output) && same_file(&self.model, &self.output);
        ensure!(!is_input, "is the input, expected another file");
        Ok(())
    }
}
