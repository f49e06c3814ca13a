use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    path::Path,
};

use bytes::Bytes;
use tensor_core::{Error as Core, ErrorKind, Report, Source};

#[cfg(feature = "ptl")]
use crate::SpecFile;
#[cfg(feature = "circle")]
use crate::formats::circle;
use crate::{
    AnyTensor, Error, Format, ReadOptions, Summary, SummaryOptions,
    detect::{Found, looks_like, model_folder},
    each::each,
    error::Result,
    formats::{Described as _, Tensors},
    options::options_of,
    weights,
};

/// An open file of any format that this build knows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyReader {
    /// A carton.
    #[cfg(feature = "carton")]
    Carton(carton_format::Reader),
    /// A Circle or TFLite model.
    #[cfg(feature = "circle")]
    Circle(circle_format::Reader),
    /// An nnpackage.
    #[cfg(feature = "nnpackage")]
    NnPackage(nnpackage::Reader),
    /// A PyTorch Live model.
    #[cfg(feature = "ptl")]
    Ptl(ptl_spec::Reader),
    /// A PyTorch Live spec in a file of its own.
    #[cfg(feature = "ptl")]
    PtlSpec(Box<SpecFile>),
    /// An RTen model.
    #[cfg(feature = "rten")]
    Rten(rten_format::Reader),
    /// A file of named tensors: safetensors, GGUF, `npy` or `npz`.
    Weights(weights::Reader),
    /// A zTensor file.
    #[cfg(feature = "ztensor")]
    ZTensor(ztensor::Reader),
}

impl ReadOptions {
    /// Opens a file, or the folder of a carton or an nnpackage, of any format that this build knows.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownFormat`]; as for the reader of the format.
    pub fn open(self, path: impl AsRef<Path>) -> Result<AnyReader> {
        let path = path.as_ref();
        self.open_beside(path, &|name| Source::open(path.with_file_name(name)))
    }

    /// Like [`open`](Self::open), but `beside` opens the other files of the folder.
    pub(crate) fn open_beside(self, path: &Path, beside: &Beside<'_>) -> Result<AnyReader> {
        match model_folder(path) {
            #[cfg(feature = "carton")]
            Some(Format::Carton) => {
                Ok(AnyReader::Carton(options_of!(carton_format::Reader, self).open(path)?))
            }
            #[cfg(feature = "nnpackage")]
            Some(Format::NnPackage) => {
                Ok(AnyReader::NnPackage(options_of!(nnpackage::Reader, self).open(path)?))
            }
            _ => Source::open_for(path, |source| {
                self.from_source_beside(path.file_name().unwrap_or_default(), source, beside)
            }),
        }
    }

    /// Like [`open`](Self::open), but with a file that is in memory, which is not copied.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_bytes(self, bytes: impl Into<Bytes>) -> Result<AnyReader> {
        self.from_source(Source::from_bytes(bytes))
    }

    /// Like [`open`](Self::open), but with any source.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_source(self, source: Source) -> Result<AnyReader> {
        self.read(source, None)
    }

    /// Like [`open`](Self::open), but with any source, beside which `beside` opens other files by their
    /// names: the shards of an index, and those of a zTensor file of this name.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open) and `beside`.
    pub fn from_source_beside(
        self,
        name: impl AsRef<OsStr>,
        source: Source,
        beside: &Beside<'_>,
    ) -> Result<AnyReader> {
        self.read(source, Some((name.as_ref(), beside)))
    }

    fn read(self, source: Source, beside: Option<(&OsStr, &Beside<'_>)>) -> Result<AnyReader> {
        let found = Found::look(&source, self)?;
        match found.format {
            #[cfg(feature = "carton")]
            Some(Format::Carton) => {
                let options = options_of!(carton_format::Reader, self);
                Ok(AnyReader::Carton(match found.archive {
                    Some(archive) => options.from_archive(archive)?,
                    None => options.from_source(source)?,
                }))
            }
            #[cfg(feature = "circle")]
            Some(format @ (Format::Circle | Format::TfLite)) => {
                let reader = options_of!(circle_format::Reader, self).from_source(source);
                Ok(AnyReader::Circle(reader.map_err(|error| match format {
                    Format::TfLite => Error::TfLite(error),
                    _ => Error::Circle(error),
                })?))
            }
            #[cfg(feature = "nnpackage")]
            Some(Format::NnPackage) => {
                let options = options_of!(nnpackage::Reader, self);
                Ok(AnyReader::NnPackage(match found.archive {
                    Some(archive) => options.from_archive(archive)?,
                    None => options.from_source(source)?,
                }))
            }
            #[cfg(feature = "ptl")]
            Some(Format::Ptl) => {
                let options = options_of!(ptl_spec::Reader, self);
                Ok(AnyReader::Ptl(match found.archive {
                    Some(archive) => options.from_archive(archive)?,
                    None => options.from_source(source)?,
                }))
            }
            #[cfg(feature = "ptl")]
            Some(Format::PtlSpec) => {
                Ok(AnyReader::PtlSpec(Box::new(SpecFile::open(source, self)?)))
            }
            #[cfg(feature = "rten")]
            Some(Format::Rten) => {
                Ok(AnyReader::Rten(options_of!(rten_format::Reader, self).from_source(source)?))
            }
            Some(Format::Gguf | Format::Npy | Format::Npz | Format::Safetensors) => {
                let limits = self.limits.unwrap_or_default();
                if let (Some((_, beside)), Some(Format::Safetensors)) = (beside, found.format)
                    && weights::is_index(&source)?
                {
                    let beside = |name: &str| beside(OsStr::new(name));
                    return Ok(AnyReader::Weights(weights::open_index(&source, &beside, limits)?));
                }
                let verify = self.verify.unwrap_or_default();
                let options = weights::Reader::options().limits(limits).verify(verify);
                #[cfg(feature = "archive")]
                if let Some(archive) = found.archive {
                    return Ok(AnyReader::Weights(options.from_archive(archive)?));
                }
                Ok(AnyReader::Weights(options.from_source(source)?))
            }
            #[cfg(feature = "ztensor")]
            Some(Format::ZTensor) => {
                let reader = options_of!(ztensor::Reader, self).from_source(source)?;
                let Some((name, beside)) = beside else { return Ok(AnyReader::ZTensor(reader)) };
                let find = |shard: &str, _: &ztensor::Shard| match beside(&shard_file(name, shard))
                {
                    Ok(source) => Ok(Some(source)),
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                    Err(Core::File { source, .. }) => Err(source),
                    Err(error) => Err(io::Error::other(error)),
                };
                Ok(AnyReader::ZTensor(reader.with_shards(&find)?))
            }
            #[cfg(feature = "archive")]
            None if let Some(error) = found.refused => Err(error.into()),
            _ => Err(Error::UnknownFormat { found: looks_like(&source)? }),
        }
    }
}

/// Returns the name of the file that is a shard of a zTensor file.
#[cfg(feature = "ztensor")]
fn shard_file(name: &OsStr, shard: &str) -> OsString {
    let mut file = Path::new(name).file_stem().unwrap_or_default().to_owned();
    file.push(format!("-{shard}.zt"));
    file
}

/// What opens a file beside another one, by its name.
pub(crate) type Beside<'a> = dyn Fn(&OsStr) -> tensor_core::Result<Source> + 'a;

impl AnyReader {
    /// Opens a file, or the folder of a carton or an nnpackage, of any format that this build knows.
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
    /// As for [`ReadOptions::open`].
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::options().from_bytes(bytes)
    }

    /// Like [`open`](Self::open), but with any source.
    ///
    /// # Errors
    ///
    /// As for [`ReadOptions::open`].
    pub fn from_source(source: Source) -> Result<Self> {
        Self::options().from_source(source)
    }

    /// Returns the options of opening, to be set and opened with.
    #[must_use]
    pub fn options() -> ReadOptions {
        ReadOptions::default()
    }

    /// Returns the format of the file.
    #[must_use]
    pub fn format(&self) -> Format {
        match self {
            #[cfg(feature = "carton")]
            Self::Carton(_) => Format::Carton,
            #[cfg(feature = "circle")]
            Self::Circle(reader) => circle::format_of(reader.model().schema),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(_) => Format::NnPackage,
            #[cfg(feature = "ptl")]
            Self::Ptl(_) => Format::Ptl,
            #[cfg(feature = "ptl")]
            Self::PtlSpec(_) => Format::PtlSpec,
            #[cfg(feature = "rten")]
            Self::Rten(_) => Format::Rten,
            Self::Weights(reader) => reader.format(),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(_) => Format::ZTensor,
        }
    }

    /// Returns what the file is read from; `None` for a folder.
    #[must_use]
    #[allow(clippy::useless_conversion, reason = "some formats have an option already")]
    pub fn source(&self) -> Option<&Source> {
        each!(AnyReader: self, reader => Option::from(reader.source()))
    }

    /// Returns the names of the shards that a file of this name is read from, too: files beside it.
    #[must_use]
    pub fn shards(&self, name: impl AsRef<OsStr>) -> Vec<OsString> {
        match self {
            Self::Weights(reader) => reader.shards().iter().map(OsString::from).collect(),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(reader) => {
                let shards = reader.manifest().shards();
                shards.map(|(shard, _)| shard_file(name.as_ref(), shard)).collect()
            }
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => Vec::new(),
        }
    }

    /// Describes the file: document, tensors and, where asked for, their contents.
    ///
    /// Reads the document only, unless the options ask for digests or statistics.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "options are made for one call")]
    pub fn summary(&self, options: SummaryOptions) -> Summary {
        let mut summary = each!(AnyReader: self, reader => reader.summary());
        self.add_contents(&options, &mut summary);
        summary
    }

    /// Returns the metadata of the file by key, as far as they can be read.
    #[must_use]
    pub fn metadata(&self) -> BTreeMap<String, serde_json::Value> {
        each!(AnyReader: self, reader => reader.metadata_of())
    }

    /// Checks every rule of the format over every byte, tensor data included.
    #[must_use]
    pub fn validate(&self) -> Report {
        self.validate_with(|_| ())
    }

    /// Like [`validate`](Self::validate), but tells `progress` how many bytes were done each time
    /// some are: [`byte_len`](Self::byte_len) in all.
    pub fn validate_with(&self, progress: impl Fn(u64) + Sync) -> Report {
        each!(AnyReader: self, reader => reader.validate_with(progress))
    }

    /// Reports what can be said without touching tensor data: a part of what
    /// [`validate`](Self::validate) does.
    #[must_use]
    pub fn lint(&self) -> Report {
        each!(AnyReader: self, reader => reader.lint())
    }

    /// Returns handles on all tensors, in the order of the file; those of a package in the order of
    /// its models.
    ///
    /// # Errors
    ///
    /// Where the list of them cannot be read, which some formats have in a file of its own.
    pub fn tensors(&self) -> Result<impl Iterator<Item = AnyTensor<'_>>> {
        let tensors: Result<Tensors<'_>> = each!(AnyReader: self, reader => reader.any_tensors());
        tensors
    }

    /// Returns a handle on the tensor of a name, as the reader of the format finds it; `None` where
    /// there is none of the name.
    ///
    /// # Errors
    ///
    /// As for [`tensors`](Self::tensors).
    pub fn tensor(&self, name: &str) -> Result<Option<AnyTensor<'_>>> {
        each!(AnyReader: self, reader => reader.any_tensor(name))
    }

    /// Returns how many bytes [`validate`](Self::validate) reads: of the file, or of its content
    /// where that is decoded.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        match self {
            #[cfg(feature = "carton")]
            Self::Carton(reader) => reader.content_len(),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(reader) => reader.content_len(),
            Self::Weights(reader) => reader.byte_len(),
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => self.source().map_or(0, Source::len),
        }
    }

    /// Returns what identifies the model whatever its file, where the format has such a digest.
    #[must_use]
    pub fn model_hash(&self) -> Option<String> {
        match self {
            #[cfg(feature = "carton")]
            Self::Carton(reader) => Some(reader.model_hash().to_string()),
            #[allow(unreachable_patterns, reason = "without other formats")]
            _ => None,
        }
    }
}
