//! Archives: which format one is of, by the names in its directory.

use model_archive::{Archive, Symlinks};
use tensor_core::{ErrorKind, Profile, Source};

use crate::{ReadOptions, detect::Found, error::Result, formats};

/// Opens what may be an archive, and keeps it for the reader of its format.
///
/// Broken archives are opened as far as that is safe: what is wrong with one is for the reader of its
/// format to say.
pub(crate) fn look(source: &Source, is_zip: bool, options: ReadOptions) -> Result<Found> {
    let lenient = Archive::options().profile(Profile::Lenient).symlinks(Symlinks::Kept);
    match lenient.limits(options.limits).from_source(source.clone()) {
        Ok(archive) => {
            let format = formats::sniff_archive(&archive);
            Ok(Found { format, archive: Some(archive), refused: None })
        }
        Err(error) if error.kind() == ErrorKind::Io => Err(error.into()),
        Err(_) if !is_zip => Ok(Found::default()),
        Err(error) => {
            let format = formats::sniff_damaged(source)?;
            Ok(Found { format, archive: None, refused: Some(error) })
        }
    }
}
