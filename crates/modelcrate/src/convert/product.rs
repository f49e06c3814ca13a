use std::{fmt, path::Path, str::FromStr};

use crate::{Format, Target};

/// What a file can become: tensors in another format, or a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Product {
    /// A Circle model.
    Circle,
    /// A model of ONNX.
    Onnx,
    /// An `RTen` model of a version, where that is said.
    Rten(Option<u8>),
    /// A TFLite model.
    TfLite,
    /// A file of tensors.
    Tensors(Target),
    /// `TorchScript` for the full runtime.
    TorchScript,
}

impl Product {
    /// The words for all, which names of files end in.
    pub const ENDS: [&str; 10] =
        ["circle", "gguf", "npy", "npz", "onnx", "pt", "rten", "safetensors", "tflite", "zt"];

    /// Returns what the name of a file ends in, in letters of either case.
    #[must_use]
    pub fn from_path(path: impl AsRef<Path>) -> Option<Self> {
        Self::named(&path.as_ref().extension()?.to_string_lossy().to_ascii_lowercase())
    }

    /// Returns what a word means: a name, or the usual end of files.
    fn named(word: &str) -> Option<Self> {
        Some(match word {
            "circle" => Self::Circle,
            "onnx" => Self::Onnx,
            "rten" => Self::Rten(None),
            "rten1" => Self::Rten(Some(1)),
            "rten2" => Self::Rten(Some(2)),
            "tflite" => Self::TfLite,
            "torchscript" | "pt" => Self::TorchScript,
            word => Self::Tensors(word.parse().ok()?),
        })
    }

    /// Returns what names of files end in that hold this.
    #[must_use]
    pub fn end(self) -> &'static str {
        match self {
            Self::Circle => "circle",
            Self::Onnx => "onnx",
            Self::Rten(_) => "rten",
            Self::TfLite => "tflite",
            Self::TorchScript => "pt",
            Self::Tensors(target) => {
                target.format().extensions().first().copied().unwrap_or_default()
            }
        }
    }

    /// Returns what names of models end in that become this; `None` where it holds tensors.
    #[must_use]
    pub const fn source_end(self) -> Option<&'static str> {
        match self {
            Self::Circle => Some("tflite"),
            Self::Onnx | Self::Rten(_) => Some("rten"),
            Self::TfLite => Some("circle"),
            Self::TorchScript => Some("ptl"),
            Self::Tensors(_) => None,
        }
    }

    /// Returns what tensors become; `None` where it holds models.
    #[must_use]
    pub const fn tensors(self) -> Option<Target> {
        match self {
            Self::Tensors(target) => Some(target),
            _ => None,
        }
    }

    /// Returns the one word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Circle => "circle",
            Self::Onnx => "onnx",
            Self::TfLite => "tflite",
            Self::Rten(Some(1)) => "rten1",
            Self::Rten(Some(_)) => "rten2",
            Self::Rten(None) => "rten",
            Self::Tensors(target) => target.name(),
            Self::TorchScript => "torchscript",
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Product {
    type Err = UnknownProduct;

    /// Reads a name, or what names of files end in, in letters of either case, with a dot or without.
    fn from_str(text: &str) -> Result<Self, UnknownProduct> {
        let word = text.trim_start_matches('.').to_ascii_lowercase();
        Self::named(&word).ok_or_else(|| UnknownProduct { found: text.to_owned() })
    }
}

/// A text does not say what a file can become.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is none of {}", Product::ENDS.join(", "))]
pub struct UnknownProduct {
    /// The text.
    pub found: String,
}

/// Names what files of a format can become.
pub(crate) fn becomes(format: Format) -> String {
    let models = match format {
        Format::Rten => "onnx, rten1, rten2, ",
        Format::Circle => "tflite, ",
        Format::TfLite => "circle, ",
        Format::Ptl => "torchscript, ",
        _ => "",
    };
    format!("{models}{}", super::target::names())
}
