use std::path::PathBuf;

use modelcrate::{
    Format, detect,
    tensor_core::{Source, output::Edited},
};
use serde::Serialize;

use crate::{
    address,
    escape::escape,
    failure::{About, malformed},
    options::{InPlace, Print},
    outcome::Outcome,
    output,
    progress::busy,
};

/// Cut off what an interrupted edit has left at the end of a zTensor file or PyTorch Live model
///
/// A zTensor file whose end is missing is cut back to the last complete one inside it. An edit of a
/// PyTorch Live model that was killed leaves one that opens, with up to 64 KiB behind it that nothing
/// needs; programs that append more, or a full disk, may leave one that does not. A FlatBuffer needs
/// no mending. Other formats are replaced whole: nothing is left to be cut off. A file that has no
/// complete one inside is invalid.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate recover --dry-run model.zt
  modelcrate recover model.ptl")]
pub(crate) struct Recover {
    /// The file to mend
    file: PathBuf,
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
    format: Format,
    dry_run: bool,
    changed: bool,
    bytes_before: u64,
    bytes_after: u64,
}

impl Recover {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let recovered = self.recovered().about(&self.file)?;
        let Recovered { bytes_before, bytes_after, .. } = recovered;
        let (path, would) = (escape(&recovered.path), if self.dry_run { "would be " } else { "" });
        let text = match bytes_before.saturating_sub(bytes_after) {
            0 => format!("{path}: is complete\n"),
            cut => format!("{path}: {would}cut by {cut} bytes, {bytes_after} remain\n"),
        };
        output::print_done(self.print, &self.file, self.dry_run, &recovered, &text)?;
        Ok(Outcome::Fine)
    }

    fn recovered(&self) -> anyhow::Result<Recovered> {
        address::refuse(&self.file, "which cannot be edited in place")?;
        let source = Source::open(&self.file)?;
        let (format, len) = (detect(&source)?, source.len());
        busy(&self.file);
        let edited = match format {
            #[cfg(feature = "ptl")]
            Some(Format::Ptl) => match self.ptl() {
                Err(modelcrate::ptl_spec::Error::NotEditable { reason }) => {
                    return malformed(reason);
                }
                edited => edited?,
            },
            #[cfg(feature = "ztensor")]
            Some(Format::ZTensor) => self.ztensor()?,
            Some(found) => {
                anyhow::bail!("is {}, in which no edit leaves anything behind", found.title())
            }
            None => return malformed("is neither a zTensor file nor a PyTorch Live model"),
        };
        let (before, after) = match edited {
            Edited::Truncated { before, after } => (before, after),
            _ => (len, len),
        };
        Ok(Recovered {
            path: self.file.display().to_string(),
            format: format.unwrap_or(Format::ZTensor),
            dry_run: self.dry_run,
            changed: edited.has_changed(),
            bytes_before: before,
            bytes_after: after,
        })
    }

    #[cfg(feature = "ptl")]
    fn ptl(&self) -> modelcrate::ptl_spec::Result<Edited> {
        use modelcrate::ptl_spec::{WriteOptions, recover, recoverable};
        let output = self.in_place.output();
        match self.dry_run {
            true => recoverable(&output.check(&self.file)?),
            false => recover(&self.file, WriteOptions::default().output(output)),
        }
    }

    #[cfg(feature = "ztensor")]
    fn ztensor(&self) -> modelcrate::ztensor::Result<Edited> {
        use modelcrate::ztensor::{WriteOptions, recover, recoverable};
        let output = self.in_place.output();
        match self.dry_run {
            true => recoverable(&output.check(&self.file)?),
            false => recover(&self.file, WriteOptions::default().output(output)),
        }
    }
}
