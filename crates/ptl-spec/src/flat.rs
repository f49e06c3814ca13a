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
//! object        0 type u32 · 1 state u32 · 2 attributes [u32]
//! object type   0 name · 1 kind u8 · 2 names of attributes
//! function      0 name · 1 instructions · 2 operators · 3 constants [u32] · 5 registers u32 · 6 schema
//! operator      0 name · 1 overload
//! schema        0 arguments · 1 returns
//! argument      0 name · 1 type
//! ```

use std::{borrow::Cow, collections::HashSet};

use tensor_core::{Extent, Limits, Shape, Source};

use crate::{
    Argument, Bytecode, Error, Method, Operator, Place, Quantization, Result, ScalarType,
    blocks::Blocks,
    pickle::Scheme,
    stored::{StorageId, Stored},
    table::{Table, TableFault, Vector},
};

/// A FlatBuffer file whose root and extra files were read.
#[derive(Debug)]
pub(crate) struct Flat {
    pub(crate) bytes: Blocks,
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
        let bytes = Blocks::new(source);
        let root = Table::root(&bytes, "module")?;
        let mut extra_files = Vec::new();
        if let Some(files) = root.vector(field::EXTRA_FILES, 4, "extra files")? {
            within(files.count, limits.entries, "number of extra files", "entries")?;
            for file in files.tables("extra file") {
                extra_files.push(FlatFile::read(file?)?);
            }
        }
        let storages = root.vector(field::STORAGES, 4, "storages")?;
        let (bytecode_version, operator_version) = (
            root.u32(field::BYTECODE_VERSION, "bytecode version")?,
            root.u32(field::OPERATOR_VERSION, "operator version")?,
        );
        let storages = storages.map_or(0, |storages| storages.count as u64);
        Ok(Self { bytes, extra_files, bytecode_version, operator_version, storages })
    }

    /// Reads the methods.
    pub(crate) fn bytecode(&self, limits: &Limits) -> Result<Bytecode> {
        let values = Values::new(&self.bytes, limits)?;
        let mut methods = Vec::new();
        for function in values.functions()? {
            methods.push(method(function?)?);
        }
        Ok(Bytecode { version: self.bytecode_version.into(), methods })
    }

    /// Reads what there is to know of all tensors.
    pub(crate) fn tensors(&self, limits: &Limits) -> Result<Vec<Stored>> {
        let values = Values::new(&self.bytes, limits)?;
        let mut walk = Walk {
            values,
            limits,
            place: Place::State,
            path: String::new(),
            seen: HashSet::new(),
            tensors: Vec::new(),
        };
        walk.visit(walk.values.state, 0)?;
        walk.place = Place::Constants;
        let functions: Vec<_> = walk.values.functions()?.collect();
        let is_single = functions.len() == 1;
        for function in functions {
            let function = function?;
            let name = function.text(0, "name of a function")?.unwrap_or_default();
            let name = if is_single { "" } else { name.rsplit('.').next().unwrap_or_default() };
            let constants = function.vector(3, 4, "constants")?;
            for (index, id) in constants.into_iter().flat_map(Vector::u32s).enumerate() {
                walk.below(&format!("{name}<const>{index}"), |walk| walk.visit(id?, 0))?;
            }
        }
        Ok(walk.tensors)
    }

    /// Returns where the data of a storage is.
    pub(crate) fn storage(&self, index: u32) -> Result<Option<Extent>> {
        let root = Table::root(&self.bytes, "module")?;
        let Some(storages) = root.vector(field::STORAGES, 4, "storages")? else { return Ok(None) };
        let Some(storage) = storages.table(index as usize, "storage")? else { return Ok(None) };
        let data = storage.vector(0, 1, "storage data")?;
        Ok(Some(data.map_or(Extent::first(0), Vector::extent)))
    }

    /// Returns the names of the sources that are kept.
    pub(crate) fn sources(&self) -> Result<Vec<String>> {
        let root = Table::root(&self.bytes, "module")?;
        let mut names = Vec::new();
        if let Some(sources) = root.vector(field::SOURCES, 4, "sources")? {
            for source in sources.tables("source") {
                names.push(source?.text(0, "name of a source")?.unwrap_or_default().into_owned());
            }
        }
        Ok(names)
    }
}

impl FlatFile {
    fn read(table: Table<'_>) -> Result<Self> {
        let name = table.text(0, "name of an extra file")?.unwrap_or_default().into_owned();
        let content = table.vector(1, 1, "content of an extra file")?;
        let content = content.map_or(Extent::first(0), Vector::extent);
        Ok(Self { name, content, content_field: table.field(1)? })
    }
}

/// The values of a module, which refer to each other by number.
struct Values<'b> {
    values: Option<Vector<'b>>,
    types: Option<Vector<'b>>,
    methods: Option<Vector<'b>>,
    state: u32,
}

impl<'b> Values<'b> {
    fn new(bytes: &'b Blocks, limits: &Limits) -> Result<Self> {
        let root = Table::root(bytes, "module")?;
        let values = root.vector(field::VALUES, 4, "values")?;
        let count = values.map_or(0, |values| values.count);
        within(count, limits.tensors, "number of values", "tensors")?;
        let types = root.vector(field::TYPES, 4, "object types")?;
        let methods = root.vector(field::METHODS, 4, "methods")?;
        Ok(Self { values, types, methods, state: root.u32(field::STATE, "state")? })
    }

    /// Returns the type of a value and what it says; `None` where there is no such value.
    fn value(&self, id: u32) -> Result<Option<(u8, Table<'b>)>> {
        let Some(values) = self.values else { return Ok(None) };
        let Some(value) = values.table(id as usize, "value")? else { return Ok(None) };
        let kind = value.u8(0, "type of a value")?;
        // Numbers are structs, which have no vtable.
        let is_table = matches!(kind, kind::TENSOR..=kind::BOOL_LIST | kind::FUNCTION);
        let inner = if is_table { value.table(1, "value")? } else { None };
        Ok(inner.map(|inner| (kind, inner)))
    }

    fn functions(&self) -> Result<impl Iterator<Item = Result<Table<'b>>>> {
        let methods = self.methods.into_iter().flat_map(Vector::u32s);
        Ok(methods.map(|id| match self.value(id?)? {
            Some((kind::FUNCTION, function)) => Ok(function),
            _ => {
                let problem = "name a value that is no function";
                let at = self.methods.map_or(0, |methods| methods.at as u64);
                Err(TableFault { what: "methods", at, problem }.into())
            }
        }))
    }
}

/// Collects tensors with their paths; an object that is shared is walked once.
struct Walk<'b> {
    values: Values<'b>,
    limits: &'b Limits,
    place: Place,
    path: String,
    seen: HashSet<u32>,
    tensors: Vec<Stored>,
}

impl Walk<'_> {
    fn visit(&mut self, id: u32, depth: u32) -> Result<()> {
        within(depth as usize, self.limits.depth.into(), "nesting of objects", "depth")?;
        let deeper = depth.saturating_add(1);
        let Some((kind, value)) = self.values.value(id)? else { return Ok(()) };
        match kind {
            kind::TENSOR => self.tensor(value),
            kind::LIST | kind::TUPLE if self.seen.insert(id) => {
                let items = value.vector(0, 4, "items")?;
                for (index, item) in items.into_iter().flat_map(Vector::u32s).enumerate() {
                    self.below(&format!(".{index}"), |walk| walk.visit(item?, deeper))?;
                }
                Ok(())
            }
            kind::DICT if self.seen.insert(id) => {
                let (keys, items) = (value.vector(0, 4, "keys")?, value.vector(1, 4, "values")?);
                let keys = keys.into_iter().flat_map(Vector::u32s);
                for (key, item) in keys.zip(items.into_iter().flat_map(Vector::u32s)) {
                    let name = match self.values.value(key?)? {
                        Some((kind::TEXT, key)) => key.text(0, "key")?.unwrap_or_default(),
                        _ => "?".into(),
                    };
                    let name = format!(".{name}");
                    self.below(&name, |walk| walk.visit(item?, deeper))?;
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
            let name = name.flatten().map_or_else(|| index.to_string(), Cow::into_owned);
            self.below(&format!(".{name}"), |walk| walk.visit(item?, depth))?;
        }
        match object.u32(1, "state of an object")? {
            0 => Ok(()),
            state => self.below("<state>", |walk| walk.visit(state, depth)),
        }
    }

    fn below(&mut self, step: &str, visit: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let len = self.path.len();
        let step = if len == 0 { step.strip_prefix('.').unwrap_or(step) } else { step };
        self.path.push_str(step);
        within(self.path.len(), self.limits.name_bytes, "path of a tensor in bytes", "name_bytes")?;
        let result = visit(self);
        self.path.truncate(len);
        result
    }

    fn tensor(&mut self, tensor: Table<'_>) -> Result<()> {
        let code = tensor.i8(1, "scalar type")?;
        let bad = |what, problem| TableFault { what, at: tensor.at as u64, problem };
        let scalar =
            ScalarType::from_code(code).ok_or(bad("tensor", "has an unknown scalar type"))?;
        let whole = |number: i32| {
            u64::try_from(number)
                .map_err(|_| bad("tensor", "has a negative offset, size or stride").into())
        };
        let numbers = |id, what| {
            let vector = tensor.vector(id, 4, what)?;
            let numbers = vector.into_iter().flat_map(Vector::i32s);
            numbers.map(|number| number.and_then(whole)).collect::<Result<Vec<u64>>>()
        };
        let shape: Shape = numbers(3, "sizes")?.into();
        let strides = numbers(4, "strides")?;
        if shape.rank() != strides.len() {
            return Err(bad("tensor", "has another number of strides than of sizes").into());
        }
        let offset = whole(tensor.i32(2, "storage offset")?)?;
        let quantization = tensor.table(6, "quantization")?.map(quantization).transpose()?;
        self.tensors.push(Stored {
            place: self.place,
            path: self.path.clone(),
            scalar,
            shape,
            strides,
            offset,
            storage: StorageId::Index(tensor.u32(0, "storage")?),
            requires_grad: tensor.u8(5, "requires_grad")? != 0,
            quantization,
        });
        let found = self.tensors.len();
        within(found, self.limits.tensors, "number of tensors", "tensors")
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

fn method(function: Table<'_>) -> Result<Method> {
    let mut operators = Vec::new();
    if let Some(stored) = function.vector(2, 4, "operators")? {
        for operator in stored.tables("operator") {
            let operator = operator?;
            let text = |id| -> Result<_> {
                Ok(operator.text(id, "operator")?.unwrap_or_default().into_owned())
            };
            operators.push(Operator { name: text(0)?, overload: text(1)? });
        }
    }
    let schema = function.table(6, "schema")?;
    Ok(Method {
        name: function.text(0, "name of a function")?.unwrap_or_default().into_owned(),
        arguments: schema.map(|schema| arguments(schema, 0)).transpose()?,
        returns: schema.map(|schema| arguments(schema, 1)).transpose()?,
        operators,
        instructions: function.vector(1, 8, "instructions")?.map_or(0, |list| list.count as u64),
        registers: function.u32(5, "registers")?.into(),
    })
}

fn arguments(schema: Table<'_>, id: usize) -> Result<Vec<Argument>> {
    let mut arguments = Vec::new();
    if let Some(stored) = schema.vector(id, 4, "arguments")? {
        for argument in stored.tables("argument") {
            let argument = argument?;
            let text = |id| -> Result<_> {
                Ok(argument.text(id, "argument")?.unwrap_or_default().into_owned())
            };
            arguments.push(Argument { name: text(0)?, type_name: text(1)? });
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
    pub(super) const SOURCES: usize = 8;
    pub(super) const OPERATOR_VERSION: usize = 10;
}

/// Types of values.
mod kind {
    pub(super) const TENSOR: u8 = 5;
    pub(super) const TEXT: u8 = 6;
    pub(super) const LIST: u8 = 7;
    pub(super) const TUPLE: u8 = 8;
    pub(super) const DICT: u8 = 9;
    pub(super) const OBJECT: u8 = 10;
    pub(super) const BOOL_LIST: u8 = 13;
    pub(super) const FUNCTION: u8 = 16;
}

const IDENTIFIER: &[u8; 4] = b"PTMF";
const IDENTIFIER_AT: usize = 4;
