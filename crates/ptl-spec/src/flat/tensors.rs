//! The tensors of a FlatBuffer file, with the path of each.

use std::collections::HashSet;

use flat_tables::{Buffer, Table, Vector};
use tensor_core::{Budget, Limit, Limits, Shape, Source};

use super::{TEXT, field, kind};
use crate::{
    Error, Place, Quantization, Result, ScalarType,
    module::stored::{Channels, Listing, StorageId, Stored, View},
    pickle::Scheme,
};

/// Reads what there is to know of all tensors.
pub(super) fn list(source: &Source, limits: &Limits) -> Result<Listing> {
    let buffer = Buffer::new(source);
    let values = Values::new(&buffer, limits)?;
    let mut walk = Walk {
        values,
        limits,
        place: Place::State,
        path: String::new(),
        seen: HashSet::new(),
        known: HashSet::new(),
        visits: Budget::new("number of values", limits.tensors, Limit::Tensors),
        listing: Listing::new(limits),
    };
    let (state, problem) = (walk.values.state, "is not an object");
    if !matches!(walk.values.value(state)?, (kind::OBJECT, _)) {
        let at = buffer.root("module")?.position() as u64;
        return Err(Error::Module { what: "state of the module", at, problem });
    }
    walk.visit(state, 0)?;
    walk.place = Place::Constants;
    for (index, id) in walk.values.constants.into_iter().flat_map(Vector::u32s).enumerate() {
        let id = id?;
        walk.below(&index.to_string(), |walk| walk.visit(id, 0))?;
    }
    walk.place = Place::Bytecode;
    walk.known = walk.listing.views();
    let is_single = walk.values.methods.is_some_and(|methods| methods.count() == 1);
    for function in walk.values.functions() {
        let function = function?;
        let name = match is_single {
            true => String::new(),
            false => function.text(0, TEXT, "name of a function")?.unwrap_or_default(),
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

/// The values of a module, which refer to each other by number.
#[derive(Clone, Copy)]
pub(super) struct Values<'b> {
    values: Option<Vector<'b>>,
    pub(super) types: Option<Vector<'b>>,
    pub(super) storages: Option<Vector<'b>>,
    methods: Option<Vector<'b>>,
    /// Those of the code for the full runtime.
    pub(super) constants: Option<Vector<'b>>,
    pub(super) state: u32,
}

impl<'b> Values<'b> {
    pub(super) fn new(buffer: &'b Buffer<'b>, limits: &Limits) -> Result<Self> {
        let root = buffer.root("module")?;
        let values = root.vector(field::VALUES, 4, "values")?;
        let count = values.map_or(0, |values| values.count() as u64);
        limits.check(Limit::Tensors, "number of values", count)?;
        let storages = root.vector(field::STORAGES, 4, "storages")?;
        let types = root.vector(field::TYPES, 4, "object types")?;
        let methods = root.vector(field::METHODS, 4, "methods")?;
        let constants = root.vector(field::CONSTANTS, 4, "constants")?;
        let state = root.u32(field::STATE, "state")?;
        Ok(Self { values, types, storages, methods, constants, state })
    }

    /// Returns the type of a value and, where that is a table, what it says.
    pub(super) fn value(self, id: u32) -> Result<(u8, Option<Table<'b>>)> {
        let value = nth(self.values, id, "value", "list of values")?;
        let kind = value.u8(0, "type of a value")?;
        // Numbers are structs, which have no vtable.
        if !matches!(kind, kind::TENSOR..=kind::FUNCTION) {
            return Ok((kind, None));
        }
        let (inner, at) = (value.table(1, "value")?, value.position() as u64);
        let problem = "has a type and nothing of it";
        inner.map(|inner| (kind, Some(inner))).ok_or(Error::Module { what: "value", at, problem })
    }

    /// Returns the bytes of a value that is not a table.
    pub(super) fn structure<const N: usize>(self, id: u32) -> Result<[u8; N]> {
        let value = nth(self.values, id, "value", "list of values")?;
        Ok(value.structure(1, "value")?.unwrap_or([0; N]))
    }

    /// Returns what a key of a dictionary is called in paths.
    pub(super) fn key(self, id: u32) -> Result<String> {
        match self.value(id)? {
            (kind::TEXT, Some(key)) => Ok(key.text(0, TEXT, "key")?.unwrap_or_default()),
            (kind::INT, _) => Ok(i64::from_le_bytes(self.structure(id)?).to_string()),
            _ => Ok("?".to_owned()),
        }
    }

    pub(super) fn functions(self) -> impl Iterator<Item = Result<Table<'b>>> {
        let methods = self.methods.into_iter().flat_map(Vector::u32s);
        methods.map(move |id| match self.value(id?)? {
            (kind::FUNCTION, Some(function)) => Ok(function),
            _ => {
                let at = self.methods.map_or(0, |methods| methods.extent().offset());
                let problem = "name a value that is not a function";
                Err(Error::Module { what: "methods", at, problem })
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
    /// Tensors that are listed already, in another place.
    known: HashSet<View>,
    visits: Budget,
    listing: Listing,
}

impl Walk<'_> {
    fn visit(&mut self, id: u32, depth: u32) -> Result<()> {
        self.limits.check(Limit::Depth, "nesting of objects", depth.into())?;
        self.visits.take(1)?;
        let deeper = depth.saturating_add(1);
        let (kind, Some(value)) = self.values.value(id)? else { return Ok(()) };
        match kind {
            kind::TENSOR => {
                let tensor = self.tensor(value)?;
                if self.known.contains(&tensor.view()) {
                    return Ok(());
                }
                Ok(self.listing.push(tensor)?)
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
                    let (name, item) = (format!(".{}", self.values.key(key?)?), item?);
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
        let class = nth(self.values.types, index, "object type", "list of object types")?;
        let names = class.vector(2, 4, "names of attributes")?;
        let attributes = object.vector(2, 4, "attributes")?;
        for (index, item) in attributes.into_iter().flat_map(Vector::u32s).enumerate() {
            let name = names
                .map(|names| names.text_at(index, TEXT, "name of an attribute"))
                .transpose()?;
            let name = name.flatten().unwrap_or_else(|| index.to_string());
            let item = item?;
            self.below(&format!(".{name}"), |walk| walk.visit(item, depth))?;
        }
        match object.u32(1, "state of an object")? {
            0 => Ok(()),
            // As in ZIP archives, it has no name of its own.
            state => self.visit(state, depth),
        }
    }

    fn below<T>(&mut self, step: &str, visit: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let len = self.path.len();
        let step = if len == 0 { step.strip_prefix('.').unwrap_or(step) } else { step };
        self.path.push_str(step);
        let found = self.path.len() as u64;
        self.limits.check(Limit::NameBytes, "path of a tensor in bytes", found)?;
        let result = visit(self);
        self.path.truncate(len);
        result
    }

    fn dense(&self, tensor: Table<'_>) -> Result<Stored> {
        dense(tensor, self.place, self.place.name_of(&self.path), self.limits)
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
}

/// Reads all of a tensor but how it is quantized.
pub(super) fn dense(
    tensor: Table<'_>,
    place: Place,
    name: String,
    limits: &Limits,
) -> Result<Stored> {
    let code = tensor.i8(1, "scalar type")?;
    let bad = |what, problem| Error::Module { what, at: tensor.position() as u64, problem };
    let scalar = ScalarType::from_code(code).ok_or(bad("tensor", "has an unknown scalar type"))?;
    let whole = |number: i32| {
        let number = u64::try_from(number);
        number.map_err(|_| bad("tensor", "has a negative offset, size or stride"))
    };
    let numbers = |id, what| {
        let Some(vector) = tensor.vector(id, 4, what)? else { return Ok(Vec::new()) };
        limits.check(Limit::Rank, "rank of a tensor", vector.count() as u64)?;
        vector.i32s().map(|number| whole(number?)).collect::<Result<Vec<u64>>>()
    };
    let shape: Shape = numbers(3, "sizes")?.into();
    let strides = numbers(4, "strides")?;
    if shape.rank() != strides.len() {
        return Err(bad("tensor", "has another number of strides than of sizes"));
    }
    Ok(Stored {
        place,
        name,
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

/// Returns the table that something refers to by its number.
pub(super) fn nth<'b>(
    tables: Option<Vector<'b>>,
    id: u32,
    what: &'static str,
    list: &'static str,
) -> Result<Table<'b>> {
    let table = tables.map(|tables| tables.table(id as usize, what)).transpose()?;
    let at = tables.map_or(0, |tables| tables.extent().offset());
    let problem = "is referred to beyond its end";
    table.flatten().ok_or(Error::Module { what: list, at, problem })
}

pub(super) fn quantization(table: Table<'_>) -> Result<Quantization> {
    let code = table.i8(0, "scheme")?;
    let scheme = usize::try_from(code).ok().and_then(|code| Scheme::ALL.get(code)).copied();
    let problem = "has an unknown scheme";
    let unknown = Error::Module { what: "quantization", at: table.position() as u64, problem };
    match scheme.ok_or(unknown)? {
        scheme @ (Scheme::PerTensorAffine | Scheme::PerTensorSymmetric) => {
            let (scale, zero_point) = (table.f64(1, "scale")?, table.i32(2, "zero point")?.into());
            Ok(Quantization::PerTensor { scheme, scale, zero_point })
        }
        scheme => Ok(Quantization::PerChannel { scheme, axis: table.i32(5, "axis")?.into() }),
    }
}
