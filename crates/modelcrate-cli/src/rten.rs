//! What only RTen models have: parts to cut out, releases, dimensions that converters wrote as 0.

mod cut;
mod dims;
mod files;
mod requires;

use std::path::Path;

use anyhow::bail;
use clap::Subcommand;
use modelcrate::rten_format::{Error, Model, Reader};

pub(crate) use self::files::Files;
use crate::{address, failure::About, options::is_stdio, outcome::Outcome, output};

#[derive(Debug, Subcommand)]
pub(crate) enum Rten {
    FixDims(dims::FixDims),
    Cut(cut::Cut),
    Requires(requires::Requires),
}

impl Rten {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::FixDims(command) => command.run(),
            Self::Cut(command) => command.run(),
            Self::Requires(command) => command.run(),
        }
    }
}

/// Opens a model, or reads one from standard input.
fn open(input: &Path) -> anyhow::Result<Reader> {
    let reader = || {
        if is_stdio(input) {
            return Ok(Reader::from_source(output::stdin_model()?)?);
        }
        if let Some(source) = address::source(input)? {
            return Ok(Reader::from_source(source)?);
        }
        anyhow::Ok(Reader::open(input)?)
    };
    reader().about(input)
}

/// Finds the value or constant of the main graph that a name means, or, as `#12`, an id.
pub(crate) fn find(model: &Model, name: &str) -> anyhow::Result<u32> {
    let id = name.strip_prefix('#').and_then(|id| id.parse().ok());
    if let Some(id) = id
        && model.find(name).is_empty()
    {
        return Ok(id);
    }
    match *model.find(name) {
        [(0, id), (0, other), ..] => {
            bail!("nodes {id} and {other} of the graph are both called {name:?}")
        }
        [(0, id), ..] => Ok(id),
        [_, ..] => bail!("{name:?} is in a subgraph only, expected a name of the main graph"),
        [] => bail!("no value or constant is called {name:?}"),
    }
}

/// Finds several.
pub(crate) fn find_all(model: &Model, names: &[String]) -> anyhow::Result<Vec<u32>> {
    names.iter().map(|name| find(model, name)).collect()
}

/// Splits a text such as `NAME=VALUE` at its last sign: names may hold more of them.
pub(crate) fn split_pair<'a>(text: &'a str, form: &str) -> anyhow::Result<(&'a str, &'a str)> {
    match text.rsplit_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name, value)),
        _ => bail!("{text:?} is not {form}"),
    }
}

/// Tells whether an error is about the file that is written, not about the one that is read.
const fn is_write(error: &Error) -> bool {
    matches!(error, Error::Write { .. })
}
