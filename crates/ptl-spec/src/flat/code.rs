//! What the methods of a FlatBuffer file do, and the objects of the model.

use std::collections::HashMap;

use flat_tables::{Buffer, Table, Vector};
use tensor_core::{Extent, Limits, Source, text::short};

use super::{
    TEXT, instructions, kind,
    tensors::{Values, nth},
};
use crate::{
    Operator, Result,
    module::{
        self,
        code::{Attribute, Code, INSTRUCTIONS, Instruction, Object, Objects, SHOWN, join},
    },
};

pub(super) fn code(source: &Source, limits: &Limits) -> Result<Vec<Code>> {
    let buffer = Buffer::new(source);
    let values = Values::new(&buffer, limits)?;
    let memory = module::budget(limits);
    let method = |function: Table<'_>| {
        let name = function.text(0, TEXT, "name of a function")?.unwrap_or_default();
        let count = instructions(function, source.len())?;
        let bytes = count.saturating_mul(Instruction::LEN).saturating_add(name.len() as u64);
        memory.take(bytes.saturating_add(size_of::<Code>() as u64))?;
        let (mut operators, mut constants) = (Vec::new(), Vec::new());
        let tables = function.vector(2, 4, "operators")?;
        for operator in tables.into_iter().flat_map(|tables| tables.tables("operator")) {
            let operator = operator?;
            let text = |id| operator.text(id, TEXT, "operator").map(Option::unwrap_or_default);
            let pair = [text(0)?, text(1)?];
            memory.take(module::cost(&pair))?;
            let taken = operator.scalar::<4>(2, "number of arguments")?;
            let taken = taken.and_then(|taken| u32::try_from(i32::from_le_bytes(taken)).ok());
            let [name, overload] = pair;
            operators.push((Operator { name, overload }, taken));
        }
        let ids = function.vector(3, 4, "constants")?;
        for id in ids.into_iter().flat_map(Vector::u32s) {
            let text = literal(values, id?, 0)?;
            memory.take(text.len().saturating_add(size_of::<String>()) as u64)?;
            constants.push(text);
        }
        let instructions = list(&buffer, function, count)?;
        Ok(Code { name, instructions, operators, constants })
    };
    values.functions().map(|function| method(function?)).collect()
}

/// Reads instructions: structs of 8 bytes, 0 the number of the instruction, 2 n u16, 4 x i32.
fn list(buffer: &Buffer<'_>, function: Table<'_>, count: u64) -> Result<Vec<Instruction>> {
    let what = "instructions";
    let Some(vector) = function.vector(1, 4, what)? else { return Ok(Vec::new()) };
    let extent = Extent::new(vector.extent().offset(), count.saturating_mul(8))?;
    let bytes = buffer.read(extent, what)?;
    let instruction = |&[op, _, n0, n1, x0, x1, x2, x3]: &[u8; 8]| Instruction {
        name: INSTRUCTIONS.get(usize::from(op)).copied().unwrap_or("?"),
        x: i32::from_le_bytes([x0, x1, x2, x3]),
        n: u16::from_le_bytes([n0, n1]),
    };
    Ok(bytes.as_chunks().0.iter().map(instruction).collect())
}

/// Writes a value as source has it, as far as it is worth showing.
fn literal(values: Values<'_>, id: u32, depth: u32) -> Result<String> {
    let (kind, table) = values.value(id)?;
    let Some(table) = table else {
        return Ok(match kind {
            kind::NONE => "None".to_owned(),
            kind::INT => i64::from_le_bytes(values.structure(id)?).to_string(),
            kind::BOOL if values.structure::<1>(id)? == [0] => "False".to_owned(),
            kind::BOOL => "True".to_owned(),
            kind::DOUBLE => f64::from_le_bytes(values.structure(id)?).to_string(),
            kind::COMPLEX => "complex".to_owned(),
            _ => "?".to_owned(),
        });
    };
    let items = |what| table.vector(0, 4, what);
    let list = |ids: Option<Vector<'_>>| {
        let count = ids.map_or(0, Vector::count);
        let shown = ids.into_iter().flat_map(Vector::u32s).take(SHOWN);
        let shown = shown.map(|id| match depth {
            0..MAX_DEPTH => literal(values, id?, depth.saturating_add(1)),
            _ => Ok("…".to_owned()),
        });
        let shown = shown.collect::<Result<Vec<_>>>()?;
        Ok::<_, crate::Error>(join(shown.into_iter(), count))
    };
    Ok(match kind {
        kind::TENSOR => "Tensor".to_owned(),
        kind::TEXT | kind::DEVICE => {
            format!("{:?}", short(&table.text(0, TEXT, "text")?.unwrap_or_default()))
        }
        kind::LIST => format!("[{}]", list(items("items")?)?),
        kind::TUPLE => format!("({})", list(items("items")?)?),
        kind::INT_LIST => numbers(table, |number: [u8; 8]| i64::from_le_bytes(number).to_string())?,
        kind::DOUBLE_LIST => {
            numbers(table, |number: [u8; 8]| f64::from_le_bytes(number).to_string())?
        }
        kind::BOOL_LIST => {
            numbers(
                table,
                |[truth]: [u8; 1]| {
                    if truth == 0 { "False".to_owned() } else { "True".to_owned() }
                },
            )?
        }
        kind::DICT => format!("a dictionary of {}", items("keys")?.map_or(0, Vector::count)),
        kind::OBJECT => "an object".to_owned(),
        _ => "?".to_owned(),
    })
}

fn numbers<const N: usize>(table: Table<'_>, text: impl Fn([u8; N]) -> String) -> Result<String> {
    let items = table.vector(0, N, "numbers")?;
    let shown = items.into_iter().flat_map(Vector::elements::<N>).take(SHOWN);
    let shown = shown.map(|item| Ok(text(item?))).collect::<Result<Vec<_>>>()?;
    Ok(format!("[{}]", join(shown.into_iter(), items.map_or(0, Vector::count))))
}

pub(super) fn objects(source: &Source, limits: &Limits) -> Result<Vec<Object>> {
    let buffer = Buffer::new(source);
    let values = Values::new(&buffer, limits)?;
    let mut walk = Walk { values, objects: Objects::new(limits), known: HashMap::new() };
    if let (kind::OBJECT, Some(object)) = values.value(values.state)? {
        walk.object(values.state, object, String::new(), 0)?;
    }
    Ok(walk.objects.list)
}

struct Walk<'b> {
    values: Values<'b>,
    objects: Objects<'b>,
    known: HashMap<u32, usize>,
}

impl Walk<'_> {
    /// Lists an object and those that its attributes are; returns its place.
    fn object(&mut self, id: u32, object: Table<'_>, path: String, depth: u32) -> Result<usize> {
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        let index = object.u32(0, "type of an object")?;
        let class = nth(self.values.types, index, "object type", "list of object types")?;
        let name = class.text(0, TEXT, "name of an object type")?.unwrap_or_default();
        let place = self.objects.add(&name, path, depth)?;
        self.known.insert(id, place);
        let names = class.vector(2, 4, "names of attributes")?;
        let attributes = object.vector(2, 4, "attributes")?;
        for (index, item) in attributes.into_iter().flat_map(Vector::u32s).enumerate() {
            let name = names.map(|names| names.text_at(index, TEXT, "name of an attribute"));
            let name = name.transpose()?.flatten().unwrap_or_else(|| index.to_string());
            let item = item?;
            let attribute = match self.values.value(item)? {
                (kind::OBJECT, Some(inner)) => {
                    let path = self.objects.path(place, &name);
                    Attribute::Object(self.object(item, inner, path, depth.saturating_add(1))?)
                }
                (kind::TENSOR, _) => Attribute::Tensor,
                _ => Attribute::Value(literal(self.values, item, 0)?),
            };
            self.objects.attribute(place, name, attribute)?;
        }
        Ok(place)
    }
}

/// Lists in lists that are shown.
const MAX_DEPTH: u32 = 3;
