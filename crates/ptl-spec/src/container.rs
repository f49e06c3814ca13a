//! What holds the parts of a model file together: the questions that both containers answer.

use std::{fmt, io::Write};

use tensor_core::{Limits, Report, Source};

use crate::{
    Bytecode, File, Result, Strip,
    edit::changes::Changes,
    module::{
        code::{Code, Object},
        stored::{Listing, StorageId},
    },
};

/// What holds the parts of a model file together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContainerKind {
    /// A ZIP file.
    Zip,
    /// One FlatBuffer, whose bytes 4 to 8 are `PTMF`.
    FlatBuffer,
}

impl fmt::Display for ContainerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Zip => "zip",
            Self::FlatBuffer => "flatbuffer",
        })
    }
}

/// Tells whether a record is a file of source.
fn is_source(record: &str) -> bool {
    record.starts_with("code/") && record.ends_with(".py")
}

/// Files that are found one after another.
pub(crate) type Files<'a> = Box<dyn Iterator<Item = File<'a>> + 'a>;

/// An open container.
pub(crate) trait Container: fmt::Debug + Send + Sync {
    fn kind(&self) -> ContainerKind;

    /// Returns the folder that all records lie below.
    fn root(&self) -> Option<&str> {
        None
    }

    fn records(&self) -> Files<'_> {
        Box::new(std::iter::empty())
    }

    /// Finds a record by its name without the root folder.
    fn record(&self, _: &str) -> Option<File<'_>> {
        None
    }

    fn extra_files(&self) -> Files<'_>;

    fn extra_file(&self, name: &str) -> Option<File<'_>>;

    /// Returns all files inside, by the names of the records that a ZIP file has them in.
    fn files(&self, limits: &Limits) -> Result<Files<'_>>;

    /// Returns those that are source.
    fn sources(&self, limits: &Limits) -> Result<Files<'_>> {
        Ok(Box::new(self.files(limits)?.filter(|file| is_source(file.path()))))
    }

    /// Reads the methods.
    fn bytecode(&self, limits: &Limits) -> Result<Bytecode>;

    /// Reads what the methods do.
    fn code(&self, limits: &Limits) -> Result<Vec<Code>>;

    /// Reads the objects of the model, itself first.
    fn objects(&self, limits: &Limits) -> Result<Vec<Object>>;

    /// Reads what there is to know of all tensors.
    fn tensors(&self, limits: &Limits) -> Result<Listing>;

    /// Finds what holds a storage; `None` where nothing does.
    fn storage(&self, storage: &StorageId) -> Result<Option<File<'_>>>;

    /// Tells whether numbers are stored with their most significant byte first.
    fn is_big_endian(&self) -> bool {
        false
    }

    fn operator_version(&self) -> Option<u32> {
        None
    }

    /// Returns how many storages are listed.
    fn storage_count(&self) -> Option<u64> {
        None
    }

    /// Reports what is wrong with the container, without reading what it holds.
    fn lint(&self, limits: &Limits, report: &mut Report);

    /// Tells whether two names of extra files are one.
    fn is_same(&self, one: &str, other: &str) -> bool;

    /// Refuses files about which readers disagree.
    fn check_editable(&self) -> Result<()> {
        Ok(())
    }

    /// Refuses what cannot be taken out.
    fn check_strip(&self, _: Strip) -> Result<()> {
        Ok(())
    }

    /// Returns the file with changed extra files, before any of it is written.
    fn edited(&self, limits: &Limits, changes: &Changes) -> Result<Source>;

    /// Tells whether what such a file has more at its end can be put behind the old one, and readers
    /// see the old file until all of it is there.
    fn grows_whole(&self, _: &Source) -> Result<bool> {
        Ok(false)
    }

    /// Writes all that something leads to, but for the records that `keep` does not name; returns how
    /// many those are.
    fn rewrite(
        &self,
        limits: &Limits,
        keep: &dyn Fn(&str) -> bool,
        sink: &mut dyn Write,
    ) -> Result<u64>;

    /// Writes the archive of the full runtime; what it cannot have is refused before.
    fn torchscript(&self, limits: &Limits, sink: &mut dyn Write) -> Result<()>;
}
