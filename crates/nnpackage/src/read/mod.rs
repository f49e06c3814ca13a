//! Opening packages.

pub(crate) mod body;
pub(crate) mod content;
pub(crate) mod file;
pub(crate) mod model_file;
pub(crate) mod sniff;
pub(crate) mod storage;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    num::NonZeroUsize,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use bytes::Bytes;
use model_archive::{Archive, Entry, Folder, Kind, Method};
use tensor_core::{Limit, Limits, Profile, Source, Verify, parallel};

use crate::{
    Content, Error, File, Manifest, Result, Sums,
    layout::{DOCUMENT_BYTES, MANIFEST},
    manifest::parse::Parsed,
    read::{
        body::Body,
        storage::{Storage, in_archive, similar},
    },
};

/// An open package: an archive, or a folder.
///
/// Opening reads the directory of the archive and the manifest, nothing else. Models and other
/// files are read when they are asked for; a model that is stored as it is is read where it lies.
///
/// Clones are cheap and share what was read.
#[derive(Clone, Debug)]
pub struct Reader {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    storage: Storage,
    parsed: Parsed,
    sums: OnceLock<Option<Sums>>,
    /// Paths of files that were compared with their digests.
    compared: Mutex<HashSet<String>>,
    /// The paths of all files; read when they are asked for.
    paths: OnceLock<Vec<String>>,
    /// For each model of the manifest; only the first of those with one path is filled.
    models: Vec<OnceLock<circle_format::Reader>>,
    /// For each model of the manifest the first one with its path.
    first: Vec<usize>,
    options: ReadOptions,
}

impl Reader {
    /// Opens a package: an archive, which is read by position and only where it is asked for, or a
    /// folder.
    ///
    /// # Errors
    ///
    /// [`Error::NotAPackage`], [`Error::ManifestMissing`], [`Error::Json`] and its like, and
    /// [`Error::Archive`] where the archive is broken or unsafe.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Reads an archive that is in memory; nothing is copied.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::options().from_bytes(bytes)
    }

    /// Reads an archive from any source: memory, a file, a mapping, the caller's store.
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

    /// Returns the manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.inner.parsed.manifest
    }

    /// Returns the folder of the archive that is the package: empty where it is the archive itself,
    /// else with a slash at its end.
    #[must_use]
    pub fn root(&self) -> &str {
        self.storage().root()
    }

    /// Returns the archive; `None` for a folder.
    #[must_use]
    pub fn archive(&self) -> Option<&Archive> {
        self.storage().archive()
    }

    /// Returns what the archive is read from; `None` for a folder.
    #[must_use]
    pub fn source(&self) -> Option<&Source> {
        self.archive().map(Archive::source)
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.inner.storage
    }

    pub(crate) fn parsed(&self) -> &Parsed {
        &self.inner.parsed
    }

    /// Returns the ceilings on what the file may make the reader do.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.options.limits
    }

    pub(crate) fn read_options(&self) -> &ReadOptions {
        &self.inner.options
    }

    pub(crate) fn sums_cell(&self) -> &OnceLock<Option<Sums>> {
        &self.inner.sums
    }

    pub(crate) fn compared(&self) -> MutexGuard<'_, HashSet<String>> {
        self.inner.compared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn paths(&self) -> Result<&[String]> {
        if let Some(paths) = self.inner.paths.get() {
            return Ok(paths);
        }
        let paths = self.storage().paths()?;
        Ok(self.inner.paths.get_or_init(|| paths))
    }

    /// Returns the position of the first model that has the path of one.
    pub(crate) fn first_model(&self, index: usize) -> usize {
        self.inner.first.get(index).copied().unwrap_or(index)
    }

    /// Returns where an open model is kept.
    pub(crate) fn model_cell(&self, index: usize) -> Option<&OnceLock<circle_format::Reader>> {
        self.inner.models.get(index)
    }
}

/// How a package is opened.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    limits: Limits,
    pub(crate) profile: Profile,
    pub(crate) verify: Verify,
    threads: Option<NonZeroUsize>,
}

impl ReadOptions {
    /// Sets the ceilings on what a package may make the reader do. By default a manifest and a
    /// configuration file may have 1 MiB each.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how much is tolerated in an archive when it is opened, and which profile
    /// [`Reader::validate`] grades its faults by; strict by default. A folder is opened in either
    /// profile, and what onert tolerates in a manifest is read in both.
    #[must_use]
    pub const fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets when files are compared with the digests of `metadata/SHA256SUMS`, where there is such a
    /// list: at the first read of each by a reader and its clones, every time, or never, which is
    /// the default. A file is read whole for that, a model when it is opened, the manifest with the
    /// package. [`File::verify`](crate::File::verify) and [`Reader::validate`] always compare.
    #[must_use]
    pub const fn verify(mut self, verify: Verify) -> Self {
        self.verify = verify;
        self
    }

    /// Sets how many threads [`Reader::validate`] uses; by default as many as the system offers.
    #[must_use]
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Opens an archive or a folder.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        match Folder::open(path) {
            Ok(folder) => self.read_folder(folder),
            Err(error) if is_not_a_folder(&error) => self.from_source(Source::open(path)?),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads an archive that is in memory; nothing is copied.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_bytes(self, bytes: impl Into<Bytes>) -> Result<Reader> {
        self.from_source(Source::from_bytes(bytes))
    }

    /// Reads an archive from any source.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_source(self, source: Source) -> Result<Reader> {
        let content = Content::of_source(&source)?;
        let options = Archive::options().methods(METHODS).profile(self.profile);
        let archive = match options.limits(self.limits).from_source(source) {
            Ok(archive) => archive,
            Err(_) if content != Content::Zip => return Err(Error::NotAPackage { found: content }),
            Err(error) => return Err(error.into()),
        };
        self.read(in_archive(archive)?)
    }

    /// Reads a package whose archive is open already. How much was tolerated when it was opened is
    /// settled; the profile is what [`Reader::validate`] grades by. Symbolic links, and methods that
    /// packages do not have, are refused.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_archive(self, archive: Archive) -> Result<Reader> {
        let may_be = |entry: Entry<'_>| {
            entry.info().kind != Kind::Symlink && METHODS.contains(&entry.info().method)
        };
        if archive.entries().all(may_be) {
            return self.read(in_archive(archive)?);
        }
        // That says which entry it is.
        self.from_source(archive.source().clone())
    }

    /// Reads a folder that is open already.
    pub(crate) fn read_folder(self, folder: Folder) -> Result<Reader> {
        self.read(Storage::Stored(folder.limits(self.limits).into()))
    }

    /// Reads what is going to be written.
    pub(crate) fn preview(self, files: BTreeMap<String, Body>) -> Result<Reader> {
        self.verify(Verify::Never).read(Storage::Planned(Arc::new(files)))
    }

    pub(crate) fn thread_count(&self) -> NonZeroUsize {
        self.threads.unwrap_or_else(parallel::available)
    }

    fn read(self, storage: Storage) -> Result<Reader> {
        let Some(manifest) = storage.file(MANIFEST)? else {
            let paths = storage.paths()?;
            let found = similar(paths.iter().map(String::as_str));
            return Err(Error::ManifestMissing { found });
        };
        self.limits.check(Limit::DocumentBytes, "MANIFEST in bytes", manifest.len())?;
        let parsed = Parsed::of(&manifest.checked_bytes()?, &self.limits)?;
        let models = parsed.manifest.models.iter().map(|_| OnceLock::new()).collect();
        let first = first_of_path(&parsed.manifest.models);
        let inner = Inner {
            storage,
            parsed,
            sums: OnceLock::new(),
            compared: Mutex::default(),
            paths: OnceLock::new(),
            models,
            first,
            options: self,
        };
        let reader = Reader { inner: Arc::new(inner) };
        if self.verify != Verify::Never {
            File::new(&reader, MANIFEST).verify()?;
        }
        Ok(reader)
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        let limits = Limits::default().with_document_bytes(DOCUMENT_BYTES);
        Self { limits, profile: Profile::Strict, verify: Verify::Never, threads: None }
    }
}

/// Tells whether something was opened as a folder that is a file, or not there.
pub(crate) fn is_not_a_folder(error: &model_archive::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let model_archive::Error::Core(tensor_core::Error::File { source, .. }) = error else {
        return false;
    };
    matches!(source.kind(), NotADirectory | NotFound)
}

/// Returns for each path the position of the first one that is equal.
fn first_of_path(paths: &[String]) -> Vec<usize> {
    let mut seen = HashMap::new();
    let first = paths.iter().enumerate().map(|(index, path)| *seen.entry(path).or_insert(index));
    first.collect()
}

/// Format text: "Packaging Format".
pub(crate) const METHODS: &[Method] = &[Method::Stored, Method::Deflate];
