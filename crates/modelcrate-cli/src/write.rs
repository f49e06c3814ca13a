//! Files that commands write, and what is said of them.

use std::{
    cell::Cell,
    fs,
    io::{self, BufWriter, IsTerminal as _, Write as _},
    path::Path,
    rc::Rc,
};

use anyhow::{bail, ensure};
use modelcrate::tensor_core::{
    Extent, Report, Source,
    output::{Aside, Existing, Hidden, LockedFile, NewFile, Output},
};
use serde::Serialize;
use tempfile::SpooledTempFile;

use crate::{
    address,
    checked::Checked,
    failure::About,
    options::{Force, Format, Print, is_stdio},
    output::{self, IN_MEMORY, spooled, spooling},
    paths::same_file,
    progress::Progress,
};

/// Options of everything that writes a model file.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Writing {
    /// Replace the output where it is a file that is there; a folder is never replaced
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
            let is_shown = !self.dry_run && io::stdout().is_terminal();
            ensure!(!is_shown, "is a terminal, which shows no model: pipe it on, or name a file");
            return Ok(());
        }
        #[cfg(feature = "remote")]
        if address::check_output(output, self.existing())? {
            return Ok(());
        }
        address::refuse(output, NO_OUTPUT)?;
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
        let lock = self.lock(output)?;
        Ok(Sink { lock, ..self.start(output, self.existing())? })
    }

    /// Keeps editors out of a file that is to be replaced; a dry run only finds out that there is
    /// none.
    fn lock(self, output: &Path) -> anyhow::Result<Option<LockedFile>> {
        if is_stdio(output) || !output.exists() {
            return Ok(None);
        }
        if self.dry_run {
            Output::default().check(output)?;
            return Ok(None);
        }
        Ok(Some(LockedFile::open(output)?))
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
        let output = Output::default();
        let spool = || Made::Spool(BufWriter::new(SpooledTempFile::new(IN_MEMORY)));
        let (made, to) = match is_stdio(path) {
            true => (spool(), To::Stdout),
            #[cfg(feature = "remote")]
            false if address::location(path)?.is_some() => (spool(), To::Address(existing)),
            false if self.dry_run => (Made::File(output.dry_run(path)?), To::Nowhere),
            false => (Made::File(output.create(path)?), To::Place(existing)),
        };
        let to = if self.dry_run { To::Nowhere } else { to };
        Ok(Sink {
            made,
            to,
            written: 0,
            failed: Rc::default(),
            lock: None,
            relocks: false,
            bar: None,
        })
    }

    /// Prints what was done, beside standard output where the file goes there.
    pub(crate) fn report<T: Serialize>(
        self,
        output: &Path,
        result: &T,
        text: &str,
    ) -> anyhow::Result<()> {
        if is_stdio(output) && !self.dry_run {
            output::print_aside(text);
            return Ok(());
        }
        output::print_done(self.print, output, self.dry_run, result, text)
    }

    pub(crate) const fn would_be(self) -> &'static str {
        if self.dry_run { "would be " } else { "" }
    }
}

fn check_place(path: &Path) -> anyhow::Result<()> {
    check_parent(path)?;
    Ok(Output::default().check_create(path)?)
}

/// Why an address is no place for what is written.
const NO_OUTPUT: &str = "expected a path of this machine";

/// Refuses what is in no folder that is there.
fn check_parent(path: &Path) -> anyhow::Result<()> {
    address::refuse(path, NO_OUTPUT)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    ensure!(folder.is_none_or(Path::is_dir), "is in a folder that does not exist");
    Ok(())
}

/// Refuses a place where no folder can be made.
pub(crate) fn check_folder(folder: &Path) -> anyhow::Result<()> {
    ensure!(!is_stdio(folder), "standard output takes no folder");
    address::refuse(folder, "expected a folder of this machine")?;
    match fs::read_dir(folder) {
        Ok(mut entries) => ensure!(entries.next().is_none(), "is not empty"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => check_parent(folder)?,
        Err(error) => bail!(error),
    }
    Ok(Hidden::check(folder)?)
}

/// A file in the making, which goes to its place or to standard output once it is whole and checked;
/// that of a dry run goes nowhere.
pub(crate) struct Sink {
    made: Made,
    to: To,
    written: u64,
    failed: Rc<Cell<bool>>,
    /// Of the file whose place it takes.
    lock: Option<LockedFile>,
    /// Whether that is taken again when it does.
    relocks: bool,
    bar: Option<Progress>,
}

enum Made {
    File(NewFile),
    /// In memory, or a file without a name among the temporary ones.
    Spool(BufWriter<SpooledTempFile>),
    /// A spool that nothing more is written to.
    Whole(Source),
}

#[derive(Clone, Copy)]
enum To {
    Place(Existing),
    /// A bucket, which gets the file in one piece.
    #[cfg(feature = "remote")]
    Address(Existing),
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

    /// Shows how much of so many bytes is written, from the file that is read.
    pub(crate) fn shown(self, file: &Path, bytes: u64) -> Self {
        Self { bar: Some(Progress::new(file, bytes)), ..self }
    }

    /// Passes a result on unless there are errors in it that were not there before.
    pub(crate) fn keep(
        mut self,
        path: &Path,
        before: &Report,
        force: Force,
        lint: impl FnOnce(Source) -> anyhow::Result<Report>,
    ) -> anyhow::Result<Kept> {
        self.bar = None;
        let after = self.source().and_then(lint).about(path)?;
        let checked = Checked::of(&after, before, force);
        let bytes_after = if checked.is_refused() { None } else { Some(self.commit(path)?) };
        Ok(Kept { bytes_after, checked })
    }

    /// Returns what was written, which is all.
    fn source(&mut self) -> anyhow::Result<Source> {
        let spool = match &mut self.made {
            Made::File(file) => return Ok(file.source()?),
            Made::Whole(source) => return Ok(source.clone()),
            Made::Spool(spool) => spool,
        };
        spool.flush().map_err(|error| spooling(&error))?;
        let spool = std::mem::replace(spool.get_mut(), SpooledTempFile::new(0));
        let source = spooled(spool)?;
        self.made = Made::Whole(source.clone());
        Ok(source)
    }

    /// Keeps nothing open until the file is passed on, and lets editors in meanwhile.
    pub(crate) fn set_aside(&mut self, aside: &Aside) -> anyhow::Result<()> {
        self.relocks = self.lock.take().is_some();
        if let Made::File(file) = &mut self.made {
            file.set_aside(aside)?;
        }
        Ok(())
    }

    /// Passes the file on; returns how many bytes were written.
    pub(crate) fn commit(mut self, path: &Path) -> anyhow::Result<u64> {
        match (self.to, &mut self.made) {
            (To::Place(existing), Made::File(file)) => {
                if self.relocks {
                    self.lock = Some(LockedFile::open(path).about(path)?);
                }
                file.commit(existing).about(path)?;
            }
            (To::Nowhere, _) => {}
            #[cfg(feature = "remote")]
            (To::Address(existing), _) => {
                let source = self.source().about(path)?;
                crate::progress::busy(path);
                address::put(path, &source, existing).about(path)?;
            }
            _ => self.print().about(path)?,
        }
        Ok(self.written)
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
        let written = match &mut self.made {
            Made::File(file) => file.write(bytes),
            Made::Spool(spool) => spool.write(bytes).map_err(|error| spooling(&error)),
            Made::Whole(_) => Err(io::Error::other("the result is whole already")),
        };
        self.failed.set(written.is_err());
        let len = *written.as_ref().unwrap_or(&0) as u64;
        self.written = self.written.saturating_add(len);
        if let Some(bar) = &self.bar {
            bar.inc(len);
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.made {
            Made::File(file) => file.flush(),
            Made::Spool(spool) => spool.flush().map_err(|error| spooling(&error)),
            Made::Whole(_) => Ok(()),
        };
        self.failed.set(flushed.is_err());
        flushed
    }
}
