//! Changing files in place: tensor data stays where it is.
//!
//! In a file of version 2 the new model data is written behind everything else, and then the header
//! is made to point to it:
//!
//! ```text
//! [header → A][A: model data][tensor data]                        before
//! [header → A][A: model data][tensor data][B: new model data]     A is what readers find
//! [header → B][unused       ][tensor data][B: new model data]     after
//! ```
//!
//! A is never touched, and the header changes by one write of 16 bytes, so the file is whole as it
//! was, or whole as it is to be, wherever a crash comes.

pub(crate) mod change;
pub(crate) mod check;
mod extract;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use tensor_core::{
    Extent, Source,
    output::{Durability, Edited, Existing, LockedFile, NewFile},
};

use crate::{
    Error, Header, Model, NodeKind, Pending, Reader, Result, WriteOptions, edit::check::Unknown,
    topology, write::rewrite,
};

/// A file whose model is being changed, locked against other editors.
///
/// Nothing changes for a reader before [`commit`](Self::commit); dropped before, the file is as it
/// was. A file of version 2 of any size is edited in the time that its model data takes; one of
/// version 1 is rewritten, as its constants are in the model data.
///
/// # Examples
///
/// ```no_run
/// use rten_format::Editor;
///
/// let mut editor = Editor::open("model.rten")?;
/// editor.model_mut().metadata.get_or_insert_default().license = Some("MIT".to_owned());
/// editor.commit()?;
/// # Ok::<(), rten_format::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "an edit takes effect when it is committed"]
pub struct Editor {
    path: PathBuf,
    /// None in a dry run.
    file: Option<LockedFile>,
    reader: Reader,
    model: Model,
    options: WriteOptions,
}

impl Editor {
    /// Locks and opens a file.
    ///
    /// # Errors
    ///
    /// [`tensor_core::Error::Locked`]; as for [`Reader::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, WriteOptions::default())
    }

    /// Like [`open`](Self::open), but with options; without [`rewrite`](Self::rewrite) only
    /// durability, waiting, and whether it is [unchecked](WriteOptions::unchecked) count.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        let file = LockedFile::open_within(&path, options.output_of().wait)?;
        let reader = Reader::from_source(file.source()?)?;
        Ok(Self::start(path.as_ref(), Some(file), reader, options))
    }

    /// Opens a file for an edit that changes nothing: everything is checked and refused as in any
    /// edit, and what would be written is thrown away. Other editors are kept out only while it is
    /// opened.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn dry_run(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        let reader = Reader::from_source(options.output_of().check(&path)?)?;
        Ok(Self::start(path.as_ref(), None, reader, options))
    }

    /// Edits a model that is written elsewhere, by [`write`](Self::write); [`commit`](Self::commit) only
    /// says what it would do.
    pub fn from_reader(reader: Reader, options: WriteOptions) -> Self {
        Self::start(Path::new(""), None, reader, options)
    }

    fn start(path: &Path, file: Option<LockedFile>, reader: Reader, options: WriteOptions) -> Self {
        let (path, model) = (path.to_owned(), reader.model().clone());
        Self { path, file, reader, model, options }
    }

    /// Returns the file as it was when it was opened.
    #[must_use]
    pub const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the model as it is going to be.
    #[must_use]
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the model to be changed. Constants keep their elements by their data offsets; new
    /// ones have inline data.
    pub const fn model_mut(&mut self) -> &mut Model {
        &mut self.model
    }

    /// Returns how many bytes of the file nothing will refer to once the edit is
    /// [committed](Self::commit); none in a file of version 1. [`rewrite`](Self::rewrite) and
    /// [`Rewrite`](crate::Rewrite) leave them out.
    #[must_use]
    pub fn unused_bytes(&self) -> u64 {
        let Some(header) = self.reader.header() else { return 0 };
        let offset = self.place(header);
        let model_data = Extent::between(offset, offset);
        offset.saturating_sub(used(&self.model, &Header { model_data, ..*header }))
    }

    /// Returns the file as [`commit`](Self::commit) would make it, to be checked before.
    ///
    /// # Errors
    ///
    /// As for [`Model::to_bytes`] and [`Reader::open`]: constants without elements have none here.
    pub fn preview(&self) -> Result<Reader> {
        self.preview_with(self.model.to_bytes()?)
    }

    fn preview_with(&self, model_data: impl Into<Bytes>) -> Result<Reader> {
        let (model_data, source) = (model_data.into(), self.reader.source());
        let new = match self.reader.header() {
            None => Source::from_bytes(model_data),
            Some(old) => {
                let header = self.appended(old, &model_data)?;
                let body = Extent::between(Header::LEN, source.len());
                let gap = header.model_data.offset().saturating_sub(source.len());
                Source::joined([
                    Source::from_bytes(header.to_bytes()),
                    source.window(body, "tensor data")?,
                    Source::from_bytes(vec![0; usize::try_from(gap).unwrap_or_default()]),
                    Source::from_bytes(model_data),
                ])
            }
        };
        Reader::options().limits(*self.reader.limits()).from_source(new)
    }

    /// Makes the edit take effect. Where the model is the same, nothing is written.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] where [`Reader::lint`] would find an error that the file has not;
    /// [`Error::Constant`] where a constant has no elements, or not as many as its shape needs; as
    /// for [`Model::to_bytes`]; [`Error::Core`] where the file cannot be written. The file is as it
    /// was.
    pub fn commit(mut self) -> Result<Edited> {
        if &self.model == self.reader.model() {
            return Ok(Edited::Unchanged);
        }
        self.reader.require_known()?;
        check::elements(&self.reader, &self.model, Unknown::Kept)?;
        let model_data = self.model.to_bytes()?;
        // Not a number is not even equal to itself.
        if model_data == self.reader.model().to_bytes()? {
            return Ok(Edited::Unchanged);
        }
        let model_data = Bytes::from(model_data);
        if self.is_checked() {
            let after = self.preview_with(model_data.clone())?.lint();
            check::sound(&after, &self.reader.lint())?;
        }
        match self.reader.header().copied() {
            None => self.replace(&model_data),
            Some(header) => self.append(&header, &model_data),
        }
    }

    /// Rewrites the whole file, in the version that it has and without unused bytes, and puts it in
    /// the place of the old one.
    ///
    /// Constants that are [described](crate::Constant::described) get their elements from `elements`,
    /// one after another; in version 2 no more than one of them is in memory.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit), and what `elements` returns.
    pub fn rewrite(self, elements: impl FnMut(&Pending) -> Result<Bytes>) -> Result<Edited> {
        let before = self.reader.source().len();
        let Some(file) = &self.file else {
            self.options.output_of().check_create(&self.path)?;
            let written = self.write(Counter { sink: io::sink(), len: 0 }, elements)?;
            return Ok(Edited::Replaced { before, after: written.len });
        };
        let new = self.write(self.options.output_of().create(&self.path)?, elements)?;
        self.put(file, new)
    }

    /// Like [`rewrite`](Self::rewrite), but to any sink, which is returned.
    ///
    /// # Errors
    ///
    /// As for [`rewrite`](Self::rewrite).
    pub fn write<W: Write>(
        &self,
        sink: W,
        mut elements: impl FnMut(&Pending) -> Result<Bytes>,
    ) -> Result<W> {
        if self.is_checked() {
            check::sound(&self.model.lint(), &self.reader.model().lint())?;
        }
        rewrite::write(&self.reader, self.model.clone(), self.options, sink, &mut elements)
    }

    /// Tells whether errors are looked for: metadata alone brings none.
    fn is_checked(&self) -> bool {
        !self.options.is_unchecked() && self.model.graph != self.reader.model().graph
    }

    /// Puts a finished file in the place of the one that was opened.
    fn put(&self, file: &LockedFile, mut new: NewFile) -> Result<Edited> {
        check_unchanged(file, &self.reader)?;
        let (before, after) = (self.reader.source().len(), new.written());
        new.commit(Existing::Replace)?;
        Ok(Edited::Replaced { before, after })
    }

    /// Returns where new model data goes.
    fn place(&self, header: &Header) -> u64 {
        // As aligned as the converter lays out what stands behind the header and model data.
        // Tensor data that is empty may start at the end, and must not come to be model data.
        let end = self.reader.source().len();
        let start = end.max(header.tensor_data_offset.saturating_add(1));
        start.checked_next_multiple_of(64).unwrap_or(start)
    }

    /// Returns the header of the file with new model data.
    fn appended(&self, old: &Header, model_data: &[u8]) -> Result<Header> {
        let extent = Extent::new(self.place(old), model_data.len() as u64)?;
        Ok(Header { model_data: extent, ..*old })
    }

    fn append(&mut self, old: &Header, model_data: &[u8]) -> Result<Edited> {
        let header = self.appended(old, model_data)?;
        let (end, extent) = (self.reader.source().len(), header.model_data);
        if let Some(file) = &mut self.file {
            check_unchanged(file, &self.reader)?;
            let appended = append(file, model_data, extent, self.options.output_of().durability);
            appended.map_err(|source| {
                // The file is whole as it was, if longer where this fails too.
                let _ = file.set_len(end);
                file.failed("appending", source)
            })?;
            let pointed = point(file, &header, self.options.output_of().durability);
            pointed.map_err(|source| file.failed("changing the header", source))?;
        }
        Ok(Edited::Appended { before: end, after: extent.end() })
    }

    fn replace(&mut self, model_data: &[u8]) -> Result<Edited> {
        let (before, after) = (self.reader.source().len(), model_data.len() as u64);
        let Some(file) = &self.file else {
            self.options.output_of().check_create(&self.path)?;
            return Ok(Edited::Replaced { before, after });
        };
        let mut new = self.options.output_of().create(&self.path)?;
        let written = new.write_all(model_data);
        written.map_err(|source| Error::Write { offset: new.written(), source })?;
        self.put(file, new)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            file.unlock();
        }
    }
}

/// Proves that nobody else has changed the file since it was opened: the lock only keeps out those
/// who ask for it.
fn check_unchanged(file: &LockedFile, reader: &Reader) -> Result<()> {
    file.check_in_place()?;
    let source = file.source()?;
    let head = Extent::first(reader.source().len().min(Header::LEN));
    let is_same = source.len() == reader.source().len()
        && match reader.header() {
            Some(header) => source.read(head, "header")? == header.to_bytes(),
            // All of version 1 was read.
            None => true,
        };
    if is_same {
        return Ok(());
    }
    Err(Error::Core(tensor_core::Error::Replaced { path: file.path().to_owned() }))
}

/// Counts what is written.
struct Counter<W> {
    sink: W,
    len: u64,
}

impl<W: Write> Write for Counter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.len = self.len.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Writes new model data behind everything else.
fn append(
    file: &mut LockedFile,
    model_data: &[u8],
    extent: Extent,
    durability: Durability,
) -> io::Result<()> {
    file.write_all_at(model_data, extent.offset())?;
    // Before the header points there: after a power cut it must not point to what is not there.
    sync(file, durability)
}

/// Makes the header point to new model data.
fn point(file: &mut LockedFile, header: &Header, durability: Durability) -> io::Result<()> {
    let (bytes, start) = (header.to_bytes(), Header::MODEL_DATA);
    let fields = usize::try_from(start).ok().and_then(|start| bytes.get(start..)?.get(..16));
    file.write_all_at(fields.unwrap_or_default(), start)?;
    sync(file, durability)
}

fn sync(file: &mut LockedFile, durability: Durability) -> io::Result<()> {
    match durability {
        Durability::Synced => file.sync(),
        Durability::Cached => Ok(()),
    }
}

/// Counts the bytes of a file that its header, its model data and its constants take, padding in
/// front of them included.
fn used(model: &Model, header: &Header) -> u64 {
    let mut parts = Vec::new();
    topology::walk(&model.graph, |_, _, node| {
        if let NodeKind::Constant(constant) = &node.kind
            && let Some(offset) = constant.data_offset
        {
            let info = constant.info().ok().flatten();
            let len = info.and_then(|info| info.byte_len().ok()).unwrap_or_default();
            parts.push((header.tensor_data_offset.saturating_add(offset), len));
        }
    });
    parts.push((header.model_data.offset(), header.model_data.len()));
    parts.sort_unstable();
    let (mut used, mut end) = (Header::LEN, Header::LEN);
    for (offset, len) in parts {
        let after = offset.saturating_add(len);
        let gap = offset.saturating_sub(end);
        let padding = if gap < 64 { gap } else { 0 };
        let fresh = after.saturating_sub(end.max(offset));
        used = used.saturating_add(padding).saturating_add(fresh);
        end = end.max(after);
    }
    used
}
