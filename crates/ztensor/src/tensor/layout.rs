//! How the parts of a sparse or quantized object contradict each other.

use tensor_core::Error as Core;

use crate::Error;

/// What does not fit in a layout; becomes an [`Error::Layout`] once the object is known.
#[derive(Debug)]
pub(crate) enum LayoutError {
    /// The parts contradict each other.
    Problem(String),
    /// Something below failed.
    Other(Error),
}

impl LayoutError {
    pub(crate) fn of(self, object: &str) -> Error {
        match self {
            Self::Problem(problem) => Error::Layout { object: object.to_owned(), problem },
            Self::Other(error) => error,
        }
    }

    /// Says it of parts that the caller gave, which belong to no object.
    pub(crate) fn given(self) -> Error {
        match self {
            Self::Problem(reason) => Error::Given { reason },
            Self::Other(error) => error,
        }
    }
}

impl From<String> for LayoutError {
    fn from(problem: String) -> Self {
        Self::Problem(problem)
    }
}

impl From<Core> for LayoutError {
    fn from(error: Core) -> Self {
        Self::Other(error.into())
    }
}

impl From<Error> for LayoutError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// Returns the problem that the text says, unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $($problem:tt)+) => {
        if !$holds {
            return Err(format!($($problem)+).into());
        }
    };
}

pub(super) use ensure;

pub(crate) type Checked<T> = Result<T, LayoutError>;
