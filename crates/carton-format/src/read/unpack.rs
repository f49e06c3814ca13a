//! Unpacking: the files of a carton in a folder, which opens as the carton does.

use std::{
    io::{BufRead as _, Write as _},
    num::NonZeroUsize,
    path::Path,
};

use model_archive::NewFolder;
use tensor_core::{output::check_space, parallel};

use crate::{
    Error, File, FileReader, Place, Reader, Result,
    paths::{LINKS, MANIFEST, relative},
};

/// How a carton is unpacked.
#[derive(Clone, Copy, Debug)]
pub struct UnpackOptions {
    threads: NonZeroUsize,
    linked: Linked,
    is_dry_run: bool,
}

/// What becomes of files that are only linked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linked {
    /// They are left out; `LINKS` is unpacked, so that the folder is a carton with links.
    #[default]
    LeaveOut,
    /// They are fetched, if the reader was given something that fetches.
    Fetch,
}

impl UnpackOptions {
    /// Sets how many threads decode, hash and write; by default as many as the system offers.
    #[must_use]
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets what becomes of files that are only linked; they are left out by default.
    #[must_use]
    pub const fn linked(mut self, linked: Linked) -> Self {
        self.linked = linked;
        self
    }

    /// Makes this a dry run: everything that is here is read and compared, and the place is looked
    /// at, but nothing is fetched, and nothing stays there.
    #[must_use]
    pub const fn dry_run(mut self) -> Self {
        self.is_dry_run = true;
        self
    }
}

impl Default for UnpackOptions {
    fn default() -> Self {
        Self { threads: parallel::available(), linked: Linked::default(), is_dry_run: false }
    }
}

/// Writes the files of a carton into a folder, which must not be there before, or be empty.
///
/// The folder appears once everything is in it. Every digest is compared; what `MANIFEST` does not
/// list is left out. `progress` is told how many bytes of content were written each time some are.
///
/// # Errors
///
/// [`Error::Digest`]; [`Error::MissingFile`]; [`Error::Archive`] where something cannot be decoded
/// or made, or the carton holds more than [`Limits::expansion`](tensor_core::Limits::expansion)
/// allows; as for [`File::reader`].
pub fn unpack(
    reader: &Reader,
    folder: impl AsRef<Path>,
    options: &UnpackOptions,
    progress: impl Fn(u64) + Sync,
) -> Result<()> {
    if let Some(archive) = reader.archive() {
        archive.check_total()?;
    }
    let (mut files, mut links) = (Vec::new(), Vec::new());
    let mut is_linked = false;
    for file in reader.files() {
        match file.place() {
            Place::Linked if options.linked == Linked::LeaveOut => is_linked = true,
            Place::Linked if options.is_dry_run => {}
            Place::Missing => {
                return Err(Error::MissingFile { path: file.path().to_owned() });
            }
            // A link to a file that is not listed would lead to nothing.
            Place::Here if file.entry().is_some() && file.listed_target()?.is_some() => {
                links.push(file);
            }
            Place::Here | Place::Linked => files.push(file),
        }
    }
    let lens = files.iter().filter_map(|file| file.len().ok());
    check_space(&folder, lens.fold(0, u64::saturating_add))?;
    // Of a dry run, too: it goes away with nothing in it.
    let folder = NewFolder::create(folder)?;
    let target = (!options.is_dry_run).then_some(&folder);
    let results = parallel::map(&files, options.threads, |&file| write(target, file, &progress));
    results.into_iter().collect::<Result<()>>()?;
    // Links come last, so that nothing can be written through one.
    for file in links {
        write_link(target, file)?;
    }
    if target.is_none() {
        return Ok(());
    }
    put(&folder, MANIFEST, reader.manifest().as_str().as_bytes())?;
    if let Some(found) = reader.links().filter(|_| is_linked) {
        put(&folder, LINKS, &found.to_bytes())?;
    }
    Ok(folder.commit()?)
}

/// Reads a file to its end, and writes it where that is not only tried.
fn write(folder: Option<&NewFolder>, file: File<'_>, progress: &impl Fn(u64)) -> Result<()> {
    let mut content = file.checked_reader()?;
    NewFolder::check(file.path())?;
    let mut out = folder.map(|folder| folder.file(file.path())).transpose()?;
    loop {
        let ready = content.fill_buf().map_err(FileReader::fault)?;
        if ready.is_empty() {
            return Ok(());
        }
        if let Some((folder, out)) = folder.zip(out.as_mut()) {
            out.write_all(ready).map_err(|source| folder.failed(file.path(), source))?;
        }
        let written = ready.len();
        content.consume(written);
        progress(written as u64);
    }
}

/// Makes a link, whose target is a file that was written, with the digest that the link has.
fn write_link(folder: Option<&NewFolder>, file: File<'_>) -> Result<()> {
    file.verify()?;
    NewFolder::check(file.path())?;
    let Some(folder) = folder else { return Ok(()) };
    // Rewritten: a system goes through the folders that a text names, and they may not be there.
    let target = file.target()?.map(|target| relative(file.path(), &target));
    Ok(folder.symlink(file.path(), &target.unwrap_or_default())?)
}

fn put(folder: &NewFolder, path: &str, content: &[u8]) -> Result<()> {
    Ok(folder.file(path)?.write_all(content).map_err(|source| folder.failed(path, source))?)
}
