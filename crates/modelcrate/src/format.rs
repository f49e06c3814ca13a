use std::{fmt, path::Path};

/// A format that this crate knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Carton (`.carton`): a ZIP archive, or a folder, with `MANIFEST` and `carton.toml`.
    Carton,
    /// A Circle model (`.circle`).
    Circle,
    /// GGUF (`.gguf`), versions 2 and 3.
    Gguf,
    /// nnpackage: a ZIP archive, or a folder, with `metadata/MANIFEST`.
    NnPackage,
    /// An array of `NumPy` (`.npy`).
    Npy,
    /// An archive of arrays of `NumPy` (`.npz`).
    Npz,
    /// PyTorch Live (`.ptl`): a ZIP archive of one folder, or a FlatBuffer.
    Ptl,
    /// A PyTorch Live spec in a file of its own (`.live.spec.json`).
    PtlSpec,
    /// RTen (`.rten`), version 1, which has no magic, or 2.
    Rten,
    /// safetensors (`.safetensors`), or an index of shards.
    Safetensors,
    /// A TFLite model (`.tflite`).
    TfLite,
    /// zTensor (`.zt`), generations 0.1 to 1.2. Generation 2 is recognised and refused.
    ZTensor,
}

impl Format {
    /// All of them, whether this build reads them or not.
    pub const ALL: [Self; 12] = [
        Self::Carton,
        Self::Circle,
        Self::Gguf,
        Self::NnPackage,
        Self::Npy,
        Self::Npz,
        Self::Ptl,
        Self::PtlSpec,
        Self::Rten,
        Self::Safetensors,
        Self::TfLite,
        Self::ZTensor,
    ];

    /// Returns the one word for it: in results, as a command and as a feature.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Carton => "carton",
            Self::Circle => "circle",
            Self::Gguf => "gguf",
            Self::NnPackage => "nnpackage",
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::Ptl => "ptl",
            Self::PtlSpec => "ptl-spec",
            Self::Rten => "rten",
            Self::Safetensors => "safetensors",
            Self::TfLite => "tflite",
            Self::ZTensor => "ztensor",
        }
    }

    /// Returns what a file of it is called in a sentence, with an article.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Carton => "a carton",
            Self::Circle => "a Circle model",
            Self::Gguf => "a GGUF file",
            Self::NnPackage => "an nnpackage",
            Self::Npy => "an array of NumPy",
            Self::Npz => "an archive of NumPy",
            Self::Ptl => "a PyTorch Live model",
            Self::PtlSpec => "a PyTorch Live spec",
            Self::Rten => "an RTen model",
            Self::Safetensors => "a safetensors file",
            Self::TfLite => "a TFLite model",
            Self::ZTensor => "a zTensor file",
        }
    }

    /// Tells whether this build reads files of the format.
    #[must_use]
    pub const fn is_read(self) -> bool {
        match self {
            Self::Carton => cfg!(feature = "carton"),
            Self::Circle | Self::TfLite => cfg!(feature = "circle"),
            Self::NnPackage => cfg!(feature = "nnpackage"),
            Self::Npz => cfg!(feature = "archive"),
            Self::Ptl | Self::PtlSpec => cfg!(feature = "ptl"),
            Self::Rten => cfg!(feature = "rten"),
            Self::ZTensor => cfg!(feature = "ztensor"),
            Self::Gguf | Self::Npy | Self::Safetensors => true,
        }
    }

    /// Returns the names of the formats that this build reads, with commas between.
    pub(crate) fn read_here() -> String {
        let read = Self::ALL.into_iter().filter(|format| format.is_read());
        read.map(Self::name).collect::<Vec<_>>().join(", ")
    }

    /// Returns what names of files of this format, and of no other, end in behind a point: the usual
    /// one first.
    #[must_use]
    pub const fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Carton => &["carton"],
            Self::Circle => &["circle"],
            Self::Gguf => &["gguf"],
            Self::NnPackage => &["nnpackage", "nnpkg"],
            Self::Npy => &["npy"],
            Self::Npz => &["npz"],
            Self::Ptl => &["ptl"],
            Self::PtlSpec => &["live.spec.json"],
            Self::Rten => &["rten"],
            Self::Safetensors => &["safetensors", "safetensors.index.json"],
            Self::TfLite => &["tflite"],
            Self::ZTensor => &["zt"],
        }
    }

    /// Returns the format that the name of a file says, in letters of either case.
    #[must_use]
    pub fn from_path(path: impl AsRef<Path>) -> Option<Self> {
        let name = path.as_ref().file_name()?.to_string_lossy().to_ascii_lowercase();
        let ends_in = |extension: &&str| {
            name.strip_suffix(*extension).is_some_and(|stem| stem.ends_with('.'))
        };
        Self::ALL.into_iter().find(|format| format.extensions().iter().any(ends_in))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl serde::Serialize for Format {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_mean_one_format() {
        for format in Format::ALL {
            for extension in format.extensions() {
                assert_eq!(Format::from_path(format!("a/b.{extension}")), Some(format));
            }
        }
        assert_eq!(Format::from_path("MODEL.ZT"), Some(Format::ZTensor));
        for path in ["zt", "a.zip", "a.json", "spec.json", "a.zt/b", ".."] {
            assert_eq!(Format::from_path(path), None, "{path}");
        }
    }
}
