//! Archives: which format one is of, by the names in its directory.

use model_archive::{Archive, Symlinks};
use tensor_core::{ErrorKind, Profile, Source};

use crate::{Format, ReadOptions, detect::Found, error::Result, weights};

/// Opens what may be an archive, and keeps it for the reader of its format.
///
/// Broken archives are opened as far as that is safe: what is wrong with one is for the reader of its
/// format to say.
pub(crate) fn look(source: &Source, is_zip: bool, options: ReadOptions) -> Result<Found> {
    let lenient = Archive::options().profile(Profile::Lenient).symlinks(Symlinks::Kept);
    match lenient.limits(options.limits.unwrap_or_default()).from_source(source.clone()) {
        Ok(archive) => {
            let format = sniff(&archive);
            Ok(Found { format, archive: Some(archive), refused: None })
        }
        Err(error) if error.kind() == ErrorKind::Io => Err(error.into()),
        // One that has lost its start still has a directory.
        Err(model_archive::Error::Directory { has_end: false, .. }) if !is_zip => {
            Ok(Found::default())
        }
        Err(error) => {
            let format = sniff_damaged(source)?;
            Ok(Found { format, archive: None, refused: Some(error) })
        }
    }
}

/// Tells which format an archive is. A carton may hold what is called as a part of a package, and a
/// package what is called as one of a model.
fn sniff(archive: &Archive) -> Option<Format> {
    #[cfg(feature = "carton")]
    if carton_format::sniff_archive(archive) {
        return Some(Format::Carton);
    }
    #[cfg(feature = "nnpackage")]
    if nnpackage::sniff_archive(archive) {
        return Some(Format::NnPackage);
    }
    #[cfg(feature = "ptl")]
    if ptl_spec::sniff_archive(archive) {
        return Some(Format::Ptl);
    }
    weights::sniff_archive(archive).then_some(Format::Npz)
}

/// Tells which format an archive is that cannot be opened.
fn sniff_damaged(source: &Source) -> Result<Option<Format>> {
    #[cfg(feature = "carton")]
    if carton_format::sniff(source)? {
        return Ok(Some(Format::Carton));
    }
    #[cfg(feature = "nnpackage")]
    if nnpackage::sniff(source)? {
        return Ok(Some(Format::NnPackage));
    }
    #[cfg(feature = "ptl")]
    if ptl_spec::sniff(source)? {
        return Ok(Some(Format::Ptl));
    }
    Ok(None)
}
