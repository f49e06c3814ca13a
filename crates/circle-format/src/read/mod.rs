//! Opening models.

mod holes;

use std::{
    num::NonZeroUsize,
    path::Path,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use tensor_core::{Extent, Limit, Limits, Profile, Source, Verify};

use crate::{
    Error, Result, Tensor,
    model::{Model, Schema, TrainingInfo},
    tables::{LONGEST, Parsed, identify},
};

/// Returns the schema that the identifier of a file names; `None` where it is neither. Eight bytes
/// are read.
///
/// # Errors
///
/// [`Error::Core`] where they cannot be read.
pub fn sniff(source: &Source) -> Result<Option<Schema>> {
    let start = source.read(Extent::first(source.len().min(8)), "identifier")?;
    Ok(identify(&start).ok())
}

/// An open Circle or TFLite model, in a package or bare.
///
/// Opening proves that the tables are well formed. Where the source is in memory, or mapped, the
/// bytes of constants are not touched; a file that is read by position is read up to the end of its
/// tables, but for constants of 64 KiB and more: those are [left](crate::model::Buffer::is_unread)
/// where they are. Whether a constant has the bytes that its shape needs is checked when it is read;
/// [`validate`](Self::validate) checks all of them.
///
/// Clones are cheap and share what was read.
#[derive(Clone, Debug)]
pub struct Reader {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    source: Source,
    /// The bytes that the tables were read from, from the start of the file.
    tables: Bytes,
    /// What the file says that it is; `None` where its schema was chosen by the caller.
    identifier: Option<Schema>,
    model: Model,
    tables_len: Option<u64>,
    unknown_field: Option<u64>,
    /// Graph and position of every constant, in the order of the file.
    constants: Vec<(u32, u32)>,
    /// Positions in `constants` by name, filled at the first look-up.
    by_name: OnceLock<Vec<usize>>,
    limits: Limits,
}

impl Reader {
    /// Opens a file, which is read by position.
    ///
    /// # Errors
    ///
    /// [`Error::NotAModel`], [`Error::Malformed`] and its like; [`Error::Core`] where it cannot be
    /// read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Reads a model that is in memory; nothing is copied.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::options().from_bytes(bytes)
    }

    /// Reads a model from any source: memory, a file, a mapping, the caller's store.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_source(source: Source) -> Result<Self> {
        Self::options().from_source(source)
    }

    /// Returns the options of opening, to be set and opened with.
    #[must_use]
    pub fn options() -> ReadOptions {
        ReadOptions::default()
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.inner.model
    }

    /// Returns what the identifier at byte 4 says; `None` where it says nothing that is known, and
    /// the schema was chosen by the caller.
    #[must_use]
    pub fn identifier(&self) -> Option<Schema> {
        self.inner.identifier
    }

    /// Returns how many bytes the tables take from the start of the file, constants in them
    /// included; `None` where there are tables that this crate cannot look into.
    #[must_use]
    pub fn tables_len(&self) -> Option<u64> {
        self.inner.tables_len
    }

    /// Returns where the first table is that has fields which this crate does not know, in bytes
    /// from the start of the file: what a later release of the schema added. A model with such
    /// fields can be read, and not be written.
    #[must_use]
    pub fn unknown_field(&self) -> Option<u64> {
        self.inner.unknown_field
    }

    /// Returns handles on the constants of all graphs, in the order of the file.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> {
        (0..self.inner.constants.len()).map(|index| self.constant_at(index))
    }

    /// Returns a handle on the constant of a name; `None` where there is none.
    ///
    /// Of several constants of one name the first is returned; [`tensors`](Self::tensors) has all.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let by_name = self.inner.by_name.get_or_init(|| self.sort_names());
        let name_at = |index: usize| self.constant_at(index).name();
        let at = by_name.partition_point(|&index| name_at(index) < Some(name));
        let constant = self.constant_at(*by_name.get(at)?);
        (constant.name() == Some(name)).then_some(constant)
    }

    /// Reads how the model is to be trained; `None` where its metadata do not say so in the tables.
    ///
    /// # Errors
    ///
    /// As for [`TrainingInfo::parse`].
    pub fn training_info(&self) -> Result<Option<TrainingInfo>> {
        let bytes = self.model().metadata(TrainingInfo::METADATA);
        let bytes = bytes.filter(|bytes| !bytes.is_empty());
        bytes.map(|bytes| TrainingInfo::parse(bytes.clone(), self.limits())).transpose()
    }

    /// Returns what the model is read from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.inner.source
    }

    /// Returns where everything ends that the model refers to, in bytes from the start of the file:
    /// that of the file where there are tables which cannot be looked into.
    pub(crate) fn end(&self) -> u64 {
        let model = self.model();
        let buffers = model.buffers.iter().filter(|buffer| buffer.is_external());
        let buffers = buffers.map(|buffer| buffer.offset.saturating_add(buffer.size));
        let operators = model.subgraphs.iter().flat_map(|graph| &graph.operators);
        let options = operators.filter(|operator| operator.large_custom_options_offset > 1);
        let options = options.map(|operator| {
            let (offset, size) =
                (operator.large_custom_options_offset, operator.large_custom_options_size);
            offset.saturating_add(size)
        });
        let len = self.source().len();
        let tables = self.tables_len().unwrap_or(len);
        buffers.chain(options).max().unwrap_or_default().max(tables).min(len)
    }

    /// Tells whether an archive stands behind everything else, as tools for TFLite append one.
    pub(crate) fn has_files(&self) -> Result<bool> {
        let (end, len) = (self.end(), self.source().len());
        let start = Extent::between(end, len.min(end.saturating_add(PADDING)));
        let start = self.source().read(start, "bytes behind the model")?;
        let is_archive = |four: &[u8]| four == b"PK\x03\x04" || four == b"PK\x05\x06";
        Ok(start.windows(4).any(is_archive))
    }

    /// Returns the ceilings on what the file may make the reader do.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Returns where a slice of the tables starts in the file; `None` for bytes that are elsewhere,
    /// as empty ones may be.
    pub(crate) fn position(&self, part: &[u8]) -> Option<u64> {
        let tables = &self.inner.tables;
        let offset = part.as_ptr().addr().checked_sub(tables.as_ptr().addr())?;
        let inside = offset.checked_add(part.len())? <= tables.len();
        inside.then_some(offset as u64)
    }

    fn constant_at(&self, index: usize) -> Tensor<'_> {
        let (subgraph, tensor) = self.inner.constants.get(index).copied().unwrap_or_default();
        Tensor::new(self, subgraph, tensor)
    }

    fn sort_names(&self) -> Vec<usize> {
        let mut sorted: Vec<usize> = (0..self.inner.constants.len())
            .filter(|&index| self.constant_at(index).name().is_some())
            .collect();
        // Stable, so that the first of several constants of one name stays first.
        sorted.sort_by_key(|&index| self.constant_at(index).name());
        sorted
    }
}

/// How a model is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    limits: Limits,
    schema: Option<Schema>,
}

impl ReadOptions {
    /// Sets the ceilings on what a file may make the reader do.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how much is tolerated. It has no effect: of a model with a table out of place nothing can
    /// be read, and all else is for [`Reader::validate`] to find.
    #[must_use]
    pub const fn profile(self, _: Profile) -> Self {
        self
    }

    /// Sets when digests are compared. It has no effect: models have none.
    #[must_use]
    pub const fn verify(self, _: Verify) -> Self {
        self
    }

    /// Sets how many threads check a model. It has no effect: one does.
    #[must_use]
    pub const fn threads(self, _: NonZeroUsize) -> Self {
        self
    }

    /// Sets the schema, whatever the identifier of the file says: onert goes by the manifest alone.
    #[must_use]
    pub const fn schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Opens a file, which is read by position.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader> {
        self.from_source(Source::open(path)?)
    }

    /// Reads a model that is in memory; nothing is copied.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_bytes(self, bytes: impl Into<Bytes>) -> Result<Reader> {
        self.from_source(Source::from_bytes(bytes))
    }

    /// Reads a model from any source.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_source(self, source: Source) -> Result<Reader> {
        let start = source.read(Extent::first(source.len().min(8)), "model")?;
        let found = identify(&start);
        let identifier = found.as_ref().ok().copied();
        let schema = match self.schema {
            Some(schema) => schema,
            None => found?,
        };
        let (tables, parsed) = self.tables(&source, schema)?;
        let Parsed { model, len: tables_len, unknown_field, .. } = parsed;
        let constants = constants(&model, &self.limits)?;
        let by_name = OnceLock::new();
        let limits = self.limits;
        let inner = Inner {
            source,
            tables,
            identifier,
            model,
            tables_len,
            unknown_field,
            constants,
            by_name,
            limits,
        };
        Ok(Reader { inner: Arc::new(inner) })
    }

    /// Reads the tables without the large constants in them; `None` where that does not pay, or
    /// something is wrong.
    fn tables_with_holes(
        &self,
        source: &Source,
        all: u64,
        schema: Schema,
    ) -> Result<Option<(Bytes, Parsed)>> {
        if source.as_slice().is_some() || all <= FIRST {
            return Ok(None);
        }
        let holes = holes::find(source, all)?;
        let Some(last) = holes.last() else { return Ok(None) };
        // Tables are behind the constants, too, and then maybe other files.
        let near = all.min((last.end as u64).saturating_add(FIRST));
        let lens = if near < all { &[near, all][..] } else { &[all][..] };
        for &len in lens {
            let Some(bytes) = holes::read_around(&holes, source, len, &self.limits)? else {
                return Ok(None);
            };
            match Parsed::with_holes(&bytes, &holes, schema, &self.limits) {
                Ok(parsed) if !parsed.is_in_hole => return Ok(Some((bytes, parsed))),
                Ok(_) => return Ok(None),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Reads the tables: in place where the file is in memory, else as much from its start as they
    /// turn out to need. Constants outside of them stand behind them.
    fn tables(&self, source: &Source, schema: Schema) -> Result<(Bytes, Parsed)> {
        let all = source.len().min(LONGEST as u64);
        if let Some(read) = self.tables_with_holes(source, all, schema)? {
            return Ok(read);
        }
        let mut len = if source.as_slice().is_some() { all } else { all.min(FIRST) };
        loop {
            if source.as_slice().is_none() {
                self.limits.check(Limit::DecodedBytes, "bytes of a model", len)?;
            }
            let bytes = source.read(Extent::first(len), "model")?;
            match Parsed::of(&bytes, schema, &self.limits) {
                Err(Error::Malformed(_) | Error::TooManyTables { .. }) if len < all => {
                    len = len.saturating_mul(GROWTH).min(all);
                }
                parsed => return Ok((bytes, parsed?)),
            }
        }
    }
}

/// Finds the tensors that have a value in the file. What the caller gives is not one, whatever its
/// buffer holds.
fn constants(model: &Model, limits: &Limits) -> Result<Vec<(u32, u32)>> {
    let mut constants = Vec::new();
    let mut count = 0_u64;
    for (graph, subgraph) in (0_u32..).zip(&model.subgraphs) {
        let mut is_input = vec![false; subgraph.tensors.len()];
        for &input in &subgraph.inputs {
            let flag = usize::try_from(input).ok().and_then(|input| is_input.get_mut(input));
            if let Some(flag) = flag {
                *flag = true;
            }
        }
        for ((index, tensor), is_input) in (0_u32..).zip(&subgraph.tensors).zip(is_input) {
            let has_bytes = model.buffer(tensor.buffer).is_some_and(|buffer| !buffer.is_empty());
            if !is_input && (has_bytes || tensor.external_buffer != 0) {
                constants.push((graph, index));
            }
        }
        count = count.saturating_add(subgraph.tensors.len() as u64);
        limits.check(Limit::Tensors, "tensors of the model", count)?;
    }
    Ok(constants)
}

/// Bytes that may be padding in front of what comes next.
pub(crate) const PADDING: u64 = 16;
/// Bytes that are read first where a file is not in memory.
const FIRST: u64 = 1 << 20;
/// How many times more is read where that is not enough.
const GROWTH: u64 = 8;
