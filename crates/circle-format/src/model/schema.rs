use std::fmt;

/// Which of the two schemas a model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Schema {
    /// Circle, the usual one of an nnpackage.
    Circle,
    /// TFLite, which Circle was made from.
    Tflite,
}

impl Schema {
    /// Returns the name, as a manifest has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Circle => "circle",
            Self::Tflite => "tflite",
        }
    }

    /// Returns the identifier at byte 4 of a file.
    #[must_use]
    pub const fn identifier(self) -> [u8; 4] {
        match self {
            Self::Circle => *b"CIR0",
            Self::Tflite => *b"TFL3",
        }
    }

    /// Returns the version that tools write into a model.
    #[must_use]
    pub const fn version(self) -> u32 {
        match self {
            Self::Circle => 0,
            Self::Tflite => 3,
        }
    }

    /// Returns the schema of a file with this identifier; `None` where it is of neither.
    #[must_use]
    pub fn from_identifier(identifier: [u8; 4]) -> Option<Self> {
        [Self::Circle, Self::Tflite].into_iter().find(|schema| schema.identifier() == identifier)
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
