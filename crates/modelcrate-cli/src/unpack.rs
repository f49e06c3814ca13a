use std::{fmt::Write as _, path::PathBuf};

use anyhow::{bail, ensure};
use modelcrate::{AnyReader, Format, ReadOptions};
use serde::Serialize;

use crate::{
    address,
    escape::escape,
    failure::About,
    only::Only,
    options::{Input, Print},
    outcome::Outcome,
    output,
    paths::is_inside,
    write::check_folder,
};

/// Unpack a carton or an nnpackage into a folder
///
/// The folder appears once everything is in it, and every digest and checksum is compared. It opens as
/// the file does, and pack makes a file of it again. Nothing is written elsewhere: names that lead out
/// are refused. A package that is in one folder of its archive comes without that folder. What a
/// carton only links to is left out, unless it is to be fetched; then the same holds as for `carton
/// fill`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate unpack model.carton model/
  modelcrate unpack --dry-run package.zip package/
  modelcrate unpack small.carton model/ --fetch --cache /var/cache/carton")]
pub(crate) struct Unpack {
    /// The carton or nnpackage, or a folder with the files of one; - is standard input
    input: Input,
    /// The folder to make, which must not be there, or be empty
    folder: PathBuf,
    /// Check everything that is in the file, and neither fetch nor write anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) print: Print,
    #[cfg(feature = "carton")]
    #[command(flatten, next_help_heading = "Cartons")]
    carton: Only<crate::carton::unpack::Unpack>,
}

/// What is in the folder.
#[derive(Default, Serialize)]
pub(crate) struct Unpacked {
    pub(crate) path: String,
    pub(crate) dry_run: bool,
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model_hash: Option<String>,
    /// Those that are only linked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_out: Vec<String>,
}

impl Unpack {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        address::refuse(&self.folder, "expected a folder of this machine").about(&self.folder)?;
        let reader = output::open(&self.input, ReadOptions::default()).about(&self.input)?;
        self.check().about(&self.folder)?;
        let done = match &reader {
            #[cfg(feature = "carton")]
            AnyReader::Carton(reader) => {
                self.carton.options.run(&self.input, reader, &self.folder, &self)?
            }
            #[cfg(feature = "nnpackage")]
            AnyReader::NnPackage(package) => {
                #[cfg(feature = "carton")]
                self.carton.check(Format::NnPackage, &[]).about(&self.input)?;
                crate::nnpackage::unpack(&self.input, package, &self.folder, self.dry_run)?
            }
            other => return refused(other.format()).about(&self.input),
        };
        let path = self.folder.display().to_string();
        let done = Unpacked { path, dry_run: self.dry_run, ..done };
        output::print_done(self.print, &self.folder, self.dry_run, &done, &done.text())?;
        Ok(Outcome::Fine)
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(!is_inside(&self.folder, &self.input), "is in the folder that is read");
        check_folder(&self.folder)
    }
}

fn refused(format: Format) -> anyhow::Result<Outcome> {
    bail!(
        "is {}, expected a carton or an nnpackage; extract takes files and tensors out of it",
        format.title()
    )
}

impl Unpacked {
    fn text(&self) -> String {
        let (path, would_be) = (escape(&self.path), if self.dry_run { "would be " } else { "" });
        let mut text = String::new();
        for left_out in &self.left_out {
            let _ = writeln!(text, "{path}: {would_be}left without {}", escape(left_out));
        }
        let (files, bytes) = (output::count(self.files, "file"), output::size(self.bytes));
        let _ = writeln!(text, "{path}: {would_be}unpacked, {files}, {bytes}");
        if let Some(model_hash) = &self.model_hash {
            let _ = writeln!(text, "{path}: model hash {model_hash}");
        }
        text
    }
}
