use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
#[cfg(feature = "archive")]
use model_archive::Archive;
use serde_json::Value;
use tensor_core::{
    DType, Error as Core, Extent, Finding, Limits, Profile, Report, Shape, Source, TensorInfo,
    Verify,
};

#[cfg(feature = "archive")]
use super::npz;
use super::{
    ElementType, Error, Result, Tensor,
    contents::{Contents, Plain},
    gguf, npy, safetensors, shards,
};
use crate::Format;

/// An open file of named tensors, or an index with the shards that it leads to.
#[derive(Clone, Debug)]
pub struct Reader {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    format: Format,
    /// The file, or the shards.
    pub(super) sources: Vec<Source>,
    /// The file, where it is an archive.
    #[cfg(feature = "archive")]
    pub(super) archive: Option<Archive>,
    pub(super) limits: Limits,
    contents: Contents,
    /// Where names stand among the entries.
    names: HashMap<String, usize>,
}

/// How a file of named tensors is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    limits: Limits,
    verify: Verify,
}

impl ReadOptions {
    /// Sets the ceilings on what a file may make the reader do.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets whether tensors of an archive are compared with its checksums: those that are compressed
    /// always are, others at every read, unless this is [`Verify::Never`], as it is by default.
    #[must_use]
    pub const fn verify(mut self, verify: Verify) -> Self {
        self.verify = verify;
        self
    }

    /// Opens a file; the shards of an index are those beside it.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] where it breaks its format; [`Error::Unsupported`] where it is of another;
    /// [`Error::Core`] where it cannot be read.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        let source = Source::open(path)?;
        if format_of(&source)? == Some(Format::Safetensors) || !shards::sniff(&source)? {
            return self.from_source(source);
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        shards::open(&source, &|name| Source::open(folder.join(name)), self.limits)
    }

    /// Like [`open`](Self::open), but with a file that is in memory, which is not copied.
    ///
    /// # Errors
    ///
    /// As for [`from_source`](Self::from_source).
    pub fn from_bytes(self, bytes: impl Into<Bytes>) -> Result<Reader> {
        self.from_source(Source::from_bytes(bytes))
    }

    /// Like [`open`](Self::open), but with any source.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open), and [`Error::Unsupported`] for an index of shards.
    pub fn from_source(self, source: Source) -> Result<Reader> {
        let format = format_of(&source)?;
        let contents = match format {
            Some(Format::Gguf) => gguf::parse(&source, &self.limits)?,
            Some(Format::Npy) => npy::parse(&source)?,
            Some(Format::Safetensors) => safetensors::parse(&source, &self.limits)?,
            #[cfg(feature = "archive")]
            _ if Archive::sniff(&source)? => {
                // NumPy streams: sizes stand behind the data.
                let options = Archive::options().profile(Profile::Lenient).limits(self.limits);
                return self.from_archive(options.from_source(source)?);
            }
            _ if shards::sniff(&source)? => {
                let what = "file is an index of shards, which are found by its path".to_owned();
                return Err(Error::Unsupported { what });
            }
            _ => {
                let what = "file is none of safetensors, GGUF, npy and npz".to_owned();
                return Err(Error::Unsupported { what });
            }
        };
        Inner::new(format.unwrap_or(Format::Gguf), vec![source], self.limits, contents)?.finish()
    }

    /// Opens an archive of `NumPy` that was opened as an archive already.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    #[cfg(feature = "archive")]
    pub fn from_archive(self, archive: Archive) -> Result<Reader> {
        let contents = npz::parse(&archive, &self.limits, self.verify)?;
        let sources = vec![archive.source().clone()];
        let inner = Inner::new(Format::Npz, sources, self.limits, contents)?;
        Inner { archive: Some(archive), ..inner }.finish()
    }
}

impl Reader {
    /// Opens a file; the shards of an index are those beside it.
    ///
    /// # Errors
    ///
    /// As for [`ReadOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Like [`open`](Self::open), but with a file that is in memory, which is not copied.
    ///
    /// # Errors
    ///
    /// As for [`ReadOptions::from_source`].
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::options().from_bytes(bytes)
    }

    /// Like [`open`](Self::open), but with any source.
    ///
    /// # Errors
    ///
    /// As for [`ReadOptions::from_source`].
    pub fn from_source(source: Source) -> Result<Self> {
        Self::options().from_source(source)
    }

    /// Opens a file that holds the elements of one tensor and nothing else, little-endian and
    /// row-major, as if the header of an `npy` file stood before them.
    ///
    /// # Errors
    ///
    /// [`Error::Core`] where the file has another length than such a tensor.
    pub fn from_elements(source: Source, dtype: DType, shape: Shape) -> Result<Self> {
        let expected = shape.byte_len(dtype)?;
        if expected != source.len() {
            let found = source.len();
            return Err(tensor_core::Error::WrongLength { shape, dtype, expected, found }.into());
        }
        let contents = npy::elements(dtype, shape, Extent::first(source.len()));
        Inner::new(Format::Npy, vec![source], Limits::default(), contents)?.finish()
    }

    /// Returns the options of opening, to be set and opened with.
    #[must_use]
    pub fn options() -> ReadOptions {
        ReadOptions::default()
    }

    /// Returns the format: safetensors, GGUF, `npy` or `npz`.
    #[must_use]
    pub fn format(&self) -> Format {
        self.inner.format
    }

    /// Returns the version that the file says; empty where the format has none.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.inner.contents.version
    }

    /// Returns the names of the shards, which are files beside an index; none of other files.
    #[must_use]
    pub fn shards(&self) -> &[String] {
        &self.inner.contents.shards
    }

    /// Returns the metadata by key. Of lists of more than 64 elements, such as vocabularies, only how
    /// long they are.
    #[must_use]
    pub fn metadata(&self) -> &BTreeMap<String, Value> {
        &self.inner.contents.metadata
    }

    /// Returns where the value of a key stands with its type, in GGUF.
    pub(crate) fn stored_metadata(&self, key: &str) -> Option<Source> {
        let extent = *self.inner.contents.stored.get(key)?;
        self.source()?.window(extent, "value").ok()
    }

    /// Returns what the file is read from; `None` where there are shards.
    #[must_use]
    pub fn source(&self) -> Option<&Source> {
        self.inner.sources.first().filter(|_| self.inner.sources.len() == 1)
    }

    /// Stands on tensors that are in no file, each with a source that holds its elements,
    /// little-endian, row-major and nothing else: to convert, compare or hash them like those of one.
    ///
    /// # Errors
    ///
    /// [`Core::WrongLength`](tensor_core::Error::WrongLength) where a source has another length than its
    /// tensor; [`Error::Malformed`] where two have one name.
    ///
    /// # Examples
    ///
    /// ```
    /// use modelcrate::{AnyReader, ConvertOptions, Target, weights};
    /// use tensor_core::{DType, Source, TensorBuf, TensorInfo};
    ///
    /// let bias = TensorBuf::from_vec([2], vec![0.5_f32, 1.5])?;
    /// let source = Source::from_bytes(bias.bytes().clone());
    /// let reader = weights::Reader::of_tensors([("bias".to_owned(), bias.info().clone(), source)])?;
    ///
    /// let reader = AnyReader::Weights(reader);
    /// let set = reader.tensor_set()?;
    /// let conversion = set.convert_to(Target::Safetensors, &ConvertOptions::default()).unwrap();
    /// let file = conversion.files().next().unwrap().write(Vec::new(), |_| ())?;
    /// assert_eq!(AnyReader::from_bytes(file)?.tensor("bias")?.unwrap().read()?.to_vec::<f32>()?, [0.5, 1.5]);
    /// # Ok::<(), modelcrate::Error>(())
    /// ```
    pub fn of_tensors(
        tensors: impl IntoIterator<Item = (String, TensorInfo, Source)>,
    ) -> Result<Self> {
        let (mut contents, mut sources) = (Contents::default(), Vec::new());
        for (name, TensorInfo { dtype, shape }, source) in tensors {
            let (expected, found) = (shape.byte_len(dtype)?, source.len());
            if expected != found {
                return Err(Core::WrongLength { shape, dtype, expected, found }.into());
            }
            let (element_type, extent) = (ElementType::Plain(dtype), Extent::first(found));
            let tensor = Plain { name, element_type, shape, extent };
            contents.entries.push(tensor.in_source(sources.len()));
            sources.push(source);
        }
        // Of all formats of named tensors the one that has no rules of its own for what they are.
        Inner::new(Format::Safetensors, sources, Limits::default(), contents)?.finish()
    }

    /// Returns the bytes of the file, or of all shards.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.inner.sources.iter().map(Source::len).fold(0, u64::saturating_add)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Returns handles on all tensors: of safetensors in the order of their data, of GGUF in that of
    /// the header.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn tensors(&self) -> impl Iterator<Item = Tensor<'_>> {
        self.inner.contents.entries.iter().map(|entry| Tensor { reader: self, entry })
    }

    /// Returns a handle on the tensor of a name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let entry = self.inner.contents.entries.get(*self.inner.names.get(name)?)?;
        Some(Tensor { reader: self, entry })
    }

    /// Reports what can be said without touching the data of tensors.
    #[must_use]
    pub fn lint(&self) -> Report {
        self.inner.contents.findings.clone()
    }

    /// Checks every rule over every byte: there is no digest, so what is checked of the data is that
    /// they can be read, and that truth values are such.
    #[must_use]
    pub fn validate(&self) -> Report {
        self.validate_with(|_| ())
    }

    /// Like [`validate`](Self::validate), but tells `progress` how many bytes were done each time
    /// some are.
    pub fn validate_with(&self, progress: impl Fn(u64)) -> Report {
        self.check(|_| true, progress)
    }

    /// Like [`validate_with`](Self::validate_with), for who reads all numbers as well: these are left
    /// out.
    #[cfg(feature = "page")]
    pub(crate) fn validate_beside_reads(&self, progress: impl Fn(u64)) -> Report {
        let is_number = |dtype: DType| dtype != DType::Bool && dtype.bits().is_some();
        let is_read = |tensor: &Tensor<'_>| match tensor.element_type() {
            ElementType::Plain(dtype) => !is_number(dtype),
            _ => true,
        };
        self.check(is_read, progress)
    }

    fn check(&self, is_read: impl Fn(&Tensor<'_>) -> bool, progress: impl Fn(u64)) -> Report {
        #[cfg(feature = "archive")]
        if let Some(archive) = &self.inner.archive {
            // Checksums first; what is wrong with one is said once.
            let report = archive.validate();
            if !report.is_valid() {
                return report;
            }
        }
        let mut report = self.lint();
        for tensor in self.tensors().filter(is_read) {
            if let Err(error) = tensor.check(&progress) {
                let message = format!("tensor {:?}: {}", tensor.name(), tensor_core::Chain(&error));
                report.add(
                    Finding::error(error.rule(), message).at(error.at().tensor(tensor.name())),
                );
            }
        }
        report
    }
}

impl Inner {
    pub(super) fn new(
        format: Format,
        sources: Vec<Source>,
        limits: Limits,
        contents: Contents,
    ) -> Result<Self> {
        let mut names = HashMap::with_capacity(contents.entries.len());
        for (index, entry) in contents.entries.iter().enumerate() {
            if names.insert(entry.name.clone(), index).is_some() {
                let reason = format!("tensor {:?} stands twice, expected once", entry.name);
                return Err(Error::malformed("weights/duplicate-name", 0, reason));
            }
        }
        #[cfg(feature = "archive")]
        let archive = None;
        Ok(Self {
            format,
            sources,
            #[cfg(feature = "archive")]
            archive,
            limits,
            contents,
            names,
        })
    }

    pub(super) fn finish(self) -> Result<Reader> {
        Ok(Reader { inner: Arc::new(self) })
    }
}

/// Tells which format a file starts as.
fn format_of(source: &Source) -> Result<Option<Format>> {
    let start = source.read(Extent::first(source.len().min(16)), "start of the file")?;
    if start.starts_with(gguf::MAGIC) {
        return Ok(Some(Format::Gguf));
    }
    if start.starts_with(npy::MAGIC) {
        return Ok(Some(Format::Npy));
    }
    Ok(safetensors::sniff(&start).then_some(Format::Safetensors))
}

/// Tells whether a file is one of these, an index of shards among them, by its first bytes.
pub(crate) fn sniff(source: &Source) -> Result<Option<Format>> {
    match format_of(source)? {
        None if shards::sniff(source)? => Ok(Some(Format::Safetensors)),
        found => Ok(found),
    }
}
