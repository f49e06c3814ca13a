//! Model files written anew: without dead bytes, and without what their author may not want to hand
//! out.

use std::{io::Write, path::Path};

use tensor_core::output::{Durability, Existing, NewFile};

use crate::{
    ContainerKind, Error, Reader, Result, edit::Locked, flat::rewrite as flat_rewrite, read::Body,
    zip::edit as zip_edit,
};

/// What is taken out of a model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strip {
    /// The records that lead from instructions back to source: they hold lines of the author's
    /// Python and paths of the author's machine. Every runtime works without.
    DebugRecords,
    /// Those, and the source of the model's classes. The lite interpreter works without, the full
    /// runtime does not.
    Code,
}

impl Strip {
    /// Proves that a file may have what is taken out.
    ///
    /// # Errors
    ///
    /// [`Error::NotEditable`] for debug records of a FlatBuffer file, which has none: its code refers
    /// to source by numbers that nothing explains.
    pub fn check(self, reader: &Reader) -> Result<()> {
        if self == Self::DebugRecords && reader.container() == ContainerKind::FlatBuffer {
            let reason = "a FlatBuffer has no debug records, only source";
            return Err(Error::NotEditable { reason });
        }
        Ok(())
    }

    /// Tells whether a record goes away, by its name without the root folder.
    #[must_use]
    pub fn takes(self, record: &str) -> bool {
        let record = record.to_ascii_lowercase();
        let is_debug = record.ends_with(".debug_pkl")
            || record == "mobile_debug_handles.pkl"
            || record == "callstack_debug_map.pkl";
        is_debug || self == Self::Code && record.starts_with("code/")
    }
}

/// What rewriting a file has done to its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewritten {
    /// The length before, in bytes.
    pub before: u64,
    /// The length afterwards, in bytes.
    pub after: u64,
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
/// overlap or are not known; [`Error::Locked`]. The file is as it was.
pub fn compact(path: impl AsRef<Path>) -> Result<Rewritten> {
    replace(path.as_ref(), None)
}

/// Does as [`compact`], and leaves records out.
///
/// # Errors
///
/// As for [`compact`] and [`Strip::check`].
pub fn strip(path: impl AsRef<Path>, what: Strip) -> Result<Rewritten> {
    replace(path.as_ref(), Some(what))
}

/// Does as [`compact`], or as [`strip`] with `what`, but writes another file; editors are kept out
/// of this one meanwhile.
///
/// # Errors
///
/// As for [`compact`] and [`strip`]; [`Error::Write`] where the sink fails.
pub fn rewrite_file<W: Write>(path: impl AsRef<Path>, what: Option<Strip>, sink: W) -> Result<u64> {
    let file = Locked::shared(path.as_ref())?;
    let reader = Reader::from_source(file.source()?)?;
    let removed = rewrite_as(&reader, what, sink)?;
    file.unlock();
    Ok(removed)
}

fn replace(path: &Path, what: Option<Strip>) -> Result<Rewritten> {
    let file = Locked::open(path)?;
    let reader = Reader::from_source(file.source()?)?;
    let mut new = NewFile::create(path, Durability::Synced)?;
    let removed = rewrite_as(&reader, what, &mut new)?;
    let (before, after) = (reader.source().len(), new.written());
    file.check_in_place()?;
    new.commit(Existing::Replace)?;
    file.unlock();
    Ok(Rewritten { before, after, removed })
}

fn rewrite_as<W: Write>(reader: &Reader, what: Option<Strip>, sink: W) -> Result<u64> {
    what.map_or(Ok(()), |what| what.check(reader))?;
    rewrite(reader, |record| !what.is_some_and(|what| what.takes(record)), sink)
}

/// Writes all of a model file that something leads to; returns how many records it leaves out.
///
/// Of a ZIP file it writes the records that `keep` names, in the layout of PyTorch. A FlatBuffer file
/// has none; of its files of source it writes those that `keep` names by [`Reader::sources`].
///
/// # Errors
///
/// As for [`compact`]; [`Error::Write`] where the sink fails.
pub fn rewrite<W: Write>(reader: &Reader, keep: impl Fn(&str) -> bool, sink: W) -> Result<u64> {
    match reader.body() {
        Body::Zip(container) => zip_edit::rewrite(container, keep, sink),
        Body::Flat(flat) => flat_rewrite::rewrite(flat, reader.limits(), keep, sink),
    }
}
