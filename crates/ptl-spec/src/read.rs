//! Opening model files.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use model_archive::{Archive, Method};
use tensor_core::{ErrorKind, Extent, Limits, Profile, Source, Verify, parallel};

use crate::{
    Bytecode, ContainerKind, Error, File, Result,
    container::Container,
    flat::{self, Flat},
    module::{
        code::{Code, Object},
        stored::Listing,
    },
    zip::{self, Zip},
};

/// An open model file, of either container.
///
/// Opening reads the directory of a ZIP file, or the names of the extra files of a FlatBuffer, and
/// nothing else. Code and tensors are looked at when they are asked for, tensor bytes when a tensor
/// is.
///
/// Clones are cheap and share what was read.
#[derive(Clone, Debug)]
pub struct Reader {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    source: Source,
    container: Box<dyn Container>,
    options: ReadOptions,
    /// Where it was opened, for a spec beside it.
    path: Option<PathBuf>,
    bytecode: OnceLock<Bytecode>,
    listing: OnceLock<Listing>,
}

impl Reader {
    /// Opens a file, which is read by position and only where it is asked for.
    ///
    /// # Errors
    ///
    /// Where it is neither a ZIP file of which all records lie below one folder, nor a FlatBuffer of
    /// a module.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Reads a file that is in memory; nothing is copied.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::options().from_bytes(bytes)
    }

    /// Reads a file from any source: memory, a file, a mapping, the caller's store.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_source(source: Source) -> Result<Self> {
        Self::options().from_source(source)
    }

    /// Returns the options of opening, to be set and opened with.
    #[must_use]
    pub fn options() -> ReadOptions {
        ReadOptions::default()
    }

    /// Returns what holds the parts of the file together.
    #[must_use]
    pub fn container(&self) -> ContainerKind {
        self.body().kind()
    }

    /// Returns the folder that all records lie below; `None` in a FlatBuffer file.
    #[must_use]
    pub fn root(&self) -> Option<&str> {
        self.body().root()
    }

    /// Returns handles on the records of a ZIP file, in the order of its directory; a FlatBuffer
    /// file has none.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn records(&self) -> impl Iterator<Item = File<'_>> {
        self.body().records()
    }

    /// Returns a handle on a record, by its name without the root folder, whatever the case of its
    /// letters; `None` where there is none.
    #[must_use]
    pub fn record(&self, name: &str) -> Option<File<'_>> {
        self.body().record(name)
    }

    /// Returns handles on all files inside, in the order of the file: the records of a ZIP file; the
    /// extra files and the source of a FlatBuffer file, by the names that their records would have,
    /// such as `extra/labels.txt` and `code/__torch__.py`.
    ///
    /// # Errors
    ///
    /// [`Error::FlatBuffer`] where what lists them is malformed.
    pub fn files(&self) -> Result<impl Iterator<Item = File<'_>>> {
        self.body().files(self.limits())
    }

    /// Returns those of the [files](Self::files) that are source, which only the full runtime reads:
    /// `TorchScript` of the model's classes and functions.
    ///
    /// # Errors
    ///
    /// As for [`files`](Self::files).
    pub fn sources(&self) -> Result<impl Iterator<Item = File<'_>>> {
        self.body().sources(self.limits())
    }

    /// Returns handles on the extra files, in the order of the file.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn extra_files(&self) -> impl Iterator<Item = File<'_>> {
        self.body().extra_files()
    }

    /// Returns an extra file, whatever the case of its letters in a ZIP file; `None` where there is
    /// none.
    #[must_use]
    pub fn extra_file(&self, name: &str) -> Option<File<'_>> {
        self.body().extra_file(name)
    }

    /// Returns the methods and their types.
    ///
    /// # Errors
    ///
    /// [`Error::NotLite`] for a file that no lite interpreter loads; [`Error::Pickle`] and
    /// [`Error::FlatBuffer`] where it is malformed.
    pub fn bytecode(&self) -> Result<&Bytecode> {
        if let Some(bytecode) = self.inner.bytecode.get() {
            return Ok(bytecode);
        }
        let bytecode = self.body().bytecode(self.limits())?;
        Ok(self.inner.bytecode.get_or_init(|| bytecode))
    }

    /// Reads what the methods do, instruction by instruction.
    ///
    /// # Errors
    ///
    /// As for [`bytecode`](Self::bytecode).
    pub fn code(&self) -> Result<Vec<Code>> {
        self.body().code(self.limits())
    }

    /// Reads the objects of the model, itself first: its modules, and what else has attributes.
    ///
    /// # Errors
    ///
    /// [`Error::Pickle`] and [`Error::FlatBuffer`] where it is malformed.
    pub fn objects(&self) -> Result<Vec<Object>> {
        self.body().objects(self.limits())
    }

    /// Returns what the file is read from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.inner.source
    }

    /// Returns the version of the operators that a FlatBuffer file names; `None` in a ZIP file.
    #[must_use]
    pub fn operator_version(&self) -> Option<u32> {
        self.body().operator_version()
    }

    /// Returns how many storages a FlatBuffer file has; `None` in a ZIP file.
    #[must_use]
    pub fn storage_count(&self) -> Option<u64> {
        self.body().storage_count()
    }

    pub(crate) fn body(&self) -> &dyn Container {
        &*self.inner.container
    }

    /// Returns the ceilings on what the file may make the reader do.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.options.limits
    }

    pub(crate) fn threads(&self) -> NonZeroUsize {
        self.inner.options.threads
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.inner.path.as_deref()
    }

    pub(crate) fn listing(&self) -> Result<&Listing> {
        if let Some(listing) = self.inner.listing.get() {
            return Ok(listing);
        }
        let listing = self.body().tensors(self.limits())?;
        Ok(self.inner.listing.get_or_init(|| listing))
    }
}

/// Tells whether some bytes are a model file, be it a broken one: a FlatBuffer says so at its start,
/// of a ZIP file the directory is read, and the name of the first record where there is none.
///
/// # Errors
///
/// [`Error::Core`] where they cannot be read.
pub fn sniff(source: &Source) -> Result<bool> {
    if flat::is_flat(&first_bytes(source)?) {
        return Ok(true);
    }
    if !zip::starts_with_a_record(source) {
        return Ok(false);
    }
    match archive(source, &Limits::default()) {
        Ok(archive) => Ok(sniff_archive(&archive)),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(_) => zip::starts_as_model(source),
    }
}

/// Tells whether an archive is a model file: one that has the records of the state or the code of a
/// model below a folder.
#[must_use]
pub fn sniff_archive(archive: &Archive) -> bool {
    zip::is_model(archive)
}

fn first_bytes(source: &Source) -> Result<Bytes> {
    Ok(source.read(Extent::first(source.len().min(8)), "first bytes")?)
}

/// Opens the archive of a model file as PyTorch does, which tolerates much.
pub(crate) fn archive(source: &Source, limits: &Limits) -> Result<Archive> {
    archive_as(source, limits, Profile::Lenient)
}

fn archive_as(source: &Source, limits: &Limits, profile: Profile) -> Result<Archive> {
    let options = Archive::options()
        .methods(&[Method::Stored, Method::Deflate])
        .profile(profile)
        .limits(*limits);
    match options.from_source(source.clone()) {
        Err(end @ model_archive::Error::Directory { .. }) if zip::starts_with_a_record(source) => {
            Err(Error::NoEnd { source: end })
        }
        archive => Ok(archive?),
    }
}

/// How a file is opened and read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    limits: Limits,
    profile: Profile,
    verify: Verify,
    threads: NonZeroUsize,
}

impl ReadOptions {
    /// Sets what the file may make the reader do; as [`Limits`] are by default, but for 64 MiB of
    /// spec.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets what is tolerated of a ZIP file: by default what PyTorch tolerates, such as the bytes
    /// that edits leave behind. A FlatBuffer is read in one way.
    #[must_use]
    pub const fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets when the checksums of a ZIP file's records are compared as they are read, be it for
    /// their tensors; by default never. Those of code, specs and other extra files always are. A
    /// FlatBuffer has none.
    #[must_use]
    pub const fn verify(mut self, verify: Verify) -> Self {
        self.verify = verify;
        self
    }

    /// Sets how many threads [`Reader::validate`] may use; all of the system by default.
    #[must_use]
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }

    /// Like [`Reader::open`], but with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        self.read(Source::open(path)?, Some(path.to_owned()))
    }

    /// Like [`Reader::from_bytes`], but with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_bytes(self, bytes: impl Into<Bytes>) -> Result<Reader> {
        self.from_source(Source::from_bytes(bytes))
    }

    /// Like [`Reader::from_source`], but with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_source(self, source: Source) -> Result<Reader> {
        self.read(source, None)
    }

    /// Reads a file whose archive is open already; how that was opened says what is tolerated.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_archive(self, archive: Archive) -> Result<Reader> {
        let source = archive.source().clone();
        Ok(self.reader(source, Box::new(Zip::open(archive, self.verify)?), None))
    }

    fn read(self, source: Source, path: Option<PathBuf>) -> Result<Reader> {
        let container: Box<dyn Container> = if flat::is_flat(&first_bytes(&source)?) {
            Box::new(Flat::open(source.clone(), &self.limits)?)
        } else {
            let archive = archive_as(&source, &self.limits, self.profile)?;
            Box::new(Zip::open(archive, self.verify)?)
        };
        Ok(self.reader(source, container, path))
    }

    fn reader(
        self,
        source: Source,
        container: Box<dyn Container>,
        path: Option<PathBuf>,
    ) -> Reader {
        let (bytecode, listing) = (OnceLock::new(), OnceLock::new());
        let inner = Inner { source, container, options: self, path, bytecode, listing };
        Reader { inner: Arc::new(inner) }
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default().with_manifest_bytes(64 << 20),
            profile: Profile::Lenient,
            verify: Verify::default(),
            threads: parallel::available(),
        }
    }
}
