//! What is wrong with archives, entries and files, and how much it matters.

use std::{fmt, io};

use tensor_core::{At, ErrorKind, Finding, Profile, Severity, text::Quoted};

use crate::{Method, TargetFault, name::NameFault};

/// A fault and where it is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FaultAt {
    /// The name of the entry; `None` where the fault is one of the archive as a whole.
    pub entry: Option<String>,
    /// Where it is, in bytes from the start of the archive.
    pub offset: Option<u64>,
    /// What is wrong.
    pub fault: Fault,
}

impl FaultAt {
    pub(crate) fn entry(entry: impl Into<String>, offset: u64, fault: Fault) -> Self {
        Self { entry: Some(entry.into()), offset: Some(offset), fault }
    }

    pub(crate) fn archive(offset: u64, fault: Fault) -> Self {
        Self { entry: None, offset: Some(offset), fault }
    }

    /// Returns the place that it is about.
    #[must_use]
    pub fn at(&self) -> At {
        let mut at = At::file().offset(self.offset);
        at.entry.clone_from(&self.entry);
        at
    }

    /// Returns it as a finding, graded as [`Class::severity`] says.
    #[must_use]
    pub fn finding(&self, profile: Profile) -> Finding {
        let severity = self.fault.class().severity(profile);
        Finding::new(severity, self.fault.rule(), self.to_string()).at(self.at())
    }
}

impl fmt::Display for FaultAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.entry {
            Some(entry) => write!(f, "entry {}", Quoted(entry))?,
            None => f.write_str("archive")?,
        }
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl std::error::Error for FaultAt {}

/// How much a fault matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Readers tolerate it; no profile refuses it.
    Tolerated,
    /// Readers may disagree about what is in the archive: the strict profile refuses it.
    Strict,
    /// It is unsafe to read or to unpack: every profile refuses it.
    Hard,
}

impl Class {
    /// Returns how a report grades such a fault: what a profile refuses is an error.
    #[must_use]
    pub const fn severity(self, profile: Profile) -> Severity {
        match (self, profile) {
            (Self::Note, _) => Severity::Note,
            (Self::Tolerated, _) | (Self::Strict, Profile::Lenient) => Severity::Warning,
            (Self::Strict, Profile::Strict) | (Self::Hard, _) => Severity::Error,
        }
    }
}

/// What is wrong with an archive or an entry. The numbers are those of the ZIP application note.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The name is not a normal relative path.
    #[error("name {0}")]
    Name(NameFault),
    /// The name means something else, or nothing, on some systems.
    #[error("name {0}")]
    Unportable(NameFault),
    /// Two entries have one name.
    #[error("name stands twice in the directory")]
    Duplicate,
    /// One entry is a file and another lies in it as if it were a folder.
    #[error("is a file, but {other:?} lies in it")]
    FileAndFolder {
        /// The entry inside it.
        other: String,
    },
    /// Two names are one on systems that ignore case or composition, or a file is a folder there.
    #[error("name collides with {other:?} where case and composition of letters do not count")]
    Case {
        /// The other name.
        other: String,
    },
    /// The name has bytes beyond ASCII and the flag that says UTF-8 is not set (4.4.4, bit 11).
    #[error("name is UTF-8, but its flag is not set")]
    Utf8Flag,
    /// The entry has a second name in an extra field (4.6.9).
    #[error("extra field gives it the name {other:?} too")]
    SecondName {
        /// The name there.
        other: String,
    },
    /// The method is not one that is read here (4.4.5).
    #[error("method is {found}, expected {expected}")]
    Method {
        /// The number.
        found: u16,
        /// Those that are read.
        expected: String,
    },
    /// The entry is encrypted (4.4.4, bits 0, 6 and 13).
    #[error("is encrypted, expected plain data")]
    Encrypted,
    /// An extra field of which there may be one stands twice (4.5.1).
    #[error("extra field {id:#06x} stands twice, expected once")]
    ExtraTwice {
        /// Its number.
        id: u16,
    },
    /// The entry is said to be in another file of a split archive (4.4.11).
    #[error("starts on disk {found}, expected 0")]
    Disk {
        /// The number of the disk, counted from 0.
        found: u16,
    },
    /// The mode says device, pipe or socket (4.4.15).
    #[error("has mode {mode:o}, expected a file or a folder")]
    Special {
        /// The whole mode.
        mode: u32,
    },
    /// The entry is a symbolic link where none may be.
    #[error("is a symbolic link, expected a file or a folder")]
    Symlink,
    /// The target of a symbolic link is not one that may be followed.
    #[error("links to {target:?}, which {fault}")]
    Target {
        /// The text of the link.
        target: String,
        /// What is wrong with it.
        fault: TargetFault,
    },
    /// A folder has content.
    #[error("is a folder with {bytes} bytes of content, expected none")]
    FolderContent {
        /// How many.
        bytes: u64,
    },
    /// Two entries share bytes.
    #[error("shares bytes with entry {other:?}")]
    Overlap {
        /// The entry that starts later.
        other: String,
    },
    /// An entry reaches into the directory.
    #[error("ends at byte {end}, but the directory starts at byte {directory}")]
    IntoDirectory {
        /// Where it ends.
        end: u64,
        /// Where the directory starts.
        directory: u64,
    },
    /// What stands before the data is not a local header (4.3.7).
    #[error("local header is malformed: {what}")]
    LocalHeader {
        /// What is wrong.
        what: String,
    },
    /// The local header and the directory disagree.
    #[error("local header has {field} {found}, but the directory has {expected}")]
    Mismatch {
        /// The field.
        field: &'static str,
        /// What the local header says.
        found: String,
        /// What the directory says.
        expected: String,
    },
    /// Bytes between entries belong to nothing that the directory lists.
    #[error("{bytes} bytes belong to no entry of the directory")]
    Gap {
        /// How many.
        bytes: u64,
    },
    /// Bytes stand before the first entry.
    #[error("{bytes} bytes stand before the archive")]
    Prefix {
        /// How many.
        bytes: u64,
    },
    /// Bytes stand behind the end record and its comment.
    #[error("{bytes} bytes stand behind the archive")]
    Suffix {
        /// How many.
        bytes: u64,
    },
    /// There is more than one end record: readers may take different ones.
    #[error("{found} end records, expected 1")]
    EndRecords {
        /// How many.
        found: u64,
    },
    /// The end record and the zip64 end record disagree (4.3.14, 4.3.16).
    #[error("end record has {field} {found}, but the zip64 end record has {expected}")]
    EndMismatch {
        /// The field.
        field: &'static str,
        /// What the end record says.
        found: u64,
        /// What the zip64 end record says.
        expected: u64,
    },
    /// The archive has a comment.
    #[error("comment of {bytes} bytes")]
    Comment {
        /// Its length.
        bytes: u64,
    },
    /// The data does not have the size that the directory says.
    #[error("content is {found} bytes long, expected {expected}")]
    Size {
        /// What was decoded, or a lower bound of it.
        found: u64,
        /// What the directory says.
        expected: u64,
    },
    /// The sizes of an entry that is stored as it is differ.
    #[error("is stored in {stored} bytes, but its size is {size}")]
    StoredSize {
        /// Bytes in the archive.
        stored: u64,
        /// The size.
        size: u64,
    },
    /// The checksum does not fit the content.
    #[error("content has CRC-32 {found:08x}, expected {expected:08x}")]
    Crc {
        /// That of the content.
        found: u32,
        /// What the directory says.
        expected: u32,
    },
    /// The stored bytes are not data of their method.
    #[error("{method} data cannot be decoded: {reason}")]
    Decode {
        /// The method.
        method: Method,
        /// What the decoder said.
        reason: String,
    },
    /// Stored bytes are left behind the end of the compressed data.
    #[error("{bytes} stored bytes stand behind the end of its data")]
    Leftover {
        /// How many.
        bytes: u64,
    },
    /// The data is several zstd frames, of which some readers take the first only.
    #[error("data is {found} zstd frames, of which some readers take the first only")]
    Frames {
        /// How many.
        found: u64,
    },
    /// The sizes and the checksum behind the data are not those of the directory (4.3.9).
    #[error("data descriptor differs from the directory")]
    Descriptor,
}

impl Fault {
    /// Returns the stable id of the rule.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        self.facts().0
    }

    /// Returns what it means for whoever meets it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.facts().1
    }

    /// Returns how much it matters.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.facts().2
    }

    const fn facts(&self) -> (&'static str, ErrorKind, Class) {
        use Class::{Hard, Note, Strict, Tolerated};
        use ErrorKind::{Malformed, OverLimit, Unsupported};
        match self {
            Self::Name(fault) => ("zip/name", fault.kind(), Hard),
            Self::Unportable(_) => ("zip/unportable-name", Malformed, Strict),
            Self::Duplicate => ("zip/duplicate-name", Malformed, Hard),
            Self::FileAndFolder { .. } => ("zip/file-and-folder", Malformed, Hard),
            Self::Case { .. } => ("zip/name-case", Malformed, Tolerated),
            Self::Utf8Flag => ("zip/utf8-flag", Malformed, Tolerated),
            Self::SecondName { .. } => ("zip/second-name", Malformed, Strict),
            Self::ExtraTwice { .. } => ("zip/extra-field", Malformed, Strict),
            Self::Disk { .. } => ("zip/disk", Unsupported, Hard),
            Self::Method { .. } => ("zip/method", Unsupported, Hard),
            Self::Encrypted => ("zip/encrypted", Unsupported, Hard),
            Self::Special { .. } => ("zip/special-file", Malformed, Hard),
            Self::Symlink => ("zip/symlink", Malformed, Hard),
            Self::Target { fault: TargetFault::Long(_), .. } => {
                ("zip/symlink-target", OverLimit, Hard)
            }
            Self::Target { .. } => ("zip/symlink-target", Malformed, Hard),
            Self::FolderContent { .. } => ("zip/folder-content", Malformed, Hard),
            Self::Overlap { .. } | Self::IntoDirectory { .. } => ("zip/overlap", Malformed, Hard),
            Self::LocalHeader { .. } => ("zip/local-header", Malformed, Hard),
            Self::Mismatch { .. } => ("zip/local-header", Malformed, Strict),
            Self::Gap { .. } => ("zip/unlisted-bytes", Malformed, Strict),
            Self::Prefix { .. } => ("zip/prefix", Malformed, Strict),
            Self::Suffix { .. } => ("zip/suffix", Malformed, Strict),
            Self::EndRecords { .. } | Self::EndMismatch { .. } => {
                ("zip/end-records", Malformed, Strict)
            }
            Self::Comment { .. } => ("zip/comment", Malformed, Note),
            Self::Size { .. } | Self::StoredSize { .. } => ("zip/size", Malformed, Hard),
            Self::Crc { .. } => ("zip/crc", Malformed, Hard),
            Self::Decode { .. } => ("zip/decode", Malformed, Hard),
            Self::Leftover { .. } => ("zip/leftover", Malformed, Strict),
            Self::Frames { .. } => ("zip/zstd-frames", Malformed, Tolerated),
            Self::Descriptor => ("zip/descriptor", Malformed, Strict),
        }
    }
}

/// What is wrong with a file of a folder. It reads on from its path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// Its path is unsafe.
    #[error("{0}")]
    Name(NameFault),
    /// A symbolic link leads out of the folder.
    #[error("leads out of the folder")]
    Outside,
    /// It is a folder.
    #[error("is a folder, expected a file")]
    Folder,
    /// It is a device, a pipe or the like.
    #[error("is not a regular file")]
    Irregular,
    /// Something else was put in its place, or in that of a folder on the way, while it was opened.
    #[error("was replaced while it was opened")]
    Replaced,
    /// It would have a [hidden name](tensor_core::output::is_temporary), under which nothing stays.
    #[error("has a name as files have until they are complete, and would not stay")]
    Temporary,
    /// The system says no.
    #[error("cannot be read: {0}")]
    Io(io::Error),
}

impl FileFault {
    /// Returns the stable id of the rule.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        self.facts().0
    }

    /// Returns what it means for whoever meets it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.facts().1
    }

    const fn facts(&self) -> (&'static str, ErrorKind) {
        match self {
            Self::Name(fault) => ("folder/name", fault.kind()),
            Self::Temporary => ("folder/name", ErrorKind::Unsupported),
            Self::Outside => ("folder/outside", ErrorKind::Malformed),
            Self::Folder | Self::Irregular => ("folder/kind", ErrorKind::Malformed),
            Self::Replaced => ("folder/replaced", ErrorKind::Busy),
            Self::Io(_) => ("folder/read", ErrorKind::Io),
        }
    }
}

/// Why an entry cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteFault {
    /// The name is not a normal relative path.
    #[error("name {0}")]
    Name(NameFault),
    /// The name was written already.
    #[error("an entry of this name was written already")]
    Duplicate,
    /// A file and a folder would have one name.
    #[error("{other:?} was written already, and one would be a file inside the other")]
    FileAndFolder {
        /// The entry that was written.
        other: String,
    },
    /// The stream did not give as many bytes as it was said to have.
    #[error("stream has {found} bytes, expected {expected}")]
    Size {
        /// What came, or a lower bound of it.
        found: u64,
        /// What was promised.
        expected: u64,
    },
    /// The target of a symbolic link is not one that may be followed.
    #[error("links to {target:?}, which {fault}")]
    Target {
        /// The text of the link.
        target: String,
        /// What is wrong with it.
        fault: TargetFault,
    },
    /// No extra field can bring about the alignment.
    #[error("alignment is {found}, expected a power of two up to 32768")]
    Alignment {
        /// What was asked for.
        found: u64,
    },
    /// The layout of the archive does not have it.
    #[error("the layout of PyTorch has no {what}")]
    Layout {
        /// What was to be written.
        what: &'static str,
    },
    /// The method is not in this build.
    #[error("method is {0}, which this build does not write")]
    Method(Method),
    /// The method does not have the level.
    #[error("level is {found}, expected {expected}")]
    Level {
        /// What was asked for.
        found: i32,
        /// What there is.
        expected: &'static str,
    },
}
