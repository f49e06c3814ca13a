//! What an interrupted edit has left.

use std::path::Path;

use model_archive::last_whole;
use tensor_core::{Extent, Limits, Source, Verify, output::LockedFile};

use crate::{Error, Result, flat, read, zip::Zip};

/// Cuts off what an interrupted edit has appended to a ZIP file; returns how many bytes. A file that
/// is whole stays as it is, as does a FlatBuffer, in which an edit takes effect with its last write.
///
/// # Errors
///
/// [`Error::NotEditable`] where there is no whole file inside; [`tensor_core::Error::Locked`].
pub fn recover(path: impl AsRef<Path>) -> Result<u64> {
    let mut file = LockedFile::open(path)?;
    let source = file.source()?;
    let cut = recoverable(&source)?;
    if cut > 0 {
        let whole = source.len().saturating_sub(cut);
        file.set_len(whole).map_err(|source| file.failed("truncating", source))?;
        file.sync().map_err(|source| file.failed("synchronising", source))?;
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
    match last_whole(source, is_whole) {
        Ok(whole) => Ok(source.len().saturating_sub(whole)),
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
