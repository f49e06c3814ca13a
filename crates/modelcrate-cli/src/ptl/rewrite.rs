//! Models that are rewritten with fewer bytes.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use modelcrate::{
    ptl_spec::{self, ContainerKind, Reader},
    tensor_core::{self, Report, output::LockedFile},
};
use serde::Serialize;

use crate::{
    checked::Checked,
    escape::escape,
    failure::About,
    options::{InPlace, Input, is_stdio},
    outcome::Outcome,
    output,
    write::Writing,
};

/// Rewrite a model without the bytes that edits have left behind
///
/// Records keep their order and stored bytes, and get the layout that PyTorch gives them. The parts of
/// a FlatBuffer keep their order.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate ptl compact model.ptl
  modelcrate ptl compact model.ptl small.ptl")]
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
  modelcrate ptl strip model.ptl phone.ptl --code")]
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
    output: Option<PathBuf>,
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
    #[serde(flatten)]
    checked: Checked,
    bytes_before: u64,
    bytes_after: u64,
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
        let lock = self.lock().about(&self.input)?;
        let reader = match &lock {
            Some(lock) => Reader::from_source(lock.source().about(&self.input)?),
            None => Reader::from_bytes(output::stdin().about(&self.input)?),
        };
        let reader = reader.about(&self.input)?;
        let removed = removed(&reader, what).about(&self.input)?;
        let output = self.output.as_deref();
        let mut sink = self.write.create_or_replace(&self.input, output).about(path)?;
        let keep = |record: &str| !what.is_some_and(|what| what.takes(record));
        let written = ptl_spec::rewrite(&reader, keep, &mut sink);
        let is_write = matches!(written, Err(ptl_spec::Error::Write { .. }));
        written.about(if is_write { path } else { &self.input })?;
        let before = reader.lint();
        let after = match sink.source().about(path)? {
            Some(source) => Reader::from_source(source).about(path)?.lint(),
            None => Report::default(),
        };
        let checked = Checked::of(&after, &before, self.write.force);
        let (len, dry_run) = (reader.source().len(), self.write.dry_run);
        if let Some(lock) = lock.filter(|_| output.is_none() && !dry_run) {
            lock.check_in_place().about(&self.input)?;
        }
        let written = if checked.is_refused() { len } else { sink.commit(path)? };
        let (shown, bytes_before, bytes_after) = (path.display().to_string(), len, written);
        let result =
            Rewritten { path: shown, dry_run, removed, checked, bytes_before, bytes_after };
        self.report(path, &result)
    }

    /// Keeps editors out of the input meanwhile; a dry run only finds out that there is none.
    fn lock(&self) -> tensor_core::Result<Option<LockedFile>> {
        if is_stdio(&self.input) {
            return Ok(None);
        }
        if self.output.is_none() && !self.write.dry_run {
            return LockedFile::open_within(&self.input, self.in_place.wait()).map(Some);
        }
        let lock = LockedFile::shared(&self.input)?;
        if self.write.dry_run {
            lock.unlock();
        }
        Ok(Some(lock))
    }

    fn report(&self, path: &Path, result: &Rewritten) -> anyhow::Result<Outcome> {
        let (shown, would) = (escape(&result.path), self.write.would_be());
        let mut text = String::new();
        for name in &result.removed {
            let _ = writeln!(text, "{shown}: {would}without {}", escape(name));
        }
        let sizes = [result.bytes_before, result.bytes_after].map(output::size);
        let _ = writeln!(text, "{shown}: {would}written, {}", sizes.join(" → "));
        self.write.report(path, result, &result.checked.text(&shown, &text))?;
        Ok(result.checked.outcome())
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
    Ok(names.into_iter().filter(|name| what.takes(name)).collect())
}
