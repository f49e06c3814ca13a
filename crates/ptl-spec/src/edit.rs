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

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use memchr::memmem;
use model_archive::name;
use tensor_core::{Error as Core, Extent, Limits, Source};

use crate::{
    Error, Reader, Result, SPEC, Spec, flat,
    flat::edit as flat_edit,
    read::{Body, EXTRA},
    zip::Container,
    zip::edit as zip_edit,
};

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
    file: Locked,
    reader: Reader,
    changes: Changes,
}

/// What is to become of extra files: new content, or `None` for one that goes away.
pub(crate) type Changes = Vec<(String, Option<Bytes>)>;

/// What an edit writes: bytes, and where. The first lies behind the end of the file.
pub(crate) type Writes = Vec<(u64, Vec<u8>)>;

impl Editor {
    /// Locks and opens a file.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`]; [`Error::NotEditable`] where readers disagree about what is in it; as for
    /// [`Reader::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = Locked::open(path.as_ref())?;
        let reader = Reader::from_source(file.source()?)?;
        refuse_collisions(&reader)?;
        Ok(Self { file, reader, changes: Vec::new() })
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
    /// [`Error::FileName`] where the name is no plain relative path; [`Error::NotEditable`] where
    /// the content has 2 GiB or more.
    pub fn set(&mut self, name: &str, content: impl Into<Bytes>) -> Result<()> {
        let content = content.into();
        check(name, &content)?;
        self.change(name, Some(content));
        Ok(())
    }

    /// Takes an extra file out.
    ///
    /// # Errors
    ///
    /// [`Error::MissingFile`].
    pub fn remove(&mut self, name: &str) -> Result<()> {
        let is_same = |(changed, _): &&(String, _)| is_same(&self.reader, changed, name);
        let is_there = match self.changes.iter().find(is_same) {
            Some((_, content)) => content.is_some(),
            None => self.reader.extra_file(name).is_some(),
        };
        if !is_there {
            return Err(Error::MissingFile { name: name.to_owned() });
        }
        self.change(name, None);
        Ok(())
    }

    fn change(&mut self, name: &str, content: Option<Bytes>) {
        change(&mut self.changes, &self.reader, name, content);
    }

    /// Returns the length that the file will have, in bytes.
    ///
    /// # Errors
    ///
    /// What keeps [`commit`](Self::commit) from writing anything, such as [`Error::NotEditable`].
    pub fn len_after(&self) -> Result<u64> {
        let len = self.reader.source().len();
        if self.changes.is_empty() {
            return Ok(len);
        }
        let ends = writes(&self.reader, &self.changes)?;
        let ends = ends.iter().map(|(at, bytes)| at.saturating_add(bytes.len() as u64));
        Ok(ends.fold(len, u64::max))
    }

    /// Makes the edit take effect, and waits until the disk has it. Without changes nothing is
    /// written.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where a write fails: what was appended is cut off again.
    pub fn commit(self) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let writes = writes(&self.reader, &self.changes)?;
        self.file.check_in_place()?;
        let len = self.reader.source().len();
        for (index, (at, bytes)) in writes.iter().enumerate() {
            self.file.write(*at, bytes).map_err(|source| {
                if index == 0 {
                    // Nothing points at what was appended; where this fails too, `recover` cuts it
                    // off. Later writes may have taken effect, so that it has to stay.
                    let _ = self.file.file.set_len(len);
                }
                self.file.failed("writing", source)
            })?;
        }
        self.file.unlock();
        Ok(())
    }
}

/// Refuses names and contents that extra files cannot have.
fn check(name: &str, content: &Bytes) -> Result<()> {
    let fault = name::check(name, &Limits::default()).err();
    let fault = fault.or_else(|| name.ends_with('/').then_some(name::NameFault::EmptyComponent));
    if let Some(fault) = fault {
        return Err(Error::FileName { name: name.to_owned(), fault });
    }
    if content.len() as u64 > i32::MAX as u64 {
        let reason = "an extra file of 2 GiB or more does not fit";
        return Err(Error::NotEditable { reason });
    }
    Ok(())
}

fn refuse_collisions(reader: &Reader) -> Result<()> {
    match reader.body() {
        Body::Zip(container) if !container.collisions.is_empty() => {
            let reason = "two of its records have names that PyTorch takes for one";
            Err(Error::NotEditable { reason })
        }
        _ => Ok(()),
    }
}

/// Adds a change, in the place of an earlier one of the same file.
fn change(changes: &mut Changes, reader: &Reader, name: &str, content: Option<Bytes>) {
    changes.retain(|(changed, _)| !is_same(reader, changed, name));
    changes.push((name.to_owned(), content));
}

/// Tells whether two names are one in this file.
fn is_same(reader: &Reader, one: &str, other: &str) -> bool {
    match reader.body() {
        Body::Zip(_) => same(one, other),
        Body::Flat(_) => one == other,
    }
}

/// Returns what an edit of a file writes.
pub(crate) fn writes(reader: &Reader, changes: &Changes) -> Result<Writes> {
    match reader.body() {
        Body::Zip(container) => zip_edit::writes(container, changes),
        Body::Flat(flat) => flat_edit::writes(flat, changes),
    }
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
    refuse_collisions(&reader)?;
    let mut all = Changes::new();
    for (name, content) in changes {
        content.as_ref().map_or(Ok(()), |content| check(name, content))?;
        change(&mut all, &reader, name, content);
    }
    let mut edited = file.to_vec();
    for (at, bytes) in writes(&reader, &all)? {
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

/// Cuts off what an interrupted edit has appended to a ZIP file; returns how many bytes. A file that
/// is whole stays as it is, as does a FlatBuffer, in which an edit takes effect with its last write.
///
/// # Errors
///
/// [`Error::NotEditable`] where there is no whole file inside; [`Error::Locked`].
pub fn recover(path: impl AsRef<Path>) -> Result<u64> {
    let file = Locked::open(path.as_ref())?;
    let source = file.source()?;
    let cut = recoverable(&source)?;
    if cut > 0 {
        let whole = source.len().saturating_sub(cut);
        file.file.set_len(whole).map_err(|source| file.failed("truncating", source))?;
        file.file.sync_all().map_err(|source| file.failed("synchronising", source))?;
    }
    file.unlock();
    Ok(cut)
}

/// Returns how many bytes [`recover`] cuts off.
///
/// # Errors
///
/// As for [`recover`].
pub fn recoverable(source: &Source) -> Result<u64> {
    let start = source.read(Extent::first(source.len().min(8)), "first bytes")?;
    if flat::is_flat(&start) {
        return Ok(0);
    }
    Ok(source.len().saturating_sub(last_whole(source)?))
}

/// Returns the length of the longest beginning that is a whole archive.
fn last_whole(source: &Source) -> Result<u64> {
    let (mut end, mut tries) = (source.len(), 0_u32);
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        // Records may lie across the border of two blocks.
        let block = Extent::between(start, end.saturating_add(END).min(source.len()));
        let bytes = source.read(block, "end record")?;
        for at in memmem::rfind_iter(&bytes, b"PK\x05\x06") {
            let record = block.offset().saturating_add(at as u64);
            let comment = bytes.get(at.saturating_add(20)..).and_then(|rest| rest.first_chunk());
            let comment = comment.map_or(0, |len| u16::from_le_bytes(*len));
            let whole = record.saturating_add(END).saturating_add(comment.into());
            let window = source.window(Extent::first(whole), "archive");
            if window.is_ok_and(|window| is_whole(&window)) {
                return Ok(whole);
            }
            tries = tries.saturating_add(1);
            if tries > TRIES {
                return Err(Error::NotEditable {
                    reason: "it has too many ends of ZIP files in it",
                });
            }
        }
        end = start;
    }
    Err(Error::NotEditable { reason: "there is no whole ZIP file in it" })
}

/// Tells whether this is a model file from its first byte on, not the end of an archive inside it.
fn is_whole(source: &Source) -> bool {
    let container = Container::open(source, &Limits::default());
    container.is_ok_and(|container| zip_edit::check_offsets(&container).is_ok())
}

/// Tells whether two names are one to PyTorch, in a ZIP file.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Returns the name of the extra file that a record is; `None` for any other.
pub(crate) fn extra_name(record: &str) -> Option<&str> {
    let (folder, name) = record.split_at_checked(EXTRA.len())?;
    folder.eq_ignore_ascii_case(EXTRA).then_some(name)
}

/// An open file that no other editor has.
#[derive(Debug)]
pub(crate) struct Locked {
    path: PathBuf,
    file: File,
}

impl Locked {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        // Refuses what is no regular file before it is opened for writing.
        drop(Source::open(path)?);
        let failed = |what| move |source| Core::File { path: path.to_owned(), what, source };
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(failed("opening for writing"))?;
        Self::of(path, file, File::try_lock)
    }

    /// Keeps editors out, and lets others in who do so.
    pub(crate) fn shared(path: &Path) -> Result<Self> {
        drop(Source::open(path)?);
        let failed = |source| Core::File { path: path.to_owned(), what: "opening", source };
        Self::of(path, File::open(path).map_err(failed)?, File::try_lock_shared)
    }

    fn of(
        path: &Path,
        file: File,
        lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self> {
        match lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => {
                let (path, what) = (path.to_owned(), "locking");
                return Err(Core::File { path, what, source }.into());
            }
        }
        let locked = Self { path: path.to_owned(), file };
        locked.check_in_place()?;
        Ok(locked)
    }

    pub(crate) fn source(&self) -> Result<Source> {
        let file = self.file.try_clone().map_err(|source| self.failed("reopening", source))?;
        Ok(Source::from_file(file)?)
    }

    /// Lets other editors in, though readers may still hold clones of the handle.
    pub(crate) fn unlock(&self) {
        // Where this fails, closing the last handle does it.
        let _ = self.file.unlock();
    }

    /// Proves that the path still leads to the file that was locked: another editor may have
    /// replaced it in between.
    #[cfg(unix)]
    pub(crate) fn check_in_place(&self) -> Result<()> {
        use std::os::unix::fs::MetadataExt;
        let failed = |source| self.failed("reading metadata", source);
        let ours = self.file.metadata().map_err(failed)?;
        let theirs = std::fs::metadata(&self.path).map_err(failed)?;
        if (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()) {
            return Ok(());
        }
        Err(Core::Replaced { path: self.path.clone() }.into())
    }

    #[cfg(not(unix))]
    pub(crate) fn check_in_place(&self) -> Result<()> {
        Ok(())
    }

    /// Writes and waits for the disk, so that nothing points at what is not there yet.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)?;
        file.sync_data()
    }

    fn failed(&self, what: &'static str, source: io::Error) -> Error {
        Core::File { path: self.path.clone(), what, source }.into()
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.unlock();
    }
}

/// What is searched for end records at once, in bytes.
const BLOCK: u64 = 1 << 20;
/// Bytes of an end record without its comment.
const END: u64 = 22;
/// How many end records are looked at before the search is given up.
const TRIES: u32 = 1000;

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
            let writes = writes(&reader, &changes).unwrap();
            assert_eq!(writes[0].0, file.len() as u64 + BIG);
        }
        assert!(store.total() < 64 << 10, "{}", store.total());
    }
}
