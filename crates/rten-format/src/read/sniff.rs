use flat_tables::Buffer;
use tensor_core::{Extent, Source};

use crate::{Result, model::SCHEMA_VERSION, read::header::MAGIC};

/// Tells whether bytes are a file of this format: of version 2 by its magic, of version 1, which has
/// none, by a root table whose first field is the version of the schema and whose second one refers
/// to something.
///
/// Reads 4 bytes, and of what could be version 1 a few dozen around the root table.
///
/// # Errors
///
/// [`Error::Core`](crate::Error::Core) where the source cannot be read.
pub fn sniff(source: &Source) -> Result<bool> {
    let head = source.read(Extent::first(source.len().min(4)), "magic")?;
    if head[..] == MAGIC {
        return Ok(true);
    }
    let buffer = Buffer::new(source).page_len(PAGE);
    let found = buffer.root("model").and_then(|root| {
        let version = root.i32(0, "schema version")?;
        let has_graph = root.scalar::<4>(1, "graph")?.is_some();
        Ok(version == SCHEMA_VERSION && has_graph)
    });
    match found {
        Err(flat_tables::Error::Core(error)) => Err(error.into()),
        found => Ok(found.unwrap_or_default()),
    }
}

/// Bytes that are read at once: a root table is short, and near its list of fields.
const PAGE: u64 = 64;
