use std::{path::PathBuf, str::FromStr};

use anyhow::{anyhow, bail};
use modelcrate::{
    carton_format::{self, Change, Description, Error, NewValue, Reader, WriteOptions},
    tensor_core::Limits,
};

use super::rewrite::{Done, Rewrite};
use crate::{failure::About, outcome::Outcome};

/// Change the description of a carton, its carton.toml
///
/// Comments, order and unknown keys stay as they are, and so do all other files. Removals are made
/// before values are set. What would not be a valid description any more is refused, and so is what
/// verify would call an error that the carton does not have yet, without --force. The model hash changes
/// with the description.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate carton edit model.carton --set license=MIT --set input[0].description='An image'
  modelcrate carton edit model.carton -o new.carton --remove runner.opts.num_threads
  modelcrate carton edit model.carton --toml carton.toml --dry-run

A VALUE that is not TOML is a string, so only strings that look like something else need quotes:
  modelcrate carton edit model.carton --set model_name='\"1.0\"'")]
pub(crate) struct Edit {
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    rewrite: Rewrite,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct Changes {
    /// Set a value, such as `runner.opts.num_threads=4`; may be given several times
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<Set>,
    /// Remove a value, such as `self_test[0]`; may be given several times
    #[arg(long, value_name = "PATH")]
    remove: Vec<String>,
    /// Put this file in the place of the description before all other changes
    #[arg(long, value_name = "FILE")]
    toml: Option<PathBuf>,
}

impl Edit {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let reader = self.rewrite.open(Reader::options())?;
        let text = self.text(&reader)?;
        let old = reader.file(Description::PATH).map(carton_format::File::bytes);
        if self.rewrite.is_in_place() && old.is_some_and(|old| old.is_ok_and(|old| old == text)) {
            return self.rewrite.nothing(&reader, done("unchanged"), false);
        }
        self.rewrite.run(&reader, WriteOptions::default(), |writer| {
            Ok((carton_format::replace_description(&reader, &text, writer)?, done("edited")))
        })
    }

    /// Returns the new description.
    fn text(&self, reader: &Reader) -> anyhow::Result<Vec<u8>> {
        let input = &self.rewrite.input;
        let (old, from) = match &self.changes.toml {
            Some(path) => (super::read(path)?, path),
            None => {
                let file = reader.file(Description::PATH);
                let missing = Error::MissingDocument { path: Description::PATH };
                (file.ok_or(missing).about(input)?.bytes().about(input)?.into(), input)
            }
        };
        let changes = self.changes.changes();
        let limits = Limits::default();
        if changes.is_empty() {
            Description::parse(&old, &limits).about(from)?;
            return Ok(old);
        }
        let edited = Description::edit(&old, &changes, &limits).map_err(|error| match error {
            // The file is not to blame for what the changes made of it.
            Error::Document(error) if Description::parse(&old, &limits).is_ok() => {
                anyhow!("would not be a description any more: {error}")
            }
            error => error.into(),
        });
        edited.about(from)
    }
}

fn done(what: &str) -> Done<()> {
    Done { what: what.to_owned(), changes: (), lines: Vec::new() }
}

impl Changes {
    fn changes(&self) -> Vec<Change> {
        let removals = self.remove.iter().map(Change::remove);
        removals.chain(self.set.iter().map(|Set(change)| change.clone())).collect()
    }
}

/// A value to be set, as `PATH=VALUE` says.
#[derive(Clone, Debug)]
struct Set(Change);

impl FromStr for Set {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some((path, value)) = super::split_pair(text) else {
            bail!("{text:?} is not PATH=VALUE, such as runner.opts.num_threads=4");
        };
        Ok(Self(Change::set(path.trim(), NewValue::guess(value))))
    }
}
