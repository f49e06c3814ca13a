//! Telling cartons from other files.

use model_archive::{Archive, Symlinks};
use tensor_core::{ErrorKind, Extent, Profile, Source};

use crate::{
    Error, Result,
    paths::{CARTON_TOML, MANIFEST, MISC, MODEL, TENSOR_DATA},
};

/// Tells whether bytes are a carton: an archive with `MANIFEST` or `carton.toml`. One that was cut
/// off is told by its first entry.
///
/// The directory of the archive is read, and nothing else of it.
///
/// # Errors
///
/// Where the bytes cannot be read.
pub fn sniff(source: &Source) -> Result<bool> {
    let head = source.read(Extent::first(source.len().min(HEAD)), "local header")?;
    let Some(header) = head.strip_prefix(LOCAL_HEADER) else { return Ok(false) };
    let options = Archive::options().symlinks(Symlinks::Kept).profile(Profile::Lenient);
    match options.from_source(source.clone()).map_err(Error::from) {
        Ok(archive) => Ok(sniff_archive(&archive)),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(_) => {
            let name = header.get(NAME..).unwrap_or_default();
            let starts = [CARTON_TOML, MANIFEST, MODEL, MISC, TENSOR_DATA];
            Ok(starts.iter().any(|start| name.starts_with(start.as_bytes())))
        }
    }
}

/// Tells whether an archive is a carton.
#[must_use]
pub fn sniff_archive(archive: &Archive) -> bool {
    // One of the two is enough: an archive that has lost the other is a broken carton.
    [CARTON_TOML, MANIFEST].iter().any(|path| archive.entry(path).is_some())
}

// ZIP application note, section 4.3.7.
const LOCAL_HEADER: &[u8] = b"PK\x03\x04";
/// Where the name starts behind the signature, in bytes.
const NAME: usize = 26;
/// As much as the longest of the names needs.
const HEAD: u64 = 64;
