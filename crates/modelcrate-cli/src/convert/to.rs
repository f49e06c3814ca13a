use std::{fmt, path::Path, str::FromStr};

use anyhow::{Error, anyhow, bail};
use modelcrate::{Format, Target};

use crate::options::is_stdio;

/// What a file can become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Circle,
    Onnx,
    /// Of a version, where that is said.
    Rten(Option<u8>),
    TfLite,
    Tensors(Target),
}

impl To {
    /// Returns the format that was asked for, or that the name of the output says.
    pub(crate) fn of(to: Option<Self>, output: &Path) -> anyhow::Result<Self> {
        if let Some(to) = to {
            return Ok(to);
        }
        if is_stdio(output) {
            bail!("has no name that says a format: give --to");
        }
        let end = output.extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
        end.and_then(|end| Self::named(&end)).ok_or_else(|| {
            let known: Vec<String> = ENDS.into_iter().map(|end| format!(".{end}")).collect();
            anyhow!("says no format by its end, expected one of {}, or --to", known.join(", "))
        })
    }

    /// Returns the format that a word means: its name, or the usual end of its files.
    fn named(word: &str) -> Option<Self> {
        Some(match word {
            "circle" => Self::Circle,
            "onnx" => Self::Onnx,
            "rten" => Self::Rten(None),
            "rten1" => Self::Rten(Some(1)),
            "rten2" => Self::Rten(Some(2)),
            "tflite" => Self::TfLite,
            word => Self::Tensors(word.parse().ok()?),
        })
    }

    /// Returns what names of files end in that hold this.
    pub(super) fn end(self) -> &'static str {
        match self {
            Self::Circle => "circle",
            Self::Onnx => "onnx",
            Self::Rten(_) => "rten",
            Self::TfLite => "tflite",
            Self::Tensors(target) => {
                target.format().extensions().first().copied().unwrap_or_default()
            }
        }
    }

    /// Returns what names of models end in that become this; `None` where it holds tensors.
    pub(super) const fn source_end(self) -> Option<&'static str> {
        match self {
            Self::Circle => Some("tflite"),
            Self::Onnx | Self::Rten(_) => Some("rten"),
            Self::TfLite => Some("circle"),
            Self::Tensors(_) => None,
        }
    }

    /// Returns what tensors become; `None` where it holds models.
    pub(crate) const fn tensors(self) -> Option<Target> {
        match self {
            Self::Tensors(target) => Some(target),
            _ => None,
        }
    }

    /// Says that a file cannot become this, and what it can.
    pub(super) fn impossible(self, format: Format) -> Error {
        let models = match format {
            Format::Rten => "onnx, rten1, rten2, ",
            Format::Circle => "tflite, ",
            Format::TfLite => "circle, ",
            _ => "",
        };
        anyhow!(
            "is {}, which cannot become {self}: it can become {models}{}",
            format.title(),
            tensors()
        )
    }

    /// Says that tensors alone cannot become this.
    pub(crate) fn holds_models(self) -> Error {
        anyhow!("{self} holds models, expected a format of tensors: {}", tensors())
    }
}

/// Names what the tensors of every file can become.
fn tensors() -> String {
    Target::ALL.iter().map(|target| target.name()).collect::<Vec<_>>().join(", ")
}

/// The words for what is written, which names of files end in.
const ENDS: [&str; 9] =
    ["circle", "gguf", "npy", "npz", "onnx", "rten", "safetensors", "tflite", "zt"];

impl FromStr for To {
    type Err = Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let word = text.trim_start_matches('.').to_ascii_lowercase();
        Self::named(&word).ok_or_else(|| anyhow!("{text:?} is none of {}", ENDS.join(", ")))
    }
}

impl fmt::Display for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Circle => f.pad("circle"),
            Self::Onnx => f.pad("onnx"),
            Self::TfLite => f.pad("tflite"),
            Self::Rten(None) => f.pad("rten"),
            Self::Rten(Some(version)) => write!(f, "rten{version}"),
            Self::Tensors(target) => f.pad(target.name()),
        }
    }
}
