/// What can be wrong with a model, or with what is to be written as one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
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
            Self::Core(error) => error.offset(),
            _ => None,
        }
    }

    /// Returns the stable id of the rule that is broken, such as `rten/model-data`.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "rten/model-data",
            Self::TooDeep { .. } | Self::TooManyTables { .. } => "rten/limit",
            Self::SchemaVersion { .. } => "rten/schema-version",
            Self::UnknownTable { .. } => "rten/unknown-table",
            Self::Core(tensor_core::Error::OverLimit { .. }) => "rten/limit",
            Self::Core(_) => "rten/read",
            _ => "rten/write",
        }
    }
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
