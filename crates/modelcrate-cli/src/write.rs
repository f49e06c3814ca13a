//! Files that commands write, and what is said of them.

use std::{
    cell::Cell,
    env,
    io::{self, Write as _},
    path::Path,
    process,
    rc::Rc,
};

use anstream::eprint;
use anyhow::ensure;
use modelcrate::tensor_core::{
    Extent, Report, Source,
    output::{Durability, Existing, NewFile, Output},
};
use serde::Serialize;

use crate::{
    checked::Checked,
    failure::About,
    options::{Force, Format, Print, is_stdio},
    output,
    paths::same_file,
};

/// Options of everything that writes a model file.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Writing {
    /// Replace the output where it is there already
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Check everything, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) print: Print,
}

impl Writing {
    /// Refuses an output that cannot be written; a dry run calls it too.
    pub(crate) fn check(self, output: &Path) -> anyhow::Result<()> {
        if is_stdio(output) {
            let quiet = self.print.format == Format::Human || self.dry_run;
            ensure!(quiet, "standard output takes either a file or JSON, not both");
            return Ok(());
        }
        let there = output.symlink_metadata().is_ok();
        ensure!(self.overwrite || !there, "is there already (--overwrite replaces it)");
        ensure!(output.is_file() || !output.exists(), "is not a regular file");
        check_place(output)
    }

    /// Returns what happens to an output that is there already.
    pub(crate) const fn existing(self) -> Existing {
        if self.overwrite { Existing::Replace } else { Existing::Keep }
    }

    /// Starts a file that may only be there already if that was asked for.
    pub(crate) fn create(self, output: &Path) -> anyhow::Result<Sink> {
        self.check(output)?;
        self.start(output, self.existing())
    }

    /// Starts an output, or the file that takes the place of the input where no output is given.
    pub(crate) fn create_or_replace(
        self,
        input: &Path,
        output: Option<&Path>,
    ) -> anyhow::Result<Sink> {
        let Some(output) = output else {
            check_place(input)?;
            return self.start(input, Existing::Replace);
        };
        let is_input = !is_stdio(output) && same_file(input, output);
        ensure!(!is_input, "is the input, which is replaced where no output is given");
        self.create(output)
    }

    fn start(self, path: &Path, existing: Existing) -> anyhow::Result<Sink> {
        let spool = env::temp_dir().join(format!("modelcrate-{}", process::id()));
        let (path, durability, to) = match is_stdio(path) {
            true => (spool.as_path(), Durability::Cached, To::Stdout),
            false => (path, Durability::Synced, To::Place(existing)),
        };
        let to = if self.dry_run { To::Nowhere } else { to };
        Ok(Sink { file: NewFile::create(path, durability)?, to, failed: Rc::default() })
    }

    /// Prints what was done, beside standard output where the file goes there.
    pub(crate) fn report<T: Serialize>(
        self,
        output: &Path,
        result: &T,
        text: &str,
    ) -> anyhow::Result<()> {
        if is_stdio(output) && !self.dry_run {
            eprint!("{text}");
            return Ok(());
        }
        Ok(output::print_result(self.print, result, text)?)
    }

    pub(crate) const fn would_be(self) -> &'static str {
        if self.dry_run { "would be " } else { "" }
    }
}

fn check_place(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    ensure!(folder.is_none_or(Path::is_dir), "is in a folder that does not exist");
    Ok(Output::default().check_create(path)?)
}

/// A file in the making, which goes to its place or to standard output once it is whole and checked;
/// that of a dry run goes nowhere.
pub(crate) struct Sink {
    file: NewFile,
    to: To,
    failed: Rc<Cell<bool>>,
}

enum To {
    Place(Existing),
    Stdout,
    Nowhere,
}

/// What became of a result.
#[derive(Default, Serialize)]
pub(crate) struct Kept {
    /// Its length; none where it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_after: Option<u64>,
    #[serde(flatten)]
    pub(crate) checked: Checked,
}

impl Sink {
    /// Returns what tells later whether writing failed, and not something else.
    pub(crate) fn failed(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.failed)
    }

    /// Passes a result on unless there are errors in it that were not there before.
    pub(crate) fn keep(
        mut self,
        path: &Path,
        before: &Report,
        force: Force,
        lint: impl FnOnce(Source) -> anyhow::Result<Report>,
    ) -> anyhow::Result<Kept> {
        let after = self.source().and_then(lint).about(path)?;
        let checked = Checked::of(&after, before, force);
        let bytes_after = if checked.is_refused() { None } else { Some(self.commit(path)?) };
        Ok(Kept { bytes_after, checked })
    }

    /// Returns what was written so far.
    pub(crate) fn source(&mut self) -> anyhow::Result<Source> {
        Ok(self.file.source()?)
    }

    /// Passes the file on; returns how many bytes were written.
    pub(crate) fn commit(mut self, path: &Path) -> anyhow::Result<u64> {
        let written = self.file.written();
        match self.to {
            To::Place(existing) => self.file.commit(existing).about(path)?,
            To::Stdout => self.print().about(path)?,
            To::Nowhere => {}
        }
        Ok(written)
    }

    fn print(&mut self) -> anyhow::Result<()> {
        let source = self.source()?;
        let mut bytes = source.stream(Extent::first(source.len()), "result")?;
        let mut out = io::stdout().lock();
        io::copy(&mut bytes, &mut out)?;
        Ok(out.flush()?)
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        self.failed.set(written.is_err());
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        self.failed.set(flushed.is_err());
        flushed
    }
}
