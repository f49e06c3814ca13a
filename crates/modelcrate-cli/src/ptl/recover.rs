use std::path::PathBuf;

use modelcrate::{
    ptl_spec::{self, WriteOptions},
    tensor_core::{Source, output::Edited},
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{InPlace, Print},
    outcome::Outcome,
    output,
};

/// Cut off what an interrupted edit has left at the end of a model
///
/// An edit of a ZIP file that was killed leaves a model that opens, with up to 64 KiB behind it that
/// nothing needs; programs that append more, or a full disk, may leave one that does not. A FlatBuffer
/// needs no mending.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl recover --dry-run model.ptl
  modelcrate ptl recover model.ptl")]
pub(crate) struct Recover {
    /// The model to mend
    model: PathBuf,
    /// Say what would be cut off, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    in_place: InPlace,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Recovered {
    path: String,
    dry_run: bool,
    bytes_before: u64,
    bytes_after: u64,
}

impl Recover {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let recovered = self.recovered().about(&self.model)?;
        let Recovered { bytes_before, bytes_after, .. } = recovered;
        let (path, would) = (escape(&recovered.path), if self.dry_run { "would be " } else { "" });
        let text = match bytes_before.saturating_sub(bytes_after) {
            0 => format!("{path}: is complete\n"),
            cut => format!("{path}: {would}cut by {cut} bytes, {bytes_after} remain\n"),
        };
        output::print_done(self.print, &self.model, self.dry_run, &recovered, &text)?;
        Ok(Outcome::Fine)
    }

    fn recovered(&self) -> ptl_spec::Result<Recovered> {
        let edited = if self.dry_run {
            ptl_spec::recoverable(&self.in_place.output().check(&self.model)?)?
        } else {
            let options = WriteOptions::default().output(self.in_place.output());
            ptl_spec::recover(&self.model, options)?
        };
        let (path, dry_run) = (self.model.display().to_string(), self.dry_run);
        let (bytes_before, bytes_after) = match edited {
            Edited::Truncated { before, after } => (before, after),
            _ => {
                let len = Source::open(&self.model)?.len();
                (len, len)
            }
        };
        Ok(Recovered { path, dry_run, bytes_before, bytes_after })
    }
}
