//! Errors that name the file that they are about, once.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use anyhow::Error;
use modelcrate::{
    carton_format::{self, FileFault, WriteFault, model_archive},
    nnpackage, ptl_spec,
    rten_format::{self, onnx},
    tensor_core::{self, Chain},
    ztensor,
};

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

/// What is wrong with a file that is no model, such as one of `NumPy`.
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

/// Writes an error and its causes in one line.
pub(crate) fn chain(error: &Error) -> String {
    Chain(error.as_ref()).to_string()
}

/// Tells whether a command failed because a file is broken, not because it could not be reached or
/// because what was asked for cannot be done.
pub(crate) fn is_invalid(error: &Error) -> bool {
    let error = bare(error);
    if let Some(error) = error.downcast_ref::<modelcrate::Error>() {
        return match error {
            modelcrate::Error::UnknownFormat { .. } => true,
            modelcrate::Error::Carton(error) => carton_is_invalid(error),
            modelcrate::Error::NnPackage(error) => nnpackage_is_invalid(error),
            modelcrate::Error::Ptl(error) => ptl_is_invalid(error),
            modelcrate::Error::Rten(error) => rten_is_invalid(error),
            modelcrate::Error::ZTensor(error) => ztensor_is_invalid(error),
            modelcrate::Error::Core(error) => core_is_invalid(error),
            _ => false,
        };
    }
    error.is::<Malformed>()
        || error.downcast_ref().is_some_and(ztensor_is_invalid)
        || error.downcast_ref().is_some_and(carton_is_invalid)
        || error.downcast_ref().is_some_and(nnpackage_is_invalid)
        || error.downcast_ref().is_some_and(ptl_is_invalid)
        || error.downcast_ref().is_some_and(rten_is_invalid)
        || error.downcast_ref().is_some_and(|error| match error {
            // Anything else may be sound, and only have no counterpart in ONNX.
            onnx::Error::Rten(error) => rten_is_invalid(error),
            _ => false,
        })
}

fn ztensor_is_invalid(error: &ztensor::Error) -> bool {
    use ztensor::Error;
    match error {
        Error::Core(error) => core_is_invalid(error),
        Error::BadMagic { .. }
        | Error::Generation2
        | Error::BadFooter { .. }
        | Error::ManifestSize { .. }
        | Error::Manifest { .. }
        | Error::MissingComponent { .. }
        | Error::Component { .. }
        | Error::NothingToRecover { .. } => true,
        _ => false,
    }
}

fn carton_is_invalid(error: &carton_format::Error) -> bool {
    use carton_format::Error;
    match error {
        Error::Core(error) => core_is_invalid(error),
        Error::Archive(error) => archive_is_invalid(error),
        Error::MissingDocument { .. }
        | Error::Manifest { .. }
        | Error::Document(_)
        | Error::MissingFile { .. }
        | Error::Digest { .. }
        | Error::Tensor { .. }
        | Error::UnknownTensor { .. } => true,
        Error::File { fault, .. } => !matches!(fault, FileFault::Io(_)),
        // What is wrong with a carton that is written is wrong with the one that it is made from.
        Error::Write { fault, .. } => {
            matches!(fault, WriteFault::Target { .. } | WriteFault::OtherFiles)
        }
        _ => false,
    }
}

fn nnpackage_is_invalid(error: &nnpackage::Error) -> bool {
    use nnpackage::{BuildFault, ConstantFault, Error, FileFault, ModelFault};
    match error {
        Error::Core(error) | Error::Constant { fault: ConstantFault::Core(error), .. } => {
            core_is_invalid(error)
        }
        Error::Archive(error) => archive_is_invalid(error),
        Error::NotAPackage { .. }
        | Error::SeveralPackages { .. }
        | Error::ManifestMissing { .. }
        | Error::Json { .. }
        | Error::Document { .. }
        | Error::ModelsMissing
        | Error::NotAModel { .. }
        | Error::Malformed { .. }
        | Error::TooDeep { .. }
        | Error::TooManyTables { .. }
        | Error::UnknownTable { .. }
        | Error::Constant { .. }
        | Error::CustomOptions { .. }
        | Error::Hdf5 { .. }
        | Error::Library { .. }
        | Error::Build { fault: BuildFault::Model(_) | BuildFault::NotAModel { .. }, .. } => true,
        Error::File { fault, .. } => !matches!(fault, FileFault::Io(_)),
        // Anything else is sound, and cannot be what was asked for.
        Error::Unwritable { fault, .. } => {
            matches!(fault, ModelFault::OutOfBounds { .. } | ModelFault::TwoPlaces)
        }
        _ => false,
    }
}

fn ptl_is_invalid(error: &ptl_spec::Error) -> bool {
    use ptl_spec::Error;
    match error {
        Error::Core(error) => core_is_invalid(error),
        Error::Archive(error) => archive_is_invalid(error),
        Error::Json { .. }
        | Error::Spec { .. }
        | Error::NoRoot { .. }
        | Error::OutsideRoot { .. }
        | Error::NotLite
        | Error::NoEnd { .. }
        | Error::Pickle { .. }
        | Error::Table(_)
        | Error::TooLong { .. }
        | Error::Tensor { .. } => true,
        _ => false,
    }
}

const fn rten_is_invalid(error: &rten_format::Error) -> bool {
    use rten_format::{Error, Fault};
    match error {
        Error::Core(error) | Error::Constant { fault: Fault::Core(error), .. } => {
            core_is_invalid(error)
        }
        Error::NotRten { .. }
        | Error::BadMagic { .. }
        | Error::UnsupportedVersion { .. }
        | Error::SegmentOffset { .. }
        | Error::SegmentLength { .. }
        | Error::Malformed { .. }
        | Error::TooDeep { .. }
        | Error::TooManyTables { .. }
        | Error::SchemaVersion { .. }
        | Error::UnknownTable { .. }
        | Error::Constant { .. } => true,
        _ => false,
    }
}

fn archive_is_invalid(error: &model_archive::Error) -> bool {
    use model_archive::Error;
    match error {
        Error::Core(error) => core_is_invalid(error),
        Error::Directory { .. } | Error::Flaw(_) | Error::Kind { .. } => true,
        // Content that cannot be decoded is an error of the stream that gives it.
        Error::Io { source, .. } => source.get_ref().is_some_and(|source| {
            source.downcast_ref().is_some_and(core_is_invalid)
                || source.downcast_ref().is_some_and(archive_is_invalid)
                || source.downcast_ref().is_some_and(carton_is_invalid)
        }),
        _ => false,
    }
}

const fn core_is_invalid(error: &tensor_core::Error) -> bool {
    use tensor_core::Error;
    !matches!(
        error,
        Error::Read { .. }
            | Error::File { .. }
            | Error::NotAFile { .. }
            | Error::Locked { .. }
            | Error::Replaced { .. }
            | Error::OutOfMemory { .. }
    )
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
