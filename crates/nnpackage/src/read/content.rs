use std::fmt;

use circle_format::Schema;
use tensor_core::{Extent, Source};

/// What the first bytes of a file say that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Content {
    /// A ZIP archive.
    Zip,
    /// A Circle model.
    Circle,
    /// A TFLite model.
    Tflite,
    /// A TFLite model of a time before the schema that is known here.
    OldTflite,
    /// An ELF file: a program or a library of Linux.
    Elf,
    /// A Mach-O file: a program or a library of Apple systems.
    MachO,
    /// A PE file: a program or a library of Windows.
    Pe,
    /// An archive of object files.
    Ar,
    /// An HDF5 file.
    Hdf5,
    /// No byte at all.
    Empty,
    /// Anything else.
    Other,
}

impl Content {
    /// Bytes that tell all of them apart.
    pub(crate) const START: usize = 8;

    /// Tells what a file is by its first bytes.
    #[must_use]
    pub fn of(start: &[u8]) -> Self {
        let at_4 = start.get(4..8).unwrap_or_default();
        match start {
            [] => Self::Empty,
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Self::Zip,
            [0x7f, b'E', b'L', b'F', ..] => Self::Elf,
            [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..] | [0xce | 0xcf, 0xfa, 0xed, 0xfe, ..] => {
                Self::MachO
            }
            [b'M', b'Z', ..] => Self::Pe,
            _ if start.starts_with(b"!<arch>\n") => Self::Ar,
            _ if start.starts_with(b"\x89HDF\r\n\x1a\n") => Self::Hdf5,
            _ if at_4 == b"CIR0" => Self::Circle,
            _ if at_4 == b"TFL3" => Self::Tflite,
            _ if at_4 == b"TFL1" || at_4 == b"TFL2" => Self::OldTflite,
            _ => Self::Other,
        }
    }

    pub(crate) fn of_source(source: &Source) -> tensor_core::Result<Self> {
        let start = Extent::first(source.len().min(Self::START as u64));
        Ok(Self::of(&source.read(start, "start of the file")?))
    }

    /// Returns the schema of a model; `None` for what is not one.
    #[must_use]
    pub const fn schema(self) -> Option<Schema> {
        match self {
            Self::Circle => Some(Schema::Circle),
            Self::Tflite => Some(Schema::Tflite),
            _ => None,
        }
    }

    /// Returns a word for it, such as `elf`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::Circle => "circle",
            Self::Tflite => "tflite",
            Self::OldTflite => "old-tflite",
            Self::Elf => "elf",
            Self::MachO => "mach-o",
            Self::Pe => "pe",
            Self::Ar => "ar",
            Self::Hdf5 => "hdf5",
            Self::Empty => "empty",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Content {
    /// Writes what it is, with an article.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Zip => "a ZIP archive",
            Self::Circle => "a Circle model",
            Self::Tflite => "a TFLite model",
            Self::OldTflite => "a TFLite model of an old schema",
            Self::Elf => "an ELF file",
            Self::MachO => "a Mach-O file",
            Self::Pe => "a PE file",
            Self::Ar => "an archive of object files",
            Self::Hdf5 => "an HDF5 file",
            Self::Empty => "empty",
            Self::Other => "of no known format",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell() {
        for (start, content) in [
            (&b""[..], Content::Empty),
            (b"P", Content::Other),
            (b"PK\x05\x06", Content::Zip),
            (b"\x18\0\0\0CIR0", Content::Circle),
            (b"\x18\0\0\0TFL3", Content::Tflite),
            (b"\x18\0\0\0TFL2", Content::OldTflite),
            (b"\x18\0\0\0TFL", Content::Other),
            (b"\x7fELF\x02\x01\x01\0", Content::Elf),
            (b"\xcf\xfa\xed\xfe", Content::MachO),
            (b"MZ", Content::Pe),
            (b"!<arch>\n", Content::Ar),
            (b"\x89HDF\r\n\x1a\n", Content::Hdf5),
        ] {
            assert_eq!(Content::of(start), content, "{start:?}");
        }
    }
}
