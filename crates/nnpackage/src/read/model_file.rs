//! Handles on the models of a package.

use std::fmt;

use circle_format::{Schema, Tensor};
use model_archive::Archive;

use crate::{Content, Error, File, Reader, Result};

/// A handle on a model that the manifest of a package names.
#[derive(Clone, Copy, Debug)]
pub struct ModelFile<'a> {
    reader: &'a Reader,
    index: usize,
}

impl<'a> ModelFile<'a> {
    pub(crate) const fn new(reader: &'a Reader, index: usize) -> Self {
        Self { reader, index }
    }

    /// Returns its position in the manifest.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index
    }

    /// Returns its path from the root of the package, as the manifest has it.
    #[must_use]
    pub fn path(self) -> &'a str {
        self.reader.manifest().models.get(self.index).map_or("", String::as_str)
    }

    /// Returns the file.
    #[must_use]
    pub fn file(self) -> File<'a> {
        File::new(self.reader, self.path())
    }

    /// Returns the type that the manifest declares; `None` where it declares none.
    #[must_use]
    pub fn declared_type(self) -> Option<&'a str> {
        self.reader.manifest().model_type(self.index)
    }

    /// Returns the type that it is loaded as: the declared one, or the extension since 1.3.1.
    /// `None` where there is neither.
    #[must_use]
    pub fn model_type(self) -> Option<ModelType<'a>> {
        if let Some(declared) = self.declared_type() {
            return Some(ModelType::from_name(declared));
        }
        let name = self.path().rsplit('/').next().unwrap_or_default();
        let (_, extension) = name.rsplit_once('.')?;
        Some(ModelType::from_name(extension))
    }

    /// Returns what the file is by its first bytes.
    ///
    /// # Errors
    ///
    /// As for [`File::content`].
    pub fn content(self) -> Result<Content> {
        self.file().content()
    }

    /// Opens it as what it is, by its identifier; the first time only.
    ///
    /// # Errors
    ///
    /// [`circle_format::Error::NotAModel`] where it is not a Circle or TFLite model; else as
    /// for [`File::source`] and [`circle_format::Reader::open`].
    pub fn open(self) -> Result<&'a circle_format::Reader> {
        let reader = self.reader;
        let Some(cell) = reader.model_cell(reader.first_model(self.index)) else {
            // Handles are made for models that there are.
            return Err(Error::ModelsMissing);
        };
        if let Some(opened) = cell.get() {
            return Ok(opened);
        }
        // What is compressed stays in memory, so all of it together has to be within bounds.
        reader.archive().map(Archive::check_total).transpose()?;
        let options = circle_format::Reader::options().limits(*reader.limits());
        let opened = options.from_source(self.file().source()?)?;
        Ok(cell.get_or_init(|| opened))
    }

    /// Tells whether it is declared as a binary of a backend and is one: no other is without tensors.
    fn is_binary(self) -> bool {
        let is_declared = matches!(self.model_type(), Some(ModelType::Bin | ModelType::Tvn));
        is_declared && !self.is_model()
    }

    /// Opens it where it is a Circle or TFLite model by its first bytes, and sound.
    pub(crate) fn opened(self) -> Option<&'a circle_format::Reader> {
        self.is_model().then(|| self.open().ok()).flatten()
    }

    /// Tells whether the file is a Circle or TFLite model by its first bytes.
    pub(crate) fn is_model(self) -> bool {
        self.content().is_ok_and(|content| content.schema().is_some())
    }
}

impl Reader {
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

    /// Returns handles on the constants of all Circle and TFLite models, each model once, in the
    /// order of the manifest.
    ///
    /// # Errors
    ///
    /// As for [`ModelFile::open`].
    pub fn tensors(&self) -> Result<impl Iterator<Item = Tensor<'_>>> {
        let models = self.distinct_models().filter(|file| !file.is_binary());
        let models = models.map(ModelFile::open).collect::<Result<Vec<_>>>()?;
        Ok(models.into_iter().flat_map(circle_format::Reader::tensors))
    }

    /// Returns a handle on the constant of a name: of several the first, in the first model that has
    /// one; [`tensors`](Self::tensors) has all. `None` where there is none.
    ///
    /// # Errors
    ///
    /// As for [`ModelFile::open`].
    pub fn tensor(&self, name: &str) -> Result<Option<Tensor<'_>>> {
        for file in self.distinct_models().filter(|file| !file.is_binary()) {
            if let Some(found) = file.open()?.tensor(name) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the models that the manifest names, each path once.
    pub(crate) fn distinct_models(&self) -> impl Iterator<Item = ModelFile<'_>> {
        self.models().filter(|file| self.first_model(file.index) == file.index)
    }
}

/// The type of a model in a manifest. Format text: "model-types".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelType<'a> {
    /// `circle`.
    Circle,
    /// `tflite`.
    Tflite,
    /// `bin`: a binary that depends on a backend.
    Bin,
    /// `tvn`: a binary of an NPU (1.2.0).
    Tvn,
    /// Anything else.
    Other(&'a str),
}

impl<'a> ModelType<'a> {
    /// Tells what a type is by its name; case counts.
    #[must_use]
    pub fn from_name(name: &'a str) -> Self {
        match name {
            "circle" => Self::Circle,
            "tflite" => Self::Tflite,
            "bin" => Self::Bin,
            "tvn" => Self::Tvn,
            _ => Self::Other(name),
        }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'a str {
        match self {
            Self::Circle => "circle",
            Self::Tflite => "tflite",
            Self::Bin => "bin",
            Self::Tvn => "tvn",
            Self::Other(name) => name,
        }
    }

    /// Returns the schema of a model of this type; `None` for what is not such a model.
    #[must_use]
    pub const fn schema(self) -> Option<Schema> {
        match self {
            Self::Circle => Some(Schema::Circle),
            Self::Tflite => Some(Schema::Tflite),
            _ => None,
        }
    }
}

impl fmt::Display for ModelType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
