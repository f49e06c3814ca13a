//! Options that only some formats have.

use std::path::Path;

use anyhow::bail;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id, parser::ValueSource};
use modelcrate::{AnyReader, Format, detect, tensor_core::Source};

/// Options, and the names of those that were given.
#[derive(Clone, Debug)]
pub(crate) struct Given<T> {
    pub(crate) options: T,
    names: Vec<String>,
}

impl<T: Args> Given<T> {
    pub(crate) const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Refuses an option that a format does not have.
    pub(crate) fn check(&self, format: Format, takes: &[&str]) -> anyhow::Result<()> {
        match self.names.iter().find(|name| !takes.contains(&name.as_str())) {
            Some(name) => {
                bail!("is a {format} file, for which there is no --{name}, only {}", list(takes))
            }
            None => Ok(()),
        }
    }
}

/// Lists options.
fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("--{name}")).collect::<Vec<_>>().join(", ")
}

impl<T: Args> FromArgMatches for Given<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        let command = T::augment_args(Command::new(""));
        let is_given = |id: &Id| {
            let ids = &mut matches.ids();
            ids.any(|other| other == id)
                && matches.value_source(id.as_str()) == Some(ValueSource::CommandLine)
        };
        let given = command.get_arguments().filter(|argument| is_given(argument.get_id()));
        let names = given.filter_map(|argument| Some(argument.get_long()?.to_owned())).collect();
        Ok(Self { options: T::from_arg_matches_mut(matches)?, names })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<T: Args> Args for Given<T> {
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
        None => detect(&Source::open(path)?)?,
    };
    match (found, source) {
        (Some(format), _) => Ok(format),
        (None, Some(source)) => Ok(AnyReader::from_source(source.clone())?.format()),
        (None, None) => Ok(AnyReader::open(path)?.format()),
    }
}
