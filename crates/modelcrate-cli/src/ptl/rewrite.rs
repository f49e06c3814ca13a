//! Models that are rewritten with fewer bytes.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use modelcrate::{
    ptl_spec::{self, ContainerKind, Reader},
    tensor_core::{self, Source, output::LockedFile},
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Force, InPlace, Input, is_stdio},
    outcome::Outcome,
    output,
    write::{Kept, Writing},
};

/// Rewrite a model without the bytes that edits have left behind
///
/// Records keep their order and stored bytes, and get the layout that PyTorch gives them. The parts of
/// a FlatBuffer keep their order.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl compact model.ptl
  modelcrate ptl compact model.ptl -o small.ptl")]
pub(crate) struct Compact {
    #[command(flatten)]
    files: Files,
}

/// Rewrite a model without what its author may not want to hand out
///
/// Debug records hold lines of the author's Python and paths of the author's machine; every runtime
/// works without them. The full runtime does not work without the source of the model's classes. A
/// FlatBuffer has no debug records, but may have that source.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl strip model.ptl --dry-run
  modelcrate ptl strip model.ptl -o phone.ptl --code")]
pub(crate) struct Strip {
    #[command(flatten)]
    files: Files,
    /// Take out the source of the model's classes, too, which the lite interpreter does not read
    #[arg(long)]
    code: bool,
}

#[derive(Debug, clap::Args)]
struct Files {
    /// The model to read; - is standard input
    input: Input,
    /// The model to write; - is standard output. Without it the input is replaced, once the new
    /// one is complete
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    write: Writing,
    #[command(flatten)]
    in_place: InPlace,
}

#[derive(Serialize)]
struct Rewritten {
    path: String,
    dry_run: bool,
    removed: Vec<String>,
    bytes_before: u64,
    #[serde(flatten)]
    kept: Kept,
}

impl Compact {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        self.files.rewrite(None)
    }
}

impl Strip {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let what = if self.code { ptl_spec::Strip::Code } else { ptl_spec::Strip::DebugRecords };
        self.files.rewrite(Some(what))
    }
}

impl Files {
    fn rewrite(&self, what: Option<ptl_spec::Strip>) -> anyhow::Result<Outcome> {
        let path = self.output.as_deref().unwrap_or(&self.input);
        let is_stdin = self.output.is_none() && is_stdio(&self.input);
        ensure!(!is_stdin, "standard input cannot be replaced: say where the model goes");
        let (source, lock) = self.open().about(&self.input)?;
        let reader = Reader::from_source(source).about(&self.input)?;
        let removed = removed(&reader, what).about(&self.input)?;
        let output = self.output.as_deref();
        let mut sink = self.write.create_or_replace(&self.input, output).about(path)?;
        let keep = |record: &str| !what.is_some_and(|what| what.removes(record));
        let written = ptl_spec::rewrite(&reader, keep, &mut sink);
        let is_write = matches!(written, Err(ptl_spec::Error::Write { .. }));
        written.about(if is_write { path } else { &self.input })?;
        let (len, dry_run) = (reader.source().len(), self.write.dry_run);
        if let Some(lock) = lock.as_ref().filter(|_| output.is_none()) {
            lock.check_in_place().about(&self.input)?;
            // What another program has appended is not ours to lose.
            let is_as_long = lock.byte_len().is_ok_and(|now| now == len);
            ensure!(is_as_long, tensor_core::Error::Replaced { path: self.input.clone() });
        }
        let lint = |source| Ok(Reader::from_source(source)?.lint());
        let kept = sink.keep(path, &reader.lint(), self.force, lint)?;
        let shown = path.display().to_string();
        self.report(path, &Rewritten { path: shown, dry_run, removed, bytes_before: len, kept })
    }

    /// Opens the input, and keeps editors out of it as long as the lock lives; a dry run only finds
    /// out that there is none.
    fn open(&self) -> anyhow::Result<(Source, Option<LockedFile>)> {
        if is_stdio(&self.input) {
            return Ok((output::stdin_model()?, None));
        }
        let lock = match &self.output {
            None if self.write.dry_run => {
                return Ok((self.in_place.output().check(&self.input)?, None));
            }
            None => LockedFile::open_within(&self.input, self.in_place.wait())?,
            Some(_) => LockedFile::shared(&self.input, self.in_place.wait())?,
        };
        Ok((lock.source()?, Some(lock).filter(|_| !self.write.dry_run)))
    }

    fn report(&self, path: &Path, result: &Rewritten) -> anyhow::Result<Outcome> {
        let (shown, would) = (escape(&result.path), self.write.would_be());
        let mut text = String::new();
        for name in &result.removed {
            let _ = writeln!(text, "{shown}: {would}without {}", escape(name));
        }
        let (checked, bytes_after) = (&result.kept.checked, result.kept.bytes_after);
        let sizes = [result.bytes_before, bytes_after.unwrap_or_default()].map(output::size);
        let _ = writeln!(text, "{shown}: {would}written, {}", sizes.join(" → "));
        self.write.report(path, result, &checked.text(&shown, &text))?;
        Ok(checked.outcome())
    }
}

/// Returns the names of what is taken out, if that can be.
fn removed(reader: &Reader, what: Option<ptl_spec::Strip>) -> ptl_spec::Result<Vec<String>> {
    let Some(what) = what else { return Ok(Vec::new()) };
    what.check(reader)?;
    let names: Vec<String> = match reader.container() {
        ContainerKind::FlatBuffer => reader.sources()?,
        _ => reader.records().map(|record| record.path().to_owned()).collect(),
    };
    Ok(names.into_iter().filter(|name| what.removes(name)).collect())
}
