//! Telling packages from other files.

use model_archive::{Archive, Symlinks};
use tensor_core::{ErrorKind, Profile, Source};

use crate::{Content, Error, Result, read::storage::root};

/// Tells whether bytes are a package: an archive with `metadata/MANIFEST` at its root or in a folder
/// there.
///
/// The first bytes and the directory of the archive are read, and nothing else of it.
///
/// # Errors
///
/// Where the bytes cannot be read.
pub fn sniff(source: &Source) -> Result<bool> {
    if Content::of_source(source)? != Content::Zip {
        return Ok(false);
    }
    let options = Archive::options().symlinks(Symlinks::Kept).profile(Profile::Lenient);
    match options.from_source(source.clone()).map_err(Error::from) {
        Ok(archive) => Ok(sniff_archive(&archive)),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(_) => Ok(false),
    }
}

/// Tells whether an archive is a package, or several.
#[must_use]
pub fn sniff_archive(archive: &Archive) -> bool {
    matches!(root(archive), Ok(_) | Err(Error::SeveralPackages { .. }))
}
