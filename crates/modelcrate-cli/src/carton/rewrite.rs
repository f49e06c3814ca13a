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
    options::is_stdio,
    outcome::Outcome,
    output,
    paths::is_inside,
    write::{Sink, Writing},
};

/// A carton that is made from another.
#[derive(Debug, clap::Args)]
pub(super) struct Rewrite {
    /// The carton to read, or a folder with the files of one; - is standard input
    pub(super) input: PathBuf,
    /// The carton to write; - is standard output. Without it the input is replaced, once the new
    /// one is complete
    output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) write: Writing,
    /// Keeps other editors out while the input is replaced.
    #[arg(skip)]
    lock: OnceCell<LockedFile>,
}

/// What was made, and from what.
#[derive(Serialize)]
struct Rewritten<T> {
    path: String,
    dry_run: bool,
    model_hash_before: String,
    model_hash: String,
    bytes_before: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_after: Option<u64>,
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
    /// Opens the input, and locks it where it is to be replaced.
    pub(super) fn open(&self, options: ReadOptions) -> anyhow::Result<Reader> {
        if !self.is_in_place() {
            return super::open(&self.input, options);
        }
        let lock = LockedFile::open(&self.input).about(&self.input)?;
        let source = lock.source().about(&self.input)?;
        // The input is opened once.
        let _ = self.lock.set(lock);
        options.from_source(source).about(&self.input)
    }

    /// Tells whether the input is replaced.
    pub(super) fn is_in_place(&self) -> bool {
        self.output.is_none() && !self.write.dry_run && self.input.is_file()
    }

    /// Returns where the new carton goes.
    fn path(&self) -> &Path {
        self.output.as_deref().unwrap_or(&self.input)
    }

    /// Writes the new carton, and says so.
    pub(super) fn run<T: Serialize>(
        &self,
        reader: &Reader,
        options: WriteOptions,
        write: impl FnOnce(Writer<Sink>) -> carton_format::Result<(Finished<Sink>, Done<T>)>,
    ) -> anyhow::Result<Outcome> {
        let path = self.path();
        let sink = self.sink().about(path)?;
        let failed = sink.failed();
        let written = write(options.write_to(sink));
        let (finished, done) = written.about(if failed.get() { path } else { &self.input })?;
        if let Some(lock) = self.lock.get() {
            lock.check_in_place().about(path)?;
        }
        let bytes = finished.sink.commit(path)?;
        self.report(reader, done, finished.manifest.model_hash(), Some(bytes))
    }

    /// Like [`run`](Self::run), but for a dry run where what would be written is not known.
    pub(super) fn dry_run<T: Serialize>(
        &self,
        reader: &Reader,
        done: Done<T>,
    ) -> anyhow::Result<Outcome> {
        self.sink().about(self.path())?;
        self.report(reader, done, reader.model_hash(), None)
    }

    /// Says what was done.
    pub(super) fn report<T: Serialize>(
        &self,
        reader: &Reader,
        done: Done<T>,
        model_hash: Sha256,
        bytes_after: Option<u64>,
    ) -> anyhow::Result<Outcome> {
        let (path, before) = (self.path(), reader.model_hash());
        let result = Rewritten {
            path: path.display().to_string(),
            dry_run: self.write.dry_run,
            model_hash_before: before.to_string(),
            model_hash: model_hash.to_string(),
            bytes_before: self.len(reader),
            bytes_after,
            changes: done.changes,
        };
        let (shown, would_be) = (escape(&result.path), self.write.would_be());
        let mut text = String::new();
        for line in done.lines {
            let _ = writeln!(text, "{shown}: {would_be}{}", escape(&line));
        }
        let from = output::size(result.bytes_before);
        let sizes = bytes_after.map(|bytes| format!(", {from} → {}", output::size(bytes)));
        let _ = writeln!(text, "{shown}: {would_be}{}{}", done.what, sizes.unwrap_or_default());
        let _ = writeln!(text, "{shown}: {}", hashes_text(before, model_hash));
        self.write.report(path, &result, &text)?;
        Ok(Outcome::Fine)
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

    /// Returns how long the input is, in bytes.
    fn len(&self, reader: &Reader) -> u64 {
        reader.source().map_or_else(|| reader.content_len(), Source::len)
    }
}

fn hashes_text(before: Sha256, after: Sha256) -> String {
    if before == after {
        format!("model hash {after}, as before")
    } else {
        format!("model hash {before} → {after}")
    }
}
