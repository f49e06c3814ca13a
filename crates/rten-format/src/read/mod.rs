//! Opening files.

pub(crate) mod header;
pub(crate) mod index;
pub(crate) mod model_data;
pub(crate) mod tensor;

use std::{
    cmp::Reverse,
    path::Path,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use tensor_core::{Error as Core, Extent, Limits, Report, Source};

use crate::{
    Constant, Error, Graph, Header, Model, NodeKind, Release, Requirement, Requirements, Result,
    Tensor, Version,
    read::index::{Entry, Index},
    read::model_data::bounds,
    topology::{self, Place},
    validate,
};

/// An open RTen file of version 1 or 2.
///
/// Opening reads the header and the model data, never the tensor data, whatever its size; in a file
/// of version 1, whose constants are in the model data, that is the whole file. It proves that the
/// model data is well formed, and finds the constants; [`model`](Self::model) makes values of all
/// the rest when it is first called. Whether a constant has the bytes that its shape needs, and
/// whether they lie in the file, is checked when it is read; [`validate`](Self::validate) checks
/// all of it.
///
/// Clones are cheap and share what was read.
#[derive(Clone, Debug)]
pub struct Reader {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    source: Source,
    header: Option<Header>,
    model_data: Bytes,
    index: Index,
    /// Read from `model_data` when it is first asked for.
    model: OnceLock<Model>,
    /// Positions in the constants of `index` by name, filled at the first look-up.
    by_name: OnceLock<Vec<usize>>,
    limits: Limits,
}

impl Reader {
    /// Opens a file, which is read by position and only where it is asked for.
    ///
    /// # Errors
    ///
    /// Where the file is no RTen file, was cut off, or has broken model data.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Reads a file that is in memory; nothing is copied.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        Self::options().from_bytes(bytes)
    }

    /// Reads a file from any source: memory, a file, a mapping, the caller's store.
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

    /// Returns which version of the format the file has.
    #[must_use]
    pub fn version(&self) -> Version {
        self.inner.header.map_or(Version::V1, |_| Version::V2)
    }

    /// Returns the header; `None` in a file of version 1, which has none.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        self.inner.header.as_ref()
    }

    /// Returns the model: graph and metadata. The first call makes it, for all clones.
    #[must_use]
    pub fn model(&self) -> &Model {
        let Inner { model, model_data, limits, .. } = &*self.inner;
        // Opening has proved that these bytes are a model.
        model.get_or_init(|| Model::proved(model_data, limits).unwrap_or_default())
    }

    /// Returns handles on the constants of all graphs in the order of the file: those of a subgraph
    /// come where its operator is.
    #[must_use = "iterators do nothing unless they are consumed"]
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> {
        self.inner.index.constants.iter().map(|entry| Tensor::new(self, entry))
    }

    /// Returns a handle on the constant of a name; `None` where there is none.
    ///
    /// Names in the main graph come before those in subgraphs. Of several constants of one name in
    /// the same graph the last is returned, as in RTen; [`tensors`](Self::tensors) has all.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let by_name = self.inner.by_name.get_or_init(|| self.sort_names());
        let wanted = Some(name.as_bytes());
        let entry = |index: &usize| self.inner.index.constants.get(*index);
        let name_of = |entry: &Entry| entry.name(self.model_bytes());
        let at = by_name.partition_point(|index| entry(index).and_then(name_of) < wanted);
        let found = by_name.get(at).and_then(entry).filter(|entry| name_of(entry) == wanted);
        found.map(|entry| Tensor::new(self, entry))
    }

    /// Reports every fault that opening does not prove to be absent: see the rules in
    /// [`Model::validate`], and for the file itself where its parts and constants lie, whether they
    /// fit their shapes, and what stands between them.
    ///
    /// Constants in the tensor data are not read, so this takes as long however large they are.
    #[must_use]
    pub fn validate(&self) -> Report {
        validate::file(self)
    }

    /// Returns the first release of RTen that reads the file; `None` where there is something in it
    /// that this crate does not know. [`requirements`](Self::requirements) says why.
    #[must_use]
    pub fn required_release(&self) -> Option<Release> {
        self.requirements().release()
    }

    /// Returns which release of RTen reads the file, and why.
    #[must_use]
    pub fn requirements(&self) -> Requirements {
        let mut found = self.model().requirements(self.version());
        if let Some((count, path)) = self.unknown_fields() {
            let what = "table with fields of a later release".to_owned();
            found.reasons.insert(0, Requirement { what, since: None, count, path: Some(path) });
        }
        found
    }

    /// Returns what the file is read from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.inner.source
    }

    /// Returns where the model data is, in bytes from the start of the file.
    #[must_use]
    pub fn model_data(&self) -> Extent {
        let whole = Extent::first(self.source().len());
        self.header().map_or(whole, |header| header.model_data)
    }

    /// Returns how many tables have fields that this crate does not know, which a later release
    /// added, and the path of the node of the first one.
    ///
    /// Such fields are in no [`Model`], so [`Editor`](crate::Editor) and [`Rewrite`](crate::Rewrite)
    /// refuse to write one that would lack them.
    #[must_use]
    pub fn unknown_fields(&self) -> Option<(u64, String)> {
        let newer = self.inner.index.newer;
        let path = newer.first.map_or_else(
            || "model".to_owned(),
            |(scope, node)| {
                let place = self.place(scope).map_or("graph", |place| &place.path);
                format!("{place}/node {node}")
            },
        );
        (newer.count > 0).then_some((newer.count, path))
    }

    /// Refuses to make model data of what is only a part of what the file has.
    pub(crate) fn require_known(&self) -> Result<()> {
        match self.unknown_fields() {
            Some((tables, path)) => Err(Error::UnknownFields { tables, path }),
            None => Ok(()),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(crate) fn place(&self, scope: usize) -> Option<&Place> {
        self.inner.index.places.get(scope)
    }

    /// Returns the bytes that extents in [`Entry`] are about.
    pub(crate) fn model_bytes(&self) -> &Bytes {
        &self.inner.model_data
    }

    /// Returns a constant of the model.
    pub(crate) fn constant(&self, scope: usize, node: u32) -> &Constant {
        let found = self.graph(scope).and_then(|graph| topology::node(graph, node));
        match found.map(|node| &node.kind) {
            Some(NodeKind::Constant(constant)) => constant,
            // The index was made from the constants of this model.
            _ => &NO_CONSTANT,
        }
    }

    fn graph(&self, scope: usize) -> Option<&Graph> {
        let place = self.place(scope)?;
        let Some((parent, operator)) = place.parent else {
            return Some(&self.model().graph);
        };
        // As deep as graphs are nested, which the verifier bounds.
        let node = topology::node(self.graph(parent)?, operator)?;
        let NodeKind::Operator(operator) = &node.kind else { return None };
        let mut subgraphs = operator.subgraphs();
        subgraphs.find(|(branch, _)| *branch == place.branch).map(|(_, graph)| graph)
    }

    /// Sorts constants by name, those first that a look-up prefers.
    fn sort_names(&self) -> Vec<usize> {
        let constants = &self.inner.index.constants;
        let mut sorted: Vec<usize> = (0..constants.len()).collect();
        let model_data = self.model_bytes();
        let key = |entry: &Entry| (entry.name(model_data), entry.scope, Reverse(entry.node));
        sorted.sort_by_key(|&index| constants.get(index).map(key));
        sorted
    }
}

/// How a file is opened and read.
///
/// # Examples
///
/// ```no_run
/// use rten_format::{Reader, tensor_core::Limits};
///
/// let limits = Limits::default().with_manifest_bytes(64 << 20);
/// let reader = Reader::options().limits(limits).open("model.rten")?;
/// # Ok::<(), rten_format::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadOptions {
    limits: Limits,
}

impl ReadOptions {
    /// Sets what the file may make the reader do.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Does as [`Reader::open`] with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader> {
        self.from_source(Source::open(path)?)
    }

    /// Does as [`Reader::from_bytes`] with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_bytes(self, bytes: impl Into<Bytes>) -> Result<Reader> {
        self.from_source(Source::from_bytes(bytes))
    }

    /// Does as [`Reader::from_source`] with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_source(self, source: Source) -> Result<Reader> {
        let Self { limits } = self;
        let header = Header::read(&source)?;
        let extent = header.map_or(Extent::first(source.len()), |header| header.model_data);
        within(extent.len(), limits.manifest_bytes, "model data in bytes", "manifest_bytes")?;
        let model_data = source.read(extent, "model data")?;
        let index = Index::new(&model_data, bounds(model_data.len(), &limits));
        let index = index.map_err(|error| error.moved(extent.offset()))?;
        let constants = index.constants.len() as u64;
        within(constants, limits.tensors, "number of constants", "tensors")?;
        let (model, by_name) = (OnceLock::new(), OnceLock::new());
        let inner = Inner { source, header, model_data, index, model, by_name, limits };
        Ok(Reader { inner: Arc::new(inner) })
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        // What FlatBuffers allow: their offsets have 32 bits and a sign.
        Self { limits: Limits::default().with_manifest_bytes(i32::MAX as u64) }
    }
}

/// Refuses what is over a limit.
pub(crate) fn within(
    found: u64,
    limit: u64,
    what: &'static str,
    field: &'static str,
) -> Result<(), Error> {
    if found > limit {
        return Err(Core::OverLimit { what, found, limit, field }.into());
    }
    Ok(())
}

/// Stands in for a constant that is not there.
static NO_CONSTANT: Constant =
    Constant { shape: Vec::new(), dtype: None, data: None, data_offset: None };

#[cfg(test)]
mod tests {
    use test_support::files;

    use super::*;

    #[test]
    fn handles_need_no_model() {
        for path in files("rten/valid", "rten") {
            let reader = Reader::open(path).unwrap();
            for tensor in reader.tensors() {
                assert!(!tensor.path().is_empty());
                assert_eq!(tensor.bytes().unwrap().len() as u64, tensor.extent().unwrap().len());
                let found = tensor.name().and_then(|name| reader.tensor(name)).unwrap();
                assert_eq!(found.name(), tensor.name());
            }
            assert!(reader.inner.model.get().is_none());
            for tensor in reader.tensors() {
                assert_eq!(tensor.info().unwrap().shape.rank(), tensor.constant().shape.len());
            }
            assert!(std::ptr::eq(reader.model(), reader.clone().model()));
        }
    }
}
