use std::io;

use flat_tables::Fault;
use tensor_core::{At, Chain, ErrorKind, Shape};

use crate::model::{Schema, TensorType};

/// What can be wrong with a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A model has the identifier of neither schema.
    #[error(
        "identifier at byte 4 is \"{}\", expected \"CIR0\" or \"TFL3\"", .found.escape_ascii()
    )]
    NotAModel {
        /// The bytes.
        found: [u8; 4],
    },
    /// A model is not a FlatBuffer that fits its schema.
    #[error("model is malformed: {0}")]
    Malformed(Fault),
    /// Training information is not a FlatBuffer of its schema.
    #[error("training information is malformed: {reason}")]
    TrainingInfo {
        /// What is wrong with it.
        reason: String,
    },
    /// Tables of a model are nested too deeply.
    #[error("model has tables nested deeper than the limit of {limit} (Limits::depth)")]
    TooDeep {
        /// The limit, in tables.
        limit: usize,
    },
    /// A model refers to more tables than its length has room for, or than are allowed.
    #[error("model has more than {limit} tables, expected one in 8 bytes, at most 10000000")]
    TooManyTables {
        /// The limit, in tables.
        limit: usize,
    },
    /// The elements of a constant cannot be read.
    #[error("{path} {fault}")]
    Constant {
        /// Where the tensor is, such as `subgraph 0/tensor 3 "w"`.
        path: String,
        /// What is wrong with it.
        fault: ConstantFault,
    },
    /// A model cannot be written, or not in a schema.
    #[error("{path} {fault}")]
    Unwritable {
        /// What cannot be written, such as `subgraph 0/tensor 3`; `model` for all of it.
        path: String,
        /// Why.
        fault: WriteFault,
    },
    /// The custom options of an operator are not a FlexBuffer.
    #[error("custom options at byte {offset} {reason}")]
    CustomOptions {
        /// Where, in bytes from their start.
        offset: u64,
        /// What is wrong there.
        reason: &'static str,
    },
    /// A file could not be written to its end.
    #[error("writing at byte {offset} failed")]
    Output {
        /// How far it was written, in bytes.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The archive of associated files behind a model is broken or refused.
    #[cfg(feature = "archive")]
    #[error(transparent)]
    Archive(#[from] model_archive::Error),
    /// Bytes could not be read, a range in the file lies, or a limit is exceeded.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    /// Returns the stable id of the rule that is broken, such as `model/malformed`.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::NotAModel { .. } => "model/identifier",
            Self::Malformed(_) => "model/malformed",
            Self::TrainingInfo { .. } => "model/training-info",
            Self::TooDeep { .. } | Self::TooManyTables { .. } => "model/limit",
            Self::Constant { fault, .. } => fault.rule(),
            Self::Unwritable { fault, .. } => fault.rule(),
            Self::CustomOptions { .. } => "model/custom-options",
            Self::Output { .. } => "model/write",
            #[cfg(feature = "archive")]
            Self::Archive(error) => error.rule(),
            Self::Core(tensor_core::Error::OutOfBounds { .. }) => "model/truncated",
            Self::Core(error) => match error.kind() {
                ErrorKind::OverLimit => "model/limit",
                ErrorKind::Malformed
                | ErrorKind::Unsupported
                | ErrorKind::NotFound
                | ErrorKind::Io
                | ErrorKind::Busy
                | ErrorKind::Usage => "model/read",
            },
        }
    }

    /// Returns what the error means for whoever meets it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotAModel { .. } | Self::TrainingInfo { .. } | Self::CustomOptions { .. } => {
                ErrorKind::Malformed
            }
            Self::Malformed(fault) => fault.kind(),
            Self::TooDeep { .. } | Self::TooManyTables { .. } => ErrorKind::OverLimit,
            Self::Constant { fault, .. } => fault.kind(),
            Self::Unwritable { fault, .. } => fault.kind(),
            Self::Output { .. } => ErrorKind::Io,
            #[cfg(feature = "archive")]
            Self::Archive(error) => error.kind(),
            Self::Core(error) => error.kind(),
        }
    }

    /// Returns where the error is, as far as that is known.
    #[must_use]
    pub fn at(&self) -> At {
        match self {
            Self::NotAModel { .. } => At::file().offset(4),
            Self::Malformed(fault) => At::file().offset(fault.at()),
            Self::Constant { path, fault } => At::file().path(path).offset(fault.offset()),
            Self::Unwritable { path, .. } => At::file().path(path),
            Self::Output { offset, .. } => At::file().offset(*offset),
            Self::TrainingInfo { .. }
            | Self::TooDeep { .. }
            | Self::TooManyTables { .. }
            | Self::CustomOptions { .. } => At::file(),
            #[cfg(feature = "archive")]
            Self::Archive(error) => error.at(),
            Self::Core(error) => error.at(),
        }
    }
}

/// What is wrong with a constant. It reads on from its path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConstantFault {
    /// Its buffer is not in the model.
    #[error("has buffer {index}, but the model has {count}")]
    NoBuffer {
        /// The position.
        index: u32,
        /// How many buffers there are.
        count: usize,
    },
    /// Its bytes are in another file.
    #[error("has its elements in another file, as external buffer {id}")]
    OtherFile {
        /// The id of the external buffer.
        id: u32,
    },
    /// Its bytes end behind the end of the file.
    #[error("needs {len} bytes at byte {offset} of a file of {file_len} bytes")]
    OutOfBounds {
        /// Where its bytes start, from the start of the file.
        offset: u64,
        /// Their length in bytes.
        len: u64,
        /// Bytes of the file.
        file_len: u64,
    },
    /// A dimension is negative.
    #[error("has the shape {shape:?}, which has a negative dimension")]
    Shape {
        /// The shape.
        shape: Vec<i32>,
    },
    /// Its element type is not one that elements can be given out as.
    #[error("has elements of {tensor_type}, which cannot be given out as numbers")]
    ElementType {
        /// The element type.
        tensor_type: TensorType,
    },
    /// It has other bytes than its shape needs.
    #[error("has {found} bytes, but its shape {shape} of {tensor_type} needs {expected}")]
    WrongLength {
        /// The element type.
        tensor_type: TensorType,
        /// The shape.
        shape: Shape,
        /// Bytes that the shape needs.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// Its elements are in blocks, and rows of its shape end inside of one, or the blocks have more
    /// bytes than 64 bits count.
    #[error("is {tensor_type} of shape {shape}, expected rows of whole blocks of 32 elements")]
    Blocks {
        /// The element type.
        tensor_type: TensorType,
        /// The shape.
        shape: Shape,
    },
    /// Its zeros are left out, so that bytes and shape have nothing to do with each other.
    #[error("is sparse: its elements are not stored in the order of its shape")]
    Sparse,
    /// Its shape is over a limit or has no size, or its bytes cannot be read.
    #[error("cannot be read: {}", Chain(.0))]
    Core(#[from] tensor_core::Error),
}

impl ConstantFault {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoBuffer { .. }
            | Self::OutOfBounds { .. }
            | Self::Shape { .. }
            | Self::WrongLength { .. }
            | Self::Blocks { .. } => ErrorKind::Malformed,
            Self::OtherFile { .. } | Self::ElementType { .. } | Self::Sparse => ErrorKind::Usage,
            Self::Core(error) => error.kind(),
        }
    }

    pub(crate) fn rule(&self) -> &'static str {
        match self {
            Self::NoBuffer { .. } => "model/buffer-index",
            Self::OtherFile { .. } => "model/other-file",
            Self::OutOfBounds { .. } => "model/buffer-out-of-bounds",
            Self::Shape { .. } | Self::Blocks { .. } => "model/shape",
            Self::ElementType { .. } => "model/element-type",
            Self::WrongLength { .. } => "model/buffer-length",
            Self::Sparse => "model/sparse",
            Self::Core(tensor_core::Error::OverLimit { .. }) => "model/limit",
            Self::Core(_) => "model/shape",
        }
    }

    const fn offset(&self) -> Option<u64> {
        match self {
            Self::OutOfBounds { offset, .. } => Some(*offset),
            Self::NoBuffer { .. }
            | Self::OtherFile { .. }
            | Self::Shape { .. }
            | Self::ElementType { .. }
            | Self::Blocks { .. }
            | Self::WrongLength { .. }
            | Self::Sparse
            | Self::Core(_) => None,
        }
    }
}

/// Why a model cannot be written. It reads on from the path of what cannot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteFault {
    /// The schema has no place for it.
    #[error("has {what}, which {schema} has not")]
    NotInSchema {
        /// What it has.
        what: String,
        /// The schema.
        schema: Schema,
    },
    /// It has a table of a kind that this crate does not know.
    #[error("has {what} of unknown type {tag}, which would be lost")]
    Unknown {
        /// What the table is for.
        what: &'static str,
        /// Its number in the union.
        tag: u8,
    },
    /// It has fields that this crate does not know.
    #[error("has unknown fields in the table at byte {offset}, which would be lost")]
    UnknownFields {
        /// Where the first such table starts, in bytes from the start of the file.
        offset: u64,
    },
    /// A number stands for something in one schema that is not known, and could be anything in the
    /// other.
    #[error("has {what} {code}, of which nothing is known")]
    UnknownNumber {
        /// What has the number.
        what: &'static str,
        /// The number.
        code: i32,
    },
    /// It has more bytes than the offsets of tables reach.
    #[error("needs {found} bytes in its tables, which reach {limit}")]
    TooLarge {
        /// Bytes that it needs, at least.
        found: u64,
        /// Bytes that there may be.
        limit: u64,
    },
    /// It has bytes in the tables and outside of them.
    #[error("has bytes in the tables and outside of them, expected one of both")]
    TwoPlaces,
    /// Its bytes are outside of the tables of a file, and no file was given.
    #[error("has bytes at byte {offset} of a file, and there is none to read them from")]
    NoFile {
        /// Where they start, from the start of the file.
        offset: u64,
    },
    /// Its bytes end behind the end of the file.
    #[error("needs {len} bytes at byte {offset} of a file of {file_len} bytes")]
    OutOfBounds {
        /// Where they start, from the start of the file.
        offset: u64,
        /// Their length in bytes.
        len: u64,
        /// Bytes of the file.
        file_len: u64,
    },
    /// An archive of files stands behind it, and this crate was built without the feature `archive`.
    #[error("has an archive of files behind it, which is kept with the feature `archive` only")]
    AssociatedFiles,
    /// It would have an error that it does not have; see
    /// [`WriteOptions::unchecked`](crate::WriteOptions::unchecked).
    #[error("{0}")]
    Invalid(String),
}

impl WriteFault {
    /// What is wrong with the file is its fault; all else is sound, and not what was asked for.
    fn kind(&self) -> ErrorKind {
        match self {
            Self::TwoPlaces | Self::OutOfBounds { .. } => ErrorKind::Malformed,
            Self::NotInSchema { .. }
            | Self::Unknown { .. }
            | Self::UnknownFields { .. }
            | Self::UnknownNumber { .. }
            | Self::TooLarge { .. }
            | Self::NoFile { .. }
            | Self::AssociatedFiles
            | Self::Invalid(_) => ErrorKind::Usage,
        }
    }

    pub(crate) fn rule(&self) -> &'static str {
        match self {
            Self::NotInSchema { .. } => "model/not-in-schema",
            Self::Unknown { .. } => "model/unknown-table",
            Self::UnknownFields { .. } => "model/unknown-field",
            Self::UnknownNumber { .. } => "model/unknown-number",
            Self::TooLarge { .. } => "model/too-large",
            Self::TwoPlaces => "model/two-places",
            Self::NoFile { .. } => "model/other-file",
            Self::OutOfBounds { .. } => "model/buffer-out-of-bounds",
            Self::AssociatedFiles => "model/associated-files",
            Self::Invalid(_) => "model/invalid",
        }
    }
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
