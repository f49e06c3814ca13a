//! What cannot be written: files that do not fit into a package, and edits that cannot be made.

use model_archive::name::NameFault;
use tensor_core::{Chain, ErrorKind};

use crate::{Content, Error};

/// Why a file cannot be put into a package, or taken out of one. It reads on from its path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildFault {
    /// It is not a path that every system can have.
    #[error("is not a path for a file of a package: it {0}")]
    Path(NameFault),
    /// The writer makes this file itself.
    #[error("is made with the package, expected another path")]
    Reserved,
    /// It is there already.
    #[error("is in the package already")]
    Taken,
    /// It is one file with another where case does not count.
    #[error("is one file with {other:?} where case does not count")]
    Case {
        /// The other path.
        other: String,
    },
    /// One of two paths is a file where the other needs a folder.
    #[error("and {other:?} cannot both be there: one would be a file inside of the other")]
    FileAndFolder {
        /// The other path.
        other: String,
    },
    /// It is not a model, and its type was not given.
    #[error("is {found}, expected a Circle or TFLite model, or that its type is given")]
    NotAModel {
        /// What it is.
        found: Content,
    },
    /// It is a model of another type than the one that was given.
    #[error("is {found}, but its type is given as {given:?}")]
    OtherType {
        /// What it is.
        found: Content,
        /// The type.
        given: String,
    },
    /// A type was given that a manifest cannot have.
    #[error("has the type {given:?}, expected \"circle\", \"tflite\", \"bin\" or \"tvn\"")]
    NoType {
        /// The type.
        given: String,
    },
    /// It is a model that cannot be opened.
    #[error("cannot be opened as a model: {}", Chain(&**.0))]
    Model(Box<Error>),
    /// It is a model that needs another file, which is not there.
    #[error("needs the file {location:?}, which is not in {place}")]
    NeedsFile {
        /// The file as the model names it.
        location: String,
        /// Where it was looked for.
        place: &'static str,
    },
    /// It is a model that needs a file outside of where it may look.
    #[error("needs the file {location:?}, which leads out of {out_of}")]
    NeedsOutside {
        /// The file as the model names it.
        location: String,
        /// What it leads out of.
        out_of: &'static str,
    },
    /// It is not there.
    #[error("is not in the package")]
    Missing,
    /// The manifest or a model names it.
    #[error("is named as {by}")]
    Named {
        /// Where.
        by: String,
    },
    /// It would have an error that is not there; see
    /// [`WriteOptions::unchecked`](crate::WriteOptions::unchecked).
    #[error("would be wrong: {0}")]
    Invalid(String),
}

impl BuildFault {
    pub(crate) fn rule(&self) -> &'static str {
        match self {
            Self::Model(error) => error.rule(),
            Self::Path(_)
            | Self::Reserved
            | Self::Taken
            | Self::Case { .. }
            | Self::FileAndFolder { .. }
            | Self::NotAModel { .. }
            | Self::OtherType { .. }
            | Self::NoType { .. }
            | Self::NeedsFile { .. }
            | Self::NeedsOutside { .. }
            | Self::Missing
            | Self::Named { .. }
            | Self::Invalid(_) => "nnp/build",
        }
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Model(error) => error.kind(),
            Self::NotAModel { .. } => ErrorKind::Malformed,
            Self::NeedsFile { .. } | Self::Missing => ErrorKind::NotFound,
            Self::Path(_)
            | Self::Reserved
            | Self::Taken
            | Self::Case { .. }
            | Self::FileAndFolder { .. }
            | Self::OtherType { .. }
            | Self::NoType { .. }
            | Self::NeedsOutside { .. }
            | Self::Named { .. }
            | Self::Invalid(_) => ErrorKind::Usage,
        }
    }
}

/// Why an edit of a package cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditFault {
    /// There is no such model.
    #[error("models[{index}] is not there: there are {count} models")]
    NoModel {
        /// The position that was asked for.
        index: usize,
        /// How many models there are.
        count: usize,
    },
    /// A model goes away that is connected.
    #[error("models[{index}] is connected by {by}, expected that this is dropped too")]
    Connected {
        /// The position of the model.
        index: usize,
        /// The first attribute that refers to it.
        by: String,
    },
    /// The last model goes away, or none was added.
    #[error("the package would have no model")]
    NoModels,
    /// There are more models than references have numbers for.
    #[error("the package would have {count} models, expected at most 65535")]
    ManyModels {
        /// How many.
        count: usize,
    },
    /// A connection that was to be cut is not there.
    #[error("there is no connection from {from} to {to}")]
    NotConnected {
        /// The output.
        from: crate::IoRef,
        /// The input.
        to: crate::IoRef,
    },
    /// The manifest would say something else than what was asked for.
    #[error("MANIFEST would not hold {attribute} as it is asked for")]
    Manifest {
        /// The attribute.
        attribute: &'static str,
    },
    /// A key that cannot stand in a configuration.
    #[error("key {key:?} cannot be written: it {reason}")]
    ConfigKey {
        /// The key.
        key: String,
        /// Why not.
        reason: &'static str,
    },
    /// A value that cannot stand in a configuration.
    #[error("value {value:?} of {key} cannot be written: it {reason}")]
    ConfigValue {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// Why not.
        reason: &'static str,
    },
    /// A key of a configuration that is not set.
    #[error("key {key:?} is not set")]
    NotSet {
        /// The key.
        key: String,
    },
    /// A key would get a name that another one has.
    #[error("key {key:?} is set already")]
    AlreadySet {
        /// The key.
        key: String,
    },
    /// There is no configuration.
    #[error("the package has no configuration")]
    NoConfig,
    /// Packages that are merged have different configurations.
    #[error(
        "packages {first} and {second} have different configurations, expected one to be chosen"
    )]
    Configs {
        /// The position of one package.
        first: usize,
        /// The position of the other one.
        second: usize,
    },
    /// A package that is to be chosen from is not there.
    #[error("package {index} is not there: there are {count} packages")]
    NoPackage {
        /// The position that was asked for.
        index: usize,
        /// How many packages there are.
        count: usize,
    },
}

impl EditFault {
    pub(crate) const fn kind(&self) -> ErrorKind {
        match self {
            Self::NoModel { .. }
            | Self::NotConnected { .. }
            | Self::NotSet { .. }
            | Self::NoConfig
            | Self::NoPackage { .. } => ErrorKind::NotFound,
            Self::Connected { .. }
            | Self::NoModels
            | Self::ManyModels { .. }
            | Self::Manifest { .. }
            | Self::ConfigKey { .. }
            | Self::ConfigValue { .. }
            | Self::AlreadySet { .. }
            | Self::Configs { .. } => ErrorKind::Usage,
        }
    }
}
