//! FlatBuffers to values, and back.
//!
//! ```text
//! Parsed    everything is proved, then read     mod.rs, scan.rs, read.rs
//! tables    built from the end to the start     encode.rs, write.rs
//! ```

mod encode;
mod numbers;
mod options;
mod read;
mod scan;
#[cfg(test)]
mod tests;
mod training;
mod write;

use std::ops::Range;

use bytes::Bytes;
use flat_tables::{Bounds, Fault, Problem};
use tensor_core::Limits;

pub(crate) use write::{Placed, tables};

use crate::{
    Error, Result, generated,
    model::{Model, Schema},
};
use scan::Scan;

impl Model {
    /// Reads a model. Buffers are slices of `model`, without a copy, and not looked at.
    ///
    /// # Errors
    ///
    /// [`Error::NotAModel`] without the identifier of a schema; as for
    /// [`parse_as`](Self::parse_as).
    pub fn parse(model: impl Into<Bytes>, limits: &Limits) -> Result<Self> {
        let model = model.into();
        let schema = identify(&model)?;
        Self::parse_as(model, schema, limits)
    }

    /// Reads a model by a schema, whatever its identifier says, as onert does.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] and its like where it is not a FlatBuffer of the schema.
    pub fn parse_as(model: impl Into<Bytes>, schema: Schema, limits: &Limits) -> Result<Self> {
        Ok(Parsed::of(&model.into(), schema, limits)?.model)
    }
}

/// A model, and how many bytes its tables take.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) model: Model,
    /// `None` where there are tables that cannot be looked into.
    pub(crate) len: Option<u64>,
    /// Where the first table is that has unknown fields.
    pub(crate) unknown_field: Option<u64>,
    /// Whether some of it was taken from where nothing was read, so that it means nothing.
    pub(crate) is_in_hole: bool,
}

impl Parsed {
    pub(crate) fn of(bytes: &Bytes, schema: Schema, limits: &Limits) -> Result<Self> {
        Self::with_holes(bytes, &[], schema, limits)
    }

    /// Reads a model of which the bytes of some buffers are not there.
    pub(crate) fn with_holes(
        bytes: &Bytes,
        holes: &[Range<usize>],
        schema: Schema,
        limits: &Limits,
    ) -> Result<Self> {
        // Tables reach no further, whatever stands behind them.
        let bytes = &bytes.slice(..bytes.len().min(LONGEST));
        let bounds = bounds(bytes.len(), limits);
        let scan = Scan::new(bytes, schema, holes);
        let model = match schema {
            Schema::Circle => read::circle::model(
                &generated::circle_model(bytes, bounds).map_err(malformed)?,
                &scan,
            )?,
            Schema::Tflite => read::tflite::model(
                &generated::tflite_model(bytes, bounds).map_err(malformed)?,
                &scan,
            )?,
        };
        let (len, unknown_field) = (scan.len(), scan.unknown_field());
        Ok(Self { model, len, unknown_field, is_in_hole: scan.is_in_hole() })
    }
}

/// Returns the schema that the identifier of a model names.
pub(crate) fn identify(model: &[u8]) -> Result<Schema> {
    let found = model.get(4..).and_then(|rest| rest.split_first_chunk::<4>());
    let Some((&found, _)) = found else {
        let (what, needed, remaining) = ("model", 8, model.len() as u64);
        return Err(tensor_core::Error::OutOfBounds { what, offset: 0, needed, remaining }.into());
    };
    Schema::from_identifier(found).ok_or(Error::NotAModel { found })
}

/// Returns what a model of so many bytes may make us do.
///
/// A table takes at least 4 bytes where it is and as many where it is referred to. Beyond what is
/// there for each of them, tables are shared, of which typed values would be copies.
fn bounds(len: usize, limits: &Limits) -> Bounds {
    let depth = usize::try_from(limits.depth).unwrap_or(MAX_DEPTH);
    Bounds {
        depth: depth.min(MAX_DEPTH),
        tables: (len / 8).min(MAX_TABLES),
        apparent_size: len.saturating_mul(16).max(1 << 20),
    }
}

fn malformed(fault: Fault) -> Error {
    match fault.problem() {
        Problem::TooDeep { limit } => Error::TooDeep { limit },
        Problem::TooManyTables { limit } => Error::TooManyTables { limit },
        _ => Error::Malformed(fault),
    }
}

/// Bytes that offsets reach, which have a sign.
pub(crate) const LONGEST: usize = i32::MAX as usize;

/// What the verifier of C++ allows, in tables.
const MAX_DEPTH: usize = 64;

/// Ten times what the verifier of C++ allows.
const MAX_TABLES: usize = 10_000_000;
