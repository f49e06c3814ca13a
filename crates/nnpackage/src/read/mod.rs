//! Opening packages.

pub(crate) mod content;
pub(crate) mod file;
pub(crate) mod model_file;
pub(crate) mod storage;

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use model_archive::{Archive, Method, Profile};
use tensor_core::{Limits, Report, Source};

use crate::{
    Config, Content, CustomOp, Diagnosis, Error, File, GoldenData, Manifest, ModelFile, ModelInfo,
    Reaction, Result, Sums, golden,
    manifest::Parsed,
    read::storage::{Folder, MANIFEST, Storage},
    sums, validate,
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

    /// Returns handles on the models, in the order of the manifest.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn models(&self) -> impl ExactSizeIterator<Item = ModelFile<'_>> {
        (0..self.manifest().models.len()).map(|index| ModelFile::new(self, index))
    }

    /// Returns a handle on the model of a position in the manifest; `None` where there are not as
    /// many.
    #[must_use]
    pub fn model(&self, index: usize) -> Option<ModelFile<'_>> {
        (index < self.manifest().models.len()).then(|| ModelFile::new(self, index))
    }

    /// Returns the configuration that onert reads: the first one of the manifest. `None` where it
    /// names none.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where it is not in the package; [`Error::Core`] where it is over the limit.
    pub fn config(&self) -> Result<Option<Config>> {
        let Some(path) = self.config_path() else { return Ok(None) };
        Ok(Some(Config::parse(&File::new(self, &path).document("configuration file in bytes")?)))
    }

    /// Returns the path of that configuration from the root of the package.
    #[must_use]
    pub fn config_path(&self) -> Option<String> {
        self.manifest().config().map(|name| format!("metadata/{name}"))
    }

    /// Returns handles on the files in the folder `custom_op`, sorted by path.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where a folder cannot be listed.
    pub fn custom_ops(&self) -> Result<impl Iterator<Item = CustomOp<'_>>> {
        let files = self.files()?;
        Ok(files.filter(|file| file.path().starts_with("custom_op/")).map(CustomOp::new))
    }

    /// Reads the information about models in `metadata/*.json`, sorted by path.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where a folder cannot be listed; for each file as for [`ModelInfo::parse`].
    pub fn model_infos(&self) -> Result<impl Iterator<Item = (File<'_>, Result<ModelInfo>)>> {
        let read = |file: File<'_>| {
            let bytes = file.document("model information in bytes")?;
            ModelInfo::parse(&bytes, self.limits())
        };
        let files = self.files()?.filter(|file| is_model_info(file.path()));
        Ok(files.map(move |file| (file, read(file))))
    }

    /// Returns a handle on the golden data that go in; `None` where there are none.
    #[must_use]
    pub fn golden_input(&self) -> Option<GoldenData<'_>> {
        GoldenData::of(self, golden::INPUT)
    }

    /// Returns a handle on the golden data that have to come out; `None` where there are none.
    #[must_use]
    pub fn golden_expected(&self) -> Option<GoldenData<'_>> {
        GoldenData::of(self, golden::EXPECTED)
    }

    /// Reads the list of digests; `None` where there is none.
    ///
    /// # Errors
    ///
    /// As for [`Sums::parse`]; [`Error::Core`] where it is over the limit.
    pub fn sums(&self) -> Result<Option<Sums>> {
        let Some(file) = self.file(Sums::PATH) else { return Ok(None) };
        Ok(Some(Sums::parse(&file.document("SHA256SUMS in bytes")?)?))
    }

    /// Returns handles on all files, sorted by path.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where a folder cannot be listed.
    pub fn files(&self) -> Result<impl Iterator<Item = File<'_>>> {
        Ok(self.paths()?.iter().map(|path| File::new(self, path)))
    }

    /// Returns a handle on the file of a path; `None` where there is none that may be read.
    #[must_use]
    pub fn file<'a>(&'a self, path: &'a str) -> Option<File<'a>> {
        let file = File::new(self, path);
        file.len().is_ok().then_some(file)
    }

    /// Reports every fault: of the archive, the manifest, configurations, models and kernels, and
    /// how they fit together. Bytes of constants are not read; [`verify`](Self::verify) reads them.
    #[must_use]
    pub fn validate(&self) -> Report {
        let mut report = self.archive_report();
        for diagnosis in self.check() {
            diagnosis.report_to(&mut report);
        }
        report
    }

    /// Does as [`validate`](Self::validate), and compares every file with the checksum of the
    /// archive, and with the list of digests, where there is one.
    #[must_use]
    pub fn verify(&self) -> Report {
        let mut report = self.validate();
        let Some(archive) = self.archive() else {
            sums::verify(self, &mut report);
            return report;
        };
        if let Err(error) = archive.check_total() {
            Error::from(error).report_to(tensor_core::Severity::Error, &mut report);
            return report;
        }
        for entry in archive.entries() {
            if let Err(error) = entry.verify() {
                error.report_to(&mut report, Profile::Strict, Some(entry.name()));
            }
        }
        sums::verify(self, &mut report);
        report
    }

    /// Finds what [`validate`](Self::validate) reports about everything but the archive, with what
    /// onert does about each thing.
    #[must_use]
    pub fn check(&self) -> Vec<Diagnosis> {
        validate::package(self)
    }

    /// Returns what stops onert 0.1.0 on the unpacked package, or makes it go wrong, as far as that
    /// follows from what is in it; `None` where nothing does. Whoever has the diagnoses already asks
    /// [`Diagnosis::forecast`].
    #[must_use]
    pub fn forecast(&self) -> Option<Reaction> {
        Diagnosis::forecast(&self.check())
    }

    /// Returns the archive; `None` for a folder.
    #[must_use]
    pub fn archive(&self) -> Option<&Archive> {
        self.storage().archive()
    }

    fn archive_report(&self) -> Report {
        self.archive()
            .map(|archive| archive.check_as(self.inner.options.graded))
            .unwrap_or_default()
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.inner.storage
    }

    pub(crate) fn parsed(&self) -> &Parsed {
        &self.inner.parsed
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.options.limits
    }

    pub(crate) fn paths(&self) -> Result<&[String]> {
        if let Some(paths) = self.inner.paths.get() {
            return Ok(paths);
        }
        let paths = self.storage().paths()?;
        Ok(self.inner.paths.get_or_init(|| paths))
    }

    /// Returns the models that the manifest names, each path once.
    pub(crate) fn distinct_models(&self) -> impl Iterator<Item = ModelFile<'_>> {
        let first = self.inner.first.iter().enumerate();
        let first = first.filter(|(index, first)| index == *first);
        first.map(|(index, _)| ModelFile::new(self, index))
    }

    pub(crate) fn model_reader(&self, index: usize) -> Result<&circle_format::Reader> {
        let index = self.inner.first.get(index).copied().unwrap_or(index);
        let slot = self.inner.models.get(index);
        if let Some(reader) = slot.and_then(OnceLock::get) {
            return Ok(reader);
        }
        // What is compressed stays in memory, so all of it together has to be within bounds.
        self.archive().map(Archive::check_total).transpose()?;
        let file = ModelFile::new(self, index).file();
        let reader =
            circle_format::Reader::options().limits(*self.limits()).from_source(file.source()?)?;
        match slot {
            Some(slot) => Ok(slot.get_or_init(|| reader)),
            // Handles are made for models that there are.
            None => Err(Error::ModelsMissing),
        }
    }
}

/// Returns for each path the position of the first one that is equal.
fn first_of_path(paths: &[String]) -> Vec<usize> {
    let mut seen = HashMap::new();
    let first = paths.iter().enumerate().map(|(index, path)| *seen.entry(path).or_insert(index));
    first.collect()
}

/// Tells whether a file says something about a model.
pub(crate) fn is_model_info(path: &str) -> bool {
    let name = path.strip_prefix("metadata/");
    name.is_some_and(|name| !name.contains('/') && name.ends_with(".json"))
}

/// How a package is opened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReadOptions {
    limits: Limits,
    profile: Profile,
    graded: Profile,
}

impl ReadOptions {
    /// Sets the ceilings on what a package may make the reader do. By default a manifest and a
    /// configuration file may have 1 MiB each.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how much is put up with in the archive; strict by default.
    #[must_use]
    pub const fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets which profile [`Reader::validate`] grades findings of the archive by; strict by
    /// default.
    #[must_use]
    pub const fn graded(mut self, profile: Profile) -> Self {
        self.graded = profile;
        self
    }

    /// Opens an archive or a folder.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        if path.is_dir() {
            return self.read(Storage::Folder(Folder::open(path)?));
        }
        self.from_source(Source::open(path)?)
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
        self.read(Storage::of_archive(archive)?)
    }

    fn read(self, storage: Storage) -> Result<Reader> {
        let manifest = storage.file(MANIFEST, &self.limits)?;
        let manifest = manifest.ok_or(Error::ManifestMissing { found: None })?;
        let bytes = manifest.document("MANIFEST in bytes", self.limits.document_bytes)?;
        let parsed = Parsed::of(&bytes, &self.limits)?;
        let models = parsed.manifest.models.iter().map(|_| OnceLock::new()).collect();
        let first = first_of_path(&parsed.manifest.models);
        let paths = OnceLock::new();
        let inner = Inner { storage, parsed, paths, models, first, options: self };
        Ok(Reader { inner: Arc::new(inner) })
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default().with_document_bytes(DOCUMENT_BYTES),
            profile: Profile::Strict,
            graded: Profile::Strict,
        }
    }
}

/// Bytes of a document that readers take by default, and that writers stay within.
const DOCUMENT_BYTES: u64 = 1 << 20;

/// Refuses to write a document that readers do not take by default.
pub(crate) fn check_document(what: &'static str, text: &[u8]) -> Result<()> {
    crate::error::check_bytes(what, text.len() as u64, DOCUMENT_BYTES, "document_bytes")
}

/// Format text: "Packaging Format".
const METHODS: &[Method] = &[Method::Stored, Method::Deflate];
