//! Changing extra files in place: nothing else in a model file moves or changes.
//!
//! An edit appends, and never writes over what the file needs as it is: behind the end of a ZIP file
//! come the new records, a directory, and end records, all in one write; behind the end of a
//! FlatBuffer comes what is new, and then four bytes are set to point there.
//!
//! ```text
//! [records][directory][end]                                          before
//! [records][directory][end][new records][new directory][new end]     after
//! ```
//!
//! What is no longer listed stays as dead bytes until the file is [compacted](crate::compact).

use std::path::Path;

use bytes::Bytes;
use tensor_core::output::{Durability, Edited, LockedFile};

use crate::{Error, Reader, Result, SPEC, Spec};

pub(crate) mod changes;
mod recover;
mod rewrite;
mod strip;

use changes::{Changes, Writes, check};
pub use recover::{recover, recoverable};
pub use rewrite::{Stripped, compact, rewrite, rewrite_file, strip};
pub use strip::Strip;

/// How an edited file is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    durability: Durability,
}

impl WriteOptions {
    /// Sets whether an edit waits until the disk has it, as it does by default.
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
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
        let file = LockedFile::open(path)?;
        let reader = Reader::from_source(file.source()?)?;
        Self::start(Some(file), reader, options)
    }

    /// Opens a file for an edit that changes nothing: all is checked as in any other, and
    /// [`commit`](Self::commit) says what would be done. The file is not locked.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open), without the lock.
    pub fn dry_run(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        Self::start(None, Reader::open(path)?, options)
    }

    fn start(file: Option<LockedFile>, reader: Reader, options: WriteOptions) -> Result<Self> {
        reader.body().check_editable()?;
        Ok(Self { file, options, reader, changes: Changes::new() })
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

    /// Makes the edit take effect, and says what that is. Without changes nothing is written.
    ///
    /// # Errors
    ///
    /// [`Error::NotEditable`] where the file has no place for what is new; [`Error::Core`] where a
    /// write fails: what was appended is cut off again.
    pub fn commit(mut self) -> Result<Edited> {
        if self.changes.is_empty() {
            return Ok(Edited::Unchanged);
        }
        let writes = self.reader.body().writes(&self.changes)?;
        let before = self.reader.source().len();
        let ends = writes.iter().map(|(at, bytes)| at.saturating_add(bytes.len() as u64));
        let after = ends.fold(before, u64::max);
        if let Some(file) = &mut self.file {
            file.check_in_place()?;
            write(file, before, &writes, self.options)?;
        }
        Ok(Edited::Appended { before, after })
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

/// Writes one part after another: nothing may point at what the disk does not have yet.
fn write(file: &mut LockedFile, len: u64, writes: &Writes, options: WriteOptions) -> Result<()> {
    for (index, (at, bytes)) in writes.iter().enumerate() {
        let mut written = file.write_all_at(bytes, *at);
        if written.is_ok() && options.durability == Durability::Synced {
            written = file.sync();
        }
        if let Err(source) = written {
            if index == 0 {
                // Nothing points at what was appended; where this fails too, `recover` cuts it off.
                // Later writes may have taken effect, so that it has to stay.
                let _ = file.set_len(len);
            }
            return Err(file.failed("writing", source).into());
        }
    }
    Ok(())
}

/// Adds a change, in the place of an earlier one of the same file.
fn change(changes: &mut Changes, reader: &Reader, name: &str, content: Option<Bytes>) {
    changes.retain(|(changed, _)| !reader.body().is_same(changed, name));
    changes.push((name.to_owned(), content));
}

/// Returns a model file with changed extra files, as an edit in place would leave it: for files that
/// are in memory. What is taken out need not be there, and of two changes of one file the last counts.
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
    let mut edited = file.to_vec();
    for (at, bytes) in reader.body().writes(&all)? {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let end = at.saturating_add(bytes.len());
        if edited.len() < end {
            edited.resize(end, 0);
        }
        if let Some(target) = edited.get_mut(at..end) {
            target.copy_from_slice(&bytes);
        }
    }
    Ok(edited)
}

#[cfg(test)]
mod tests {
    use test_support::{CountingSource, testdata};

    use super::*;

    /// Whatever an edit of a big file is, it reads what it needs.
    #[test]
    fn planning_reads_no_tensors() {
        const BIG: u64 = 500_000_000;
        let file = std::fs::read(testdata("ptl/valid/torch251/img_fb.ptl")).unwrap();
        let store = CountingSource::with_zeros(&file, BIG);
        let reader = Reader::from_source(store.source()).unwrap();
        for (name, content) in [(SPEC, Some("{}")), ("labels.txt", Some("a")), (SPEC, None)] {
            let changes = vec![(name.to_owned(), content.map(Bytes::from))];
            let writes = reader.body().writes(&changes).unwrap();
            assert_eq!(writes[0].0, file.len() as u64 + BIG);
        }
        assert!(store.total() < 64 << 10, "{}", store.total());
    }
}
