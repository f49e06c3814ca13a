//! Model files rewritten: without dead bytes, and without what their author may not want to hand
//! out.

use std::{
    io::{self, Write},
    path::Path,
};

use tensor_core::{Extent, Source, output::Edited};

use super::check_unchanged;
use crate::{Error, Reader, Result, Strip, WriteOptions, file::FileReader};

impl Strip {
    /// Proves that a file may have what is taken out.
    ///
    /// # Errors
    ///
    /// [`Error::NotEditable`] for debug records of a FlatBuffer file, which has none.
    pub fn check(self, reader: &Reader) -> Result<()> {
        reader.body().check_strip(self)
    }
}

/// What taking something out has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stripped {
    /// What has become of the file.
    pub edited: Edited,
    /// How many records were taken out, or files of source of a FlatBuffer.
    pub removed: u64,
}

/// Rewrites a file without the bytes that edits have left behind, and replaces it atomically.
///
/// Records of a ZIP file keep their order and stored bytes, and get the layout that PyTorch gives
/// them. Parts of a FlatBuffer keep their order, and storages their alignment to 32 bytes.
///
/// # Errors
///
/// [`Error::NotEditable`] for a ZIP file with colliding names, and for a FlatBuffer with parts that
/// overlap or are not known; [`tensor_core::Error::Locked`]. The file is as it was.
pub fn compact(path: impl AsRef<Path>, options: WriteOptions) -> Result<Edited> {
    Ok(replace(path.as_ref(), None, options)?.edited)
}

/// Like [`compact`], but leaves out what is said.
///
/// # Errors
///
/// As for [`compact`]; [`Error::NotEditable`] for debug records of a FlatBuffer file, which has
/// none.
pub fn strip(path: impl AsRef<Path>, what: Strip, options: WriteOptions) -> Result<Stripped> {
    replace(path.as_ref(), Some(what), options)
}

fn replace(path: &Path, what: Option<Strip>, options: WriteOptions) -> Result<Stripped> {
    let file = options.lock(path)?;
    let reader = Reader::from_source(file.source()?)?;
    what.map_or(Ok(()), |what| what.check(&reader))?;
    let mut new = options.output.create(path)?;
    let removed = rewrite(&reader, |record| !what.is_some_and(|w| w.removes(record)), &mut new)?;
    let (before, after) = (reader.source().len(), new.written());
    check_unchanged(&file, before)?;
    new.commit(options.output.existing)?;
    file.unlock();
    Ok(Stripped { edited: Edited::Replaced { before, after }, removed })
}

/// Writes all of a model file that something leads to; returns how many records it leaves out.
///
/// Of a ZIP file it writes the records that `keep` names, in the layout of PyTorch. A FlatBuffer file
/// has none; of its files of source and its extra files it writes those that `keep` names as it does
/// those of a ZIP file: `code/__torch__.py`, `extra/labels.txt`.
///
/// # Errors
///
/// As for [`compact`]; [`Error::Write`] where the sink fails.
pub fn rewrite<W: Write>(reader: &Reader, keep: impl Fn(&str) -> bool, sink: W) -> Result<u64> {
    noted(sink, |sink| reader.body().rewrite(reader.limits(), &keep, sink))
}

/// Writes all of a file.
pub(super) fn copy<W: Write>(source: &Source, sink: W) -> Result<()> {
    noted(sink, |sink| {
        let mut stream = source.stream(Extent::first(source.len()), "edited file")?;
        io::copy(&mut stream, sink).map(drop).map_err(FileReader::error)
    })
}

pub(crate) fn noted<W: Write, T>(
    sink: W,
    write: impl FnOnce(&mut Sink<W>) -> Result<T>,
) -> Result<T> {
    let mut sink = Sink { sink, failed: None };
    let written = write(&mut sink);
    match sink.failed {
        Some(source) => Err(Error::Write { source }),
        None => written,
    }
}

/// Tells failures of the sink from those of what is read.
pub(crate) struct Sink<W> {
    sink: W,
    failed: Option<io::Error>,
}

impl<W> Sink<W> {
    fn noted<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                self.failed = Some(error);
            }
            kind.into()
        })
    }
}

impl<W: Write> Write for Sink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.sink.flush();
        self.noted(flushed)
    }
}
