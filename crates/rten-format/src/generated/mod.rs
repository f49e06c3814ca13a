//! What flatc makes of `schemas/rten.fbs`. Nothing of it is public: the typed modules beside this
//! one are.

#![allow(
    unsafe_code,
    dead_code,
    elided_lifetimes_in_paths,
    missing_docs,
    unreachable_pub,
    clippy::doc_markdown,
    clippy::extra_unused_lifetimes,
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "flatc writes it so, and nothing outside calls its unverified constructors"
)]

pub(crate) mod rten;

use crate::read::model_data::ModelData;

/// Returns the root of model data, of which everything is proved that accessors rely on.
pub(crate) fn root(model_data: &ModelData) -> rten::Model<'_> {
    // SAFETY: an index was made of these bytes by a walk that follows what the accessors do: it has
    // found each table, text and vector of the schema in bounds, and each that must be there; texts
    // are UTF-8. Tables of unknown types have no accessors.
    unsafe { rten::root_as_model_unchecked(model_data.bytes()) }
}
