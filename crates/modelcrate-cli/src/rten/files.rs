use std::path::PathBuf;

use anyhow::ensure;
use modelcrate::rten_format::{Reader, Result};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Force, Input, is_stdio},
    outcome::Outcome,
    output,
    paths::same_file,
    write::{Kept, Sink, Writing},
};

/// A model that is made from another.
#[derive(Debug, clap::Args)]
pub(crate) struct Files {
    /// The model to read; - is standard input
    pub(crate) input: Input,
    /// The model to write; - is standard output
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) force: Force,
    #[command(flatten)]
    pub(crate) write: Writing,
}

#[derive(Serialize)]
struct Converted {
    path: String,
    dry_run: bool,
    version: u8,
    bytes_before: u64,
    #[serde(flatten)]
    kept: Kept,
}

impl Files {
    /// Writes a model of a version that is made from that of a reader, and says so.
    pub(crate) fn rewrite(
        &self,
        reader: &Reader,
        version: u8,
        write: impl FnOnce(Sink) -> Result<Sink>,
    ) -> anyhow::Result<Outcome> {
        let (path, Self { write: writing, .. }) = (self.output.as_path(), self);
        let sink = self.sink().about(path)?;
        let written = write(sink);
        let fault = written.as_ref().is_err_and(super::is_write);
        let sink = written.about(if fault { path } else { &self.input })?;
        let lint = |source| Ok(Reader::from_source(source)?.lint());
        let kept = sink.keep(path, &reader.lint(), self.force, lint)?;
        let (dry_run, bytes_before) = (writing.dry_run, reader.source().len());
        let shown = path.display().to_string();
        let result = Converted { path: shown, dry_run, version, bytes_before, kept };
        let text = format!(
            "{}: {}written in version {version}, {} → {}\n",
            escape(&result.path),
            writing.would_be(),
            output::size(bytes_before),
            output::size(result.kept.bytes_after.unwrap_or_default())
        );
        let text = result.kept.checked.text(&escape(&result.path), &text);
        writing.report(path, &result, &text)?;
        Ok(result.kept.checked.outcome())
    }

    fn sink(&self) -> anyhow::Result<Sink> {
        let is_input = !is_stdio(&self.output) && same_file(&self.input, &self.output);
        ensure!(!is_input, "is the input, expected another file");
        self.write.create(&self.output)
    }
}
