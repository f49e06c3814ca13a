use std::{
    cell::OnceCell,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use modelcrate::{
    carton_format::{self, Finished, ReadOptions, Reader, Sha256, WriteOptions, Writer},
    tensor_core::{Source, output::LockedFile},
};
use serde::Serialize;

use crate::{
    escape::escape,
    failure::About,
    options::{Force, InPlace, is_stdio},
    outcome::Outcome,
    output,
    paths::is_inside,
    write::{Kept, Sink, Writing},
};

/// A carton that is made from another.
#[derive(Debug, clap::Args)]
pub(super) struct Rewrite {
    /// The carton to read, or a folder with the files of one; - is standard input
    pub(super) input: PathBuf,
    /// The carton to write; - is standard output. Without it the input is replaced, once the new
    /// one is complete
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    pub(super) write: Writing,
    #[command(flatten)]
    pub(super) in_place: InPlace,
    /// Keeps other editors out while the input is replaced.
    #[arg(skip)]
    lock: OnceCell<LockedFile>,
}

/// What was made, and from what.
#[derive(Serialize)]
struct Rewritten<T> {
    path: String,
    dry_run: bool,
    /// Whether there is another carton now, or would be.
    changed: bool,
    model_hash_before: String,
    /// None where it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_hash: Option<String>,
    bytes_before: u64,
    #[serde(flatten)]
    kept: Kept,
    /// Those that are not listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    #[serde(flatten)]
    changes: T,
}

/// What there is to say.
pub(super) struct Done<T> {
    /// In one word or a few.
    pub(super) what: String,
    /// In JSON.
    pub(super) changes: T,
    /// For people, beside the rest.
    pub(super) lines: Vec<String>,
}

impl Rewrite {
    /// Opens the input, and locks it where it is to be replaced; a dry run lets go at once.
    pub(super) fn open(&self, options: ReadOptions) -> anyhow::Result<Reader> {
        let input = &self.input;
        if !self.is_in_place() {
            return super::open(input, options);
        }
        if self.write.dry_run {
            let source = self.in_place.output().check(input).about(input)?;
            return options.from_source(source).about(input);
        }
        let lock = LockedFile::open_within(input, self.in_place.wait()).about(input)?;
        let source = lock.source().about(input)?;
        // The input is opened once.
        let _ = self.lock.set(lock);
        options.from_source(source).about(input)
    }

    /// Tells whether the input is replaced.
    pub(super) fn is_in_place(&self) -> bool {
        self.output.is_none() && self.input.is_file()
    }

    /// Returns where the new carton goes.
    fn path(&self) -> &Path {
        self.output.as_deref().unwrap_or(&self.input)
    }

    /// Writes the new carton, unless it would be worse than the old one, and says so.
    pub(super) fn run<T: Serialize>(
        &self,
        reader: &Reader,
        options: WriteOptions,
        write: impl FnOnce(Writer<Sink>) -> carton_format::Result<(Finished<Sink>, Done<T>)>,
    ) -> anyhow::Result<Outcome> {
        let path = self.path();
        let sink = self.sink().about(path)?;
        let failed = sink.failed();
        // The result is checked before it is kept.
        let written = write(options.unchecked().write_to(sink));
        let (finished, done) = written.about(if failed.get() { path } else { &self.input })?;
        if let Some(lock) = self.lock.get() {
            lock.check_in_place().about(path)?;
        }
        let kept = finished.sink.keep(path, &reader.lint(), self.force, super::lint)?;
        self.report(reader, done, finished.manifest.model_hash(), true, kept)
    }

    /// Says that nothing was written, or would be `changed` in a way whose bytes are not known.
    pub(super) fn nothing<T: Serialize>(
        &self,
        reader: &Reader,
        done: Done<T>,
        changed: bool,
    ) -> anyhow::Result<Outcome> {
        self.check()?;
        self.report(reader, done, reader.model_hash(), changed, Kept::default())
    }

    /// Refuses a place where no carton can be written.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.sink().about(self.path()).map(drop)
    }

    /// Says what was done.
    fn report<T: Serialize>(
        &self,
        reader: &Reader,
        done: Done<T>,
        model_hash: Sha256,
        changed: bool,
        kept: Kept,
    ) -> anyhow::Result<Outcome> {
        let (path, before) = (self.path(), reader.model_hash());
        let is_refused = kept.checked.is_refused();
        let left_out = if changed { reader.unlisted().about(&self.input)? } else { Vec::new() };
        let result = Rewritten {
            path: path.display().to_string(),
            dry_run: self.write.dry_run,
            changed: changed && !is_refused,
            model_hash_before: before.to_string(),
            model_hash: (!is_refused).then(|| model_hash.to_string()),
            bytes_before: reader.source().map_or_else(|| reader.content_len(), Source::len),
            left_out,
            kept,
            changes: done.changes,
        };
        let (shown, would_be) = (escape(&result.path), self.write.would_be());
        let mut text = String::new();
        for line in done.lines {
            let _ = writeln!(text, "{shown}: {would_be}{}", escape(&line));
        }
        for path in &result.left_out {
            let path = escape(path);
            let _ = writeln!(text, "{shown}: {would_be}left without {path}, which is not listed");
        }
        let from = output::size(result.bytes_before);
        let bytes = result.kept.bytes_after;
        let sizes = bytes.map(|bytes| format!(", {from} → {}", output::size(bytes)));
        let _ = writeln!(text, "{shown}: {would_be}{}{}", done.what, sizes.unwrap_or_default());
        let _ = match before == model_hash {
            true => writeln!(text, "{shown}: model hash {model_hash}, as before"),
            false => writeln!(text, "{shown}: model hash {before} → {model_hash}"),
        };
        self.write.report(path, &result, &result.kept.checked.text(&shown, &text))?;
        Ok(result.kept.checked.outcome())
    }

    fn sink(&self) -> anyhow::Result<Sink> {
        match &self.output {
            None => {
                let is_file = !is_stdio(&self.input) && !self.input.is_dir();
                ensure!(is_file, "cannot be replaced: say where the carton goes");
            }
            Some(output) => {
                let is_inside = !is_stdio(output) && is_inside(output, &self.input);
                ensure!(!is_inside, "is in the folder that is read");
            }
        }
        self.write.create_or_replace(&self.input, self.output.as_deref())
    }
}
