use std::fmt;

use crate::error::{Error, WHOLE};

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $id:literal,)*) => {
        /// A rule of generation 2, by the name that the format's text gives it, in the order in which
        /// readers look. `HeaderMagic` is not among them: what starts otherwise is another
        /// [generation](crate::Generation), or no zTensor file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            /// Returns the id of the rule in findings and errors.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$rule => $id,)*
                }
            }
        }

        impl fmt::Display for Rule {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $(Self::$rule => stringify!($rule),)*
                })
            }
        }
    };
}

rules! {
    /// A file has 48 bytes or more.
    FileTooSmall = "zt2/file-too-small",
    /// It ends with the magic.
    FooterMagic = "zt2/footer-magic",
    /// The footer says version 2.
    Version = "zt2/version",
    /// A manifest is 1 GiB long at most.
    ManifestTooLarge = "zt2/manifest-too-large",
    /// The manifest lies between header and footer; where there is none, offset and hash are 0.
    ManifestBounds = "zt2/manifest-bounds",
    /// The manifest has the hash that the footer says.
    ManifestHash = "zt2/manifest-hash",
    /// The manifest is CBOR of definite lengths, without tags, and nothing follows it.
    CborSyntax = "zt2/cbor-syntax",
    /// Items are in their one encoding: shortest heads and floats, keys in order.
    CborDeterminism = "zt2/cbor-determinism",
    /// No map has a key twice.
    CborDuplicateKey = "zt2/cbor-duplicate-key",
    /// Items nest 32 levels deep at most.
    CborDepth = "zt2/cbor-depth",
    /// Every field has the type and the values that the text names.
    Schema = "zt2/schema",
    /// Names are texts of 1 to 1024 bytes without NUL.
    Name = "zt2/name",
    /// Names of shards are 1 to 64 of `A-Z a-z 0-9 . _ -`, the first not a dot.
    ShardName = "zt2/shard-name",
    /// A shape has 64 dimensions at most, and its product fits 64 bits.
    Shape = "zt2/shape",
    /// Blobs start at multiples of 4096 from 4096 on.
    BlobAlignment = "zt2/blob-alignment",
    /// A part names a shard of the table.
    ShardRef = "zt2/shard-ref",
    /// Blobs end before the footer of their file.
    BlobBounds = "zt2/blob-bounds",
    /// The parts of an object are those of its layout, and fit each other.
    LayoutRule = "zt2/layout-rule",
    /// The data of a dense tensor are as long as its shape needs.
    DenseSize = "zt2/dense-size",
    /// Two blobs of a file are the same or share no byte.
    BlobOverlap = "zt2/blob-overlap",
    /// A shard is the file that the table names.
    ShardIdentity = "zt2/shard-identity",
}

/// A rule that is broken at a place in the manifest; becomes an [`Error`] once the file is known.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) rule: Rule,
    at: usize,
    path: String,
    problem: String,
}

impl Broken {
    pub(crate) fn new(rule: Rule, at: usize, problem: impl Into<String>) -> Self {
        Self { rule, at, path: String::new(), problem: problem.into() }
    }

    /// Names the part that it lies in: called from the inside out.
    pub(crate) fn inside(mut self, part: impl fmt::Display) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{part}{joint}{}", self.path);
        self
    }

    /// Returns what is wrong, without the place.
    pub(crate) fn into_problem(self) -> String {
        self.problem
    }

    /// Turns it into an error about a file in which the manifest starts at `base`.
    pub(crate) fn into_error(self, base: u64) -> Error {
        let path = if self.path.is_empty() { WHOLE.to_owned() } else { self.path };
        let offset = base.saturating_add(self.at as u64);
        Error::Rejected { rule: self.rule, path, offset, problem: self.problem }
    }
}
