//! Options that only some formats have.

use std::path::Path;

use anyhow::bail;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, parser::ValueSource};
use modelcrate::{AnyReader, Format, detect, tensor_core::Source};

use crate::output;

/// Options that only some formats have, and the names of those that were given.
#[derive(Clone, Debug)]
pub(crate) struct Only<T> {
    pub(crate) options: T,
    given: Vec<String>,
}

impl<T> Only<T> {
    /// Returns the names of those that were given.
    pub(crate) fn given(&self) -> &[String] {
        &self.given
    }

    /// Refuses an option that a format does not have.
    pub(crate) fn check(&self, format: Format, takes: &[&str]) -> anyhow::Result<()> {
        let Some(name) = self.given.iter().find(|name| !takes.contains(&name.as_str())) else {
            return Ok(());
        };
        let only: Vec<_> = takes.iter().map(|name| format!("--{name}")).collect();
        let only =
            if only.is_empty() { String::new() } else { format!(", only {}", only.join(", ")) };
        bail!("is {}, for which there is no --{name}{only}", format.title())
    }
}

impl<T: Args> FromArgMatches for Only<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        let command = T::augment_args(Command::new(""));
        let given = command.get_arguments().filter(|argument| {
            matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
        });
        let given = given.filter_map(|argument| Some(argument.get_long()?.to_owned())).collect();
        Ok(Self { options: T::from_arg_matches_mut(matches)?, given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<T: Args> Args for Only<T> {
    fn augment_args(command: Command) -> Command {
        T::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

/// Returns the format of a file or folder, or of what was read of it already.
pub(crate) fn format_of(path: &Path, source: Option<&Source>) -> anyhow::Result<Format> {
    let found = match source {
        Some(source) => detect(source)?,
        None if path.is_dir() => None,
        None => detect(&output::stored(path)?)?,
    };
    match (found, source) {
        (Some(format), _) => Ok(format),
        (None, Some(source)) => Ok(AnyReader::from_source(source.clone())?.format()),
        (None, None) => Ok(output::open(&path.to_owned(), AnyReader::options())?.format()),
    }
}
