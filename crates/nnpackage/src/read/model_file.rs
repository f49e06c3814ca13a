//! Handles on the models of a package.

use std::fmt;

use circle_format::Schema;

use crate::{Content, File, Reader, Result};

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
            return Some(ModelType::of(declared));
        }
        let name = self.path().rsplit('/').next().unwrap_or_default();
        let (_, extension) = name.rsplit_once('.')?;
        Some(ModelType::of(extension))
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
    /// [`Error::NotAModel`](crate::Error::NotAModel) where it is no Circle or TFLite model; else as
    /// for [`File::source`] and [`circle_format::Reader::open`].
    pub fn open(self) -> Result<&'a circle_format::Reader> {
        self.reader.model_reader(self.index)
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
    pub fn of(name: &'a str) -> Self {
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

    /// Returns the schema of a model of this type; `None` for what is no such model.
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
