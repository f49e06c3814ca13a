//! Opening model files.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use model_archive::Entry;
use tensor_core::{Extent, Limits, Report, Source};

use crate::{
    Bytecode, Error, Place, Result, SparseTensor, Spec, SpecOptions, Tensor,
    flat::{self, Flat},
    module,
    module::stored::{Listing, StorageId, Stored, StoredSparse},
    module::walk::{Walk, WalkFault},
    pickle::{Pickle, PickleFault},
    validate,
    zip::Container,
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
    body: Body,
    limits: Limits,
    /// Where it was opened, for a spec beside it.
    path: Option<PathBuf>,
    bytecode: OnceLock<Bytecode>,
    tensors: OnceLock<Listing>,
    is_big_endian: OnceLock<bool>,
}

#[derive(Debug)]
pub(crate) enum Body {
    Zip(Container),
    Flat(Flat),
}

/// What holds the parts of a model file together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContainerKind {
    /// A ZIP file.
    Zip,
    /// One FlatBuffer, whose bytes 4 to 8 are `PTMF`.
    FlatBuffer,
}

impl fmt::Display for ContainerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Zip => "zip",
            Self::FlatBuffer => "flatbuffer",
        })
    }
}

/// Where a spec was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecSource {
    /// In the model file.
    Embedded,
    /// In a file beside it, whose name is that of the model and `.live.spec.json`.
    SideFile(PathBuf),
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
        match self.body() {
            Body::Zip(_) => ContainerKind::Zip,
            Body::Flat(_) => ContainerKind::FlatBuffer,
        }
    }

    /// Returns the folder that all records lie below; `None` in a FlatBuffer file.
    #[must_use]
    pub fn root(&self) -> Option<&str> {
        match self.body() {
            Body::Zip(container) => Some(&container.root),
            Body::Flat(_) => None,
        }
    }

    /// Returns handles on the records of a ZIP file, in the order of its directory; a FlatBuffer
    /// file has none.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let container = match self.body() {
            Body::Zip(container) => Some(container),
            Body::Flat(_) => None,
        };
        container.into_iter().flat_map(|container| {
            container.positions().filter_map(|index| Record::new(container, index))
        })
    }

    /// Returns a handle on a record, by its name without the root folder, whatever the case of its
    /// letters; `None` where there is none.
    #[must_use]
    pub fn record(&self, name: &str) -> Option<Record<'_>> {
        let Body::Zip(container) = self.body() else { return None };
        Record::new(container, container.position(name)?)
    }

    /// Returns the names of the files of source that are kept for the full runtime: records of the
    /// folder `code/`, and what they would be named in a ZIP file where this is a FlatBuffer.
    ///
    /// # Errors
    ///
    /// [`Error::Table`] where what lists them is malformed.
    pub fn sources(&self) -> Result<Vec<String>> {
        match self.body() {
            Body::Flat(flat) => flat.sources(self.limits()),
            Body::Zip(_) => {
                let is_source = |name: &&str| name.starts_with("code/") && name.ends_with(".py");
                let names = self.records().map(Record::name).filter(is_source);
                Ok(names.map(str::to_owned).collect())
            }
        }
    }

    /// Returns handles on the extra files, in the order of the file.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn extra_files(&self) -> impl Iterator<Item = ExtraFile<'_>> {
        let flat = match self.body() {
            Body::Flat(flat) => Some(flat),
            Body::Zip(_) => None,
        };
        let inline = flat.into_iter().flat_map(|flat| &flat.extra_files).map(|file| ExtraFile {
            name: &file.name,
            content: Content::Extent(self, file.content),
        });
        let records = self.records().filter_map(|record| {
            let name = record.name.get(..EXTRA.len()).filter(|e| e.eq_ignore_ascii_case(EXTRA));
            let name = name.and_then(|_| record.name.get(EXTRA.len()..))?;
            Some(ExtraFile { name, content: Content::Record(record) })
        });
        inline.chain(records)
    }

    /// Returns an extra file, whatever the case of its letters in a ZIP file; `None` where there is
    /// none.
    #[must_use]
    pub fn extra_file(&self, name: &str) -> Option<ExtraFile<'_>> {
        match self.body() {
            Body::Flat(_) => self.extra_files().find(|file| file.name == name),
            Body::Zip(_) => {
                let record = self.record(&format!("{EXTRA}{name}"))?;
                let name = record.name.get(EXTRA.len()..)?;
                Some(ExtraFile { name, content: Content::Record(record) })
            }
        }
    }

    /// Returns the text of the embedded spec; `None` where there is none, or an empty one, which
    /// runtimes take for none.
    ///
    /// # Errors
    ///
    /// Where it cannot be read, or its checksum differs.
    pub fn spec_text(&self) -> Result<Option<Bytes>> {
        match self.extra_file(SPEC) {
            None => Ok(None),
            Some(file) => {
                let (found, limit) = (file.size(), self.limits().manifest_bytes);
                if found > limit {
                    let (what, field) = ("spec in bytes", "manifest_bytes");
                    let over = tensor_core::Error::OverLimit { what, found, limit, field };
                    return Err(over.into());
                }
                file.bytes().map(|text| Some(text).filter(|text| !text.is_empty()))
            }
        }
    }

    /// Reads the embedded spec in the profile of the format's text; `None` where there is none.
    ///
    /// # Errors
    ///
    /// As for [`spec_text`](Self::spec_text) and [`Spec::parse`].
    pub fn spec(&self) -> Result<Option<Spec>> {
        self.spec_with(&Spec::options())
    }

    /// Does as [`spec`](Self::spec) with options.
    ///
    /// # Errors
    ///
    /// As for [`spec`](Self::spec).
    pub fn spec_with(&self, options: &SpecOptions) -> Result<Option<Spec>> {
        self.spec_text()?.map(|text| options.clone().parse(text)).transpose()
    }

    /// Returns the embedded spec, or that of a file beside a model that was opened by its path, as
    /// runtimes look for them; `None` where there is neither.
    ///
    /// # Errors
    ///
    /// As for [`spec`](Self::spec).
    pub fn find_spec(&self, options: &SpecOptions) -> Result<Option<(SpecSource, Spec)>> {
        if let Some(spec) = self.spec_with(options)? {
            return Ok(Some((SpecSource::Embedded, spec)));
        }
        let side = self.inner.path.as_deref().map(side_file).filter(|path| path.exists());
        let Some(path) = side else { return Ok(None) };
        let source = Source::open(&path)?;
        let (found, limit) = (source.len(), options.limits.manifest_bytes);
        if found > limit {
            let (what, field) = ("spec in bytes", "manifest_bytes");
            return Err(tensor_core::Error::OverLimit { what, found, limit, field }.into());
        }
        let spec = options.clone().parse(source.read(Extent::first(found), "spec")?)?;
        Ok(Some((SpecSource::SideFile(path), spec)))
    }

    /// Returns the methods and their types.
    ///
    /// # Errors
    ///
    /// [`Error::NotLite`] for a file that no lite interpreter loads; [`Error::Pickle`] and
    /// [`Error::Table`] where it is malformed.
    pub fn bytecode(&self) -> Result<&Bytecode> {
        if let Some(bytecode) = self.inner.bytecode.get() {
            return Ok(bytecode);
        }
        let bytecode = match self.body() {
            Body::Flat(flat) => flat.bytecode(self.limits())?,
            Body::Zip(_) => {
                let record = self.record(BYTECODE).ok_or(Error::NotLite)?;
                let pickle = self.pickle(record)?;
                let bytecode = module::bytecode(&pickle, self.limits());
                bytecode.map_err(|fault| walk_error(BYTECODE, fault))?
            }
        };
        Ok(self.inner.bytecode.get_or_init(|| bytecode))
    }

    /// Returns handles on all tensors: those of the state, then those of the constants. Of a sparse
    /// tensor there are its parts, such as `name.indices` and `name.values`.
    ///
    /// # Errors
    ///
    /// [`Error::Pickle`] and [`Error::Table`] where what lists them is malformed.
    pub fn tensors(&self) -> Result<impl ExactSizeIterator<Item = Tensor<'_>>> {
        let stored = &self.listing()?.tensors;
        Ok(stored.iter().map(|stored| Tensor::new(self, stored)))
    }

    /// Returns handles on the tensors of which only some elements are stored.
    ///
    /// # Errors
    ///
    /// As for [`tensors`](Self::tensors).
    pub fn sparse_tensors(&self) -> Result<impl ExactSizeIterator<Item = SparseTensor<'_>>> {
        let stored: &[StoredSparse] = &self.listing()?.sparse;
        Ok(stored.iter().map(|stored| SparseTensor::new(self, stored)))
    }

    /// Returns a handle on a tensor by its [name](Tensor::name); `None` where there is none.
    ///
    /// # Errors
    ///
    /// As for [`tensors`](Self::tensors).
    pub fn tensor(&self, name: &str) -> Result<Option<Tensor<'_>>> {
        let is_it =
            |stored: &&Stored| name.strip_prefix(stored.place.prefix()) == Some(&stored.path);
        let stored = self.listing()?.tensors.iter().find(is_it);
        Ok(stored.map(|stored| Tensor::new(self, stored)))
    }

    /// Reports every fault that opening does not prove to be absent, and what someone should mend:
    /// the container, code and tensors, the spec, and whether the spec fits the method `forward`.
    ///
    /// Every record is read once, to compare its checksum.
    #[must_use]
    pub fn validate(&self) -> Report {
        validate::file(self)
    }

    /// Returns what the file is read from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.inner.source
    }

    /// Returns the version of the operators that a FlatBuffer file names; `None` in a ZIP file.
    #[must_use]
    pub fn operator_version(&self) -> Option<u32> {
        match self.body() {
            Body::Flat(flat) => Some(flat.operator_version),
            Body::Zip(_) => None,
        }
    }

    /// Returns how many storages a FlatBuffer file has; `None` in a ZIP file.
    #[must_use]
    pub fn storages(&self) -> Option<u64> {
        match self.body() {
            Body::Flat(flat) => Some(flat.storages),
            Body::Zip(_) => None,
        }
    }

    pub(crate) fn body(&self) -> &Body {
        &self.inner.body
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Tells whether numbers are stored with their most significant byte first.
    pub(crate) fn is_big_endian(&self) -> bool {
        *self.inner.is_big_endian.get_or_init(|| {
            let order = self.record("byteorder").filter(|record| record.size() <= 16);
            order.is_some_and(|record| record.bytes().is_ok_and(|text| text.trim_ascii() == b"big"))
        })
    }

    /// Finds what holds a storage; `None` where nothing does.
    pub(crate) fn storage(&self, storage: &StorageId) -> Result<Option<Holder<'_>>> {
        match (self.body(), storage) {
            (Body::Zip(_), StorageId::Record { name, .. }) => {
                Ok(self.record(name).map(Holder::Record))
            }
            (Body::Flat(flat), StorageId::Index(index)) => {
                Ok(flat.storage(*index)?.map(Holder::Extent))
            }
            _ => Ok(None),
        }
    }

    fn listing(&self) -> Result<&Listing> {
        if let Some(listing) = self.inner.tensors.get() {
            return Ok(listing);
        }
        let listing = match self.body() {
            Body::Flat(flat) => flat.tensors(self.limits())?,
            Body::Zip(_) => {
                let mut listing = Listing::new(self.limits());
                self.walk(DATA, Place::State, "data/", &mut listing)?;
                self.walk(CONSTANTS, Place::Constants, "constants/", &mut listing)?;
                self.walk_code(&mut listing)?;
                listing
            }
        };
        Ok(self.inner.tensors.get_or_init(|| listing))
    }

    fn walk(
        &self,
        name: &'static str,
        place: Place,
        folder: &'static str,
        listing: &mut Listing,
    ) -> Result<()> {
        let Some(record) = self.record(name) else { return Ok(()) };
        let pickle = self.pickle(record)?;
        let walk = Walk::new(&pickle, place, folder, self.limits(), listing);
        walk.run().map_err(|fault| walk_error(name, fault))
    }

    /// Lists what only the code of the lite interpreter has. Code that cannot be read has no
    /// constants that could be listed; [`bytecode`](Self::bytecode) says why.
    fn walk_code(&self, listing: &mut Listing) -> Result<()> {
        let Some(Ok(pickle)) = self.record(BYTECODE).map(|record| self.pickle(record)) else {
            return Ok(());
        };
        let Ok(constants) = module::constants(&pickle, self.limits()) else { return Ok(()) };
        // PyTorch looks for all of them where it finds one.
        let is_own = |record: Record<'_>| record.name().starts_with("bytecode/");
        let folder = if self.records().any(is_own) { "bytecode/" } else { "constants/" };
        let walk = Walk::new(&pickle, Place::Bytecode, folder, self.limits(), listing);
        walk.constants(&constants).map_err(|fault| walk_error(BYTECODE, fault))
    }

    fn pickle(&self, record: Record<'_>) -> Result<Pickle> {
        let (found, limit) = (record.size(), self.limits().document_bytes);
        if found > limit {
            let (what, field) = ("pickle in bytes", "document_bytes");
            return Err(tensor_core::Error::OverLimit { what, found, limit, field }.into());
        }
        let bytes = record.checked_bytes()?;
        Pickle::parse(bytes).map_err(|(at, fault)| pickle_error(record.name(), at, fault))
    }
}

fn walk_error(record: &str, fault: WalkFault) -> Error {
    match fault {
        WalkFault::Pickle(fault) => pickle_error(record, 0, fault),
        WalkFault::Core(error) => error.into(),
    }
}

fn pickle_error(record: &str, at: u64, fault: PickleFault) -> Error {
    Error::Pickle { record: record.to_owned(), at, fault }
}

/// Returns where runtimes look for the spec of a model that has none in it: its name and
/// `.live.spec.json`.
#[must_use]
pub fn side_file(model: &Path) -> PathBuf {
    let mut name = model.as_os_str().to_owned();
    name.push(".live.spec.json");
    name.into()
}

/// What holds the bytes of a storage.
pub(crate) enum Holder<'a> {
    Record(Record<'a>),
    Extent(Extent),
}

/// A handle on a record of a ZIP file.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    name: &'a str,
    entry: Entry<'a>,
}

impl<'a> Record<'a> {
    fn new(container: &'a Container, index: usize) -> Option<Self> {
        let (name, entry) = (container.name_at(index)?, container.archive.entry_at(index)?);
        Some(Self { name, entry })
    }

    /// Returns its name without the root folder.
    #[must_use]
    pub const fn name(self) -> &'a str {
        self.name
    }

    /// Returns the bytes of its content.
    #[must_use]
    pub fn size(self) -> u64 {
        self.entry.info().size
    }

    /// Returns the bytes that it takes in the file, headers not counted.
    #[must_use]
    pub fn stored_size(self) -> u64 {
        self.entry.info().stored_size
    }

    /// Returns whether it is stored by DEFLATE.
    #[must_use]
    pub fn is_compressed(self) -> bool {
        self.entry.info().method != model_archive::Method::Stored
    }

    /// Returns where its stored bytes are in the file.
    ///
    /// # Errors
    ///
    /// [`Error::Archive`] where its local header is malformed.
    pub fn extent(self) -> Result<Extent> {
        Ok(self.entry.extent()?)
    }

    /// Returns its content: a slice of the file without a copy where it is stored as it is and in
    /// memory; no checksum is compared then.
    ///
    /// # Errors
    ///
    /// [`Error::Archive`] where it cannot be read or decoded.
    pub fn bytes(self) -> Result<Bytes> {
        Ok(self.entry.bytes()?)
    }

    /// Returns its content, whose checksum was compared.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes), and where the checksum differs.
    pub fn checked_bytes(self) -> Result<Bytes> {
        Ok(self.entry.checked_bytes()?)
    }

    /// Reads all of it and compares size and checksum.
    ///
    /// # Errors
    ///
    /// As for [`checked_bytes`](Self::checked_bytes).
    pub fn verify(self) -> Result<()> {
        Ok(self.entry.verify()?)
    }
}

/// A handle on an extra file: what the author of a model put beside it.
#[derive(Clone, Copy, Debug)]
pub struct ExtraFile<'a> {
    name: &'a str,
    content: Content<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Content<'a> {
    Record(Record<'a>),
    Extent(&'a Reader, Extent),
}

impl<'a> ExtraFile<'a> {
    /// Returns its name, such as `model/live.spec.json`.
    #[must_use]
    pub const fn name(self) -> &'a str {
        self.name
    }

    /// Returns the bytes of its content.
    #[must_use]
    pub fn size(self) -> u64 {
        match self.content {
            Content::Record(record) => record.size(),
            Content::Extent(_, extent) => extent.len(),
        }
    }

    /// Returns its content; in a ZIP file its checksum is compared.
    ///
    /// # Errors
    ///
    /// [`Error::Archive`] where it cannot be read.
    pub fn bytes(self) -> Result<Bytes> {
        match self.content {
            Content::Record(record) => record.checked_bytes(),
            Content::Extent(reader, extent) => Ok(reader.source().read(extent, "extra file")?),
        }
    }
}

/// How a file is opened and read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadOptions {
    limits: Limits,
}

impl ReadOptions {
    /// Sets what the file may make the reader do.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Does as [`Reader::open`] with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        self.read(Source::open(path)?, Some(path.to_owned()))
    }

    /// Does as [`Reader::from_bytes`] with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_bytes(self, bytes: impl Into<Bytes>) -> Result<Reader> {
        self.from_source(Source::from_bytes(bytes))
    }

    /// Does as [`Reader::from_source`] with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_source(self, source: Source) -> Result<Reader> {
        self.read(source, None)
    }

    fn read(self, source: Source, path: Option<PathBuf>) -> Result<Reader> {
        let Self { limits } = self;
        let start = source.read(Extent::first(source.len().min(8)), "first bytes")?;
        let body = if flat::is_flat(&start) {
            let (found, limit) = (source.len(), i32::MAX as u64);
            if found > limit {
                return Err(Error::TooLong { found });
            }
            Body::Flat(Flat::parse(source.clone(), &limits)?)
        } else {
            Body::Zip(Container::open(&source, &limits)?)
        };
        let inner = Inner {
            source,
            body,
            limits,
            path,
            bytecode: OnceLock::new(),
            tensors: OnceLock::new(),
            is_big_endian: OnceLock::new(),
        };
        Ok(Reader { inner: Arc::new(inner) })
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { limits: Limits::default().with_manifest_bytes(64 << 20) }
    }
}

/// The folder of extra files below the root.
pub(crate) const EXTRA: &str = "extra/";
/// The name of the spec among the extra files. Format text: "Model Specification".
pub const SPEC: &str = "model/live.spec.json";
pub(crate) const BYTECODE: &str = "bytecode.pkl";
pub(crate) const DATA: &str = "data.pkl";
const CONSTANTS: &str = "constants.pkl";
