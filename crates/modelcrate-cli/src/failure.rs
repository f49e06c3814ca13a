//! Errors that name the file that they are about, once.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use anyhow::Error;
use modelcrate::{
    Format, detect, kind_of,
    tensor_core::{Chain, ErrorKind, Finding},
};

use crate::output;

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
        let mut text = chain(&self.error);
        let hints = [
            (" is a pipe or a device, ", " (what a pipe brings is read as -)"),
            ("there is no end record", ": the file is truncated, or no archive"),
            ("scheme is \"http\", expected \"https\"", " (--allow-http takes it)"),
            ("expected a public one", " (--allow-private-hosts takes it)"),
            (
                "expected \"ZTEN1000\" behind a manifest size",
                ": the file is truncated, or not finished",
            ),
        ];
        let fits = |(found, _): &(&str, &str)| text.contains(found);
        if let Some((_, hint)) = hints.into_iter().find(fits) {
            text.push_str(hint);
        }
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

/// What is wrong with a file that is not a model, such as one of `NumPy`.
#[derive(Debug)]
pub(crate) struct Malformed(pub(crate) String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// Refuses a file.
pub(crate) fn malformed<T>(reason: impl Into<String>) -> anyhow::Result<T> {
    Err(Malformed(reason.into()).into())
}

/// Returns the error without the file that was added to it.
pub(crate) fn bare(error: &Error) -> &Error {
    error.downcast_ref::<Failure>().map_or(error, |failure| &failure.error)
}

/// Says what a file is that a command does not take, and which one does, where that is why it failed.
pub(crate) fn of_other_format(error: Error, taken: &[Format]) -> Error {
    let Some(Failure { path, error: reason }) = error.downcast_ref() else { return error };
    let is_of_file = is_invalid(&error) && !reason.is::<modelcrate::Error>();
    let detected = || detect(&output::stored(path).ok()?).ok()?;
    let Some(found) = is_of_file.then(detected).flatten() else { return error };
    if taken.contains(&found) {
        return error;
    }
    let command = match found {
        Format::Carton => "carton",
        Format::Circle | Format::NnPackage | Format::TfLite => "nnpackage",
        Format::Ptl | Format::PtlSpec => "ptl",
        Format::Rten => "rten",
        _ => "inspect",
    };
    let wanted: Vec<_> = taken.iter().map(|format| format.title()).collect();
    let wanted = match &*wanted {
        [some @ .., last] if !some.is_empty() => format!("{} or {last}", some.join(", ")),
        wanted => wanted.concat(),
    };
    let text = format!("is {}, expected {wanted} (see modelcrate {command})", found.title());
    Failure { path: path.clone(), error: Error::msg(text) }.into()
}

/// Writes an error and its causes in one line.
pub(crate) fn chain(error: &Error) -> String {
    Chain(error.as_ref()).to_string()
}

/// Returns what is said of a file that does not open.
pub(crate) fn finding(error: &Error) -> Finding {
    let reason = error.downcast_ref().map_or_else(|| chain(error), Failure::reason);
    let known = bare(error).downcast_ref::<modelcrate::Error>();
    let rule = known.map_or("file/read", modelcrate::Error::rule);
    Finding::error(rule, reason).at(known.map(modelcrate::Error::at).unwrap_or_default())
}

/// Tells whether a command failed because a file is broken, not because it could not be reached or
/// because what was asked for cannot be done.
pub(crate) fn is_invalid(error: &Error) -> bool {
    let error = bare(error);
    error.is::<Malformed>() || error.chain().find_map(kind_of).is_some_and(ErrorKind::is_file_fault)
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
