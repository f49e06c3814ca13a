//! Errors that name the file that they are about, once.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use anyhow::Error;
use modelcrate::tensor_core::Chain;

/// Names the file that an error is about.
pub(crate) trait About<T> {
    /// Adds the path to an error, unless that names a file already.
    fn about(self, path: &Path) -> anyhow::Result<T>;
}

impl<T, E: Into<Error>> About<T> for Result<T, E> {
    fn about(self, path: &Path) -> anyhow::Result<T> {
        self.map_err(|error| match error.into() {
            error if error.is::<Failure>() => error,
            error => Failure { path: path.to_owned(), error }.into(),
        })
    }
}

/// An error and the file that it is about.
#[derive(Debug)]
pub(crate) struct Failure {
    path: PathBuf,
    error: Error,
}

impl Failure {
    /// Returns what went wrong and its causes in one line, without the name of the file.
    pub(crate) fn reason(&self) -> String {
        let text = chain(&self.error);
        // Errors of opening a file say which.
        let rest = text.strip_prefix(&format!("{:?}", self.path));
        rest.map_or(text.as_str(), |rest| rest.trim_start_matches([':', ' '])).to_owned()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason())
    }
}

// The causes are in the text already.
impl std::error::Error for Failure {}

/// Returns the error without the file that was added to it.
pub(crate) fn bare(error: &Error) -> &Error {
    error.downcast_ref::<Failure>().map_or(error, |failure| &failure.error)
}

/// Writes an error and its causes in one line.
pub(crate) fn chain(error: &Error) -> String {
    Chain(error.as_ref()).to_string()
}

#[cfg(test)]
mod tests {
    use modelcrate::tensor_core::Source;

    use super::*;

    #[test]
    fn files_are_named_once() {
        let opened = Source::open("none.zt").about(Path::new("none.zt"));
        let text = chain(&opened.about(Path::new("other.zt")).unwrap_err());
        assert!(text.starts_with("none.zt: opening failed: "), "{text}");
        let other: anyhow::Result<()> = Err(anyhow::anyhow!("magic at byte 0 is \"x\""));
        let text = chain(&other.about(Path::new("a.zt")).unwrap_err());
        assert_eq!(text, "a.zt: magic at byte 0 is \"x\"");
    }
}
