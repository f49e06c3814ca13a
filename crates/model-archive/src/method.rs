use std::fmt;

/// How the bytes of an entry are stored. ZIP application note, section 4.4.5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Method {
    /// As they are.
    #[default]
    Stored,
    /// By DEFLATE (RFC 1951).
    Deflate,
    /// As frames of zstd (RFC 8878).
    Zstd,
}

impl Method {
    /// Returns the method of a number; `None` for those that no model format uses.
    #[must_use]
    pub const fn from_code(code: u16) -> Option<Self> {
        Some(match code {
            0 => Self::Stored,
            8 => Self::Deflate,
            93 => Self::Zstd,
            _ => return None,
        })
    }

    /// Returns the number that stands in headers.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Stored => 0,
            Self::Deflate => 8,
            Self::Zstd => 93,
        }
    }

    /// Returns the name that is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Deflate => "deflate",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
