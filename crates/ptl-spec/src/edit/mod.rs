//! Changing extra files: nothing else in a model file changes.
//!
//! What is new in a ZIP file comes behind its end, in one write, where PyTorch finds the old end
//! until the new one is there: up to 64 KiB. Longer changes, and those of a FlatBuffer, make another
//! file, which takes the place of the old one: who reads that goes on with it.
//!
//! ```text
//! [records][directory][end]                                          before
//! [records][directory][end][new records][new directory][new end]     after
//! ```
//!
//! What is no longer listed in a ZIP file stays as dead bytes until it is
//! [compacted](crate::compact); a FlatBuffer has none.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use tensor_core::{
    Extent, Finding, Source,
    output::{Durability, Edited, LockedFile, Output},
};

use crate::{Error, Reader, Result, SPEC, Spec};

pub(crate) mod changes;
mod recover;
pub(crate) mod rewrite;
mod strip;

use changes::{Changes, check};
pub use recover::{recover, recoverable};
pub use rewrite::{Stripped, compact, rewrite, strip};
pub use strip::Strip;

/// How an edited file is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    output: Output,
    allows_invalid: bool,
}

impl WriteOptions {
    /// Sets how a file takes the place of the old one, and how long an edit waits for a lock.
    #[must_use]
    pub const fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Sets whether an edit waits until the disk has it, as it does by default.
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.output.durability = durability;
        self
    }

    /// Writes specs that [`Reader::lint`] finds errors in, too: by default an [`Editor`] refuses them
    /// where the old one does not have the same errors.
    #[must_use]
    pub const fn allow_invalid(mut self) -> Self {
        self.allows_invalid = true;
        self
    }

    fn lock(self, path: &Path) -> Result<LockedFile> {
        Ok(LockedFile::open_within(path, self.output.wait)?)
    }
}

/// A model file that is being edited, locked against other editors.
///
/// Nothing changes before [`commit`](Self::commit).
///
/// # Examples
///
/// ```no_run
/// use ptl_spec::{Editor, Spec};
///
/// let spec = Spec::parse(std::fs::read("live.spec.json")?)?;
/// let mut editor = Editor::open("model.ptl")?;
/// editor.set_spec(&spec)?;
/// editor.commit()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "an edit takes effect when it is committed"]
pub struct Editor {
    path: PathBuf,
    /// None where nothing is to be written.
    file: Option<LockedFile>,
    options: WriteOptions,
    reader: Reader,
    changes: Changes,
}

impl Editor {
    /// Locks and opens a file.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::Locked`]; [`Error::NotEditable`] where readers disagree about what is
    /// in it; as for [`Reader::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, WriteOptions::default())
    }

    /// Like [`open`](Self::open), but with options.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        let file = options.lock(path.as_ref())?;
        let source = file.source()?;
        Self::start(path.as_ref(), Some(file), source, options)
    }

    /// Opens a file for an edit that changes nothing: all is checked as in any other, and
    /// [`commit`](Self::commit) says what would be done. No editor may have the file, but it is not
    /// locked.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn dry_run(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        let source = options.output.check(&path)?;
        Self::start(path.as_ref(), None, source, options)
    }

    /// Edits a model that is written elsewhere, as [`preview`](Self::preview) has it;
    /// [`commit`](Self::commit) only says what it would do.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_source(source: Source) -> Result<Self> {
        Self::start(Path::new(""), None, source, WriteOptions::default().allow_invalid())
    }

    fn start(
        path: &Path,
        file: Option<LockedFile>,
        source: Source,
        options: WriteOptions,
    ) -> Result<Self> {
        let (path, reader) = (path.to_owned(), Reader::from_source(source)?);
        reader.body().check_editable()?;
        Ok(Self { path, file, options, reader, changes: Changes::new() })
    }

    /// Returns the file as it was when it was opened.
    #[must_use]
    pub const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Embeds a spec, in the place of the one that is there.
    ///
    /// # Errors
    ///
    /// As for [`set`](Self::set).
    pub fn set_spec(&mut self, spec: &Spec) -> Result<()> {
        self.set(SPEC, spec.to_text())
    }

    /// Puts an extra file in, in the place of one of the same name.
    ///
    /// # Errors
    ///
    /// [`Error::FileName`] where the name is not a plain relative path; [`Error::NotEditable`] where
    /// the content has 2 GiB or more.
    pub fn set(&mut self, name: &str, content: impl Into<Bytes>) -> Result<()> {
        let content = content.into();
        check(name, &content)?;
        change(&mut self.changes, &self.reader, name, Some(content));
        Ok(())
    }

    /// Takes an extra file out.
    ///
    /// # Errors
    ///
    /// [`Error::MissingFile`].
    pub fn remove(&mut self, name: &str) -> Result<()> {
        let body = self.reader.body();
        let is_same = |(changed, _): &&(String, _)| body.is_same(changed, name);
        let is_there = match self.changes.iter().find(is_same) {
            Some((_, content)) => content.is_some(),
            None => self.reader.extra_file(name).is_some(),
        };
        if !is_there {
            return Err(Error::MissingFile { name: name.to_owned() });
        }
        change(&mut self.changes, &self.reader, name, None);
        Ok(())
    }

    /// Returns the file as [`commit`](Self::commit) will leave it, to be looked at before anything
    /// is written.
    ///
    /// # Errors
    ///
    /// [`Error::NotEditable`] where the file has no place for what is new, or is a FlatBuffer with
    /// parts that overlap or are not known; as for [`Reader::open`].
    pub fn preview(&self) -> Result<Reader> {
        if self.changes.is_empty() {
            return Ok(self.reader.clone());
        }
        let edited = self.reader.body().edited(self.reader.limits(), &self.changes)?;
        Reader::from_source(edited)
    }

    /// Makes the edit take effect, and says what that is. Without changes nothing is written.
    ///
    /// Whoever opens the file meanwhile, or after the process was killed, finds the old one or the new
    /// one, and who has it open keeps the old one.
    ///
    /// # Errors
    ///
    /// As for [`preview`](Self::preview); [`Error::Faulty`] for a spec that is malformed, or does not
    /// fit the method `forward`; [`tensor_core::Error::Replaced`] where another program has changed
    /// the file; [`Error::Core`] and [`Error::Write`] where a write fails. The file is as it was before
    /// the edit, but for what other programs wrote.
    pub fn commit(mut self) -> Result<Edited> {
        if self.changes.is_empty() {
            return Ok(Edited::Unchanged);
        }
        self.check_spec()?;
        let (body, source) = (self.reader.body(), self.reader.source());
        let edited = body.edited(self.reader.limits(), &self.changes)?;
        let (before, after) = (source.len(), edited.len());
        let grows = body.grows_whole(&edited)?;
        if let Some(file) = &mut self.file {
            check_unchanged(file, before)?;
            if grows {
                append(file, before, &edited, self.options.output.durability)?;
            } else {
                let mut new = self.options.output.create(&self.path)?;
                rewrite::copy(&edited, &mut new)?;
                check_unchanged(file, before)?;
                new.commit(self.options.output.existing)?;
            }
        } else if !grows {
            self.options.output.check_create(&self.path)?;
        }
        Ok(match grows {
            true => Edited::Appended { before, after },
            false => Edited::Replaced { before, after },
        })
    }

    /// Refuses a spec with an error that the old one does not have. Of all else in the file an edit
    /// makes nothing wrong that was right.
    fn check_spec(&self) -> Result<()> {
        let is_spec = |(name, _): &&(String, _)| self.reader.body().is_same(name, SPEC);
        let Some((_, Some(new))) = self.changes.iter().find(is_spec) else { return Ok(()) };
        if self.options.allows_invalid || new.is_empty() {
            return Ok(());
        }
        let lint = |text: &Bytes| self.reader.lint_spec(text);
        let old = self.reader.spec_text().ok().flatten();
        match lint(new).new_error_since(&old.as_ref().map(lint).unwrap_or_default()) {
            Some(Finding { message, .. }) => Err(Error::Faulty { message }),
            None => Ok(()),
        }
    }
}

/// Clones of the reader may hold the file open, and the lock with it.
impl Drop for Editor {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            file.unlock();
        }
    }
}

/// Writes what a file has more than before behind its end.
fn append(file: &mut LockedFile, len: u64, edited: &Source, durability: Durability) -> Result<()> {
    let tail = edited.read(Extent::between(len, edited.len()), "tail")?;
    let mut written = file.write_all_at(&tail, len);
    if written.is_ok() && durability == Durability::Synced {
        written = file.sync();
    }
    written.map_err(|source| {
        // Where this fails too, readers find the old end, and `recover` cuts off what is behind it.
        let _ = take_back(file, len, &tail);
        file.failed("writing", source).into()
    })
}

/// Cuts off what is left of a write that failed, unless another program has written there.
fn take_back(file: &mut LockedFile, len: u64, tail: &[u8]) -> Result<()> {
    let now = file.source()?;
    let written = Extent::between(len, now.len());
    if written.len() <= tail.len() as u64 && tail.starts_with(&now.read(written, "tail")?) {
        file.set_len(len).map_err(|source| file.failed("truncating", source))?;
    }
    Ok(())
}

/// Proves that a file is still the one that was read, and as long: a lock keeps other editors out,
/// not other programs.
fn check_unchanged(file: &LockedFile, len: u64) -> Result<()> {
    file.check_in_place()?;
    match file.byte_len() {
        Ok(now) if now == len => Ok(()),
        Ok(_) => Err(tensor_core::Error::Replaced { path: file.path().to_owned() }.into()),
        Err(source) => Err(file.failed("reading metadata", source).into()),
    }
}

/// Adds a change, in the place of an earlier one of the same file.
fn change(changes: &mut Changes, reader: &Reader, name: &str, content: Option<Bytes>) {
    changes.retain(|(changed, _)| !reader.body().is_same(changed, name));
    changes.push((name.to_owned(), content));
}

/// Returns a model file with changed extra files, as an edit would leave it: for files that are in
/// memory. What is taken out need not be there, of two changes of one file the last counts, and
/// nothing is said of a spec that is wrong.
///
/// # Errors
///
/// As for [`Editor::open`] and [`Editor::set`].
pub fn with_extra_files<'n>(
    file: &[u8],
    changes: impl IntoIterator<Item = (&'n str, Option<Bytes>)>,
) -> Result<Vec<u8>> {
    let reader = Reader::from_bytes(file.to_vec())?;
    reader.body().check_editable()?;
    let mut all = Changes::new();
    for (name, content) in changes {
        content.as_ref().map_or(Ok(()), |content| check(name, content))?;
        change(&mut all, &reader, name, content);
    }
    let edited = reader.body().edited(reader.limits(), &all)?;
    Ok(edited.read(Extent::first(edited.len()), "edited file")?.into())
}

#[cfg(test)]
mod tests {
    use test_support::{CountingSource, testdata};

    use super::*;

    #[test]
    fn what_another_program_has_written_is_not_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.ptl");
        let left = |content: &str| {
            std::fs::write(&path, content).unwrap();
            let mut file = LockedFile::open(&path).unwrap();
            let _ = take_back(&mut file, 3, b"tail");
            std::fs::read_to_string(&path).unwrap()
        };
        for ours in ["old", "oldta", "oldtail"] {
            assert_eq!(left(ours), "old");
        }
        for theirs in ["ol", "oldmore", "oldtailmore", "oldtamore"] {
            assert_eq!(left(theirs), theirs);
        }
    }

    /// Whatever an edit of a big file is, it reads what it needs.
    #[test]
    fn planning_reads_no_tensors() {
        const BIG: u64 = 500_000_000;
        let file = std::fs::read(testdata("ptl/valid/torch251/img_fb.ptl")).unwrap();
        let store = CountingSource::with_zeros(&file, BIG);
        let reader = Reader::from_source(store.source()).unwrap();
        for (name, content) in [(SPEC, Some("{}")), ("labels.txt", Some("a")), (SPEC, None)] {
            let changes = vec![(name.to_owned(), content.map(Bytes::from))];
            let edited = reader.body().edited(reader.limits(), &changes).unwrap();
            // Nothing leads to the zeros.
            assert!(edited.len() < file.len() as u64 + (1 << 16));
        }
        assert!(store.total() < 64 << 10, "{}", store.total());
    }
}
