use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use modelcrate::carton_format::{Reader, Sha256};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::{About, chain, is_invalid},
    options::{Format, Input, Print},
    outcome::{Outcome, print_error},
    output,
};

/// Print the model hash of cartons, or compare it
///
/// The model hash is the SHA-256 of MANIFEST, which lists the digest of every file: it is the same
/// however a carton is compressed, and whether its files are held or linked. Only MANIFEST is read;
/// verify compares the files with it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate carton hash *.carton > HASHES
  modelcrate carton hash --check HASHES")]
pub(crate) struct Hash {
    /// Cartons, or folders with the files of one, or lists of hashes for --check; - is standard
    /// input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<Input>,
    /// Read lines of a hash, two spaces and a path, and compare
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    print: Print,
}

#[derive(Serialize)]
struct Hashed {
    path: String,
    /// None where the carton could not be read.
    model_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<bool>,
}

impl Hash {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let (mut outcome, mut done) = (Outcome::Fine, Vec::new());
        for (path, expected) in self.wanted()? {
            let found = super::open(&path, Reader::options()).map(|reader| reader.model_hash());
            let found = match found {
                Ok(found) => Some(found),
                Err(error) => {
                    print_error(&chain(&error));
                    let invalid = is_invalid(&error);
                    outcome = outcome.and(if invalid { Outcome::Invalid } else { Outcome::Failed });
                    None
                }
            };
            if found.is_none() && expected.is_none() {
                continue;
            }
            let matches = expected.map(|expected| found == Some(expected));
            if found.is_some() && matches == Some(false) {
                outcome = outcome.and(Outcome::Invalid);
            }
            let file = Hashed {
                path: path.display().to_string(),
                model_hash: found.map(|hash| hash.to_string()),
                expected: expected.map(|hash| hash.to_string()),
                matches,
            };
            match self.print.format {
                Format::Human => output::print_text(&file.text())?,
                Format::Jsonl => output::print_line(&file)?,
                Format::Json => done.push(file),
            }
        }
        if self.print.format == Format::Json {
            output::print_document(&done)?;
        }
        Ok(outcome)
    }

    /// Returns the cartons to open, and which hash they should have.
    fn wanted(&self) -> anyhow::Result<Vec<(PathBuf, Option<Sha256>)>> {
        if !self.check {
            return Ok(self.files.iter().map(|path| (path.clone(), None)).collect());
        }
        let mut wanted = Vec::new();
        for list in &self.files {
            let text = String::from_utf8(super::read(list)?).context("is not text").about(list)?;
            for (line, number) in text.lines().zip(1_u64..) {
                let parsed = parse(line).with_context(|| {
                    format!("line {number} is {line:?}, expected a hash, two spaces and a path")
                });
                let (sha256, path) = parsed.about(list)?;
                wanted.push((path.to_owned(), Some(sha256)));
            }
        }
        // To say that all is well would be a lie.
        ensure!(!wanted.is_empty(), "no hash is given, expected one at least");
        Ok(wanted)
    }
}

impl Hashed {
    fn text(&self) -> String {
        let path = escape(&self.path);
        let mut text = String::new();
        let _ = match (&self.model_hash, self.matches) {
            (_, Some(true)) => writeln!(text, "{path}: OK"),
            (Some(found), Some(false)) => writeln!(text, "{path}: FAILED, has {found}"),
            (None, _) => writeln!(text, "{path}: FAILED, could not be read"),
            (Some(hash), None) => writeln!(text, "{hash}  {path}"),
        };
        text
    }
}

/// Reads a line as `sha256sum` writes it, a star for the second space included.
fn parse(line: &str) -> Option<(Sha256, &Path)> {
    let (hash, rest) = line.split_once(' ')?;
    let path = rest.strip_prefix([' ', '*'])?;
    Some((hash.parse().ok()?, Path::new(path)))
}
