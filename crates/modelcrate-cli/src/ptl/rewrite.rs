//! Models that are rewritten with fewer bytes.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use modelcrate::{
    ptl_spec::{self, ContainerKind, Reader},
    tensor_core::output::Edited,
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Input, is_stdio},
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
}

#[derive(Serialize)]
struct Rewritten {
    path: String,
    dry_run: bool,
    removed: Vec<String>,
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
        let reader = super::open(&self.input)?;
        let removed = removed(&reader, what).about(&self.input)?;
        let path = self.output.as_deref().unwrap_or(&self.input);
        let is_stdin = self.output.is_none() && is_stdio(&self.input);
        ensure!(!is_stdin, "standard input cannot be replaced: say where the model goes");
        let (bytes_before, bytes_after) = if self.output.is_some() || self.write.dry_run {
            self.copy(&reader, path, what)?
        } else {
            self.replace(what)?
        };
        let (shown, dry_run) = (path.display().to_string(), self.write.dry_run);
        let result = Rewritten { path: shown, dry_run, removed, bytes_before, bytes_after };
        self.report(path, &result)
    }

    /// Writes another file, or none; returns the lengths before and after.
    fn copy(
        &self,
        reader: &Reader,
        path: &Path,
        what: Option<ptl_spec::Strip>,
    ) -> anyhow::Result<(u64, u64)> {
        let output = self.output.as_deref();
        let mut sink = self.write.create_or_replace(&self.input, output).about(path)?;
        let written = if is_stdio(&self.input) {
            let takes = |record: &str| what.is_some_and(|what| what.takes(record));
            what.map_or(Ok(()), |what| what.check(reader))
                .and_then(|()| ptl_spec::rewrite(reader, |record| !takes(record), &mut sink))
        } else {
            ptl_spec::rewrite_file(&self.input, what, &mut sink)
        };
        let is_write = matches!(written, Err(ptl_spec::Error::Write { .. }));
        written.about(if is_write { path } else { &self.input })?;
        Ok((reader.source().len(), sink.commit(path)?))
    }

    fn replace(&self, what: Option<ptl_spec::Strip>) -> anyhow::Result<(u64, u64)> {
        let edited = match what {
            Some(what) => ptl_spec::strip(&self.input, what).map(|stripped| stripped.edited),
            None => ptl_spec::compact(&self.input),
        };
        match edited.about(&self.input)? {
            Edited::Replaced { before, after } => Ok((before, after)),
            _ => anyhow::bail!("the model was not rewritten"),
        }
    }

    fn report(&self, path: &Path, result: &Rewritten) -> anyhow::Result<Outcome> {
        let (shown, would) = (escape(&result.path), self.write.would_be());
        let mut text = String::new();
        for name in &result.removed {
            let _ = writeln!(text, "{shown}: {would}without {}", escape(name));
        }
        let sizes = [result.bytes_before, result.bytes_after].map(output::size);
        let _ = writeln!(text, "{shown}: {would}written, {}", sizes.join(" → "));
        self.write.report(path, result, &text)?;
        Ok(Outcome::Fine)
    }
}

/// Returns the names of what is taken out.
fn removed(reader: &Reader, what: Option<ptl_spec::Strip>) -> ptl_spec::Result<Vec<String>> {
    let Some(what) = what else { return Ok(Vec::new()) };
    let names: Vec<String> = match reader.container() {
        ContainerKind::FlatBuffer => reader.sources()?,
        _ => reader.records().map(|record| record.path().to_owned()).collect(),
    };
    Ok(names.into_iter().filter(|name| what.takes(name)).collect())
}
