//! What only cartons have: links, descriptions, the model hash, and how they are packed.

#[cfg(feature = "http")]
mod fill;
mod hash;
#[cfg(feature = "http")]
mod http;
pub(crate) mod pack;
mod platforms;
pub(crate) mod rewrite;
mod shrink;
pub(crate) mod store;
pub(crate) mod unpack;

use std::path::Path;

use clap::Subcommand;
use modelcrate::{
    carton_format::{Error, ReadOptions, Reader, model_archive},
    tensor_core::{Extent, Report, Source},
};

use crate::{address, failure::About, options::is_stdio, outcome::Outcome, output};

#[derive(Debug, Subcommand)]
pub(crate) enum Carton {
    Shrink(shrink::Shrink),
    #[cfg(feature = "http")]
    Fill(fill::Fill),
    Hash(hash::Hash),
    Platforms(platforms::Platforms),
}

impl Carton {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Shrink(command) => command.run(),
            #[cfg(feature = "http")]
            Self::Fill(command) => command.run(),
            Self::Hash(command) => command.run(),
            Self::Platforms(command) => command.run(),
        }
    }
}

/// Opens a carton, or a folder with the files of one, or reads one from standard input.
fn open(input: &Path, options: ReadOptions) -> anyhow::Result<Reader> {
    let reader = || {
        if is_stdio(input) {
            return Ok(options.from_source(output::stdin_model()?)?);
        }
        if let Some(source) = address::source(input)? {
            return Ok(options.from_source(source)?);
        }
        anyhow::Ok(options.open(input)?)
    };
    reader().about(input)
}

/// Looks through a carton that was written.
fn lint(carton: Source) -> anyhow::Result<Report> {
    Ok(Reader::from_source(carton)?.lint())
}

/// Reads a file that goes into memory whole, such as a description.
pub(crate) fn read(input: &Path) -> anyhow::Result<Vec<u8>> {
    let content = || {
        if is_stdio(input) {
            return output::stdin();
        }
        let source = output::stored(input)?;
        Ok(source.read(Extent::first(source.len()), "file")?.into())
    };
    content().about(input)
}

/// Names the file that is at fault, where that is known better than by what was given.
fn about_culprit<T>(error: Error, given: &Path) -> anyhow::Result<T> {
    use modelcrate::tensor_core::Error as Core;
    let path = match &error {
        Error::Pack { path, .. }
        | Error::Archive(model_archive::Error::Unpack { path, .. })
        | Error::Core(
            Core::File { path, .. } | Core::NotAFile { path, .. } | Core::DiskFull { path, .. },
        ) => path.clone(),
        _ => given.to_owned(),
    };
    Err(error).about(&path)
}

/// Splits a text such as `KEY=VALUE` at the first sign that is not in quotes, which stand as TOML
/// has them.
pub(crate) fn split_pair(text: &str) -> Option<(&str, &str)> {
    let (mut quote, mut is_escaped) = (None, false);
    for (at, char) in text.char_indices() {
        match (quote, char) {
            _ if is_escaped => is_escaped = false,
            (Some('"'), '\\') => is_escaped = true,
            (Some(open), close) if open == close => quote = None,
            (None, '"' | '\'') => quote = Some(char),
            (None, '=') => return Some((text.get(..at)?, text.get(at.saturating_add(1)..)?)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_split_outside_quotes() {
        for (text, pair) in [
            ("a=b=c", Some(("a", "b=c"))),
            (r#"a."x=\"=y".b=1"#, Some((r#"a."x=\"=y".b"#, "1"))),
            ("'a=b\\'=\"", Some(("'a=b\\'", "\""))),
            ("=", Some(("", ""))),
            ("a", None),
            ("\"a=b", None),
        ] {
            assert_eq!(split_pair(text), pair, "{text}");
        }
    }
}
