use std::io;

use flat_tables::Problem;
use tensor_core::{At, Chain, DType, ErrorKind, Shape, TensorInfo};

use crate::AttributesType;

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
        path: Box<str>,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The model data is not a FlatBuffer that fits the schema. Format text: "Model data".
    #[error("model data is malformed: {fault}")]
    Malformed {
        /// The part, where it is in bytes from the start of the file, and what is wrong with it.
        fault: flat_tables::Fault,
    },
    /// Tables of the model data are nested too deeply: each level of If and Loop takes four.
    #[error("model data has tables nested deeper than the limit of {limit} (Limits::depth)")]
    TooDeep {
        /// The limit, in tables.
        limit: usize,
    },
    /// The model data refers to more tables than its length has room for, or than are allowed.
    #[error(
        "model data has more than {limit} tables, those that are shared counted each time, expected \
         one in 4 bytes, at most 10000000"
    )]
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
    /// A graph cannot become what it is asked to.
    #[error("{path} {fault}")]
    Graph {
        /// What it is about: a node by path or name, or a list of the graph.
        path: String,
        /// What is wrong.
        fault: GraphFault,
    },
    /// What was to be written has an error that what it is made of has not; see
    /// [`WriteOptions::unchecked`](crate::WriteOptions::unchecked).
    #[error("{path} {message}")]
    Invalid {
        /// Where it is: a node or graph by its path.
        path: String,
        /// What is wrong.
        message: String,
    },
    /// Tables have fields that a later release added to them, and that would be lost.
    #[error(
        "{tables} tables have fields of a later release, which would be lost, the first one at \
         {path}"
    )]
    UnknownFields {
        /// How many tables.
        tables: u64,
        /// The path of the node of the first one.
        path: String,
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
    /// Constants have no elements of a type. Format text: "Model data".
    #[error("element type {found} is not one of constants, expected i32, f32, i8 or u8")]
    DType {
        /// The type.
        found: DType,
    },
    /// A dimension has more than 32 bits.
    #[error("dimension of {found} elements is over the limit of the format, {max}", max = u32::MAX)]
    Dimension {
        /// The dimension, in elements.
        found: u64,
    },
    /// Tensor data was to be aligned to what is not an alignment.
    #[error("alignment of {found} bytes is not one, expected a power of two up to {limit}")]
    Alignment {
        /// What was asked for, in bytes.
        found: u32,
        /// The most that there may be, in bytes.
        limit: u32,
    },
    /// A file was finished without the elements of all of its constants.
    #[error("{path} is still without its elements, as are {more} others")]
    Unfinished {
        /// The first constant that waits for them.
        path: String,
        /// How many more there are.
        more: u64,
    },
    /// Elements were given that no constant waits for.
    #[error("elements were given, but no constant waits for any")]
    NonePending,
    /// A file of version 2 is to be wrapped in a header, which it has.
    #[error("the file has a header already, expected one of version 1")]
    Wrapped,
    /// Model data that has to keep its bytes was changed.
    #[error("the model was changed, but model data is wrapped as it is")]
    Changed,
    /// A file is to be written on after something of it could only be written in part.
    #[error("the file cannot be written on, as something before could only be written in part")]
    Failed,
    /// A file could not be written.
    #[error("writing at byte {offset} failed")]
    Write {
        /// Where, in bytes from the start of the file.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// Bytes could not be read, a range in the file lies, or a shape does.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl From<flat_tables::Fault> for Error {
    fn from(fault: flat_tables::Fault) -> Self {
        match fault.problem() {
            Problem::TooDeep { limit } => Self::TooDeep { limit },
            Problem::TooManyTables { limit } => Self::TooManyTables { limit },
            _ => Self::Malformed { fault },
        }
    }
}

impl Error {
    /// Counts the place from the start of the file, for model data that starts elsewhere in it.
    pub(crate) fn moved(self, by: u64) -> Self {
        match self {
            Self::Malformed { fault } => Self::Malformed { fault: fault.moved(by) },
            error => error,
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
            Self::Core(error) => match error.kind() {
                ErrorKind::OverLimit => "rten/limit",
                ErrorKind::Malformed if is_truncation(error) => "rten/truncated",
                _ => "rten/read",
            },
            // What a writer refuses.
            _ => "rten/write",
        }
    }

    /// Returns what the error means for whoever meets it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotRten { .. }
            | Self::BadMagic { .. }
            | Self::SegmentOffset { .. }
            | Self::SegmentLength { .. }
            | Self::UnknownTable { .. } => ErrorKind::Malformed,
            Self::UnsupportedVersion { .. } | Self::SchemaVersion { .. } => ErrorKind::Unsupported,
            Self::TooDeep { .. } | Self::TooManyTables { .. } => ErrorKind::OverLimit,
            Self::Constant { fault, .. } => fault.kind(),
            Self::Malformed { fault } => fault.kind(),
            Self::Write { .. } => ErrorKind::Io,
            Self::Core(error) => error.kind(),
            Self::Graph { .. }
            | Self::Invalid { .. }
            | Self::UnknownFields { .. }
            | Self::NodeId { .. }
            | Self::PartialElement { .. }
            | Self::TooLarge { .. }
            | Self::SubgraphDepth { .. }
            | Self::DType { .. }
            | Self::Dimension { .. }
            | Self::Alignment { .. }
            | Self::Unfinished { .. }
            | Self::NonePending
            | Self::Wrapped
            | Self::Changed
            | Self::Failed => ErrorKind::Usage,
        }
    }

    /// Returns the place that the error is about, as far as it is known: offsets are counted from
    /// the start of the file.
    #[must_use]
    pub fn at(&self) -> At {
        match self {
            Self::NotRten { .. } | Self::BadMagic { .. } => At::file().offset(0),
            Self::UnsupportedVersion { .. } => At::file().offset(4),
            Self::SegmentOffset { at, .. } | Self::SegmentLength { at, .. } => {
                At::file().offset(*at)
            }
            Self::Constant { path, fault } => At::file().path(&**path).offset(fault.offset()),
            Self::Malformed { fault } => At::file().offset(fault.at()),
            Self::Graph { path, .. }
            | Self::Invalid { path, .. }
            | Self::UnknownFields { path, .. }
            | Self::Unfinished { path, .. } => At::file().path(path),
            Self::Write { offset, .. } => At::file().offset(*offset),
            Self::Core(error) => error.at(),
            _ => At::file(),
        }
    }
}

const fn is_truncation(error: &tensor_core::Error) -> bool {
    matches!(error, tensor_core::Error::OutOfBounds { .. })
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
    /// Its elements were given to a writer, and they are too many or too few.
    #[error("was given {found} bytes, but its shape {shape} needs {expected}")]
    GivenLength {
        /// The shape.
        shape: Shape,
        /// Bytes that the shape needs.
        expected: u64,
        /// Bytes that were given; more were not looked at.
        found: u64,
    },
    /// Its elements were given to a writer as a tensor of another type or shape.
    #[error("was given {found}, expected {expected}")]
    GivenTensor {
        /// What was given.
        found: TensorInfo,
        /// What the model says.
        expected: TensorInfo,
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
            Self::Core(error) => error.at().offset,
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
            Self::GivenLength { .. } | Self::GivenTensor { .. } => "rten/write",
            Self::Core(tensor_core::Error::OverLimit { .. }) => "rten/limit",
            Self::Core(
                tensor_core::Error::ShapeOverflow { .. } | tensor_core::Error::SizeOverflow { .. },
            ) => "rten/shape-overflow",
            Self::Core(_) => "rten/read",
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownData { .. } | Self::UnknownDtype { .. } => ErrorKind::Unsupported,
            Self::NoData
            | Self::NoDtype
            | Self::NoTensorData { .. }
            | Self::OutOfBounds { .. }
            | Self::WrongLength { .. }
            | Self::GivenLength { .. }
            | Self::GivenTensor { .. } => ErrorKind::Malformed,
            Self::Core(error) => error.kind(),
        }
    }
}

/// Why a graph cannot be built or changed as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphFault {
    /// Values and constants of a graph have names of their own.
    #[error("has the name of node {by}, expected one of its own")]
    NameTaken {
        /// The id of the node that has the name.
        by: u32,
    },
    /// No node has the id.
    #[error("refers to node {id}, but the graph has {nodes} nodes")]
    NoNode {
        /// The id.
        id: u32,
        /// How many nodes there are.
        nodes: u64,
    },
    /// An operator stands where a value or a constant is needed.
    #[error("refers to node {id}, an operator")]
    NotAValue {
        /// The id of the operator.
        id: u32,
    },
    /// A value is read before an operator makes it.
    #[error("reads node {id}, which nothing makes")]
    Unmade {
        /// The id of the value.
        id: u32,
    },
    /// An operator makes what is given or made by another one.
    #[error("makes node {id}, which is there already")]
    MadeTwice {
        /// The id of the value.
        id: u32,
    },
    /// Outputs of a graph are listed once.
    #[error("is node {id}, which is an output already")]
    OutputTwice {
        /// The id of the output.
        id: u32,
    },
    /// Inputs of a graph are listed once.
    #[error("is node {id}, which is an input already")]
    InputTwice {
        /// The id of the input.
        id: u32,
    },
    /// An input of a graph has to be a value.
    #[error("is node {id}, which is not a value")]
    NoInput {
        /// The id of the node.
        id: u32,
    },
    /// A captured value is found by its name.
    #[error("is captured by its name, expected a node that does not come from another graph")]
    Captured,
    /// A subgraph would find another value by a name than before.
    #[error("would capture another value by the name {name:?} than before")]
    OtherCapture {
        /// The name.
        name: String,
    },
    /// An operator may hold graphs that nothing is known of.
    #[error("has attributes of unknown type {tag}, which may refer to other nodes by their names")]
    UnknownAttributes {
        /// The number of the table.
        tag: u8,
    },
    /// Nothing is known of graphs that may refer to a node by its name.
    #[error(
        "has a name that graphs in attributes of unknown type {tag} may refer to, so it cannot \
         change"
    )]
    OpaqueGraph {
        /// The number of the table.
        tag: u8,
    },
    /// A node has no dimensions.
    #[error("has no dimensions, expected a value with a shape")]
    NoShape,
    /// A value has fewer dimensions.
    #[error("has {rank} dimensions, so there is no dimension {axis}")]
    NoAxis {
        /// The dimension that was asked for, counted from 0.
        axis: u64,
        /// How many there are.
        rank: u64,
    },
    /// An operator has a number that is not known.
    #[error("has type {code}, which is not known")]
    UnknownOperator {
        /// The number.
        code: u8,
    },
    /// An operator has other attributes than RTen takes.
    #[error(
        "has {}, but {name} {}",
        found.map_or_else(|| "no attributes".to_owned(), table_name),
        expected.map_or_else(
            || "takes no attributes".to_owned(),
            |table| format!("needs {}", table_name(table))
        )
    )]
    Attributes {
        /// The name of the operator type.
        name: &'static str,
        /// What it has.
        found: Option<AttributesType>,
        /// What it needs.
        expected: Option<AttributesType>,
    },
    /// An operator has no attributes of a name.
    #[error("has no attribute {name:?}, expected one of: {known}")]
    NoAttribute {
        /// The name.
        name: String,
        /// The names of those that it has.
        known: String,
    },
    /// An attribute cannot be what a text says.
    #[error("has attribute {name} {found:?}, expected {expected}")]
    AttributeText {
        /// The name.
        name: String,
        /// The text.
        found: String,
        /// What it can be.
        expected: String,
    },
    /// A value or constant stands where an operator is needed.
    #[error("is not an operator")]
    NotAnOperator,
    /// If and Loop need their subgraphs.
    #[error("has no {branch}")]
    NoBranch {
        /// The attribute.
        branch: &'static str,
    },
    /// An operator has more inputs than RTen takes.
    #[error("has {found} inputs, but {name} takes up to {max}")]
    TooManyInputs {
        /// The name of the operator type.
        name: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        max: u32,
    },
}

fn table_name(table: AttributesType) -> String {
    table.name().map_or_else(|| format!("table {}", table.code()), str::to_owned)
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
