use std::{
    cell::OnceCell,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use modelcrate::{
    carton_format::{self, Finished, ReadOptions, Reader, Sha256, WriteOptions, Writer},
    tensor_core::Source,
};
use serde::Serialize;

use crate::{
    editing::{Editing, Opened},
    escape::escape,
    failure::About,
    options::is_stdio,
    outcome::Outcome,
    output,
    paths::is_inside,
    write::{Kept, Sink},
};

/// A carton that is made from another.
#[derive(Debug, clap::Args)]
pub(crate) struct Rewrite {
    /// The carton to read, or a folder with the files of one; - is standard input
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) editing: Editing,
    /// Keeps other editors out while the input is replaced.
    #[arg(skip)]
    opened: OnceCell<Opened>,
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
pub(crate) struct Done<T> {
    /// In one word or a few.
    pub(crate) what: String,
    /// In JSON.
    pub(crate) changes: T,
    /// For people, beside the rest.
    pub(crate) lines: Vec<String>,
}

impl Rewrite {
    pub(crate) fn new(input: PathBuf, editing: Editing) -> Self {
        Self { input, editing, opened: OnceCell::new() }
    }

    /// Opens the input, and locks it where it is to be replaced; a dry run lets go at once.
    pub(super) fn open(&self, options: ReadOptions) -> anyhow::Result<Reader> {
        self.open_as(None, options)
    }

    /// Like [`open`](Self::open), but takes what is open already.
    pub(crate) fn open_as(
        &self,
        opened: Option<Opened>,
        options: ReadOptions,
    ) -> anyhow::Result<Reader> {
        let input = &self.input;
        if input.is_dir() {
            return options.open(input).about(input);
        }
        let opened = opened.map_or_else(|| self.editing.open(input).about(input), Ok)?;
        let source = opened.source.clone();
        // The input is opened once.
        let _ = self.opened.set(opened);
        options.from_source(source).about(input)
    }

    /// Tells whether the input is replaced.
    pub(crate) fn is_in_place(&self) -> bool {
        self.editing.is_in_place() && self.input.is_file()
    }

    /// Returns where the new carton goes.
    fn path(&self) -> &Path {
        self.editing.path(&self.input)
    }

    /// Writes the new carton, unless it would be worse than the old one, and says so.
    pub(crate) fn run<T: Serialize>(
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
        if let Some(opened) = self.opened.get() {
            self.editing.check_lock(&self.input, opened).about(path)?;
        }
        let kept = finished.sink.keep(path, &reader.lint(), self.editing.force, super::lint)?;
        self.report(reader, done, finished.manifest.model_hash(), true, kept)
    }

    /// Says that nothing was written, or would be `changed` in a way whose bytes are not known.
    pub(crate) fn nothing<T: Serialize>(
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
            dry_run: self.editing.write.dry_run,
            changed: changed && !is_refused,
            model_hash_before: before.to_string(),
            model_hash: (!is_refused).then(|| model_hash.to_string()),
            bytes_before: reader.source().map_or_else(|| reader.content_len(), Source::len),
            left_out,
            kept,
            changes: done.changes,
        };
        let (shown, would_be) = (escape(&result.path), self.editing.write.would_be());
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
        self.editing.write.report(path, &result, &result.kept.checked.text(&shown, &text))?;
        Ok(result.kept.checked.outcome())
    }

    fn sink(&self) -> anyhow::Result<Sink> {
        match &self.editing.output {
            None => {
                let is_file = !is_stdio(&self.input) && !self.input.is_dir();
                ensure!(is_file, "cannot be replaced: say where the carton goes");
            }
            Some(output) => {
                let is_inside = !is_stdio(output) && is_inside(output, &self.input);
                ensure!(!is_inside, "is in the folder that is read");
            }
        }
        self.editing.write.create_or_replace(&self.input, self.editing.output.as_deref())
    }
}
