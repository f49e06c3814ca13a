use std::{
    io,
    path::{Path, PathBuf},
};

use tensor_core::{At, ErrorKind};

use crate::types::{Clash, Contradiction, Misfit};

/// Why a model cannot be exported.
///
/// Paths name nodes as in `graph/then_branch/node 12 "conv1"`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operator has a number that this crate does not know.
    #[error("{path} has operator type {code}, expected 0 to 144")]
    UnknownOperator {
        /// Where the operator is.
        path: String,
        /// The number.
        code: u8,
    },
    /// The node is of a kind that this crate does not know, or of none.
    #[error("{path} is of unknown kind {tag}, expected an operator, a constant or a value")]
    UnknownNode {
        /// Where the node is.
        path: String,
        /// The number of the kind; 0 where the file names none.
        tag: u8,
    },
    /// The attributes are not there, or those of another operator.
    #[error("{path} has attributes of type {found}, but {operator} needs {expected}")]
    Attributes {
        /// Where the operator is.
        path: String,
        /// The operator.
        operator: &'static str,
        /// The table of the format that is there, or `none`.
        found: String,
        /// The table that it needs.
        expected: String,
    },
    /// An attribute, or the element type of a value, has no counterpart in ONNX.
    #[error("{path} has {what} {found}, expected {expected}")]
    Unsupported {
        /// Where the node is.
        path: String,
        /// Which part of it.
        what: &'static str,
        /// What it is.
        found: String,
        /// What can be exported.
        expected: &'static str,
    },
    /// An input that the operator needs is left out.
    #[error("{path} has no input {input}, which {operator} needs")]
    MissingInput {
        /// Where the operator is.
        path: String,
        /// The operator.
        operator: &'static str,
        /// Which input, counted from 0.
        input: usize,
    },
    /// There are more inputs or outputs than the operator has.
    #[error("{path} has {found} {what}, but {operator} has at most {max}")]
    TooMany {
        /// Where the operator is.
        path: String,
        /// The operator.
        operator: &'static str,
        /// `inputs` or `outputs`.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        max: usize,
    },
    /// An id does not lead to a value or constant.
    #[error("{path} refers to node {id}, which is not a value of its graph")]
    Reference {
        /// Where the operator or graph is.
        path: String,
        /// The id.
        id: u32,
    },
    /// A value is read, or given out, but neither an input nor captured, and nothing makes it.
    #[error("{path} is read, but nothing makes it")]
    Undefined {
        /// Where the value is.
        path: String,
    },
    /// A value is made more than once, or is an input or a constant as well.
    #[error("{path} is made more than once")]
    MadeTwice {
        /// Where the value is.
        path: String,
    },
    /// Operators wait for each other.
    #[error("{path} waits for its own output through {operators} operators")]
    Cycle {
        /// Where one of the operators is.
        path: String,
        /// How many there are in the circle.
        operators: usize,
    },
    /// An operator has element types that do not fit together, or that it does not take.
    #[error("{path} has {what} of element type {found}, but {operator} needs {expected}")]
    ElementType {
        /// Where the operator is.
        path: String,
        /// The operator.
        operator: &'static str,
        /// Which input or output, such as `input 1`.
        what: String,
        /// The element type.
        found: String,
        /// Element types that fit.
        expected: String,
    },
    /// A sequence stands where a tensor is needed, or the other way round.
    #[error("{path} has {what} that is a {found}, but {operator} needs a {expected}")]
    Form {
        /// Where the operator is.
        path: String,
        /// The operator.
        operator: &'static str,
        /// Which input or output, such as `input 1`.
        what: String,
        /// `tensor` or `sequence`.
        found: &'static str,
        /// The other one.
        expected: &'static str,
    },
    /// A branch or body does not fit its operator.
    #[error("{path} has {found} {what}, but its operator needs {expected}")]
    Subgraph {
        /// Where the graph is.
        path: String,
        /// `inputs` or `outputs`.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there have to be.
        expected: String,
    },
    /// The model would be larger than a protobuf message can be.
    #[error(
        "model would take {found} bytes, over the protobuf limit of {max}, expected external data",
        max = i32::MAX
    )]
    TooLarge {
        /// How many bytes.
        found: u64,
    },
    /// The data file cannot be named in the model.
    #[error("{path:?} has no file name in UTF-8, which external data needs")]
    FileName {
        /// The path of the model.
        path: PathBuf,
    },
    /// An element type is given for an input that the model does not have.
    #[error("model has no input {name:?}, expected {expected}")]
    NoInput {
        /// Its name.
        name: String,
        /// Names of inputs.
        expected: String,
    },
    /// A constant is broken or cannot be read.
    #[error(transparent)]
    Rten(#[from] crate::Error),
    /// A file is to be kept that is where one is to be written.
    #[error("{path:?} is there already")]
    Exists {
        /// Its path.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    pub(super) fn contradiction(path: String, found: Contradiction) -> Self {
        let Contradiction { operator, what, misfit, .. } = found;
        match misfit {
            Misfit::Kind(Clash { found, expected }) => {
                let (found, expected) = (found.to_string(), expected.to_string());
                Self::ElementType { path, operator, what, found, expected }
            }
            Misfit::Form(Clash { found, expected }) => {
                let (found, expected) = (found.name(), expected.name());
                Self::Form { path, operator, what, found, expected }
            }
        }
    }

    pub(super) fn writing(path: &Path, source: io::Error) -> Self {
        Self::Core(tensor_core::Error::File { path: path.to_owned(), what: "writing", source })
    }

    /// Returns the stable id of the rule that is broken: that of the file, or `rten/onnx`.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Rten(error) => error.rule(),
            Self::Core(error) => error.rule(),
            _ => "rten/onnx",
        }
    }

    /// Returns what the error means for whoever meets it. A file without a counterpart in ONNX may
    /// be sound, so that is not a fault of the file.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Rten(error) => error.kind(),
            Self::Core(error) => error.kind(),
            Self::UnknownOperator { .. }
            | Self::UnknownNode { .. }
            | Self::Attributes { .. }
            | Self::Unsupported { .. }
            | Self::MissingInput { .. }
            | Self::TooMany { .. }
            | Self::Reference { .. }
            | Self::Undefined { .. }
            | Self::MadeTwice { .. }
            | Self::Cycle { .. }
            | Self::ElementType { .. }
            | Self::Form { .. }
            | Self::Subgraph { .. }
            | Self::TooLarge { .. }
            | Self::FileName { .. }
            | Self::NoInput { .. }
            | Self::Exists { .. } => ErrorKind::Usage,
        }
    }

    /// Returns the place that the error is about: the path of a node or graph, or the byte.
    #[must_use]
    pub fn at(&self) -> At {
        match self {
            Self::UnknownOperator { path, .. }
            | Self::UnknownNode { path, .. }
            | Self::Attributes { path, .. }
            | Self::Unsupported { path, .. }
            | Self::MissingInput { path, .. }
            | Self::TooMany { path, .. }
            | Self::Reference { path, .. }
            | Self::Undefined { path }
            | Self::MadeTwice { path }
            | Self::Cycle { path, .. }
            | Self::ElementType { path, .. }
            | Self::Form { path, .. }
            | Self::Subgraph { path, .. } => At::file().path(path),
            Self::Rten(error) => error.at(),
            Self::Core(error) => error.at(),
            _ => At::file(),
        }
    }
}

/// The result of an export.
pub type Result<T, E = Error> = std::result::Result<T, E>;
