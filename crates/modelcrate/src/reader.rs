use std::{num::NonZeroUsize, path::Path};

use tensor_core::{Report, Source, Tensor, TensorInfo};

use crate::{
    Error, Format, Summary, SummaryOptions, detect,
    detect::{looks_like, model_folder},
    error::Result,
    formats,
};

/// How much a reader puts up with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// What breaks a format's text is refused.
    #[default]
    Strict,
    /// Whatever can be made out is read: a file whose end is missing is read as the last complete
    /// one inside it.
    Lenient,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// How much the reader puts up with.
    pub profile: Profile,
    /// How many threads verification uses; as many as the system offers where it is not set.
    pub threads: Option<NonZeroUsize>,
}

#[cfg_attr(
    not(any(
        feature = "carton",
        feature = "nnpackage",
        feature = "ptl",
        feature = "rten",
        feature = "ztensor"
    )),
    expect(clippy::needless_pass_by_value, reason = "without a format nothing is kept")
)]
impl OpenOptions {
    /// Sets how much the reader puts up with.
    #[must_use]
    pub const fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets how many threads verification uses.
    #[must_use]
    pub const fn threads(mut self, threads: Option<NonZeroUsize>) -> Self {
        self.threads = threads;
        self
    }

    /// Opens a file of any format that this build knows.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownFormat`]; as for the reader of the format.
    pub fn open(self, path: impl AsRef<Path>) -> Result<AnyReader> {
        let path = path.as_ref();
        match model_folder(path) {
            #[cfg(feature = "carton")]
            Some(Format::Carton) => {
                Ok(AnyReader::Carton(formats::carton::open_folder(path, self)?))
            }
            #[cfg(feature = "nnpackage")]
            Some(Format::NnPackage) => {
                Ok(AnyReader::NnPackage(formats::nnpackage::open_folder(path, self)?))
            }
            _ => self.from_source(Source::open(path)?),
        }
    }

    /// Does as [`open`](Self::open) with any source.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_source(self, source: Source) -> Result<AnyReader> {
        match detect(&source)? {
            #[cfg(feature = "carton")]
            Some(Format::Carton) => Ok(AnyReader::Carton(formats::carton::open(source, self)?)),
            #[cfg(feature = "nnpackage")]
            Some(Format::NnPackage) => {
                Ok(AnyReader::NnPackage(formats::nnpackage::open(source, self)?))
            }
            #[cfg(feature = "nnpackage")]
            Some(Format::Circle | Format::TfLite) => {
                Ok(AnyReader::NnModel(nnpackage::ModelReader::from_source(source)?))
            }
            #[cfg(feature = "ptl")]
            Some(Format::Ptl) => Ok(AnyReader::Ptl(ptl_spec::Reader::from_source(source)?)),
            #[cfg(feature = "ptl")]
            Some(Format::PtlSpec) => {
                Ok(AnyReader::PtlSpec(Box::new(formats::ptl::SpecFile::open(source)?)))
            }
            #[cfg(feature = "rten")]
            Some(Format::Rten) => Ok(AnyReader::Rten(formats::rten::open(source)?)),
            #[cfg(feature = "ztensor")]
            Some(Format::ZTensor) => Ok(AnyReader::ZTensor(formats::ztensor::open(source, self)?)),
            #[cfg(not(all(
                feature = "carton",
                feature = "nnpackage",
                feature = "ptl",
                feature = "rten",
                feature = "ztensor"
            )))]
            Some(format) => Err(Error::UnknownFormat { found: format.to_string() }),
            None => Err(Error::UnknownFormat { found: looks_like(&source)? }),
        }
    }
}

/// An open file of any format that this build knows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyReader {
    /// A carton.
    #[cfg(feature = "carton")]
    Carton(carton_format::Reader),
    /// An nnpackage.
    #[cfg(feature = "nnpackage")]
    NnPackage(nnpackage::Reader),
    /// A Circle or TFLite model that is in no package.
    #[cfg(feature = "nnpackage")]
    NnModel(nnpackage::ModelReader),
    /// A PyTorch Live model.
    #[cfg(feature = "ptl")]
    Ptl(ptl_spec::Reader),
    /// A PyTorch Live spec in a file of its own.
    #[cfg(feature = "ptl")]
    PtlSpec(Box<formats::ptl::SpecFile>),
    /// An RTen model.
    #[cfg(feature = "rten")]
    Rten(rten_format::Reader),
    /// A zTensor file.
    #[cfg(feature = "ztensor")]
    ZTensor(ztensor::Reader),
}

#[cfg_attr(
    not(any(
        feature = "carton",
        feature = "nnpackage",
        feature = "ptl",
        feature = "rten",
        feature = "ztensor"
    )),
    expect(unused_variables, reason = "without a format there is nothing to read")
)]
impl AnyReader {
    /// Opens a file of any format that this build knows.
    ///
    /// # Errors
    ///
    /// As for [`OpenOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::default().open(path)
    }

    /// Does as [`open`](Self::open) with any source.
    ///
    /// # Errors
    ///
    /// As for [`OpenOptions::open`].
    pub fn from_source(source: Source) -> Result<Self> {
        OpenOptions::default().from_source(source)
    }

    /// Returns the format of the file.
    #[must_use]
    pub fn format(&self) -> Format {
        match *self {
            #[cfg(feature = "carton")]
            Self::Carton(_) => Format::Carton,
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(_) => Format::NnPackage,
            #[cfg(feature = "nnpackage")]
            Self::NnModel(ref reader) => formats::nnpackage::format(reader),
            #[cfg(feature = "ptl")]
            Self::Ptl(_) => Format::Ptl,
            #[cfg(feature = "ptl")]
            Self::PtlSpec(_) => Format::PtlSpec,
            #[cfg(feature = "rten")]
            Self::Rten(_) => Format::Rten,
            #[cfg(feature = "ztensor")]
            Self::ZTensor(_) => Format::ZTensor,
        }
    }

    /// Describes the file: document, tensors and, where asked for, their contents.
    ///
    /// Reads the document only, unless the options ask for digests or statistics.
    #[must_use]
    pub fn summary(&self, options: SummaryOptions) -> Summary {
        match *self {
            #[cfg(feature = "carton")]
            Self::Carton(ref reader) => formats::carton::summary(reader, options),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(ref reader) => formats::nnpackage::summary(reader, options),
            #[cfg(feature = "nnpackage")]
            Self::NnModel(ref reader) => formats::nnpackage::model_summary(reader, options),
            #[cfg(feature = "ptl")]
            Self::Ptl(ref reader) => formats::ptl::summary(reader, options),
            #[cfg(feature = "ptl")]
            Self::PtlSpec(ref file) => formats::ptl::spec_summary(file),
            #[cfg(feature = "rten")]
            Self::Rten(ref reader) => formats::rten::summary(reader, options),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(ref reader) => formats::ztensor::summary(reader, options),
        }
    }

    /// Reads everything and reports every fault.
    #[must_use]
    pub fn verify(&self) -> Report {
        self.verify_with(|_| ())
    }

    /// Does as [`verify`](Self::verify), and tells `progress` how many bytes were done each time
    /// some are.
    pub fn verify_with(&self, progress: impl Fn(u64) + Sync) -> Report {
        match *self {
            #[cfg(feature = "carton")]
            Self::Carton(ref reader) => formats::carton::verify(reader, progress),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(ref reader) => whole(reader.verify(), self.byte_len(), progress),
            #[cfg(feature = "nnpackage")]
            Self::NnModel(ref reader) => {
                whole(formats::nnpackage::verify_model(reader), self.byte_len(), progress)
            }
            #[cfg(feature = "ptl")]
            Self::Ptl(ref reader) => whole(reader.validate(), self.byte_len(), progress),
            #[cfg(feature = "ptl")]
            Self::PtlSpec(ref file) => {
                whole(formats::ptl::verify_spec(file), self.byte_len(), progress)
            }
            #[cfg(feature = "rten")]
            Self::Rten(ref reader) => formats::rten::verify(reader, progress),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(ref reader) => formats::ztensor::verify(reader, progress),
        }
    }

    /// Returns what identifies the model whatever its file, where the format has such a digest.
    #[must_use]
    pub fn model_hash(&self) -> Option<String> {
        match *self {
            #[cfg(feature = "carton")]
            Self::Carton(ref reader) => Some(reader.model_hash().to_string()),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(_) | Self::NnModel(_) => None,
            #[cfg(feature = "ptl")]
            Self::Ptl(_) | Self::PtlSpec(_) => None,
            #[cfg(feature = "rten")]
            Self::Rten(_) => None,
            #[cfg(feature = "ztensor")]
            Self::ZTensor(_) => None,
        }
    }

    /// Reads the tensor of a name, decoded, as the reader of the format finds it; `None` where there
    /// is none with numbers for elements.
    ///
    /// # Errors
    ///
    /// Where it cannot be read.
    pub fn tensor(&self, name: &str) -> Result<Option<Tensor>> {
        match *self {
            #[cfg(feature = "carton")]
            Self::Carton(ref reader) => Ok(formats::carton::tensor(reader, name)?),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(ref reader) => formats::nnpackage::tensor(reader, name),
            #[cfg(feature = "nnpackage")]
            Self::NnModel(ref reader) => {
                Ok(reader.tensor(name).map(nnpackage::Constant::view).transpose()?)
            }
            #[cfg(feature = "ptl")]
            Self::Ptl(ref reader) => {
                Ok(reader.tensor(name)?.map(ptl_spec::Tensor::to_tensor).transpose()?)
            }
            #[cfg(feature = "ptl")]
            Self::PtlSpec(_) => Ok(None),
            #[cfg(feature = "rten")]
            Self::Rten(ref reader) => {
                Ok(reader.tensor(name).map(rten_format::Tensor::view).transpose()?)
            }
            #[cfg(feature = "ztensor")]
            Self::ZTensor(ref reader) => {
                Ok(reader.tensor(name).map(ztensor::Tensor::to_dense).transpose()?)
            }
        }
    }

    /// Describes the tensor of a name without reading it; `None` where there is none with numbers for
    /// elements.
    ///
    /// # Errors
    ///
    /// Where its type or shape cannot be told.
    pub fn tensor_info(&self, name: &str) -> Result<Option<TensorInfo>> {
        match *self {
            #[cfg(feature = "carton")]
            Self::Carton(ref reader) => {
                Ok(reader.tensor(name)?.and_then(carton_format::Tensor::info))
            }
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(ref reader) => formats::nnpackage::tensor_info(reader, name),
            #[cfg(feature = "nnpackage")]
            Self::NnModel(ref reader) => {
                Ok(reader.tensor(name).map(nnpackage::Constant::info).transpose()?)
            }
            #[cfg(feature = "ptl")]
            Self::Ptl(ref reader) => {
                Ok(reader.tensor(name)?.map(ptl_spec::Tensor::info).transpose()?)
            }
            #[cfg(feature = "ptl")]
            Self::PtlSpec(_) => Ok(None),
            #[cfg(feature = "rten")]
            Self::Rten(ref reader) => {
                Ok(reader.tensor(name).map(rten_format::Tensor::info).transpose()?)
            }
            #[cfg(feature = "ztensor")]
            Self::ZTensor(ref reader) => {
                Ok(reader.tensor(name).map(ztensor::Tensor::info).transpose()?)
            }
        }
    }

    /// Returns how many bytes [`verify`](Self::verify) reads: of the file, or of its content where
    /// that is decoded.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        match *self {
            #[cfg(feature = "carton")]
            Self::Carton(ref reader) => reader.content_len(),
            #[cfg(feature = "nnpackage")]
            Self::NnPackage(ref reader) => formats::nnpackage::byte_len(reader),
            #[cfg(feature = "nnpackage")]
            Self::NnModel(ref reader) => reader.source().len(),
            #[cfg(feature = "ptl")]
            Self::Ptl(ref reader) => reader.source().len(),
            #[cfg(feature = "ptl")]
            Self::PtlSpec(ref file) => file.source().len(),
            #[cfg(feature = "rten")]
            Self::Rten(ref reader) => reader.source().len(),
            #[cfg(feature = "ztensor")]
            Self::ZTensor(ref reader) => reader.source().len(),
        }
    }
}

/// Tells `progress` that all was done at once.
#[cfg(any(feature = "nnpackage", feature = "ptl"))]
fn whole(report: Report, bytes: u64, progress: impl Fn(u64)) -> Report {
    progress(bytes);
    report
}
