//! Opening cartons.

use std::{
    collections::VecDeque,
    num::NonZeroUsize,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError, atomic::AtomicBool},
};

use bytes::Bytes;
use model_archive::{Archive, Entry, Folder, Kind, Method, Storage, Symlinks};
use tensor_core::{Limit, Limits, Profile, Source, Verify, parallel};

use crate::{
    Description, Error, Links, Manifest, Result, Sha256,
    description::ParsedDescription,
    links::fetch::Fetch,
    paths::{CARTON_TOML, LINKS, LINKS_BYTES, MANIFEST, MANIFEST_BYTES},
    tensor::index::Index,
};

pub(crate) mod file;
pub(crate) mod media_type;
pub(crate) mod sniff;
pub(crate) mod unpack;

/// An open carton: an archive, or a folder that looks like one.
///
/// Opening reads the directory of the archive, `MANIFEST` and `LINKS`, whatever the size of the
/// model. `carton.toml`, the index of tensors, and the content of files are read when they are asked
/// for, and their digests are compared then.
///
/// Clones are cheap and share what was read.
#[derive(Clone, Debug)]
pub struct Reader {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    storage: Storage,
    manifest: Manifest,
    /// For each line of the manifest, the position of its entry; empty for a folder.
    positions: Vec<Option<usize>>,
    links: Option<Links>,
    description: OnceLock<ParsedDescription>,
    index: OnceLock<Index>,
    /// For each line of the manifest, whether the digest was compared.
    compared: Vec<AtomicBool>,
    /// What was fetched last, by digest: each may be an open file.
    fetched: Mutex<VecDeque<(Sha256, Source)>>,
    options: ReadOptions,
}

impl Reader {
    /// Opens a carton, or a folder with the files of one. It is read by position and only where it
    /// is asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Archive`] where it is not an archive or an unsafe one; [`Error::MissingDocument`]
    /// without `MANIFEST`; [`Error::Manifest`] and [`Error::Document`] where that or `LINKS` is
    /// broken.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Reads a carton that is in memory; nothing is copied.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::options().from_bytes(bytes)
    }

    /// Reads a carton from any source: memory, a file, a mapping, the caller's store.
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

    /// Returns the files and their digests.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.inner.manifest
    }

    /// Returns the digest of `MANIFEST`, which identifies the model whatever its archive.
    #[must_use]
    pub fn model_hash(&self) -> Sha256 {
        self.manifest().model_hash()
    }

    /// Returns where files may be fetched; `None` where there is no `LINKS`.
    #[must_use]
    pub fn links(&self) -> Option<&Links> {
        self.inner.links.as_ref()
    }

    /// Returns `carton.toml`, which is read and parsed once.
    ///
    /// # Errors
    ///
    /// [`Error::MissingDocument`]; [`Error::Document`] where it is broken; as for [`File::bytes`](crate::File::bytes).
    pub fn description(&self) -> Result<&Description> {
        Ok(&self.parsed()?.description)
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

    pub(crate) fn read_options(&self) -> &ReadOptions {
        &self.inner.options
    }

    /// Returns the ceilings on what the file may make the reader do.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.options.limits
    }

    pub(crate) fn parsed(&self) -> Result<&ParsedDescription> {
        if let Some(parsed) = self.inner.description.get() {
            return Ok(parsed);
        }
        let file = self.file(CARTON_TOML);
        let file = file.ok_or(Error::MissingDocument { path: CARTON_TOML })?;
        Description::check_len(file.stored()?.len(), self.limits())?;
        let parsed = Description::parse(&file.bytes()?, self.limits())?;
        Ok(self.inner.description.get_or_init(|| parsed))
    }

    pub(crate) fn index_cell(&self) -> &OnceLock<Index> {
        &self.inner.index
    }

    fn fetched(&self) -> std::sync::MutexGuard<'_, VecDeque<(Sha256, Source)>> {
        self.inner.fetched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a carton is opened.
///
/// # Examples
///
/// ```no_run
/// use carton_format::{Reader, tensor_core::Verify};
///
/// let reader = Reader::options().verify(Verify::Never).open("model.carton")?;
/// # Ok::<(), carton_format::Error>(())
/// ```
#[derive(Clone)]
pub struct ReadOptions {
    pub(crate) limits: Limits,
    pub(crate) profile: Profile,
    pub(crate) verify: Verify,
    fetch: Option<Arc<dyn Fetch>>,
    threads: Option<NonZeroUsize>,
}

impl ReadOptions {
    /// Sets the ceilings on what a file may make the reader do. By default a `MANIFEST` may have
    /// 256 MiB.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how much is tolerated in an archive when it is opened, and which profile
    /// [`Reader::validate`] grades its faults by; strict by default. A folder is opened in either
    /// profile.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets when digests are compared with what is read; once by default. In a folder that is every
    /// time, as the file may be another one by then. [`File::verify`](crate::File::verify) and
    /// [`Reader::validate`] compare them always.
    #[must_use]
    pub fn verify(mut self, verify: Verify) -> Self {
        self.verify = verify;
        self
    }

    /// Sets what fetches the content of files that are only linked; without it nothing is fetched.
    #[must_use]
    pub fn fetch(mut self, fetch: Arc<dyn Fetch>) -> Self {
        self.fetch = Some(fetch);
        self
    }

    /// Sets how many threads [`Reader::validate`] uses; by default as many as the system offers.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Opens a carton, or a folder with the files of one.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        if path.is_dir() {
            let folder = Folder::open(path)?.limits(self.limits);
            return self.read(folder.into());
        }
        self.from_source(Source::open(path)?)
    }

    /// Reads a carton that is in memory; nothing is copied.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_bytes(self, bytes: impl Into<Bytes>) -> Result<Reader> {
        self.from_source(Source::from_bytes(bytes))
    }

    /// Reads a carton from any source.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_source(self, source: Source) -> Result<Reader> {
        let archive = Archive::options()
            .methods(METHODS)
            .symlinks(Symlinks::Kept)
            .profile(self.profile)
            .limits(self.limits)
            .from_source(source)?;
        self.from_archive(archive)
    }

    /// Reads a carton whose archive is open already, with
    /// [symbolic links kept](model_archive::Symlinks::Kept) where it may have some. How much was
    /// tolerated when it was opened is settled; the profile is what [`Reader::validate`] grades by.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_archive(self, archive: Archive) -> Result<Reader> {
        self.read(archive.into())
    }

    pub(crate) fn thread_count(&self) -> NonZeroUsize {
        self.threads.unwrap_or_else(parallel::available)
    }

    fn read(self, storage: Storage) -> Result<Reader> {
        let document = |path, limit, what| -> Result<Option<Bytes>> {
            let Some(stored) = storage.file(path)? else { return Ok(None) };
            self.limits.check(limit, what, stored.len())?;
            Ok(Some(stored.checked_bytes()?))
        };
        let manifest = document(MANIFEST, Limit::ManifestBytes, MANIFEST_BYTES)?
            .ok_or(Error::MissingDocument { path: MANIFEST })?;
        let manifest = Manifest::parse(&manifest, &self.limits)?;
        let links = document(LINKS, Limit::MetadataBytes, LINKS_BYTES)?;
        let links = links.map(|links| Links::parse(&links, &self.limits)).transpose()?;
        let inner = Inner {
            positions: storage.archive().map(|a| positions(a, &manifest)).unwrap_or_default(),
            compared: (0..manifest.len()).map(|_| AtomicBool::new(false)).collect(),
            storage,
            manifest,
            links,
            description: OnceLock::new(),
            index: OnceLock::new(),
            fetched: Mutex::default(),
            options: self,
        };
        Ok(Reader { inner: Arc::new(inner) })
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        let limits = Limits::default().with_manifest_bytes(MANIFEST_LIMIT);
        let (profile, verify) = (Profile::default(), Verify::Once);
        Self { limits, profile, verify, fetch: None, threads: None }
    }
}

impl std::fmt::Debug for ReadOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadOptions")
            .field("limits", &self.limits)
            .field("profile", &self.profile)
            .field("verify", &self.verify)
            .field("fetch", &self.fetch.is_some())
            .field("threads", &self.threads)
            .finish()
    }
}

/// Returns for each line of a manifest the position of its entry in the archive.
fn positions(archive: &Archive, manifest: &Manifest) -> Vec<Option<usize>> {
    // Both are sorted by name.
    let files = archive.entries_below("").filter(|entry| entry.info().kind != Kind::Folder);
    let mut files = files.peekable();
    let position = |(path, _): (&str, Sha256)| {
        while files.next_if(|file| file.name() < path).is_some() {}
        files.next_if(|file| file.name() == path).map(Entry::index)
    };
    manifest.files().map(position).collect()
}

/// The methods of entries. Format text: "Carton format".
const METHODS: &[Method] = &[Method::Stored, Method::Deflate, Method::Zstd];
/// About 2.5 million files.
const MANIFEST_LIMIT: u64 = 256 << 20;
