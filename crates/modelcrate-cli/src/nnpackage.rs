//! What only nnpackages have: a runtime that checks nothing, and models that are wired together.

mod config;
pub(crate) mod given;
mod merge;
mod onert;
pub(crate) mod pack;
mod split;

use std::path::Path;

use clap::Subcommand;
use modelcrate::nnpackage::{self, Reader};

use crate::{
    address, failure::About, options::is_stdio, outcome::Outcome, output, unpack::Unpacked,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Nnpackage {
    Config(config::Config),
    Merge(merge::Merge),
    Onert(onert::Onert),
    Split(split::Split),
}

impl Nnpackage {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Config(command) => command.run(),
            Self::Merge(command) => command.run(),
            Self::Onert(command) => command.run(),
            Self::Split(command) => command.run(),
        }
    }
}

/// Unpacks a package into a folder.
pub(crate) fn unpack(
    input: &Path,
    package: &Reader,
    folder: &Path,
    dry_run: bool,
) -> anyhow::Result<Unpacked> {
    let mut done = Unpacked::default();
    for file in package.files().about(input)? {
        done.files = done.files.saturating_add(1);
        done.bytes = done.bytes.saturating_add(file.len().about(input)?);
    }
    let extracted = match dry_run {
        true => nnpackage::try_extract(package, folder),
        false => nnpackage::extract(package, folder),
    };
    extracted.or_else(|error| given::about_culprit(error, input, folder))?;
    Ok(done)
}

/// Opens a package, or reads the archive of one from standard input.
pub(crate) fn package(input: &Path) -> anyhow::Result<Reader> {
    let reader = || {
        if is_stdio(input) {
            return Ok(Reader::from_source(output::source(input)?)?);
        }
        if let Some(source) = address::source(input)? {
            return Ok(Reader::from_source(source)?);
        }
        anyhow::Ok(Reader::open(input)?)
    };
    reader().about(input)
}
