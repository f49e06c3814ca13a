//! Writing cartons, front to back.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use model_archive::{
    ArchiveWriter, Compression, Encoded, EntryOptions, Kind, Method, Raw, Written, name,
};
use tensor_core::{
    Budget, Extent, Finding, Limit, Limits, Report, Source,
    digest::Algorithm,
    output::{Durability, Existing, NewFile, Output},
    parallel,
};

use crate::{
    Description, Error, File, Links, Manifest, ParsedDescription, ReadOptions, Reader, Result,
    Sha256, Value,
    error::{ManifestFault, PackFault, WriteFault},
    links::check_fetchable,
    manifest::check_path,
    paths::{CARTON_TOML, INDEX, INDEX_BYTES, LINKS, MANIFEST, MISC, relative},
    tensor::{index::Index, index_writer::IndexWriter},
    validate::documents::Documents,
};

pub(crate) mod pack;
pub(crate) mod rewrite;
pub(crate) mod unpacked;

/// How a carton is written.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    compression: Compression,
    alignment: u32,
    threads: Option<NonZeroUsize>,
    is_unchecked: bool,
    pub(crate) output: Output,
    pub(crate) limits: Limits,
}

impl WriteOptions {
    /// Sets how files are compressed; by default by zstd at level 3 where that saves a twentieth,
    /// and not at all elsewhere, or without the feature `zstd`.
    #[must_use]
    pub const fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets what files that are stored as they are start at a multiple of, in bytes: a power of two
    /// up to 32,768. The default is 64, so that tensors of a mapped carton are aligned.
    #[must_use]
    pub const fn alignment(mut self, alignment: u32) -> Self {
        self.alignment = alignment;
        self
    }

    /// Sets how many threads compress and hash; by default as many as the system offers. The bytes
    /// of the carton do not depend on it.
    #[must_use]
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets how a finished file takes its place: by default it is forced to the disk, and replaces
    /// what stands there.
    #[must_use]
    pub const fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Sets whether a finished file is forced to the disk; it is by default.
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.output.durability = durability;
        self
    }

    /// Sets what happens to a file that is there already; it is replaced by default.
    #[must_use]
    pub const fn existing(mut self, existing: Existing) -> Self {
        self.output.existing = existing;
        self
    }

    /// Writes also what [`Reader::lint`](crate::Reader::lint) calls an error: for callers that look
    /// at the result themselves.
    #[must_use]
    pub const fn unchecked(mut self) -> Self {
        self.is_unchecked = true;
        self
    }

    /// Starts a carton in any sink; nothing is sought.
    pub fn write_to<W: Write>(self, sink: W) -> Writer<W> {
        Writer::start(sink, self, |_, _| Ok(()))
    }

    /// Starts a carton that will stand at `path` once it is finished; a failure before leaves what
    /// was there.
    ///
    /// # Errors
    ///
    /// Where the folder does not let a file be created.
    pub fn create(self, path: impl AsRef<Path>) -> Result<Writer<NewFile>> {
        let file = self.output.create(path)?;
        Ok(Writer::start(file, self, |file, options| file.commit(options.output.existing)))
    }

    pub(crate) fn thread_count(&self) -> NonZeroUsize {
        self.threads.unwrap_or_else(parallel::available)
    }

    fn entry(&self) -> EntryOptions {
        EntryOptions::default()
            .compression(self.compression)
            .alignment(self.alignment)
            .digest(Algorithm::Sha256)
    }
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            compression: COMPRESSION,
            alignment: 64,
            threads: None,
            is_unchecked: false,
            output: Output::default(),
            // What is written is read back.
            limits: ReadOptions::default().limits,
        }
    }
}

/// Writes a carton front to back: files in the caller's order, then the index of tensors,
/// `MANIFEST` and `LINKS`.
///
/// The same calls make the same bytes, on every machine and with any number of threads. A carton
/// that is not finished is none.
///
/// # Examples
///
/// ```
/// use carton_format::{Description, Reader, Runner, Writer};
///
/// let mut writer = Writer::new(Vec::new());
/// writer.description(&Description::new(Runner::new("noop", "=1".parse()?)))?;
/// writer.file("model/weights.bin", b"1234")?;
/// let finished = writer.finish()?;
/// let reader = Reader::from_bytes(finished.sink)?;
/// assert_eq!(reader.model_hash(), finished.manifest.model_hash());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a carton that is not finished is none"]
pub struct Writer<W: Write> {
    archive: ArchiveWriter<W>,
    options: WriteOptions,
    listed: BTreeMap<String, Listed>,
    index: IndexWriter,
    links: Links,
    /// Where it was not copied from another carton.
    description: Option<ParsedDescription>,
    /// The text of the index, where it was not copied from another carton.
    index_text: Option<Bytes>,
    /// The cartons that documents were copied from.
    copied: BTreeMap<String, Reader>,
    commit: fn(&mut W, &WriteOptions) -> tensor_core::Result<()>,
}

/// What `MANIFEST` will say of a path.
#[derive(Clone, Debug)]
enum Listed {
    Here {
        sha256: Sha256,
        len: u64,
    },
    /// The content is not in the carton.
    Linked(Sha256),
    /// A symbolic link: digest and length are those of the file that it leads to.
    Link {
        target: String,
        path: String,
    },
}

/// A finished carton.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished<W> {
    /// What it was written to.
    pub sink: W,
    /// Its files and their digests.
    pub manifest: Manifest,
}

impl Writer<NewFile> {
    /// Starts a carton that will stand at `path` once it is finished.
    ///
    /// # Errors
    ///
    /// As for [`WriteOptions::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        WriteOptions::default().create(path)
    }

    /// Returns the options of writing, to be set and written with.
    #[must_use]
    pub fn options() -> WriteOptions {
        WriteOptions::default()
    }
}

impl<W: Write> Writer<W> {
    /// Starts a carton in any sink.
    pub fn new(sink: W) -> Self {
        WriteOptions::default().write_to(sink)
    }

    fn start(
        sink: W,
        options: WriteOptions,
        commit: fn(&mut W, &WriteOptions) -> tensor_core::Result<()>,
    ) -> Self {
        Self {
            archive: ArchiveWriter::new(sink),
            options,
            listed: BTreeMap::new(),
            index: IndexWriter::default(),
            links: Links::default(),
            description: None,
            index_text: None,
            copied: BTreeMap::new(),
            commit,
        }
    }

    /// Writes `carton.toml`.
    ///
    /// # Errors
    ///
    /// [`Error::Document`] where the description cannot be written; as for
    /// [`file`](Self::file).
    pub fn description(&mut self, description: &Description) -> Result<()> {
        let bytes = description.to_bytes()?;
        self.carton_toml(&bytes)
    }

    /// Writes a text as `carton.toml`, comments and all.
    ///
    /// # Errors
    ///
    /// Where it is not a description; as for [`file`](Self::file).
    pub fn carton_toml(&mut self, bytes: &[u8]) -> Result<()> {
        let parsed = Description::parse(bytes, &self.options.limits)?;
        self.put(CARTON_TOML, bytes)?;
        self.description = Some(parsed);
        Ok(())
    }

    /// Writes a file whose content is in memory; its path counts from the root of the carton.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] where the path is unsafe or reserved; [`Error::Archive`] where it was
    /// written before, or the sink fails.
    pub fn file(&mut self, path: &str, content: &[u8]) -> Result<()> {
        if path == CARTON_TOML {
            return self.carton_toml(content);
        }
        self.put(path, content)?;
        if path == INDEX {
            self.index_text = Some(Bytes::copy_from_slice(content));
        }
        Ok(())
    }

    fn put(&mut self, path: &str, content: &[u8]) -> Result<()> {
        self.check(path)?;
        let options = self.options.entry().size(content.len() as u64);
        let written = if content.len() as u64 <= IN_MEMORY {
            self.archive.add(path, content, &options)?
        } else {
            self.archive.stream_from(path, content, &options, self.options.thread_count())?
        };
        self.list(written);
        Ok(())
    }

    /// Writes a file whose content is read to its end, in memory that does not grow with it.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file), and where the content cannot be read.
    pub fn stream(&mut self, path: &str, content: impl Read + Send) -> Result<()> {
        match self.document_limit(path) {
            None => self.stream_with(path, content, None),
            Some(limit) => {
                let mut document = Vec::new();
                let read = content.take(limit.saturating_add(1)).read_to_end(&mut document);
                let what = "reading a document";
                read.map_err(|source| model_archive::Error::Io { what, source })?;
                self.file(path, &document)
            }
        }
    }

    /// Returns how many bytes a document may have that is looked at before it is written.
    fn document_limit(&self, path: &str) -> Option<u64> {
        match path {
            CARTON_TOML => Some(self.options.limits.document_bytes),
            INDEX => Some(self.options.limits.metadata_bytes),
            _ => None,
        }
    }

    /// Writes what belongs to an example; its name counts from the folder `misc`.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file).
    pub fn misc(&mut self, name: &str, content: &[u8]) -> Result<()> {
        self.file(&format!("{MISC}{name}"), content)
    }

    /// Writes a tensor, which the index will have by this name.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] where the name was used before, the type is none of the format's, or a list
    /// holds another list; as for [`file`](Self::file).
    pub fn tensor(&mut self, name: &str, value: &Value) -> Result<()> {
        let prepared = self.index.prepare(name, value)?;
        for (path, _) in &prepared.files {
            self.check(path)?;
        }
        for (path, content) in self.index.add(prepared) {
            self.file(&path, &content)?;
        }
        Ok(())
    }

    /// Writes a symbolic link; its target counts from the folder that it is in, and has to be a
    /// file of the carton by the time that this is finished.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file), where the target leads out of the carton, and for a document that
    /// was not copied, unless that is [unchecked](WriteOptions::unchecked).
    pub fn symlink(&mut self, path: &str, target: &str) -> Result<()> {
        self.check(path)?;
        let is_known = self.options.is_unchecked || self.copied.contains_key(path);
        if self.document_limit(path).is_some() && !is_known {
            return Err(fault(path, WriteFault::LinkedDocument));
        }
        let leads_to = name::resolve(path, target).map_err(|fault| {
            let target = target.to_owned();
            Error::Write { path: path.to_owned(), fault: WriteFault::Target { target, fault } }
        })?;
        self.archive.add_symlink(path, target)?;
        let target = target.to_owned();
        self.listed.insert(path.to_owned(), Listed::Link { target, path: leads_to });
        Ok(())
    }

    /// Lists a file without its content, which can be fetched from some URLs.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file), and where nothing can be fetched from a URL, unless that is
    /// [unchecked](WriteOptions::unchecked).
    pub fn link<'a>(
        &mut self,
        path: &str,
        sha256: Sha256,
        urls: impl IntoIterator<Item = &'a str>,
    ) -> Result<()> {
        name::check_portable(path).map_err(|found| {
            let found = ManifestFault::Path { path: path.to_owned(), fault: found };
            fault(path, WriteFault::Path(found))
        })?;
        self.list_linked(path, sha256)?;
        for url in urls {
            if !self.options.is_unchecked {
                check_fetchable(url)?;
            }
            self.links.add(sha256, url);
        }
        Ok(())
    }

    /// Lists a file without its content, as another carton does.
    pub(crate) fn list_linked(&mut self, path: &str, sha256: Sha256) -> Result<()> {
        self.check(path)?;
        self.listed.insert(path.to_owned(), Listed::Linked(sha256));
        Ok(())
    }

    /// Copies a file of another carton: its stored bytes are not looked at, so that nothing is
    /// compressed again, and no digest is compared. Links stay links, and what was aligned stays so.
    ///
    /// # Errors
    ///
    /// As for [`file`](Self::file), and where the file cannot be read; [`Error::Digest`] where it is
    /// a link, and `MANIFEST` has another digest for what it leads to.
    pub fn copy(&mut self, file: File<'_>) -> Result<()> {
        let path = file.path();
        self.check(path)?;
        if let Some(target) = file.listed_target()? {
            // The digest of a link is made of that of its target.
            file.check_link(&target)?;
            self.remember(file);
            return self.symlink(path, &relative(path, &target));
        }
        let Some(entry) = file.entry().filter(|entry| entry.info().kind == Kind::File) else {
            return self.encode(file);
        };
        self.remember(file);
        let info = entry.info();
        let raw = Raw { kind: Kind::File, ..Raw::from(info) };
        let alignment = match info.method {
            Method::Stored => self.options.alignment.max(entry.alignment()?),
            _ => 1,
        };
        self.archive.copy_raw(path, raw, alignment, entry.stored_reader()?)?;
        let (sha256, len) = (file.sha256(), info.size);
        self.listed.insert(path.to_owned(), Listed::Here { sha256, len });
        Ok(())
    }

    /// Writes the content of a file of another carton, compressed as this one's files are; its
    /// digest is compared.
    ///
    /// # Errors
    ///
    /// As for [`copy`](Self::copy), and [`Error::Digest`].
    pub fn encode(&mut self, file: File<'_>) -> Result<()> {
        self.remember(file);
        let stored = file.stored()?;
        let len = stored.len();
        let copied = self.stream_with(file.path(), stored.reader()?, Some(len));
        copied.map_err(of_content)?;
        match self.listed.get(file.path()) {
            Some(Listed::Here { sha256: found, .. }) if *found != file.sha256() => {
                let (path, expected) = (file.path().to_owned(), file.sha256());
                Err(Error::Digest { path, found: *found, expected })
            }
            _ => Ok(()),
        }
    }

    /// Notes where a document comes from, which is looked at when all files are known.
    fn remember(&mut self, file: File<'_>) {
        let path = file.path();
        if self.document_limit(path).is_some() && !self.listed.contains_key(path) {
            self.copied.insert(path.to_owned(), file.carton().clone());
        }
    }

    /// Writes the index of tensors, unless it was written as a file, then `MANIFEST` and, where it
    /// says something, `LINKS`. A file is put in its place.
    ///
    /// # Errors
    ///
    /// [`Error::MissingDocument`] without `carton.toml`; [`Error::Write`] where a symbolic link
    /// leads to no file of the carton, a linked file has no URL, or [`Reader::lint`] would call
    /// something an error, unless that is [unchecked](WriteOptions::unchecked); [`Error::Document`]
    /// and [`Error::Tensor`] where an index that was written as a file, or a document that was
    /// copied, is broken, and [`Error::Digest`] where a copied one is not what it is said to be;
    /// [`Error::Core`] where it holds more than [`Limits::expansion`] allows a reader to decode;
    /// [`Error::Archive`] where the sink fails. What was at the place of the file is as it was
    /// before.
    pub fn finish(mut self) -> Result<Finished<W>> {
        if !self.listed.contains_key(INDEX) {
            let index = self.index.to_bytes();
            self.file(INDEX, &index)?;
        } else if !self.index.is_empty() {
            return Err(fault(INDEX, WriteFault::Duplicate));
        }
        self.finish_packed()
    }

    /// Finishes with an index that was written.
    pub(crate) fn finish_packed(self) -> Result<Finished<W>> {
        self.check_links()?;
        let manifest = self.manifest()?;
        self.check_documents(&manifest, None)?;
        self.finish_with(manifest)
    }

    /// Finishes a carton of which another is the source; what is wrong there may be wrong here.
    pub(crate) fn finish_changed(self, source: &Reader) -> Result<Finished<W>> {
        let manifest = self.manifest()?;
        self.check_documents(&manifest, Some(source))?;
        self.finish_with(manifest)
    }

    /// Finishes with a `MANIFEST` that lists the same files, perhaps in another order or form.
    pub(crate) fn finish_same(self, source: &Reader) -> Result<Finished<W>> {
        let (found, expected) = (self.manifest()?, source.manifest());
        let differs = found.len() != expected.len()
            || expected.files().any(|(path, sha256)| found.sha256(path) != Some(sha256));
        if differs {
            return Err(fault(MANIFEST, WriteFault::OtherFiles));
        }
        self.check_expansion(Some(source))?;
        self.finish_with(expected.clone())
    }

    fn finish_with(mut self, manifest: Manifest) -> Result<Finished<W>> {
        // One of them may be at the place of the new file, which is not to be open then.
        self.copied.clear();
        let plain = EntryOptions::default();
        self.archive.add(MANIFEST, manifest.as_str().as_bytes(), &plain)?;
        if self.links != Links::default() {
            self.archive.add(LINKS, &self.links.to_bytes(), &plain)?;
        }
        let mut sink = self.archive.finish()?;
        (self.commit)(&mut sink, &self.options)?;
        Ok(Finished { sink, manifest })
    }

    /// Writes many files in the order of their paths: small ones are compressed on several threads
    /// before, long ones as they come. Only what is being written is open.
    pub(crate) fn files(
        &mut self,
        files: BTreeMap<String, Content>,
        progress: &(impl Fn(u64) + Sync),
    ) -> Result<()> {
        let (mut batch, mut bytes) = (Vec::new(), 0_u64);
        for (path, content) in files {
            self.check(&path)?;
            let is_document = self.document_limit(&path).is_some();
            match content.len() {
                Some(len) if len <= IN_MEMORY && content.is_file() && !is_document => {
                    bytes = bytes.saturating_add(len);
                    batch.push((path, content));
                }
                _ => {
                    self.batch(&mut batch, progress)?;
                    bytes = 0;
                    self.one(&path, content, progress)?;
                }
            }
            if bytes > BATCH {
                self.batch(&mut batch, progress)?;
                bytes = 0;
            }
        }
        self.batch(&mut batch, progress)
    }

    fn one(
        &mut self,
        path: &str,
        content: Content,
        progress: &(impl Fn(u64) + Sync),
    ) -> Result<()> {
        let source = match content {
            Content::Symlink(target) => return self.symlink(path, &target),
            Content::Linked(sha256) => return self.list_linked(path, sha256),
            Content::Stream(content) => {
                let content = content.into_inner().unwrap_or_else(PoisonError::into_inner);
                return self.stream(path, Counted { content, progress });
            }
            Content::Memory(_) | Content::Path { .. } => content.open()?,
        };
        let whole = Extent::first(source.len());
        let content = Counted { content: source.stream(whole, "file")?, progress };
        match self.document_limit(path) {
            Some(_) => self.stream(path, content),
            None => self.stream_with(path, content, Some(whole.len())),
        }
    }

    /// Compresses and hashes small files on several threads, and writes them in order.
    fn batch(
        &mut self,
        batch: &mut Vec<(String, Content)>,
        progress: &(impl Fn(u64) + Sync),
    ) -> Result<()> {
        let options = self.options.entry();
        let encoded = parallel::map(batch, self.options.thread_count(), |(path, content)| {
            let source = content.open()?;
            let content = source.read(Extent::first(source.len()), "file")?;
            progress(source.len());
            Encoded::new(path, Vec::from(content), &options).map_err(Error::from)
        });
        for encoded in encoded {
            let written = self.archive.add_encoded(encoded?)?;
            self.list(written);
        }
        batch.clear();
        Ok(())
    }

    fn stream_with(
        &mut self,
        path: &str,
        content: impl Read + Send,
        size: Option<u64>,
    ) -> Result<()> {
        self.check(path)?;
        let mut options = self.options.entry();
        if let Some(size) = size {
            options = options.size(size);
        }
        let threads = self.options.thread_count();
        let written = self.archive.stream_from(path, content, &options, threads)?;
        self.list(written);
        Ok(())
    }

    fn check(&self, path: &str) -> Result<()> {
        check_path(path, &self.options.limits)
            .map_err(|found| fault(path, WriteFault::Path(found)))?;
        if self.listed.contains_key(path) {
            return Err(fault(path, WriteFault::Duplicate));
        }
        Ok(())
    }

    fn list(&mut self, written: Written) {
        // The options ask for a digest.
        if let Some(digest) = written.digest {
            let (sha256, len) = (Sha256::from_digest(digest), written.size);
            self.listed.insert(written.name, Listed::Here { sha256, len });
        }
    }

    /// Refuses files that are only linked, but have no URL.
    fn check_links(&self) -> Result<()> {
        for (path, listed) in &self.listed {
            if let Listed::Linked(sha256) = listed
                && self.links.urls(*sha256).is_none_or(<[String]>::is_empty)
            {
                return Err(fault(path, WriteFault::NoUrl));
            }
        }
        Ok(())
    }

    /// Refuses more content than a reader would decode, unless the source has more too.
    fn check_expansion(&self, source: Option<&Reader>) -> Result<()> {
        let take = |file_len, content| {
            let limits = &self.options.limits;
            Budget::expansion("size of all files in bytes", limits, file_len).take(content)
        };
        let is_over = source
            .and_then(Reader::archive)
            .is_some_and(|archive| take(archive.source().len(), archive.total_size()).is_err());
        if self.options.is_unchecked || is_over {
            return Ok(());
        }
        let lens = self.listed.values().map(|listed| match listed {
            Listed::Here { len, .. } => *len,
            Listed::Linked(_) | Listed::Link { .. } => 0,
        });
        Ok(take(self.archive.position(), lens.fold(0, u64::saturating_add))?)
    }

    /// Refuses documents in which [`Reader::lint`] would find an error that the source does not have.
    fn check_documents(&self, manifest: &Manifest, source: Option<&Reader>) -> Result<()> {
        if self.options.is_unchecked {
            return Ok(());
        }
        self.check_expansion(source)?;
        let limits = &self.options.limits;
        let copied = match source {
            None if self.description.is_none() => self.copied(CARTON_TOML)?,
            _ => None,
        };
        let copied = copied.map(|text| Description::parse(&text, limits)).transpose()?;
        let own = self.description.as_ref().or(copied.as_ref());
        let parsed = own.or_else(|| source?.parsed().ok());
        let index = self.index(manifest, parsed, source)?;
        let len = |line| match self.resolve(manifest.path_at(line)) {
            Ok(Listed::Here { len, .. }) => Ok(Some(*len)),
            _ => Ok(None),
        };
        let documents = Documents::new(manifest, &len);
        let mut report = Report::default();
        documents.lint_places(&mut report);
        if let Some(index) = &index {
            documents.lint_index(index, &mut report);
        }
        if let Some(parsed) = parsed {
            documents.lint_description(parsed, index.as_ref(), &mut report);
        }
        if report.is_valid() {
            return Ok(());
        }
        let before = source.map(Reader::lint).unwrap_or_default();
        match report.new_error_since(&before) {
            Some(Finding { at, message, .. }) => {
                let path = at.entry.unwrap_or_default();
                // Most messages start with their place.
                let place = at.path.or(at.tensor).filter(|place| !message.starts_with(&**place));
                let message = place.map_or(String::new(), |at| format!("{at} ")) + &message;
                Err(Error::Write { path, fault: WriteFault::Invalid(message) })
            }
            None => Ok(()),
        }
    }

    /// Returns the index as it is read back, where it can be wrong or is referred to.
    fn index(
        &self,
        manifest: &Manifest,
        parsed: Option<&ParsedDescription>,
        source: Option<&Reader>,
    ) -> Result<Option<Index>> {
        let copied = match source {
            None if self.index_text.is_none() => self.copied(INDEX)?,
            _ => None,
        };
        let text = self.index_text.as_ref().or(copied.as_ref());
        let is_ours = text.is_some_and(|text| *text == self.index.to_bytes());
        let is_needed = parsed.is_some_and(|parsed| parsed.description.calls().next().is_some());
        match (text, source) {
            (Some(_), _) if is_ours && !is_needed => Ok(None),
            (Some(text), _) => Ok(Some(Index::parse(text, &self.options.limits, manifest)?)),
            (None, Some(source)) if manifest.position(INDEX).is_some() => {
                Ok(source.index().ok().map(|index| index.listed_in(manifest)))
            }
            (None, _) => Ok(None),
        }
    }

    /// Returns the text of a document that was copied from another carton.
    fn copied(&self, path: &str) -> Result<Option<Bytes>> {
        let Some(file) = self.copied.get(path).and_then(|reader| reader.file(path)) else {
            return Ok(None);
        };
        let (len, limits) = (file.stored()?.len(), &self.options.limits);
        match path {
            CARTON_TOML => Description::check_len(len, limits)?,
            _ => limits.check(Limit::MetadataBytes, INDEX_BYTES, len)?,
        }
        let text = file.bytes()?;
        let found = Sha256::digest(&text);
        match self.resolve(path)? {
            Listed::Here { sha256, .. } if *sha256 != found => {
                Err(Error::Digest { path: path.to_owned(), found, expected: *sha256 })
            }
            _ => Ok(Some(text)),
        }
    }

    fn manifest(&self) -> Result<Manifest> {
        if !self.listed.contains_key(CARTON_TOML) {
            return Err(Error::MissingDocument { path: CARTON_TOML });
        }
        let mut files = Vec::with_capacity(self.listed.len());
        for path in self.listed.keys() {
            if let Listed::Here { sha256, .. } | Listed::Linked(sha256) = self.resolve(path)? {
                files.push((path.clone(), *sha256));
            }
        }
        Manifest::from_files(files, &self.options.limits)
    }

    /// Returns what a path leads to, which is not a symbolic link.
    fn resolve(&self, path: &str) -> Result<&Listed> {
        let (mut at, mut last) = (path, "");
        for _ in 0..HOPS {
            match self.listed.get(at) {
                Some(listed @ Listed::Here { .. }) => return Ok(listed),
                Some(listed @ Listed::Linked(_)) if at == path => return Ok(listed),
                Some(Listed::Linked(_)) => {
                    let target = last.to_owned();
                    return Err(fault(path, WriteFault::TargetLinked { target }));
                }
                Some(Listed::Link { target, path }) => (at, last) = (path, target),
                None => {
                    let target = last.to_owned();
                    let missing = model_archive::TargetFault::Missing;
                    return Err(fault(path, WriteFault::Target { target, fault: missing }));
                }
            }
        }
        let (target, looped) = (last.to_owned(), model_archive::TargetFault::Loop);
        Err(fault(path, WriteFault::Target { target, fault: looped }))
    }
}

/// The content of a file that is to be packed.
pub(crate) enum Content {
    Memory(Bytes),
    /// A file of the system, and how long it was when it was found.
    Path {
        path: PathBuf,
        len: u64,
    },
    /// Read once; behind a lock that nobody waits for, so that contents can be shared by threads.
    Stream(Mutex<Box<dyn Read + Send>>),
    /// The target of a symbolic link.
    Symlink(String),
    /// Content that is not here.
    Linked(Sha256),
}

impl Content {
    /// Returns its length in bytes, where that is known.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Self::Memory(bytes) => Some(bytes.len() as u64),
            Self::Path { len, .. } => Some(*len),
            Self::Symlink(_) | Self::Linked(_) => Some(0),
            Self::Stream(_) => None,
        }
    }

    const fn is_file(&self) -> bool {
        matches!(self, Self::Memory(_) | Self::Path { .. })
    }

    /// Opens a file; a file of the system must be as long as it was.
    fn open(&self) -> Result<Source> {
        match self {
            Self::Memory(bytes) => Ok(Source::from_bytes(bytes.clone())),
            Self::Path { path, len } => {
                let source = Source::open(path)?;
                if source.len() != *len {
                    let fault = PackFault::Changed { found: source.len(), expected: *len };
                    return Err(Error::Pack { path: path.clone(), fault });
                }
                Ok(source)
            }
            Self::Stream(_) | Self::Symlink(_) | Self::Linked(_) => {
                Ok(Source::from_bytes(Bytes::new()))
            }
        }
    }
}

/// Content that tells how much of it was read.
struct Counted<'p, R, P> {
    content: R,
    progress: &'p P,
}

impl<R: Read, P: Fn(u64)> Read for Counted<'_, R, P> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(out)?;
        (self.progress)(read as u64);
        Ok(read)
    }
}

fn fault(path: &str, fault: WriteFault) -> Error {
    Error::Write { path: path.to_owned(), fault }
}

/// Gives back what was wrong with the content, where writing failed because of it.
fn of_content(error: Error) -> Error {
    match error {
        Error::Archive(model_archive::Error::Io { source, what }) => {
            match source.downcast::<model_archive::Error>() {
                Ok(error) => error.into(),
                Err(source) => Error::Archive(model_archive::Error::Io { what, source }),
            }
        }
        error => error,
    }
}

#[cfg(feature = "zstd")]
const COMPRESSION: Compression = Compression::ZstdIfSmaller { level: 3 };
#[cfg(not(feature = "zstd"))]
const COMPRESSION: Compression = Compression::Stored;
/// Files up to this are compressed in memory, several at once: a block of the archive's streams.
const IN_MEMORY: u64 = 1 << 20;
/// Bytes of small files that are in memory at once.
const BATCH: u64 = 16 << 20;
/// More links in a row than any reader follows.
const HOPS: usize = 40;
