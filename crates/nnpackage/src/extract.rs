//! Unpacking packages.

use std::path::Path;

use crate::{
    Reader, Result,
    read::body::Body,
    write::{NewEntry, Plan, Use},
};

/// Writes every file of a package into a new folder, as onert needs it: without the folder that it
/// may be in inside its archive.
///
/// The folder appears once everything is in it; what was written before a failure is removed.
/// Nothing is written elsewhere. Sizes and checksums of the archive are compared.
///
/// # Errors
///
/// [`Error::Archive`](crate::Error::Archive) where the folder is there already, a file cannot be
/// made, or an entry is broken; [`Error::File`](crate::Error::File) where a file of a folder leads out
/// of it; [`Error::Core`](crate::Error::Core) where all entries together are over the limit, or the
/// disk has no room for them.
pub fn extract(reader: &Reader, folder: impl AsRef<Path>) -> Result<()> {
    Ok(plan(reader)?.start_folder(folder.as_ref())?.commit()?)
}

/// Like [`extract`], but what would be written is thrown away.
///
/// # Errors
///
/// As for [`extract`], but what is at the place of the folder is not looked at.
pub fn try_extract(reader: &Reader, folder: impl AsRef<Path>) -> Result<()> {
    plan(reader)?.fill(folder.as_ref(), None)
}

fn plan(reader: &Reader) -> Result<Plan> {
    if let Some(archive) = reader.archive() {
        archive.check_total()?;
    }
    let file = |path: &str| {
        let (path, body) = (path.to_owned(), Body::of(reader.storage(), path));
        NewEntry { path, body, used: Use::Whole }
    };
    let files = reader.files()?.map(|found| file(found.path())).collect();
    let folders = reader.storage().folders().into_iter().map(str::to_owned).collect();
    Ok(Plan { files, folders, ..Plan::default() })
}
