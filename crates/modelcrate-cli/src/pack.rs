use std::path::PathBuf;

use anyhow::{anyhow, bail};
use modelcrate::Format;

use crate::{failure::About, only::Only, options::Force, outcome::Outcome, paths, write::Writing};

/// Pack a model into a carton or an nnpackage
///
/// A carton is packed from the folder of a model, or its only file, and from options that say how it
/// is run; or from an unpacked carton, a folder with a carton.toml and a folder model in it: then
/// everything in it is packed but MANIFEST and LINKS, which are rewritten; what is only linked stays so.
/// Symbolic links inside the model stay links.
///
/// An nnpackage is packed from models, each taken for what its identifier says, whatever its name; or
/// from the folder of one. Files that a model needs, such as those that its operators run, have to lie
/// beside it and are packed with it. The version is the lowest that has everything that is used.
///
/// The same files make the same bytes. What verify would call an error is not packed without --force;
/// what it would warn of is said.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "modelcrate pack [OPTIONS] <[NAME=]SOURCE>... <OUT>",
    after_help = "\
Examples:
  modelcrate pack model/ model.carton --runner torchscript --framework-version =1.12.1 \\
      --runner-compat-version 2
  modelcrate pack model.onnx model.carton --toml carton.toml --misc pictures/
  modelcrate pack unpacked/ --to carton - | sha256sum
  modelcrate pack add.circle add.zip
  modelcrate pack part0.circle part1.circle net.zip --from-conn net.conn.json
  modelcrate pack add.circle add --to nnpackage --folder --mmap --digests"
)]
pub(crate) struct Pack {
    /// The folder or file of a model, or an unpacked carton; or the models of an nnpackage in order,
    /// or its folder; and last the file to write, where - is standard output. With a NAME, that is the
    /// path of a model in the package, by default that of the file without its folders
    #[arg(required = true, value_name = "[NAME=]SOURCE")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    to: To,
    #[cfg(feature = "carton")]
    #[command(flatten, next_help_heading = "Cartons")]
    carton: Only<crate::carton::pack::Pack>,
    #[cfg(feature = "nnpackage")]
    #[command(flatten, next_help_heading = "nnpackages")]
    nnpackage: Only<crate::nnpackage::pack::Pack>,
}

/// Where a packed model goes, and how.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct To {
    #[arg(skip)]
    pub(crate) output: PathBuf,
    /// What to make where OUT does not end in .carton, .nnpackage or .zip: carton or nnpackage
    #[arg(long, value_name = "FORMAT", value_parser = packed)]
    to: Option<Format>,
    /// What files that are stored as they are start at a multiple of, in bytes: a power of two up to
    /// 32768; by default 64 in a carton, and 4096 for the models of an nnpackage
    #[arg(long, value_name = "BYTES")]
    pub(crate) alignment: Option<u32>,
    /// How hard files are compressed. In a carton: 1 to 22 for zstd, 3 by default, or below zero for
    /// speed; 1 to 9 for deflate, 6 by default. In an nnpackage, all but models: 1 to 9, 6 by default,
    /// or 0 for not at all
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) level: Option<i32>,
    #[command(flatten)]
    pub(crate) force: Force,
    #[command(flatten)]
    pub(crate) write: Writing,
}

impl Pack {
    pub(crate) fn run(mut self) -> anyhow::Result<Outcome> {
        let (sources, output) = paths::last(&self.paths)?;
        self.to.output = output.to_owned();
        match self.to.format().about(&self.to.output)? {
            #[cfg(feature = "carton")]
            Format::Carton => {
                #[cfg(feature = "nnpackage")]
                self.nnpackage.check(Format::Carton, &[]).about(&self.to.output)?;
                let [source] = sources else {
                    bail!("a carton is packed of one folder or file, not of several");
                };
                self.carton.options.run(source, &self.to)
            }
            #[cfg(feature = "nnpackage")]
            Format::NnPackage => {
                #[cfg(feature = "carton")]
                self.carton.check(Format::NnPackage, &[]).about(&self.to.output)?;
                self.nnpackage.options.run(sources, &self.to, self.nnpackage.given())
            }
            format => bail!("this build packs no {format}"),
        }
    }
}

impl To {
    /// Returns what is to be made: what was asked for, or what the name of the output says.
    fn format(&self) -> anyhow::Result<Format> {
        let is_zip = self.output.extension().is_some_and(|end| end.eq_ignore_ascii_case("zip"));
        let named = Format::from_path(&self.output).or(is_zip.then_some(Format::NnPackage));
        match self.to.or(named) {
            Some(format @ (Format::Carton | Format::NnPackage)) => Ok(format),
            Some(format) => {
                bail!("is called as {format}, expected a carton or an nnpackage (--to says which)")
            }
            None => bail!("does not tell by its name what to make: --to carton or --to nnpackage"),
        }
    }
}

/// Reads the name of a format that models are packed into.
fn packed(text: &str) -> anyhow::Result<Format> {
    let is_called = |format: &Format| format.name() == text || format.extensions().contains(&text);
    let found = [Format::Carton, Format::NnPackage].into_iter().find(is_called);
    found.ok_or_else(|| anyhow!("expected carton or nnpackage"))
}
