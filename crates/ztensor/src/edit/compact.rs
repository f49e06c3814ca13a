//! Whole files rewritten or cut back.

use std::path::Path;

use tensor_core::{
    ErrorKind, Finding, Severity, Verify,
    output::{Edited, Existing, LockedFile},
};

use crate::{
    Generation, Reader, Version, WriteOptions, Writer,
    container::last_complete,
    error::{Error, Result},
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
    options.check()?;
    let path = path.as_ref();
    let file = LockedFile::open_within(path, options.output.wait)?;
    let reader = Reader::from_source(file.source()?)?;
    let options = match reader.generation() {
        Generation::V1_1 => options.version(Version::V1_1),
        Generation::V1_2 => options.version(Version::V1_2),
        found => return Err(Error::NotEditable { found }),
    };
    let new = options.output.create(path)?;
    let mut writer = Writer::start(new, options, |_, _| Ok(()));
    copy_all(&reader, &mut writer)?;
    let mut new = writer.finish()?;
    if options.verify != Verify::Never {
        let faults = Reader::from_source(new.source()?)?.lint().new_since(&reader.lint());
        let fault = faults.into_iter().find(|fault| fault.severity == Severity::Error);
        if let Some(Finding { message, .. }) = fault {
            return Err(Error::Faulty { message });
        }
    }
    let (before, after) = (reader.source().len(), new.written());
    file.check_in_place()?;
    new.commit(Existing::Replace)?;
    file.unlock();
    Ok(Edited::Replaced { before, after })
}

/// Cuts a file whose end is missing back to the last complete file inside it: what an edit that
/// was interrupted leaves.
///
/// # Errors
///
/// [`Error::NothingToRecover`] where there is none; [`tensor_core::Error::Locked`]; as for
/// [`Reader::open`] where the file is not torn, but over a limit or of another generation.
pub fn recover(path: impl AsRef<Path>) -> Result<Edited> {
    let mut file = LockedFile::open(path)?;
    let source = file.source()?;
    let len = match Reader::from_source(source.clone()) {
        Ok(_) => {
            file.unlock();
            return Ok(Edited::Unchanged);
        }
        Err(error) if error.kind() == ErrorKind::Malformed => {
            last_complete(&source, &Reader::options().into_limits())?.0
        }
        // A whole file may be over a limit, or of another generation: nothing of it is cut off.
        Err(error) => return Err(error),
    };
    let now = file.byte_len().map_err(|source| file.failed("reading metadata", source))?;
    if now != source.len() {
        // Another program has written to it since: what that wrote is not cut off.
        return Err(tensor_core::Error::Replaced { path: file.path().to_owned() }.into());
    }
    let truncated = file.set_len(len).and_then(|()| file.sync());
    truncated.map_err(|source| file.failed("truncating", source))?;
    file.unlock();
    Ok(Edited::Truncated { before: source.len(), after: len })
}
