use std::{fmt, path::Path, str::FromStr};

use crate::Format;

/// What tensors can be converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// GGUF, version 3.
    Gguf,
    /// An array of `NumPy`: a set of one tensor.
    Npy,
    /// An archive of `NumPy`.
    #[cfg(feature = "archive")]
    Npz,
    /// safetensors: one file, or shards with an index.
    Safetensors,
    /// zTensor 1.1.
    #[cfg(feature = "ztensor")]
    ZTensor,
    /// zTensor 2, canonical unless it is compressed.
    #[cfg(feature = "ztensor")]
    ZTensor2,
}

impl Target {
    /// All that this build writes.
    pub const ALL: &[Self] = &[
        Self::Gguf,
        Self::Npy,
        #[cfg(feature = "archive")]
        Self::Npz,
        Self::Safetensors,
        #[cfg(feature = "ztensor")]
        Self::ZTensor,
        #[cfg(feature = "ztensor")]
        Self::ZTensor2,
    ];

    /// Returns the format.
    #[must_use]
    pub const fn format(self) -> Format {
        match self {
            Self::Gguf => Format::Gguf,
            Self::Npy => Format::Npy,
            #[cfg(feature = "archive")]
            Self::Npz => Format::Npz,
            Self::Safetensors => Format::Safetensors,
            #[cfg(feature = "ztensor")]
            Self::ZTensor | Self::ZTensor2 => Format::ZTensor,
        }
    }

    /// Returns the one word for it, which is that for its format, or `zt2` for zTensor 2.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "ztensor")]
            Self::ZTensor2 => "zt2",
            _ => self.format().name(),
        }
    }

    /// Returns what the name of a file ends in, in letters of either case.
    #[must_use]
    pub fn from_path(path: impl AsRef<Path>) -> Option<Self> {
        Self::from_format(Format::from_path(path)?)
    }

    /// Returns the target that writes a format; `None` where this build does not.
    #[must_use]
    pub fn from_format(format: Format) -> Option<Self> {
        Self::ALL.iter().copied().find(|target| target.format() == format)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Target {
    type Err = UnknownTarget;

    /// Reads the name of a format, or what names of its files end in, in letters of either case.
    fn from_str(text: &str) -> Result<Self, UnknownTarget> {
        let lower = text.to_ascii_lowercase();
        let is_called = |target: &&Self| {
            target.name() == lower || target.format().extensions().contains(&&*lower)
        };
        let found = Self::ALL.iter().find(is_called).copied();
        found.ok_or_else(|| UnknownTarget { found: text.to_owned() })
    }
}

/// A text is not the name of a format that tensors can be converted to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a format of tensors, expected one of {}", names())]
pub struct UnknownTarget {
    /// The text.
    pub found: String,
}

pub(super) fn names() -> String {
    let names: Vec<&str> = Target::ALL.iter().map(|target| target.name()).collect();
    names.join(", ")
}
