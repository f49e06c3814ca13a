//! What an interrupted edit has left.

use std::path::Path;

use model_archive::last_whole;
use tensor_core::{Extent, Limits, Source, Verify, output::Edited};

use crate::{Error, Result, WriteOptions, flat, read, zip::Zip};

/// Cuts off what an interrupted edit has appended to a ZIP file. A file that is whole stays as it is,
/// as does a FlatBuffer, to which nothing is appended.
///
/// # Errors
///
/// [`Error::NotEditable`] where there is no whole file inside; [`tensor_core::Error::Locked`].
pub fn recover(path: impl AsRef<Path>, options: WriteOptions) -> Result<Edited> {
    let mut file = options.lock(path.as_ref())?;
    let edited = recoverable(&file.source()?)?;
    if let Edited::Truncated { after, .. } = edited {
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
    match last_whole(source, is_whole) {
        Ok(after) if after == before => Ok(Edited::Unchanged),
        Ok(after) => Ok(Edited::Truncated { before, after }),
        Err(model_archive::Error::NotWhole { reason }) => Err(Error::NotEditable { reason }),
        Err(error) => Err(error.into()),
    }
}

/// Tells whether this is a model file from its first byte on, not the end of an archive inside it.
fn is_whole(source: &Source) -> bool {
    let archive = read::archive(source, &Limits::default());
    let zip = archive.and_then(|archive| Zip::open(archive, Verify::Never));
    zip.is_ok_and(|zip| zip.check_offsets().is_ok())
}
