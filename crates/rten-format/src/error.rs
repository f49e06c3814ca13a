use std::borrow::Cow;

use tensor_core::{Chain, Shape};

/// What can be wrong with a model, or with what is to be written as one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file starts neither as version 2 does, nor as version 1 could. Format text: "History".
    #[error(
        "first 4 bytes are \"{}\", expected \"RTEN\" or, in version 1, the offset of the root \
         table: a multiple of 4 up to {last}",
        .found.escape_ascii()
    )]
    NotRten {
        /// The bytes.
        found: [u8; 4],
        /// The last offset at which there is room for a table.
        last: u64,
    },
    /// What should be a header starts with something else. Format text: "Header".
    #[error("magic at byte 0 is \"{}\", expected \"RTEN\"", .found.escape_ascii())]
    BadMagic {
        /// The first bytes.
        found: [u8; 4],
    },
    /// The header names a version that this crate does not know. Format text: "Header".
    #[error("version at byte 4 is {found}, expected 2")]
    UnsupportedVersion {
        /// The version.
        found: u32,
    },
    /// A part of the file starts inside the header or behind the end. Format text: "Header".
    #[error("{field} at byte {at} is {found}, expected 32 to {file_len}, where the file ends")]
    SegmentOffset {
        /// The field of the header.
        field: &'static str,
        /// Where the field is, in bytes from the start of the file.
        at: u64,
        /// The offset.
        found: u64,
        /// Bytes of the file.
        file_len: u64,
    },
    /// The model data ends behind the end of the file. Format text: "Header".
    #[error(
        "model data length at byte {at} is {found} bytes, but {room} remain from byte {offset}"
    )]
    SegmentLength {
        /// Where the field is, in bytes from the start of the file.
        at: u64,
        /// The length in bytes.
        found: u64,
        /// Where the model data starts, in bytes from the start of the file.
        offset: u64,
        /// Bytes from there to the end of the file.
        room: u64,
    },
    /// A constant cannot be read. Format text: "Tensor data".
    #[error("{path} {fault}")]
    Constant {
        /// Where the node is, such as `graph/then_branch/node 12 "w"`.
        path: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The model data is no FlatBuffer that fits the schema. Format text: "Model data".
    #[error("model data is malformed: {reason}")]
    Malformed {
        /// What the verifier found, with the fields that lead there.
        reason: String,
    },
    /// Tables of the model data are nested too deeply: each level of If and Loop takes four.
    #[error("model data has tables nested deeper than the limit of {limit} (Limits::depth)")]
    TooDeep {
        /// The limit, in tables.
        limit: usize,
    },
    /// The model data refers to more tables than its length has room for, or than are allowed.
    #[error("model data has more than {limit} tables, expected one in 4 bytes, at most 10000000")]
    TooManyTables {
        /// The limit, in tables.
        limit: usize,
    },
    /// The model data follows another version of the schema.
    #[error("schema_version of the model is {found}, expected 1")]
    SchemaVersion {
        /// The version.
        found: i32,
    },
    /// A table of a kind that this crate does not know is not in the model data.
    #[error(
        "{what} of unknown type {tag} at byte {offset} of the model data does not lie within its \
         {len} bytes"
    )]
    UnknownTable {
        /// What the table is for.
        what: &'static str,
        /// Its number in the union.
        tag: u8,
        /// Where it should be, in bytes from the start of the model data.
        offset: u64,
        /// Bytes of the model data.
        len: u64,
    },
    /// A node is referred to by a number that cannot be stored.
    #[error("node id {found} is over the limit of the format, {max}", max = i32::MAX)]
    NodeId {
        /// The number.
        found: u32,
    },
    /// The bytes of a constant are not a whole number of elements.
    #[error("constant data of {found} bytes is not a whole number of elements of {width} bytes")]
    PartialElement {
        /// How many bytes there are.
        found: u64,
        /// Bytes of one element.
        width: u64,
    },
    /// A model is too large to be model data; constants have to go into the tensor data.
    #[error("model data would take up to {found} bytes, over the FlatBuffers limit of {limit}")]
    TooLarge {
        /// An upper bound of the length, in bytes.
        found: u64,
        /// What FlatBuffers allow, in bytes.
        limit: u64,
    },
    /// Subgraphs are nested more deeply than readers of the format allow.
    #[error("subgraphs are nested deeper than {limit} levels, which no reader of RTen allows")]
    SubgraphDepth {
        /// The limit, in levels below the main graph.
        limit: u32,
    },
    /// Bytes could not be read, a range in the file lies, or a shape does.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    /// Returns the offset that the error is about, in bytes from the start of the file, where it
    /// is about one.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self {
            Self::NotRten { .. } | Self::BadMagic { .. } => Some(0),
            Self::UnsupportedVersion { .. } => Some(4),
            Self::SegmentOffset { at, .. } | Self::SegmentLength { at, .. } => Some(*at),
            Self::Constant { fault, .. } => fault.offset(),
            Self::Core(error) => error.offset(),
            _ => None,
        }
    }

    /// Returns the stable id of the rule that is broken, such as `rten/model-data`.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::NotRten { .. } | Self::BadMagic { .. } => "rten/magic",
            Self::UnsupportedVersion { .. } => "rten/version",
            Self::SegmentOffset { .. } => "rten/segment-offset",
            Self::SegmentLength { .. } => "rten/segment-length",
            Self::Constant { fault, .. } => fault.rule(),
            Self::Malformed { .. } => "rten/model-data",
            Self::TooDeep { .. } | Self::TooManyTables { .. } => "rten/limit",
            Self::SchemaVersion { .. } => "rten/schema-version",
            Self::UnknownTable { .. } => "rten/unknown-table",
            Self::Core(tensor_core::Error::OverLimit { .. }) => "rten/limit",
            Self::Core(tensor_core::Error::OutOfBounds { .. }) => "rten/truncated",
            Self::Core(_) => "rten/read",
            _ => "rten/write",
        }
    }
}

/// What is wrong with a constant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It has no elements anywhere.
    #[error("has neither inline data nor a data offset, expected one of them")]
    NoData,
    /// Its elements are in a table that this crate does not know.
    #[error("has inline data of unknown type {tag}, expected 1 to 4")]
    UnknownData {
        /// The number of the table in its union.
        tag: u8,
    },
    /// Its elements are in the tensor data, and nothing says of which type they are.
    #[error("has a data offset but no dtype, expected one of Int32, Float32, Int8, UInt8")]
    NoDtype,
    /// Its elements are in the tensor data, and of a type that this crate does not know.
    #[error("has dtype {code}, expected one of Int32 (0), Float32 (1), Int8 (2), UInt8 (3)")]
    UnknownDtype {
        /// The number of the type.
        code: u16,
    },
    /// Its elements are in tensor data, which a file of version 1 has not.
    #[error("has data offset {offset}, but a file of version 1 has no tensor data")]
    NoTensorData {
        /// Bytes from the start of the tensor data.
        offset: u64,
    },
    /// Its elements end behind the end of the file.
    #[error(
        "needs {len} bytes at byte {data_offset} of the tensor data, which starts at byte \
         {tensor_data_offset} of a file of {file_len} bytes"
    )]
    OutOfBounds {
        /// Bytes from the start of the tensor data.
        data_offset: u64,
        /// Bytes of all elements.
        len: u64,
        /// Where the tensor data starts, in bytes from the start of the file.
        tensor_data_offset: u64,
        /// Bytes of the file.
        file_len: u64,
    },
    /// It has other dimensions than elements inside the model data.
    #[error("has {found} bytes of inline data, but its shape {shape} needs {expected}")]
    WrongLength {
        /// The shape.
        shape: Shape,
        /// Bytes that the shape needs.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// Its shape is over a limit or has no size, or its bytes cannot be read.
    #[error("cannot be read: {}", Chain(.0))]
    Core(tensor_core::Error),
}

impl From<tensor_core::Error> for Fault {
    fn from(error: tensor_core::Error) -> Self {
        Self::Core(error)
    }
}

impl Fault {
    fn offset(&self) -> Option<u64> {
        match self {
            Self::OutOfBounds { data_offset, tensor_data_offset, .. } => {
                tensor_data_offset.checked_add(*data_offset)
            }
            Self::Core(error) => error.offset(),
            _ => None,
        }
    }

    const fn rule(&self) -> &'static str {
        match self {
            Self::NoData | Self::UnknownData { .. } => "rten/constant-data",
            Self::NoDtype | Self::UnknownDtype { .. } => "rten/constant-dtype",
            Self::NoTensorData { .. } => "rten/external-in-v1",
            Self::OutOfBounds { .. } => "rten/tensor-out-of-bounds",
            Self::WrongLength { .. } => "rten/tensor-length",
            Self::Core(tensor_core::Error::OverLimit { .. }) => "rten/limit",
            Self::Core(
                tensor_core::Error::ShapeOverflow { .. } | tensor_core::Error::SizeOverflow { .. },
            ) => "rten/shape-overflow",
            Self::Core(_) => "rten/read",
        }
    }
}

/// Returns a text from a file as far as it is worth showing.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => Cow::Owned(format!("{}…", text.get(..at).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// Characters of a name that messages show: a file may have names of many megabytes, and as many
/// messages about them.
const SHOWN: usize = 120;

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
