//! What became of a command, and how it is said.

use crate::{escape::escape, output};

/// What became of a command that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Fine,
    Invalid,
    /// Some file could not be looked at.
    Failed,
    /// The file is valid, but the runtime that was asked about does not get through.
    Stopped,
}

impl Outcome {
    /// Returns the graver of two.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
            (Self::Invalid, _) | (_, Self::Invalid) => Self::Invalid,
            (Self::Stopped, _) | (_, Self::Stopped) => Self::Stopped,
            _ => Self::Fine,
        }
    }

    /// Returns the exit status that says so.
    pub(crate) const fn status(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Invalid => 1,
            Self::Failed => 2,
            Self::Stopped => 3,
        }
    }
}

/// Says what went wrong.
pub(crate) fn print_error(message: &str) {
    let style = anstyle::AnsiColor::Red.on_default().bold();
    output::print_problem(&format!("{style}error{style:#}: {}\n", escape(message)));
}
