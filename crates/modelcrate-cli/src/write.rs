//! Files that commands write, and what is said of them.

use std::{
    cell::Cell,
    io::{self, BufWriter, StdoutLock, Write as _},
    path::Path,
    rc::Rc,
};

use anstream::eprint;
use anyhow::ensure;
use modelcrate::tensor_core::{
    Source,
    output::{Durability, Existing, NewFile},
};
use serde::Serialize;

use crate::{
    failure::About,
    options::{Format, Print, is_stdio},
    output,
    paths::same_file,
};

/// Options of everything that writes a model file.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Writing {
    /// Replace the output where it is there already, and write what checks refuse
    #[arg(long)]
    pub(crate) force: bool,
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
        ensure!(self.force || !there, "is there already (--force replaces it)");
        ensure!(output.is_file() || !output.exists(), "is not a regular file");
        self.check_place(output)
    }

    /// Returns what happens to an output that is there already.
    pub(crate) const fn existing(self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Keep }
    }

    /// Starts a file that may only be there already if that was asked for.
    pub(crate) fn create(self, output: &Path) -> anyhow::Result<Sink> {
        self.check(output)?;
        self.start(output, self.existing())
    }

    /// Starts a file that takes the place of another.
    pub(crate) fn replace(self, file: &Path) -> anyhow::Result<Sink> {
        self.check_place(file)?;
        self.start(file, Existing::Replace)
    }

    /// Starts an output, or the file that takes the place of the input where no output is given.
    pub(crate) fn create_or_replace(
        self,
        input: &Path,
        output: Option<&Path>,
    ) -> anyhow::Result<Sink> {
        let Some(output) = output else { return self.replace(input) };
        let is_input = !is_stdio(output) && same_file(input, output);
        ensure!(!is_input, "is the input, which is replaced where no output is given");
        self.create(output)
    }

    fn check_place(self, path: &Path) -> anyhow::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        ensure!(folder.is_none_or(Path::is_dir), "is in a folder that does not exist");
        if self.dry_run {
            // It is never put in its place.
            NewFile::create(path, Durability::Cached)?;
        }
        Ok(())
    }

    fn start(self, path: &Path, existing: Existing) -> anyhow::Result<Sink> {
        let to = if self.dry_run {
            To::Nowhere
        } else if is_stdio(path) {
            To::Stdout(BufWriter::with_capacity(1 << 20, io::stdout().lock()))
        } else {
            To::File(NewFile::create(path, Durability::Synced)?, existing)
        };
        Ok(Sink { to, written: 0, failed: Rc::default() })
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

/// What a file is written to: a file that appears once it is whole, standard output, or nothing.
pub(crate) struct Sink {
    to: To,
    written: u64,
    failed: Rc<Cell<bool>>,
}

enum To {
    File(NewFile, Existing),
    Stdout(BufWriter<StdoutLock<'static>>),
    Nowhere,
}

impl Sink {
    /// Returns what tells later whether writing failed, and not something else.
    pub(crate) fn failed(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.failed)
    }

    /// Returns what was written so far; `None` where it cannot be read again.
    pub(crate) fn source(&mut self) -> anyhow::Result<Option<Source>> {
        match &mut self.to {
            To::File(file, _) => Ok(Some(file.source()?)),
            To::Stdout(_) | To::Nowhere => Ok(None),
        }
    }

    /// Puts a file in its place; returns how many bytes were written.
    pub(crate) fn commit(self, path: &Path) -> anyhow::Result<u64> {
        match self.to {
            To::File(mut file, existing) => file.commit(existing).about(path)?,
            To::Stdout(mut out) => out.flush().about(path)?,
            To::Nowhere => {}
        }
        Ok(self.written)
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.to {
            To::File(file, _) => file.write(bytes),
            To::Stdout(out) => out.write(bytes),
            To::Nowhere => Ok(bytes.len()),
        };
        self.failed.set(written.is_err());
        let written = written?;
        self.written = self.written.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.to {
            To::File(file, _) => file.flush(),
            To::Stdout(out) => out.flush(),
            To::Nowhere => Ok(()),
        };
        self.failed.set(flushed.is_err());
        flushed
    }
}
