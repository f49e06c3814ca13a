use std::{
    fmt,
    io::{self, BufRead, Read},
    sync::atomic::Ordering,
};

use bytes::Bytes;
use model_archive::{Entry, FileFault, Kind, Stored, StoredReader, name};
use tensor_core::{
    Verified, Verify,
    digest::{Algorithm, Hasher},
};

use crate::{
    Error, MediaType, Reader, Result, Sha256,
    links::fetch::Link,
    paths::{LINKS, MANIFEST, MISC, MODEL},
};

/// A handle on a file that `MANIFEST` lists: two words, nothing read.
#[derive(Clone, Copy)]
pub struct File<'a> {
    reader: &'a Reader,
    index: usize,
}

/// Where the content of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the carton.
    Here,
    /// Somewhere else, as `LINKS` says.
    Linked,
    /// Neither in the carton nor in `LINKS`.
    Missing,
}

impl<'a> File<'a> {
    pub(crate) const fn new(reader: &'a Reader, index: usize) -> Self {
        Self { reader, index }
    }

    /// Returns its path, counted from the root of the carton.
    #[must_use]
    pub fn path(self) -> &'a str {
        self.reader.manifest().path_at(self.index)
    }

    /// Returns the digest that `MANIFEST` has for it.
    #[must_use]
    pub fn sha256(self) -> Sha256 {
        // Handles are made for lines that there are.
        self.reader.manifest().sha256_at(self.index).unwrap_or(Sha256([0; 32]))
    }

    /// Tells where its content is.
    #[must_use]
    pub fn place(self) -> Place {
        let is_linked = self.is_linked();
        let is_here = match self.reader.storage().folder() {
            None => self.entry().is_some_and(|entry| !is_linked || entry.resolve().is_ok()),
            // What is there and may not be read is said to be here: reading tells why not.
            Some(folder) => match folder.disk_path(self.path()) {
                Ok(found) => found.is_some(),
                Err(model_archive::Error::File { fault, .. }) => {
                    matches!(fault, FileFault::Outside)
                }
                Err(_) => false,
            },
        };
        if is_here {
            Place::Here
        } else if is_linked {
            Place::Linked
        } else {
            Place::Missing
        }
    }

    /// Returns the length of its content in bytes; nothing is fetched for that.
    ///
    /// # Errors
    ///
    /// [`Error::NotFetched`] where it is only linked; [`Error::MissingFile`]; as for
    /// [`bytes`](Self::bytes).
    pub fn len(self) -> Result<u64> {
        match self.reader.stored_here(self)? {
            Some(stored) => Ok(stored.len()),
            None => {
                let (path, urls) = (self.path().to_owned(), self.reader.urls(self)?.to_owned());
                Err(Error::NotFetched { path, urls })
            }
        }
    }

    /// Returns the length of its content, where that is here.
    pub(crate) fn len_here(self) -> Result<Option<u64>> {
        (self.place() == Place::Here).then(|| self.len()).transpose()
    }

    /// Tells whether it has no content.
    ///
    /// # Errors
    ///
    /// As for [`len`](Self::len).
    pub fn is_empty(self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Returns its content: a slice without a copy where it is stored as it is and in memory.
    ///
    /// The first read of a file compares its digest, unless [`Verify::Never`] was asked for. What
    /// is only linked is fetched, if the reader was given something that fetches.
    ///
    /// # Errors
    ///
    /// [`Error::Digest`]; [`Error::MissingFile`], [`Error::NotFetched`] and [`Error::Fetch`] where
    /// it is not here; [`Error::Archive`] where it cannot be decoded.
    pub fn bytes(self) -> Result<Bytes> {
        let bytes = self.reader.stored(self)?.bytes()?;
        if self.reader.wants_digest(self.index) {
            self.compare(Sha256::digest(&bytes))?;
        }
        Ok(bytes)
    }

    /// Fills the caller's buffer with its content; it is held nowhere else.
    pub(crate) fn read_into(self, buffer: &mut [u8]) -> Result<()> {
        let stored = self.reader.stored(self)?;
        match self.reader.archive().zip(stored.extent()?) {
            Some((archive, extent)) => archive.source().read_into(extent, buffer, "file")?,
            None => stored.read_into(buffer)?,
        }
        if self.reader.wants_digest(self.index) {
            self.compare(Sha256::digest(buffer))?;
        }
        Ok(())
    }

    /// Returns its content as a stream, in memory that does not grow with it.
    ///
    /// Unless [`Verify::Never`] was asked for, the stream ends well only where the digest is right.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes), without the digest: that is an error of the stream.
    pub fn reader(self) -> Result<FileReader> {
        let wanted = self.reader.wants_digest(self.index);
        self.open(wanted)
    }

    /// Reads all of it and compares its digest.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub fn verify(self) -> Result<Verified> {
        let mut reader = self.open(true)?;
        loop {
            let ready = reader.fill_buf().map_err(FileReader::fault)?.len();
            if ready == 0 {
                self.reader.note_digest(self.index);
                return Ok(Verified::Digest);
            }
            reader.consume(ready);
        }
    }

    /// Tells of what kind its content is, by its first bytes; `None` for those that the format's
    /// text does not name. Format text: "`misc`".
    ///
    /// # Errors
    ///
    /// As for [`reader`](Self::reader).
    pub fn media_type(self) -> Result<Option<MediaType>> {
        let mut head = Vec::new();
        let reader = self.open(false)?;
        reader.take(MediaType::HEAD).read_to_end(&mut head).map_err(FileReader::fault)?;
        Ok(MediaType::sniff(&head))
    }

    /// Tells whether there is a link for its content. A symbolic link to what is only linked is only
    /// linked itself: both have one digest.
    fn is_linked(self) -> bool {
        self.reader.links().is_some_and(|links| links.urls(self.sha256()).is_some())
    }

    /// Returns the path of what it leads to, one step far, where it is a symbolic link.
    pub(crate) fn target(self) -> Result<Option<String>> {
        if let Some(folder) = self.reader.storage().folder() {
            return Ok(folder.target(self.path()));
        }
        let Some(entry) = self.entry().filter(|entry| entry.info().kind == Kind::Symlink) else {
            return Ok(None);
        };
        let target = entry.target()?;
        // What leads nowhere is refused by name.
        Ok(Some(name::resolve(self.path(), &target).unwrap_or(target)))
    }

    /// Like [`target`](Self::target), but `None` where that is not listed: whatever is made of this
    /// carton goes without it.
    pub(crate) fn listed_target(self) -> Result<Option<String>> {
        Ok(self.target()?.filter(|target| self.reader.file(target).is_some()))
    }

    /// Refuses a link for which `MANIFEST` has another digest than for the file that it leads to.
    pub(crate) fn check_link(self, target: &str) -> Result<()> {
        match self.reader.file(target).map(File::sha256) {
            Some(found) if found != self.sha256() => {
                let (path, expected) = (self.path().to_owned(), self.sha256());
                Err(Error::Digest { path, found, expected })
            }
            _ => Ok(()),
        }
    }

    /// Returns the carton that it is in.
    pub(crate) const fn carton(self) -> &'a Reader {
        self.reader
    }

    /// Returns a stream that compares the digest, whatever the options say.
    pub(crate) fn checked_reader(self) -> Result<FileReader> {
        self.open(true)
    }

    pub(crate) const fn index(self) -> usize {
        self.index
    }

    pub(crate) fn stored(self) -> Result<Stored<'a>> {
        self.reader.stored(self)
    }

    /// Returns its entry in the archive, links not followed; `None` in a folder, or where it is not
    /// here.
    #[must_use]
    pub fn entry(self) -> Option<Entry<'a>> {
        self.reader.entry(self.index)
    }

    fn open(self, compare: bool) -> Result<FileReader> {
        let stored = self.reader.stored(self)?.reader()?;
        let expected = compare
            .then(|| (Hasher::new(Algorithm::Sha256), self.sha256(), self.path().to_owned()));
        Ok(FileReader { stored, expected, counted: 0 })
    }

    fn compare(self, found: Sha256) -> Result<()> {
        let expected = self.sha256();
        if found != expected {
            return Err(Error::Digest { path: self.path().to_owned(), found, expected });
        }
        self.reader.note_digest(self.index);
        Ok(())
    }
}

impl fmt::Debug for File<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("path", &self.path()).field("sha256", &self.sha256()).finish()
    }
}

/// The content of a file as a stream, made by [`File::reader`].
///
/// Errors carry an [`Error`], which [`fault`](Self::fault) gives back.
#[derive(Debug)]
pub struct FileReader {
    stored: StoredReader,
    /// What hashes the content, its digest and its path, where that is compared.
    expected: Option<(Hasher, Sha256, String)>,
    /// Bytes that were hashed and not consumed.
    counted: usize,
}

impl FileReader {
    /// Returns the error of a wrong digest of what was read so far; `None` where it is right, or is
    /// not compared.
    pub(crate) fn wrong_digest(&self) -> Option<Error> {
        let (hasher, expected, path) = self.expected.as_ref()?;
        let (found, expected) = (Sha256::from_digest(hasher.clone().finish()), *expected);
        let path = || path.clone();
        (found != expected).then(|| Error::Digest { path: path(), found, expected })
    }

    /// Returns how many zstd frames were decoded so far; 0 where there are none.
    pub(crate) fn frames(&self) -> u64 {
        self.stored.frames()
    }

    /// Returns how many stored bytes stand behind the end of the data.
    pub(crate) fn leftover(&self) -> u64 {
        self.stored.leftover()
    }

    /// Turns an error of this stream into what it is about.
    #[must_use]
    pub fn fault(error: io::Error) -> Error {
        match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => StoredReader::fault(error).into(),
        }
    }
}

impl BufRead for FileReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let Some((hasher, ..)) = &mut self.expected else {
            return self.stored.fill_buf();
        };
        let ready = self.stored.fill_buf()?;
        if self.counted == 0 {
            // What was hashed is still in the processor's cache when it is used.
            self.counted = ready.len().min(CHUNK);
            hasher.update(ready.get(..self.counted).unwrap_or_default());
        }
        if ready.is_empty()
            && let Some(error) = self.wrong_digest()
        {
            return Err(io::Error::other(error));
        }
        let ready = self.stored.fill_buf()?;
        Ok(ready.get(..self.counted).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.counted = self.counted.saturating_sub(amount);
        self.stored.consume(amount);
    }
}

impl Read for FileReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut ready = self.fill_buf()?;
        let taken = ready.read(out)?;
        self.consume(taken);
        Ok(taken)
    }
}

impl Reader {
    /// Returns handles on all files, sorted by path.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn files(&self) -> impl ExactSizeIterator<Item = File<'_>> {
        (0..self.manifest().len()).map(|index| File::new(self, index))
    }

    /// Returns a handle on the file of a path; `None` where `MANIFEST` does not list it.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<File<'_>> {
        self.manifest().position(path).map(|index| File::new(self, index))
    }

    /// Returns handles on the files of the model. Format text: "`model`".
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn model(&self) -> impl Iterator<Item = File<'_>> {
        self.files().filter(|file| file.path().starts_with(MODEL))
    }

    /// Returns handles on what examples refer to beside tensors. Format text: "`misc`".
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn misc(&self) -> impl Iterator<Item = File<'_>> {
        self.files().filter(|file| file.path().starts_with(MISC))
    }

    /// Returns the paths of what is in the carton, but not listed in `MANIFEST`: it is not part of the
    /// model, and whatever is made of this carton goes without it.
    ///
    /// # Errors
    ///
    /// Where a folder cannot be listed.
    pub fn unlisted(&self) -> Result<Vec<String>> {
        let is_listed = |path: &str| [MANIFEST, LINKS].contains(&path) || self.file(path).is_some();
        let paths = self.storage().paths()?.into_iter();
        Ok(paths.filter(|path| !is_listed(path)).collect())
    }

    /// Returns where the content of a file is; fetches what is only linked.
    pub(crate) fn stored(&self, file: File<'_>) -> Result<Stored<'_>> {
        if let Some(stored) = self.stored_here(file)? {
            return Ok(stored);
        }
        let (urls, path, sha256) = (self.urls(file)?, file.path().to_owned(), file.sha256());
        if let Some((_, source)) = self.fetched().iter().find(|(found, _)| *found == sha256) {
            return Ok(Stored::Source(source.clone()));
        }
        let Some(fetch) = &self.inner.options.fetch else {
            return Err(Error::NotFetched { path, urls: urls.to_owned() });
        };
        let fetched = fetch.fetch(&Link::new(sha256, urls)).map_err(|source| {
            let source = Box::new(source);
            Error::Fetch { path, source }
        })?;
        // Another fetch may bring something else.
        if let Some(flag) = self.inner.compared.get(file.index()) {
            flag.store(fetched.is_checked(), Ordering::Relaxed);
        }
        let source = fetched.source().clone();
        let mut kept = self.fetched();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((sha256, source.clone()));
        Ok(Stored::Source(source))
    }

    /// Returns where the content of a file is; `None` where that is not in the carton.
    fn stored_here(&self, file: File<'_>) -> Result<Option<Stored<'_>>> {
        match self.storage().folder() {
            None => {
                let entry = self.entry(file.index()).map(Entry::resolve);
                let entry = entry.filter(|found| found.is_ok() || !file.is_linked());
                Ok(entry.transpose()?.map(Stored::Entry))
            }
            Some(folder) => Ok(folder.file(file.path())?.map(Stored::Source)),
        }
    }

    /// Returns where the content of a file that is not in the carton can be fetched.
    fn urls(&self, file: File<'_>) -> Result<&[String]> {
        let urls = self.links().and_then(|links| links.urls(file.sha256()));
        urls.ok_or_else(|| Error::MissingFile { path: file.path().to_owned() })
    }

    /// Returns the entry of a line of the manifest; `None` where there is none, or for a folder.
    pub(crate) fn entry(&self, index: usize) -> Option<Entry<'_>> {
        let position = self.inner.positions.get(index).copied().flatten()?;
        self.archive()?.entry_at(position)
    }

    pub(crate) fn is_compared(&self, index: usize) -> bool {
        self.inner.compared.get(index).is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    pub(crate) fn note_digest(&self, index: usize) {
        // In a folder, the next read opens whatever stands there by then.
        if self.archive().is_some()
            && let Some(flag) = self.inner.compared.get(index)
        {
            flag.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn wants_digest(&self, index: usize) -> bool {
        match self.read_options().verify {
            Verify::Once => !self.is_compared(index),
            Verify::Always => true,
            Verify::Never => false,
        }
    }
}

/// Bytes that are hashed at once.
const CHUNK: usize = 256 << 10;
/// Fetched files that stay open: more than threads work on at once.
const KEPT: usize = 16;
