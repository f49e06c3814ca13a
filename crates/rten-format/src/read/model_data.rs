use bytes::Bytes;
use flat_tables::Bounds;
use tensor_core::Limits;

use crate::{Graph, Metadata, Model, Result, generated, read::index::Index};

/// Model data that is proved sound: every part of the model is where accessors look for it.
#[derive(Debug)]
pub(crate) struct ModelData {
    bytes: Bytes,
    index: Index,
}

impl ModelData {
    pub(crate) fn new(bytes: Bytes, limits: &Limits) -> Result<Self> {
        let index = Index::new(&bytes, bounds(bytes.len(), limits))?;
        Ok(Self { bytes, index })
    }

    pub(crate) const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) const fn index(&self) -> &Index {
        &self.index
    }

    /// Makes values of all that the model has. Constants are slices of the bytes.
    pub(crate) fn to_model(&self) -> Result<Model> {
        let root = generated::root(self);
        Ok(Model {
            graph: Graph::parse(&root.graph(), &self.bytes)?,
            metadata: root.metadata().map(|metadata| Metadata::parse(&metadata)),
        })
    }
}

impl Model {
    /// Reads model data. Constants in it are slices of `model`, without a copy.
    ///
    /// What nodes refer to, and whether constants have as many elements as their shapes say, is not
    /// looked at.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`](crate::Error::Malformed) and its like where it is not a FlatBuffer of
    /// the schema.
    pub fn parse(model: impl Into<Bytes>, limits: &Limits) -> Result<Self> {
        ModelData::new(model.into(), limits)?.to_model()
    }
}

/// Returns what bounds the walk over model data of this many bytes.
///
/// A table takes at least 4 bytes where it is and as many where it is referred to. Beyond what is
/// there for each of them, tables are shared, of which typed values would be copies.
pub(crate) fn bounds(len: usize, limits: &Limits) -> Bounds {
    let depth = usize::try_from(limits.depth).unwrap_or(MAX_DEPTH);
    Bounds {
        depth: depth.min(MAX_DEPTH),
        tables: (len / 4).min(MAX_TABLES),
        apparent_size: len.saturating_mul(16).clamp(1 << 20, 1 << 31),
    }
}

/// What RTen itself allows, in tables.
const MAX_DEPTH: usize = 64;

/// Ten times what RTen itself allows.
const MAX_TABLES: usize = 10_000_000;
