use std::path::PathBuf;

use anyhow::ensure;
use modelcrate::nnpackage::{Reader, extract, try_extract};
use serde::Serialize;

use super::given::about_culprit;
use crate::{
    escape::escape,
    failure::About,
    options::{Input, Print},
    outcome::Outcome,
    output,
    paths::is_inside,
};

/// Unpack a package into a folder, as onert needs it
///
/// The folder appears once everything is in it. Checksums of the archive are compared. A package
/// that is in one folder of its archive comes without that folder. Nothing is written elsewhere:
/// names that lead out are refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate nnpackage extract package.zip package/
  modelcrate nnpackage extract --dry-run package.zip package/")]
pub(crate) struct Extract {
    /// The package, as an archive or a folder; - is standard input
    package: Input,
    /// The folder to make, which must not be there, or be empty
    folder: PathBuf,
    /// Check everything that is in the package, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Extracted {
    path: String,
    dry_run: bool,
    files: usize,
    bytes: u64,
}

impl Extract {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let package = super::package(&self.package)?;
        let check = || {
            ensure!(!is_inside(&self.folder, &self.package), "is in the folder that is read");
            super::given::check_folder(&self.folder)
        };
        check().about(&self.folder)?;
        let extracted = self.measure(&package).about(&self.package)?;
        let done = if self.dry_run {
            try_extract(&package, &self.folder)
        } else {
            extract(&package, &self.folder)
        };
        done.or_else(|error| about_culprit(error, &self.package, &self.folder))?;
        output::print_done(self.print, &self.folder, self.dry_run, &extracted, &extracted.text())?;
        Ok(Outcome::Fine)
    }

    fn measure(&self, package: &Reader) -> anyhow::Result<Extracted> {
        let (mut files, mut bytes) = (0_usize, 0_u64);
        for file in package.files()? {
            files = files.saturating_add(1);
            bytes = bytes.saturating_add(file.len()?);
        }
        let path = self.folder.display().to_string();
        Ok(Extracted { path, dry_run: self.dry_run, files, bytes })
    }
}

impl Extracted {
    fn text(&self) -> String {
        let (path, would_be) = (escape(&self.path), if self.dry_run { "would be " } else { "" });
        let files = if self.files == 1 { "file" } else { "files" };
        let bytes = output::size(self.bytes);
        format!("{path}: {would_be}extracted, {} {files}, {bytes}\n", self.files)
    }
}
