//! The ZIP container: records below one root folder.

use std::{
    collections::BTreeMap,
    io::Write,
    sync::{OnceLock, atomic::AtomicBool},
};

use model_archive::{Archive, Entry};
use tensor_core::{Extent, Limit, Limits, Report, Source, Verify};

use crate::{
    Bytecode, ContainerKind, Error, File, Place, Result, TorchScriptFault,
    container::{Container, Files},
    edit::changes::Changes,
    module::{
        self,
        code::{Code, Object},
        stored::{Listing, StorageId},
        walk::{Walk, WalkFault},
    },
    pickle::{Node, Pickle, PickleFault},
};

mod edit;
mod lint;

/// An archive whose records all lie below one folder.
#[derive(Debug)]
pub(crate) struct Zip {
    archive: Archive,
    root: String,
    verify: Verify,
    /// Which entries had their checksum compared, in the order of the directory.
    verified: Vec<AtomicBool>,
    /// Positions of the records by their names in lower case, without the root: PyTorch does not
    /// tell cases apart.
    by_name: BTreeMap<String, usize>,
    /// Names that are one to PyTorch.
    collisions: Vec<String>,
    is_big_endian: OnceLock<bool>,
}

impl Zip {
    pub(crate) fn open(archive: Archive, verify: Verify) -> Result<Self> {
        let first = archive.entry_at(0).map(Entry::name).unwrap_or_default();
        let Some((root, _)) = first.split_once('/') else {
            return Err(Error::NoRoot { entry: first.to_owned() });
        };
        let (root, mut by_name, mut collisions) = (root.to_owned(), BTreeMap::new(), Vec::new());
        for entry in archive.entries() {
            let name = entry.name();
            let Some(name) = name.strip_prefix(&root).and_then(|name| name.strip_prefix('/'))
            else {
                return Err(Error::OutsideRoot { entry: name.to_owned(), root });
            };
            if name.is_empty() || name.ends_with('/') {
                continue;
            }
            if by_name.insert(name.to_ascii_lowercase(), entry.index()).is_some() {
                collisions.push(name.to_owned());
            }
        }
        let verified = archive.entries().map(|_| AtomicBool::new(false)).collect();
        let is_big_endian = OnceLock::new();
        Ok(Self { archive, root, verify, verified, by_name, collisions, is_big_endian })
    }

    /// Returns the name of an entry without the root folder; `None` for a folder.
    fn name_of<'a>(&self, entry: Entry<'a>) -> Option<&'a str> {
        let name = entry.name().get(self.root.len()..)?.strip_prefix('/')?;
        Some(name).filter(|name| !name.is_empty() && !name.ends_with('/'))
    }

    fn file(&self, index: usize) -> Option<File<'_>> {
        let (entry, is_verified) = (self.archive.entry_at(index)?, self.verified.get(index)?);
        let name = self.name_of(entry)?;
        Some(File::record(name, self.archive.source(), entry, self.verify, is_verified))
    }

    fn walk(
        &self,
        name: &'static str,
        place: Place,
        limits: &Limits,
        listing: &mut Listing,
    ) -> Result<()> {
        let Some(record) = self.record(name) else { return Ok(()) };
        let pickle = pickle(record, limits)?;
        let root = pickle.node(pickle.root());
        // PyTorch asserts that it is.
        if place == Place::State && !matches!(root, Node::Object { .. }) {
            let (found, expected) = (root.kind().to_owned(), "an object");
            let fault = PickleFault::Value { what: "the model", found, expected };
            return Err(pickle_error(name, 0, fault));
        }
        let folder = if place == Place::State { "data/" } else { "constants/" };
        let walk = Walk::new(&pickle, place, folder, limits, listing);
        walk.run().map_err(|fault| walk_error(name, fault))
    }

    /// Lists what only the code of the lite interpreter has. Code that cannot be read has no
    /// constants that could be listed; [`bytecode`](Container::bytecode) says why.
    fn walk_code(&self, limits: &Limits, listing: &mut Listing) -> Result<()> {
        let Some(Ok(pickle)) = self.record(BYTECODE).map(|record| pickle(record, limits)) else {
            return Ok(());
        };
        let Ok(constants) = module::constants(&pickle, limits) else { return Ok(()) };
        // PyTorch looks for all of them where it finds one.
        let is_own = |record: File<'_>| record.path().starts_with("bytecode/");
        let folder = if self.records().any(is_own) { "bytecode/" } else { "constants/" };
        let walk = Walk::new(&pickle, Place::Bytecode, folder, limits, listing);
        walk.constants(&constants).map_err(|fault| walk_error(BYTECODE, fault))
    }
}

impl Container for Zip {
    fn kind(&self) -> ContainerKind {
        ContainerKind::Zip
    }

    fn root(&self) -> Option<&str> {
        Some(&self.root)
    }

    fn records(&self) -> Files<'_> {
        Box::new((0..self.verified.len()).filter_map(|index| self.file(index)))
    }

    fn record(&self, name: &str) -> Option<File<'_>> {
        let exact = self.archive.entry(&format!("{}/{name}", self.root)).map(Entry::index);
        let index = exact.or_else(|| self.by_name.get(&name.to_ascii_lowercase()).copied());
        self.file(index?)
    }

    fn extra_files(&self) -> Files<'_> {
        Box::new(self.records().filter_map(|file| Some(file.as_extra(extra_name(file.path())?))))
    }

    fn extra_file(&self, name: &str) -> Option<File<'_>> {
        let file = self.record(&format!("{EXTRA}{name}"))?;
        Some(file.as_extra(extra_name(file.path())?))
    }

    fn files(&self, _: &Limits) -> Result<Files<'_>> {
        Ok(self.records())
    }

    fn bytecode(&self, limits: &Limits) -> Result<Bytecode> {
        let record = self.record(BYTECODE).ok_or(Error::NotLite)?;
        let bytecode = module::bytecode(&pickle(record, limits)?, limits);
        bytecode.map_err(|fault| walk_error(BYTECODE, fault))
    }

    fn code(&self, limits: &Limits) -> Result<Vec<Code>> {
        let record = self.record(BYTECODE).ok_or(Error::NotLite)?;
        let code = module::code(&pickle(record, limits)?, limits);
        code.map_err(|fault| walk_error(BYTECODE, fault))
    }

    fn objects(&self, limits: &Limits) -> Result<Vec<Object>> {
        let Some(record) = self.record(DATA) else { return Ok(Vec::new()) };
        let objects = module::code::objects(&pickle(record, limits)?, limits);
        objects.map_err(|fault| walk_error(DATA, fault))
    }

    fn tensors(&self, limits: &Limits) -> Result<Listing> {
        let mut listing = Listing::new(limits);
        self.walk(DATA, Place::State, limits, &mut listing)?;
        self.walk(CONSTANTS, Place::Constants, limits, &mut listing)?;
        self.walk_code(limits, &mut listing)?;
        Ok(listing)
    }

    fn storage(&self, storage: &StorageId) -> Result<Option<File<'_>>> {
        Ok(match storage {
            StorageId::Record { name, .. } => self.record(name),
            StorageId::Index(_) => None,
        })
    }

    fn is_big_endian(&self) -> bool {
        *self.is_big_endian.get_or_init(|| {
            let order = self.record(BYTE_ORDER).filter(|record| record.size() <= 16);
            order.is_some_and(|record| record.bytes().is_ok_and(|text| text.trim_ascii() == b"big"))
        })
    }

    fn lint(&self, _: &Limits, report: &mut Report) {
        self.report(report);
    }

    /// PyTorch does not tell cases apart.
    fn is_same(&self, one: &str, other: &str) -> bool {
        one.eq_ignore_ascii_case(other)
    }

    fn check_editable(&self) -> Result<()> {
        if self.collisions.is_empty() {
            return Ok(());
        }
        let reason = "two of its records have names that PyTorch takes for one";
        Err(Error::NotEditable { reason })
    }

    fn edited(&self, _: &Limits, changes: &Changes) -> Result<Source> {
        self.with_tail(changes)
    }

    fn grows_whole(&self, edited: &Source) -> Result<bool> {
        self.is_found_meanwhile(edited)
    }

    fn rewrite(
        &self,
        _: &Limits,
        keep: &dyn Fn(&str) -> bool,
        sink: &mut dyn Write,
    ) -> Result<u64> {
        self.rewrite_to(keep, sink)
    }

    fn torchscript(&self, _: &Limits, sink: &mut dyn Write) -> Result<()> {
        let has = |name| self.record(name).is_some();
        let version = if has(DATA_VERSION) { DATA_VERSION } else { VERSION };
        if let Some(name) = [DATA, CONSTANTS, version].into_iter().find(|name| !has(name)) {
            return Err(Error::NotTorchScript { fault: TorchScriptFault::NoRecord { name } });
        }
        self.rewrite_to(&|name| !is_lite(name), sink)?;
        Ok(())
    }
}

/// Tells whether a record is for the lite interpreter alone.
fn is_lite(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let debug = ["mobile_debug_handles.pkl", "callstack_debug_map.pkl"];
    name == BYTECODE || name.starts_with("bytecode/") || debug.contains(&&*name)
}

fn pickle(record: File<'_>, limits: &Limits) -> Result<Pickle> {
    limits.check(Limit::DocumentBytes, "pickle in bytes", record.size())?;
    let bytes = record.checked_bytes()?;
    Pickle::parse(bytes).map_err(|(at, fault)| pickle_error(record.path(), at, fault))
}

fn walk_error(record: &str, fault: WalkFault) -> Error {
    match fault {
        WalkFault::Pickle(fault) => pickle_error(record, 0, fault),
        WalkFault::Core(error) => error.into(),
    }
}

fn pickle_error(record: &str, at: u64, fault: PickleFault) -> Error {
    Error::Pickle { record: record.to_owned(), at, fault }
}

/// Returns the name of the extra file that a record is; `None` for any other.
fn extra_name(record: &str) -> Option<&str> {
    let (folder, name) = record.split_at_checked(EXTRA.len())?;
    folder.eq_ignore_ascii_case(EXTRA).then_some(name)
}

/// Tells whether an archive is a model: the records that every one has are below a folder.
pub(crate) fn is_model(archive: &Archive) -> bool {
    archive.entries().any(|entry| {
        let name = entry.name().split_once('/').map(|(_, name)| name);
        name.is_some_and(|name| [DATA, BYTECODE].contains(&name))
    })
}

/// Tells whether the first bytes are a header of a ZIP file.
pub(crate) fn starts_with_a_record(source: &Source) -> bool {
    let start = source.read(Extent::first(4), "first record");
    start.is_ok_and(|start| *start == *b"PK\x03\x04")
}

/// Tells whether the first record of a ZIP file is named as one of a model.
pub(crate) fn starts_as_model(source: &Source) -> Result<bool> {
    let head = source.read(Extent::first(source.len().min(HEAD)), "first record")?;
    let name = head.get(NAME..).unwrap_or_default();
    let mut parts = name.splitn(2, |byte| *byte == b'/');
    let (Some(_), Some(name)) = (parts.next(), parts.next()) else { return Ok(false) };
    let starts = [DATA, BYTECODE, CONSTANTS, BYTE_ORDER, EXTRA, "version", "data/", "code/"];
    Ok(starts.iter().any(|start| name.starts_with(start.as_bytes())))
}

/// Where the name is in the header of a record, in bytes. ZIP application note, section 4.3.7.
const NAME: usize = 30;
/// What is read for it, in bytes: roots are short.
const HEAD: u64 = 512;
/// The folder of extra files below the root.
const EXTRA: &str = "extra/";
pub(crate) const BYTECODE: &str = "bytecode.pkl";
pub(crate) const DATA: &str = "data.pkl";
pub(crate) const CONSTANTS: &str = "constants.pkl";
const BYTE_ORDER: &str = "byteorder";
/// The version of the archive, up to 5 and from 6 on.
const VERSION: &str = "version";
pub(crate) const DATA_VERSION: &str = ".data/version";
