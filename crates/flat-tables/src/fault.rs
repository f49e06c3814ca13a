use std::fmt;

/// Something in a FlatBuffer does not lie where it may.
///
/// One word wide, so that it costs the functions nothing that return it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} at byte {} {}", self.part(), self.at(), self.problem())]
pub struct Fault(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    table: Option<&'static str>,
    what: &'static str,
    at: u64,
    problem: Problem,
}

/// What is wrong with a part of a FlatBuffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The part does not end within the buffer.
    #[error("needs {needed} bytes, but {remaining} remain")]
    OutOfBounds {
        /// Its length in bytes.
        needed: u64,
        /// Bytes of the buffer from where it starts.
        remaining: u64,
    },
    /// A reference leads to itself.
    #[error("has the offset 0, expected one that leads forward")]
    NoOffset,
    /// A reference leads beyond the end.
    #[error("has an offset that leads to byte {target}, expected one before byte {len}")]
    Dangling {
        /// Where it leads, in bytes from the start of the buffer.
        target: u64,
        /// Bytes of the buffer.
        len: u64,
    },
    /// The list of the fields of a table is not within the buffer.
    #[error(
        "has its vtable outside the buffer: {needed} bytes at byte {vtable}, expected before byte \
         {len}"
    )]
    VtableOutside {
        /// Where the list is said to start, in bytes from the start of the buffer.
        vtable: i64,
        /// Its length in bytes, as far as it is known.
        needed: u64,
        /// Bytes of the buffer.
        len: u64,
    },
    /// The list of the fields of a table has an impossible length.
    #[error("has a vtable of {found} bytes, expected an even number from 4 on")]
    VtableLength {
        /// What it says of itself, in bytes.
        found: u16,
    },
    /// A table has an impossible length.
    #[error("has {found} bytes by its vtable, expected from 4 to {remaining}")]
    TableLength {
        /// What its list of fields says, in bytes.
        found: u16,
        /// Bytes of the buffer from where the table starts.
        remaining: u64,
    },
    /// A field does not end within its table.
    #[error("ends {end} bytes into its table, which has {len}")]
    FieldOutside {
        /// Where the field ends, in bytes from the start of the table.
        end: u64,
        /// Bytes of the table.
        len: u64,
    },
    /// A part does not start where its type must.
    #[error("does not start at a multiple of {alignment} bytes")]
    Misaligned {
        /// What is expected, in bytes.
        alignment: u64,
    },
    /// A text is something else.
    #[error("is not UTF-8")]
    NotUtf8,
    /// A text is not followed by a zero.
    #[error("is a text without a zero byte behind it")]
    Unterminated,
    /// A text is longer than the caller asked for.
    #[error("is a text of {found} bytes, expected at most {limit}")]
    LongText {
        /// Its length in bytes.
        found: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A field that each such table must have is absent.
    #[error("is absent, expected in every such table")]
    Missing,
    /// A union has a tag and no value, or a value and no tag.
    #[error("is half a union, expected both a tag and a value or neither")]
    HalfUnion,
    /// The buffer is longer than offsets of 31 bits lead.
    #[error("has {found} bytes, over the FlatBuffers limit of 2147483647")]
    LongBuffer {
        /// Its length in bytes.
        found: u64,
    },
    /// Tables are nested deeper than the caller allows.
    #[error("is nested deeper than the limit of {limit} tables")]
    TooDeep {
        /// What is allowed, in tables.
        limit: usize,
    },
    /// There are more tables than the caller allows; a shared one counts each time.
    #[error("is one more table than the limit of {limit}")]
    TooManyTables {
        /// What is allowed.
        limit: usize,
    },
    /// There are more bytes than the caller allows; shared ones count each time.
    #[error(
        "needs more bytes than the limit of {limit} for all parts, shared ones counted each time"
    )]
    TooMuch {
        /// What is allowed, in bytes.
        limit: usize,
    },
}

impl Fault {
    /// Says what is wrong with a part at a place.
    #[cold]
    #[must_use]
    pub fn new(what: &'static str, at: u64, problem: Problem) -> Self {
        Self(Box::new(Inner { table: None, what, at, problem }))
    }

    /// Returns the part.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        self.0.what
    }

    /// Returns where the part is, in bytes from the start of the buffer.
    #[must_use]
    pub const fn at(&self) -> u64 {
        self.0.at
    }

    /// Returns what is wrong with the part.
    #[must_use]
    pub const fn problem(&self) -> Problem {
        self.0.problem
    }

    /// Moves all places, for a buffer that starts elsewhere in its file.
    #[must_use]
    pub fn moved(mut self, by: u64) -> Self {
        let Inner { at, problem, .. } = &mut *self.0;
        *at = at.saturating_add(by);
        match problem {
            Problem::Dangling { target, len } => {
                (*target, *len) = (target.saturating_add(by), len.saturating_add(by));
            }
            Problem::VtableOutside { vtable, len, .. } => {
                (*vtable, *len) = (vtable.saturating_add_unsigned(by), len.saturating_add(by));
            }
            _ => {}
        }
        self
    }

    /// Gives the part another name.
    #[must_use]
    pub fn named(mut self, what: &'static str) -> Self {
        self.0.what = what;
        self
    }

    /// Names the field that the part is, unless that is known.
    pub(crate) fn in_field(mut self, table: &'static str, field: &'static str) -> Self {
        if self.0.table.is_none() {
            (self.0.table, self.0.what) = (Some(table), field);
        }
        self
    }

    fn part(&self) -> String {
        match self.0.table {
            Some(table) => format!("{table}.{}", self.0.what),
            None => self.0.what.to_owned(),
        }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("part", &self.part())
            .field("at", &self.at())
            .field("problem", &self.problem())
            .finish()
    }
}

impl Problem {
    /// Tells whether the caller's bounds were in the way, not the buffer.
    #[must_use]
    pub const fn is_bound(self) -> bool {
        matches!(
            self,
            Self::LongText { .. }
                | Self::TooDeep { .. }
                | Self::TooManyTables { .. }
                | Self::TooMuch { .. }
        )
    }
}

/// What can go wrong where a FlatBuffer is read from a source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A part does not lie where it may.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The source could not be read.
    #[error(transparent)]
    Core(#[from] tensor_core::Error),
}

impl Error {
    /// Returns what the error means for whoever meets it.
    #[must_use]
    pub fn kind(&self) -> tensor_core::ErrorKind {
        match self {
            Self::Fault(fault) => fault.kind(),
            Self::Core(error) => error.kind(),
        }
    }
}

impl Fault {
    /// Returns what the fault means for whoever meets it.
    #[must_use]
    pub const fn kind(&self) -> tensor_core::ErrorKind {
        if self.problem().is_bound() {
            tensor_core::ErrorKind::OverLimit
        } else {
            tensor_core::ErrorKind::Malformed
        }
    }
}

/// The result of what reads from a source.
pub type Result<T, E = Error> = std::result::Result<T, E>;
