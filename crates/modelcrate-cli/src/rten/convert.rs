use std::path::PathBuf;

use anyhow::ensure;
use modelcrate::rten_format::{Reader, Result, Rewrite, WriteOptions};
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

/// Write a model as version 2: header, model data, tensor data
///
/// The file is laid out as RTen's converter does it, without unused bytes. Bytes that constants
/// share stay shared. RTen reads version 2 from release 0.11.0 on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  modelcrate rten to-v2 old.rten new.rten
  modelcrate rten to-v2 --wrap old.rten new.rten")]
pub(crate) struct ToV2 {
    #[command(flatten)]
    files: Files,
    /// Put a header before the model data of version 1, which keeps its bytes
    #[arg(long)]
    wrap: bool,
    /// How many elements a constant may have to stay in the model data
    #[arg(long, value_name = "N", default_value_t = 16, conflicts_with = "wrap")]
    inline_elements: u64,
    /// What every tensor starts at a multiple of: a power of two up to 65536
    #[arg(long, value_name = "BYTES", default_value_t = 64, conflicts_with = "wrap")]
    alignment: u32,
}

/// Write a model as version 1: the model data alone, with all constants in it
///
/// Every release of RTen reads version 1, which cannot be larger than 2 GiB.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  modelcrate rten to-v1 model.rten old.rten")]
pub(crate) struct ToV1 {
    #[command(flatten)]
    files: Files,
}

impl ToV2 {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let options =
            WriteOptions::default().inline_elements(self.inline_elements).alignment(self.alignment);
        let reader = super::open(&self.files.input)?;
        let rewrite = Rewrite::new(&reader).options(options);
        self.files.rewrite(&reader, 2, |sink| {
            if self.wrap { rewrite.write_wrapped(sink) } else { rewrite.write_v2(sink) }
        })
    }
}

impl ToV1 {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let reader = super::open(&self.files.input)?;
        let write = |sink| Rewrite::new(&reader).write_v1(sink);
        self.files.rewrite(&reader, 1, write)
    }
}

/// A model that is made from another.
#[derive(Debug, clap::Args)]
pub(super) struct Files {
    /// The model to read; - is standard input
    pub(super) input: Input,
    /// The model to write; - is standard output
    pub(super) output: PathBuf,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    write: Writing,
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
    pub(super) fn rewrite(
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
