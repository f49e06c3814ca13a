//! What an interrupted edit has left.

use std::{error::Error as StdError, io, iter, path::Path};

use model_archive::Archive;
use tensor_core::{ErrorKind, Extent, Limits, Source, Verify, output::Edited};

use super::check_unchanged;
use crate::{Error, Result, WriteOptions, flat, read, zip::Zip};

/// Cuts off what an interrupted edit has appended to a ZIP file. A file that is whole stays as it is,
/// as does a FlatBuffer, to which nothing is appended.
///
/// # Errors
///
/// [`Error::NotEditable`] where there is no whole file inside; [`tensor_core::Error::Locked`]; as for
/// [`Reader::open`](crate::Reader::open) where the file may be whole, but cannot be read, is over a
/// limit or is not supported: nothing is cut off.
pub fn recover(path: impl AsRef<Path>, options: WriteOptions) -> Result<Edited> {
    let mut file = options.lock(path.as_ref())?;
    let edited = recoverable(&file.source()?)?;
    if let Edited::Truncated { before, after } = edited {
        check_unchanged(&file, before)?;
        let truncated = file.set_len(after).and_then(|()| file.sync());
        truncated.map_err(|source| file.failed("truncating", source))?;
    }
    file.unlock();
    Ok(edited)
}

/// Returns what [`recover`] does to a file.
///
/// # Errors
///
/// As for [`recover`].
pub fn recoverable(source: &Source) -> Result<Edited> {
    let (before, start) = (source.len(), Extent::first(source.len().min(8)));
    if flat::is_flat(&source.read(start, "first bytes")?) {
        return Ok(Edited::Unchanged);
    }
    let mut failed = None;
    let whole = Archive::recoverable_len(source, |beginning| {
        is_whole(beginning).unwrap_or_else(|error| {
            // The search says itself where it ends for want of reading; else it is stopped.
            let stops = !is_over_budget(&error);
            failed = Some(error);
            stops
        })
    });
    match (whole, failed) {
        (Err(model_archive::Error::NotWhole { reason }), _) => Err(Error::NotEditable { reason }),
        (_, Some(error)) => Err(error),
        (Err(error), None) => Err(error.into()),
        (Ok(after), None) if after == before => Ok(Edited::Unchanged),
        (Ok(after), None) => Ok(Edited::Truncated { before, after }),
    }
}

/// Tells whether this is a model file from its first byte on, not the end of an archive inside it.
/// What cannot be read, or is not to be, may be one.
fn is_whole(source: &Source) -> Result<bool> {
    let archive = read::archive(source, &Limits::default());
    match archive.and_then(|archive| Zip::open(archive, Verify::Never)) {
        Ok(zip) => Ok(zip.check_offsets().is_ok()),
        Err(error) if error.kind() == ErrorKind::Malformed => Ok(false),
        Err(error) => Err(error),
    }
}

/// Tells whether more was to be read than [`Archive::recoverable_len`] allows.
fn is_over_budget(error: &Error) -> bool {
    iter::successors(Some(error as &dyn StdError), |error| (*error).source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::QuotaExceeded)
}
