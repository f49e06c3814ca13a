//! The FlatBuffer container, bytes 4 to 8 of which are `PTMF`.
//!
//! ```text
//! module        0 bytecode_version u32 · 1 extra_files · 2 methods [u32] · 3 state u32 · 4 values
//!               5 storage bytes i32 · 6 storages · 7 object types · 8 sources · 9 constants [u32]
//!               10 operator_version u32 · 11 number of values u32
//! extra file    0 name · 1 content
//! storage       0 data [u8]
//! value         0 type u8 · 1 what the type says
//! tensor        0 storage u32 · 1 scalar type i8 · 2 offset i32 · 3 sizes [i32] · 4 strides [i32]
//!               5 requires_grad bool · 6 quantization
//! quantization  0 scheme i8 · 1 scale f64 · 2 zero_point i32 · 3 scales · 4 zero points · 5 axis i32
//! object        0 type u32 · 1 state u32 · 2 attributes [u32] · 3 function u32
//! object type   0 name · 1 kind u8 · 2 names of attributes
//! function      0 name · 1 instructions · 2 operators · 3 constants [u32] · 4 types · 5 registers u32
//!               6 schema · 7 debug handles · 8 class u32
//! operator      0 name · 1 overload · 2 number of arguments i32
//! schema        0 arguments · 1 returns
//! argument      0 name · 1 type · 2 default u32
//! ```

use std::{
    collections::HashSet,
    io::{self, Write},
    sync::OnceLock,
};

use flat_tables::{Buffer, Fault, Problem, Table, Vector};
use tensor_core::{Budget, Extent, Finding, Limit, Limits, Report, Source};

use crate::{
    Argument, Bytecode, ContainerKind, Error, File, Method, Operator, Result, Strip,
    container::{Container, Files},
    edit::changes::Changes,
    file::FileReader,
    module::{
        self,
        code::{Code, Object},
        stored::{Listing, StorageId},
    },
    zip::{CONSTANTS, DATA, DATA_VERSION},
};

mod code;
mod edit;
mod rewrite;
mod tensors;
mod torchscript;

/// A FlatBuffer file whose root and extra files were read.
#[derive(Debug)]
pub(crate) struct Flat {
    source: Source,
    extra_files: Vec<FlatFile>,
    sources: OnceLock<Vec<FlatFile>>,
    bytecode_version: u32,
    operator_version: u32,
    storages: u64,
}

/// A file inside: the record that a ZIP file would have it in, and where its content is.
#[derive(Clone, Debug)]
struct FlatFile {
    record: String,
    content: Extent,
}

/// Tells whether a file is of this kind.
pub(crate) fn is_flat(start: &[u8]) -> bool {
    start.get(IDENTIFIER_AT..).is_some_and(|rest| rest.starts_with(IDENTIFIER))
}

impl Flat {
    pub(crate) fn open(source: Source, limits: &Limits) -> Result<Self> {
        let (found, limit) = (source.len(), i32::MAX as u64);
        if found > limit {
            return Err(Fault::new("FlatBuffer", 0, Problem::LongBuffer { found }).into());
        }
        let buffer = Buffer::new(&source);
        let root = buffer.root("module")?;
        let extra_files = FlatFile::list(root, field::EXTRA_FILES, extra_record, limits)?;
        let storages = root.vector(field::STORAGES, 4, "storages")?;
        let (bytecode_version, operator_version) = (
            root.u32(field::BYTECODE_VERSION, "bytecode version")?,
            root.u32(field::OPERATOR_VERSION, "operator version")?,
        );
        let storages = storages.map_or(0, |storages| storages.count() as u64);
        let sources = OnceLock::new();
        Ok(Self { source, extra_files, sources, bytecode_version, operator_version, storages })
    }

    fn source_files(&self, limits: &Limits) -> Result<&[FlatFile]> {
        if let Some(sources) = self.sources.get() {
            return Ok(sources);
        }
        let buffer = Buffer::new(&self.source);
        let root = buffer.root("module")?;
        let sources = FlatFile::list(root, field::SOURCES, source_record, limits)?;
        Ok(self.sources.get_or_init(|| sources))
    }

    fn file<'a>(&'a self, file: &'a FlatFile) -> File<'a> {
        File::extent_of(&file.record, &self.source, file.content)
    }
}

impl Container for Flat {
    fn kind(&self) -> ContainerKind {
        ContainerKind::FlatBuffer
    }

    fn extra_files(&self) -> Files<'_> {
        Box::new(self.extra_files.iter().map(|file| self.file(file).as_extra(file.name())))
    }

    fn extra_file(&self, name: &str) -> Option<File<'_>> {
        self.extra_files().find(|file| file.path() == name)
    }

    fn files(&self, limits: &Limits) -> Result<Files<'_>> {
        let sources = self.source_files(limits)?;
        Ok(Box::new(self.extra_files.iter().chain(sources).map(|file| self.file(file))))
    }

    fn bytecode(&self, limits: &Limits) -> Result<Bytecode> {
        let buffer = Buffer::new(&self.source);
        let values = tensors::Values::new(&buffer, limits)?;
        let code = module::budget(limits);
        let methods =
            values.functions().map(|function| method(function?, self.source.len(), &code));
        let methods = methods.collect::<Result<_>>()?;
        Ok(Bytecode { version: self.bytecode_version.into(), methods })
    }

    fn code(&self, limits: &Limits) -> Result<Vec<Code>> {
        code::code(&self.source, limits)
    }

    fn objects(&self, limits: &Limits) -> Result<Vec<Object>> {
        code::objects(&self.source, limits)
    }

    fn tensors(&self, limits: &Limits) -> Result<Listing> {
        tensors::list(&self.source, limits)
    }

    fn storage(&self, storage: &StorageId) -> Result<Option<File<'_>>> {
        let StorageId::Index(index) = storage else { return Ok(None) };
        let buffer = Buffer::new(&self.source);
        let root = buffer.root("module")?;
        let Some(storages) = root.vector(field::STORAGES, 4, "storages")? else { return Ok(None) };
        let Some(storage) = storages.table(*index as usize, "storage")? else { return Ok(None) };
        let data = storage.vector(0, 1, "storage data")?;
        let extent = data.map_or(Extent::first(0), Vector::extent);
        Ok(Some(File::extent_of("storage", &self.source, extent)))
    }

    fn operator_version(&self) -> Option<u32> {
        Some(self.operator_version)
    }

    fn storage_count(&self) -> Option<u64> {
        Some(self.storages)
    }

    fn lint(&self, limits: &Limits, report: &mut Report) {
        let mut names: Vec<&str> = self.extra_files.iter().map(FlatFile::name).collect();
        names.sort_unstable();
        for pair in names.windows(2) {
            if let [one, other] = pair
                && one == other
            {
                let message = format!("two extra files have the name {one:?}");
                report.add(Finding::error("ptl/duplicate-file", message).entry(*one));
            }
        }
        match self.source_files(limits) {
            Ok([]) => {}
            Ok(sources) => {
                let message = format!("{} files of source are kept with the model", sources.len());
                report.add(Finding::note("ptl/sources", message));
            }
            Err(error) => report.add(error.finding()),
        }
    }

    fn is_same(&self, one: &str, other: &str) -> bool {
        one == other
    }

    /// Its code refers to source by numbers that nothing explains.
    fn check_strip(&self, what: Strip) -> Result<()> {
        if what == Strip::DebugRecords {
            let reason = "a FlatBuffer has no debug records, only source";
            return Err(Error::NotEditable { reason });
        }
        Ok(())
    }

    fn edited(&self, limits: &Limits, changes: &Changes) -> Result<Source> {
        if changes.iter().any(|(_, content)| content.is_some()) {
            return Ok(rewrite::rewrite(edit::edited(self, changes)?, limits, &|_| true)?.0);
        }
        let removed: HashSet<_> = changes.iter().map(|(name, _)| extra_record(name)).collect();
        let is_kept = |record: &str| !removed.contains(record);
        Ok(rewrite::rewrite(self.source.clone(), limits, &is_kept)?.0)
    }

    fn rewrite(
        &self,
        limits: &Limits,
        keep: &dyn Fn(&str) -> bool,
        sink: &mut dyn Write,
    ) -> Result<u64> {
        let (new, removed) = rewrite::rewrite(self.source.clone(), limits, keep)?;
        let mut stream = new.stream(Extent::first(new.len()), "FlatBuffer")?;
        io::copy(&mut stream, sink).map_err(FileReader::error)?;
        Ok(removed)
    }

    fn torchscript(&self, limits: &Limits, sink: &mut dyn Write) -> Result<()> {
        let buffer = Buffer::new(&self.source);
        let values = tensors::Values::new(&buffer, limits)?;
        let (state, constants) =
            (torchscript::state(values, limits)?, torchscript::constants(values, limits)?);
        let mut records: Vec<(String, File<'_>)> = Vec::new();
        for (folder, pickled) in [("data", &state), ("constants", &constants)] {
            for (record, &index) in pickled.storages.iter().enumerate() {
                let (storage, problem) = (StorageId::Index(index), "is referred to beyond its end");
                let absent = Error::Module { what: "list of storages", at: 0, problem };
                let file = self.storage(&storage)?.ok_or(absent)?;
                records.push((format!("{folder}/{record}"), file));
            }
        }
        records.extend(self.files(limits)?.map(|file| (file.path().to_owned(), file)));
        let memory = Budget::sharing("records in bytes", limits, self.source.len());
        records.iter().try_for_each(|(_, file)| memory.take(file.size()))?;
        let pickles = [(DATA, state.bytes), (CONSTANTS, constants.bytes)];
        let version = (DATA_VERSION, torchscript::VERSION.to_vec());
        let written = pickles.into_iter().chain([version]);
        torchscript::write(&records, &written.collect::<Vec<_>>(), sink)
    }
}

/// Returns what names of files may take in memory.
const fn names(limits: &Limits) -> Budget {
    Budget::new("names in bytes", limits.document_bytes, Limit::DocumentBytes)
}

/// Returns the record that a ZIP file has for the source of a module.
fn source_record(module: &str) -> String {
    format!("code/{}.py", module.replace('.', "/"))
}

fn extra_record(name: &str) -> String {
    format!("{EXTRA}{name}")
}

impl FlatFile {
    /// Reads a list of files, whose records in a ZIP file would have the names that `record` makes of
    /// theirs.
    fn list(
        root: Table<'_>,
        id: usize,
        record: fn(&str) -> String,
        limits: &Limits,
    ) -> Result<Vec<Self>> {
        let names = names(limits);
        let Some(tables) = root.vector(id, 4, "list of files")? else { return Ok(Vec::new()) };
        limits.check(Limit::Entries, "number of files", tables.count() as u64)?;
        let mut files = Vec::new();
        for table in tables.tables("file") {
            let table = table?;
            let name = table.text(0, TEXT, "name of a file")?.unwrap_or_default();
            names.take(name.len().saturating_add(size_of::<Self>()) as u64)?;
            let content = table.vector(1, 1, "content of a file")?;
            let content = content.map_or(Extent::first(0), Vector::extent);
            files.push(Self { record: record(&name), content });
        }
        Ok(files)
    }

    /// Returns the name of an extra file.
    fn name(&self) -> &str {
        self.record.strip_prefix(EXTRA).unwrap_or_default()
    }
}

fn method(function: Table<'_>, len: u64, code: &Budget) -> Result<Method> {
    let operator = |[name, overload]: [String; 2]| Operator { name, overload };
    let operators = pairs(function, 2, "operators", code)?.map(operator).collect();
    let schema = function.table(6, "schema")?;
    let argument = |[name, type_name]: [String; 2]| Argument { name, type_name };
    let side = |id| match schema {
        Some(schema) => {
            pairs(schema, id, "arguments", code).map(|a| Some(a.map(argument).collect()))
        }
        None => Ok(None),
    };
    let (arguments, returns) = (side(0)?, side(1)?);
    let name = function.text(0, TEXT, "name of a function")?.unwrap_or_default();
    code.take(name.len().saturating_add(size_of::<Method>()) as u64)?;
    Ok(Method {
        name,
        arguments,
        returns,
        operators,
        instructions: instructions(function, len)?,
        registers: function.u32(5, "registers")?.into(),
    })
}

/// Counts instructions: structs of 8 bytes, whose widest field has 4.
fn instructions(function: Table<'_>, len: u64) -> Result<u64> {
    let what = "instructions";
    let Some(list) = function.vector(1, 4, what)? else { return Ok(0) };
    let (at, count) = (list.extent().offset(), list.count() as u64);
    let (needed, remaining) = (count.saturating_mul(8), len.saturating_sub(at));
    if needed > remaining {
        return Err(Fault::new(what, at, Problem::OutOfBounds { needed, remaining }).into());
    }
    Ok(count)
}

/// Reads tables that start with two texts.
fn pairs(
    table: Table<'_>,
    id: usize,
    what: &'static str,
    code: &Budget,
) -> Result<impl Iterator<Item = [String; 2]>> {
    let mut pairs = Vec::new();
    for table in table.vector(id, 4, what)?.into_iter().flat_map(|tables| tables.tables(what)) {
        let table = table?;
        let text = |id| table.text(id, TEXT, what).map(Option::unwrap_or_default);
        let pair = [text(0)?, text(1)?];
        code.take(module::cost(&pair))?;
        pairs.push(pair);
    }
    Ok(pairs.into_iter())
}

/// Fields of the module.
mod field {
    pub(super) const BYTECODE_VERSION: usize = 0;
    pub(super) const EXTRA_FILES: usize = 1;
    pub(super) const METHODS: usize = 2;
    pub(super) const STATE: usize = 3;
    pub(super) const VALUES: usize = 4;
    pub(super) const STORAGES: usize = 6;
    pub(super) const TYPES: usize = 7;
    pub(super) const SOURCES: usize = 8;
    pub(super) const CONSTANTS: usize = 9;
    pub(super) const OPERATOR_VERSION: usize = 10;
}

/// Types of values.
mod kind {
    pub(super) const NONE: u8 = 0;
    pub(super) const INT: u8 = 1;
    pub(super) const BOOL: u8 = 2;
    pub(super) const DOUBLE: u8 = 3;
    pub(super) const COMPLEX: u8 = 4;
    pub(super) const TENSOR: u8 = 5;
    pub(super) const TEXT: u8 = 6;
    pub(super) const LIST: u8 = 7;
    pub(super) const TUPLE: u8 = 8;
    pub(super) const DICT: u8 = 9;
    pub(super) const OBJECT: u8 = 10;
    pub(super) const INT_LIST: u8 = 11;
    pub(super) const DOUBLE_LIST: u8 = 12;
    pub(super) const BOOL_LIST: u8 = 13;
    pub(super) const DEVICE: u8 = 14;
    pub(super) const ENUM: u8 = 15;
    pub(super) const FUNCTION: u8 = 16;
}

/// The folder of extra files in a ZIP file.
const EXTRA: &str = "extra/";
/// Kinds of object types.
mod object_kind {
    /// A class whose objects have fields.
    pub(super) const FIELDS: u8 = 1;
    /// A class of PyTorch itself.
    pub(super) const CUSTOM: u8 = 2;
    /// A class whose objects are made of a state.
    pub(super) const SET_STATE: u8 = 3;
}

/// Bytes of the longest text that is taken for a name.
const TEXT: u64 = 1 << 20;
const IDENTIFIER: &[u8; 4] = b"PTMF";
const IDENTIFIER_AT: usize = 4;
