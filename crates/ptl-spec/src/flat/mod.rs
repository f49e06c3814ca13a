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

use std::collections::HashSet;

use tensor_core::{Extent, Limits, Shape, Source};

use crate::{
    Argument, Bytecode, Error, Method, Operator, Place, Quantization, Result, ScalarType,
    budget::Budget,
    flat::table::{Buffer, Table, TableFault, Vector},
    module,
    module::stored::{Channels, Listing, StorageId, Stored},
    pickle::Scheme,
};

pub(crate) mod edit;
pub(crate) mod rewrite;
pub(crate) mod table;

/// A FlatBuffer file whose root and extra files were read.
#[derive(Debug)]
pub(crate) struct Flat {
    pub(crate) source: Source,
    pub(crate) extra_files: Vec<FlatFile>,
    pub(crate) bytecode_version: u32,
    pub(crate) operator_version: u32,
    pub(crate) storages: u64,
}

/// An extra file: its name and where its content is.
#[derive(Clone, Debug)]
pub(crate) struct FlatFile {
    pub(crate) name: String,
    pub(crate) content: Extent,
    /// Where the offset of the content is stored.
    pub(crate) content_field: Option<usize>,
}

/// Tells whether a file is of this kind.
pub(crate) fn is_flat(start: &[u8]) -> bool {
    start.get(IDENTIFIER_AT..).is_some_and(|rest| rest.starts_with(IDENTIFIER))
}

impl Flat {
    pub(crate) fn parse(source: Source, limits: &Limits) -> Result<Self> {
        let buffer = Buffer::new(&source);
        let root = Table::root(&buffer, "module")?;
        let mut extra_files = Vec::new();
        if let Some(files) = root.vector(field::EXTRA_FILES, 4, "extra files")? {
            within(files.count, limits.entries, "number of extra files", "entries")?;
            let mut names = Budget::new("names in bytes", limits.document_bytes, "document_bytes");
            for file in files.tables("extra file") {
                let file = FlatFile::read(file?)?;
                names.take(file.name.len())?;
                extra_files.push(file);
            }
        }
        let storages = root.vector(field::STORAGES, 4, "storages")?;
        let (bytecode_version, operator_version) = (
            root.u32(field::BYTECODE_VERSION, "bytecode version")?,
            root.u32(field::OPERATOR_VERSION, "operator version")?,
        );
        let storages = storages.map_or(0, |storages| storages.count as u64);
        Ok(Self { source, extra_files, bytecode_version, operator_version, storages })
    }

    /// Reads the methods.
    pub(crate) fn bytecode(&self, limits: &Limits) -> Result<Bytecode> {
        let buffer = Buffer::new(&self.source);
        let values = Values::new(&buffer, limits)?;
        let mut code = module::budget(limits);
        let mut methods = Vec::new();
        for function in values.functions() {
            methods.push(method(function?, &mut code)?);
        }
        Ok(Bytecode { version: self.bytecode_version.into(), methods })
    }

    /// Reads what there is to know of all tensors.
    pub(crate) fn tensors(&self, limits: &Limits) -> Result<Listing> {
        let buffer = Buffer::new(&self.source);
        let values = Values::new(&buffer, limits)?;
        let mut walk = Walk {
            values,
            limits,
            place: Place::State,
            path: String::new(),
            seen: HashSet::new(),
            visits: Budget::new("number of values", limits.tensors, "tensors"),
            listing: Listing::new(limits),
        };
        walk.visit(walk.values.state, 0)?;
        walk.place = Place::Constants;
        let is_single = walk.values.methods.is_some_and(|methods| methods.count == 1);
        for function in walk.values.functions() {
            let function = function?;
            let name = match is_single {
                true => String::new(),
                false => function.text(0, "name of a function")?.unwrap_or_default(),
            };
            let name = name.rsplit('.').next().unwrap_or_default();
            let constants = function.vector(3, 4, "constants")?;
            for (index, id) in constants.into_iter().flat_map(Vector::u32s).enumerate() {
                let id = id?;
                walk.below(&format!("{name}<const>{index}"), |walk| walk.visit(id, 0))?;
            }
        }
        Ok(walk.listing)
    }

    /// Returns where the data of a storage is.
    pub(crate) fn storage(&self, index: u32) -> Result<Option<Extent>> {
        let buffer = Buffer::new(&self.source);
        let root = Table::root(&buffer, "module")?;
        let Some(storages) = root.vector(field::STORAGES, 4, "storages")? else { return Ok(None) };
        let Some(storage) = storages.table(index as usize, "storage")? else { return Ok(None) };
        let data = storage.vector(0, 1, "storage data")?;
        Ok(Some(data.map_or(Extent::first(0), Vector::extent)))
    }

    /// Returns the files of source that are kept, by the names of the records that a ZIP file would
    /// have them in.
    pub(crate) fn sources(&self, limits: &Limits) -> Result<Vec<String>> {
        let buffer = Buffer::new(&self.source);
        let root = Table::root(&buffer, "module")?;
        let mut names = Vec::new();
        let mut memory = Budget::new("names in bytes", limits.document_bytes, "document_bytes");
        if let Some(sources) = root.vector(field::SOURCES, 4, "sources")? {
            for source in sources.tables("source") {
                let name = source?.text(0, "name of a source")?.unwrap_or_default();
                memory.take(name.len().saturating_add(size_of::<String>()))?;
                names.push(source_record(&name));
            }
        }
        Ok(names)
    }
}

/// Returns the record that a ZIP file has for the source of a module.
pub(crate) fn source_record(module: &str) -> String {
    format!("code/{}.py", module.replace('.', "/"))
}

impl FlatFile {
    fn read(table: Table<'_>) -> Result<Self> {
        let name = table.text(0, "name of an extra file")?.unwrap_or_default();
        let content = table.vector(1, 1, "content of an extra file")?;
        let content = content.map_or(Extent::first(0), Vector::extent);
        Ok(Self { name, content, content_field: table.field(1)? })
    }
}

/// The values of a module, which refer to each other by number.
#[derive(Clone, Copy)]
struct Values<'b> {
    values: Option<Vector<'b>>,
    types: Option<Vector<'b>>,
    methods: Option<Vector<'b>>,
    state: u32,
}

impl<'b> Values<'b> {
    fn new(buffer: &'b Buffer<'b>, limits: &Limits) -> Result<Self> {
        let root = Table::root(buffer, "module")?;
        let values = root.vector(field::VALUES, 4, "values")?;
        let count = values.map_or(0, |values| values.count);
        within(count, limits.tensors, "number of values", "tensors")?;
        let types = root.vector(field::TYPES, 4, "object types")?;
        let methods = root.vector(field::METHODS, 4, "methods")?;
        Ok(Self { values, types, methods, state: root.u32(field::STATE, "state")? })
    }

    /// Returns the type of a value and what it says; `None` where there is no such value.
    fn value(self, id: u32) -> Result<Option<(u8, Table<'b>)>> {
        let Some(values) = self.values else { return Ok(None) };
        let Some(value) = values.table(id as usize, "value")? else { return Ok(None) };
        let kind = value.u8(0, "type of a value")?;
        // Numbers are structs, which have no vtable.
        let is_table = matches!(kind, kind::TENSOR..=kind::BOOL_LIST | kind::FUNCTION);
        let inner = if is_table { value.table(1, "value")? } else { None };
        Ok(inner.map(|inner| (kind, inner)))
    }

    fn functions(self) -> impl Iterator<Item = Result<Table<'b>>> {
        let methods = self.methods.into_iter().flat_map(Vector::u32s);
        methods.map(move |id| match self.value(id?)? {
            Some((kind::FUNCTION, function)) => Ok(function),
            _ => {
                let problem = "name a value that is no function";
                let at = self.methods.map_or(0, |methods| methods.at as u64);
                Err(TableFault { what: "methods", at, problem }.into())
            }
        })
    }
}

/// Collects tensors with their paths; an object that is shared is walked once.
struct Walk<'b> {
    values: Values<'b>,
    limits: &'b Limits,
    place: Place,
    path: String,
    seen: HashSet<u32>,
    visits: Budget,
    listing: Listing,
}

impl Walk<'_> {
    fn visit(&mut self, id: u32, depth: u32) -> Result<()> {
        within(depth as usize, self.limits.depth.into(), "nesting of objects", "depth")?;
        self.visits.take(1)?;
        let deeper = depth.saturating_add(1);
        let Some((kind, value)) = self.values.value(id)? else { return Ok(()) };
        match kind {
            kind::TENSOR => {
                let tensor = self.tensor(value)?;
                Ok(self.listing.push(tensor, self.limits)?)
            }
            kind::LIST | kind::TUPLE if self.seen.insert(id) => {
                let items = value.vector(0, 4, "items")?;
                for (index, item) in items.into_iter().flat_map(Vector::u32s).enumerate() {
                    let item = item?;
                    self.below(&format!(".{index}"), |walk| walk.visit(item, deeper))?;
                }
                Ok(())
            }
            kind::DICT if self.seen.insert(id) => {
                let (keys, items) = (value.vector(0, 4, "keys")?, value.vector(1, 4, "values")?);
                let keys = keys.into_iter().flat_map(Vector::u32s);
                for (key, item) in keys.zip(items.into_iter().flat_map(Vector::u32s)) {
                    let name = match self.values.value(key?)? {
                        Some((kind::TEXT, key)) => key.text(0, "key")?.unwrap_or_default(),
                        _ => "?".to_owned(),
                    };
                    let (name, item) = (format!(".{name}"), item?);
                    self.below(&name, |walk| walk.visit(item, deeper))?;
                }
                Ok(())
            }
            kind::OBJECT if self.seen.insert(id) => self.object(value, deeper),
            _ => Ok(()),
        }
    }

    fn object(&mut self, object: Table<'_>, depth: u32) -> Result<()> {
        let index = object.u32(0, "type of an object")?;
        let types = self.values.types;
        let class = types.map(|types| types.table(index as usize, "object type")).transpose()?;
        let names = match class.flatten() {
            Some(class) => class.vector(2, 4, "names of attributes")?,
            None => None,
        };
        let attributes = object.vector(2, 4, "attributes")?;
        for (index, item) in attributes.into_iter().flat_map(Vector::u32s).enumerate() {
            let name =
                names.map(|names| names.text_at(index, "name of an attribute")).transpose()?;
            let name = name.flatten().unwrap_or_else(|| index.to_string());
            let item = item?;
            self.below(&format!(".{name}"), |walk| walk.visit(item, depth))?;
        }
        match object.u32(1, "state of an object")? {
            0 => Ok(()),
            state => self.below("<state>", |walk| walk.visit(state, depth)),
        }
    }

    fn below<T>(&mut self, step: &str, visit: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let len = self.path.len();
        let step = if len == 0 { step.strip_prefix('.').unwrap_or(step) } else { step };
        self.path.push_str(step);
        within(self.path.len(), self.limits.name_bytes, "path of a tensor in bytes", "name_bytes")?;
        let result = visit(self);
        self.path.truncate(len);
        result
    }

    fn tensor(&mut self, tensor: Table<'_>) -> Result<Stored> {
        let mut stored = self.dense(tensor)?;
        if let Some(table) = tensor.table(6, "quantization")? {
            stored.quantization = Some(quantization(table)?);
            let mut channel = |id, step, what| match table.table(id, what)? {
                Some(channel) => self.below(step, |walk| walk.dense(channel)).map(Some),
                None => Ok(None),
            };
            let scales = channel(3, ".scales", "scales")?;
            let zero_points = channel(4, ".zero_points", "zero points")?;
            if let Some((scales, zero_points)) = scales.zip(zero_points) {
                stored.channels = Some(Box::new(Channels { scales, zero_points }));
            }
        }
        Ok(stored)
    }

    /// Reads all of a tensor but how it is quantized.
    fn dense(&mut self, tensor: Table<'_>) -> Result<Stored> {
        let code = tensor.i8(1, "scalar type")?;
        let bad = |what, problem| TableFault { what, at: tensor.at as u64, problem };
        let scalar =
            ScalarType::from_code(code).ok_or(bad("tensor", "has an unknown scalar type"))?;
        let whole = |number: i32| {
            let number = u64::try_from(number);
            number.map_err(|_| bad("tensor", "has a negative offset, size or stride"))
        };
        let numbers = |id, what| {
            let Some(vector) = tensor.vector(id, 4, what)? else { return Ok(Vec::new()) };
            within(vector.count, self.limits.rank, "rank of a tensor", "rank")?;
            vector.i32s().map(|number| Ok(whole(number?)?)).collect::<Result<Vec<u64>>>()
        };
        let shape: Shape = numbers(3, "sizes")?.into();
        let strides = numbers(4, "strides")?;
        if shape.rank() != strides.len() {
            return Err(bad("tensor", "has another number of strides than of sizes").into());
        }
        Ok(Stored {
            place: self.place,
            path: self.path.clone(),
            scalar,
            shape,
            strides,
            offset: whole(tensor.i32(2, "storage offset")?)?,
            storage: StorageId::Index(tensor.u32(0, "storage")?),
            requires_grad: tensor.u8(5, "requires_grad")? != 0,
            quantization: None,
            channels: None,
        })
    }
}

fn quantization(table: Table<'_>) -> Result<Quantization> {
    let code = table.i8(0, "scheme")?;
    let scheme = usize::try_from(code).ok().and_then(|code| Scheme::ALL.get(code)).copied();
    let problem = "has an unknown scheme";
    let unknown = TableFault { what: "quantization", at: table.at as u64, problem };
    match scheme.ok_or(unknown)? {
        scheme @ (Scheme::PerTensorAffine | Scheme::PerTensorSymmetric) => {
            let (scale, zero_point) = (table.f64(1, "scale")?, table.i32(2, "zero point")?.into());
            Ok(Quantization::PerTensor { scheme, scale, zero_point })
        }
        scheme => Ok(Quantization::PerChannel { scheme, axis: table.i32(5, "axis")?.into() }),
    }
}

fn method(function: Table<'_>, code: &mut Budget) -> Result<Method> {
    let mut operators = Vec::new();
    if let Some(stored) = function.vector(2, 4, "operators")? {
        for operator in stored.tables("operator") {
            let operator = operator?;
            let text = |id| Ok::<_, Error>(operator.text(id, "operator")?.unwrap_or_default());
            let operator = Operator { name: text(0)?, overload: text(1)? };
            code.take(operator.cost())?;
            operators.push(operator);
        }
    }
    let schema = function.table(6, "schema")?;
    let mut side = |id| schema.map(|schema| arguments(schema, id, code)).transpose();
    let (arguments, returns) = (side(0)?, side(1)?);
    let name = function.text(0, "name of a function")?.unwrap_or_default();
    code.take(name.len().saturating_add(size_of::<Method>()))?;
    Ok(Method {
        name,
        arguments,
        returns,
        operators,
        instructions: function.vector(1, 8, "instructions")?.map_or(0, |list| list.count as u64),
        registers: function.u32(5, "registers")?.into(),
    })
}

fn arguments(schema: Table<'_>, id: usize, code: &mut Budget) -> Result<Vec<Argument>> {
    let mut arguments = Vec::new();
    if let Some(stored) = schema.vector(id, 4, "arguments")? {
        for argument in stored.tables("argument") {
            let argument = argument?;
            let text = |id| Ok::<_, Error>(argument.text(id, "argument")?.unwrap_or_default());
            let argument = Argument { name: text(0)?, type_name: text(1)? };
            code.take(argument.cost())?;
            arguments.push(argument);
        }
    }
    Ok(arguments)
}

fn within(found: usize, limit: u64, what: &'static str, field: &'static str) -> Result<()> {
    let found = found as u64;
    if found <= limit {
        return Ok(());
    }
    Err(Error::Core(tensor_core::Error::OverLimit { what, found, limit, field }))
}

/// Fields of the module.
pub(crate) mod field {
    pub(super) const BYTECODE_VERSION: usize = 0;
    pub(crate) const EXTRA_FILES: usize = 1;
    pub(super) const METHODS: usize = 2;
    pub(super) const STATE: usize = 3;
    pub(super) const VALUES: usize = 4;
    pub(super) const STORAGES: usize = 6;
    pub(super) const TYPES: usize = 7;
    pub(crate) const SOURCES: usize = 8;
    pub(super) const OPERATOR_VERSION: usize = 10;
}

/// Types of values.
pub(crate) mod kind {
    pub(crate) const INT: u8 = 1;
    pub(crate) const BOOL: u8 = 2;
    pub(crate) const DOUBLE: u8 = 3;
    pub(crate) const COMPLEX: u8 = 4;
    pub(crate) const TENSOR: u8 = 5;
    pub(crate) const TEXT: u8 = 6;
    pub(crate) const LIST: u8 = 7;
    pub(crate) const TUPLE: u8 = 8;
    pub(crate) const DICT: u8 = 9;
    pub(crate) const OBJECT: u8 = 10;
    pub(crate) const INT_LIST: u8 = 11;
    pub(crate) const DOUBLE_LIST: u8 = 12;
    pub(crate) const BOOL_LIST: u8 = 13;
    pub(crate) const DEVICE: u8 = 14;
    pub(crate) const ENUM: u8 = 15;
    pub(crate) const FUNCTION: u8 = 16;
}

const IDENTIFIER: &[u8; 4] = b"PTMF";
const IDENTIFIER_AT: usize = 4;
