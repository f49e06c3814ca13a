use std::{fmt, io};

use tensor_core::{
    At, Chain, DType, ErrorKind, Shape,
    text::{Ascii, Quoted, short},
};

use crate::{Format, Generation, Role, Rule};

/// What can be wrong with a zTensor file, or with what is to be written into one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file starts with something else. Format text: Part I, section 1.
    #[error("magic at byte 0 is {found}, expected \"ZTEN1000\", in generation 0.1 \"ZTEN0001\" or in 2 \"\\x89ZT2\\r\\n\\x1a\\n\"", found = Ascii(.found))]
    BadMagic {
        /// The first bytes, at most 8.
        found: Vec<u8>,
    },
    /// A file of generation 2 breaks a rule of its text.
    #[error("{path} at byte {offset} {problem}")]
    Rejected {
        /// The rule.
        rule: Rule,
        /// Where it is in the document, or what part of the file it is.
        path: String,
        /// Where it is in the file, in bytes from its start.
        offset: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A part is in a shard that was not found.
    #[error("object {object} lies in shard {shard:?}, which is not here", object = Quoted(.object))]
    MissingShard {
        /// The name of the object.
        object: String,
        /// The name of the shard.
        shard: String,
    },
    /// The end of the file is not the end of a zTensor file: it was cut off, or never finished.
    /// Format text: Part IV, section 1, steps 1 and 2.
    #[error("footer at byte {offset} is {found}, expected \"ZTEN1000\" behind a manifest size", found = Ascii(.found))]
    BadFooter {
        /// Where the last 8 bytes start.
        offset: u64,
        /// The last 8 bytes.
        found: Vec<u8>,
    },
    /// The manifest size at the end of the file is more than there is before it. Format text:
    /// Part IV, section 1, step 5.
    #[error("manifest size at byte {offset} is {found} bytes, but {room} lie before it")]
    ManifestSize {
        /// Where the size stands.
        offset: u64,
        /// The size.
        found: u64,
        /// Bytes between the header and the footer.
        room: u64,
    },
    /// The manifest breaks CBOR or its schema. Format text: Part II.
    #[error("{path} at byte {offset} {problem}")]
    Manifest {
        /// Where it is in the document, such as `objects."w".shape[0]`.
        path: String,
        /// Where it is in the file, in bytes from its start.
        offset: u64,
        /// What is wrong with it.
        problem: Problem,
    },
    /// An object has no component of a role that its format requires. Format text: Part III.
    #[error("object {object} of format {format} has no component {role}", object = Quoted(.object), format = Quoted(.format.as_str()), role = Quoted(.role.as_str()))]
    MissingComponent {
        /// The name of the object.
        object: String,
        /// Its format.
        format: Format,
        /// The role that is missing.
        role: Role,
    },
    /// An object is read as something that it is not. Format text: Part III.
    #[error("object {object} has format {found}, expected {expected}", object = Quoted(.object), found = Quoted(.found.as_str()))]
    WrongFormat {
        /// The name of the object.
        object: String,
        /// Its format.
        found: Format,
        /// What the call reads.
        expected: &'static str,
    },
    /// A component cannot be used. Format text: Part II, section 3.
    #[error("component {role} of object {object} {fault}", object = Quoted(.object), role = Quoted(.role.as_str()))]
    Component {
        /// The name of the object.
        object: String,
        /// The role of the component.
        role: Role,
        /// What is wrong with it.
        fault: Box<Fault>,
    },
    /// The parts of a sparse or quantized object contradict each other. Format text: Part III.
    #[error("object {object}: {problem}", object = Quoted(.object))]
    Layout {
        /// The name of the object.
        object: String,
        /// What does not fit, with the place and the values.
        problem: String,
    },
    /// Two objects of one name were to be written.
    #[error("object {name} is there already, expected a new name", name = Quoted(.name))]
    DuplicateObject {
        /// The name.
        name: String,
    },
    /// An object that is to be removed or replaced is not in the file.
    #[error("object {name} is not in the file", name = Quoted(.name))]
    MissingObject {
        /// The name.
        name: String,
    },
    /// A writer is used after an object that was begun and not finished, or after an error.
    #[error("object {name} was not finished, so nothing more can be written", name = Quoted(.name))]
    Unfinished {
        /// The name of the object.
        name: String,
    },
    /// A setting of the writer is outside what the format allows. Format text: Part I, section 2.
    #[error("{what} is {found}, expected {expected}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// Its value.
        found: i128,
        /// What it may be.
        expected: &'static str,
    },
    /// What the caller gave contradicts itself: parts that do not fit together, or an object that
    /// would be one that readers refuse.
    #[error("{reason}")]
    Given {
        /// What does not fit, with the place and the values.
        reason: String,
    },
    /// What was to be written would be an error to [`lint`](crate::Reader::lint).
    #[error("copy would be faulty: {message}")]
    Faulty {
        /// The fault.
        message: String,
    },
    /// A file of an older generation was to be edited in place.
    #[error("file is of generation {found}, expected 1.1 or 1.2 for editing: migrate it first")]
    NotEditable {
        /// The generation.
        found: Generation,
    },
    /// A file holds what another version of the format has no place for.
    #[error("version {version} cannot hold all of the file: {}", .problems.join("; "))]
    NotExpressible {
        /// The version that was to be written.
        version: &'static str,
        /// What it cannot hold, one a tensor or attribute.
        problems: Vec<String>,
    },
    /// No complete zTensor file could be found in the bytes.
    #[error("no complete manifest was found in {len} bytes, so there is nothing to recover")]
    NothingToRecover {
        /// How many bytes were searched.
        len: u64,
    },
    /// Bytes could not be written.
    #[error("writing at byte {offset} failed")]
    Write {
        /// How many bytes were written before, from the start of the file.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// Bytes could not be read, a range in the file lies, or a shape does.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    /// Returns the stable id of the rule that is broken, such as `zt/blob-misaligned`.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::BadMagic { .. } => "zt/magic",
            Self::Rejected { rule, .. } => rule.id(),
            Self::MissingShard { .. } => "zt2/shard-missing",
            Self::BadFooter { .. } | Self::NothingToRecover { .. } => "zt/footer",
            Self::ManifestSize { .. } => "zt/manifest-size",
            Self::Manifest { problem, .. } => problem.rule(),
            Self::MissingComponent { .. } => "zt/component-missing",
            Self::WrongFormat { .. } => "zt/format",
            Self::Component { fault, .. } => fault.rule(),
            Self::Layout { .. } => "zt/layout",
            Self::DuplicateObject { .. }
            | Self::MissingObject { .. }
            | Self::Unfinished { .. }
            | Self::Setting { .. }
            | Self::Given { .. }
            | Self::Faulty { .. }
            | Self::NotEditable { .. }
            | Self::Write { .. } => "zt/write",
            Self::NotExpressible { .. } => "zt/migrate-refused",
            Self::Core(error) => core_rule(error),
        }
    }

    /// Returns what the error means for whoever meets it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::BadMagic { .. }
            | Self::Rejected { .. }
            | Self::BadFooter { .. }
            | Self::ManifestSize { .. }
            | Self::MissingComponent { .. }
            | Self::Layout { .. }
            | Self::Faulty { .. }
            | Self::NothingToRecover { .. } => ErrorKind::Malformed,
            Self::Manifest { problem, .. } => problem.kind(),
            Self::Component { fault, .. } => fault.kind(),
            Self::WrongFormat { .. }
            | Self::DuplicateObject { .. }
            | Self::Unfinished { .. }
            | Self::Setting { .. }
            | Self::Given { .. }
            | Self::NotExpressible { .. }
            | Self::NotEditable { .. } => ErrorKind::Usage,
            Self::MissingObject { .. } | Self::MissingShard { .. } => ErrorKind::NotFound,
            Self::Write { .. } => ErrorKind::Io,
            Self::Core(error) => error.kind(),
        }
    }

    /// Returns the place that the error is about: object, component and byte, as far as it is about
    /// one.
    #[must_use]
    pub fn at(&self) -> At {
        let file = At::file();
        match self {
            Self::BadMagic { .. } => file.offset(0),
            Self::BadFooter { offset, .. }
            | Self::ManifestSize { offset, .. }
            | Self::Write { offset, .. } => file.offset(*offset),
            // The whole has no place in itself.
            Self::Manifest { path, offset, .. } | Self::Rejected { path, offset, .. }
                if path == WHOLE =>
            {
                file.offset(*offset)
            }
            Self::Manifest { path, offset, .. } | Self::Rejected { path, offset, .. } => {
                file.path(path).offset(*offset)
            }
            Self::Component { object, role, fault } => {
                let path = format!("components.{}", Quoted(role.as_str()));
                file.tensor(short(object)).path(path).offset(fault.offset())
            }
            Self::MissingComponent { object, .. }
            | Self::MissingShard { object, .. }
            | Self::WrongFormat { object, .. }
            | Self::Layout { object, .. } => file.tensor(short(object)),
            Self::DuplicateObject { name }
            | Self::MissingObject { name }
            | Self::Unfinished { name } => file.tensor(short(name)),
            Self::Setting { .. }
            | Self::Given { .. }
            | Self::Faulty { .. }
            | Self::NotEditable { .. }
            | Self::NotExpressible { .. }
            | Self::NothingToRecover { .. } => file,
            Self::Core(error) => error.at(),
        }
    }

    /// Says the same of what the caller gave, which is not in a file yet.
    pub(crate) fn given(self) -> Self {
        Self::Given { reason: Chain(&self).to_string() }
    }
}

fn core_rule(error: &tensor_core::Error) -> &'static str {
    use tensor_core::Error as Core;
    if matches!(error, Core::ShapeOverflow { .. } | Core::SizeOverflow { .. }) {
        return "zt/shape-overflow";
    }
    if error.kind() == ErrorKind::OverLimit { "zt/limit" } else { "zt/read" }
}

/// What is wrong with an item of the manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Another item is there than the schema asks for.
    #[error("is {found}, expected {expected}")]
    Unexpected {
        /// What is there, in words.
        found: String,
        /// What is expected.
        expected: &'static str,
    },
    /// The manifest ends within an item.
    #[error("ends after {remaining} of {needed} bytes")]
    Truncated {
        /// Bytes that the item needs.
        needed: u64,
        /// Bytes that remain.
        remaining: u64,
    },
    /// A map has a key twice.
    #[error("has the key {key} twice, expected one", key = Quoted(.key))]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A map lacks a required key.
    #[error("has no key {key:?}, which is required")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// Items are nested too deeply.
    #[error("is nested deeper than the limit of {limit} (Limits::depth)")]
    TooDeep {
        /// The limit, in levels.
        limit: u32,
    },
    /// Text is not UTF-8.
    #[error("is text that is not UTF-8")]
    NotUtf8,
    /// Bytes follow the document.
    #[error("is followed by {bytes} more bytes, expected the end of the manifest")]
    Trailing {
        /// How many.
        bytes: u64,
    },
    /// A number is legal but larger than the caller allows.
    #[error("is {found}, over the limit of {limit} (Limits::{field})")]
    OverLimit {
        /// What was found.
        found: u64,
        /// What is allowed.
        limit: u64,
        /// The field of the limits that allows more.
        field: &'static str,
    },
}

impl Problem {
    fn rule(&self) -> &'static str {
        match self {
            Self::Unexpected { .. } => "zt/manifest-type",
            Self::Truncated { .. } => "zt/manifest-truncated",
            Self::DuplicateKey { .. } => "zt/duplicate-key",
            Self::MissingKey { .. } => "zt/missing-key",
            Self::TooDeep { .. } => "zt/manifest-depth",
            Self::NotUtf8 => "zt/not-utf8",
            Self::Trailing { .. } => "zt/manifest-trailing",
            Self::OverLimit { .. } => "zt/limit",
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::TooDeep { .. } | Self::OverLimit { .. } => ErrorKind::OverLimit,
            _ => ErrorKind::Malformed,
        }
    }
}

/// What is wrong with a component.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Its `dtype` is not one of the format's. Format text: Part II, section 4.
    #[error("has dtype {}, expected one of the format's element types", Quoted(.found))]
    UnknownDtype {
        /// The text.
        found: String,
    },
    /// Its `type` is not one that generation 2 names.
    #[error("has type {}, expected one of the format's logical types", Quoted(.found))]
    UnknownType {
        /// The text.
        found: String,
    },
    /// Its `encoding` is not one of the format's, or one that this build leaves out.
    #[error("has encoding {}, expected {expected}", Quoted(.found))]
    UnknownEncoding {
        /// The text.
        found: String,
        /// What this build reads.
        expected: &'static str,
    },
    /// It starts off the grid. Format text: Part I, section 2.
    #[error("starts at byte {offset}, which is not a multiple of 64")]
    Misaligned {
        /// Where it starts.
        offset: u64,
    },
    /// It runs over the header, the manifest or the footer. Format text: Part IV, section 2.
    #[error(
        "covers {length} bytes at byte {offset}, expected them between byte {start} and byte {end}"
    )]
    OutOfBounds {
        /// Where it starts.
        offset: u64,
        /// Its length in bytes.
        length: u64,
        /// Where blobs may start.
        start: u64,
        /// Where the manifest starts.
        end: u64,
    },
    /// It is stored raw and its length is not what the shape needs.
    #[error(
        "is {found} bytes long at byte {offset}, but shape {shape} of {dtype} needs {expected}"
    )]
    WrongLength {
        /// Where it starts.
        offset: u64,
        /// The length in bytes.
        found: u64,
        /// What is needed, in bytes.
        expected: u64,
        /// The element type.
        dtype: DType,
        /// The shape of the component.
        shape: Shape,
    },
    /// It decodes to another number of bytes than is needed.
    #[error("at byte {offset} decodes to {found}, expected {expected} bytes")]
    DecodedLength {
        /// Where it starts.
        offset: u64,
        /// What it decodes to.
        found: Decoded,
        /// What is needed.
        expected: u64,
    },
    /// Its bytes are not what its encoding says.
    #[error("at byte {offset} is malformed zstd: {reason}")]
    Zstd {
        /// Where it starts.
        offset: u64,
        /// What the decoder says.
        reason: io::Error,
    },
    /// Its bytes are not those that the digest was computed from.
    #[error("at byte {offset} has digest {found}, expected {expected}")]
    DigestMismatch {
        /// Where it starts.
        offset: u64,
        /// The digest of the stored bytes.
        found: String,
        /// The digest in the manifest.
        expected: String,
    },
    /// Its digest names a known algorithm, but its value is none.
    #[error(
        "has digest {}, expected {expected} or \"sha256:\" and 64 hex digits",
        Quoted(.found)
    )]
    MalformedDigest {
        /// The text.
        found: String,
        /// What it may be besides.
        expected: &'static str,
    },
    /// A bool is neither 0 nor 1. Format text: Part II, section 4.
    #[error("has a bool at element {index} that is {found}, expected 0 or 1")]
    NotABool {
        /// Which element, counted from 0.
        index: u64,
        /// The byte.
        found: u8,
    },
    /// Its bytes could not be read, or are more than a limit allows.
    #[error("cannot be read: {}", Chain(reason))]
    Read {
        /// Why not.
        reason: tensor_core::Error,
    },
}

impl Fault {
    fn rule(&self) -> &'static str {
        match self {
            Self::UnknownDtype { .. } | Self::UnknownType { .. } => "zt/dtype",
            Self::UnknownEncoding { .. } => "zt/encoding",
            Self::Misaligned { .. } => "zt/blob-misaligned",
            Self::OutOfBounds { .. } => "zt/blob-out-of-bounds",
            Self::WrongLength { .. } => "zt/blob-length",
            Self::DecodedLength { .. } => "zt/decoded-length",
            Self::Zstd { .. } => "zt/zstd",
            Self::DigestMismatch { .. } => "zt/digest-mismatch",
            Self::MalformedDigest { .. } => "zt/digest-malformed",
            Self::NotABool { .. } => "zt/bool",
            Self::Read { reason } => core_rule(reason),
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownDtype { .. } | Self::UnknownType { .. } | Self::UnknownEncoding { .. } => {
                ErrorKind::Unsupported
            }
            Self::Read { reason } => reason.kind(),
            _ => ErrorKind::Malformed,
        }
    }

    const fn offset(&self) -> Option<u64> {
        match self {
            Self::Misaligned { offset }
            | Self::OutOfBounds { offset, .. }
            | Self::WrongLength { offset, .. }
            | Self::DecodedLength { offset, .. }
            | Self::Zstd { offset, .. }
            | Self::DigestMismatch { offset, .. } => Some(*offset),
            _ => None,
        }
    }
}

/// How many bytes came out of a decoder that was stopped where it had said too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// All of them.
    Exactly(u64),
    /// At least one more than this many.
    MoreThan(u64),
}

impl fmt::Display for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(bytes) => write!(f, "{bytes} bytes"),
            Self::MoreThan(bytes) => write!(f, "more than {bytes} bytes"),
        }
    }
}

/// What stands for a path where an error is about the manifest as a whole.
pub(crate) const WHOLE: &str = "manifest";

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
