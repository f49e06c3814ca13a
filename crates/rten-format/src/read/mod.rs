//! Opening files.

pub(crate) mod header;
pub(crate) mod index;
pub(crate) mod model_data;
pub(crate) mod sniff;

use std::{
    num::NonZeroUsize,
    path::Path,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use tensor_core::{Extent, Limit, Limits, Profile, Source, Verify};

use crate::{
    Constant, Error, Graph, Header, Model, NodeKind, Result, Version,
    quantization::Dequantized,
    read::{index::Index, model_data::ModelData},
    topology::{self, Place},
};

/// An open RTen file of version 1 or 2.
///
/// Opening reads the header and the model data, never the tensor data, whatever its size; in a file
/// of version 1, whose constants are in the model data, that is the whole file. It proves that the
/// model data is well formed, and finds the constants; [`model`](Self::model) makes values of all
/// the rest when it is first called. Whether a constant has the bytes that its shape needs, and
/// whether they lie in the file, is checked when it is read; [`lint`](Self::lint) checks all
/// of it, and [`validate`](Self::validate) reads them as well.
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
    model_data: ModelData,
    /// Made of the model data when it is first asked for.
    model: OnceLock<Model>,
    /// Positions in the constants of `index` by name, filled at the first look-up.
    by_name: OnceLock<Vec<usize>>,
    /// Filled when it is first asked how a constant is quantized.
    dequantized: OnceLock<Dequantized>,
    limits: Limits,
}

impl Reader {
    /// Opens a file, which is read by position and only where it is asked for.
    ///
    /// # Errors
    ///
    /// Where the file is not an RTen file, was cut off, or has broken model data.
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
        let Inner { model, model_data, .. } = &*self.inner;
        // What is proved makes a model.
        model.get_or_init(|| model_data.to_model().unwrap_or_default())
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
        let newer = self.index().newer;
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

    /// Returns where all constants are.
    pub(crate) fn index(&self) -> &Index {
        self.inner.model_data.index()
    }

    /// Returns positions in the constants by name, which are sorted the first time.
    pub(crate) fn by_name(&self, sort: impl FnOnce() -> Vec<usize>) -> &[usize] {
        self.inner.by_name.get_or_init(sort)
    }

    /// Returns what operators say of constants, which is gathered the first time.
    pub(crate) fn dequantized(&self, gather: impl FnOnce() -> Dequantized) -> &Dequantized {
        self.inner.dequantized.get_or_init(gather)
    }

    /// Returns the ceilings on what the file may make the reader do.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(crate) fn place(&self, scope: usize) -> Option<&Place> {
        self.index().places.get(scope)
    }

    /// Returns the bytes that extents in [`Entry`] are about.
    pub(crate) fn model_bytes(&self) -> &Bytes {
        self.inner.model_data.bytes()
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

    /// Has no effect: nothing in this format can be tolerated that is refused, and the rest is a
    /// finding.
    #[must_use]
    pub const fn profile(self, _: Profile) -> Self {
        self
    }

    /// Has no effect: the format has no digests.
    #[must_use]
    pub const fn verify(self, _: Verify) -> Self {
        self
    }

    /// Has no effect: checks only read, one constant after another.
    #[must_use]
    pub const fn threads(self, _: NonZeroUsize) -> Self {
        self
    }

    /// Like [`Reader::open`], but with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader> {
        self.from_source(Source::open(path)?)
    }

    /// Like [`Reader::from_bytes`], but with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_bytes(self, bytes: impl Into<Bytes>) -> Result<Reader> {
        self.from_source(Source::from_bytes(bytes))
    }

    /// Like [`Reader::from_source`], but with these options.
    ///
    /// # Errors
    ///
    /// As for [`Reader::open`].
    pub fn from_source(self, source: Source) -> Result<Reader> {
        let Self { limits } = self;
        let header = Header::read(&source)?;
        let extent = header.map_or(Extent::first(source.len()), |header| header.model_data);
        limits.check(Limit::ManifestBytes, "model data in bytes", extent.len())?;
        let model_data = source.read(extent, "model data")?;
        let model_data = ModelData::new(model_data, &limits);
        let model_data = model_data.map_err(|error| error.moved(extent.offset()))?;
        let constants = model_data.index().constants.len() as u64;
        limits.check(Limit::Tensors, "number of constants", constants)?;
        let (model, by_name, dequantized) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let inner = Inner { source, header, model_data, model, by_name, dequantized, limits };
        Ok(Reader { inner: Arc::new(inner) })
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        // What FlatBuffers allow: their offsets have 32 bits and a sign.
        Self { limits: Limits::default().with_manifest_bytes(i32::MAX as u64) }
    }
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
                assert_eq!(
                    tensor.bytes().unwrap().len() as u64,
                    tensor.extent().unwrap().unwrap().len()
                );
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
