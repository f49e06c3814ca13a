use bytes::Bytes;
use flat_tables::{Bounds, Fault, Problem};
use flatbuffers::VerifierOptions;
use tensor_core::Limits;

use crate::{Graph, Metadata, Model, Result, generated::rten as stored, read::index::Index};

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
        let model = model.into();
        Index::new(&model, bounds(model.len(), limits))?;
        Self::proved(&model, limits)
    }

    /// Reads model data that an [`Index`] was made of: what it proves is what the accessors need.
    pub(crate) fn proved(model: &Bytes, limits: &Limits) -> Result<Self> {
        let root = stored::root_as_model_with_opts(&options(bounds(model.len(), limits)), model);
        let root = root.map_err(|_| Fault::new("model data", 0, Problem::Unverified))?;
        Ok(Self {
            graph: Graph::parse(&root.graph(), model)?,
            metadata: root.metadata().map(|metadata| Metadata::parse(&metadata)),
        })
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

/// Returns the same bounds for the verifier of the crate `flatbuffers`.
pub(crate) const fn options(bounds: Bounds) -> VerifierOptions {
    VerifierOptions {
        max_depth: bounds.depth,
        max_tables: bounds.tables,
        max_apparent_size: bounds.apparent_size,
        ignore_missing_null_terminator: false,
    }
}

/// What RTen itself allows, in tables.
const MAX_DEPTH: usize = 64;

/// Ten times what RTen itself allows.
const MAX_TABLES: usize = 10_000_000;
