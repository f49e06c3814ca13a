//! Archives: which format one is of, by the names in its directory.

use model_archive::{Archive, Profile, Symlinks};
use tensor_core::{Extent, Result, Source};

use crate::{Format, ReadOptions, detect::Found, formats};

/// Opens what may be an archive, and keeps it for the reader of its format.
pub(crate) fn look(source: &Source, options: ReadOptions) -> crate::Result<Found> {
    let lenient = Archive::options().profile(Profile::Lenient).symlinks(Symlinks::Kept);
    match lenient.limits(options.limits).from_source(source.clone()) {
        Ok(archive) => {
            Ok(Found { format: formats::sniff_archive(&archive), archive: Some(archive) })
        }
        // Damage does not hide what it is.
        Err(_) => Ok(Found { format: damaged(source)?, archive: None }),
    }
}

/// Looks for names that tell in the directory of a ZIP archive.
///
/// The archive need not be sound: damage does not hide what it is.
fn damaged(source: &Source) -> Result<Option<Format>> {
    let start = source.len().saturating_sub(TAIL);
    let tail = source.read(Extent::between(start, source.len()), "end record")?;
    let Some(end) = tail.windows(4).rposition(|window| window == b"PK\x05\x06") else {
        return Ok(starts_as_carton(source)?.then_some(Format::Carton));
    };
    let number = |at: usize| tail.get(end.saturating_add(at)..)?.first_chunk::<4>().copied();
    let [len, offset] = [12, 16].map(|at| number(at).map_or(u32::MAX, u32::from_le_bytes));
    let directory = Extent::new(offset.into(), u64::from(len).min(DIRECTORY))?;
    if let Ok(directory) = directory.within(source.len(), "directory") {
        let directory = source.read(directory, "directory")?;
        if directory.starts_with(CENTRAL_HEADER) {
            return Ok(named_format(&directory));
        }
    }
    // Where the end record does not tell, the directory is what stands before it.
    Ok(named_format(tail.get(..end).unwrap_or_default()))
}

/// Tells whether the first entry of an archive that was cut off is one of a carton.
fn starts_as_carton(source: &Source) -> Result<bool> {
    let head = source.read(Extent::first(source.len().min(64)), "local header")?;
    let Some(name) = head.strip_prefix(b"PK\x03\x04").and_then(|rest| rest.get(26..)) else {
        return Ok(false);
    };
    let starts = [&b"carton.toml"[..], b"MANIFEST", b"model/", b"misc/", b"tensor_data/"];
    Ok(starts.iter().any(|start| name.starts_with(start)))
}

/// Tells which format the names in a directory are of.
fn named_format(bytes: &[u8]) -> Option<Format> {
    let headers = bytes.windows(4).enumerate().filter(|(_, window)| *window == CENTRAL_HEADER);
    headers.map(|(start, _)| format_of(name(bytes.get(start..).unwrap_or_default()))).fold(
        None,
        |found, format| match (found, format) {
            // A package or a model may hold what is called as a part of another.
            (Some(Format::Carton), _) | (_, Some(Format::Carton)) => Some(Format::Carton),
            (Some(Format::NnPackage), _) | (_, Some(Format::NnPackage)) => Some(Format::NnPackage),
            (found, format) => found.or(format),
        },
    )
}

/// Returns the name in a header of a directory.
fn name(header: &[u8]) -> &[u8] {
    let len = header.get(28..30).and_then(<[u8]>::first_chunk::<2>).copied();
    let len = usize::from(u16::from_le_bytes(len.unwrap_or_default()));
    header.get(46..).and_then(|rest| rest.get(..len)).unwrap_or_default()
}

/// Returns the format that has a file of this name.
fn format_of(name: &[u8]) -> Option<Format> {
    if matches!(name, b"carton.toml" | b"MANIFEST") {
        return Some(Format::Carton);
    }
    let mut parts = name.rsplit(|byte| *byte == b'/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(b"MANIFEST"), Some(b"metadata"), _, None) => Some(Format::NnPackage),
        (Some(b"data.pkl" | b"bytecode.pkl"), Some(_), None, _) => Some(Format::Ptl),
        _ => None,
    }
}

// ZIP application note, section 4.3.12.
const CENTRAL_HEADER: &[u8] = b"PK\x01\x02";
/// The end record, the longest comment, and a directory of hundreds of files.
const TAIL: u64 = 128 << 10;
/// More of a directory is not searched.
const DIRECTORY: u64 = 16 << 20;
