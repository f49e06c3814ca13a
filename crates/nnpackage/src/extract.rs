//! Unpacking packages.

use std::{
    io::{BufRead as _, Write as _},
    path::Path,
};

use model_archive::NewFolder;
use tensor_core::output::check_space;

use crate::{Error, File, Reader, Result, read::storage::fault};

/// Writes every file of a package into a new folder, as onert needs it: without the folder that it
/// may be in inside its archive.
///
/// The folder appears once everything is in it; what was written before a failure is removed.
/// Nothing is written elsewhere. Sizes and checksums of the archive are compared.
///
/// # Errors
///
/// [`Error::Archive`] where the folder is there already, a file cannot be made, or an entry is
/// broken; [`Error::File`] where a file of a folder leads out of it; [`Error::Core`] where all
/// entries together are over the limit, or the disk has no room for them.
pub fn extract(reader: &Reader, folder: impl AsRef<Path>) -> Result<()> {
    let place = folder.as_ref();
    if let Some(archive) = reader.archive() {
        archive.check_total()?;
    }
    let folder = NewFolder::create(place)?;
    let mut needed = 0_u64;
    for file in reader.files()? {
        needed = needed.saturating_add(file.len()?);
    }
    check_space(place, needed)?;
    for path in reader.storage().folders() {
        folder.folder(path)?;
    }
    for file in reader.files()? {
        write(&folder, file)?;
    }
    Ok(folder.commit()?)
}

fn write(folder: &NewFolder, file: File<'_>) -> Result<()> {
    let mut content = file.reader()?;
    let mut out = folder.file(file.path())?;
    let mut copied = 0_u64;
    loop {
        let ready = content.fill_buf().map_err(|source| fault(source, copied))?;
        if ready.is_empty() {
            return Ok(());
        }
        out.write_all(ready).map_err(|source| {
            let path = file.path().to_owned();
            Error::Write { path, source }
        })?;
        let written = ready.len();
        copied = copied.saturating_add(written as u64);
        content.consume(written);
    }
}
