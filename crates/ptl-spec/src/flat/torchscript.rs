//! The values of a FlatBuffer file as the pickles of a `TorchScript` archive.

use std::{
    collections::HashMap,
    io::{self, BufReader, Write},
};

use flat_tables::{Table, Vector};
use model_archive::{ArchiveWriter, EntryOptions, Layout, Raw};
use tensor_core::{Budget, Limit, Limits};

use super::{
    TEXT, kind, object_kind,
    tensors::{Values, dense, nth, quantization},
};
use crate::{
    Error, File, Place, Quantization, Result, ScalarType, TorchScriptFault,
    module::stored::{StorageId, Stored},
    pickle::{Memo, Pickler, class},
};

/// A pickle, and the numbers of the storages that it leads to, in the order of their records.
pub(super) struct Pickled {
    pub(super) bytes: Vec<u8>,
    pub(super) storages: Vec<u32>,
}

/// Writes `data.pkl`.
pub(super) fn state(values: Values<'_>, limits: &Limits) -> Result<Pickled> {
    let mut writing = Writing::new(values, limits);
    writing.value(values.state, 0)?;
    Ok(writing.finish())
}

/// Writes `constants.pkl`.
pub(super) fn constants(values: Values<'_>, limits: &Limits) -> Result<Pickled> {
    let mut writing = Writing::new(values, limits);
    "constants".clone_into(&mut writing.path);
    writing.tuple(values.constants, 0)?;
    Ok(writing.finish())
}

/// Writes an archive of files and of what was made for it, once all names were found to be ones that
/// it can have.
pub(super) fn write(
    files: &[(String, File<'_>)],
    made: &[(&str, Vec<u8>)],
    sink: &mut dyn Write,
) -> Result<()> {
    let options = EntryOptions::default();
    let mut names = ArchiveWriter::new(io::sink()).layout(Layout::PyTorch);
    let files_made = made.iter().map(|(name, _)| *name);
    for name in files.iter().map(|(name, _)| &**name).chain(files_made) {
        names.add(&format!("{ROOT}/{name}"), &[], &options)?;
    }
    let mut out = ArchiveWriter::new(sink).layout(Layout::PyTorch);
    for (name, file) in files {
        // Sums stand before what they are of, which may not fit into memory.
        let content = || Ok::<_, Error>(BufReader::with_capacity(PIECE, file.reader()?));
        out.copy_raw(&format!("{ROOT}/{name}"), Raw::stored(content()?)?, 1, content()?)?;
    }
    for (name, content) in made {
        out.add(&format!("{ROOT}/{name}"), content, &options)?;
    }
    out.finish()?;
    Ok(())
}

/// A pickle that is being written.
struct Writing<'b> {
    values: Values<'b>,
    limits: &'b Limits,
    out: Pickler,
    /// Values that others may refer to as well.
    written: HashMap<u32, Memo>,
    storages: Vec<u32>,
    /// Numbers of their records.
    records: HashMap<u32, usize>,
    /// Storages with the elements that they were written with.
    known: HashMap<(u32, ScalarType), Memo>,
    path: String,
    visits: Budget,
    texts: Budget,
}

impl<'b> Writing<'b> {
    fn new(values: Values<'b>, limits: &'b Limits) -> Self {
        Self {
            values,
            limits,
            out: Pickler::new(),
            written: HashMap::new(),
            storages: Vec::new(),
            records: HashMap::new(),
            known: HashMap::new(),
            path: String::new(),
            visits: Budget::new("number of values", limits.tensors, Limit::Tensors),
            texts: Budget::new("texts in bytes", limits.document_bytes, Limit::DocumentBytes),
        }
    }

    fn finish(self) -> Pickled {
        Pickled { bytes: self.out.finish(), storages: self.storages }
    }

    fn value(&mut self, id: u32, depth: u32) -> Result<()> {
        self.limits.check(Limit::Depth, "nesting of objects", depth.into())?;
        self.limits.check(Limit::DocumentBytes, "pickle in bytes", self.out.len())?;
        self.visits.take(1)?;
        if let Some(&memo) = self.written.get(&id) {
            self.out.load(memo);
            return Ok(());
        }
        let (kind, table) = self.values.value(id)?;
        match (kind, table) {
            (kind::NONE, _) => self.out.none(),
            (kind::BOOL, _) => {
                let [truth] = self.values.structure(id)?;
                self.out.bool(truth != 0);
            }
            (kind::INT, _) => self.out.int(i64::from_le_bytes(self.values.structure(id)?)),
            (kind::DOUBLE, _) => self.out.float(f64::from_le_bytes(self.values.structure(id)?)),
            (kind::COMPLEX, _) => self.complex(self.values.structure(id)?),
            (kind, Some(table)) => self.table(kind, table, depth.saturating_add(1))?,
            _ => return Err(self.refused("of a type that is not known")),
        }
        // Texts are stored by what they say.
        if !matches!(kind, kind::NONE..=kind::DOUBLE | kind::TEXT) {
            let memo = self.out.store();
            self.written.insert(id, memo);
        }
        Ok(())
    }

    fn table(&mut self, kind: u8, table: Table<'_>, depth: u32) -> Result<()> {
        match kind {
            kind::TEXT => {
                let text = self.text(table, 0, "text")?;
                self.out.text(&text);
                Ok(())
            }
            kind::DEVICE => self.device(table),
            kind::TENSOR => self.tensor(table, table.table(6, "quantization")?),
            kind::INT_LIST => self.numbers(table, "build_intlist", |out, number| {
                out.int(i64::from_le_bytes(number));
            }),
            kind::DOUBLE_LIST => self.numbers(table, "build_doublelist", |out, number| {
                out.float(f64::from_le_bytes(number));
            }),
            kind::BOOL_LIST => {
                self.numbers(table, "build_boollist", |out, [truth]| out.bool(truth != 0))
            }
            kind::LIST => self.list(table, depth),
            kind::TUPLE => self.tuple(table.vector(0, 4, "items")?, depth),
            kind::DICT => self.dict(table, depth),
            kind::OBJECT => self.object(table, depth),
            kind::ENUM => Err(self.refused("a value of an enumeration")),
            _ => Err(self.refused("a function")),
        }
    }

    fn complex(&mut self, parts: [u8; 16]) {
        self.out.global("builtins", "complex");
        let (parts, _) = parts.as_chunks();
        parts.iter().for_each(|part| self.out.float(f64::from_le_bytes(*part)));
        self.out.tuple_of_2();
        self.out.reduce();
    }

    fn device(&mut self, device: Table<'_>) -> Result<()> {
        let name = self.text(device, 0, "device")?;
        self.out.global("torch", "device");
        self.out.text(&name);
        self.out.tuple_of_1();
        self.out.reduce();
        Ok(())
    }

    fn below(&mut self, step: &str, id: u32, depth: u32) -> Result<()> {
        let len = self.path.len();
        if len > 0 {
            self.path.push('.');
        }
        self.path.push_str(step);
        let found = self.path.len() as u64;
        self.limits.check(Limit::NameBytes, "path of a value in bytes", found)?;
        let result = self.value(id, depth);
        self.path.truncate(len);
        result
    }

    fn items(&mut self, items: Option<Vector<'_>>, depth: u32) -> Result<()> {
        for (index, item) in items.into_iter().flat_map(Vector::u32s).enumerate() {
            self.below(&index.to_string(), item?, depth)?;
        }
        Ok(())
    }

    fn tuple(&mut self, items: Option<Vector<'_>>, depth: u32) -> Result<()> {
        self.out.mark();
        self.items(items, depth)?;
        self.out.tuple();
        Ok(())
    }

    /// Writes a list of tensors as such, and any other with its type.
    fn list(&mut self, list: Table<'_>, depth: u32) -> Result<()> {
        let items = list.vector(0, 4, "items")?;
        let type_name = self.text(list, 1, "type of a list")?;
        if type_name == "List[Tensor]" {
            return self.special("build_tensorlist", |writing| writing.items(items, depth));
        }
        self.tagged(&type_name, |writing| {
            writing.out.list();
            writing.items(items, depth)?;
            writing.out.append();
            Ok(())
        })
    }

    fn dict(&mut self, dict: Table<'_>, depth: u32) -> Result<()> {
        let (keys, items) = (dict.vector(0, 4, "keys")?, dict.vector(1, 4, "values")?);
        let count = |items: Option<Vector<'_>>| items.map_or(0, Vector::count);
        if count(keys) != count(items) {
            let (at, problem) =
                (dict.position() as u64, "has another number of keys than of values");
            return Err(Error::Module { what: "dictionary", at, problem });
        }
        let type_name = self.text(dict, 2, "type of a dictionary")?;
        self.tagged(&type_name, |writing| {
            writing.out.dict();
            let keys = keys.into_iter().flat_map(Vector::u32s);
            for (key, item) in keys.zip(items.into_iter().flat_map(Vector::u32s)) {
                let key = key?;
                let name = writing.values.key(key)?;
                writing.below("key", key, depth)?;
                writing.below(&name, item?, depth)?;
            }
            writing.out.set_items();
            Ok(())
        })
    }

    fn numbers<const N: usize>(
        &mut self,
        list: Table<'_>,
        function: &str,
        write: impl Fn(&mut Pickler, [u8; N]),
    ) -> Result<()> {
        let numbers = list.vector(0, N, "numbers")?;
        self.special(function, |writing| {
            for number in numbers.into_iter().flat_map(Vector::elements::<N>) {
                write(&mut writing.out, number?);
            }
            Ok(())
        })
    }

    /// Writes a list whose items are of a type that has a function of its own.
    fn special(
        &mut self,
        function: &str,
        items: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.out.global("torch.jit._pickle", function);
        self.out.mark();
        self.out.list();
        items(self)?;
        self.out.append();
        self.out.tuple();
        self.out.reduce();
        Ok(())
    }

    /// Writes a value with the name of its type.
    fn tagged(
        &mut self,
        type_name: &str,
        value: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.out.global("torch.jit._pickle", "restore_type_tag");
        value(self)?;
        self.out.text(type_name);
        self.out.tuple_of_2();
        self.out.reduce();
        Ok(())
    }

    fn object(&mut self, object: Table<'_>, depth: u32) -> Result<()> {
        let index = object.u32(0, "type of an object")?;
        let object_type = nth(self.values.types, index, "object type", "list of object types")?;
        let name = self.text(object_type, 0, "name of an object type")?;
        let Some((module, name)) = class(&name) else {
            return Err(self.refused(&format!("an object of the class {name:?}")));
        };
        self.out.global(module, name);
        self.out.object();
        let state = object.u32(1, "state of an object")?;
        let has_attributes = object.vector(2, 4, "attributes")?.is_some_and(|all| all.count() > 0);
        match object_type.u8(1, "kind of an object type")? {
            object_kind::FIELDS if state == 0 => self.attributes(object_type, object, depth)?,
            object_kind::CUSTOM | object_kind::SET_STATE if !has_attributes => {
                self.value(state, depth)?;
            }
            _ => return Err(self.refused("an object that its type does not fit")),
        }
        self.out.build();
        Ok(())
    }

    fn attributes(&mut self, class: Table<'_>, object: Table<'_>, depth: u32) -> Result<()> {
        let names = class.vector(2, 4, "names of attributes")?;
        let attributes = object.vector(2, 4, "attributes")?;
        let count = |items: Option<Vector<'_>>| items.map_or(0, Vector::count);
        if count(names) != count(attributes) {
            let (at, problem) = (object.position() as u64, "has other attributes than its type");
            return Err(Error::Module { what: "object", at, problem });
        }
        self.out.dict();
        for (index, item) in attributes.into_iter().flat_map(Vector::u32s).enumerate() {
            let name = names.map(|names| names.text_at(index, TEXT, "name of an attribute"));
            let name = name.transpose()?.flatten().unwrap_or_default();
            self.texts.take(name.len() as u64)?;
            self.out.text(&name);
            self.below(&name, item?, depth)?;
        }
        self.out.set_items();
        Ok(())
    }

    /// Writes a tensor, with the scheme where it is quantized: the scales and zero points of slices are
    /// not.
    fn tensor(&mut self, table: Table<'_>, quantized: Option<Table<'_>>) -> Result<()> {
        let stored = dense(table, Place::State, String::new(), self.limits)?;
        let function = if quantized.is_some() { "_rebuild_qtensor" } else { "_rebuild_tensor_v2" };
        self.out.global("torch._utils", function);
        self.out.mark();
        self.storage(&stored)?;
        self.whole(stored.offset);
        self.sizes(stored.shape.dims());
        self.sizes(&stored.strides);
        if let Some(table) = quantized {
            self.quantization(table)?;
        }
        self.out.bool(stored.requires_grad);
        // Hooks, of which there are none.
        self.out.global("collections", "OrderedDict");
        self.out.empty_tuple();
        self.out.reduce();
        self.out.tuple();
        self.out.reduce();
        Ok(())
    }

    fn quantization(&mut self, table: Table<'_>) -> Result<()> {
        self.out.mark();
        match quantization(table)? {
            Quantization::PerTensor { scheme, scale, zero_point } => {
                self.out.global("torch", scheme.name());
                self.out.float(scale);
                self.out.int(zero_point);
            }
            Quantization::PerChannel { scheme, axis } => {
                self.out.global("torch", scheme.name());
                for (id, what) in [(3, "scales"), (4, "zero points")] {
                    let (at, problem) = (table.position() as u64, "has none of the slices");
                    let channel = table.table(id, what)?;
                    self.tensor(channel.ok_or(Error::Module { what, at, problem })?, None)?;
                }
                self.out.int(axis);
            }
        }
        self.out.tuple();
        Ok(())
    }

    /// Writes `("storage", class, key, device, elements)`, once for each storage and element type.
    fn storage(&mut self, tensor: &Stored) -> Result<()> {
        let StorageId::Index(index) = tensor.storage else { return Ok(()) };
        let scalar = tensor.scalar;
        if let Some(&memo) = self.known.get(&(index, scalar)) {
            self.out.load(memo);
            return Ok(());
        }
        let record = *self.records.entry(index).or_insert_with(|| {
            self.storages.push(index);
            self.storages.len().saturating_sub(1)
        });
        let storage = nth(self.values.storages, index, "storage", "list of storages")?;
        let bytes = storage.vector(0, 1, "storage data")?.map_or(0, Vector::count) as u64;
        self.out.mark();
        self.out.text("storage");
        self.out.global("torch", &format!("{scalar}Storage"));
        self.out.text(&record.to_string());
        self.out.text("cpu");
        self.whole(bytes.checked_div(scalar.width()).unwrap_or_default());
        self.out.tuple();
        self.out.persistent();
        let memo = self.out.store();
        self.known.insert((index, scalar), memo);
        Ok(())
    }

    fn sizes(&mut self, sizes: &[u64]) {
        self.out.mark();
        sizes.iter().for_each(|size| self.whole(*size));
        self.out.tuple();
    }

    /// Writes a number that was read from 32 bits.
    fn whole(&mut self, number: u64) {
        self.out.int(i64::try_from(number).unwrap_or(i64::MAX));
    }

    fn text(&self, table: Table<'_>, id: usize, what: &'static str) -> Result<String> {
        let text = table.text(id, self.limits.document_bytes, what)?.unwrap_or_default();
        // The same one may be met any number of times.
        self.texts.take(text.len() as u64)?;
        Ok(text)
    }

    fn refused(&self, found: &str) -> Error {
        let path = if self.path.is_empty() { "state" } else { &self.path };
        let (path, found) = (path.to_owned(), found.to_owned());
        Error::NotTorchScript { fault: TorchScriptFault::Value { path, found } }
    }
}

/// Bytes that are copied at a time.
const PIECE: usize = 1 << 16;
/// The folder of all records: what PyTorch takes where a file has no name.
const ROOT: &str = "archive";
/// The version of the archive, which says what operators in its source mean: the one that PyTorch has had
/// since it writes FlatBuffers.
pub(super) const VERSION: &[u8] = b"10\n";
