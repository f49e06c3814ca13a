//! Changes of a model that are more than setting a field.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::{
    Error, Result, WriteFault,
    model::{
        Buffer, BuiltinOperator, Metadata, Model, OperatorCode, Schema, Signature, TensorType,
    },
    tables::{Placed, tables},
};

impl Model {
    /// Makes a model of a schema with nothing in it, and the version that tools write.
    #[must_use]
    pub fn new(schema: Schema) -> Self {
        Self {
            schema,
            version: schema.version(),
            operator_codes: Vec::new(),
            subgraphs: Vec::new(),
            description: None,
            buffers: Vec::new(),
            metadata_buffer: Vec::new(),
            metadata: Vec::new(),
            signatures: Vec::new(),
            external_groups: Vec::new(),
            external_buffers: Vec::new(),
        }
    }

    /// Adds a buffer in the tables and returns its position.
    pub fn add_buffer(&mut self, data: impl Into<Bytes>) -> u32 {
        if self.buffers.is_empty() {
            // By convention the first one is empty, and stands for none.
            self.buffers.push(Buffer::default());
        }
        self.buffers.push(Buffer { data: data.into(), ..Buffer::default() });
        last(self.buffers.len())
    }

    /// Returns the position of a code, which is added where the model has it not.
    pub fn add_operator_code(&mut self, code: OperatorCode) -> u32 {
        if let Some(at) = self.operator_codes.iter().position(|known| *known == code) {
            return u32::try_from(at).unwrap_or(u32::MAX);
        }
        self.operator_codes.push(code);
        last(self.operator_codes.len())
    }

    /// Returns the bytes of the first metadata of a name; `None` where there is none, or its buffer
    /// is not in the tables.
    #[must_use]
    pub fn metadata(&self, name: &str) -> Option<&Bytes> {
        let metadata = self.metadata.iter().find(|entry| entry.name.as_deref() == Some(name))?;
        let buffer = self.buffer(metadata.buffer)?;
        (!buffer.is_in_file()).then_some(&buffer.data)
    }

    /// Sets metadata of a name, or adds it. A buffer that something else refers to, too, keeps its
    /// bytes.
    pub fn set_metadata(&mut self, name: &str, data: impl Into<Bytes>) {
        let at = self.metadata.iter().position(|entry| entry.name.as_deref() == Some(name));
        let buffer = at.and_then(|at| self.metadata.get(at)).map(|entry| entry.buffer);
        let own = buffer.filter(|&buffer| buffer > 0 && self.uses(buffer) == 1);
        let place = own.and_then(|own| self.buffers.get_mut(usize::try_from(own).ok()?));
        if let Some(place) = place {
            *place = Buffer { data: data.into(), ..Buffer::default() };
            return;
        }
        let buffer = self.add_buffer(data);
        match at.and_then(|at| self.metadata.get_mut(at)) {
            Some(entry) => entry.buffer = buffer,
            None => self.metadata.push(Metadata { name: Some(name.to_owned()), buffer }),
        }
    }

    /// Removes all metadata of a name and returns whether there was any. Buffers that nothing else
    /// refers to stay, without bytes: [`drop_unused_buffers`](Self::drop_unused_buffers) takes them
    /// out. Where `debug_metadata_index` refers to metadata, it is kept right.
    pub fn remove_metadata(&mut self, name: &str) -> bool {
        let is_removed = |entry: &Metadata| entry.name.as_deref() == Some(name);
        let mut freed: BTreeSet<u32> = self
            .metadata
            .iter()
            .filter(|entry| is_removed(entry))
            .map(|entry| entry.buffer)
            .collect();
        if freed.is_empty() {
            return false;
        }
        let mut kept = 0..i32::MAX;
        let moved = |entry| if is_removed(entry) { -1 } else { kept.next().unwrap_or(-1) };
        let moved: Vec<i32> = self.metadata.iter().map(moved).collect();
        self.renumber_metadata(&moved);
        self.metadata.retain(|entry| !is_removed(entry));
        for used in self.buffer_references() {
            freed.remove(used);
        }
        for used in &self.metadata_buffer {
            if let Ok(used) = u32::try_from(*used) {
                freed.remove(&used);
            }
        }
        for buffer in freed {
            let at = usize::try_from(buffer).ok();
            if let Some(place) = at.and_then(|at| self.buffers.get_mut(at)) {
                *place = Buffer::default();
            }
        }
        true
    }

    /// Returns the first signature of a key.
    #[must_use]
    pub fn signature(&self, key: &str) -> Option<&Signature> {
        self.signatures.iter().find(|signature| signature.key.as_deref() == Some(key))
    }

    /// Sets the signature of a key, or adds it.
    pub fn set_signature(&mut self, signature: Signature) {
        match self.signatures.iter_mut().find(|known| known.key == signature.key) {
            Some(known) => *known = signature,
            None => self.signatures.push(signature),
        }
    }

    /// Removes all signatures of a key and returns whether there was any.
    pub fn remove_signature(&mut self, key: &str) -> bool {
        let before = self.signatures.len();
        self.signatures.retain(|signature| signature.key.as_deref() != Some(key));
        self.signatures.len() < before
    }

    /// Gives a new name to every tensor, in any graph, that has one of the old names; returns how
    /// many there were. All names are exchanged at once, so that two can be swapped.
    pub fn rename_tensors<'n>(
        &mut self,
        names: impl IntoIterator<Item = (&'n str, &'n str)>,
    ) -> usize {
        let names: BTreeMap<&str, &str> = names.into_iter().collect();
        let mut renamed = 0_usize;
        for tensor in self.subgraphs.iter_mut().flat_map(|graph| &mut graph.tensors) {
            if let Some(name) = &mut tensor.name
                && let Some(&new) = names.get(name.as_str())
            {
                new.clone_into(name);
                renamed = renamed.saturating_add(1);
            }
        }
        renamed
    }

    /// Takes out buffers that nothing refers to, and returns how many there were. The first one
    /// stays.
    pub fn drop_unused_buffers(&mut self) -> usize {
        let mut new = vec![None; self.buffers.len()];
        for used in self.buffer_references() {
            let used = usize::try_from(*used).ok();
            if let Some(place) = used.and_then(|used| new.get_mut(used)) {
                *place = Some(0);
            }
        }
        for used in &self.metadata_buffer {
            let used = usize::try_from(*used).ok();
            if let Some(place) = used.and_then(|used| new.get_mut(used)) {
                *place = Some(0);
            }
        }
        if let Some(first) = new.first_mut() {
            *first = Some(0);
        }
        let before = self.buffers.len();
        let mut keep = new.iter();
        self.buffers.retain(|_| keep.next().is_some_and(Option::is_some));
        for (at, place) in (0_u32..).zip(new.iter_mut().flatten()) {
            *place = at;
        }
        let moved = |old: u32| new.get(usize::try_from(old).ok()?).copied().flatten();
        for reference in self.buffer_references() {
            // One past the end stays what it is: a fault of the model.
            *reference = moved(*reference).unwrap_or(*reference);
        }
        for reference in &mut self.metadata_buffer {
            let moved = u32::try_from(*reference).ok().and_then(moved);
            *reference = moved.and_then(|new| i32::try_from(new).ok()).unwrap_or(*reference);
        }
        before.saturating_sub(self.buffers.len())
    }

    /// Returns the same model in a schema.
    ///
    /// What only the other one has is refused. Circle has no elements of 2 bits and 8-bit floats,
    /// quantization over several dimensions or by blocks with a shape, `quant_spec`, and buffers in
    /// other files. TFLite has none of the operators with negative numbers, such as `RMS_NORM`, GGML
    /// and MX blocks, weights that are shuffled for 16 lanes, compressed elements, and channels in
    /// another place than the last. Whatever is not known is refused, too. The codes of operators are
    /// those that the clients of the old schema make of them.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] with the first thing that the schema has not.
    pub fn to_schema(&self, schema: Schema) -> Result<Self> {
        if self.schema == schema {
            return Ok(self.clone());
        }
        let mut model = Self { schema, version: schema.version(), ..self.clone() };
        for (at, code) in model.operator_codes.iter_mut().enumerate() {
            let operator = code.operator_in(self.schema);
            let refused = |fault| Error::Unwritable { path: format!("operator code {at}"), fault };
            let name =
                operator.name().filter(|_| operator.code() >= 0 || self.schema == Schema::Circle);
            let Some(name) = name else {
                let (what, code) = ("the code", operator.code());
                return Err(refused(WriteFault::UnknownNumber { what, code }));
            };
            if operator.code() < 0 {
                let what = format!("the operator {name}");
                return Err(refused(WriteFault::NotInSchema { what, schema }));
            }
            *code = OperatorCode {
                custom_code: code.custom_code.take(),
                version: code.version,
                ..OperatorCode::new(operator)
            };
        }
        for (graph, subgraph) in self.subgraphs.iter().enumerate() {
            for (at, tensor) in subgraph.tensors.iter().enumerate() {
                if let TensorType::Unknown(code) = tensor.tensor_type {
                    let (what, code) = ("the element type", code.into());
                    let fault = WriteFault::UnknownNumber { what, code };
                    let path = format!("subgraph {graph}/tensor {at}");
                    return Err(Error::Unwritable { path, fault });
                }
            }
        }
        model.check_schema()?;
        Ok(model)
    }

    /// Refuses what has no place in the schema, or cannot be written at all.
    fn check_schema(&self) -> Result<()> {
        tables(self, &vec![Placed::Nowhere; self.buffers.len()])?;
        Ok(())
    }

    /// Returns everything that refers to a buffer from the tables in use.
    pub(super) fn buffer_references(&mut self) -> impl Iterator<Item = &mut u32> {
        let tensors = self.subgraphs.iter_mut().flat_map(|graph| &mut graph.tensors);
        let tensors = tensors.map(|tensor| &mut tensor.buffer);
        tensors.chain(self.metadata.iter_mut().map(|metadata| &mut metadata.buffer))
    }

    /// Counts what refers to a buffer.
    fn uses(&self, buffer: u32) -> usize {
        let tensors = self.subgraphs.iter().flat_map(|graph| &graph.tensors);
        let tensors = tensors.filter(|tensor| tensor.buffer == buffer).count();
        let metadata = self.metadata.iter().filter(|entry| entry.buffer == buffer).count();
        let old = self.metadata_buffer.iter().filter(|&&old| u32::try_from(old) == Ok(buffer));
        tensors.saturating_add(metadata).saturating_add(old.count())
    }

    /// Gives what refers to metadata their new positions, -1 for those that are taken out.
    fn renumber_metadata(&mut self, moved: &[i32]) {
        let renumber = |index: &mut i32| {
            let new = usize::try_from(*index).ok().and_then(|at| moved.get(at));
            // One past the end stays what it is: a fault of the model.
            *index = new.copied().unwrap_or(*index);
        };
        for graph in &mut self.subgraphs {
            renumber(&mut graph.debug_metadata_index);
            for operator in &mut graph.operators {
                renumber(&mut operator.debug_metadata_index);
            }
        }
    }
}

impl OperatorCode {
    /// Makes the code of an operator at version 1, in both fields as conforming writers do.
    #[must_use]
    pub fn new(operator: BuiltinOperator) -> Self {
        let code = operator.code();
        // 127 stands for all that 8 bits do not hold.
        let deprecated_builtin_code = i8::try_from(code.min(127)).unwrap_or(i8::MIN);
        Self { deprecated_builtin_code, builtin_code: operator, ..Self::default() }
    }

    /// Makes the code of a custom operator at version 1.
    #[must_use]
    pub fn custom(name: impl Into<String>) -> Self {
        Self { custom_code: Some(name.into()), ..Self::new(BuiltinOperator::CUSTOM) }
    }
}

impl From<BuiltinOperator> for OperatorCode {
    fn from(operator: BuiltinOperator) -> Self {
        Self::new(operator)
    }
}

/// Returns the last position of a list.
fn last(len: usize) -> u32 {
    u32::try_from(len.saturating_sub(1)).unwrap_or(u32::MAX)
}
