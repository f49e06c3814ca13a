//! Whole files rewritten or cut back.

use std::{io::Write, path::Path};

use unicode_normalization::is_nfc;

use tensor_core::{
    ErrorKind, Source,
    output::{Durability, Edited, Existing, LockedFile, NewFile},
};

use crate::{
    Encoding, Form, Generation, Reader, Version, WriteOptions, Writer,
    container::last_complete,
    error::{Error, Result},
    v2::{CANONICAL, FLOOR},
    write::copy_all,
};

/// Rewrites a file without the bytes that belong to no object, and replaces it atomically.
///
/// Blobs keep their order, their stored bytes, and the objects that share them. Where `path` is a
/// symbolic link, the file behind it is replaced; other hard links of that file keep the old
/// content.
///
/// # Errors
///
/// As for [`Editor::open`](crate::Editor::open); [`Error::Component`] where a blob does not lie
/// where it may or, unless [`WriteOptions::verify`] says otherwise, does not match its digest;
/// [`Error::Faulty`]. The file is as it was.
pub fn compact(path: impl AsRef<Path>, options: WriteOptions) -> Result<Edited> {
    let path = path.as_ref();
    let file = LockedFile::open_within(path, options.output.wait)?;
    let reader = Reader::from_source(file.source()?)?;
    let (mut new, edited) = compacted(options.output.create(path)?, &reader, options)?;
    file.check_in_place()?;
    new.commit(Existing::Replace)?;
    file.unlock();
    Ok(edited)
}

/// Like [`compact`], but gives the new file up once it is whole, and leaves the old one.
///
/// # Errors
///
/// As for [`compact`].
pub fn compact_dry_run(path: impl AsRef<Path>, options: WriteOptions) -> Result<Edited> {
    let path = path.as_ref();
    let reader = Reader::from_source(options.output.check(path)?)?;
    compacted(options.output.dry_run(path)?, &reader, options).map(|(_, edited)| edited)
}

/// Writes a file without the bytes that belong to no object to any sink, which is returned.
///
/// # Errors
///
/// As for [`compact`]; [`Error::Write`] where the sink fails. What the result would be found to be
/// wrong with is for the caller to look for.
pub fn rewrite<W: Write>(reader: &Reader, sink: W, options: WriteOptions) -> Result<W> {
    options.check()?;
    let mut options = edit_options(reader, options)?;
    if options.version == Version::V2 && is_plain(reader)? {
        options = options.form(Form::Canonical);
    }
    options.check()?;
    let mut writer = Writer::start(sink, options, |_, _| Ok(()));
    copy_all(reader, &mut writer)?;
    writer.finish()
}

/// Writes a file that is to take the place of another.
fn compacted(new: NewFile, reader: &Reader, options: WriteOptions) -> Result<(NewFile, Edited)> {
    let mut new = rewrite(reader, new, options)?;
    options.refuse(Reader::from_source(new.source()?)?.lint().new_since(&reader.lint()))?;
    let edited = Edited::Replaced { before: reader.source().len(), after: new.written() };
    Ok((new, edited))
}

/// Returns the version as which a file can be edited.
pub(super) fn editable(reader: &Reader) -> Result<Version> {
    match reader.generation() {
        Generation::V1_1 => Ok(Version::V1_1),
        Generation::V1_2 => Ok(Version::V1_2),
        Generation::V2 if reader.manifest().is_absent() => {
            let reason = "file has no manifest, expected one that can be written again";
            Err(Error::Given { reason: reason.to_owned() })
        }
        Generation::V2 => Ok(Version::V2),
        found => Err(Error::NotEditable { found }),
    }
}

/// Returns the options with which a file is edited: in generation 2, blobs go on the grid of those that
/// are there.
pub(super) fn edit_options(reader: &Reader, options: WriteOptions) -> Result<WriteOptions> {
    let options = options.version(editable(reader)?);
    if options.version != Version::V2 {
        return Ok(options);
    }
    let mut grid = reader.manifest().offset();
    for tensor in reader.tensors() {
        for (_, part) in tensor.object()?.components.iter().filter(|(_, part)| part.shard.is_none())
        {
            grid |= part.offset;
        }
    }
    let grid = 1_u64.checked_shl(grid.trailing_zeros()).unwrap_or(CANONICAL);
    let options = options.form(Form::Free).or_alignment(grid.clamp(FLOOR, CANONICAL));
    options.check()?;
    Ok(options)
}

/// Tells whether a file of generation 2 is stored as the canonical form asks, but for the order of its
/// blobs and what lies between them.
fn is_plain(reader: &Reader) -> Result<bool> {
    let manifest = reader.manifest();
    if manifest.shards().len() > 0 || !manifest.offset().is_multiple_of(CANONICAL) {
        return Ok(false);
    }
    for tensor in reader.tensors() {
        let object = tensor.object()?;
        let plain = object.components.iter().all(|(role, part)| {
            let has_xxh3 = part.digest.as_deref().is_some_and(|digest| digest.starts_with("xxh3:"));
            let on_grid = part.offset.is_multiple_of(CANONICAL);
            part.encoding == Encoding::Raw && has_xxh3 && on_grid && is_nfc(role.as_str())
        });
        // What the canonical form leaves out, and an empty map that its writer does not write.
        let others = object.components.iter().map(|(_, part)| &part.other).chain([&object.other]);
        let has_more = others.into_iter().any(|other| !other.is_empty());
        let is_empty = tensor.attributes()?.is_some_and(|attributes| attributes.is_empty());
        if !plain
            || has_more
            || is_empty
            || !is_nfc(tensor.name())
            || object.components.iter().any(|(_, part)| part.elements().is_none())
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Cuts a file whose end is missing back to the last complete file inside it: what an edit that
/// was interrupted leaves.
///
/// # Errors
///
/// As for [`recoverable`]; [`tensor_core::Error::Locked`]; [`tensor_core::Error::Replaced`] where
/// another program has written to the file meanwhile.
pub fn recover(path: impl AsRef<Path>, options: WriteOptions) -> Result<Edited> {
    let mut file = LockedFile::open_within(path, options.output.wait)?;
    let edited = recoverable(&file.source()?)?;
    if let Edited::Truncated { before, after } = edited {
        cut(&mut file, before, after, options.output.durability)?;
    }
    file.unlock();
    Ok(edited)
}

/// Says what [`recover`] would do.
///
/// # Errors
///
/// [`Error::NothingToRecover`] where there is no complete file; as for [`Reader::open`] where the
/// file is not torn, but over a limit or of another generation.
pub fn recoverable(source: &Source) -> Result<Edited> {
    match Reader::from_source(source.clone()) {
        Ok(_) => Ok(Edited::Unchanged),
        Err(error) if error.kind() == ErrorKind::Malformed => {
            let (after, ..) = last_complete(source, &Reader::options().into_limits())?;
            Ok(Edited::Truncated { before: source.len(), after })
        }
        // A whole file may be over a limit, or of another generation: nothing of it is cut off.
        Err(error) => Err(error),
    }
}

/// Cuts a file off that was `before` bytes long; what another program has written since stays.
fn cut(file: &mut LockedFile, before: u64, after: u64, durability: Durability) -> Result<()> {
    let now = file.byte_len().map_err(|source| file.failed("reading metadata", source))?;
    if now != before {
        return Err(tensor_core::Error::Replaced { path: file.path().to_owned() }.into());
    }
    let truncated = file.set_len(after).and_then(|()| match durability {
        Durability::Synced => file.sync(),
        Durability::Cached => Ok(()),
    });
    truncated.map_err(|source| file.failed("truncating", source).into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_others_write_meanwhile_is_not_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.zt");
        let whole = Writer::new(Vec::new()).finish().unwrap();
        fs::write(&path, [&whole[..], b"torn"].concat()).unwrap();
        let mut file = LockedFile::open(&path).unwrap();
        let edited = recoverable(&file.source().unwrap()).unwrap();
        let (before, after) = (whole.len() as u64 + 4, whole.len() as u64);
        assert_eq!(edited, Edited::Truncated { before, after });
        let longer = [&whole[..], b"torn", &whole].concat();
        fs::write(&path, &longer).unwrap();
        let error = cut(&mut file, before, after, Durability::Cached).unwrap_err();
        assert!(matches!(error, Error::Core(tensor_core::Error::Replaced { .. })), "{error}");
        assert_eq!(fs::read(&path).unwrap(), longer);
        cut(&mut file, longer.len() as u64, after, Durability::Cached).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
}
